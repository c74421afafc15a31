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
 *                  work one after the other, chains of passes that wait for
 *                  each other, hosts, processors, stragglers and gathers,
 *                  each at the price that it has alone.
 *   estimate_s     the same with buckets and the periods of 1F1B counted,
 *                  and what shares processors and NICs in the way of layers;
 *                  never below the bound.
 *   peak_bytes     of the stage that needs most: parameters, gradients,
 *                  optimizer, what live micro-batches keep, scratch.  Live
 *                  tensors only: no bound, and without what the device holds
 *                  beyond them (gpu_memory.h).
 *   least_bytes    what the device of a rank is seen with at least, of that
 *                  with the least headroom; no prediction has more room than
 *                  capacity_bytes - least_bytes.  With that alone a plan can
 *                  be given up that does not fit (estimate_memory.c: proof).
 *
 * GPU clusters only.  The equations stand beside their code, estimate.c.
 */
#ifndef FR_SIM_BOUND_ESTIMATE_H
#define FR_SIM_BOUND_ESTIMATE_H

#include "cost_models/base/cost.h"
#include "plan/decide/plan.h"
#include "spec/cluster/cluster.h"

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

/* From now on both know what layers either has priced; each may be used by a
 * thread of its own.  Before e has priced any, and for the same model, job,
 * cluster and costs. */
void fr_estimator_join(fr_estimator *e, fr_estimator *other);

/*
 * The ranks are placed node by node, as many on each as it holds.  Errors:
 * those of fr_lower; FR_INFEASIBLE where the ranks do not fit into the
 * cluster; FR_INPUT for what only the simulator knows, which
 * fr_estimate_unknown() lists.  Compressed gradients cost the bound nothing and
 * the estimate the time of the bytes that are left, an optimizer on the host
 * costs neither anything.
 */
FR_CHECKED fr_status fr_estimate_plan(fr_estimator *estimator,
                                      const fr_plan *plan, fr_estimate *out,
                                      fr_err *err);

/* Why only the simulator knows a plan (the first row of estimate_known.c that
 * it has), or NULL: then there is an estimate of it. */
const char *fr_estimate_unknown(const fr_plan *plan);
bool fr_estimate_knows(const fr_plan *plan);
/* The same plan without anything that is not known. */
void fr_estimate_leave_unknown(const fr_plan *plan, fr_plan *out);

/* The same of a plan that fr_plan_check_lowerable() has accepted and that is
 * none of those that only the simulator knows. */
FR_CHECKED fr_status fr_estimate_legal_plan(fr_estimator *estimator,
                                            const fr_plan *plan,
                                            fr_estimate *out, fr_err *err);

/* The choices of a plan that change only the communication during and after the
 * passes. */
typedef struct fr_estimate_variant {
    uint64_t bucket_bytes;
    uint32_t is_overlap, is_gather_overlap; /* 0 or 1; no padding: a key */
} fr_estimate_variant;

typedef struct fr_estimate_variants {
    fr_estimate_variant *at; /* [n], n >= 1 */
    size_t n;
} fr_estimate_variants;

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

/* The least that ranks have to do in a step, as a mean over the ranks of a
 * pipeline; 0: not known. */
typedef struct fr_least_work {
    double lane_s;    /* on the compute lane: no step is shorter */
    double compute_s; /* of that, without communication; not known either
                         where nodes or shares are unlike */
} fr_least_work;

/*
 * No plan of these layers (tp, cp, ep, etp, micro-batch, what is recomputed and
 * how) on as many ranks and pp has less to do, whatever else it does, but for
 * whether its schedule splits backward, which is read too: estimate_work.c.
 */
FR_CHECKED fr_status fr_estimate_least_work(fr_estimator *estimator,
                                            const fr_plan *plan,
                                            fr_least_work *out, fr_err *err);

/*
 * The share of the model and of the micro-batches that the first pipeline rank
 * holds when its first backward begins.  It gives the least bytes for many
 * plans of the same layers at once: the state, the activations that this share
 * keeps, and the overhead (estimate_headroom.c).
 */
typedef struct fr_estimate_share {
    int64_t n_pairs;        /* (chunk, micro-batch), live at once */
    int32_t chunk_layers;   /* of its smallest chunk */
    int32_t plain_layers;   /* of these, not recomputed */
    int32_t own_layers;     /* of all its chunks */
    bool is_all_recomputed; /* every layer of every chunk */
    bool is_split;          /* its backward */
} fr_estimate_share;

fr_estimate_share fr_estimate_share_of(const fr_model *model, const fr_job *job,
                                       const fr_plan *plan);

typedef struct fr_estimate_headroom {
    uint64_t capacity_bytes; /* of the device, less the overhead */
    uint64_t recomputed_bytes, plain_bytes; /* of a layer of one micro-batch */
    uint64_t stream_bytes;                  /* of these, sent away by a chunk */
    uint64_t recomputed_scratch_bytes,
        plain_scratch_bytes; /* of its backward */
} fr_estimate_headroom;

/* The schedule tells only whether backward is split. */
FR_CHECKED fr_status fr_estimate_headroom_of(fr_estimator *estimator,
                                             const fr_plan *plan,
                                             fr_estimate_headroom *out,
                                             fr_err *err);

/* With the scratch of the backward. */
uint64_t fr_estimate_kept(const fr_estimate_headroom *headroom,
                          const fr_estimate_share *share);

/* Parameters, gradients and optimizer state of so many layers or more. */
FR_CHECKED fr_status fr_estimate_state(fr_estimator *estimator,
                                       const fr_plan *plan, int32_t own_layers,
                                       uint64_t *out_bytes, fr_err *err);

/* Returns the number of sets of layers that have been lowered and priced so
 * far. */
size_t fr_estimator_n_priced(const fr_estimator *estimator);

#endif
