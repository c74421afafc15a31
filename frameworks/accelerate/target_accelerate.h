/*
 * target_accelerate.h: versions of Hugging Face's Accelerate, and which of its
 * backends runs a plan: what its table and those who write and read its
 * configurations both ask.
 */
#ifndef FR_FRAMEWORKS_ACCELERATE_TARGET_ACCELERATE_H
#define FR_FRAMEWORKS_ACCELERATE_TARGET_ACCELERATE_H

#include "frameworks/target.h"

/* Places in the list of versions: those that brought FSDP 2, its
 * parallelism_config, Ulysses, and more keys for Megatron-LM. */
enum {
    FR_ACCELERATE_1_0,
    FR_ACCELERATE_1_6,
    FR_ACCELERATE_1_10,
    FR_ACCELERATE_1_12,
    FR_ACCELERATE_1_13,
    FR_ACCELERATE_1_14,
    FR_ACCELERATE_VERSIONS_N
};

extern const fr_target fr_accelerate_ddp, fr_accelerate_fsdp,
    fr_accelerate_deepspeed, fr_accelerate_megatron;

/* One of these four. */
const fr_target *fr_accelerate_backend(const fr_plan *plan);

/* Copies of the parameters that FSDP keeps: dp_replicate_size. */
int64_t fr_accelerate_copies(const fr_plan *plan);

#endif
