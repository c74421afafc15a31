/* plan_report.h: a plan's decisions in words. */
#ifndef FR_REPORT_PLAN_REPORT_H
#define FR_REPORT_PLAN_REPORT_H

#include "plan/decide/plan.h"
#include "report/document/document.h"

/* For readers: one line per decision that is not trivial, with what follows
 * from it. */
void fr_report_plan(const fr_model *model, const fr_job *job,
                    const fr_plan *plan, fr_document *out);

#endif
