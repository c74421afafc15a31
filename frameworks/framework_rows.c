/*
 * framework_rows.c: frameworks without a folder of their own, and what they do
 * unless told otherwise.
 *
 * Sources, read in 2025 and 2026:
 *   megatron-deepspeed-2021
 *               zero_optimization: overlap_comm is on for stage 3 alone;
 *               stage 3 gathers each parameter by itself (0.3 of 2021:
 *               runtime/zero/stage3.py; parameters below
 *               stage3_param_persistence_threshold stay, and what is used
 *               again within stage3_max_reuse_distance elements)
 *   bigscience  DeepSpeed 0.3.13 to 0.4: runtime/zero/stage1.py
 *               (reduce_gradients, get_flat_sub_partitions)
 *   composer    FSDP: mixed_precision DEFAULT reduces in f32
 *   nanotron    pipeline_parallel/p2p.py: before each tensor go its shape and
 *               strides, which both sides read on the host (_send_meta,
 *               _recv_meta); optim/zero.py gathers after the step; flash_attn's
 *               varlen kernel, its Triton norms and rotation
 *               (models/llama.py, nn/layer_norm.py)
 *   llm-foundry setup.py of 2023: flash-attn 1.0.x and xentropy-cuda-lib, of
 *               which MPT's loss_fn fused_crossentropy is made;
 *               use_train_metrics is on unless told otherwise
 *               (models/mpt/modeling_mpt.py): LanguageCrossEntropy and
 *               LanguagePerplexity, each a cross entropy of its own
 *   grace       sands-lab/grace at fd3a7f4: Communicator.step() for each tensor
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
 */
#include "frameworks/framework_list.h"

static const fr_framework_facts own = {
    .is_overlap = true,
    .is_gather_overlap = true,
    .kernels = FR_KERNELS_OWN,
};

const fr_framework fr_framework_forerun = {
    .name = "forerun",
    .summary = "forerun's own runtime",
    .facts = &own,
    .target = &fr_target_forerun,
    .checks = &fr_target_forerun,
};

/* ---- DeepSpeed ----------------------------------------------------------- */

const fr_framework fr_framework_deepspeed = {
    .name = "deepspeed",
    .summary = "DeepSpeed: ds_config.json",
    .choices = "choose megatron-deepspeed-2021 for the layers of Megatron-LM, "
               "or pytorch for other models",
    .target = &fr_target_deepspeed,
    .checks = &fr_target_deepspeed,
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

/* ---- PyTorch ------------------------------------------------------------- */

/* DDP, FSDP, and what is built on them: a script of a user does more than the
 * one that is exported, so that its checks are not theirs. */
static const fr_framework_facts of_pytorch = {
    .is_overlap = true,
    .is_gather_overlap = true,
    .is_early_stop = true,
    .kernels = FR_KERNELS_EAGER,
    .flash_kind = FR_FLASH_2,
};

const fr_framework fr_framework_ddp = {
    .name = "ddp",
    .summary = "DistributedDataParallel of PyTorch",
    .facts = &of_pytorch,
    .target = &fr_target_ddp,
};

const fr_framework fr_framework_fsdp2 = {
    .name = "fsdp2",
    .summary = "fully_shard of PyTorch (FSDP2)",
    .facts = &of_pytorch,
    .target = &fr_target_fsdp2,
};

/* ZeRO 3 is FSDP2. */
static const fr_framework *choose_wrapper(const fr_plan *plan)
{
    return plan->zero_stage == 3 ? &fr_framework_fsdp2 : &fr_framework_ddp;
}

const fr_framework fr_framework_pytorch = {
    .name = "pytorch",
    .summary = "fsdp2 with ZeRO 3, otherwise ddp",
    .facts = &of_pytorch,
    .target = &fr_target_pytorch,
    .choose = choose_wrapper,
};

const fr_framework fr_framework_accelerate = {
    .name = "accelerate",
    .summary = "Accelerate of Hugging Face",
    .target = &fr_target_accelerate,
    .checks = &fr_target_accelerate,
};

/* ---- others -------------------------------------------------------------- */

static const fr_framework_facts of_foundry = {
    .is_overlap = true,
    .is_gather_overlap = true,
    .kernels = FR_KERNELS_EAGER,
    .flash_kind = FR_FLASH_1,
    .is_loss_fused = true,
    .n_loss_metrics = 2,
};

const fr_framework fr_framework_llm_foundry = {
    .name = "llm-foundry",
    .summary = "LLM Foundry of MosaicML, 2023",
    .aliases = {"foundry"},
    .facts = &of_foundry,
};

static const fr_framework_facts of_composer = {
    .is_overlap = true,
    .is_gather_overlap = true,
    .kernels = FR_KERNELS_EAGER,
    .flash_kind = FR_FLASH_2,
};

const fr_framework fr_framework_composer = {
    .name = "composer",
    .summary = "Composer of MosaicML",
    .facts = &of_composer,
};

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
};

const fr_framework fr_framework_horovod = {
    .name = "horovod",
    .summary = "Horovod over PyTorch",
    .target = &fr_target_horovod,
    .checks = &fr_target_horovod,
};

const fr_framework fr_framework_ray_train = {
    .name = "ray-train",
    .summary = "Ray Train over ddp or fsdp2",
    .target = &fr_target_ray_train,
    .checks = &fr_target_ray_train,
};

const fr_framework fr_framework_tensorflow = {
    .name = "tensorflow",
    .summary = "TensorFlow, MultiWorkerMirroredStrategy",
    .target = &fr_target_tensorflow,
    .checks = &fr_target_tensorflow,
};

const fr_framework fr_framework_jax = {
    .name = "jax",
    .summary = "JAX, sharded by its compiler",
    .target = &fr_target_jax,
    .checks = &fr_target_jax,
};

static const fr_framework_facts of_grace = {
    .is_overlap = true,
    .is_gather_overlap = true,
    .kernels = FR_KERNELS_EAGER,
    .compress_by = FR_COMPRESS_TENSOR,
    .flash_kind = FR_FLASH_2,
};

const fr_framework fr_framework_grace = {
    .name = "grace",
    .summary = "GRACE: compressors over Horovod, 2021",
    .aliases = {"grace-dl"},
    .facts = &of_grace,
};
