/*
 * framework_torchtitan.c: torchtitan, and what it does unless told otherwise.
 *
 * Sources, read in 2025 and 2026: FSDP2 with reduce dtype f32; TP implies
 * sequence parallel; context parallel gathers keys and values; a pipeline
 * splits the local batch into as many micro-batches as it has ranks; SDPA's
 * FlashAttention-2; cuDNN first on Blackwell since pull request 1196 of May
 * 2025, on all devices since 1776 of October (models/common/attention.py): such
 * rows say cuDNN; early_stop=False (distributed/activation_checkpoint.py, since
 * pull request 1580 of August 2025); eager unless torch.compile is said; the
 * loss is compiled since components/loss.py of 2025 (before, train.py:
 * "compiling loss function causes CUDA errors"): the row says "compiled loss"
 * where it was.
 */
#include "frameworks/framework_list.h"

static const fr_framework_facts facts = {
    .is_overlap = true,
    .is_gather_overlap = true,
    .is_per_op_recompute = true,
    .is_mbs_local = true,
    .kernels = FR_KERNELS_EAGER,
    .flash_kind = FR_FLASH_2,
    .cp_kind = FR_CP_ALL_GATHER,
    .has_sequence_parallel = true,
};

const fr_framework fr_framework_torchtitan = {
    .name = "torchtitan",
    .summary = "torchtitan: FSDP2, TP, PP and CP of PyTorch",
    .facts = &facts,
    .target = &fr_target_torchtitan,
    .checks = &fr_target_torchtitan,
    .reader = &fr_config_torchtitan,
    .writer = &fr_exporter_torchtitan,
    .logs = {&fr_runlog_titan, &fr_runlog_titan_words},
};
