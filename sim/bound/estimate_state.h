/*
 * estimate_state.h: what the parts of an estimator share: estimate_layout.c
 * (where ranks sit), estimate_layers.c (what layers cost), estimate_price.c
 * (what one instruction costs) and estimate.c.  Nobody else includes it.
 */
#ifndef FR_SIM_BOUND_ESTIMATE_STATE_H
#define FR_SIM_BOUND_ESTIMATE_STATE_H

#include "core/base/vec.h"
#include "plan/ir/program.h"
#include "plan/outline/sharding.h"
#include "sim/bound/estimate.h"

enum {
    EST_LAYOUT_WORDS = 10,
    EST_LAYERS_WORDS = 7,
    EST_PIPELINE_WORDS = 8 + EST_LAYERS_WORDS
};

static inline int64_t est_most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static inline int64_t est_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* A rank: its device, and where its groups sit. */
typedef struct est_place {
    int64_t node;
    uint32_t type_bit;
    double compute_frac;
    double port_Bps, nic_Bps; /* of the rank, of its node; 0: not told */
    int64_t n_beside; /* ranks of its node that do the same: of its stage */
    uint64_t net_key; /* of these */
    fr_comm_scope scopes[FR_AXIS_N]; /* n_group 0: not asked for */
    uint64_t layer_key; /* of the device and what layers communicate over */
    uint64_t key;       /* of everything */
} est_place;

/* Ranks of one tp, cp and dp, the slowest, one of each pipeline stage. */
typedef struct est_layout {
    est_place *places;  /* [pp] */
    fr_comm_scope *hop; /* [pp] from this stage to the next (the last: to
                           the first) */
} est_layout;

/* What passes take; prefix sums over the layers, [n_layers + 1]. */
typedef struct est_times {
    int64_t *forward_ps;
    int64_t *backward_ps; /* of inputs where the schedule splits it */
    int64_t *weights_ps;  /* the rest */
    int64_t *remake_ps;   /* full recompute, before backward */
    int64_t embed_ps, head_ps, embed_back_ps;
} est_times;

/* What is summed over the layers. */
typedef enum est_kind {
    EST_LEAST, /* to the end of the last call of the compute lane */
    EST_ABOUT, /* to that of all lanes, or what the host needs if it is more */
    EST_HOST,  /* of the host */
    EST_CORES, /* of all processors of the device, on any lane */
    EST_KINDS
} est_kind;

/* Prefix sums over the layers, [n_layers + 1]. */
typedef struct est_layers {
    est_times times[EST_KINDS];
    int64_t least_forward_ps, least_backward_ps, least_weights_ps; /* of any
                                                                layer */
    int64_t most_forward_ps, most_backward_ps; /* with what is made again */
    int64_t most_forward_rest_ps, most_backward_rest_ps; /* of that, in which
                              its processors are free, at most */
    uint64_t *n_dense, *n_expert;                        /* parameters */
    uint64_t *kept_bytes;          /* by one micro-batch from forward on */
    uint64_t *plain_bytes;         /* of a layer that is not made again */
    uint64_t *pending_bytes;       /* split backward: between its parts */
    uint64_t *layer_scratch_bytes; /* no sum: of the backward of the layer
                                      before, beyond what is kept up to it */
    uint64_t n_embed, n_final;     /* parameters of the ends */
    uint64_t scratch_bytes;        /* beyond what is kept */
    uint64_t stream_bytes;         /* between stages */
    fr_instr opt_step, opt_norms, sqsum; /* of any range */
    fr_instr zero;                       /* of any number of gradients */
    bool has_norms, has_zero;
    int64_t n_steps; /* of a replay for one micro-batch of all layers, about */
    /* Of any layer. */
    uint64_t least_kept_bytes, least_scratch_bytes, least_dense, least_expert;
    bool is_exact;   /* EST_LEAST is EST_ABOUT */
    bool is_uniform; /* all layers have the same parameters */
    int64_t n_met;   /* ranks that meet first in a layer's backward, at least */
    uint64_t parameters_key;
    int64_t clip_ps;
} est_layers;

/* What comes before and after the passes of a stage. */
typedef struct est_update {
    int64_t reduce_ps, last_reduce_ps; /* all gradients, the last bucket */
    int64_t gather_ps, long_gather_ps; /* on lane GATHER, the longest */
    int64_t norm_ps, last_norm_ps;     /* squares of the own range */
    int64_t step_ps;                   /* optimizer, gathering afterwards */
    int64_t wire_reduce_ps, wire_gather_ps, wire_long_gather_ps; /* what that
                              keeps the node's NICs busy, at least */
    int64_t core_reduce_ps, core_gather_ps, core_long_gather_ps; /* and the
                              device's processors */
    int64_t layer_gather_ps, layer_wire_ps, layer_core_ps; /* of one layer's
                              parameters, with ZeRO 3 */
    int64_t layer_reduce_ps;                               /* and gradients */
    int64_t layer_copy_ps, layer_zero_ps; /* on the compute lane: to where they
                              are used, and of its gradients */
    int64_t start_gather_ps, first_gather_ps; /* on lane GATHER: up to the end
                              of chunk 0, of the first bucket */
    uint64_t n_first; /* parameters of the first bucket */
} est_update;

/* ZeRO 3: gathers of layers in a step; n 0: not counted. */
typedef struct est_gathers {
    int64_t n;
    /* Of these, of the weights of a use after that of another layer, forward
     * and backward. */
    int64_t n_after_forward, n_after_backward;
} est_gathers;

/* Passes of one micro-batch over the layers of a virtual stage. */
typedef struct est_pass_times {
    int64_t forward_ps, backward_ps, weights_ps;
    int64_t early_ps; /* of the backward, before its gradient is there: the
                         last layer's forward again */
    int32_t n_layers;
} est_pass_times;

/* How often a way through all passes goes through those of a virtual stage,
 * through the late part of its backward alone, over the boundary before it,
 * and from gradients of weights to a pass that meets others. */
typedef struct est_passed {
    uint32_t n_forward, n_backward, n_weights, n_late, n_hops, n_stray;
} est_passed;

/* Of a rank at some time: (chunk, micro-batch) pairs that wait for backward,
 * and for the gradients of weights after it; are gradients of all its layers
 * there, which more are to be added to? */
typedef struct est_fullest_point {
    int64_t n_kept, n_pending;
    bool has_gradients;
} est_fullest_point;
typedef fr_vec(est_fullest_point) est_fullness;

/* From 64-bit keys, mixed, to what they stand for. */
typedef struct est_map {
    uint64_t *keys; /* 0: free */
    int64_t *values;
    size_t n, room;
} est_map;

/* estimate_pool.c: sets of layers, for several threads. */
typedef struct est_pool est_pool;

struct fr_estimator {
    const fr_model *model;
    const fr_job *job;
    const fr_cluster *cluster;
    const fr_cost_model *costs;
    int32_t n_layers; /* with those that predict later tokens */
    est_map layouts, layers, prices, updates, gathers, paths, fullness;
    fr_vec(est_layout *) all_layouts;
    est_pool *pool;
    fr_vec(const est_layers *) all_layers; /* of the pool, asked for here */
    fr_vec(est_update) all_updates;
    fr_vec(est_gathers) all_gathers;
    fr_vec(est_passed) all_passed; /* of each path, pp * vpp */
    fr_vec(est_fullness *) all_fullness;
    /* The last that was asked for: searches ask for it again. */
    int32_t last_layout[EST_LAYOUT_WORDS];
    const est_layout *at_layout; /* NULL: none */
    uint64_t last_layers[EST_LAYERS_WORDS];
    const est_layers *at_layers;
    int64_t n_ranks; /* of the placement at hand; 0: none */
    int32_t *node_of_rank;
    int64_t *ranks;             /* scratch */
    struct est_bucket *buckets; /* scratch [2 n_layers + 2] */
    struct est_plan *at_plan;   /* the last one */
};

FR_CHECKED fr_status est_layout_find(fr_estimator *e, const fr_plan *plan,
                                     const est_layout **out, fr_err *err);
void est_layout_destroy(est_layout *layout);

/* What decides of the layers of a plan, but for words[0], that of the place. */
void est_layers_words(const fr_estimator *e, const fr_plan *plan,
                      uint64_t words[EST_LAYERS_WORDS]);
FR_CHECKED fr_status est_layers_find(fr_estimator *e, const fr_plan *plan,
                                     const est_place *place,
                                     const est_layers **out, fr_err *err);
/* All zero; NULL: no memory.  Destroy takes NULL. */
est_layers *est_layers_create(int32_t n_layers);
void est_layers_destroy(est_layers *layers);
/* For one user; NULL: no memory.  The last who leaves destroys it. */
est_pool *est_pool_create(void);
void est_pool_leave(est_pool *pool);
const est_layers *est_pool_find(est_pool *pool, uint64_t key);
/* Takes over `layers`; *out is that, or what another thread added before. */
FR_CHECKED fr_status est_pool_add(est_pool *pool, uint64_t key,
                                  est_layers *layers, const est_layers **out,
                                  fr_err *err);
/* estimate_sums.c: from times of layers to prefix sums, and what follows from
 * them.  n_few > 0: the first n_few stand for all, which are alike. */
void est_layers_sum(int32_t n_layers, int32_t n_few, est_layers *layers);
/* Is the plan lowered as the runtime runs it? */
bool est_is_executable(const fr_estimator *e, const fr_plan *plan);

/* An instruction, alone. */
typedef struct est_cost {
    int64_t ps;
    int64_t host_ps; /* of its host, before */
    int64_t core_ps; /* of all processors of the device, at least */
} est_cost;

/* estimate_price.c. */
FR_CHECKED fr_status est_price(fr_estimator *e, const fr_plan *plan,
                               const fr_instr *instr, fr_lane lane,
                               const est_place *place, est_cost *out,
                               fr_err *err);
/* What the members of a group of n wait for the slowest of them, expected, in
 * each second that they compute (jitter.h). */
FR_CHECKED fr_status est_jitter(fr_estimator *e, int64_t n, double *out,
                                fr_err *err);

/* What a rank sends to the next stage.  Kept. */
FR_CHECKED fr_status est_send(fr_estimator *e, const fr_comm_scope *hop,
                              const est_place *place, fr_dtype dtype,
                              uint64_t n, int64_t *out_ps, fr_err *err);

/* 0 for no elements and groups of one.  Kept. */
FR_CHECKED fr_status est_collective(fr_estimator *e, const fr_plan *plan,
                                    const est_place *place, const fr_move *move,
                                    int64_t *out_ps, fr_err *err);
/* How long it keeps the NICs of the node busy, with those of all ranks of the
 * same stage: whatever else happens, a step is no shorter than their sum. */
FR_CHECKED fr_status est_wire(fr_estimator *e, const fr_plan *plan,
                              const est_place *place, const fr_move *move,
                              int64_t *out_ps, fr_err *err);
/* What it takes of the device's processors. */
FR_CHECKED fr_status est_core(fr_estimator *e, const fr_plan *plan,
                              const est_place *place, const fr_move *move,
                              int64_t *out_ps, fr_err *err);
/* An instruction over a range, over n parameters.  Kept. */
FR_CHECKED fr_status est_over_range(fr_estimator *e, const fr_plan *plan,
                                    const est_place *place,
                                    const fr_instr *instr, uint64_t n,
                                    int64_t *out_ps, fr_err *err);

/* A pipeline rank: its passes of one micro-batch over all chunks. */
typedef struct est_stage {
    const est_place *place;
    const est_layers *layers;
    const est_layers *bare; /* where some layers are not made again: those */
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
    const est_fullness *fullness, *last_fullness;
    uint64_t scratch_bytes;         /* of the backward of the last layer */
    int32_t first_layer, end_layer; /* of chunk 0 */
    int32_t n_layers;
    int64_t early_ps; /* of the first backward, before its gradient is there:
                         the last layer's forward again */
    bool has_embed, has_head;
    int32_t rank, n_all; /* of the pipeline; layers of the model */
    int64_t zero_ps;     /* gradients set to zero before the first pass */
    int64_t hop_ps;      /* to the next rank */
    est_update update;
    est_gathers gathers;
    uint32_t gathers_of;     /* what else they are of; 0: not known yet */
    int64_t begin_ps;        /* of the first forward */
    int64_t back_ps, end_ps; /* of the last backward, of all passes */
    int64_t way_ps; /* of all passes, by the longest way; 0: not known */
    int64_t crowded_ps, issued_ps; /* of the last backward, because of the
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
    int64_t n_micro;
    int64_t meeting_ps;   /* of all, for norm and loss */
    const est_place *met; /* where that is; NULL: nowhere yet */
    bool is_met_spread;
    int32_t pp, vpp;
    bool is_likely; /* about; else at least */
    bool is_split, is_v;
    bool is_executable;
    fr_sharding sharding;
    est_stage stages[FR_PLAN_MAX_STAGES];
    est_pass_times passes[FR_PLAN_MAX_STAGES]; /* of the virtual stages */
    est_ranks ranks[2];                        /* at least, about */
    bool has_pipeline;   /* all of it is that of `words` */
    bool has_ways;       /* and the longest ways are known */
    bool is_known_twice; /* the stages are the same about as at least */
    uint64_t words[EST_PIPELINE_WORDS];
    est_stage first; /* what the first rank holds, and its times at least */
    uint64_t first_besides_bytes; /* est_besides() of it */
    bool has_first;               /* it is that of first_words */
    uint64_t first_words[EST_PIPELINE_WORDS];
} est_plan;

/* The first layer of virtual stage i; all of them where there is none. */
int32_t est_first_layer(const est_plan *x, int32_t i);
int32_t est_first_of(const fr_model *model, const fr_plan *plan, int32_t i);

/* estimate_passes.c: sets ranks[], from the last plan where that is the same
 * up to the end of its passes. */
FR_CHECKED fr_status est_pipeline_find(est_plan *x, fr_err *err);

/* Sets x->first in the same way: without looking at other ranks. */
FR_CHECKED fr_status est_first_find(est_plan *x, fr_err *err);

/* estimate_update.c: sets stage->update. */
struct est_bucket *est_buckets_new(int32_t n_layers);
/* Before its first pass a rank sets its gradients to zero. */
FR_CHECKED fr_status est_set_zero(est_plan *x, const est_stage *stage,
                                  int64_t *out_ps, fr_err *err);
FR_CHECKED fr_status est_update_find(est_plan *x, est_stage *stage,
                                     fr_err *err);

/* The same, each part the least of any variant; n_first too. */
FR_CHECKED fr_status est_update_least(est_plan *x,
                                      const fr_estimate_variants *variants,
                                      est_stage *stage, fr_err *err);

/* Sets x->stages up to when they begin, and x->passes. */
FR_CHECKED fr_status est_stages_find(est_plan *x, fr_err *err);

/* estimate_paths.c: sets way_ps of one of ranks[0] and ranks[1] each. */
FR_CHECKED fr_status est_ways_find(est_plan *x, fr_err *err);

/* estimate_gathers.c: sets stage->gathers. */
FR_CHECKED fr_status est_gathers_find(est_plan *x, est_stage *stage,
                                      fr_err *err);

/* Are a stage's update and memory those of the one before? */
bool est_is_alike(const est_stage *a, const est_stage *b);

/* Sets all that follows from the plan alone. */
void est_plan_set(est_plan *x, const fr_plan *plan);

/* Which pass the time of a segment belongs to. */
typedef enum est_pass {
    EST_FORWARD,
    EST_BACKWARD,
    EST_WEIGHTS,
    EST_REMAKE,
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
/* Kept; NULL where backward is not split. */
FR_CHECKED fr_status est_fullness_find(const est_plan *x, int32_t rank,
                                       const est_fullness **out, fr_err *err);
/* The most at any time; 0 of NULL. */
uint64_t est_fullness_bytes(const est_fullness *f, uint64_t kept_bytes,
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
uint64_t est_besides(const est_plan *x, const fr_device_type *device);
void est_memory(const est_plan *x, fr_estimate *out);
/* least_bytes and capacity_bytes of x->first alone. */
void est_memory_first(const est_plan *x, fr_estimate *out);

/* The value of a key; NULL: none. */
const int64_t *est_map_find(const est_map *map, uint64_t key);
FR_CHECKED fr_status est_map_add(est_map *map, uint64_t key, int64_t value,
                                 fr_err *err);
void est_map_release(est_map *map);

#endif
