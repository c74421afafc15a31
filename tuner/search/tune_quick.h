/*
 * tune_quick.h: a good plan of a GPU space in some hundredths of a second,
 * for tables of a thousand of them (sweep).
 *
 * First a coarse walk: every layout (cp, tp, pp, ep, micro-batch, recompute),
 * but of what a layout leaves open the usual choice.  Then, for the few
 * layouts that are best by estimate, a walk over all that is open.  Few
 * plans are simulated; how much faster one of all that was walked over could
 * be is known from their lower bounds.
 */
#ifndef FR_TUNER_SEARCH_TUNE_QUICK_H
#define FR_TUNER_SEARCH_TUNE_QUICK_H

#include "cost_models/base/cost.h"
#include "spec/result/prediction.h"
#include "tuner/space/plan_space.h"

typedef struct fr_quick {
    bool has_plan;    /* false: the cluster has no place for any */
    bool fits;        /* else the plan is one that lacks little memory */
    bool may_fit;     /* it does not, but of others it is not known */
    bool is_doubtful; /* the step is far above its estimate: on such links the
                         estimate has chosen badly */
    fr_plan plan;
    fr_prediction prediction;
    uint64_t short_by_bytes;
    uint64_t n_plans; /* that were walked over */
    int64_t n_simulated;
    double bound_s; /* none of them is predicted to be faster */
    double gap;     /* 1 - bound_s / step */
    bool is_proven; /* the gap is 0 */
} fr_quick;

/*
 * Clusters of GPUs only.  Plans that take more passes over layers to simulate
 * than request->most_calls (0: 2^18) are looked at where no other fits.
 * Everything is borrowed.  FR_INPUT: no plan is legal, with the first reason.
 * The same for any n_threads; 0: as many as the machine has.
 */
FR_CHECKED fr_status fr_tune_quick(const fr_plan_space_request *request,
                                   const fr_cost_model *costs, int n_threads,
                                   fr_quick *out, fr_err *err);

#endif
