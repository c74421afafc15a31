/*
 * target_deepspeed.c: DeepSpeed.  deepspeed/runtime/pipe/engine.py: "ZeRO-2
 * and ZeRO-3 are incompatible with pipeline parallelism"; its schedule is 1F1B
 * (runtime/pipe/schedule.py, TrainSchedule); sequence parallelism is Ulysses.
 */
#include "plan/schedule/schedule.h"
#include "plan/target/target_list.h"
#include "plan/target/target_rows.h"

static const fr_target_rule rules[] = {
    {.text = "pp 1 with ZeRO 2 and 3",
     .source = "runtime/pipe/engine.py, PipelineEngine",
     .fields = FR_PLAN_BIT(ZERO) | FR_PLAN_BIT(PP),
     .holds = fr_shards_without_pipeline},
    {.text = NULL}};

static const fr_target_field fields[FR_PLAN_FIELDS_N] = {
    FR_TARGET_FIELDS_OF_KERNELS,
    FR_TARGET_FIELDS_OF_NCCL,
    [FR_PLAN_DP] = FR_IMPLIED("the ranks that the other degrees leave"),
    [FR_PLAN_TP] = FR_WRITTEN("tensor_parallel.autotp_size"),
    [FR_PLAN_PP] = FR_WRITTEN("pipeline.stages"),
    [FR_PLAN_CP] = FR_WRITTEN("sequence_parallel_size"),
    [FR_PLAN_EP] = FR_WRITTEN("expert_parallel.autoep_size"),
    [FR_PLAN_VPP] = FR_REFUSED("one chunk per rank"),
    [FR_PLAN_MICRO_BATCH] = FR_WRITTEN("train_micro_batch_size_per_gpu"),
    [FR_PLAN_SCHEDULE] =
        FR_IMPLIED_ONLY(FR_IS(FR_SCHEDULE_1F1B), "its pipeline is 1f1b",
                        "its pipeline is 1f1b (runtime/pipe/schedule.py)"),
    [FR_PLAN_ZERO] = FR_WRITTEN("zero_optimization.stage"),
    [FR_PLAN_RECOMPUTE] = FR_WRITTEN("activation_checkpointing"),
    [FR_PLAN_SEQUENCE_PARALLEL] = FR_REFUSED("AutoTP has no sequence parallel"),
    [FR_PLAN_OVERLAP] = FR_WRITTEN("zero_optimization.overlap_comm"),
    [FR_PLAN_BUCKET] = FR_WRITTEN("zero_optimization.reduce_bucket_size"),
    [FR_PLAN_COMPRESS] =
        FR_WRITTEN_ONLY(FR_IS(FR_COMPRESSOR_NONE) | FR_IS(FR_COMPRESSOR_BF16),
                        "communication_data_type",
                        "it sends gradients as they are, or as bf16"),
    [FR_PLAN_COMPRESSOR_RANK] = FR_REFUSED("it has no PowerSGD"),
    [FR_PLAN_COMPRESS_BY] = FR_REFUSED("it compresses no gradients"),
    [FR_PLAN_COMPRESSOR_DENSITY] = FR_REFUSED("it has no top-k"),
    [FR_PLAN_ERROR_FEEDBACK] = FR_REFUSED("it keeps no residuals"),
    [FR_PLAN_RANK_ORDER] = FR_IMPLIED_ONLY(FR_IS(FR_RANK_ORDER_TP_DP_PP),
                                           "PipeModelDataParallelTopology",
                                           "its order is "
                                           "tp-dp-pp"),
    [FR_PLAN_LAYER_SPLIT] = FR_REFUSED("it splits layers by itself"),
    [FR_PLAN_PRECISION] = FR_WRITTEN("bf16.enabled, fp16.enabled"),
    [FR_PLAN_GRAD_DTYPE] = FR_WRITTEN("data_types.grad_accum_dtype"),
    [FR_PLAN_FLASH_ATTENTION] = FR_PREDICTED("the model's code decides it"),
    [FR_PLAN_SCALING] = FR_PREDICTED("the model's code decides it"),
    [FR_PLAN_CUDA_GRAPHS] = FR_REFUSED("it has no such key"),
    [FR_PLAN_LOSS_FUSED] = FR_PREDICTED("the model's code decides it"),
    [FR_PLAN_RECOMPUTE_PARTS] = FR_REFUSED("it makes whole layers again"),
    [FR_PLAN_RECOMPUTE_LAYERS] = FR_REFUSED("it makes whole chunks again"),
    [FR_PLAN_ZERO_GROUP] = FR_WRITTEN("zero_optimization.mics_shard_size"),
    [FR_PLAN_ZERO_RESHARD] = FR_WRITTEN("stage3_max_reuse_distance"),
    [FR_PLAN_ZERO_PREFETCH] = FR_WRITTEN("stage3_prefetch_bucket_size"),
    [FR_PLAN_ZERO_UNIT] = FR_PREDICTED("how a version gathers"),
    [FR_PLAN_GATHER_OVERLAP] = FR_PREDICTED("it gathers at the end of a step"),
    [FR_PLAN_TP_OVERLAP] = FR_WRITTEN("tensor_parallel.tp_overlap_comm"),
    [FR_PLAN_EP_OVERLAP] = FR_REFUSED("it has no combined 1F1B"),
    [FR_PLAN_CP_KIND] = FR_IMPLIED_ONLY(FR_IS(FR_CP_ALL_TO_ALL),
                                        "its sequence parallelism is Ulysses",
                                        "its sequence parallelism is Ulysses: "
                                        "cp-kind all-to-all"),
    [FR_PLAN_ETP] = FR_WRITTEN("expert_parallel.expert_tensor_parallel_size"),
    [FR_PLAN_EXPERT_DISPATCH] = FR_REFUSED("its dispatch is all-to-all"),
    [FR_PLAN_OFFLOAD_OPTIMIZER] =
        FR_WRITTEN("zero_optimization.offload_optimizer"),
    [FR_PLAN_OFFLOAD_ACTIVATIONS] =
        FR_WRITTEN("activation_checkpointing.cpu_checkpointing"),
};

const fr_target fr_target_deepspeed = {
    .name = "deepspeed",
    .summary = "ds_config.json of DeepSpeed",
    .fields = fields,
    .rules = rules,
};
