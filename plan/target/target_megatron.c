/*
 * target_megatron.c: Megatron-LM (pretrain_gpt.py), as of
 * megatron/training/arguments.py and megatron/core/transformer/
 * transformer_config.py.  Sharding of gradients and parameters is Megatron
 * FSDP, which has no pipeline.
 */
#include "plan/schedule/schedule.h"
#include "plan/target/target_list.h"
#include "plan/target/target_rows.h"

static FR_TARGET_RULE(has_rows_of_experts)
{
    (void)model;
    (void)job;
    return plan->tp == 1 || plan->ep == 1 || plan->is_sequence_parallel;
}

static FR_TARGET_RULE(overlaps_with_rows)
{
    (void)model;
    (void)job;
    return !plan->is_tp_overlap || plan->is_sequence_parallel;
}

static FR_TARGET_RULE(has_combined_1f1b_of_16_bits)
{
    (void)job;
    fr_dtype base = fr_plan_storage_dtype(plan);
    return !plan->is_ep_overlap ||
           ((base == FR_DTYPE_BF16 || base == FR_DTYPE_F16) &&
            model->n_mtp_layers <= 1);
}

static const fr_target_rule rules[] = {
    {.text = "layers % (pp x vpp) == 0, or a layout of its own",
     .source = "arguments.py, validate_args",
     .fields = FR_PLAN_BIT(PP) | FR_PLAN_BIT(VPP) | FR_PLAN_BIT(LAYER_SPLIT),
     .holds = fr_has_even_stages},
    {.text = "sequence parallel with tp and ep",
     .source = "arguments.py, validate_args",
     .fields =
         FR_PLAN_BIT(TP) | FR_PLAN_BIT(EP) | FR_PLAN_BIT(SEQUENCE_PARALLEL),
     .holds = has_rows_of_experts},
    {.text = "sequence parallel with tp-comm-overlap",
     .source = "arguments.py, validate_args",
     .fields = FR_PLAN_BIT(TP_OVERLAP) | FR_PLAN_BIT(SEQUENCE_PARALLEL),
     .holds = overlaps_with_rows},
    {.text = "bf16 or f16 and at most one layer of later tokens with "
             "ep-overlap",
     .source = "transformer_config.py, __post_init__",
     .fields = FR_PLAN_BIT(EP_OVERLAP) | FR_PLAN_BIT(PRECISION),
     .holds = has_combined_1f1b_of_16_bits},
    {.text = "overlap-grad-reduce with overlap-param-gather",
     .source = "arguments.py, validate_args",
     .fields =
         FR_PLAN_BIT(ZERO) | FR_PLAN_BIT(GATHER_OVERLAP) | FR_PLAN_BIT(OVERLAP),
     .holds = fr_gathers_with_reduction},
    {.text = "pp 1 with sharded gradients or parameters",
     .source = "arguments.py, validate_args",
     .fields = FR_PLAN_BIT(ZERO) | FR_PLAN_BIT(PP),
     .holds = fr_shards_without_pipeline},
    {.text = NULL}};

static const fr_target_field fields[FR_PLAN_FIELDS_N] = {
    FR_TARGET_FIELDS_OF_KERNELS,
    FR_TARGET_FIELDS_OF_NCCL,
    [FR_PLAN_DP] = FR_IMPLIED("the ranks that the other degrees leave"),
    [FR_PLAN_TP] = FR_WRITTEN("--tensor-model-parallel-size"),
    [FR_PLAN_PP] = FR_WRITTEN("--pipeline-model-parallel-size"),
    [FR_PLAN_CP] = FR_WRITTEN("--context-parallel-size"),
    [FR_PLAN_EP] = FR_WRITTEN("--expert-model-parallel-size"),
    [FR_PLAN_VPP] = FR_WRITTEN("--num-virtual-stages-per-pipeline-rank"),
    [FR_PLAN_MICRO_BATCH] = FR_WRITTEN("--micro-batch-size"),
    [FR_PLAN_SCHEDULE] = FR_IMPLIED_ONLY(
        FR_IS(FR_SCHEDULE_1F1B) | FR_IS(FR_SCHEDULE_INTERLEAVED),
        "1f1b without virtual stages, interleaved with them",
        "its schedules are 1f1b and interleaved"),
    [FR_PLAN_ZERO] = FR_WRITTEN("--use-distributed-optimizer, "
                                "--use-megatron-fsdp"),
    [FR_PLAN_RECOMPUTE] = FR_WRITTEN("--recompute-granularity"),
    [FR_PLAN_SEQUENCE_PARALLEL] = FR_WRITTEN("--sequence-parallel"),
    [FR_PLAN_OVERLAP] = FR_WRITTEN("--overlap-grad-reduce"),
    [FR_PLAN_BUCKET] = FR_WRITTEN("--ddp-bucket-size"),
    [FR_PLAN_COMPRESS] = FR_WRITTEN_ONLY(
        FR_IS(FR_COMPRESSOR_NONE) | FR_IS(FR_COMPRESSOR_BF16),
        "--grad-reduce-in-bf16", "it sends gradients as they are, or as bf16"),
    [FR_PLAN_COMPRESSOR_RANK] = FR_REFUSED("it has no PowerSGD"),
    [FR_PLAN_COMPRESSOR_DENSITY] = FR_REFUSED("it has no top-k"),
    [FR_PLAN_ERROR_FEEDBACK] = FR_REFUSED("it keeps no residuals"),
    [FR_PLAN_RANK_ORDER] = FR_WRITTEN_ONLY(
        FR_IS(FR_RANK_ORDER_TP_DP_PP) | FR_IS(FR_RANK_ORDER_TP_PP_DP),
        "--use-tp-pp-dp-mapping", "its orders are tp-dp-pp and tp-pp-dp"),
    [FR_PLAN_LAYER_SPLIT] = FR_WRITTEN("--pipeline-model-parallel-layout"),
    [FR_PLAN_PRECISION] = FR_WRITTEN("--bf16, --fp16, --fp8-format"),
    [FR_PLAN_GRAD_DTYPE] = FR_WRITTEN("--accumulate-allreduce-grads-in-fp32"),
    [FR_PLAN_FLASH_ATTENTION] = FR_WRITTEN("--use-flash-attn"),
    [FR_PLAN_SCALING] = FR_WRITTEN("--fp8-recipe"),
    [FR_PLAN_CUDA_GRAPHS] = FR_WRITTEN("--cuda-graph-impl"),
    [FR_PLAN_LOSS_FUSED] = FR_WRITTEN("--cross-entropy-loss-fusion"),
    [FR_PLAN_RECOMPUTE_PARTS] = FR_WRITTEN("--recompute-modules"),
    [FR_PLAN_RECOMPUTE_LAYERS] = FR_WRITTEN("--recompute-num-layers"),
    [FR_PLAN_ZERO_GROUP] = FR_WRITTEN("--num-distributed-optimizer-instances"),
    [FR_PLAN_ZERO_RESHARD] = FR_REFUSED("Megatron FSDP drops what it gathered"),
    [FR_PLAN_ZERO_PREFETCH] = FR_PREDICTED("it gathers ahead by bytes"),
    [FR_PLAN_ZERO_UNIT] = FR_REFUSED("Megatron FSDP gathers by layer"),
    [FR_PLAN_GATHER_OVERLAP] = FR_WRITTEN("--overlap-param-gather"),
    [FR_PLAN_TP_OVERLAP] = FR_WRITTEN("--tp-comm-overlap"),
    [FR_PLAN_EP_OVERLAP] = FR_WRITTEN("--overlap-moe-expert-parallel-comm"),
    [FR_PLAN_CP_KIND] = FR_WRITTEN("--cp-comm-type"),
    [FR_PLAN_ETP] = FR_WRITTEN("--expert-tensor-parallel-size"),
    [FR_PLAN_EXPERT_DISPATCH] = FR_WRITTEN("--moe-token-dispatcher-type"),
    [FR_PLAN_OFFLOAD_OPTIMIZER] = FR_WRITTEN("--optimizer-cpu-offload"),
    [FR_PLAN_OFFLOAD_ACTIVATIONS] = FR_WRITTEN("--cpu-offloading-num-layers"),
};

static const char *const versions[] = {"core-0.8", "core-0.16", NULL};

const fr_target fr_target_megatron = {
    .name = "megatron",
    .summary = "arguments of Megatron-LM's pretrain_gpt.py",
    .versions = versions,
    .fields = fields,
    .rules = rules,
};
