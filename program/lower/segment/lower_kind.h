/*
 * lower_kind.h: the kinds of layers: where their parameters lie, what their
 * forward keeps, and the segments that were written for them.
 */
#ifndef FR_PROGRAM_LOWER_SEGMENT_LOWER_KIND_H
#define FR_PROGRAM_LOWER_SEGMENT_LOWER_KIND_H

#include "program/lower/segment/lower_pass.h"
#include "program/lower/segment/lower_shape.h"
#include "spec/model/mixers.h"

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
    uint64_t out1_w, out1_b, out2_w, out2_b; /* norms of branches' outputs */
    uint64_t q_norm, k_norm; /* of heads; in latent attention of the latents */
    uint64_t mtp_norm[2], mtp_last[2]; /* a later token's: both inputs, end */
    uint64_t q_down, kv_down;          /* latent attention, no qkv */
    uint64_t router, router_bias, router_offset, shared_gate;
    uint64_t mix_whole, mix_split; /* of a mixer that is no attention */
    uint64_t n_mix_whole;
    uint64_t mix_in, mix_out, sinks;
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
 * Offsets, in bytes, at which forward keeps an operand of a product: `wide` in
 * the storage dtype, `low` in the dtype of the products if that has less than
 * 16 bits.  LOWER_ABSENT: not kept.
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
    uint64_t raw_heads, raw_stats; /* q and k before their norm */
    uint64_t last;                 /* post-norm: sum before the last norm */
    uint64_t branch[2];            /* outputs before their norms, and ... */
    uint64_t branch_stats[2];      /* ... what those leave */
    uint64_t mix_in, mix_core;     /* of a mixer that is no attention */
    lower_kept mix_out;
    /* Latent attention: the latents before and after their norms. */
    uint64_t latent, latent_stats;
    lower_kept q_latent, kv_latent;
    /* Experts. */
    uint64_t scores, chosen, expert_fc1, shared_fc1;
    uint64_t counts, row_weights; /* of rows in the order of the experts */
    uint64_t loads;               /* of experts, to be balanced */
    lower_kept expert_in, expert_act, shared_act;
    /* A later token's: both normed inputs, side by side. */
    lower_kept joined;
    uint64_t join_stats, join_out;
    uint64_t later_out, later_stats; /* before and of its last norm */
    uint64_t n_bytes;
} lower_saved;

/* Segments of a layer whose keys go round a ring. */
typedef struct lower_ring_segments {
    uint32_t i_begin, i_keys, i_own, i_end;
    uint32_t i_other; /* segments with the keys of each other rank follow it */
    /* Segments that send to the next rank of the ring: keys; in backward keys
     * with their gradients, then the gradients alone, which at the end go to
     * their owners. */
    uint32_t i_shift, i_shift_both, i_shift_last, i_home;
    uint32_t i_own_gradient, i_add; /* the step's gradients of keys */
    uint64_t carry_bytes; /* that backward's calls hand to each other */
    uint64_t piece_bytes; /* that go round */
} lower_ring_segments;

/* Segments of one layer. */
typedef struct lower_layer_segments {
    uint32_t i_fwd, i_bwd, i_recompute, i_norm_reduce, i_cast;
    uint32_t i_input, i_weights; /* backward in two parts; 0: whole */
    lower_ring_segments ring_fwd, ring_recompute, ring_bwd;
} lower_layer_segments;

/*
 * A kind of layer: its parameters, what it keeps, its segments.  Transformers
 * have a dense one, one with experts, one that predicts a later token; a list
 * of layers has one for each entry.
 */
struct lower_kind {
    bool is_moe, is_mtp, has_mlp;
    char mixer_letter, mlp_letter; /* of a model whose layers are marked */
    const fr_mixer *mixer;
    fr_mixer_sizes mix;           /* of one tensor parallel rank */
    int64_t window;               /* keys that attention sees; 0: all */
    const fr_model_layer *entry;  /* of a list of layers; else NULL */
    int64_t end_layer;            /* after the last that the entry stands for */
    uint64_t in_bytes, out_bytes; /* of a micro-batch */
    lower_layer_layout layout;
    lower_saved saved;
    uint64_t low_bytes; /* of its weights in the dtype of the products, cast
                           once per step (segment i_cast, space LOW) */
    lower_layer_segments segments;
    /* The calls of a layer that is cut; they are empty for other layers.  In a
     * ring they are the calls before and after it. */
    lower_pass forward, recompute, backward, backward_end;
    uint64_t split_bytes; /* that the second part of backward reads of the
                             first, and ... */
    uint64_t late_bytes;  /* ... of forward, not among the saved */
    bool is_input_late, is_saved_late; /* does it read these too? */
};

/* Do norms of the model have biases?  Are q and k normed, with weights? */
bool lower_has_norm_bias(const fr_model *model);
bool lower_has_head_norms(const fr_model *model);

/* Fills the context's kinds, which the caller frees.  After
 * lower_shape_init(). */
FR_CHECKED fr_status lower_kinds_init(lower_context *context, fr_err *err);
/* Returns the kind of a global layer.  Layers that predict later tokens follow
 * the layers of the model. */
lower_kind *lower_kind_of(const lower_context *context, int32_t layer);
/* Bytes of a micro-batch's activation before a global layer, and of what the
 * layer reads: a later token's has its embedding behind it. */
uint64_t lower_stream_bytes(const lower_context *context, int32_t layer);
uint64_t lower_input_bytes(const lower_context *context, int32_t layer);

/*
 * Elements of a layer's gradients that are partial sums on each TP rank: of all
 * that is whole there, which with sequence parallelism sees a rank's own rows
 * only; else of the norms of heads, which see its own heads.
 */
typedef struct lower_partial {
    uint64_t first, n;
} lower_partial;
lower_partial lower_partial_norms(const lower_context *context,
                                  const lower_layer_layout *layout);

/* lower_saved.c */
void lower_saved_init(const lower_context *context, lower_kind *kind);
/* Returns the bytes that the core of attention leaves for backward: lse, or the
 * probabilities. */
uint64_t lower_core_bytes(const lower_context *context);

#endif
