/*
 * framework_olmo_core.c: OLMo-core of Ai2, and what it does unless told
 * otherwise: layers of PyTorch under fully_shard or DDP (allenai/OLMo-core at
 * fa6c5014, train/train_module/transformer/common.py, parallelize_model; norms
 * and rotation are PyTorch's, nn/layer_norm.py and nn/rope.py).
 */
#include "frameworks/framework_list.h"

static const fr_framework_facts facts = {
    .is_overlap = true,
    .is_gather_overlap = true,
    .is_early_stop = true,
    .kernels = FR_KERNELS_EAGER,
    .flash_kind = FR_FLASH_2,
};

const fr_framework fr_framework_olmo_core = {
    .name = "olmo-core",
    .summary = "OLMo-core of Ai2",
    .facts = &facts,
    .checks = &fr_target_fsdp2,
    .reader = &fr_config_olmo_core,
};
