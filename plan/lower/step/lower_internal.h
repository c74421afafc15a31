/*
 * lower_internal.h: what the files lower*.c share; nobody else includes it.
 *
 *   lower_shape.c    sizes on one rank, kinds of layers, their parameters
 *   lower_tensors.c  parameter tensors: names, shapes, shards
 *   lower_layout.c   the flat parameter list, buckets
 *   lower_emit.c     segments and instructions, collective algorithms
 *   lower_saved.c    what a layer's forward keeps
 *   lower_block.c    products, norms and sums that layers are made of
 *   lower_attention.c, lower_mlp.c, lower_moe.c: their forward and backward
 *   lower_layer.c    a layer, forward and backward
 *   lower_split.c    a backward in two parts
 *   lower_kernels.c  what frameworks' kernels move besides
 *   lower_list.c     an entry of a list of layers
 *   lower_ends.c     embedding, head and loss
 *   lower_encoder.c  those of encoders
 *   lower_gather.c   ZeRO 2 and 3: what is whole only while it is used
 *   lower_reduce.c   gradient reduction, compressed or not
 *   lower_update.c   norm, clip, optimizer, loss
 *   lower_pipeline.c the order of receives
 *   lower_finish.c   what follows complete gradients
 *   lower_offload.c  what waits in the host's memory
 *   lower_calls.c    the calls of one layer
 *   lower_pass.c     a layer's pass in several calls
 *   lower_ring.c     the same where keys go round a ring
 *   lower_stage.c    the calls of one pipeline rank
 *   lower_transfer.c sends and receives between stages
 *   lower.c          the program
 */
#ifndef FR_PLAN_LOWER_STEP_LOWER_INTERNAL_H
#define FR_PLAN_LOWER_STEP_LOWER_INTERNAL_H

#include "core/base/vec.h"
#include "plan/codec/compressor.h"
#include "plan/ir/builder.h"
#include "plan/lower/step/lower.h"
#include "plan/schedule/schedule.h"

/* Sizes of one rank.  rows: tokens of a micro-batch. */
typedef struct lower_shape {
    int64_t batch;
    int64_t seq;         /* of this rank: a cp-th of the job's */
    int64_t rows;        /* batch x seq */
    int64_t stream_rows; /* of the residual stream: rows / tp with sequence
                            parallelism, else rows */
    int64_t hidden, q_heads, kv_heads, head_dim;
    int64_t v_dim; /* of a head: head_dim but in latent attention */
    int64_t attn;  /* q_heads * v_dim: what the output projection gets */
    int64_t qkv;   /* q_heads * head_dim + kv_heads * (head_dim + v_dim) */
    int64_t ffn;   /* width after the activation */
    int64_t fc1;   /* width before it: 2 ffn if gated */
    int64_t vocab, vocab_local;
    uint64_t stream_bytes; /* of stream_rows x hidden */
    /* Experts. */
    int64_t experts_local;          /* that this rank holds (a part of) */
    int64_t expert_ffn, expert_fc1; /* widths of its part of one */
    int64_t shared_ffn, shared_fc1; /* of the expert that all tokens see */
    int64_t routed_rows;            /* stream rows x experts per token */
    int64_t expert_rows;            /* that come to its experts */
} lower_shape;

#define LOWER_ABSENT UINT64_MAX
#define LOWER_NO_BUCKET UINT32_MAX

enum { LOWER_TENSOR_ALIGN = 16 }; /* elements */

/* A matrix and its bias. */
typedef struct lower_linear {
    uint64_t w, b;
} lower_linear;

/*
 * Offsets within a layer's parameters, in elements; LOWER_ABSENT: none.  The
 * parameters of experts stand in [n_dense, n): other ranks share them, so they
 * are reduced and sharded apart (axis EDP).  Where n_dense < n both parts end
 * at lower_part_padded().
 */
typedef struct lower_layer_layout {
    uint64_t ln1_w, ln1_b, ln2_w, ln2_b;
    uint64_t q_norm, k_norm; /* of heads; in latent attention of the latents */
    uint64_t mtp_norm[2], mtp_last[2]; /* a later token's: both inputs, end */
    uint64_t q_down, kv_down;          /* latent attention, no qkv */
    uint64_t router, shared_gate;
    uint64_t mtp_join; /* 2 hidden -> hidden */
    uint64_t n_norm;   /* up to here whole on each TP rank, which sees its own
                          rows with sequence parallelism */
    uint64_t qkv_w, qkv_b, out_w, out_b, fc1_w, fc1_b, fc2_w, fc2_b;
    uint64_t q_up, kv_up; /* latent attention, no qkv */
    lower_linear shared_fc1, shared_fc2;
    lower_linear expert_fc1, expert_fc2; /* all local experts, stacked */
    uint64_t n_dense, n;
} lower_layer_layout;

/*
 * Where forward keeps an operand of a product: `wide` in the storage dtype,
 * `low` in that of the products where it has less than 16 bits.  Offsets in
 * bytes; LOWER_ABSENT: not kept.
 */
typedef struct lower_kept {
    uint64_t wide, low;
} lower_kept;

/* Offsets of what a layer's forward keeps, in bytes. */
typedef struct lower_saved {
    lower_kept n1, o, n2, act;
    uint64_t stats1, qkv, kept, mid, stats2, fc1;
    uint64_t fc1_half;     /* no fc1: one of its two projections */
    uint64_t o_by_head;    /* context parallel, all-to-all: o of its heads */
    uint64_t mask1, mask2; /* of dropout */
    uint64_t normed, normed_stats; /* q and k after their norm */
    uint64_t last, last_stats;     /* post-norm: sum before the last norm */
    /* Latent attention: the latents before and after their norms. */
    uint64_t latent, latent_stats;
    lower_kept q_latent, kv_latent;
    /* Experts. */
    uint64_t scores, chosen, expert_fc1, shared_fc1;
    lower_kept expert_in, expert_act, shared_act;
    /* A later token's: both normed inputs, side by side. */
    lower_kept joined;
    uint64_t join_stats, join_out;
    uint64_t n_bytes;
} lower_saved;

/* Segments of a layer whose keys go round a ring. */
typedef struct lower_ring_calls {
    uint32_t i_begin, i_own, i_other, i_end; /* i_other: each other rank's */
    uint32_t i_shift, i_keys, i_home;
} lower_ring_calls;

/* Segments of one layer. */
typedef struct lower_layer_calls {
    uint32_t i_fwd, i_bwd, i_remake, i_norm_reduce, i_cast;
    uint32_t i_input, i_weights; /* backward in two parts; 0: whole */
    lower_ring_calls ring_fwd, ring_remake, ring_bwd;
} lower_layer_calls;

enum { LOWER_STEPS = 160, LOWER_PIECES = 128, LOWER_NO_PIECE = 255 };

/* A call of a pass; pieces that it reads and makes. */
typedef struct lower_step {
    fr_lane lane;
    uint32_t i_segment;
    uint8_t in, out;
    bool is_added;                        /* to the piece that it makes */
    bool has_saved, has_carry, has_input; /* on other lanes: read; EP: both */
} lower_step;

/* A layer's pass in several calls (lower_pass.c). */
typedef struct lower_pass {
    char name[24];
    uint16_t n_steps;
    uint8_t n_pieces;
    lower_step steps[LOWER_STEPS];
    uint64_t piece_bytes[LOWER_PIECES];
    uint64_t carry_bytes;
} lower_pass;

/*
 * A kind of layer: its parameters, what it keeps, its segments.  Transformers
 * have a dense one, one with experts, one that predicts a later token; a list
 * of layers has one for each entry.
 */
typedef struct lower_kind {
    bool is_moe, is_mtp;
    const fr_model_layer *entry;  /* of a list of layers; else NULL */
    uint64_t in_bytes, out_bytes; /* of a micro-batch */
    lower_layer_layout layout;
    lower_saved saved;
    uint64_t low_bytes; /* of its weights in the dtype of the products, cast
                           once per step (segment i_cast, space LOW) */
    lower_layer_calls calls;
    /* Where it is cut, else no steps; of a ring before and after it. */
    lower_pass forward, remake, backward, backward_end;
    uint64_t split_bytes; /* that the second part of backward reads of the
                             first, and ... */
    uint64_t late_bytes;  /* ... of forward, not among the saved */
    bool is_input_late, is_saved_late; /* does it read these too? */
} lower_kind;

typedef enum lower_unit_kind {
    LOWER_UNIT_TIED,  /* wte of first and last stage */
    LOWER_UNIT_EMBED, /* wte and wpe, or wpe alone */
    LOWER_UNIT_LAYER,
    LOWER_UNIT_FINAL /* last norm and head */
} lower_unit_kind;

/* Parameters whose gradients are complete at the same time. */
typedef struct lower_unit {
    lower_unit_kind kind;
    bool is_expert;    /* of a layer: its experts, not the rest */
    int32_t layer;     /* global */
    uint64_t first, n; /* elements in the flat list, padding included */
    uint64_t n_norm;   /* leading elements that are norms */
    uint32_t i_bucket;
    uint32_t i_set;        /* ZeRO 2, 3 */
    uint32_t weight, grad; /* blocks; ZeRO 3: the own shard; ZeRO 2, 3: no
                              gradients, the set has them */
} lower_unit;

/* Parameters that are reduced and updated together; n divides by the ranks
 * that hold them.  ZeRO 2, 3: each unit is a bucket. */
typedef struct lower_bucket {
    uint64_t first, n;
    uint32_t first_unit, n_units, n_pending;
    bool is_tied, is_expert;
    uint32_t opt, error, wire; /* blocks */
} lower_bucket;

/*
 * ZeRO 2, 3: units that one call uses together, so that their whole gradients
 * (ZeRO 3: and whole weights) are one block: a layer, the embedding, or last
 * norm and head.  The units are neighbours in the flat list.
 */
typedef struct lower_set {
    uint32_t first_unit, n_units;
    bool is_tied;     /* waits for the other end of the pipeline */
    uint64_t n;       /* elements */
    uint64_t n_shard; /* elements of the own shards */
    uint32_t wire;    /* gathered parameters on their way to ... */
    uint32_t weight;  /* ... where they are used, while they are there */
    uint32_t grad;    /* whole gradients while they are there */
    uint32_t shard;   /* own shard of the gradients, once reduced */
} lower_set;

/* ZeRO 3: one use of a set's weights, in the order of the calls. */
typedef struct lower_use {
    uint32_t i_set;
    uint32_t next; /* use of the same set; UINT32_MAX: none */
    bool is_backward;
} lower_use;

/* Where the tensors outside layers begin in a rank program's flat list. */
typedef struct lower_encoder_ends {
    uint64_t types, norm_w, norm_b, patch, patch_b, first_token;
    uint64_t pooler, pooler_b, dense, dense_b, dense_norm_w, dense_norm_b;
    uint64_t vocab_b, pair, pair_b, labels, labels_b;
} lower_encoder_ends;

typedef struct lower_ends {
    uint64_t wte, wpe, norm_w, norm_b, head;
    lower_encoder_ends encoder;
} lower_ends;

/* Something that a pipeline rank receives. */
typedef struct lower_arrival {
    int64_t time;       /* virtual, when it was made */
    size_t before_task; /* of the receiver: place of the receive */
    int32_t boundary;   /* before this global stage */
    int32_t chunk;      /* of the receiver */
    int64_t micro_batch;
    bool is_gradient;
} lower_arrival;

/* A segment over sets of the same shape, made once for all of them. */
typedef struct lower_known {
    int what;
    uint64_t key[3];
    uint32_t i_segment;
} lower_known;

/* A piece of a segment's scratch, in bytes. */
typedef struct lower_temp_range {
    uint64_t first, n;
} lower_temp_range;

typedef struct lower_context {
    const fr_model *model;
    const fr_job *job;
    const fr_plan *plan;
    const fr_placement *placement;
    const fr_schedule *schedule;
    fr_program *program;
    fr_builder *builder; /* of the rank program at work */
    lower_shape shape;
    lower_kind *kinds;
    uint32_t n_kinds;
    bool is_executable;  /* by the CPU runtime */
    bool is_low;         /* products have less than 16 bits */
    bool is_fused;       /* attention never writes its probabilities */
    bool is_core_remade; /* attention's core runs again in backward */
    int64_t n_micro;
    size_t n_tasks;           /* of each pipeline rank */
    fr_task *tasks;           /* [pp][n_tasks] */
    lower_arrival *arrivals;  /* [pp][n_tasks], n_arrivals of them */
    size_t *n_arrivals;       /* [pp] */
    bool is_local[FR_AXIS_N]; /* each group of the axis on one node */
    /* Segments under construction. */
    fr_vec(fr_instr) instrs;
    fr_vec(fr_segment) segments;
    uint64_t temp_used;
    lower_pass *pass;               /* that is being cut; else NULL */
    bool is_temp_kept;              /* no scratch is used twice ... */
    fr_vec(lower_temp_range) temps; /* ... and each piece is noted */
    fr_instr spill; /* written in place of an instruction without memory */
    bool is_out_of_memory;
    /* Segments that all rank programs share. */
    uint32_t i_load;
    fr_vec(lower_known) known;
} lower_context;

/* One pipeline rank under construction. */
typedef struct lower_class {
    lower_context *context;
    fr_rank_program *rank_program;
    fr_builder *builder;
    int32_t stage;          /* pipeline coordinate: a rank, that is */
    bool is_first, is_last; /* holds the first, the last stage */
    fr_vec(fr_tensor) tensors;
    fr_vec(lower_unit) units;     /* in the order of the flat list */
    fr_vec(lower_bucket) buckets; /* in the order of their completion */
    lower_ends ends;
    int32_t *chunk_layers; /* [vpp] number of layers */
    int32_t *chunk_first;  /* [vpp] first layer, global */
    uint32_t *chunk_slot;  /* [vpp] first slot in `inputs` */
    uint32_t *layer_unit;  /* [n_slots] the layer's (first) unit */
    uint32_t n_slots;      /* layers + vpp */
    uint32_t *inputs;      /* [n_micro][n_slots] blocks */
    uint32_t *saved;       /* [n_micro][n_slots] blocks */
    uint32_t *low;         /* [n_slots] blocks of weights that were cast */
    uint32_t *tokens;      /* [n_micro] blocks */
    uint32_t *gradients;   /* [n_micro][vpp] received blocks */
    uint32_t *split;       /* [n_micro][n_slots] blocks, between both parts of
                              backward */
    uint32_t *late;        /* [n_micro][n_slots] blocks, from forward on */
    uint32_t sent[2][2];   /* blocks that this and the last task sent:
                              activation, gradient */
    uint32_t in_flight[2]; /* block sent last: activation, gradient */
    uint32_t awaited;      /* the next compute call waits for its send */
    int64_t n_loaded;      /* micro-batches whose tokens are there */
    uint32_t step;         /* block */
    uint32_t main_grads;   /* block: float32 copies at the step, or none */
    uint32_t i_head, i_embed_fwd, i_embed_bwd; /* segments */
    uint32_t i_head_again;                   /* onto a gradient that is there */
    uint32_t travelling[FR_COMPRESS_STAGES]; /* buckets, by the stage whose
                                                payloads are on their way */
    uint32_t *transfers; /* [boundary][is_gradient][is_send] segments */
    /* ZeRO 2, 3 */
    fr_vec(lower_set) sets;
    fr_vec(lower_use) uses;
    uint32_t i_embed_set, i_head_set; /* UINT32_MAX: none */
    uint32_t i_use, n_gathered;       /* uses that are over, provided for */
    uint32_t gate;                    /* block that the last use wrote */
    uint32_t left_grad, left_kept[2]; /* blocks on their way out */
    uint32_t n_offloadable;           /* layers x micro-batches so far */
    bool *is_offloaded;               /* [n_micro][n_slots] */
} lower_class;

/* lower_shape.c */
FR_CHECKED fr_status lower_shape_init(lower_context *context, fr_err *err);
/* Of a global layer; those that predict later tokens follow the model's. */
lower_kind *lower_kind_of(const lower_context *context, int32_t layer);
const lower_layer_layout *lower_layout_of(const lower_context *context,
                                          int32_t layer);
lower_layer_calls lower_calls_of(const lower_context *context, int32_t layer);
/* Bytes that the layer's forward keeps. */
uint64_t lower_saved_bytes(const lower_context *context, int32_t layer);
/* Bytes of a micro-batch's activation before a global layer. */
uint64_t lower_stream_bytes(const lower_context *context, int32_t layer);
/* The first layer of a global stage. */
int32_t lower_first_layer(const lower_context *context, int32_t stage);
/* Elements of a tensor in the flat list. */
uint64_t lower_padded(uint64_t n);
/* Takes the place of a tensor in a unit; LOWER_ABSENT if it is not there. */
uint64_t lower_place(uint64_t *used, bool is_there, int64_t rows, int64_t cols);

/* lower_tensors.c; false: out of memory */
bool lower_push_layer(lower_class *lc, const lower_unit *unit);
/* wte, wpe, last norm and head, as far as the unit has them. */
bool lower_push_ends(lower_class *lc, const lower_unit *unit);

/* lower_layout.c */
/* Is the tied matrix held by two pipeline ranks? */
bool lower_is_tied_apart(const lower_context *context);
FR_CHECKED fr_status lower_layout_class(lower_class *lc, fr_err *err);
/* Who sums a gradient, who shares its optimizer state, and how many do. */
fr_axis lower_reduce_axis(const lower_context *context, bool is_expert);
fr_axis lower_shard_axis(const lower_context *context, bool is_expert);
uint64_t lower_n_shards(const lower_context *context, bool is_expert);
/* Elements of a part of a layer, such that each of its ranks gets a whole
 * number of cache lines. */
uint64_t lower_part_padded(const lower_context *context, bool is_expert,
                           uint64_t n);

/* lower_emit.c */
uint32_t lower_segment_begin(lower_context *context, fr_lane lane,
                             const char *format, ...) FR_PRINTF(3, 4);
/* Gives all segments from number `first` on their role. */
void lower_segments_mark(lower_context *context, size_t first,
                         fr_segment_role role);
/* Never NULL; op and dtype are set, the rest is zero. */
fr_instr *lower_emit(lower_context *context, fr_op op);
fr_ref lower_ref(fr_space space, uint64_t offset_bytes);
/* Bytes of an element of the flat list: WEIGHT has the storage dtype of the
 * plan, GRAD its grad_dtype. */
uint64_t lower_element_bytes(const lower_context *context, fr_space space);
/* WEIGHT or GRAD at an element; absent where `first` is LOWER_ABSENT. */
fr_ref lower_parameter(const lower_context *context, fr_space space,
                       uint64_t first);
/* Scratch of the segment; `mark` takes back what was made after it. */
fr_ref lower_temp(lower_context *context, uint64_t n_bytes);
uint64_t lower_temp_mark(const lower_context *context);
void lower_temp_reset(lower_context *context, uint64_t mark);
int64_t lower_axis_size(const fr_plan *plan, fr_axis axis);
/* A collective of n elements in place (src == dst). */
fr_instr *lower_collective(lower_context *context, fr_op op, fr_axis axis,
                           fr_dtype dtype, uint64_t n);
FR_CHECKED fr_status lower_check_collective(const lower_context *context,
                                            fr_err *err);
void lower_find_local_axes(lower_context *context);

/* lower_layer.c */
void lower_layer_segments(lower_context *context);

/* lower_split.c; before and after a layer's backward is written */
void lower_keep_temps(lower_context *context);
void lower_split_backward(lower_context *context, lower_kind *kind,
                          const char *name);
/* A layer of a task, as its calls see it. */
typedef struct lower_layer_at {
    const fr_task *task;
    int32_t i, layer; /* in the chunk, global */
    uint32_t input;   /* block */
} lower_layer_at;

/* lower_calls.c */
/* The (first) unit of layer i of the task's chunk. */
const lower_unit *lower_layer_unit(const lower_class *lc, const fr_task *task,
                                   int32_t i);
/* The unit of the layer's experts; NULL: none. */
const lower_unit *lower_expert_unit(const lower_class *lc,
                                    const lower_unit *unit);
void lower_layer_forward(lower_class *lc, const fr_task *task, int32_t i);
void lower_layer_backward(lower_class *lc, const fr_task *task, int32_t i,
                          uint32_t gradient);
/* The second part of a backward that is cut in two. */
void lower_layer_weights(lower_class *lc, const fr_task *task, int32_t i);
/* A call that reads the layer's weights; their gradients. */
void lower_add_layer_call(lower_class *lc, const lower_layer_at *at,
                          uint32_t i_segment);
void lower_bind_layer_grads(lower_class *lc, const lower_layer_at *at);

/* lower_pass.c */
/* The blocks of a pass; FR_BLOCK_NONE: forward has no gradient, a layer that
 * is made again no output; no carry: one of the pass's own. */
typedef struct lower_pass_blocks {
    uint32_t saved, gradient, out, carry;
    bool is_carry_new;
} lower_pass_blocks;

void lower_pass_calls(lower_class *lc, const lower_layer_at *at,
                      const lower_pass *pass, lower_pass_blocks blocks);

/* lower_ring.c */
bool lower_is_ring(const lower_context *context);
void lower_ring_forward(lower_class *lc, const lower_layer_at *at,
                        const lower_ring_calls *calls, uint32_t saved,
                        uint32_t out);
void lower_ring_backward(lower_class *lc, const lower_layer_at *at,
                         uint32_t saved, uint32_t gradient);

/* lower_ends.c */
void lower_ends_segments(lower_class *lc);

/* lower_gather.c; "set" functions only where lower_is_by_unit() */
bool lower_is_by_unit(const lower_context *context);
bool lower_is_gathered(const lower_context *context); /* ZeRO 3 */
FR_CHECKED fr_status lower_sets_init(lower_class *lc, fr_err *err);
FR_CHECKED fr_status lower_uses_init(lower_class *lc, fr_err *err);
/* Around the calls that use the weights of the next set in `uses`: gathers it
 * and those to come; lets go what is not used soon. */
void lower_before_use(lower_class *lc);
void lower_after_use(lower_class *lc, uint32_t gate);
void lower_bind_set(lower_class *lc, fr_space space, uint32_t i_set,
                    char access);
/* Before a call that adds to the gradients of a set: they are there, zeroed if
 * they are new. */
void lower_open_grads(lower_class *lc, uint32_t i_set);
/* They are complete: summed over the ranks that have them too, each of which
 * keeps its shard. */
void lower_reduce_set(lower_class *lc, uint32_t i_set);
/* Own gradients or weights of a bucket, whatever ZeRO has left of them: the
 * operand, and the access of the last call. */
fr_ref lower_own(const lower_class *lc, const lower_bucket *bucket,
                 fr_space space);
void lower_bind_own(lower_class *lc, const lower_bucket *bucket, fr_space space,
                    char access);

/* lower_encoder.c */
void lower_place_encoder_ends(lower_class *lc, bool is_final, uint64_t *used);
void lower_rebase_encoder_ends(lower_class *lc, bool is_final, uint64_t first);
void lower_encoder_embed(lower_class *lc);
void lower_encoder_head(lower_class *lc);
/* lower_list.c */
void lower_list_ends(lower_class *lc);

/* lower_reduce.c */
fr_lane lower_reduce_lane(const lower_context *context);
void lower_reduce_tied(lower_class *lc);
void lower_reduce_bucket(lower_class *lc, uint32_t i_bucket);
void lower_reduce_finish(lower_class *lc);

/* lower_update.c */
void lower_zero(lower_class *lc);
/* ZeRO 1, 2 with overlap: parameters of the step before, ahead of forward. */
void lower_gather_early(lower_class *lc);
void lower_update(lower_class *lc);

/* lower_finish.c; after a task has made the gradients of a layer, or of the
 * embedding or the head; after all tasks */
void lower_finish_layer(lower_class *lc, const fr_task *task, int32_t i);
void lower_finish_ends(lower_class *lc, const fr_task *task, bool is_head);
void lower_finish_reductions(lower_class *lc);

/* lower_offload.c */
void lower_offload_layer(lower_class *lc, const fr_task *task, int32_t i);
void lower_fetch_layer(lower_class *lc, const fr_task *task, int32_t i);
void lower_offload_grads(lower_class *lc, uint32_t i_bucket);

/* lower_transfer.c */
void lower_send(lower_class *lc, int32_t boundary, bool is_gradient,
                const fr_task *task, uint32_t block);
void lower_receive(lower_class *lc, size_t i_task, size_t *i_arrival);

/* A gradient is worked on in place: room for the largest of the chunk. */
uint64_t lower_gradient_bytes(const lower_class *lc, int32_t chunk);

/* lower_pipeline.c */
/* With is_ep_overlap: a backward and the forward that comes after it. */
bool lower_is_paired(const lower_context *context, const fr_task *task,
                     const fr_task *next);
FR_CHECKED fr_status lower_pipeline(lower_context *context, fr_err *err);

/* lower_stage.c */
FR_CHECKED fr_status lower_stage(lower_class *lc, fr_err *err);
void lower_bind_flat(lower_class *lc, fr_space space, const lower_bucket *only,
                     char access);
uint32_t lower_add_activation(lower_class *lc, uint64_t n_bytes);
/* Place of a layer (or what follows the last one) in inputs and saved. */
size_t lower_slot(const lower_class *lc, const fr_task *task, int32_t layer);
uint32_t *lower_gradient_of(const lower_class *lc, const fr_task *task);
bool lower_is_remade(const lower_context *context, int32_t i);
/* fr_placement.by_framework: a prediction of what a GPU framework does. */
bool lower_is_by_framework(const lower_context *context);
void lower_add_call(lower_class *lc, uint32_t i_segment, int32_t layer,
                    int64_t micro_batch, int32_t chunk);

#endif
