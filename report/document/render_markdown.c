/*
 * render_markdown.c: GitHub's Markdown.  Each line is a paragraph, indented
 * lines are items of a list, charts are drawn as code.
 */
#include "report/document/charts.h"
#include "report/document/renderer.h"

#include <string.h>

typedef struct markdown_state {
    bool is_in_list;
} markdown_state;

/* Characters that Markdown reads as markup are written with a backslash. */
static void put_escaped(const char *text, fr_buffer *out)
{
    for (; *text != '\0'; text++) {
        if (strchr("\\`*<|[", *text) != NULL)
            fr_buffer_putc(out, '\\');
        fr_buffer_putc(out, *text);
    }
}

/* The same at the beginning of a line, where more is markup. */
static void put_line(const char *text, fr_buffer *out)
{
    if (text[0] != '\0' && strchr("#+->", text[0]) != NULL)
        fr_buffer_putc(out, '\\');
    put_escaped(text, out);
    fr_buffer_putc(out, '\n');
}

/* A blank line before each block that is not the first. */
static void begin_block(fr_rendering *r, bool is_item)
{
    markdown_state *state = r->state;
    if (r->out->n > 0 && !(is_item && state->is_in_list))
        fr_buffer_putc(r->out, '\n');
    state->is_in_list = is_item;
}

static void heading(fr_rendering *r, const fr_node *node)
{
    begin_block(r, false);
    fr_buffer_puts(r->out, "## ");
    put_line(node->text, r->out);
}

static void line(fr_rendering *r, const fr_node *node)
{
    const bool is_item = node->text[0] == ' ';
    const char *text = node->text + strspn(node->text, " ");
    if (text[0] == '\0')
        return;
    begin_block(r, is_item);
    fr_buffer_puts(r->out, is_item ? "- " : "");
    put_line(text, r->out);
}

static void put_code(fr_rendering *r, const char *text)
{
    const size_t n = strlen(text);
    begin_block(r, false);
    fr_buffer_puts(r->out, "```\n");
    fr_buffer_puts(r->out, text);
    if (n > 0 && text[n - 1] != '\n')
        fr_buffer_putc(r->out, '\n');
    fr_buffer_puts(r->out, "```\n");
}

static void verbatim(fr_rendering *r, const fr_node *node)
{
    put_code(r, node->text);
}

static void put_row(const fr_table *t, size_t row, bool is_header,
                    fr_buffer *out)
{
    fr_buffer_putc(out, '|');
    for (int c = 0; c < t->n_columns; c++) {
        if (t->columns[c].heading == NULL)
            continue;
        const fr_cell *cell = fr_table_at(t, row, c);
        fr_buffer_putc(out, ' ');
        put_escaped(is_header      ? t->columns[c].heading
                    : cell != NULL ? cell->text
                                   : "",
                    out);
        fr_buffer_puts(out, " |");
    }
    fr_buffer_putc(out, '\n');
}

static void table(fr_rendering *r, const fr_node *node)
{
    const fr_table *t = node->table;
    if (!fr_table_is_for_readers(t))
        return;
    begin_block(r, false);
    put_row(t, 0, true, r->out);
    fr_buffer_putc(r->out, '|');
    for (int c = 0; c < t->n_columns; c++)
        if (t->columns[c].heading != NULL)
            fr_buffer_puts(r->out, t->is_right[c] ? " ---: |" : " --- |");
    fr_buffer_putc(r->out, '\n');
    for (size_t row = 0; row < fr_table_n_rows(t); row++)
        put_row(t, row, false, r->out);
}

static void chart(fr_rendering *r, const fr_node *node)
{
    fr_buffer text;
    fr_buffer_init(&text);
    if (node->kind == FR_NODE_PLOT)
        fr_plot_draw(node->plot, r->layout, &text);
    else
        fr_lanes_draw(node->lanes, r->layout, &text);
    put_code(r, fr_buffer_text(&text));
    r->out->has_failed |= text.has_failed;
    fr_buffer_release(&text);
}

const fr_renderer fr_render_markdown = {
    .name = "markdown",
    .ending = ".md",
    .state_bytes = sizeof(markdown_state),
    .show = {[FR_NODE_HEADING] = heading,
             [FR_NODE_LINE] = line,
             [FR_NODE_VERBATIM] = verbatim,
             [FR_NODE_TABLE] = table,
             [FR_NODE_PLOT] = chart,
             [FR_NODE_LANES] = chart},
};
