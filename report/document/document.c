/* document.c: nodes in the order in which they are built; see document.h. */
#include "report/document/document.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static void push(fr_document *document, fr_node node)
{
    if (fr_vec_push(&document->nodes, node) != FR_OK)
        document->has_failed = true;
}

/* NULL where there is no memory, which has_failed says. */
static const char *keep(fr_document *document, const char *text)
{
    const char *own = fr_arena_strdup(&document->arena, text);
    document->has_failed |= own == NULL;
    return own;
}

static bool is_for(const fr_document *document, fr_audience audience)
{
    return (document->audience & audience) != 0;
}

/* ---- data --------------------------------------------------------------- */

static const char *take_key(fr_document *document)
{
    const char *key = document->key;
    document->key = NULL;
    return key;
}

static void take_member(void *context, const char *key)
{
    fr_document *document = context;
    if (is_for(document, FR_FOR_DATA))
        document->key = keep(document, key);
}

static void take_begin(void *context, char container)
{
    fr_document *document = context;
    if (!is_for(document, FR_FOR_DATA))
        return;
    push(document, (fr_node){.kind = FR_NODE_OPEN,
                             .key = take_key(document),
                             .container = container});
}

static void take_end(void *context)
{
    if (is_for(context, FR_FOR_DATA))
        push(context, (fr_node){.kind = FR_NODE_CLOSE});
}

static void take_value(fr_document *document, const char *text, bool is_string)
{
    if (!is_for(document, FR_FOR_DATA))
        return;
    push(document, (fr_node){.kind = FR_NODE_VALUE,
                             .key = take_key(document),
                             .text = keep(document, text),
                             .is_string = is_string});
}

static void take_plain(void *context, const char *text)
{
    take_value(context, text, false);
}

static void take_string(void *context, const char *text)
{
    take_value(context, text, true);
}

static const fr_json_sink data_sink = {
    .key = take_member,
    .begin = take_begin,
    .end = take_end,
    .plain = take_plain,
    .string = take_string,
};

void fr_document_init(fr_document *document, const char *schema)
{
    memset(document, 0, sizeof *document);
    document->audience = FR_FOR_ALL;
    fr_arena_init(&document->arena);
    fr_buffer_init(&document->line);
    fr_table_init(&document->lost, NULL, 0);
    fr_json_writer_init_sink(&document->data, &data_sink, document);
    fr_json_begin_object(&document->data);
    if (schema != NULL)
        fr_json_put_string(&document->data, "schema", schema);
}

void fr_document_add_lines(fr_document *document, const char *text)
{
    while (*text != '\0') {
        const size_t n = strcspn(text, "\n");
        char *line = fr_arena_alloc(&document->arena, n + 1);
        document->has_failed |= line == NULL;
        if (line == NULL)
            return;
        memcpy(line, text, n);
        line[n] = '\0';
        fr_json_string(&document->data, line);
        text += n + (text[n] != '\0');
    }
}

void fr_document_put_lines(fr_document *document, const char *key,
                           const char *text)
{
    fr_json_open_array(&document->data, key);
    fr_document_add_lines(document, text);
    fr_json_end_array(&document->data);
}

/* ---- text --------------------------------------------------------------- */

static void push_line(fr_document *document, const char *text, size_t indent)
{
    push(document, (fr_node){.kind = FR_NODE_LINE,
                             .text = keep(document, text),
                             .indent = indent});
}

/* A line that has begun ends where something else follows. */
static void end_line(fr_document *document)
{
    if (document->line.n == 0)
        return;
    push_line(document, fr_buffer_text(&document->line), 0);
    document->line.n = 0;
}

/* The lines that have ended become nodes, the rest waits. */
static void take_lines(fr_document *document)
{
    fr_buffer *line = &document->line;
    char *at = line->data, *end;
    if (line->has_failed || line->n == 0)
        return;
    for (; (end = strchr(at, '\n')) != NULL; at = end + 1) {
        *end = '\0';
        push_line(document, at, 0);
    }
    line->n = strlen(at);
    memmove(line->data, at, line->n + 1);
}

void fr_document_puts(fr_document *document, const char *text)
{
    if (!is_for(document, FR_FOR_READERS))
        return;
    fr_buffer_puts(&document->line, text);
    take_lines(document);
}

void fr_document_printf(fr_document *document, const char *format, ...)
{
    va_list args;
    if (!is_for(document, FR_FOR_READERS))
        return;
    va_start(args, format);
    fr_buffer_vprintf(&document->line, format, args);
    va_end(args);
    take_lines(document);
}

void fr_document_hanging(fr_document *document, const char *text, size_t indent)
{
    if (!is_for(document, FR_FOR_READERS))
        return;
    end_line(document);
    push_line(document, text, indent);
}

void fr_document_heading(fr_document *document, const char *format, ...)
{
    va_list args;
    if (!is_for(document, FR_FOR_READERS))
        return;
    end_line(document);
    va_start(args, format);
    fr_buffer_vprintf(&document->line, format, args);
    va_end(args);
    push(document,
         (fr_node){.kind = FR_NODE_HEADING,
                   .text = keep(document, fr_buffer_text(&document->line))});
    document->line.n = 0;
}

void fr_document_verbatim(fr_document *document, const char *text)
{
    end_line(document);
    push(document,
         (fr_node){.kind = FR_NODE_VERBATIM, .text = keep(document, text)});
}

/* ---- tables and charts -------------------------------------------------- */

fr_table *fr_document_records(fr_document *document, const char *key,
                              const fr_column *columns, size_t n)
{
    fr_table *table = malloc(sizeof *table);
    end_line(document);
    if (table == NULL || fr_vec_reserve(&document->nodes, 1) != FR_OK) {
        free(table);
        document->has_failed = true;
        return &document->lost;
    }
    fr_table_init(table, columns, n);
    table->is_hidden = !is_for(document, FR_FOR_READERS);
    if (key != NULL && is_for(document, FR_FOR_DATA))
        table->key = keep(document, key);
    push(document, (fr_node){.kind = FR_NODE_TABLE, .table = table});
    return table;
}

fr_table *fr_document_table(fr_document *document, const char *const *headings)
{
    fr_column columns[FR_TABLE_COLUMNS];
    size_t n = 0;
    for (; n < FR_TABLE_COLUMNS && headings[n] != NULL; n++)
        columns[n] = (fr_column){headings[n], NULL};
    return fr_document_records(document, NULL, columns, n);
}

static void destroy_plot(fr_plot *plot)
{
    if (plot == NULL)
        return;
    free(plot->points);
    free(plot);
}

void fr_lanes_destroy(fr_lanes *lanes)
{
    if (lanes == NULL)
        return;
    for (size_t i = 0; i < lanes->n; i++)
        fr_vec_release(&lanes->rows[i].spans);
    free(lanes->rows);
    free(lanes);
}

void fr_document_plot(fr_document *document, fr_plot *plot)
{
    end_line(document);
    if (plot == NULL || fr_vec_reserve(&document->nodes, 1) != FR_OK) {
        destroy_plot(plot);
        document->has_failed = true;
        return;
    }
    push(document, (fr_node){.kind = FR_NODE_PLOT, .plot = plot});
}

void fr_document_lanes(fr_document *document, fr_lanes *lanes)
{
    end_line(document);
    if (lanes == NULL || fr_vec_reserve(&document->nodes, 1) != FR_OK) {
        fr_lanes_destroy(lanes);
        document->has_failed = true;
        return;
    }
    push(document, (fr_node){.kind = FR_NODE_LANES, .lanes = lanes});
}

/* ---- end ---------------------------------------------------------------- */

void fr_document_release(fr_document *document)
{
    for (size_t i = 0; i < document->nodes.n; i++) {
        fr_node *node = &document->nodes.items[i];
        if (node->kind == FR_NODE_TABLE) {
            fr_table_release(node->table);
            free(node->table);
        } else if (node->kind == FR_NODE_PLOT) {
            destroy_plot(node->plot);
        } else if (node->kind == FR_NODE_LANES) {
            fr_lanes_destroy(node->lanes);
        }
    }
    fr_vec_release(&document->nodes);
    fr_table_release(&document->lost);
    fr_buffer_release(&document->line);
    fr_arena_release(&document->arena);
    memset(document, 0, sizeof *document);
}

fr_status fr_document_check(const fr_document *document, fr_err *err)
{
    bool has_failed = document->has_failed || document->line.has_failed;
    for (size_t i = 0; i < document->nodes.n; i++) {
        const fr_table *table = fr_node_table(&document->nodes.items[i]);
        has_failed |= table != NULL && table->has_failed;
    }
    return has_failed ? fr_fail_no_memory(err) : FR_OK;
}
