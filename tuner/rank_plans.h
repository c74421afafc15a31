/* rank_plans.h: from evaluated candidates to the answer of tune. */
#ifndef FR_TUNER_RANK_PLANS_H
#define FR_TUNER_RANK_PLANS_H

#include "spec/tuning.h"
#include "tuner/evaluate.h"

/*
 * Fills best, alternatives, layouts, pareto, nearest, the counts and the
 * certificate.  evaluations[i] belongs to candidate i.
 */
FR_CHECKED fr_status fr_rank_plans(const fr_plan_space *space,
                                   const fr_evaluation *evaluations,
                                   bool is_exhaustive, int n_alternatives,
                                   fr_tuning *tuning, fr_err *err);

/* Fills `baseline` with the fastest candidate, if any fits. */
FR_CHECKED fr_status fr_rank_baseline(const fr_plan_space *space,
                                      const fr_evaluation *evaluations,
                                      fr_tuning *tuning, fr_err *err);

#endif
