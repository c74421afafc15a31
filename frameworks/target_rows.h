/*
 * target_rows.h: how the rows of a target are written, and rules that several
 * targets have.  Private to the tables target_*.c.
 */
#ifndef FR_FRAMEWORKS_TARGET_ROWS_H
#define FR_FRAMEWORKS_TARGET_ROWS_H

#include "frameworks/target.h"

#define FR_WRITTEN(text)                                                       \
    {                                                                          \
        .fate = FR_FATE_WRITTEN, .how = (text)                                 \
    }
/* Written, but these values (FR_IS() | FR_IS() ...) alone. */
#define FR_WRITTEN_ONLY(bits, text, reason)                                    \
    {                                                                          \
        .fate = FR_FATE_WRITTEN, .how = (text), .values = (bits),              \
        .why = (reason)                                                        \
    }
/* The same, in code of the training script that no reader sees. */
#define FR_CODED_ONLY(bits, text, reason)                                      \
    {                                                                          \
        .fate = FR_FATE_WRITTEN, .how = (text), .values = (bits),              \
        .why = (reason), .is_in_code = true                                    \
    }
#define FR_IMPLIED(text)                                                       \
    {                                                                          \
        .fate = FR_FATE_IMPLIED, .how = (text)                                 \
    }
#define FR_IMPLIED_ONLY(bits, text, reason)                                    \
    {                                                                          \
        .fate = FR_FATE_IMPLIED, .how = (text), .values = (bits),              \
        .why = (reason)                                                        \
    }
#define FR_PREDICTED(text)                                                     \
    {                                                                          \
        .fate = FR_FATE_PREDICTED, .how = (text)                               \
    }
#define FR_REFUSED(text)                                                       \
    {                                                                          \
        .fate = FR_FATE_REFUSED, .how = (text)                                 \
    }
#define FR_IS(value) (UINT64_C(1) << (value))

#define FR_TARGET_RULE(name)                                                   \
    bool name(const fr_plan *plan, const fr_model *model, const fr_job *job)

/* Do all stages have the same number of layers, or a split of their own? */
FR_TARGET_RULE(fr_has_even_stages);
/* Are gradients and parameters sharded only where there is no pipeline? */
FR_TARGET_RULE(fr_shards_without_pipeline);
/* ZeRO 1, 2: is gathering overlapped only where reduction is? */
FR_TARGET_RULE(fr_gathers_with_reduction);
/* Fields for which a framework has no key. */
#define FR_TARGET_FIELDS_OF_NO_KEY                                             \
    [FR_PLAN_EXPERT_CAPACITY] = FR_REFUSED("it has no such key"),              \
    [FR_PLAN_EXPERT_PAD] = FR_REFUSED("it has no such key"),                   \
    [FR_PLAN_THREADS] = FR_PREDICTED("threads of forerun's CPU kernels")

/* No framework has batches of different sizes. */
#define FR_TARGET_SHARES                                                       \
    [FR_PLAN_BATCH_SHARES] =                                                   \
        FR_REFUSED("all data-parallel ranks take as many samples")

/* The fields of ds_config.json. */
extern const fr_target_field fr_deepspeed_fields[FR_PLAN_FIELDS_N];
extern const fr_target_field fr_deepspeed_facts[FR_EXECUTION_FIELDS_N];

/* On GPUs the gradient reduction is NCCL's, told by its environment. */
#define FR_TARGET_FIELDS_OF_NCCL                                               \
    [FR_PLAN_COLLECTIVE] = FR_WRITTEN_ONLY(                                    \
        FR_IS(FR_COLLECTIVE_AUTO) | FR_IS(FR_COLLECTIVE_RING) |                \
            FR_IS(FR_COLLECTIVE_DOUBLE_TREE) | FR_IS(FR_COLLECTIVE_NVLS) |     \
            FR_IS(FR_COLLECTIVE_SHARP),                                        \
        "NCCL_ALGO, NCCL_COLLNET_ENABLE",                                      \
        "NCCL has ring, double-tree, nvls and sharp"),                         \
    [FR_PLAN_NCCL_PROTOCOL] = FR_WRITTEN("NCCL_PROTO"),                        \
    [FR_PLAN_NCCL_CHANNELS] = FR_WRITTEN("NCCL_MIN_CTAS, NCCL_MAX_CTAS"),      \
    [FR_PLAN_SERVER_PLACE] = FR_REFUSED("it has no parameter servers"),        \
    [FR_PLAN_SERVERS] = FR_REFUSED("it has no parameter servers")

#endif
