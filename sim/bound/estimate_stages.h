/*
 * estimate_stages.h: what the layers of a model take and need on each rank of
 * a pipeline, whoever gets them: what a split of layers is chosen by.
 *
 * Prices are those of estimate.h, layers stand where the plan puts its stages:
 * a cluster of two kinds of devices has two lists.
 */
#ifndef FR_SIM_BOUND_ESTIMATE_STAGES_H
#define FR_SIM_BOUND_ESTIMATE_STAGES_H

#include "sim/bound/estimate.h"

/* Sums over the layers before, [n + 1]: layers [i, j) take x[j] - x[i]. */
typedef struct fr_stage_layers {
    const int64_t *forward_ps, *backward_ps, *weights_ps, *recompute_ps;
    const uint64_t *n_dense, *n_expert; /* parameters */
    const uint64_t *kept_bytes;         /* of one micro-batch */
    int64_t embed_ps, head_ps;          /* of the first and the last stage */
    uint64_t n_embed, n_final;
    uint64_t scratch_bytes;  /* of a backward */
    uint64_t headroom_bytes; /* of the device, less what libraries take */
    const void *id;          /* the same lists, the same id */
} fr_stage_layers;

/* As fr_estimator_create(), of CPUs too: for fr_estimate_stages() alone. */
FR_CHECKED fr_status fr_estimator_create_stages(
    const fr_model *model, const fr_job *job, const fr_cluster *cluster,
    const fr_cost_model *costs, fr_estimator **out, fr_err *err);

/*
 * out[pp], of the ranks of a legal plan, whose layer_split is not read.  The
 * lists belong to the estimator and stay; they hold n = layers of the model,
 * and after them those that predict later tokens, which head_ps has already.
 */
FR_CHECKED fr_status fr_estimate_stages(fr_estimator *estimator,
                                        const fr_plan *plan,
                                        fr_stage_layers *out, fr_err *err);

/*
 * out_s[dp]: what each replica of a legal plan takes for a micro-batch on its
 * slowest device, of its share of the layers alone; its batch_shares are not
 * read.
 */
FR_CHECKED fr_status fr_estimate_replicas(fr_estimator *estimator,
                                          const fr_plan *plan, double *out_s,
                                          fr_err *err);

#endif
