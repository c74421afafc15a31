/*
 * catalog_targets.h: the programs that a plan can be taken to, and what becomes
 * of each field of it there, as 'forerun catalog targets' prints them.
 */
#ifndef FR_CLI_CATALOG_CATALOG_TARGETS_H
#define FR_CLI_CATALOG_CATALOG_TARGETS_H

#include "core/base/buffer.h"
#include "core/document/json.h"

/* "targets": an array of the open JSON object, with fields and rules. */
void fr_catalog_put_targets(fr_json_writer *json);
/* A line for each target. */
FR_CHECKED fr_status fr_catalog_print_targets(fr_buffer *out, fr_err *err);
/* Fields and rules of one.  FR_USAGE: there is none of this name. */
FR_CHECKED fr_status fr_catalog_print_target(const char *name, fr_buffer *out,
                                             fr_err *err);

#endif
