/*
 * framework.h: the training frameworks that forerun knows, and how each does
 * what nobody has told it: facts about their defaults, with sources in
 * framework.c.  Lowering, the tuner's rules and the readers of cases use it.
 */
#ifndef FR_PROGRAM_LOWER_FRAMEWORK_FRAMEWORK_H
#define FR_PROGRAM_LOWER_FRAMEWORK_FRAMEWORK_H

#include "plan/decide/plan.h"

/* A name that is part of another comes after it: the first that a text has
 * counts. */
typedef enum fr_framework_kind {
    FR_FRAMEWORK_TORCHTITAN,
    FR_FRAMEWORK_MEGATRON_BRIDGE,
    FR_FRAMEWORK_NEMO,
    FR_FRAMEWORK_MEGATRON_CORE,
    FR_FRAMEWORK_BIGSCIENCE, /* Megatron-DeepSpeed of 2021 */
    FR_FRAMEWORK_DEEPSPEED,
    FR_FRAMEWORK_MEGATRON, /* Megatron-LM */
    FR_FRAMEWORK_FOUNDRY,  /* MosaicML's LLM Foundry of 2023 */
    FR_FRAMEWORK_COMPOSER,
    FR_FRAMEWORK_NANOTRON,
    FR_FRAMEWORK_FORERUN, /* our own runtime */
    FR_FRAMEWORK_GRACE,   /* compressors over Horovod, 2021 */
    FR_FRAMEWORK_PYTORCH, /* DDP, FSDP, and what is built on them */
    FR_FRAMEWORK_N
} fr_framework_kind;

typedef struct fr_framework {
    const char *name;   /* in lower case, as it is written in cases */
    const char *target; /* whose checks its plans pass (plan/target/target.h):
                           its own, or those of what it trains with; NULL: none
                           are known */
    bool is_overlap;    /* gradients reduced beside backward */
    bool is_gather_overlap;    /* parameters gathered beside forward */
    bool is_tp_overlap;        /* TP collectives in pieces */
    bool is_vocab_padded;      /* to a multiple of 128 x tp */
    bool has_megatron_buckets; /* else PyTorch's: 25 MB */
    bool is_per_op_recompute;  /* "selective" is PyTorch's per-op SAC */
    bool is_mbs_local;         /* mbs is the batch of one rank's pipeline */
    bool is_early_stop;        /* of full recompute */
    bool is_p2p_sync;          /* without chunks the host waits for transfers
                                  between stages */
    bool is_bf16_grad;         /* bf16 gradients even where it could be f32 */
    fr_cp_kind cp_kind;
    bool is_local_ddp;          /* only "DDP-impl=torch" overlaps */
    bool has_sequence_parallel; /* on with tp where nothing is said */
    bool is_unfused;            /* attention, where nothing is said */
    fr_kernel_set kernels;      /* COMPILED where the row says so */
    fr_flash_kind flash_kind;
    fr_compress_unit compress_by;
    fr_scaling scaling; /* of fp8, where nothing is said */
    fr_zero_unit zero_unit;
    /* Where parameters are gathered one by one, in elements: those below stay
     * whole; what full recompute has used is still there for backward within
     * that distance. */
    uint64_t persistent_below, max_reuse_distance;
    uint64_t max_live; /* while so many are there nothing is fetched ahead */
    bool is_loss_fused, is_routing_fused, is_norm_fused;
    int n_loss_metrics;
    bool is_grad_added_apart; /* fp16 gradients */
    bool is_grad_listed;      /* ZeRO 1 */
    double gpt_dropout;       /* of GPT's and BERT's recipe; Llama's has
                                 none */
} fr_framework;

extern const fr_framework fr_frameworks[FR_FRAMEWORK_N];

#endif
