/*
 * target_torchtitan.c: torchtitan (torchtitan/config, docs/fsdp.md): FSDP2
 * shards parameters, gradients and optimizer together
 * (reshard_after_forward never: they stay gathered), or DDP; schedules of
 * torch.distributed.pipelining; activation checkpoints of whole layers, or of
 * all.
 */
#include "plan/target/target_list.h"
#include "plan/target/target_rows.h"

static const fr_target_rule rules[] = {{.text = NULL}};

static const fr_target_field fields[FR_PLAN_FIELDS_N] = {
    FR_TARGET_FIELDS_OF_KERNELS,
    FR_TARGET_FIELDS_OF_NCCL,
    [FR_PLAN_DP] = FR_WRITTEN("parallelism.data_parallel_replicate_degree, "
                              "data_parallel_shard_degree"),
    [FR_PLAN_TP] = FR_WRITTEN("parallelism.tensor_parallel_degree"),
    [FR_PLAN_PP] = FR_WRITTEN("parallelism.pipeline_parallel_degree"),
    [FR_PLAN_CP] = FR_WRITTEN("parallelism.context_parallel_degree"),
    [FR_PLAN_EP] = FR_WRITTEN("parallelism.expert_parallel_degree"),
    [FR_PLAN_VPP] =
        FR_WRITTEN("parallelism.pipeline_parallel_layers_per_stage"),
    [FR_PLAN_MICRO_BATCH] =
        FR_WRITTEN("parallelism.pipeline_parallel_microbatch_size"),
    [FR_PLAN_SCHEDULE] = FR_WRITTEN("parallelism.pipeline_parallel_schedule"),
    [FR_PLAN_ZERO] = FR_WRITTEN_ONLY(
        FR_IS(0) | FR_IS(3), "parallelism.data_parallel_shard_degree",
        "zero 3 is FSDP and zero 0 DDP, it has nothing between"),
    [FR_PLAN_RECOMPUTE] = FR_WRITTEN("activation_checkpoint.mode"),
    [FR_PLAN_SEQUENCE_PARALLEL] = FR_IMPLIED("always on with tp"),
    [FR_PLAN_OVERLAP] = FR_IMPLIED("FSDP and DDP reduce beside backward"),
    [FR_PLAN_BUCKET] = FR_IMPLIED("PyTorch DDP's 25 MB"),
    [FR_PLAN_COMPRESS] =
        FR_WRITTEN_ONLY(FR_IS(FR_COMPRESSOR_NONE) | FR_IS(FR_COMPRESSOR_BF16),
                        "training.mixed_precision_reduce",
                        "it sends gradients as they are, or as bf16"),
    [FR_PLAN_COMPRESSOR_RANK] = FR_REFUSED("it has no PowerSGD"),
    [FR_PLAN_COMPRESS_BY] = FR_REFUSED("it compresses no gradients"),
    [FR_PLAN_COMPRESSOR_DENSITY] = FR_REFUSED("it has no top-k"),
    [FR_PLAN_ERROR_FEEDBACK] = FR_REFUSED("it keeps no residuals"),
    [FR_PLAN_RANK_ORDER] =
        FR_IMPLIED_ONLY(FR_IS(FR_RANK_ORDER_TP_DP_PP),
                        "its mesh is pp, dp, cp, tp", "its order is tp-dp-pp"),
    [FR_PLAN_LAYER_SPLIT] = FR_WRITTEN("module_fqns_per_model_part"),
    [FR_PLAN_PRECISION] = FR_WRITTEN("training.mixed_precision_param"),
    [FR_PLAN_GRAD_DTYPE] = FR_WRITTEN("training.mixed_precision_reduce"),
    [FR_PLAN_FLASH_ATTENTION] = FR_PREDICTED("SDPA decides it"),
    [FR_PLAN_SCALING] = FR_WRITTEN("float8"),
    [FR_PLAN_CUDA_GRAPHS] = FR_REFUSED("it has no such key"),
    [FR_PLAN_LOSS_FUSED] = FR_PREDICTED("compile.components decides it"),
    [FR_PLAN_RECOMPUTE_PARTS] = FR_PREDICTED("selective is by operator"),
    [FR_PLAN_RECOMPUTE_LAYERS] = FR_REFUSED("it makes whole chunks again"),
    [FR_PLAN_ZERO_GROUP] = FR_WRITTEN("parallelism.data_parallel_shard_degree"),
    [FR_PLAN_ZERO_RESHARD] =
        FR_WRITTEN("parallelism.fsdp_reshard_after_forward"),
    [FR_PLAN_ZERO_PREFETCH] = FR_IMPLIED("FSDP2 gathers one layer ahead"),
    [FR_PLAN_ZERO_UNIT] = FR_REFUSED("FSDP2 gathers by layer"),
    [FR_PLAN_GATHER_OVERLAP] = FR_PREDICTED("of ZeRO 1 and 2 alone"),
    [FR_PLAN_TP_OVERLAP] = FR_WRITTEN("compile.enable_async_tensor_parallel"),
    [FR_PLAN_EP_OVERLAP] = FR_REFUSED("it has no combined 1F1B"),
    [FR_PLAN_CP_KIND] =
        FR_WRITTEN("parallelism.context_parallel_rotate_method"),
    [FR_PLAN_ETP] = FR_WRITTEN("parallelism.expert_tensor_parallel_degree"),
    [FR_PLAN_EXPERT_DISPATCH] = FR_REFUSED("its dispatch is all-to-all"),
    [FR_PLAN_OFFLOAD_OPTIMIZER] = FR_WRITTEN("training.enable_cpu_offload"),
    [FR_PLAN_OFFLOAD_ACTIVATIONS] = FR_REFUSED("it has no such key"),
};

const fr_target fr_target_torchtitan = {
    .name = "torchtitan",
    .summary = "a configuration of torchtitan",
    .fields = fields,
    .rules = rules,
};
