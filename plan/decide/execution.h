/*
 * execution.h: how the framework that trains carries a plan out: which kernels
 * it has, what it joins, what it waits for.  Its row of framework.c fills it
 * (framework_plan.h), options override it.  What the user decides is in plan.h.
 */
#ifndef FR_PLAN_DECIDE_EXECUTION_H
#define FR_PLAN_DECIDE_EXECUTION_H

#include "plan/decide/plan_kinds.h"

typedef struct fr_execution {
    fr_zero_unit zero_unit;     /* ZeRO 3: what one gather brings */
    fr_flash_kind flash_kind;   /* which fused attention runs, where one does */
    fr_kernel_set kernels;      /* of all that is no matrix product */
    fr_scaling scaling;         /* FUSED and fp8: where the scales come from */
    fr_cuda_graphs cuda_graphs; /* GPUs: what the host issues as one */
    bool is_loss_fused; /* one kernel from logits of 16 bits to the loss, one
                           back; else in float32 as the kernel set does it */
    int32_t n_loss_metrics;   /* cross entropies that are made of the logits for
                                 display, besides the loss; 0 to 64 */
    bool is_grad_added_apart; /* FUSED: products write gradients of weights,
                                 another kernel adds them to what is there */
    bool is_grad_listed;      /* ZeRO 1 on GPUs: gradients are copied to a list
                                 of partitions, and that by pieces, before they
                                 are scattered (DeepSpeed of 2021) */
    bool is_routing_fused;    /* FUSED: routing to experts in few kernels */
    bool is_norm_fused;       /* EAGER: norms are one kernel each way */
    bool is_early_stop;       /* full recompute ends before a last product whose
                                 output backward does not read */
    bool is_p2p_sync;        /* GPUs, no chunks: the host waits until a transfer
                                between stages has come */
    double expert_imbalance; /* busiest rank's tokens over the mean, 1 to 1e6 */
    fr_compress_unit compress_by; /* GPUs: what a compressor is called for */
} fr_execution;

#endif
