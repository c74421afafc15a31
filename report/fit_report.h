/* fit_report.h: why a plan does not fit and what would, as text and JSON. */
#ifndef FR_REPORT_FIT_REPORT_H
#define FR_REPORT_FIT_REPORT_H

#include "core/document/json.h"
#include "spec/result/fit_advice.h"

/* The first line of an answer about a plan that does not fit. */
void fr_report_verdict_text(const fr_prediction *prediction, fr_buffer *out);

FR_CHECKED fr_status fr_report_fit_text(const fr_fit_advice *advice,
                                        fr_buffer *out, fr_err *err);
/* The member "does_not_fit" of an object that is open. */
void fr_report_fit_json(const fr_fit_advice *advice, fr_json_writer *json);

#endif
