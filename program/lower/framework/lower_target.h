/*
 * lower_target.h: what a program is lowered for: forerun's own kernels, which
 * run it, or a framework, whose step is predicted.
 *
 * Decided once, of model, job, plan and placement; writers of segments and
 * steps ask the target, not the fields it follows from.
 */
#ifndef FR_PROGRAM_LOWER_FRAMEWORK_LOWER_TARGET_H
#define FR_PROGRAM_LOWER_FRAMEWORK_LOWER_TARGET_H

#include "plan/decide/plan.h"

/* The origin of the kernels that do the work, as bits for sets of them. */
typedef enum lower_kernels {
    LOWER_KERNELS_RUN = 1,      /* forerun's, of a plan that they can run */
    LOWER_KERNELS_PLANNED = 2,  /* forerun's, where some are missing */
    LOWER_KERNELS_FUSED = 4,    /* Megatron-LM with Apex, Transformer Engine */
    LOWER_KERNELS_COMPILED = 8, /* PyTorch, torch.compile around each layer */
    LOWER_KERNELS_EAGER = 16,   /* PyTorch as written, a kernel per operator */
    LOWER_KERNELS_PYTORCH = LOWER_KERNELS_COMPILED | LOWER_KERNELS_EAGER
} lower_kernels;

/* The core of attention. */
typedef enum lower_attention {
    LOWER_ATTENTION_FUSED, /* keeps a log-sum-exp for each row */
    LOWER_ATTENTION_ROWS,  /* the runtime's own: keeps its probabilities */
    LOWER_ATTENTION_APART  /* products and a softmax that write scores too */
} lower_attention;

typedef struct lower_target {
    lower_kernels kernels;
    /* Memory comes from the framework's allocator, and sends are waited for as
     * its pipelines do (fr_placement.by_framework). */
    bool is_framework_step;
    /* f32, as the CPU runtime has it: a layer's pass is never cut. */
    bool is_f32;
    /* Full recompute stops when it has what backward needs: the CPU runtime in
     * f32, PyTorch's checkpoints that are not reentrant, and what torch.compile
     * leaves of them. */
    bool is_early_stop;
    bool is_low; /* products have less than 16 bits */
    lower_attention attention;
    bool is_core_recomputed; /* attention's core runs again in backward */
    bool has_scores_buffer;  /* Megatron-LM's products of unfused attention */
    bool is_unpadded;        /* flash_attn 1 takes sequences without padding */
    bool is_apart;           /* Llama's projections are products of their own */
    bool is_loss_narrow;     /* the loss reads logits as they are */
} lower_target;

/* Operands of fp8 with scales of rows: 16 bits until their product. */
bool lower_has_row_scales(const fr_plan *plan);

lower_target lower_target_of(const fr_model *model, const fr_job *job,
                             const fr_plan *plan, bool is_framework_step);

#endif
