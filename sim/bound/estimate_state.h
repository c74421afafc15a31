/*
 * estimate_state.h: what the parts of an estimator share, beside where ranks
 * sit (estimate_place.h), what layers cost (estimate_layers.h) and what one
 * instruction costs (estimate_price.h).  Nobody else includes it.
 */
#ifndef FR_SIM_BOUND_ESTIMATE_STATE_H
#define FR_SIM_BOUND_ESTIMATE_STATE_H

#include "core/base/arena.h"
#include "core/base/memo.h"
#include "cost_models/storage/input_cost.h"
#include "plan/outline/stages.h"
#include "sim/bound/estimate_layers.h"
#include "sim/bound/estimate_price.h"
#include "sim/bound/estimate_update.h"

/* ZeRO 3: gathers in a step; n 0: not counted, or layers differ. */
typedef struct est_gathers {
    int64_t n_least; /* of what is gathered least of the rank's; 0: unknown */
    int64_t n;       /* of all layers */
    int64_t n_after_forward, n_after_backward; /* that of another layer */
} est_gathers;

/* Passes of one micro-batch over the layers of a virtual stage. */
typedef struct est_pass_times {
    int64_t forward_ps, backward_ps, weights_ps;
    int64_t early_ps; /* of the backward: the last layer's forward again */
    int32_t n_layers;
} est_pass_times;

/* Counts how often a path through all passes contains the passes of a virtual
 * stage, the late part of its backward alone, the boundary before it, and a
 * step from gradients of weights to a pass that meets others. */
typedef struct est_passed {
    uint32_t n_forward, n_backward, n_weights, n_late, n_hops, n_straggler;
} est_passed;

/* The memory of a rank at some time: the number of (chunk, micro-batch) pairs
 * that wait for backward, the number that wait for their gradients of weights,
 * and whether gradients of all its layers exist, to which more are added. */
typedef struct est_occupancy_point {
    int64_t n_kept, n_pending;
    bool has_gradients;
} est_occupancy_point;
typedef fr_vec(est_occupancy_point) est_occupancy;

/* Ranks of the same numbers sit alike. */
typedef struct est_layout_key {
    int32_t tp, pp, dp, cp, ep, etp, zero_group, n_threads, rank_order;
    uint32_t shares; /* number of the shares of the batch; 0: even */
} est_layout_key;

/* The fields that the passes of a pipeline depend on; no padding: a key. */
typedef struct est_pipeline_key {
    est_layers_key layers; /* of no place */
    int32_t dp, pp, vpp, zero_group, schedule, rank_order, recompute_layers;
    uint32_t split;  /* number of its layers per stage; 0: even */
    uint32_t shares; /* number of the shares of the batch; 0: even */
    int32_t is_by_unit;
} est_pipeline_key;

struct fr_estimator {
    const fr_model *model;
    const fr_job *job;
    const fr_cluster *cluster;
    const fr_cost_model *costs;
    fr_input_cost input;
    int64_t least_slots; /* GPUs of a node */
    int32_t n_layers;    /* with those that predict later tokens */
    fr_memo nets, layer_places, places, splits, variants; /* numbers */
    /* Numbers of what stages hold and of what plans do with gradients, and
     * what comes of each two of them: estimate_update.c. */
    fr_memo update_stages, update_plans;
    fr_vec(est_update_row) update_rows;
    fr_arena updates;
    fr_memo layouts;   /* est_layout * */
    fr_memo layers;    /* const est_layers *, of the pool */
    fr_memo prices;    /* int64_t */
    fr_memo gathers;   /* est_gathers */
    fr_memo paths;     /* int64_t: see estimate_paths.c */
    fr_memo occupancy; /* est_occupancy * */
    est_pool *pool;
    fr_vec(est_passed) all_passed; /* of each path, pp * vpp */
    /* The last that was asked for: searches ask for it again. */
    est_layout_key last_layout;
    const est_layout *at_layout; /* NULL: none */
    est_layers_key last_layers;
    const est_layers *at_layers;
    fr_vec(fr_estimate_variant) last_variants;
    uint32_t i_variants; /* their number */
    fr_vec(int32_t) last_split;
    uint32_t i_split;
    int64_t n_ranks; /* of the placement at hand; 0: none */
    int32_t *node_of_rank;
    int64_t *ranks;             /* scratch */
    struct est_bucket *buckets; /* scratch [2 n_layers + 2] */
    struct est_plan *at_plan;   /* the last one */
};

/* Is the plan lowered as the runtime runs it? */
bool est_is_executable(const fr_estimator *e, const fr_plan *plan);
/* The number of a plan's layers per stage. */
FR_CHECKED fr_status est_split_find(fr_estimator *e, const fr_plan *plan,
                                    uint32_t *out, fr_err *err);

/* A pipeline rank: its passes of one micro-batch over all chunks. */
typedef struct est_stage {
    const est_place *place;
    const est_layers *layers;
    const est_layers *plain; /* the layers that are not recomputed */
    const est_times *times;
    int64_t forward_ps, backward_ps, weights_ps;
    int64_t first_forward_ps, first_backward_ps; /* of chunk 0 */
    int64_t last_forward_ps, last_backward_ps;   /* of chunk v - 1 */
    int64_t host_ps, core_ps; /* of all passes; the host's without weights */
    uint64_t n_dense, n_expert, kept_bytes;
    uint64_t n_last_layer;  /* dense parameters, of the last chunk */
    uint64_t chunk_bytes;   /* kept by the forward of a chunk, the smallest */
    uint64_t pending_bytes; /* between its backward's parts, the smallest */
    /* NULL where backward is not split; of this rank, of the last that is
     * alike. */
    const est_occupancy *occupancy, *last_occupancy;
    uint64_t scratch_bytes;         /* of the backward of the last layer */
    uint64_t overhead_bytes;        /* of libraries, on its device */
    int32_t first_layer, end_layer; /* of chunk 0 */
    int32_t n_layers;
    int64_t early_ps; /* of the first backward, before its gradient is there:
                         the last layer's forward again */
    bool has_embed, has_head;
    int32_t rank, n_all; /* of the pipeline; layers of the model */
    int64_t zero_ps;     /* gradients set to zero before the first pass */
    int64_t hop_ps;      /* to the next rank */
    const est_update *update;
    uint32_t update_id[2]; /* of its inputs: estimate_update.c; 0: unknown */
    est_gathers gathers;
    uint32_t gathers_of;     /* of their other inputs; 0: unknown yet */
    int64_t begin_ps;        /* of the first forward */
    int64_t back_ps, end_ps; /* of the last backward, of all passes */
    int64_t path_ps; /* of all passes, by the critical path; 0: not known */
    int64_t contended_ps, issued_ps; /* of the last backward, because of the
                                      processors, because of hosts */
} est_stage;

/* Neighbouring ranks that are alike are one, with the latest times of any. */
typedef struct est_ranks {
    est_stage *at; /* [FR_PLAN_MAX_STAGES] */
    int32_t n;
} est_ranks;

typedef struct est_plan {
    fr_estimator *e;
    const fr_plan *plan; /* of the last call */
    const est_layout *layout;
    int64_t n_micro;      /* of the ranks of the layout */
    int64_t meeting_ps;   /* of all, for norm and loss */
    const est_place *met; /* the place of the meeting; NULL: none yet */
    fr_axis met_axis;     /* of the norm */
    int32_t pp, vpp;
    bool is_estimate; /* about; else at least */
    bool is_split, is_v;
    bool is_executable;
    fr_sharding sharding;
    uint32_t update_id; /* the plan's treatment of gradients, of the list */
    uint32_t update_of; /* ... of variants of this number; 0: not known */
    est_stage stages[FR_PLAN_MAX_STAGES];
    est_pass_times passes[FR_PLAN_MAX_STAGES]; /* of the virtual stages */
    est_ranks ranks[2];                        /* at least, about */
    bool has_pipeline;                         /* all of it is that of `key` */
    bool has_ends;         /* and what its ranks send and set to zero */
    bool has_paths;        /* and the critical paths are known ... */
    bool is_regathered;    /* ... of a plan of which this is so */
    bool is_endless;       /* its passes end after FR_PS_END, */
    bool is_first_endless; /* the passes of `first` do */
    bool is_known_twice;   /* the stages are the same about as at least */
    est_pipeline_key key;
    est_stage first; /* the first rank's memory, and its times at least */
    bool has_first;  /* it is that of first_key */
    est_pipeline_key first_key;
} est_plan;

/* estimate_passes.c: sets ranks[], from the last plan where that is the same
 * up to the end of its passes. */
FR_CHECKED fr_status est_pipeline_find(est_plan *x, fr_err *err);

/* Sets x->first in the same way: without looking at other ranks. */
FR_CHECKED fr_status est_first_find(est_plan *x, fr_err *err);

/* estimate_layout.c: sets n_micro where the shares of the batch are uneven. */
FR_CHECKED fr_status est_share_find(est_plan *x, fr_err *err);

/* estimate_update.c: sets stage->update. */
struct est_bucket *est_buckets_new(int32_t n_layers);
/* Before its first pass a rank sets its gradients to zero. */
FR_CHECKED fr_status est_set_zero(est_plan *x, const est_stage *stage,
                                  int64_t *out_ps, fr_err *err);
FR_CHECKED fr_status est_update_find(est_plan *x, est_stage *stage,
                                     fr_err *err);
/* Is it another one about than at least? */
static inline bool est_update_differs(const est_plan *x, const est_stage *stage)
{
    return x->plan->compressor != FR_COMPRESSOR_NONE ||
           (stage->has_embed && fr_stages_are_tied_apart(x->plan, x->e->model));
}

/* The same, each part the least of any variant; n_first too. */
FR_CHECKED fr_status est_update_least(est_plan *x,
                                      const fr_estimate_variants *variants,
                                      est_stage *stage, fr_err *err);

/* Sets x->stages up to when they begin, and x->passes. */
FR_CHECKED fr_status est_stages_find(est_plan *x, fr_err *err);

/* estimate_paths.c: sets path_ps of one of ranks[0] and ranks[1] each. */
FR_CHECKED fr_status est_paths_find(est_plan *x, fr_err *err);

/* estimate_gathers.c: sets stage->gathers. */
FR_CHECKED fr_status est_gathers_find(est_plan *x, est_stage *stage,
                                      fr_err *err);

/* Sets all that follows from the plan alone. */
void est_plan_set(est_plan *x, const fr_plan *plan);
/* Sets the sharding, which follows from the plan's treatment of gradients. */
static inline void est_sharding_set(est_plan *x)
{
    x->sharding = fr_sharding_of(x->plan, x->is_executable);
    x->update_of = 0;
}

/* Kept; NULL where backward is not split. */
FR_CHECKED fr_status est_occupancy_find(const est_plan *x, int32_t rank,
                                        const est_occupancy **out, fr_err *err);
/* The most at any time; 0 of NULL. */
uint64_t est_occupancy_bytes(const est_occupancy *f, uint64_t kept_bytes,
                             uint64_t pending_bytes, uint64_t gradients_bytes);

/* estimate_memory.c: all that is bytes. */
/* (chunk, micro-batch) pairs of a rank at its first backward, at least. */
uint64_t est_live_pairs(const fr_plan *plan, int64_t n_micro, int32_t rank);
/* Parameters, their gradients and the optimizer's, by what stage->n_dense,
 * n_expert, n_layers and n_last_layer say. */
uint64_t est_states_at_least(const est_plan *x, const est_stage *stage);
/* Weights of ZeRO 3 that are whole in backward. */
uint64_t est_gathered_at_least(const est_plan *x, const est_stage *stage);
/* Libraries' and the driver's on such a device, the first of the layout. */
uint64_t est_overhead(const est_plan *x, const fr_device_type *device);
void est_memory(const est_plan *x, fr_estimate *out);
/* least_bytes and capacity_bytes of x->first alone. */
void est_memory_first(const est_plan *x, fr_estimate *out);

#endif
