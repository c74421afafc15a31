/*
 * render_text.c: for terminals.  Tables fit by themselves; sentences are broken
 * between words.
 */
#include "core/base/text.h"
#include "report/document/charts.h"
#include "report/document/renderer.h"
#include "report/document/text_table.h"

#include <string.h>

enum { WRAP_INDENT = 4, MOST_INDENT = 32 };

/* The further lines of a line begin under its second column, if it is a name
 * and a text ("gradients      scattered ..."). */
static size_t indent_of(const char *text)
{
    const size_t n = strlen(text), n_indent = strspn(text, " ");
    for (size_t i = n_indent; i + 2 < n && i < MOST_INDENT; i++)
        if (text[i] == ' ' && text[i + 1] == ' ') {
            size_t n_until = i + strspn(text + i, " ");
            return n_until <= MOST_INDENT ? n_until : n_indent + WRAP_INDENT;
        }
    return n_indent + WRAP_INDENT;
}

static void put_line(const char *text, size_t indent, size_t n_wide,
                     fr_buffer *out)
{
    size_t n = fr_text_take_line(text, strlen(text), n_wide);
    fr_buffer_append(out, text, n);
    fr_buffer_putc(out, '\n');
    for (text += n; *text != '\0'; text += n) {
        text += strspn(text, " ");
        n = fr_text_take_line(text, strlen(text), n_wide - indent);
        fr_buffer_fill(out, ' ', indent);
        fr_buffer_append(out, text, n);
        fr_buffer_putc(out, '\n');
    }
}

static void line(fr_rendering *r, const fr_node *node)
{
    put_line(node->text,
             node->indent > 0 ? node->indent : indent_of(node->text),
             fr_layout_wide(r->layout), r->out);
}

static void verbatim(fr_rendering *r, const fr_node *node)
{
    fr_buffer_puts(r->out, node->text);
}

static void table(fr_rendering *r, const fr_node *node)
{
    if (fr_table_is_for_readers(node->table))
        fr_table_print(node->table, r->layout, r->out);
}

static void plot(fr_rendering *r, const fr_node *node)
{
    fr_plot_draw(node->plot, r->layout, r->out);
}

static void lanes(fr_rendering *r, const fr_node *node)
{
    fr_lanes_draw(node->lanes, r->layout, r->out);
}

const fr_renderer fr_render_text = {
    .name = "text",
    .ending = ".txt",
    .show = {[FR_NODE_HEADING] = line,
             [FR_NODE_LINE] = line,
             [FR_NODE_VERBATIM] = verbatim,
             [FR_NODE_TABLE] = table,
             [FR_NODE_PLOT] = plot,
             [FR_NODE_LANES] = lanes},
};
