/* plan_report.h: a plan's decisions in words. */
#ifndef FR_REPORT_PLAN_REPORT_H
#define FR_REPORT_PLAN_REPORT_H

#include "core/base/buffer.h"
#include "plan/decide/plan.h"

/* One line per decision that is not trivial, with what follows from it. */
FR_CHECKED fr_status fr_report_plan_text(const fr_model *model,
                                         const fr_job *job, const fr_plan *plan,
                                         fr_buffer *out, fr_err *err);

#endif
