/* rank_plans.h: from evaluated candidates to the answer of tune. */
#ifndef FR_TUNER_RANK_PLANS_H
#define FR_TUNER_RANK_PLANS_H

#include "core/vec.h"
#include "spec/tuning.h"
#include "tuner/evaluate.h"

/* A plan that was asked for, and what it costs. */
typedef struct fr_looked {
    fr_candidate candidate;
    fr_evaluation evaluation;
} fr_looked;

typedef fr_vec(fr_looked) fr_looked_list;

/*
 * Fills best, alternatives, layouts, pareto and nearest, adds to the counts,
 * and makes the certificate of bound_s, the bound of what was not looked at.
 */
FR_CHECKED fr_status fr_rank_plans(const fr_plan_space_request *request,
                                   const fr_looked_list *looked,
                                   int n_alternatives, fr_tuning *tuning,
                                   fr_err *err);

/* Fills `baseline` with the fastest candidate, if any fits. */
FR_CHECKED fr_status fr_rank_baseline(const fr_plan_space_request *request,
                                      const fr_looked_list *looked,
                                      fr_tuning *tuning, fr_err *err);

#endif
