/*
 * balance_layers.h: splits of layers that make the stages of a plan take
 * alike: partition_layers.h with what layers take on the devices of the plan.
 *
 * How much a rank holds depends on how ZeRO cuts its state, which the space
 * decides later: a plan has a balanced split for each way that differs.  What
 * was found is kept, a list for each thread of a search.
 */
#ifndef FR_TUNER_PARTITION_BALANCE_LAYERS_H
#define FR_TUNER_PARTITION_BALANCE_LAYERS_H

#include "cost_models/base/cost.h"
#include "sim/bound/estimate.h"
#include "tuner/space/plan_space.h"

enum { FR_BALANCED_MOST = 3 };

/* Splits that are faster than all that the space lists by hand. */
typedef struct fr_balanced {
    int n;
    int32_t *at[FR_BALANCED_MOST]; /* [pp * vpp] each; those of ZeRO 0 first */
} fr_balanced;

/*
 * Can a balanced split be faster than those that the space lists by hand? Where
 * layers are unlike, or nodes are; else the ends of the model are all that
 * differs, and that is what the listed ones are for.
 */
bool fr_balance_is_wanted(const fr_plan_space_request *request);

/* For requests of one model on one cluster, that live as long.  Borrows the
 * costs; destroy takes NULL. */
FR_CHECKED fr_status fr_balance_create(const fr_cost_model *costs,
                                       int n_threads, fr_balance **out,
                                       fr_err *err);
void fr_balance_destroy(fr_balance *balance);

/* A thread's prices are asked of this one, until it gets NULL: what a search
 * has priced is not priced again. */
void fr_balance_lend(fr_balance *balance, int i_thread,
                     fr_estimator *estimator);

/* That of the calling thread; NULL: there is none, which fr_balance_status()
 * tells of where it is for want of memory. */
fr_estimator *fr_balance_estimator(const fr_plan_space_request *request);

/*
 * Returns the balanced splits of a plan that is decided up to its schedule, for
 * the request's lists of splits.  Any thread of the team that the balance was
 * created for may call it.  Illegal plans have no splits.  If memory runs out,
 * fr_balance_status() reports it later.
 */
const fr_balanced *fr_balance_find(const fr_plan_space_request *request,
                                   const fr_plan *plan);
FR_CHECKED fr_status fr_balance_status(const fr_balance *balance, fr_err *err);

/* Equal for plans whose pipelines have the same balanced splits; *plan is
 * decided up to LAYERS. */
uint64_t fr_balance_signature(const fr_plan_space_request *request,
                              const fr_plan *plan);

/*
 * Gives a whole plan the split that is best for it, or none where an even one
 * is as good.  Errors: those of fr_plan_check_lowerable(), FR_INFEASIBLE where
 * the ranks have no place or no split fits.
 */
FR_CHECKED fr_status fr_balance_plan(const fr_model *model, const fr_job *job,
                                     const fr_cluster *cluster,
                                     const fr_cost_model *costs, fr_plan *plan,
                                     fr_err *err);

#endif
