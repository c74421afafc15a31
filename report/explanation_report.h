/*
 * explanation_report.h: what binds a plan and what a change would do; the data
 * are members of "forerun.explanation/1" (docs/cli.md).
 */
#ifndef FR_REPORT_EXPLANATION_REPORT_H
#define FR_REPORT_EXPLANATION_REPORT_H

#include "report/document/document.h"
#include "spec/result/explanation.h"

/* At most n_changes of the changes that fit are for readers; the prediction is
 * not in it. */
void fr_report_explanation(const fr_explanation *explanation, int n_changes,
                           fr_document *out);

/* The plan to run once. */
void fr_report_measurement(const fr_measurement *next, fr_document *out);

#endif
