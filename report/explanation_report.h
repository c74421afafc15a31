/*
 * explanation_report.h: what binds a plan and what a change would do, as text
 * and as members of "forerun.explanation/1" (docs/cli.md).
 */
#ifndef FR_REPORT_EXPLANATION_REPORT_H
#define FR_REPORT_EXPLANATION_REPORT_H

#include "core/document/json.h"
#include "spec/result/explanation.h"

/* Members of an object that is already open; the prediction is not among
 * them. */
void fr_report_explanation_json(const fr_explanation *explanation,
                                fr_json_writer *json);

/* At most n_changes of the changes that fit. */
FR_CHECKED fr_status
fr_report_explanation_text(const fr_explanation *explanation, int n_changes,
                           fr_buffer *out, fr_err *err);

/* Which plan to run once. */
void fr_report_measurement_json(const fr_measurement *next,
                                fr_json_writer *json);
void fr_report_measurement_text(const fr_measurement *next, fr_buffer *out);

#endif
