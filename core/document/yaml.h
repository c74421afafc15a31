/*
 * yaml.h: YAML in, one document of it, as the tree that JSON is read into
 * (json.h), with the lines of the file.
 *
 * Plain scalars are those of YAML 1.2's core schema, and yes, no, on, off and
 * 1_000 are what YAML 1.1 makes of them (PyYAML still does).  Not read, with a
 * message: what the two versions read differently (010), tags that are not of
 * the core schema, infinities and NaN, merge keys (<<), keys that are no
 * scalars, more than one document, aliases that come to more than 1 MiB.
 */
#ifndef FR_CORE_DOCUMENT_YAML_H
#define FR_CORE_DOCUMENT_YAML_H

#include "core/document/json.h"

/* As fr_json_parse(): FR_INPUT "name:line: what".  FR_FAILURE in a build
 * without libyaml. */
FR_CHECKED fr_status fr_yaml_parse(const char *name, const char *text, size_t n,
                                   fr_json **out, fr_err *err);

#endif
