/*
 * compression_report.h: where compressing gradients pays, as text and as
 * members of "forerun.explanation/1" (docs/cli.md).
 */
#ifndef FR_REPORT_COMPRESSION_REPORT_H
#define FR_REPORT_COMPRESSION_REPORT_H

#include "core/document/json.h"
#include "spec/result/explanation.h"

/* Members of an object that is already open: `compression` and
 * `compression_link`, both null without data parallelism. */
void fr_report_compression_json(const fr_break_even *answer,
                                fr_json_writer *json);

/* Nothing without data parallelism. */
FR_CHECKED fr_status fr_report_compression_text(const fr_break_even *answer,
                                                fr_buffer *out, fr_err *err);

#endif
