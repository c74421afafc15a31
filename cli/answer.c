/* answer.c: answers are complete before their first byte is printed. */
#include "cli/answer.h"

#include "core/base/layout.h"
#include "core/base/text.h"
#include "core/system/fileio.h"

#include <stdlib.h>
#include <string.h>

fr_json_writer *fr_answer_begin(fr_answer *answer, const char *schema)
{
    fr_buffer_init(&answer->buffer);
    fr_json_writer_init(&answer->json, &answer->buffer);
    fr_json_begin_object(&answer->json);
    fr_json_put_string(&answer->json, "schema", schema);
    return &answer->json;
}

fr_status fr_answer_print(fr_answer *answer, const fr_cli *cli, fr_err *err)
{
    fr_json_end_object(&answer->json);
    fr_buffer_putc(&answer->buffer, '\n');
    return fr_answer_text(FR_OK, &answer->buffer, cli, err);
}

void fr_answer_open(const fr_cli *cli, fr_buffer *out)
{
    fr_buffer_init(out);
    out->layout = cli->layout;
}

/* ---- lines of prose ----------------------------------------------------- */

enum { WRAP_INDENT = 4, MOST_INDENT = 32 };

/* Where the further lines of one begin: under its second column, if it is a
 * name and a text ("gradients      scattered ..."). */
static size_t indent_of(const char *text, size_t n)
{
    size_t n_indent = strspn(text, " ");
    for (size_t i = n_indent; i + 2 < n && i < MOST_INDENT; i++)
        if (text[i] == ' ' && text[i + 1] == ' ') {
            size_t n_until = i + strspn(text + i, " ");
            return n_until <= MOST_INDENT ? n_until : n_indent + WRAP_INDENT;
        }
    return n_indent + WRAP_INDENT;
}

/* Tables fit by themselves; sentences are broken between words. */
static void print_wrapped(const char *text, const fr_layout *layout, FILE *out)
{
    const size_t n_wide =
        layout->n_wide > 0 ? (size_t)layout->n_wide : FR_LAYOUT_WIDE;
    while (*text != '\0') {
        size_t n = strcspn(text, "\n");
        size_t indent = indent_of(text, n);
        size_t n_line = fr_text_take_line(text, n, n_wide);
        fwrite(text, 1, n_line, out);
        text += n_line, n -= n_line;
        while (n > 0) {
            size_t n_gap = strspn(text, " ");
            text += n_gap, n -= n_gap;
            n_line = fr_text_take_line(text, n, n_wide - indent);
            fprintf(out, "\n%*s%.*s", (int)indent, "", (int)n_line, text);
            text += n_line, n -= n_line;
        }
        if (*text == '\n') {
            fputc('\n', out);
            text++;
        }
    }
}

/* Does some table have each column of --columns? */
static fr_status check_columns(const fr_layout *layout, fr_err *err)
{
    const char *at = layout->columns;
    for (int i = 0; at != NULL && i < FR_LAYOUT_NAMES; i++) {
        size_t n = strcspn(at, ",");
        if ((layout->found >> i & 1) == 0)
            return fr_fail(err, FR_USAGE,
                           "--columns '%.*s': no table of this answer has it; "
                           "%s%s",
                           (int)(n < 80 ? n : 80), at,
                           layout->known[0] != '\0' ? "choose from "
                                                    : "it has none",
                           layout->known);
        at = at[n] != '\0' ? at + n + 1 : NULL;
    }
    return FR_OK;
}

/* ---- documents ---------------------------------------------------------- */

static const fr_renderer *renderer_of(const fr_cli *cli)
{
    return fr_cli_has(cli, FR_OPT_FORMAT)
               ? fr_renderer_at((int)cli->request.option[FR_OPT_FORMAT].count)
               : &fr_render_text;
}

fr_status fr_answer_save(const fr_document *document,
                         const fr_renderer *renderer, const char *path,
                         const fr_cli *cli, fr_err *err)
{
    fr_layout layout = *cli->layout;
    fr_buffer text;
    fr_buffer_init(&text);
    fr_status status =
        fr_document_render(document, renderer, &layout, &text, err);
    if (status == FR_OK)
        status = fr_file_write(path, fr_buffer_text(&text), text.n, err);
    fr_buffer_release(&text);
    return status;
}

static fr_status write_report(const fr_document *document, const fr_cli *cli,
                              fr_err *err)
{
    const char *path = fr_cli_text(cli, FR_OPT_REPORT);
    const fr_renderer *renderer;
    if (path == NULL)
        return FR_OK;
    FR_TRY(fr_renderer_of_file(path, &renderer, err));
    return fr_answer_save(document, renderer, path, cli, err);
}

fr_status fr_answer_deliver(fr_status status, fr_document *document,
                            const fr_cli *cli, fr_err *err)
{
    const fr_renderer *renderer = renderer_of(cli);
    fr_layout layout = *cli->layout;
    fr_buffer text;
    if (document->ignores_columns)
        layout.columns = NULL;
    fr_buffer_init(&text);
    if (status == FR_OK)
        status = fr_document_render(document, renderer, &layout, &text, err);
    if (status == FR_OK && renderer == &fr_render_text)
        status = check_columns(&layout, err);
    if (status == FR_OK)
        fwrite(fr_buffer_text(&text), 1, text.n, cli->out);
    if (status == FR_OK)
        status = write_report(document, cli, err);
    fr_buffer_release(&text);
    fr_document_release(document);
    return status;
}

/* An answer that is no document yet has two formats. */
static fr_status check_format(const fr_cli *cli, fr_err *err)
{
    if (fr_cli_has(cli, FR_OPT_REPORT))
        return fr_fail(err, FR_USAGE, "%s writes no --report", cli->argv[1]);
    if (renderer_of(cli) == &fr_render_text ||
        renderer_of(cli) == &fr_render_json)
        return FR_OK;
    return fr_fail(err, FR_USAGE, "%s prints text or --json, not %s",
                   cli->argv[1], renderer_of(cli)->name);
}

fr_status fr_answer_text(fr_status status, fr_buffer *buffer, const fr_cli *cli,
                         fr_err *err)
{
    if (status == FR_OK)
        status = fr_buffer_check(buffer, err);
    if (status == FR_OK)
        status = check_format(cli, err);
    if (status == FR_OK && buffer->layout != NULL)
        status = check_columns(buffer->layout, err);
    if (status == FR_OK && buffer->layout != NULL)
        print_wrapped(fr_buffer_text(buffer), buffer->layout, cli->out);
    else if (status == FR_OK)
        fputs(fr_buffer_text(buffer), cli->out);
    fr_buffer_release(buffer);
    return status;
}

void fr_answer_strings(fr_json_writer *json, const char *text)
{
    for (const char *at = text; *at;) {
        size_t n = strcspn(at, "\n");
        char *line = strndup(at, n);
        if (line != NULL)
            fr_json_string(json, line);
        free(line);
        at += n + (at[n] != '\0');
    }
}

void fr_answer_put_lines(fr_json_writer *json, const char *key,
                         const char *text)
{
    fr_json_open_array(json, key);
    fr_answer_strings(json, text);
    fr_json_end_array(json);
}
