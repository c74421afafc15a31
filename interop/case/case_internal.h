/*
 * case_internal.h: the parts of fr_case_read(), one file each.
 */
#ifndef FR_INTEROP_CASE_CASE_INTERNAL_H
#define FR_INTEROP_CASE_CASE_INTERNAL_H

#include "interop/case/case.h"

/* How a training framework does what a row does not say.  Facts about the
 * frameworks' defaults; see case_framework.c for the sources. */
typedef struct fr_case_framework {
    const char *word;          /* in the framework's name, lower case */
    bool is_overlap;           /* gradients reduced beside backward */
    bool is_gather_overlap;    /* parameters gathered beside forward */
    bool is_tp_overlap;        /* TP collectives in pieces */
    bool is_vocab_padded;      /* to a multiple of 128 x tp */
    bool has_megatron_buckets; /* else PyTorch's: 25 MB */
    bool is_per_op_recompute;  /* "selective" is PyTorch's per-op SAC */
    bool is_mbs_local;         /* mbs is the batch of one rank's pipeline */
    bool is_bf16_grad;         /* bf16 gradients even where it could be f32 */
    fr_cp_kind cp_kind;
    bool is_local_ddp;          /* only "DDP-impl=torch" overlaps */
    bool has_sequence_parallel; /* on with tp where nothing is said */
    bool is_unfused;            /* attention, where nothing is said */
    fr_kernel_set kernels;      /* COMPILED where the row says so */
    fr_flash_kind flash_kind;
    fr_scaling scaling; /* of fp8, where nothing is said */
    fr_zero_unit zero_unit;
    bool is_loss_fused;
    int n_loss_metrics;
    bool is_grad_added_apart; /* fp16 gradients */
    double gpt_dropout;       /* of GPT's and BERT's recipe; Llama's has
                                 none */
} fr_case_framework;

/* By the framework column, else by source and source_ref. */
const fr_case_framework *fr_case_framework_of(const fr_case *row);

/* Notes a column that had to be guessed. */
void fr_case_guess(fr_case_setup *setup, fr_case_column column);

/* "path:line: " before what went wrong. */
fr_status fr_case_fail_at(const fr_case *row, fr_status status, fr_err *err);

FR_CHECKED fr_status fr_case_read_model(const fr_case *row,
                                        fr_case_setup *setup, fr_err *err);
/* Needs the model and the plan's sizes. */
FR_CHECKED fr_status fr_case_read_plan(const fr_case *row, fr_case_setup *setup,
                                       fr_err *err);
FR_CHECKED fr_status fr_case_read_cluster(const fr_case *row,
                                          fr_case_setup *setup, fr_err *err);

#endif
