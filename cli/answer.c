/* answer.c: answers are complete before their first byte is printed. */
#include "cli/answer.h"

#include "core/system/fileio.h"
#include "report/document/layout.h"

#include <stdlib.h>
#include <string.h>

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

static fr_status write_report(const fr_document *document, const fr_cli *cli,
                              fr_err *err)
{
    const char *path = fr_cli_text(cli, FR_OPT_REPORT);
    const fr_renderer *renderer;
    if (path == NULL)
        return FR_OK;
    FR_TRY(fr_renderer_of_file(path, &renderer, err));
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
    if (status == FR_OK && renderer == &fr_render_text && text.n > 0)
        status = check_columns(&layout, err);
    if (status == FR_OK)
        fwrite(fr_buffer_text(&text), 1, text.n, cli->out);
    if (status == FR_OK)
        status = write_report(document, cli, err);
    fr_buffer_release(&text);
    fr_document_release(document);
    return status;
}

fr_status fr_answer_file(fr_status status, fr_buffer *text, const fr_cli *cli,
                         fr_err *err)
{
    const fr_renderer *renderer = renderer_of(cli);
    if (status == FR_OK &&
        (fr_cli_has(cli, FR_OPT_REPORT) || renderer == &fr_render_csv ||
         renderer == &fr_render_markdown))
        status = fr_fail(err, FR_USAGE,
                         "%s: its answer is a file of another format; -o says "
                         "where it goes",
                         cli->request.command->name);
    if (status == FR_OK)
        status = fr_buffer_check(text, err);
    if (status == FR_OK)
        fwrite(fr_buffer_text(text), 1, text->n, cli->out);
    fr_buffer_release(text);
    return status;
}
