/*
 * framework_nanotron.c: nanotron, and what it does unless told otherwise.
 *
 * Sources, read in 2025 and 2026: pipeline_parallel/p2p.py: before each tensor
 * go its shape and strides, which both sides read on the host (_send_meta,
 * _recv_meta); optim/zero.py gathers after the step; flash_attn's varlen
 * kernel, its Triton norms and rotation (models/llama.py, nn/layer_norm.py);
 * checkpoints run to the end (CheckpointFunction).
 */
#include "frameworks/framework_list.h"

static const fr_framework_facts of_nanotron = {
    .is_overlap = true,
    .is_p2p_sync = true,
    .kernels = FR_KERNELS_EAGER,
    .flash_kind = FR_FLASH_2,
    .is_norm_fused = true,
};

const fr_framework fr_framework_nanotron = {
    .name = "nanotron",
    .summary = "nanotron of Hugging Face",
    .facts = &of_nanotron,
    .reader = &fr_config_nanotron,
    .logs = {&fr_runlog_nanotron},
};
