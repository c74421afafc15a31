/*
 * framework_gpt_neox.c: GPT-NeoX, layers of Megatron-LM in DeepSpeed's engine,
 * and what it does unless told otherwise.
 *
 * Sources (EleutherAI/gpt-neox at ea7aefd8): megatron/training.py hands the
 * model to deepspeed.initialize(), whose engine reduces, steps and sends
 * between stages; megatron/tokenizer/tokenizer.py, _vocab_size_with_padding:
 * 128 x tp unless make_vocab_size_divisible_by says otherwise;
 * megatron/mpu/layers.py adds gradients of weights by PyTorch; flash_attn 2.
 */
#include "frameworks/framework_list.h"

static const fr_framework_facts facts = {
    .bucket_elements = 500000000,
    .is_vocab_padded = true,
    .is_grad_added_apart = true,
    .flash_kind = FR_FLASH_2,
    .is_bf16_grad = true,
    .is_unfused = true, /* attention_config is "global" unless given */
};

const fr_framework fr_framework_gpt_neox = {
    .name = "gpt-neox",
    .summary = "GPT-NeoX of EleutherAI",
    .aliases = {"neox"},
    .facts = &facts,
    .checks = &fr_target_deepspeed,
    .reader = &fr_config_gpt_neox,
};
