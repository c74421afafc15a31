/*
 * tuning_report.h: the answer of tune; its data are the members of
 * "forerun.tuning/1".
 */
#ifndef FR_REPORT_TUNING_REPORT_H
#define FR_REPORT_TUNING_REPORT_H

#include "report/document/document.h"
#include "spec/result/tuning.h"

/* Members of an object that is already open, `schema` not among them. */
void fr_report_tuning_json(const fr_tuning *tuning, fr_json_writer *json);

/* Returns the value as it is shown: the count alone if the goal counts things.
 */
double fr_tuning_shown_value(const fr_tuning_goal *goal, double value);

void fr_report_tuning(const fr_tuning *tuning, fr_document *out);

#endif
