/*
 * layout_rows.h: one table of layouts for every backend: what the CPU trains
 * (test_layouts.c), fake GPUs (test_gpu_layouts.c), the CUDA kernels emulated
 * or on a GPU (test_cuda_layouts.c), against the same single
 * process.  A backend that refuses a layout says so here, with its reason.
 */
#ifndef FR_TESTS_LAYOUT_ROWS_H
#define FR_TESTS_LAYOUT_ROWS_H

#include "plan/decide/plan.h"

/* A tiny model of four layers, by what is particular about it. */
typedef enum layout_family {
    LAYOUT_GPT2,
    LAYOUT_LLAMA,
    LAYOUT_QWEN2, /* biases of q, k and v alone, tied */
    LAYOUT_QWEN3, /* norms of q and k, heads wider than hidden / heads */
    LAYOUT_NEOX,  /* parallel block, a quarter of the head rotated, erf GELU */
    LAYOUT_GEMMA, /* scaled embedding, one key head, gated tanh GELU */
    LAYOUT_MISTRAL,    /* a sliding window */
    LAYOUT_MIXTRAL,    /* two of six experts */
    LAYOUT_QWEN_MOE,   /* three of eight in every second layer, a gated shared
                          one beside */
    LAYOUT_DEEPSEEK,   /* latent attention; sigmoids choose three of eight in
                          two of four groups, a shared one beside */
    LAYOUT_DEEPSEEK2,  /* no latents of queries, weights that do not add up to
                          one */
    LAYOUT_BERT,       /* post-norm, both directions, a masked-token head */
    LAYOUT_VIT,        /* images of 32 patches and a first token */
    LAYOUT_BERT_ORDER, /* and a pooler, which tells the order of halves */
    LAYOUT_AUX,        /* two of six experts, balanced over micro-batches */
    LAYOUT_AUX_BY_SEQUENCE, /* the same over sequences, by sigmoids */
    LAYOUT_LATER,   /* DeepSeek with a layer that predicts the token after */
    LAYOUT_CAPPED,  /* two of six experts, which drop rows */
    LAYOUT_YARN,    /* rotary frequencies stretched and mixed */
    LAYOUT_DYNAMIC, /* rotary frequencies that follow the sequence */
    LAYOUT_LATENT_YARN, /* latent attention whose scores are changed too */
    LAYOUT_FAMILIES
} layout_family;

typedef struct layout_row {
    const char *name;
    bool is_llama; /* short for its family */
    layout_family family;
    fr_optimizer_kind optimizer;
    int32_t dp, tp, pp, vpp, cp, ep; /* 0: 1 */
    int32_t etp;                     /* 0: tp */
    bool is_ep_overlap;
    fr_cp_kind cp_kind;
    bool is_flash, is_unfused; /* neither: fused in 16 bits and on GPUs */
    int64_t micro_batch;
    int32_t zero, zero_group;
    fr_recompute recompute;
    uint32_t recompute_parts; /* 0: the attention */
    int32_t recompute_layers;
    bool is_kept; /* ZeRO 3: gathered weights stay until backward */
    bool is_sequence_parallel, is_tp_overlap;
    fr_schedule_kind schedule;
    bool is_serial; /* no overlap */
    uint64_t bucket_bytes;
    int32_t split[4];  /* uneven layers per stage */
    int32_t shares[4]; /* micro-batches per data-parallel rank */
    fr_rank_order order;
    fr_collective_kind collective;
    fr_server_place server_place;
    int32_t n_servers;
    bool is_bf16;        /* weights and activations */
    bool has_bf16_grads; /* and the gradients of parameters */
    double dropout;
    bool is_padded;          /* experts, to their capacity */
    double offload_frac;     /* of activations, to the host */
    bool is_optimizer_away;  /* on the host */
    const char *cpu_refusal; /* part of the reason; NULL: it is trained */
    const char *gpu_refusal;
} layout_row;

enum { LAYOUT_MAX_RANKS = 4, LAYOUT_VARIANTS = 4 };

/* Trainings of one family that are not comparable. */
static inline int layout_variant_of(const layout_row *row)
{
    return (row->is_bf16 ? 1 : 0) + (row->dropout > 0 ? 2 : 0);
}

extern const layout_row layout_rows[];
extern const int layout_rows_n;

/* The same plan twice but for attention, which GPUs have fused alone. */
typedef enum layout_target { LAYOUT_CPU, LAYOUT_GPU } layout_target;

/* The row's model and optimizer on one rank: what it is compared with. */
layout_row layout_alone(const layout_row *row);

/* Models of four layers. */
extern const char layout_gpt2[], layout_llama[];
layout_family layout_family_of(const layout_row *row);
const char *layout_model_text(const layout_row *row);
FR_CHECKED fr_status layout_model(const layout_row *row, fr_model *out,
                                  fr_err *err);
/* A global batch of 8 x 32. */
fr_job layout_job(const layout_row *row, int64_t n_steps);
fr_plan layout_plan(const layout_row *row, layout_target target);
int layout_world(const layout_row *row);
/* Can its ranks share a GPU? */
bool layout_can_share(const layout_row *row);

/* The largest differences of losses (relative) and gradients (of the largest
 * one) from one process. */
double layout_loss_tolerance(const layout_row *row);
double layout_gradient_tolerance(const layout_row *row);

/* Does the backend refuse it?  Checks that it does where the row says so,
 * for that reason, and nowhere else. */
bool layout_is_refused(const layout_row *row, layout_target target);

/* The part of rows' names that LAYOUT of the environment asks for, alone and
 * thoroughly; NULL: none. */
const char *layout_part(void);
/* Rows of layout_rows are chosen by that part, else by check_in_slice(). */
bool layout_is_chosen(const layout_row *row);

#endif
