/*
 * hjson.h: JSON as people write it by hand (Hjson,
 * hjson.github.io/syntax.html), rewritten as strict JSON: comments (#, //,
 * block), trailing and missing commas, keys and texts without quotes or in
 * single quotes, texts of several lines and a root without braces.  Every value
 * keeps its line, except after a text of several lines in its own line.
 */
#ifndef FR_CORE_DOCUMENT_HJSON_H
#define FR_CORE_DOCUMENT_HJSON_H

#include "core/base/buffer.h"

/* Appends the JSON of n bytes to `out`; FR_INPUT "path:line: ..." where the
 * text is no Hjson.  The caller reads the result with fr_json_parse(), which
 * checks what is left: escapes, numbers, UTF-8, duplicate keys. */
FR_CHECKED fr_status fr_hjson_to_json(const char *name, const char *text,
                                      size_t n, fr_buffer *out, fr_err *err);

/* The first byte at or after `at` that is neither blank nor in a comment. */
size_t fr_hjson_skip(const char *text, size_t n, size_t at);

#endif
