/* render_json.c: the data of a document as one JSON object. */
#include "report/document/renderer.h"

#include <math.h>

typedef struct json_state {
    fr_json_writer json;
} json_state;

static fr_json_writer *writer_of(const fr_rendering *r)
{
    return &((json_state *)r->state)->json;
}

static void begin(fr_rendering *r)
{
    fr_json_writer_init(writer_of(r), r->out);
}

static void put_key(fr_json_writer *json, const fr_node *node)
{
    if (node->key != NULL)
        fr_json_key(json, node->key);
}

static void open(fr_rendering *r, const fr_node *node)
{
    fr_json_writer *json = writer_of(r);
    put_key(json, node);
    if (node->container == '{')
        fr_json_begin_object(json);
    else if (node->container == 'r')
        fr_json_begin_row(json);
    else
        fr_json_begin_array(json);
}

static void close(fr_rendering *r, const fr_node *node)
{
    fr_json_writer *json = writer_of(r);
    (void)node;
    if (json->stack[json->depth - 1] == '{')
        fr_json_end_object(json);
    else
        fr_json_end_array(json);
}

static void value(fr_rendering *r, const fr_node *node)
{
    fr_json_writer *json = writer_of(r);
    put_key(json, node);
    if (node->is_string)
        fr_json_string(json, node->text);
    else
        fr_json_plain(json, node->text);
}

static void put_cell(fr_json_writer *json, const fr_cell *cell)
{
    if (cell->kind == FR_CELL_TEXT)
        fr_json_string(json, cell->text);
    else if (cell->kind == FR_CELL_BOOL)
        fr_json_bool(json, cell->number != 0);
    else if (cell->kind == FR_CELL_NONE || !isfinite(cell->number))
        fr_json_null(json);
    else if (cell->kind == FR_CELL_COUNT || cell->kind == FR_CELL_BYTES)
        fr_json_i64(json, (int64_t)cell->number);
    else
        fr_json_double(json, cell->number);
}

static void table(fr_rendering *r, const fr_node *node)
{
    const fr_table *t = node->table;
    fr_json_writer *json = writer_of(r);
    if (t->key == NULL)
        return;
    fr_json_open_array(json, t->key);
    for (size_t row = 0; row < fr_table_n_rows(t); row++) {
        fr_json_begin_object(json);
        for (int c = 0; c < t->n_columns; c++) {
            const fr_cell *cell = fr_table_at(t, row, c);
            if (t->columns[c].key == NULL || cell == NULL ||
                cell->kind == FR_CELL_ABSENT)
                continue;
            fr_json_key(json, t->columns[c].key);
            put_cell(json, cell);
        }
        fr_json_end_object(json);
    }
    fr_json_end_array(json);
}

static void end(fr_rendering *r)
{
    fr_json_end_object(writer_of(r));
    fr_buffer_putc(r->out, '\n');
}

const fr_renderer fr_render_json = {
    .name = "json",
    .ending = ".json",
    .state_bytes = sizeof(json_state),
    .begin = begin,
    .show = {[FR_NODE_OPEN] = open,
             [FR_NODE_VALUE] = value,
             [FR_NODE_CLOSE] = close,
             [FR_NODE_TABLE] = table},
    .end = end,
};
