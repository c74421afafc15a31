/*
 * toml.h: TOML 1.0 in, as far as configurations of training have it, as the
 * tree that JSON is read into (json.h), with the lines of the file.
 *
 * Not read, with a message: arrays of tables, dates, strings of several lines,
 * numbers that are not decimal, infinities, a table that is taken up again
 * after another one (its parent's key is then a duplicate).
 */
#ifndef FR_CORE_DOCUMENT_TOML_H
#define FR_CORE_DOCUMENT_TOML_H

#include "core/document/json.h"

/* As fr_json_parse(): FR_INPUT "name:line: what". */
FR_CHECKED fr_status fr_toml_parse(const char *name, const char *text, size_t n,
                                   fr_json **out, fr_err *err);

#endif
