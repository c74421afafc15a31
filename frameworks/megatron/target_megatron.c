/*
 * target_megatron.c: Megatron-LM (pretrain_gpt.py): what becomes of every
 * field of a plan.  Its rules stand in target_megatron_rules.c.  Sharding of
 * gradients and parameters is Megatron FSDP.
 */
#include "frameworks/framework_list.h"
#include "frameworks/megatron/target_megatron_rules.h"
#include "frameworks/target_rows.h"

const fr_target_field fr_megatron_fields[FR_PLAN_FIELDS_N] = {
    FR_TARGET_FIELDS_OF_NCCL,
    [FR_PLAN_DP] = FR_IMPLIED("no argument says it: it is the world size / "
                              "(tp x pp x cp)"),
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
    [FR_PLAN_COMPRESS] = FR_REFUSED(
        "it sends gradients as they are added up; take grad_dtype bf16"),
    [FR_PLAN_COMPRESSOR_RANK] = FR_REFUSED("it has no PowerSGD"),
    [FR_PLAN_COMPRESSOR_DENSITY] = FR_REFUSED("it has no top-k"),
    [FR_PLAN_ERROR_FEEDBACK] = FR_REFUSED("it keeps no residuals"),
    [FR_PLAN_RANK_ORDER] = FR_WRITTEN_ONLY(
        FR_IS(FR_RANK_ORDER_TP_DP_PP) | FR_IS(FR_RANK_ORDER_TP_PP_DP),
        "--use-tp-pp-dp-mapping", "its orders are tp-dp-pp and tp-pp-dp"),
    [FR_PLAN_LAYER_SPLIT] = FR_WRITTEN("--pipeline-model-parallel-layout"),
    FR_TARGET_SHARES,
    [FR_PLAN_PRECISION] = FR_WRITTEN("--bf16, --fp16, --fp8-format, "
                                     "--fp4-format, NVIDIA_TF32_OVERRIDE"),
    [FR_PLAN_GRAD_DTYPE] = FR_WRITTEN("--accumulate-allreduce-grads-in-fp32, "
                                      "--grad-reduce-in-bf16"),
    [FR_PLAN_FLASH_ATTENTION] = FR_WRITTEN("--attention-backend"),
    [FR_PLAN_RECOMPUTE_PARTS] = FR_WRITTEN("--recompute-modules"),
    [FR_PLAN_RECOMPUTE_LAYERS] = FR_WRITTEN("--recompute-num-layers"),
    [FR_PLAN_ZERO_GROUP] = FR_WRITTEN("--num-distributed-optimizer-instances"),
    [FR_PLAN_ZERO_RESHARD] = FR_REFUSED("Megatron FSDP drops what it gathered"),
    [FR_PLAN_ZERO_PREFETCH] = FR_PREDICTED("Megatron FSDP gathers ahead by "
                                           "bytes"),
    [FR_PLAN_GATHER_OVERLAP] = FR_WRITTEN("--overlap-param-gather"),
    [FR_PLAN_TP_OVERLAP] = FR_WRITTEN("--tp-comm-overlap"),
    [FR_PLAN_EP_OVERLAP] = FR_WRITTEN("--overlap-moe-expert-parallel-comm"),
    [FR_PLAN_CP_KIND] = FR_WRITTEN("--cp-comm-type"),
    [FR_PLAN_ETP] = FR_WRITTEN("--expert-tensor-parallel-size"),
    [FR_PLAN_EXPERT_DISPATCH] = FR_WRITTEN("--moe-token-dispatcher-type"),
    [FR_PLAN_EXPERT_CAPACITY] = FR_WRITTEN("--moe-expert-capacity-factor"),
    [FR_PLAN_EXPERT_PAD] = FR_WRITTEN("--moe-pad-expert-input-to-capacity"),
    [FR_PLAN_OFFLOAD_OPTIMIZER] = FR_WRITTEN("--optimizer-cpu-offload"),
    [FR_PLAN_OFFLOAD_ACTIVATIONS] = FR_WRITTEN("--cpu-offloading-num-layers"),
    [FR_PLAN_THREADS] = FR_PREDICTED("threads of forerun's CPU kernels"),
};

const fr_target_field fr_megatron_facts[FR_EXECUTION_FIELDS_N] = {
    [FR_EXECUTION_COMPRESS_BY] = FR_REFUSED("it compresses no gradients"),
    [FR_EXECUTION_FLASH_KIND] = FR_WRITTEN_ONLY(
        FR_IS(FR_FLASH_NATIVE) | FR_IS(FR_FLASH_2), "--attention-backend",
        "Transformer Engine has no FlashAttention 1"),
    [FR_EXECUTION_KERNELS] =
        FR_PREDICTED("kernels are Megatron's and Transformer Engine's own"),
    [FR_EXECUTION_SCALING] = FR_WRITTEN("--fp8-recipe"),
    [FR_EXECUTION_CUDA_GRAPHS] = FR_WRITTEN("--cuda-graph-impl"),
    [FR_EXECUTION_LOSS_FUSED] = FR_WRITTEN("--cross-entropy-loss-fusion"),
    [FR_EXECUTION_GRAD_ADDED_APART] =
        FR_WRITTEN("--no-gradient-accumulation-fusion"),
    [FR_EXECUTION_P2P_SYNC] =
        FR_PREDICTED("it does where stages have no chunks"),
    [FR_EXECUTION_ZERO_UNIT] = FR_REFUSED("Megatron FSDP gathers by layer"),
};

static const char *const versions[] = {
    [FR_MEGATRON_0_8] = "core-0.8",   [FR_MEGATRON_0_9] = "core-0.9",
    [FR_MEGATRON_0_10] = "core-0.10", [FR_MEGATRON_0_11] = "core-0.11",
    [FR_MEGATRON_0_12] = "core-0.12", [FR_MEGATRON_0_13] = "core-0.13",
    [FR_MEGATRON_0_14] = "core-0.14", [FR_MEGATRON_0_15] = "core-0.15",
    [FR_MEGATRON_0_16] = "core-0.16", [FR_MEGATRON_0_17] = "core-0.17",
    [FR_MEGATRON_0_18] = "core-0.18", [FR_MEGATRON_0_19] = "core-0.19",
    [FR_MEGATRON_VERSIONS_N] = NULL,
};

/* ---- what a plan comes to in Megatron's words ---------------------------- */

bool fr_megatron_is_even(const fr_plan *plan, const fr_model *model)
{
    int32_t n = plan->pp * plan->vpp;
    for (int32_t i = 1; i < n; i++)
        if (fr_plan_stage_layers(plan, model, i) !=
            fr_plan_stage_layers(plan, model, 0))
            return false;
    return true;
}

bool fr_megatron_ends(const fr_plan *plan, const fr_model *model,
                      int32_t *first, int32_t *last)
{
    int32_t middle = 0;
    for (int32_t rank = 0; rank < plan->pp; rank++) {
        int32_t n = fr_plan_stage_layers(plan, model, rank);
        for (int32_t chunk = 1; chunk < plan->vpp; chunk++)
            if (fr_plan_stage_layers(plan, model, chunk * plan->pp + rank) != n)
                return false;
        if (rank == 1)
            middle = n;
        if (n == 0 || (rank > 0 && rank + 1 < plan->pp && n != middle))
            return false;
        if (rank == 0)
            *first = n * plan->vpp;
        if (rank + 1 == plan->pp)
            *last = n * plan->vpp;
    }
    return true;
}

int64_t fr_megatron_offloaded_layers(const fr_plan *plan, const fr_model *model)
{
    double layers = plan->activation_offload_frac * (double)model->n_layers;
    int64_t n = (int64_t)(layers + 0.5);
    double rest = layers - (double)n;
    return rest < 1e-6 && rest > -1e-6 ? n : -1;
}

bool fr_megatron_has_groups(const fr_model *model)
{
    return model->n_chosen_groups < model->n_expert_groups;
}

int64_t fr_megatron_group_best(const fr_model *model)
{
    return model->has_sigmoid_router &&
                   model->n_experts > model->n_expert_groups
               ? 2
               : 1;
}

const fr_target fr_target_megatron = {
    .name = "megatron",
    .summary = "arguments of Megatron-LM's pretrain_gpt.py",
    .versions = versions,
    .fields = fr_megatron_fields,
    .facts = fr_megatron_facts,
    .rules = fr_megatron_rules,
};
