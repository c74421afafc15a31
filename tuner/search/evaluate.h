/* evaluate.h: one candidate: plan -> program -> prediction. */
#ifndef FR_TUNER_SEARCH_EVALUATE_H
#define FR_TUNER_SEARCH_EVALUATE_H

#include "cost_models/base/cost.h"
#include "spec/result/prediction.h"
#include "tuner/space/plan_space.h"

typedef enum fr_outcome {
    FR_OUTCOME_NONE,       /* not looked at */
    FR_OUTCOME_SIMULATED,  /* fits; the prediction is complete */
    FR_OUTCOME_TOO_LARGE,  /* does not fit; short_by_bytes is set */
    FR_OUTCOME_UNPLACEABLE /* the cluster has no place for its ranks, its
                              program is too large to be written out, or the
                              target (--for) cannot have it */
} fr_outcome;

typedef struct fr_evaluation {
    fr_outcome outcome;
    uint64_t short_by_bytes;
    fr_prediction prediction; /* TOO_LARGE: memory only, step_s 0; of a slab
                                 that is too large alone its size only */
    char why[320];            /* UNPLACEABLE */
} fr_evaluation;

/*
 * Thread-safe: everything is borrowed and const.  An error is one of the
 * program itself (out of memory, a program that fails its checks) or the
 * caller's (FR_INTERRUPTED: request->log cancels), never a candidate that is
 * merely bad.
 */
FR_CHECKED fr_status fr_evaluate(const fr_plan_space_request *request,
                                 const fr_cost_model *costs,
                                 const fr_plan *plan, fr_evaluation *out,
                                 fr_err *err);

#endif
