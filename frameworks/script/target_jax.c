/*
 * target_jax.c: JAX in the script of frameworks/script/template/train_jax.py: a
 * mesh of copies, shards and tensor parallelism, and the sharding of each
 * array; XLA makes the collectives of them.
 */
#include "frameworks/framework_list.h"
#include "frameworks/script/target_script.h"

/* Gradients that a pass over a micro-batch leaves whole are reduced at its end.
 */
static FR_TARGET_RULE(reduces_once)
{
    (void)model;
    return plan->zero_stage >= 2 || fr_plan_micro_batches(plan, job) <= 1;
}

static const fr_target_rule rules[] = {
    {.text = "one micro-batch a step with ZeRO 0 and 1: XLA reduces gradients "
             "after each",
     .source = "frameworks/script/template/train_jax.py, new_step",
     .fields = FR_PLAN_BIT(ZERO) | FR_PLAN_BIT(MICRO_BATCH) | FR_PLAN_BIT(DP),
     .holds = reduces_once},
    FR_SCRIPT_RULES_OF_ARRAYS,
    FR_SCRIPT_RULES_OF_MODEL("array_model.py"),
    {.text = NULL}};

static const fr_target_field fields[FR_PLAN_FIELDS_N] = {
    FR_SCRIPT_FIELDS_OF_NO_PIPELINE,
    FR_SCRIPT_FIELDS_OF_EXPERTS,
    FR_SCRIPT_FIELDS_OF_PLAIN_GRADIENTS,
    FR_TARGET_FIELDS_OF_NCCL,
    [FR_PLAN_DP] = FR_WRITTEN("the mesh: (copy, shard)"),
    [FR_PLAN_TP] = FR_WRITTEN("the mesh: tp"),
    [FR_PLAN_PP] = FR_REFUSED("the script has no pipeline"),
    [FR_PLAN_CP] = FR_REFUSED("the script splits no sequence but with tp"),
    [FR_PLAN_CP_KIND] = FR_REFUSED("the script splits no sequence but with tp"),
    [FR_PLAN_MICRO_BATCH] = FR_WRITTEN("jax.lax.scan over micro-batches"),
    [FR_PLAN_SEQUENCE_PARALLEL] = FR_WRITTEN("with_sharding_constraint"),
    [FR_PLAN_TP_OVERLAP] = FR_REFUSED("XLA decides what it takes apart"),
    [FR_PLAN_RANK_ORDER] = FR_IMPLIED_ONLY(
        FR_IS(FR_RANK_ORDER_TP_DP_PP) | FR_IS(FR_RANK_ORDER_TP_PP_DP) |
            FR_IS(FR_RANK_ORDER_PP_TP_DP),
        "tp changes fastest along the devices",
        "tp changes fastest along the devices"),
    [FR_PLAN_ZERO] = FR_WRITTEN("NamedSharding of state, gradients, weights"),
    [FR_PLAN_ZERO_GROUP] = FR_WRITTEN("the mesh: shard"),
    [FR_PLAN_ZERO_RESHARD] = FR_PREDICTED("XLA decides what stays gathered"),
    [FR_PLAN_ZERO_PREFETCH] = FR_PREDICTED("XLA's scheduler gathers ahead"),
    [FR_PLAN_GATHER_OVERLAP] = FR_IMPLIED_ONLY(
        FR_IS(false), "weights are gathered at the end of the jitted step",
        "weights are gathered at the end of the jitted step"),
    [FR_PLAN_OVERLAP] = FR_WRITTEN("--xla_gpu_enable_latency_hiding_scheduler"),
    [FR_PLAN_BUCKET] =
        FR_WRITTEN("--xla_gpu_all_reduce_combine_threshold_bytes"),
    [FR_PLAN_RECOMPUTE] = FR_WRITTEN("jax.checkpoint"),
    [FR_PLAN_RECOMPUTE_PARTS] = FR_WRITTEN_ONLY(
        FR_IS(1) | FR_IS(8) | FR_IS(9), "jax.checkpoint of parts",
        "the script makes attention (1) and MLPs (8) again"),
    [FR_PLAN_RECOMPUTE_LAYERS] =
        FR_WRITTEN("jax.checkpoint of the first layers"),
    [FR_PLAN_FLASH_ATTENTION] = FR_WRITTEN("jax.nn.dot_product_attention"),
    FR_SCRIPT_FIELDS_OF_ARRAYS("jax_default_matmul_precision"),
    [FR_PLAN_THREADS] = FR_PREDICTED("XLA has a pool of its own"),
};

static const fr_target_field facts[FR_EXECUTION_FIELDS_N] = {
    FR_SCRIPT_FACTS,
    FR_SCRIPT_FACTS_OF_PLAIN_GRADIENTS,
    [FR_EXECUTION_ZERO_UNIT] =
        FR_PREDICTED("XLA gathers tensors, joined by bytes"),
    [FR_EXECUTION_KERNELS] = FR_PREDICTED("XLA compiles"),
    [FR_EXECUTION_CUDA_GRAPHS] =
        FR_PREDICTED("XLA makes command buffers by itself"),
};

const fr_target fr_target_jax = {
    .name = "jax",
    .summary = "a training script for JAX",
    .fields = fields,
    .facts = facts,
    .rules = rules,
    .has_tpus = true,
};
