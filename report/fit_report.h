/* fit_report.h: why a plan does not fit, and what would. */
#ifndef FR_REPORT_FIT_REPORT_H
#define FR_REPORT_FIT_REPORT_H

#include "report/document/document.h"
#include "spec/result/fit_advice.h"

/* The first line of an answer about a plan that does not fit. */
void fr_report_verdict(const fr_prediction *prediction, fr_document *out);

/* The causes and the changes that would fit; the member "does_not_fit". */
void fr_report_fit(const fr_fit_advice *advice, fr_document *out);
/* The member alone, of a run or an export with --force, whose readers have seen
 * the verdict; nothing where the verdict is "". */
void fr_report_fit_data(const fr_fit_advice *advice, fr_document *out);

#endif
