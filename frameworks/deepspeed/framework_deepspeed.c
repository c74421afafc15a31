/*
 * framework_deepspeed.c: DeepSpeed and what trained with it, and what they do
 * unless told otherwise.
 *
 * Sources, read in 2025 and 2026:
 *   deepspeed   0.19.6 (edaa7221): runtime/engine.py, get_data_types: gradients
 *               add up in the dtype of the model; runtime/zero/config.py:
 *               overlap_comm is on for stage 3 alone (overlap_comm_valid),
 *               reduce_bucket_size 5e8 elements;
 *               runtime/activation_checkpointing/checkpointing.py,
 *               CheckpointFunction runs to the end.  The layers are those of
 *               transformers in PyTorch, attention its SDPA
 *   megatron-deepspeed-2021
 *               zero_optimization: overlap_comm is on for stage 3 alone;
 *               stage 3 gathers each parameter by itself (0.3 of 2021:
 *               runtime/zero/stage3.py; parameters below
 *               stage3_param_persistence_threshold stay, and what is used
 *               again within stage3_max_reuse_distance elements)
 *   bigscience  DeepSpeed 0.3.13 to 0.4: runtime/zero/stage1.py
 *               (reduce_gradients, get_flat_sub_partitions)
 */
#include "frameworks/framework_list.h"

static const fr_framework_facts facts = {
    .is_bf16_grad = true,
    .bucket_elements = 500000000,
    .kernels = FR_KERNELS_EAGER,
    .flash_kind = FR_FLASH_2,
};

const fr_framework fr_framework_deepspeed = {
    .name = "deepspeed",
    .summary = "DeepSpeed with models of Hugging Face: ds_config.json",
    .facts = &facts,
    .target = &fr_target_deepspeed,
    .checks = &fr_target_deepspeed,
    .reader = &fr_config_deepspeed,
    .writer = &fr_exporter_deepspeed,
    .logs = {&fr_runlog_deepspeed, &fr_runlog_deepspeed_pipe,
             &fr_runlog_deepspeed_flops},
};

static const fr_framework_facts of_megatron_deepspeed = {
    .zero_unit = FR_ZERO_UNIT_PARAMETER,
    .persistent_below = 100000,
    .max_reuse_distance = 1000000000,
    .max_live = 1000000000,
    .is_vocab_padded = true,
    .has_megatron_buckets = true,
    .is_grad_added_apart = true,
    .gpt_dropout = 0.1,
};

const fr_framework fr_framework_megatron_deepspeed_2021 = {
    .name = "megatron-deepspeed-2021",
    .summary = "DeepSpeed of 2021 with the layers of Megatron-LM",
    .facts = &of_megatron_deepspeed,
    .checks = &fr_target_deepspeed,
};

static const fr_framework_facts of_bigscience = {
    .is_vocab_padded = true,
    .has_megatron_buckets = true,
    .is_grad_added_apart = true,
    .is_grad_listed = true,
    .gpt_dropout = 0.1,
};

const fr_framework fr_framework_bigscience = {
    .name = "bigscience",
    .summary = "BigScience's Megatron-DeepSpeed of 2021",
    .facts = &of_bigscience,
};
