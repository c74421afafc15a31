/*
 * validation_report.h: the answer of validate as text and as the members of
 * "forerun.validation/1".
 */
#ifndef FR_REPORT_VALIDATION_VALIDATION_REPORT_H
#define FR_REPORT_VALIDATION_VALIDATION_REPORT_H

#include "core/document/json.h"
#include "spec/result/validation.h"

/* Members of an object that is already open, `schema` not among them. */
void fr_report_validation_json(const fr_validation *validation,
                               fr_json_writer *json);

/*
 * Tables by source, the `n_worst` rows that are furthest off, and why rows
 * could not be run, or all rows (`is_every_row`).
 */
FR_CHECKED fr_status fr_report_validation_text(const fr_validation *validation,
                                               size_t n_worst,
                                               bool is_every_row,
                                               fr_buffer *out, fr_err *err);

#endif
