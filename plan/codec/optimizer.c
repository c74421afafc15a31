/*
 * optimizer.c: the table of optimizers.
 */
#include "plan/codec/optimizer.h"

static const fr_optimizer sgd = {
    .kind = FR_OPTIMIZER_SGD,
    .name = "sgd",
    .summary = "stochastic gradient descent with momentum",
    .n_moments = 1,
    .step_flop = 7,
    .step_moved_bytes = 5 * sizeof(float), /* g w m in, w m out */
    .large_batch_rule = FR_LR_RULE_LINEAR,
};

static const fr_optimizer adamw = {
    .kind = FR_OPTIMIZER_ADAMW,
    .name = "adamw",
    .summary = "Adam with decoupled weight decay",
    .n_moments = 2,
    .step_flop = 14,
    .step_moved_bytes = 7 * sizeof(float), /* g w m v in, w m v out */
    .large_batch_rule = FR_LR_RULE_SQRT,
};

static const fr_optimizer lars = {
    .kind = FR_OPTIMIZER_LARS,
    .name = "lars",
    .summary = "layer-wise adaptive momentum for large batches",
    .n_moments = 1,
    .has_norms = true,
    .step_flop = 8,
    .norms_flop = 5,
    .step_moved_bytes = 5 * sizeof(float),
    .norms_moved_bytes = 2 * sizeof(float), /* g w in */
    .large_batch_rule = FR_LR_RULE_LINEAR,
};

static const fr_optimizer lamb = {
    .kind = FR_OPTIMIZER_LAMB,
    .name = "lamb",
    .summary = "layer-wise adaptive Adam for large batches",
    .n_moments = 2,
    .has_norms = true,
    .step_flop = 9,
    .norms_flop = 18,
    .step_moved_bytes = 4 * sizeof(float),  /* w m v in, w out */
    .norms_moved_bytes = 6 * sizeof(float), /* g w m v in, m v out */
    .large_batch_rule = FR_LR_RULE_SQRT,
};

const fr_optimizer *const fr_optimizers[FR_OPTIMIZER_N] = {
    [FR_OPTIMIZER_SGD] = &sgd,
    [FR_OPTIMIZER_ADAMW] = &adamw,
    [FR_OPTIMIZER_LARS] = &lars,
    [FR_OPTIMIZER_LAMB] = &lamb,
};

uint64_t fr_optimizer_state_bytes(fr_optimizer_kind kind, uint64_t n)
{
    return (uint64_t)fr_optimizers[kind]->n_moments * n * sizeof(float);
}

uint64_t fr_optimizer_resident_bytes(fr_optimizer_kind kind, uint64_t n,
                                     bool has_master)
{
    return fr_optimizer_state_bytes(kind, n) +
           (has_master ? n * sizeof(float) : 0);
}
