/*
 * estimate_layers.h: what the layers of a model take, keep and need on a place,
 * for every way to run them, known to several estimators at once.
 */
#ifndef FR_SIM_BOUND_ESTIMATE_LAYERS_H
#define FR_SIM_BOUND_ESTIMATE_LAYERS_H

#include "program/ir/program.h"
#include "sim/bound/estimate_place.h"

/* Times of the passes; arrays are prefix sums over the layers, [n_layers +
 * 1]. */
typedef struct est_times {
    int64_t *forward_ps;
    int64_t *backward_ps;  /* of inputs where the schedule splits it */
    int64_t *weights_ps;   /* the rest */
    int64_t *recompute_ps; /* full recompute, before backward */
    int64_t embed_ps, head_ps, embed_back_ps;
} est_times;

/* The kinds of time that are summed over the layers. */
typedef enum est_kind {
    EST_BOUND,    /* to the end of the last call of the compute lane */
    EST_ESTIMATE, /* to that of all lanes, or what the host needs if it is more
                   */
    EST_HOST,     /* of the host */
    EST_CORES,    /* of all processors of the device, on any lane */
    EST_COMPUTE,  /* of the compute lane, without communication */
    EST_KINDS
} est_kind;

/* Prefix sums over the layers, [n_layers + 1]. */
typedef struct est_layers {
    est_times times[EST_KINDS];
    int64_t least_forward_ps, least_backward_ps, least_weights_ps; /* of any
                                                                layer */
    int64_t most_forward_ps, most_backward_ps; /* with what is recomputed */
    int64_t most_forward_rest_ps, most_backward_rest_ps; /* of that, in which
                              its processors are free, at most */
    uint64_t *n_dense, *n_expert;                        /* parameters */
    uint64_t *kept_bytes;          /* by one micro-batch from forward on */
    uint64_t *plain_bytes;         /* of a layer that is not recomputed */
    uint64_t *pending_bytes;       /* split backward: between its parts */
    uint64_t *layer_scratch_bytes; /* no sum: of the backward of the layer
                                      before, beyond what is kept up to it */
    uint64_t *handed_bytes;        /* no sum: of a list of layers, what the
                                      layer before makes for the next */
    uint64_t n_embed, n_final;     /* parameters of the ends */
    uint64_t scratch_bytes;        /* beyond what is kept */
    uint64_t stream_bytes;         /* between stages */
    fr_instr opt_step, opt_norms, sqsum; /* of any range */
    fr_instr zero;                       /* of any number of gradients */
    bool has_norms, has_zero;
    int64_t n_steps; /* of a replay for one micro-batch of all layers, about */
    /* The least over all layers. */
    uint64_t least_kept_bytes, least_scratch_bytes, least_dense, least_expert;
    bool is_exact;   /* EST_BOUND is EST_ESTIMATE */
    bool is_uniform; /* all layers have the same parameters */
    int64_t n_met;   /* ranks that meet first in a layer's backward, at least */
    uint32_t parameters_id; /* the same parameters, updated alike */
    int64_t clip_ps;
} est_layers;

/* estimate_work.c: all passes of a micro-batch over n layers, and the ends. */
int64_t est_work_of(const est_layers *layers, est_kind kind, int32_t n);

/* The fields of a plan that the costs of its layers depend on.  It has no
 * padding, because it is a key. */
typedef struct est_layers_key {
    double expert_imbalance, expert_capacity;
    int64_t micro_batch;
    int32_t tp, cp, ep, etp;
    int32_t n_loss_metrics, n_threads;
    int32_t recompute;
    uint32_t recompute_parts;
    int32_t flash_kind, kernels, cp_kind, precision, grad_dtype, scaling;
    int32_t cuda_graphs;
    uint32_t place; /* layers_id; 0 in the pool's */
    bool is_flash, is_split, is_sequence_parallel, is_tp_overlap;
    bool is_loss_fused, is_grad_added_apart, has_more, is_executable;
    bool is_ep_overlap, is_scattered, is_norm_fused, is_routing_fused;
    bool is_expert_padded, is_early_stop, unused[2];
} est_layers_key;

/* The same for all estimators. */
typedef struct est_pool_key {
    est_layers_key layers;
    est_place_key place;
} est_pool_key;

est_layers_key est_layers_key_of(const fr_estimator *e, const fr_plan *plan);
FR_CHECKED fr_status est_layers_find(fr_estimator *e, const fr_plan *plan,
                                     const est_place *place,
                                     const est_layers **out, fr_err *err);
/* estimate_pool.c: sets of layers, for several threads. */
typedef struct est_pool est_pool;

/* All zero; NULL: no memory.  Destroy takes NULL. */
est_layers *est_layers_create(int32_t n_layers);
void est_layers_destroy(est_layers *layers);
/* For one user; NULL: no memory.  The last who leaves destroys it. */
est_pool *est_pool_create(void);
void est_pool_leave(est_pool *pool);
const est_layers *est_pool_find(est_pool *pool, const est_pool_key *key);
/* Takes over `layers`; *out is that, or what another thread added before. */
FR_CHECKED fr_status est_pool_add(est_pool *pool, const est_pool_key *key,
                                  int32_t n_layers, est_layers *layers,
                                  const est_layers **out, fr_err *err);
/*
 * estimate_sums.c: a few layers that are priced in place of all.  The first
 * n_first_all layers are identical, and so are the others up to n_all; layers
 * after these, which predict further tokens, are priced each.
 */
typedef struct est_few {
    int32_t n; /* that are priced, n_first of the first run; 0: all are */
    int32_t n_first, n_first_all, n_all;
} est_few;
est_few est_few_of(int32_t n_first_all, int32_t n_all);

/* From times of layers to prefix sums, and what follows from them. */
void est_layers_sum(int32_t n_layers, const est_few *few, est_layers *layers);

/* The pass that the time of a segment belongs to. */
typedef enum est_pass {
    EST_FORWARD,
    EST_BACKWARD,
    EST_WEIGHTS,
    EST_RECOMPUTE,
    EST_PASSES
} est_pass;
est_pass est_pass_of(const fr_segment *segment);
/* estimate_kept.c: what forward leaves until backward, and the rest of the
 * peak. */
FR_CHECKED fr_status est_layers_keep(const fr_program *program, est_layers *out,
                                     fr_err *err);

/* estimate_pending.c: sets pending_bytes, which are no sums yet, from a program
 * with a split backward. */
void est_add_pending(const fr_program *program, est_layers *out);
#endif
