/*
 * framework_megatron.c: Megatron-LM and what is built on its core, and what
 * they do unless told otherwise.
 *
 * Sources, read in 2025 and 2026:
 *   megatron-2021, megatron
 *               Megatron-LM training/arguments.py: overlap_grad_reduce and
 *               overlap_param_gather are off unless given (pages that measure
 *               speed with a distributed optimizer give them);
 *               make_vocab_size_divisible_by 128 x tp; bf16 gradients add up
 *               in f32 (accumulate_allreduce_grads_in_fp32), fp16 ones in fp16;
 *               --attention-dropout and --hidden-dropout 0.1;
 *               vocab_parallel_cross_entropy unless fused by
 *               --cross-entropy-loss-fusion; gradient_accumulation_fusion is
 *               of 2022, for fp16 of its end (Apex' wgrad_gemm_accum_fp16),
 *               bf16 came with it
 *   nemo        Megatron-Bridge and NeMo performance recipes: overlap of
 *               gradients, parameters and TP on; grad_reduce_in_fp32 off;
 *               NeMo-Framework-Launcher conf/training/gpt3, of the recipes
 *               for speed too: hidden_dropout 0.1; Llama and Nemotron 0.0
 *   megatron-bridge
 *               recipes: cross_entropy_fusion_impl "te"; moe_router_fusion and
 *               moe_permute_fusion
 *
 * Transfers between stages are one batch each where stages have no chunks:
 * Megatron-LM waits for the device after each (core/model_parallel_config.py:
 * batch_p2p_sync; p2p_communication.py before it, since 2021), and so does what
 * is built on it, but for DeepSpeed, whose engine has transfers of its own.
 */
#include "frameworks/framework_list.h"

static const fr_framework_facts of_core = {
    .is_overlap = true,
    .is_gather_overlap = true,
    .is_vocab_padded = true,
    .has_megatron_buckets = true,
    .is_p2p_sync = true,
    .gpt_dropout = 0.1,
    .has_sequence_parallel = true,
};

const fr_framework fr_framework_megatron = {
    .name = "megatron",
    .summary = "Megatron-LM on Megatron Core",
    .aliases = {"megatron-core"},
    .facts = &of_core,
    .target = &fr_target_megatron,
    .checks = &fr_target_megatron,
    .reader = &fr_config_megatron,
    .writer = &fr_exporter_megatron,
    .logs = {&fr_runlog_megatron},
};

static const fr_framework_facts of_2021 = {
    .is_vocab_padded = true,
    .has_megatron_buckets = true,
    .is_p2p_sync = true,
    .is_grad_added_apart = true,
    .is_local_ddp = true,
    .is_unfused = true, /* --use-flash-attn is off unless given */
    .gpt_dropout = 0.1,
};

const fr_framework fr_framework_megatron_2021 = {
    .name = "megatron-2021",
    .summary = "Megatron-LM of 2021, before Megatron Core",
    .facts = &of_2021,
    .checks = &fr_target_megatron,
};

static const fr_framework_facts of_bridge = {
    .scaling = FR_SCALING_CURRENT,
    .is_overlap = true,
    .is_gather_overlap = true,
    .is_tp_overlap = true,
    .is_loss_fused = true,
    .is_routing_fused = true,
    .is_vocab_padded = true,
    .has_megatron_buckets = true,
    .is_p2p_sync = true,
    .is_bf16_grad = true,
    .has_sequence_parallel = true,
};

const fr_framework fr_framework_megatron_bridge = {
    .name = "megatron-bridge",
    .summary = "Megatron-Bridge, a library over Megatron Core",
    .facts = &of_bridge,
    .target = &fr_target_megatron_bridge,
    .checks = &fr_target_megatron_bridge,
    .reader = &fr_config_megatron_bridge,
    .writer = &fr_exporter_megatron_bridge,
};

static const fr_framework_facts of_nemo = {
    .gpt_dropout = 0.1,
    .is_overlap = true,
    .is_gather_overlap = true,
    .is_tp_overlap = true,
    .is_vocab_padded = true,
    .has_megatron_buckets = true,
    .is_p2p_sync = true,
    .is_bf16_grad = true,
    .has_sequence_parallel = true,
};

const fr_framework fr_framework_nemo = {
    .name = "nemo",
    .summary = "NeMo over Megatron Core, before Megatron-Bridge",
    .facts = &of_nemo,
    .checks = &fr_target_megatron,
    .reader = &fr_config_nemo,
    .logs = {&fr_runlog_nemo},
};
