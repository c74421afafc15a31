/*
 * framework_script.c: PyTorch and others that a training script of the user's
 * calls, and what they do unless told otherwise.
 *
 * Sources, read in 2025 and 2026: checkpoints of FSDP are not reentrant
 * (checkpoint_wrapper.py) and stop when backward has its tensors
 * (utils/checkpoint.py, set_checkpoint_early_stop); reentrant ones run to the
 * end: those of Megatron-LM and DeepSpeed.  SDPA's FlashAttention-2; it takes
 * cuDNN first on Hopper and Blackwell where that is later than 9.15.0
 * (ATen/native/transformers/cuda/sdp_utils.cpp, check_prefer_cudnn_attention;
 * the wheels since 2.11): such rows say cuDNN.
 */
#include "frameworks/framework_list.h"

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
    .writer = &fr_exporter_ddp,
};

const fr_framework fr_framework_fsdp2 = {
    .name = "fsdp2",
    .summary = "fully_shard of PyTorch (FSDP2)",
    .facts = &of_pytorch,
    .target = &fr_target_fsdp2,
    .writer = &fr_exporter_fsdp2,
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
    .logs = {&fr_runlog_lightning, &fr_runlog_torchtune},
    .choose = choose_wrapper,
};

const fr_framework fr_framework_horovod = {
    .name = "horovod",
    .summary = "Horovod over PyTorch",
    .facts = &of_pytorch,
    .target = &fr_target_horovod,
    .checks = &fr_target_horovod,
    .writer = &fr_exporter_horovod,
};

const fr_framework fr_framework_ray_train = {
    .name = "ray-train",
    .summary = "Ray Train over ddp or fsdp2",
    .facts = &of_pytorch,
    .target = &fr_target_ray_train,
    .checks = &fr_target_ray_train,
    .writer = &fr_exporter_ray_train,
};

/* The script is one tf.function without XLA, whose attention is made of
 * products and a softmax. */
static const fr_framework_facts of_tensorflow = {
    .is_overlap = true,
    .is_gather_overlap = true,
    .is_unfused = true,
    .kernels = FR_KERNELS_EAGER,
};

const fr_framework fr_framework_tensorflow = {
    .name = "tensorflow",
    .summary = "TensorFlow, MultiWorkerMirroredStrategy",
    .facts = &of_tensorflow,
    .target = &fr_target_tensorflow,
    .checks = &fr_target_tensorflow,
    .writer = &fr_exporter_tensorflow,
};

/* XLA compiles the whole step and overlaps its collectives.  The script leaves
 * the implementation of jax.nn.dot_product_attention to JAX; a fused one is
 * assumed. */
static const fr_framework_facts of_jax = {
    .is_overlap = true,
    .is_gather_overlap = true,
    .kernels = FR_KERNELS_COMPILED,
};

const fr_framework fr_framework_jax = {
    .name = "jax",
    .summary = "JAX, sharded by its compiler",
    .facts = &of_jax,
    .target = &fr_target_jax,
    .checks = &fr_target_jax,
    .writer = &fr_exporter_jax,
};
