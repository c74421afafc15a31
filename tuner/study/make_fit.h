/*
 * make_fit.h: says why a plan does not fit, and looks for the fewest changes
 * with which it would: all sets of one, two and three, ordered by their
 * estimates, the best of them simulated.
 */
#ifndef FR_TUNER_STUDY_MAKE_FIT_H
#define FR_TUNER_STUDY_MAKE_FIT_H

#include "spec/result/fit_advice.h"
#include "tuner/study/explain_plan.h"

/* Causes and the bytes short alone: of a prediction that does not fit. */
void fr_fit_causes(const fr_model *model, const fr_job *job,
                   const fr_plan *plan, const fr_prediction *prediction,
                   fr_fit_advice *out);

/* Finds the causes, the bytes short and the changes for a request whose
 * prediction does not fit.  A larger set of changes is reported only if it is
 * faster by 5 % than all smaller ones. */
FR_CHECKED fr_status fr_make_fit(const fr_explain_request *request,
                                 fr_fit_advice *out, fr_err *err);

#endif
