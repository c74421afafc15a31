/*
 * renderer.h: a document in one format.  A renderer is a table of functions, a
 * file and a row of fr_renderers; fr_document_render() walks the nodes in
 * order.
 */
#ifndef FR_REPORT_DOCUMENT_RENDERER_H
#define FR_REPORT_DOCUMENT_RENDERER_H

#include "core/document/names.h"
#include "report/document/document.h"
#include "report/document/layout.h"

typedef struct fr_rendering {
    const fr_document *document;
    fr_layout *layout; /* NULL: the default one */
    fr_buffer *out;    /* failure is sticky */
    void *state;       /* zeroed memory of the renderer's own */
} fr_rendering;

typedef void (*fr_render_fn)(fr_rendering *r, const fr_node *node);

/* Functions that are NULL leave out what they would show. */
typedef struct fr_renderer {
    const char *name;   /* of --format */
    const char *ending; /* of files, with its dot */
    size_t state_bytes;
    void (*begin)(fr_rendering *r);
    fr_render_fn show[FR_NODE_CLOSE + 1]; /* by the kind of the node */
    /* The walk ends with it even if memory is short; it frees what begin()
     * took. */
    void (*end)(fr_rendering *r);
} fr_renderer;

extern const fr_renderer fr_render_text, fr_render_json, fr_render_csv,
    fr_render_markdown;

extern const fr_names fr_renderer_names;
/* Renderers in the order of the names; NULL past the last. */
const fr_renderer *fr_renderer_at(int i);
/* The renderer of a file, by the ending of its name.  FR_USAGE names the
 * endings that exist. */
FR_CHECKED fr_status fr_renderer_of_file(const char *path,
                                         const fr_renderer **out, fr_err *err);

/* Appends the document to `out`. */
FR_CHECKED fr_status fr_document_render(const fr_document *document,
                                        const fr_renderer *renderer,
                                        fr_layout *layout, fr_buffer *out,
                                        fr_err *err);

#endif
