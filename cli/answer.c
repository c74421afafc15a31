/* answer.c: answers are complete before their first byte is printed. */
#include "cli/answer.h"

#include "core/base/layout.h"
#include "core/base/text.h"
#include "report/timeline/gantt.h"

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

fr_status fr_answer_text(fr_status status, fr_buffer *buffer, const fr_cli *cli,
                         fr_err *err)
{
    if (status == FR_OK)
        status = fr_buffer_check(buffer, err);
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

bool fr_is_utf8_terminal(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (int i = 0; i < 3; i++) {
        const char *value = getenv(names[i]);
        if (value != NULL && value[0] != '\0')
            return strcasestr(value, "utf") != NULL;
    }
    return true;
}

fr_status fr_cli_gantt(const fr_program *program, const fr_timeline *timeline,
                       int32_t step, fr_buffer *out, fr_err *err)
{
    fr_gantt_options options = {
        .n_columns = out->layout != NULL ? out->layout->n_wide : FR_LAYOUT_WIDE,
        .n_ranks_max = 16,
        .is_unicode = fr_is_utf8_terminal(),
        .step = step};
    return fr_gantt_text(program, timeline, &options, out, err);
}

fr_status fr_forecast_gantt(const fr_forecast *forecast, fr_buffer *out,
                            fr_err *err)
{
    return fr_cli_gantt(forecast->program, &forecast->timeline, 0, out, err);
}
