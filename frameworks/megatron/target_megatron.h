/*
 * target_megatron.h: versions of Megatron-LM, and what its table and those who
 * write and read its arguments both ask of a plan.
 */
#ifndef FR_FRAMEWORKS_MEGATRON_TARGET_MEGATRON_H
#define FR_FRAMEWORKS_MEGATRON_TARGET_MEGATRON_H

#include "plan/decide/plan.h"

/* Places in the list of versions of fr_target_megatron: the releases of
 * Megatron Core, tags core_v0.8.0 (2024-08) to core_v0.19.0 (2026-08). */
enum {
    FR_MEGATRON_0_8,
    FR_MEGATRON_0_9,
    FR_MEGATRON_0_10,
    FR_MEGATRON_0_11,
    FR_MEGATRON_0_12,
    FR_MEGATRON_0_13,
    FR_MEGATRON_0_14,
    FR_MEGATRON_0_15,
    FR_MEGATRON_0_16,
    FR_MEGATRON_0_17,
    FR_MEGATRON_0_18,
    FR_MEGATRON_0_19,
    FR_MEGATRON_VERSIONS_N
};

/* --rope-scaling-factor where it is not given. */
#define FR_MEGATRON_ROPE_FACTOR 8.0

/* Have all stages of the plan the same number of layers? */
bool fr_megatron_is_even(const fr_plan *plan, const fr_model *model);

/*
 * Layers of the first and the last pipeline rank, as --decoder-first-pipeline-
 * num-layers and --decoder-last-pipeline-num-layers say them: all other ranks
 * have the same number, and the chunks of a rank too.  false: the plan's split
 * is no such one.
 */
bool fr_megatron_ends(const fr_plan *plan, const fr_model *model,
                      int32_t *first, int32_t *last);

/* Layers whose activations wait on the host: --cpu-offloading-num-layers.
 * -1: the plan's share is not that of whole layers. */
int64_t fr_megatron_offloaded_layers(const fr_plan *plan,
                                     const fr_model *model);

/* Do groups of experts restrict the choice (--moe-router-group-topk)? */
bool fr_megatron_has_groups(const fr_model *model);

/* By the sum of how many of its best scores forerun chooses a group
 * (leave_groups() of kernels_moe.c). */
int64_t fr_megatron_group_best(const fr_model *model);

#endif
