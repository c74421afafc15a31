/* renderer.c: the list of renderers, and the walk; see renderer.h. */
#include "report/document/renderer.h"

#include "core/base/text.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const fr_renderer *const renderers[] = {
    &fr_render_text, &fr_render_json, &fr_render_csv, &fr_render_markdown};

const fr_renderer *fr_renderer_at(int i)
{
    return i >= 0 && i < (int)FR_LENGTH(renderers) ? renderers[i] : NULL;
}

static const char *name_at(int i)
{
    return i < (int)FR_LENGTH(renderers) ? renderers[i]->name : NULL;
}

const fr_names fr_renderer_names = {.at = name_at};

fr_status fr_renderer_of_file(const char *path, const fr_renderer **out,
                              fr_err *err)
{
    char endings[80] = "";
    for (size_t i = 0; i < FR_LENGTH(renderers); i++) {
        if (fr_text_ends(path, renderers[i]->ending)) {
            *out = renderers[i];
            return FR_OK;
        }
        const size_t n = strlen(endings);
        snprintf(endings + n, sizeof endings - n, "%s%s", n > 0 ? ", " : "",
                 renderers[i]->ending);
    }
    return fr_fail(err, FR_USAGE,
                   "%.400s: the ending of a report's name says its format: %s",
                   path, endings);
}

fr_status fr_document_render(const fr_document *document,
                             const fr_renderer *renderer, fr_layout *layout,
                             fr_buffer *out, fr_err *err)
{
    fr_rendering r = {.document = document, .layout = layout, .out = out};
    FR_TRY(fr_document_check(document, err));
    assert(document->data.depth == 1);
    r.state = calloc(1, renderer->state_bytes + 1);
    if (r.state == NULL)
        return fr_fail_no_memory(err);
    if (renderer->begin != NULL)
        renderer->begin(&r);
    for (size_t i = 0; i < document->nodes.n; i++) {
        const fr_node *node = &document->nodes.items[i];
        if (renderer->show[node->kind] != NULL)
            renderer->show[node->kind](&r, node);
    }
    const fr_node last = {.kind = FR_NODE_LINE,
                          .text = fr_buffer_text(&document->line)};
    if (document->line.n > 0 && renderer->show[FR_NODE_LINE] != NULL)
        renderer->show[FR_NODE_LINE](&r, &last);
    if (renderer->end != NULL)
        renderer->end(&r);
    free(r.state);
    return fr_buffer_check(out, err);
}
