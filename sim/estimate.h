/*
 * estimate.h: what a step of a plan takes at least, and about, without
 * lowering and replaying it.
 *
 * The instructions of a layer, of the embedding and of the head are lowered
 * and priced once for every way to run them (tp, micro-batch, recompute ...)
 * and kept; a plan is then a closed form of these numbers: which layers a
 * stage has, how often it runs them, and what its schedule lets it wait for.
 *
 *   lower_bound_s  no replay of the plan is shorter: it counts lanes that
 *                  work one after the other and chains of passes that wait
 *                  for each other, each at the price that it has alone.
 *   estimate_s     the same with buckets and turns of the pipeline filled in;
 *                  never below the bound.  What shares links is not slowed.
 *   peak_bytes     of the stage that needs most: parameters, gradients,
 *                  optimizer, what live micro-batches keep, scratch.  Live
 *                  tensors only: no bound, and without what the device holds
 *                  besides (cost_models/gpu_memory.h).
 *   least_bytes    what the device of a rank is seen with at least, of that
 *                  with the least room; no prediction has more room than
 *                  capacity_bytes - least_bytes.  With that alone a plan can
 *                  be given up that does not fit (estimate_memory.c: proof).
 *
 * GPU clusters only.  The equations stand beside their code, estimate.c.
 */
#ifndef FR_SIM_ESTIMATE_H
#define FR_SIM_ESTIMATE_H

#include "cost_models/cost.h"
#include "plan/plan.h"
#include "spec/cluster.h"

typedef struct fr_estimate {
    double lower_bound_s;
    double estimate_s;
    uint64_t peak_bytes;
    uint64_t least_bytes, capacity_bytes;
    int64_t n_steps; /* that a replay has to take, about: its work */
} fr_estimate;

typedef struct fr_estimator fr_estimator;

/* Borrows all; one thread at a time may use it.  Destroy takes NULL. */
FR_CHECKED fr_status fr_estimator_create(const fr_model *model,
                                         const fr_job *job,
                                         const fr_cluster *cluster,
                                         const fr_cost_model *costs,
                                         fr_estimator **out, fr_err *err);
void fr_estimator_destroy(fr_estimator *estimator);

/*
 * The ranks are placed node by node, as many on each as it holds.  Errors:
 * those of fr_lower; FR_INFEASIBLE where the ranks do not fit into the
 * cluster; FR_INPUT for what only the simulator knows (offloaded activations,
 * parameter servers, dispatch by node, CPUs).  Compressed gradients cost the
 * bound nothing and the estimate the time of the bytes that are left, an
 * optimizer on the host costs neither anything.
 */
FR_CHECKED fr_status fr_estimate_plan(fr_estimator *estimator,
                                      const fr_plan *plan, fr_estimate *out,
                                      fr_err *err);

/* false: it is one of those that only the simulator knows. */
bool fr_estimate_knows(const fr_plan *plan);

/* The same of a plan that fr_plan_check_lowerable() has accepted and that is
 * none of those that only the simulator knows. */
FR_CHECKED fr_status fr_estimate_legal_plan(fr_estimator *estimator,
                                            const fr_plan *plan,
                                            fr_estimate *out, fr_err *err);

/* What comes beside and after the passes. */
typedef struct fr_estimate_variant {
    bool is_overlap, is_gather_overlap;
    uint64_t bucket_bytes;
} fr_estimate_variant;

typedef struct fr_estimate_variants {
    fr_estimate_variant *at; /* [n], n >= 1 */
    size_t n;
    uint64_t key; /* differs between lists: fr_estimate_variants_key() */
} fr_estimate_variants;

uint64_t fr_estimate_variants_key(const fr_estimate_variant *at, size_t n);

/*
 * lower_bound_s and least_bytes of all plans that differ from *plan in nothing
 * but being one of the variants: the equations of the bound grow with each of
 * their terms (and shrink with the size of the first bucket), so they are
 * evaluated with the least of each term over the variants, one by one.
 * *plan is the variant that overlaps, in the smallest buckets.  Where none of
 * them fits the times are 0.  A bound of the first pipeline rank alone will do
 * if it is above limit_s; give HUGE_VAL for the best one.
 */
FR_CHECKED fr_status fr_estimate_least(fr_estimator *estimator,
                                       const fr_plan *plan,
                                       const fr_estimate_variants *variants,
                                       double limit_s, fr_estimate *out,
                                       fr_err *err);

/* How many sets of layers have been lowered and priced so far. */
size_t fr_estimator_n_priced(const fr_estimator *estimator);

#endif
