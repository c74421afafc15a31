/* rendered.h: a document as its readers see it. */
#ifndef FR_TESTS_RENDERED_H
#define FR_TESTS_RENDERED_H

#include "report/document/renderer.h"
#include "tests/check.h"

/* Renders the document into *text, which becomes the caller's, and releases
 * it; returns the text. */
static inline const char *check_rendered(fr_document *document,
                                         const fr_renderer *renderer,
                                         fr_layout *layout, fr_buffer *text)
{
    fr_err err;
    fr_buffer_init(text);
    CHECK_OK(fr_document_render(document, renderer, layout, text, &err), &err);
    fr_document_release(document);
    return fr_buffer_text(text);
}

#endif
