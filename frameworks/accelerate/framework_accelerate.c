/*
 * framework_accelerate.c: Accelerate, and what it does unless told otherwise.
 *
 * Source: it wraps a model of transformers by DDP, FSDP or DeepSpeed
 * (accelerator.py, prepare_model), so that layers and losses are those of
 * PyTorch: see framework_script.c.  FSDP of bf16 reduces in bf16
 * (utils/dataclasses.py, FullyShardedDataParallelPlugin.set_mixed_precision, at
 * commit 16cb6eb8), and so does DeepSpeed.
 */
#include "frameworks/framework_list.h"

static const fr_framework_facts facts = {
    .is_overlap = true,
    .is_gather_overlap = true,
    .is_early_stop = true,
    .is_bf16_grad = true,
    .kernels = FR_KERNELS_EAGER,
    .flash_kind = FR_FLASH_2,
};

const fr_framework fr_framework_accelerate = {
    .name = "accelerate",
    .summary = "Accelerate of Hugging Face",
    .facts = &facts,
    .target = &fr_target_accelerate,
    .checks = &fr_target_accelerate,
    .reader = &fr_config_accelerate,
    .writer = &fr_exporter_accelerate,
    .logs = {&fr_runlog_trainer},
};
