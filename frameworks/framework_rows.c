/*
 * framework.c: what training frameworks do unless told otherwise.
 *
 * Sources, read in 2025 and 2026:
 *   megatron    Megatron-LM training/arguments.py: overlap_grad_reduce and
 *               overlap_param_gather are off unless given (pages that measure
 *               speed with a distributed optimizer give them);
 *               make_vocab_size_divisible_by 128 x tp; bf16 gradients add up
 *               in f32 (accumulate_allreduce_grads_in_fp32), fp16 ones in fp16
 *   nemo        Megatron-Bridge and NeMo performance recipes: overlap of
 *               gradients, parameters and TP on; grad_reduce_in_fp32 off
 *   deepspeed   zero_optimization: overlap_comm is on for stage 3 alone;
 *               stage 3 gathers each parameter by itself (0.3 of 2021:
 *               runtime/zero/stage3.py; parameters below
 *               stage3_param_persistence_threshold stay, and what is used
 *               again within stage3_max_reuse_distance elements)
 *   bigscience  DeepSpeed 0.3.13 to 0.4: runtime/zero/stage1.py
 *               (reduce_gradients, get_flat_sub_partitions)
 *   composer    FSDP: mixed_precision DEFAULT reduces in f32
 *   torchtitan  FSDP2 with reduce dtype f32; TP implies sequence parallel;
 *               context parallel gathers keys and values; a pipeline splits
 *               the local batch into as many micro-batches as it has ranks
 *
 *   nanotron    pipeline_parallel/p2p.py: before each tensor go its shape and
 *               strides, which both sides read on the host (_send_meta,
 *               _recv_meta); optim/zero.py gathers after the step; flash_attn's
 *               varlen kernel, its Triton norms and rotation
 *               (models/llama.py, nn/layer_norm.py)
 *
 * Transfers between stages are one batch each where stages have no chunks:
 * Megatron-LM waits for the device after each (core/model_parallel_config.py:
 * batch_p2p_sync; p2p_communication.py before it, since 2021), and so does what
 * is built on it, but for DeepSpeed, whose engine has transfers of its own.
 *
 * What runs around the products:
 *   megatron    arguments.py: --attention-dropout and --hidden-dropout 0.1;
 *               vocab_parallel_cross_entropy unless fused by
 *               --cross-entropy-loss-fusion; gradient_accumulation_fusion is
 *               of 2022, for fp16 of its end (Apex' wgrad_gemm_accum_fp16),
 *               bf16 came with it
 *   nemo        NeMo-Framework-Launcher conf/training/gpt3, of the recipes
 *               for speed too: hidden_dropout 0.1; Llama and Nemotron 0.0
 *   bridge      recipes: cross_entropy_fusion_impl "te"; moe_router_fusion and
 *               moe_permute_fusion
 *   foundry     setup.py of 2023: flash-attn 1.0.x and xentropy-cuda-lib, of
 *               which MPT's loss_fn fused_crossentropy is made;
 *               use_train_metrics is on unless told otherwise
 *               (models/mpt/modeling_mpt.py): LanguageCrossEntropy and
 *               LanguagePerplexity, each a cross entropy of its own
 *   grace-dl    sands-lab/grace at fd3a7f4: Communicator.step() for each tensor
 *               (grace_dl/tensorflow/__init__.py), Horovod 0.21 with TensorFlow
 *               1.15 or PyTorch 1.7 (INSTALLING.md)
 *   pytorch     checkpoints of FSDP are not reentrant (checkpoint_wrapper.py)
 *               and stop when backward has its tensors (utils/checkpoint.py,
 *               set_checkpoint_early_stop); reentrant ones run to the end:
 *               Megatron-LM, DeepSpeed, Composer and LLM Foundry
 *               (activation_checkpointing_reentrant), nanotron
 *               (CheckpointFunction).  SDPA's FlashAttention-2; it takes cuDNN
 *               first on Hopper and Blackwell where that is later than 9.15.0
 *               (ATen/native/transformers/cuda/sdp_utils.cpp,
 *               check_prefer_cudnn_attention; the wheels since 2.11): such
 *               rows say cuDNN
 *   torchtitan  SDPA's FlashAttention-2; cuDNN first on Blackwell since pull
 *               request 1196 of May 2025, on all devices since 1776 of October
 *               (models/common/attention.py): such rows say cuDNN;
 *               early_stop=False (distributed/activation_checkpoint.py, since
 *               pull request 1580 of August 2025); eager unless torch.compile
 *               is said;
 *               the loss is compiled since components/loss.py of 2025 (before,
 *               train.py: "compiling loss function causes CUDA errors"): the
 *               row says "compiled loss" where it was
 */
#include "program/lower/framework/framework.h"

const fr_framework fr_frameworks[FR_FRAMEWORK_N] = {
    [FR_FRAMEWORK_TORCHTITAN] = {.name = "torchtitan",
                                 .target = "torchtitan",
                                 .is_overlap = true,
                                 .is_gather_overlap = true,
                                 .is_per_op_recompute = true,
                                 .is_mbs_local = true,
                                 .kernels = FR_KERNELS_EAGER,
                                 .flash_kind = FR_FLASH_2,
                                 .cp_kind = FR_CP_ALL_GATHER,
                                 .has_sequence_parallel = true},
    [FR_FRAMEWORK_MEGATRON_BRIDGE] = {.name = "megatron-bridge",
                                      .target = "megatron",
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
                                      .has_sequence_parallel = true},
    [FR_FRAMEWORK_NEMO] = {.name = "nemo",
                           .target = "megatron",
                           .gpt_dropout = 0.1,
                           .is_overlap = true,
                           .is_gather_overlap = true,
                           .is_tp_overlap = true,
                           .is_vocab_padded = true,
                           .has_megatron_buckets = true,
                           .is_p2p_sync = true,
                           .is_bf16_grad = true,
                           .has_sequence_parallel = true},
    [FR_FRAMEWORK_MEGATRON_CORE] = {.name = "megatron-core",
                                    .target = "megatron",
                                    .is_overlap = true,
                                    .is_gather_overlap = true,
                                    .is_vocab_padded = true,
                                    .has_megatron_buckets = true,
                                    .is_p2p_sync = true,
                                    .gpt_dropout = 0.1,
                                    .has_sequence_parallel = true},
    [FR_FRAMEWORK_DEEPSPEED] = {.name = "deepspeed",
                                .target = "deepspeed",
                                .zero_unit = FR_ZERO_UNIT_PARAMETER,
                                .persistent_below = 100000,
                                .max_reuse_distance = 1000000000,
                                .max_live = 1000000000,
                                .is_vocab_padded = true,
                                .has_megatron_buckets = true,
                                .is_grad_added_apart = true,
                                .gpt_dropout = 0.1},
    [FR_FRAMEWORK_BIGSCIENCE] = {.name = "bigscience",
                                 .is_vocab_padded = true,
                                 .has_megatron_buckets = true,
                                 .is_grad_added_apart = true,
                                 .is_grad_listed = true,
                                 .gpt_dropout = 0.1},
    [FR_FRAMEWORK_MEGATRON] =
        {.name = "megatron",
         .target = "megatron",
         .is_vocab_padded = true,
         .has_megatron_buckets = true,
         .is_p2p_sync = true,
         .is_grad_added_apart = true,
         .is_local_ddp = true,
         .is_unfused = true, /* --use-flash-attn is off unless given */
         .gpt_dropout = 0.1},
    [FR_FRAMEWORK_FOUNDRY] = {.name = "foundry",
                              .is_overlap = true,
                              .is_gather_overlap = true,
                              .kernels = FR_KERNELS_EAGER,
                              .flash_kind = FR_FLASH_1,
                              .is_loss_fused = true,
                              .n_loss_metrics = 2},
    [FR_FRAMEWORK_COMPOSER] = {.name = "composer",
                               .is_overlap = true,
                               .is_gather_overlap = true,
                               .kernels = FR_KERNELS_EAGER,
                               .flash_kind = FR_FLASH_2},
    [FR_FRAMEWORK_NANOTRON] = {.name = "nanotron",
                               .is_overlap = true,
                               .is_p2p_sync = true,
                               .kernels = FR_KERNELS_EAGER,
                               .flash_kind = FR_FLASH_2,
                               .is_norm_fused = true},
    [FR_FRAMEWORK_FORERUN] = {.name = "forerun",
                              .target = "forerun",
                              .is_overlap = true,
                              .is_gather_overlap = true,
                              .kernels = FR_KERNELS_OWN},
    [FR_FRAMEWORK_GRACE] = {.name = "grace-dl",
                            .is_overlap = true,
                            .is_gather_overlap = true,
                            .kernels = FR_KERNELS_EAGER,
                            .compress_by = FR_COMPRESS_TENSOR,
                            .flash_kind = FR_FLASH_2},
    /* PyTorch's DDP and FSDP, and what is built on them. */
    [FR_FRAMEWORK_PYTORCH] = {.name = "pytorch",
                              .is_overlap = true,
                              .is_gather_overlap = true,
                              .is_early_stop = true,
                              .kernels = FR_KERNELS_EAGER,
                              .flash_kind = FR_FLASH_2},
};
