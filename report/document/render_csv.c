/*
 * render_csv.c: the main tables of a document, each under a row of names, with
 * numbers in base units.  A document without one is a table of two columns:
 * every value of its data, named by its path (memory.peak_bytes).
 */
#include "report/document/renderer.h"

#include <math.h>
#include <string.h>

/* Records are an array of objects in the innermost container. */
enum { MOST_DEPTH = FR_JSON_DEPTH_MAX + 2 };

typedef struct csv_state {
    bool has_main;            /* some table is a main one */
    bool has_any;             /* one was printed */
    fr_buffer path;           /* of the open containers, with a '.' */
    int depth;                /* open containers */
    size_t start[MOST_DEPTH]; /* bytes of the path before each */
    size_t index[MOST_DEPTH]; /* items of each so far */
} csv_state;

static void begin(fr_rendering *r)
{
    csv_state *state = r->state;
    fr_buffer_init(&state->path);
    for (size_t i = 0; i < r->document->nodes.n; i++) {
        const fr_table *table = fr_node_table(&r->document->nodes.items[i]);
        state->has_main |= table != NULL && table->is_main;
    }
    if (!state->has_main)
        fr_buffer_puts(r->out, "key,value\n");
}

/* ---- main tables -------------------------------------------------------- */

/* Amounts of bytes keep all their digits. */
static bool is_whole(double number)
{
    return number == floor(number) && fabs(number) < 0x1p53;
}

static void put_cell(const fr_cell *cell, fr_buffer *out)
{
    if (cell == NULL || cell->kind == FR_CELL_NONE ||
        cell->kind == FR_CELL_ABSENT)
        return;
    if (cell->kind == FR_CELL_TEXT)
        fr_buffer_put_csv(out, cell->text);
    else if (isfinite(cell->number))
        fr_buffer_printf(out, is_whole(cell->number) ? "%.0f" : "%.9g",
                         cell->number);
}

static void put_row(const fr_table *table, size_t row, bool is_header,
                    fr_buffer *out)
{
    const char *comma = "";
    for (int c = 0; c < table->n_columns; c++) {
        if (table->columns[c].key == NULL)
            continue;
        fr_buffer_puts(out, comma);
        comma = ",";
        if (is_header)
            fr_buffer_put_csv(out, table->columns[c].key);
        else
            put_cell(fr_table_at(table, row, c), out);
    }
    fr_buffer_putc(out, '\n');
}

static void put_table(fr_rendering *r, const fr_table *table)
{
    csv_state *state = r->state;
    if (state->has_any)
        fr_buffer_putc(r->out, '\n');
    state->has_any = true;
    put_row(table, 0, true, r->out);
    for (size_t row = 0; row < fr_table_n_rows(table); row++)
        put_row(table, row, false, r->out);
}

/* ---- every value -------------------------------------------------------- */

/* The name of the next item of the container that is open, at the end of the
 * path: its key, or its place in an array. */
static void put_step(csv_state *state, const char *key)
{
    size_t *index = &state->index[state->depth - 1];
    if (key != NULL)
        fr_buffer_puts(&state->path, key);
    else
        fr_buffer_printf(&state->path, "%zu", *index);
    ++*index;
}

static void cut_path(csv_state *state, size_t n)
{
    if (state->path.data != NULL && n <= state->path.n) {
        state->path.n = n;
        state->path.data[n] = '\0';
    }
}

static void open_step(csv_state *state, const char *key)
{
    const size_t n = state->path.n;
    if (state->depth > 0)
        put_step(state, key);
    if (state->depth > 0)
        fr_buffer_putc(&state->path, '.');
    state->start[state->depth] = n;
    state->index[state->depth++] = 0;
}

static void close_step(csv_state *state)
{
    cut_path(state, state->start[--state->depth]);
}

static void open(fr_rendering *r, const fr_node *node)
{
    open_step(r->state, node->key);
}

static void close(fr_rendering *r, const fr_node *node)
{
    (void)node;
    if (((csv_state *)r->state)->depth > 0)
        close_step(r->state);
}

static void put_path(fr_rendering *r, const char *key)
{
    csv_state *state = r->state;
    const size_t n = state->path.n;
    put_step(state, key);
    fr_buffer_put_csv(r->out, fr_buffer_text(&state->path));
    fr_buffer_putc(r->out, ',');
    cut_path(state, n);
}

static void value(fr_rendering *r, const fr_node *node)
{
    if (((csv_state *)r->state)->has_main)
        return;
    put_path(r, node->key);
    if (node->is_string || strcmp(node->text, "null") != 0)
        fr_buffer_put_csv(r->out, node->text);
    fr_buffer_putc(r->out, '\n');
}

static void put_records(fr_rendering *r, const fr_table *table)
{
    csv_state *state = r->state;
    open_step(state, table->key);
    for (size_t row = 0; row < fr_table_n_rows(table); row++) {
        open_step(state, NULL);
        for (int c = 0; c < table->n_columns; c++) {
            const fr_cell *cell = fr_table_at(table, row, c);
            if (table->columns[c].key == NULL || cell == NULL ||
                cell->kind == FR_CELL_ABSENT)
                continue;
            put_path(r, table->columns[c].key);
            put_cell(cell, r->out);
            fr_buffer_putc(r->out, '\n');
        }
        close_step(state);
    }
    close_step(state);
}

static void table(fr_rendering *r, const fr_node *node)
{
    const csv_state *state = r->state;
    if (node->table->is_main)
        put_table(r, node->table);
    else if (!state->has_main && node->table->key != NULL)
        put_records(r, node->table);
}

static void end(fr_rendering *r)
{
    csv_state *state = r->state;
    r->out->has_failed |= state->path.has_failed;
    fr_buffer_release(&state->path);
}

const fr_renderer fr_render_csv = {
    .name = "csv",
    .ending = ".csv",
    .state_bytes = sizeof(csv_state),
    .begin = begin,
    .show = {[FR_NODE_OPEN] = open,
             [FR_NODE_VALUE] = value,
             [FR_NODE_CLOSE] = close,
             [FR_NODE_TABLE] = table},
    .end = end,
};
