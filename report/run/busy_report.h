/*
 * busy_report.h: what other processes took from a run, in words and as the
 * member "others" of "forerun.run/1".
 */
#ifndef FR_REPORT_RUN_BUSY_REPORT_H
#define FR_REPORT_RUN_BUSY_REPORT_H

#include "report/document/document.h"
#include "spec/run/busy_steps.h"

/* predicted_step_s 0: there is no prediction.  null if nothing is known. */
void fr_report_busy_json(const fr_busy_steps *busy, double predicted_step_s,
                         fr_json_writer *json);

/* One line, if others disturbed a step; world ranks in all. */
void fr_report_busy_text(const fr_busy_steps *busy, int64_t world,
                         fr_document *out);

#endif
