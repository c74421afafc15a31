/*
 * model.h: what is trained.  Read from a Hugging Face config.json as it is,
 * or from forerun's own JSON (see docs/formats.md); counts are exact.
 */
#ifndef FR_SPEC_MODEL_MODEL_H
#define FR_SPEC_MODEL_MODEL_H

#include "core/base/err.h"
#include "core/document/names.h"

typedef enum fr_model_kind {
    FR_MODEL_DECODER, /* causal transformer */
    FR_MODEL_ENCODER, /* bidirectional transformer (BERT, ViT) */
    FR_MODEL_LAYERS,  /* plain list of layers (CNNs, anything else) */
    FR_MODEL_KIND_N
} fr_model_kind;

typedef enum fr_activation {
    FR_ACTIVATION_GELU_TANH, /* tanh form: gpt2's gelu_new */
    FR_ACTIVATION_GELU,      /* erf form: bert, vit, gpt_neox */
    FR_ACTIVATION_SILU,
    FR_ACTIVATION_RELU,
    FR_ACTIVATION_RELU_SQUARED, /* arXiv 2109.08668; nemotron */
    FR_ACTIVATION_GELU_QUICK,   /* x sigmoid(1.702 x): clip */
    FR_ACTIVATION_SIGMOID,      /* of gates */
    FR_ACTIVATION_TANH,         /* of poolers */
    FR_ACTIVATION_N
} fr_activation;

/* An operation of a layer in a list; see layer_ops.h. */
typedef enum fr_layer_op_kind {
    FR_LAYER_OP_CONV,
    FR_LAYER_OP_BATCH_NORM,
    FR_LAYER_OP_RELU,
    FR_LAYER_OP_MAX_POOL,
    FR_LAYER_OP_AVG_POOL,
    FR_LAYER_OP_LINEAR,  /* of all elements: pixel by pixel, channels fastest */
    FR_LAYER_OP_ADD,     /* of the shortcut */
    FR_LAYER_OP_DROPOUT, /* by the job's probability */
    FR_LAYER_OP_N
} fr_layer_op_kind;

typedef struct fr_layer_op {
    uint32_t kind;    /* fr_layer_op_kind */
    bool is_shortcut; /* of what comes into the layer, until `add` */
    bool has_bias;
    int64_t channels; /* of what comes out: conv, linear */
    int64_t kernel, stride, padding, groups; /* 0: left out */
} fr_layer_op;

/* The rescaling of rotary frequencies. */
typedef enum fr_rope_kind {
    FR_ROPE_LLAMA3, /* by wavelength, or all alike (linear) */
    FR_ROPE_YARN,
    FR_ROPE_DYNAMIC,
    FR_ROPE_N
} fr_rope_kind;

extern const fr_names fr_rope_names;

/* Layers that a model may mark one by one; more are all alike. */
enum { FR_MODEL_MOST_MARKS = 255 };

/* One entry of a layer list; forward amounts per sample. */
typedef struct fr_model_layer {
    char name[64];
    double forward_flop;
    uint64_t n_parameters;
    uint64_t activation_bytes; /* saved for backward */
    uint64_t output_bytes;     /* handed to the next layer */
    int64_t n_tensors;         /* that its parameters are */
    int64_t repeat;
    int64_t first_op, n_ops;        /* in fr_model.layer_ops; 0: not said */
    int64_t out_channels, out_size; /* of the image that they make */
} fr_model_layer;

typedef struct fr_model {
    char name[128];
    /* Parts of its file that no count has (a wrapper's towers) or that it lacks
     * (the output matrix), for a note; "": none. */
    char left_out[320];
    fr_model_kind kind;
    int64_t n_layers;
    int64_t hidden;
    int64_t n_heads;
    int64_t n_kv_heads;
    int64_t head_dim;
    int64_t ffn_hidden; /* of one dense MLP */
    int64_t vocab;
    int64_t max_seq;
    fr_activation activation;
    bool is_gated_mlp; /* three matrices (SwiGLU with SILU), else two */
    bool is_rms_norm;  /* else LayerNorm with bias */
    bool is_rope;      /* else learned positions */
    bool is_tied;      /* head shares the embedding matrix */
    bool has_qkv_bias;
    bool has_out_bias; /* attention output projection */
    bool has_mlp_bias;
    bool has_qk_norm; /* qwen3: RMS norm of each q and k head */
    double norm_eps;
    double rope_theta;
    int64_t sliding_window; /* 0: none */
    /* Mixture of experts; n_experts == 0: dense. */
    int64_t n_experts;
    int64_t n_experts_per_token;
    int64_t expert_ffn_hidden;
    int64_t shared_expert_ffn_hidden; /* 0: none */
    int64_t first_dense_layers;       /* the first k layers stay dense */
    int64_t moe_every;                /* a MoE layer every k layers, 1: all */
    bool has_shared_expert_gate;
    bool has_softmax_over_all; /* weights of the chosen experts do not add up
                                  to 1 (norm_topk_prob false) */
    /* deepseek: scores are sigmoids instead of a softmax, plus a bias where the
     * experts are chosen; these are of the n_chosen_groups best of
     * n_expert_groups; their weights are multiplied by routed_scale. */
    bool has_sigmoid_router, has_router_bias;
    int64_t n_expert_groups, n_chosen_groups;
    double routed_scale;
    /* The coefficient of each layer's auxiliary loss: n_experts times the sum
     * over experts of the share of all copies that go to one and its mean
     * probability (Fedus et al.  2021, arXiv 2101.03961, equations 4 to 6), 0:
     * no such loss.  Shares and means are over a micro-batch, or over each
     * sequence of it (DeepSeek-V3, arXiv 2412.19437, equations 17 to 20). */
    double router_aux_coef;
    bool is_aux_by_sequence;
    /* Multi-head latent attention (deepseek); kv_lora_rank == 0: none. */
    int64_t q_lora_rank;
    int64_t kv_lora_rank;
    int64_t qk_rope_head_dim;
    int64_t qk_nope_head_dim;
    int64_t v_head_dim;
    /* Layers that predict later tokens (DeepSeek-V3, arXiv 2412.19437, section
     * 2.2); not in the counts.  mtp_loss_scale: of the mean of their losses,
     * the paper's lambda. */
    int64_t n_mtp_layers;
    double mtp_loss_scale;
    /* Variants of the block and of its positions. */
    bool is_parallel_block; /* gpt_neox: attention and MLP side by side */
    double rope_frac;       /* of head_dim that is rotated, 1: all */
    bool has_rope_scaling;  /* frequencies are rescaled: rope.h */
    /* The rescaling: wavelengths beyond rope_original_seq / rope_low_factor are
     * stretched by rope_factor, wavelengths within rope_original_seq /
     * rope_high_factor stay, and in between both are mixed. original 0: all are
     * stretched; DYNAMIC: all are stretched, by a factor that grows with the
     * sequence beyond original; factor 0: another rule (longrope ...). */
    fr_rope_kind rope_kind;
    double rope_factor, rope_low_factor, rope_high_factor;
    int64_t rope_original_seq;
    double rope_attention_factor; /* of cosines and sines; 0: 1 */
    double score_factor; /* of the scores of attention, beside 1 / sqrt(head);
                            0: 1 */
    bool has_scaled_embedding; /* gemma: embedding times sqrt(hidden) */
    uint64_t traits;           /* bits of fr_model_trait: model_traits.h */
    /* A letter for each layer: its mixer (mixers.h), and what follows it, 'm'
     * the MLP, 'e' experts, '-' nothing.  "": attention in all layers; experts
     * by first_dense_layers and moe_every. */
    char mixers[FR_MODEL_MOST_MARKS + 1], mlps[FR_MODEL_MOST_MARKS + 1];
    /* Sizes of the mixers that are no attention: mixers.h. */
    int64_t mix_heads, mix_head_dim, mix_groups, mix_state, mix_conv;
    int64_t mix_chunk, mix_rank;
    bool has_mix_norm;
    /* Encoders. */
    bool has_final_norm;   /* false: bert, whose blocks end in a norm */
    bool has_embed_norm;   /* bert */
    int64_t n_token_types; /* bert */
    bool has_pooler;       /* dense layer on the first token */
    bool has_mlm_head;     /* bert: dense, norm, tied matrix, bias */
    int64_t image_size, patch_size, n_channels, n_labels; /* vit; but for the
                                          patches lists of layers too */
    /* FR_MODEL_LAYERS only; owned. */
    fr_model_layer *layers;
    size_t n_layer_entries;
    fr_layer_op *layer_ops; /* of all entries, or of none */
    size_t n_layer_ops;
} fr_model;

/*
 * Loads a model.  `name_or_path`: a path, a directory that holds config.json,
 * or a name under models/ of `configs` (NULL: the folder near the program).
 * Unknown keys that change the arithmetic are errors, others are ignored as
 * Hugging Face does.  FR_INPUT with "path:line: ..." on anything wrong.
 * fr_model_release() frees it.
 */
FR_CHECKED fr_status fr_model_load(const char *configs,
                                   const char *name_or_path, fr_model *out,
                                   fr_err *err);

/* The same from text; `name` stands in messages. */
FR_CHECKED fr_status fr_model_parse(const char *name, const char *text,
                                    size_t n_text, fr_model *out, fr_err *err);
void fr_model_release(fr_model *model); /* takes NULL */

/* A plain decoder's defaults; every count 0 (fill in, then check). */
void fr_model_init(fr_model *model);

/* *out becomes a copy that shares nothing. */
FR_CHECKED fr_status fr_model_copy(const fr_model *model, fr_model *out,
                                   fr_err *err);

const char *fr_model_kind_name(fr_model_kind kind);
const char *fr_activation_name(fr_activation activation);

/* Columns of a head that rotary positions turn: an even number. */
int64_t fr_model_rotated(const fr_model *model);

/* Tokens of a sample of the job; a list of layers has none, and a sample counts
 * as one. */
int64_t fr_model_sample_tokens(const fr_model *model, int64_t seq);

/* Returns the things that users count: "tokens", "images", or "samples" of
 * other lists of layers; and their number of so many samples. */
const char *fr_model_counted(const fr_model *model);
double fr_model_count_of(const fr_model *model, int64_t seq, double n_samples);

/* Does layer i (from 0) have experts?  An MLP of either kind?  How many have
 * experts? */
bool fr_model_layer_is_moe(const fr_model *model, int64_t i_layer);
bool fr_model_layer_has_mlp(const fr_model *model, int64_t i_layer);
int64_t fr_model_moe_layers(const fr_model *model);

/* Are all layers of one or two kinds, which first_dense_layers and moe_every
 * tell from each other? */
bool fr_model_is_unmarked(const fr_model *model);

/* Does the embedding have a learned row for each position? */
bool fr_model_has_position_table(const fr_model *model);

/* Exact parameter counts: all that are trained, and those that one token uses
 * (MoE: the experts it goes to). */
uint64_t fr_model_parameters(const fr_model *model);
uint64_t fr_model_active_parameters(const fr_model *model);

/*
 * Model flop of one token, forward and backward, without recompute:
 * 6 * matmul parameters + attention 12 * layers * heads * head_dim * seq
 * (halved when `is_causal_counted`), PaLM appendix B, arXiv 2204.02311.
 * The head counts once even if tied, looked-up embeddings do not.  A list of
 * layers: 3 * forward of one sample, divided by seq.
 */
double fr_model_flop_per_token(const fr_model *model, int64_t seq,
                               bool is_causal_counted);

/* Reports every broken invariant (FR_INPUT with the first in err). */
FR_CHECKED fr_status fr_model_check(const fr_model *model, fr_err *err);

#endif
