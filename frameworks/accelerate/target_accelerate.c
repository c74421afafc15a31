/*
 * target_accelerate.c: Hugging Face's Accelerate (src/accelerate/..., lines of
 * commit 16cb6eb of 2026-07-24, after 1.14.0): the YAML of `accelerate config`,
 * and arguments of the training script that are those of transformers'
 * TrainingArguments.  A plan is run by DDP, FSDP, DeepSpeed or Megatron-LM, and
 * each has a table of its own.
 */
#include "frameworks/accelerate/target_accelerate.h"

#include "frameworks/framework_list.h"
#include "frameworks/script/target_script.h"
#include "frameworks/target_rows.h"

#define BIT(symbol) FR_PLAN_BIT(symbol)
#define FACT(symbol) FR_EXECUTION_BIT(symbol)

/* A rule that is one expression over plan, model and job. */
#define RULE(name, expression)                                                 \
    static FR_TARGET_RULE(name)                                                \
    {                                                                          \
        (void)plan;                                                            \
        (void)model;                                                           \
        (void)job;                                                             \
        return expression;                                                     \
    }

/* The fields that fr_accelerate_backend() looks at. */
#define OF_BACKEND                                                             \
    (BIT(TP) | BIT(PP) | BIT(CP) | BIT(EP) | BIT(ZERO) | BIT(CP_KIND) |        \
     BIT(SEQUENCE_PARALLEL) | BIT(ZERO_PREFETCH) | BIT(PRECISION) |            \
     BIT(GRAD_DTYPE))

const fr_target *fr_accelerate_backend(const fr_plan *plan)
{
    const bool is_ulysses = plan->cp > 1 && plan->cp_kind == FR_CP_ALL_TO_ALL;
    if (plan->pp > 1)
        return &fr_accelerate_megatron;
    if (plan->tp > 1 && plan->zero_stage < 2 &&
        (plan->zero_stage == 0 || plan->is_sequence_parallel))
        return &fr_accelerate_megatron;
    if (plan->zero_stage == 0 && plan->cp == 1 && plan->ep == 1)
        return &fr_accelerate_ddp;
    if (plan->zero_stage < 3 || is_ulysses || plan->ep > 1 ||
        plan->n_prefetch != 1 ||
        plan->grad_dtype != fr_plan_storage_dtype(plan))
        return &fr_accelerate_deepspeed;
    return &fr_accelerate_fsdp;
}

int64_t fr_accelerate_copies(const fr_plan *plan)
{
    const int64_t n_data = (int64_t)plan->dp * plan->cp;
    return plan->zero_group > 0 ? n_data / plan->zero_group : 1;
}

/* ---- rows that all have -------------------------------------------------- */

#define FIELDS_OF_ALL                                                          \
    FR_TARGET_FIELDS_OF_NCCL, FR_TARGET_SHARES,                                \
        [FR_PLAN_FLASH_ATTENTION] =                                            \
            FR_PREDICTED("the model's code decides it (attn_implementation)"), \
        [FR_PLAN_EXPERT_CAPACITY] = FR_REFUSED("it has no such key"),          \
        [FR_PLAN_EXPERT_PAD] = FR_REFUSED("it has no such key"),               \
        [FR_PLAN_THREADS] = FR_PREDICTED("threads of forerun's CPU kernels"),  \
        [FR_PLAN_EP_OVERLAP] = FR_REFUSED("it has no combined 1F1B"),          \
        [FR_PLAN_EXPERT_DISPATCH] = FR_REFUSED("its dispatch is all-to-all"),  \
        [FR_PLAN_RECOMPUTE_LAYERS] = FR_REFUSED("it makes all layers again"),  \
        [FR_PLAN_VPP] = FR_REFUSED("no key has virtual stages: it is the "     \
                                   "plugin's num_layers_per_virtual_"          \
                                   "pipeline_stage, in code"),                 \
        [FR_PLAN_SCHEDULE] =                                                   \
            FR_IMPLIED_ONLY(FR_IS(FR_SCHEDULE_1F1B), "its pipeline is 1f1b",   \
                            "Megatron-LM without virtual stages is 1f1b"),     \
        [FR_PLAN_LAYER_SPLIT] = FR_REFUSED("it splits layers evenly"),         \
        [FR_PLAN_RANK_ORDER] = FR_IMPLIED_ONLY(                                \
            FR_IS(FR_RANK_ORDER_TP_DP_PP),                                     \
            "tp changes fastest, then dp, then pp", "its order is tp-dp-pp")

/* The facts that all have. */
#define FACTS_OF_ALL                                                           \
    [FR_EXECUTION_CUDA_GRAPHS] = FR_REFUSED("it has no such key"),             \
    [FR_EXECUTION_COMPRESS_BY] = FR_REFUSED("no key compresses gradients")

/* The fact for DDP and FSDP. */
#define FACT_OF_DYNAMO                                                         \
    [FR_EXECUTION_KERNELS] =                                                   \
        FR_WRITTEN("dynamo_config where compiled, else the "                   \
                   "model's own")

#define FIELDS_OF_PLAIN_GRADIENTS                                              \
    [FR_PLAN_COMPRESSOR_RANK] = FR_REFUSED("no key has PowerSGD"),             \
    [FR_PLAN_COMPRESSOR_DENSITY] = FR_REFUSED("it has no top-k"),              \
    [FR_PLAN_ERROR_FEEDBACK] = FR_REFUSED("no key keeps residuals")

#define FIELDS_OF_ONE_AXIS                                                     \
    FIELDS_OF_PLAIN_GRADIENTS,                                                 \
        [FR_PLAN_PP] = FR_REFUSED("Megatron-LM has pipelines"),                \
        [FR_PLAN_EP] = FR_REFUSED("DeepSpeed has experts"),                    \
        [FR_PLAN_ETP] = FR_REFUSED("DeepSpeed has experts"),                   \
        [FR_PLAN_MICRO_BATCH] = FR_WRITTEN("--per_device_train_batch_size"),   \
        [FR_PLAN_RECOMPUTE_PARTS] =                                            \
            FR_REFUSED("it makes all of a layer again"),                       \
        [FR_PLAN_SEQUENCE_PARALLEL] = FR_REFUSED(                              \
            "transformers' tensor parallelism keeps whole sequences"),         \
        [FR_PLAN_TP_OVERLAP] =                                                 \
            FR_REFUSED("async tensor parallelism is not supported "            \
                       "(utils/dataclasses.py, TorchTensorParallelConfig)"),   \
        [FR_PLAN_OFFLOAD_ACTIVATIONS] = FR_REFUSED("it has no such key"),      \
        [FR_PLAN_OVERLAP] =                                                    \
            FR_IMPLIED_ONLY(FR_IS(true),                                       \
                            "gradients are reduced beside "                    \
                            "backward",                                        \
                            "DDP and FSDP reduce beside backward")

#define OF_PRECISION                                                           \
    (FR_IS(FR_DTYPE_F32) | FR_IS(FR_DTYPE_TF32) | FR_IS(FR_DTYPE_BF16) |       \
     FR_IS(FR_DTYPE_F16))

/* state.py:1028 turns tf32 on beside a compiler, where nothing else asks for
 * 16 bits; no key does so by itself. */
RULE(has_tf32_of_dynamo,
     (plan->precision != FR_DTYPE_F32 && plan->precision != FR_DTYPE_TF32) ||
         (plan->precision == FR_DTYPE_TF32) ==
             (plan->execution.kernels == FR_KERNELS_COMPILED))

#define RULE_OF_TF32                                                           \
    {                                                                          \
        .text = "tf32 instead of f32 with compiled kernels, and with them "    \
                "alone",                                                       \
        .source = "state.py:1028, AcceleratorState.__init__: allow_tf32",      \
        .fields = BIT(PRECISION), .facts = FACT(KERNELS),                      \
        .holds = has_tf32_of_dynamo                                            \
    }

/* ---- DDP ----------------------------------------------------------------- */

static const fr_target_field ddp_fields[FR_PLAN_FIELDS_N] = {
    FIELDS_OF_ALL,
    FIELDS_OF_ONE_AXIS,
    [FR_PLAN_DP] = FR_WRITTEN("num_processes"),
    [FR_PLAN_TP] = FR_REFUSED("FSDP and Megatron-LM have tensor parallelism"),
    [FR_PLAN_CP] = FR_REFUSED("FSDP and DeepSpeed have context parallelism"),
    [FR_PLAN_CP_KIND] = FR_REFUSED("of cp alone"),
    [FR_PLAN_ZERO] =
        FR_IMPLIED_ONLY(FR_IS(0), "DDP shards nothing", "DDP shards nothing"),
    [FR_PLAN_ZERO_GROUP] = FR_REFUSED("of ZeRO alone"),
    [FR_PLAN_ZERO_RESHARD] = FR_REFUSED("of ZeRO 3 alone"),
    [FR_PLAN_ZERO_PREFETCH] = FR_REFUSED("of ZeRO 3 alone"),
    [FR_PLAN_GATHER_OVERLAP] = FR_REFUSED("of ZeRO 1 and 2 alone"),
    [FR_PLAN_RECOMPUTE] = FR_WRITTEN_ONLY(
        FR_IS(FR_RECOMPUTE_NONE) | FR_IS(FR_RECOMPUTE_FULL),
        "--gradient_checkpointing", "it makes all of a layer again, or none"),
    [FR_PLAN_BUCKET] = FR_WRITTEN("--ddp_bucket_cap_mb"),
    [FR_PLAN_COMPRESS] =
        FR_REFUSED("communication hooks are DistributedDataParallelKwargs of "
                   "the training script; --to ddp writes one"),
    [FR_PLAN_PRECISION] =
        FR_WRITTEN_ONLY(OF_PRECISION, "mixed_precision",
                        "it has f32, bf16 and f16, and fp8 by other libraries"),
    [FR_PLAN_GRAD_DTYPE] = FR_IMPLIED_ONLY(
        FR_IS(FR_DTYPE_F32), "parameters and gradients are float32",
        "DDP's gradients have the parameters' dtype, float32"),
    [FR_PLAN_OFFLOAD_OPTIMIZER] =
        FR_REFUSED("DDP steps where the parameters are; FSDP and DeepSpeed "
                   "have the state on the host"),
};

static const fr_target_field ddp_facts[FR_EXECUTION_FIELDS_N] = {
    FACTS_OF_ALL,
    FACT_OF_DYNAMO,
    [FR_EXECUTION_ZERO_UNIT] = FR_REFUSED("of ZeRO 3 alone"),
};

static const fr_target_rule ddp_rules[] = {RULE_OF_TF32, {.text = NULL}};

const fr_target fr_accelerate_ddp = {
    .name = "accelerate (DDP)",
    .summary = "MULTI_GPU and MULTI_CPU",
    .fields = ddp_fields,
    .facts = ddp_facts,
    .rules = ddp_rules,
};

/* ---- FSDP ---------------------------------------------------------------- */

static const fr_target_field fsdp_fields[FR_PLAN_FIELDS_N] = {
    FIELDS_OF_ALL,
    FIELDS_OF_ONE_AXIS,
    [FR_PLAN_DP] = FR_WRITTEN("num_processes, parallelism_config_dp_shard_"
                              "size, parallelism_config_dp_replicate_size"),
    [FR_PLAN_TP] = FR_WRITTEN("parallelism_config_tp_size"),
    [FR_PLAN_CP] = FR_WRITTEN("parallelism_config_cp_size"),
    [FR_PLAN_CP_KIND] =
        FR_WRITTEN_ONLY(FR_IS(FR_CP_ALL_GATHER) | FR_IS(FR_CP_RING),
                        "parallelism_config_cp_comm_strategy",
                        "PyTorch gathers keys and values, or hands them round"),
    [FR_PLAN_ZERO] =
        FR_IMPLIED_ONLY(FR_IS(3), "FSDP shards all", "FSDP shards all: zero 3"),
    [FR_PLAN_ZERO_GROUP] = FR_WRITTEN("parallelism_config_dp_shard_size"),
    [FR_PLAN_ZERO_RESHARD] =
        FR_WRITTEN("fsdp_reshard_after_forward; 1.0: fsdp_sharding_strategy"),
    [FR_PLAN_ZERO_PREFETCH] =
        FR_IMPLIED_ONLY(FR_IS(1), "FSDP gathers one layer ahead",
                        "FSDP gathers one layer ahead"),
    [FR_PLAN_GATHER_OVERLAP] = FR_REFUSED("of ZeRO 1 and 2 alone"),
    [FR_PLAN_RECOMPUTE] =
        FR_WRITTEN_ONLY(FR_IS(FR_RECOMPUTE_NONE) | FR_IS(FR_RECOMPUTE_FULL),
                        "fsdp_activation_checkpointing",
                        "it makes all of a layer again, or none"),
    [FR_PLAN_BUCKET] = FR_IMPLIED("a layer's gradients are reduced as one"),
    [FR_PLAN_COMPRESS] = FR_REFUSED("it sends gradients as they are"),
    [FR_PLAN_PRECISION] =
        FR_WRITTEN_ONLY(OF_PRECISION, "mixed_precision",
                        "it has f32, bf16 and f16, and fp8 by other libraries"),
    [FR_PLAN_GRAD_DTYPE] =
        FR_IMPLIED("reduce_dtype is param_dtype (utils/dataclasses.py:2120)"),
    [FR_PLAN_OFFLOAD_OPTIMIZER] =
        FR_WRITTEN("fsdp_offload_params: the sharded parameters, too"),
};

static const fr_target_field fsdp_facts[FR_EXECUTION_FIELDS_N] = {
    FACTS_OF_ALL,
    FACT_OF_DYNAMO,
    [FR_EXECUTION_ZERO_UNIT] = FR_IMPLIED_ONLY(
        FR_IS(FR_ZERO_UNIT_LAYER),
        "fsdp_auto_wrap_policy TRANSFORMER_BASED_WRAP", "it wraps layers"),
};

RULE(has_no_mesh, plan->tp == 1 && plan->cp == 1)
RULE(shards_over_all, fr_accelerate_copies(plan) == 1)
RULE(shards_over_some,
     (int64_t)plan->dp * plan->cp > 1 && plan->zero_group != 1)
RULE(shards_whole_contexts, plan->zero_group % plan->cp == 0)
RULE(shards_beside_others, fr_accelerate_copies(plan) == 1 ||
                               (plan->tp == 1 && plan->cp == 1) ||
                               plan->zero_group > plan->cp)

#define OF_SHARDS (BIT(DP) | BIT(CP) | BIT(ZERO_GROUP))

static const fr_target_rule fsdp_rules[] = {
    RULE_OF_TF32,
    {.text = "tp 1 and cp 1 before version 1.10",
     .source = "parallelism_config.py, which came with 1.10.0",
     .fields = BIT(TP) | BIT(CP),
     .holds = has_no_mesh,
     .until = FR_ACCELERATE_1_6},
    {.text = "a zero-group of all ranks before version 1.10",
     .source = "parallelism_config.py, which came with 1.10.0",
     .fields = OF_SHARDS,
     .holds = shards_over_all,
     .until = FR_ACCELERATE_1_6},
    {.text = "ranks to shard over: dp or cp, and no zero-group of 1",
     .source = "parallelism_config.py:136, dp_shard_cp_dim_names, which "
               "fsdp_dim_names() wants",
     .fields = OF_SHARDS,
     .holds = shards_over_some},
    {.text = "a zero-group that cp divides",
     .source = "parallelism_config.py:158, fsdp_dim_names: dp_shard x cp",
     .fields = OF_SHARDS,
     .holds = shards_whole_contexts},
    {.text = "a zero-group of more than cp ranks beside tp or cp",
     .source = "parallelism_config.py:336, __post_init__: \"cannot be used "
               "with pure data parallelism\"",
     .fields = OF_SHARDS | BIT(TP),
     .holds = shards_beside_others},
    {.text = NULL}};

const fr_target fr_accelerate_fsdp = {
    .name = "accelerate (FSDP)",
    .summary = "FSDP 2; FSDP 1 before 1.6",
    .fields = fsdp_fields,
    .facts = fsdp_facts,
    .rules = fsdp_rules,
};

/* ---- DeepSpeed ----------------------------------------------------------- */

RULE(has_no_pipeline, plan->pp == 1)
RULE(has_one_tp, plan->tp == 1)
RULE(has_one_cp, plan->cp == 1)
RULE(has_no_tf32_of_dynamo, plan->precision != FR_DTYPE_F32 ||
                                plan->execution.kernels != FR_KERNELS_COMPILED)

static const fr_target_rule deepspeed_rules[] = {
    {.text = "pp 1 with DeepSpeed",
     .source = "accelerator.py:2439, _prepare_deepspeed: deepspeed.initialize "
               "of the model itself, no PipelineModule",
     .fields = BIT(PP),
     .holds = has_no_pipeline},
    {.text = "tp 1 with DeepSpeed before version 1.6",
     .source = "accelerator.py:2147, _prepare_deepspeed: autotp_size, which "
               "came with 1.6.0",
     .fields = BIT(TP),
     .holds = has_one_tp,
     .until = FR_ACCELERATE_1_0},
    {.text = "cp 1 with DeepSpeed before version 1.12",
     .source = "parallelism_config.py:75, sp_size, which came with 1.12.0",
     .fields = BIT(CP),
     .holds = has_one_cp,
     .until = FR_ACCELERATE_1_10},
    {.text = "no compiled kernels with f32",
     .source = "state.py:1028, AcceleratorState.__init__: allow_tf32",
     .fields = BIT(PRECISION),
     .facts = FACT(KERNELS),
     .holds = has_no_tf32_of_dynamo},
    {.text = NULL}};

const fr_target fr_accelerate_deepspeed = {
    .name = "accelerate (DeepSpeed)",
    .executes_as = &fr_framework_deepspeed,
    .summary = "DEEPSPEED with a ds_config.json",
    .fields = fr_deepspeed_fields,
    .facts = fr_deepspeed_facts,
    .rules = deepspeed_rules,
    .base = &fr_target_deepspeed,
};

/* ---- Megatron-LM --------------------------------------------------------- */

static const fr_target_field megatron_fields[FR_PLAN_FIELDS_N] = {
    FIELDS_OF_ALL,
    FIELDS_OF_PLAIN_GRADIENTS,
    [FR_PLAN_DP] = FR_WRITTEN("num_processes"),
    [FR_PLAN_TP] = FR_WRITTEN("megatron_lm_tp_degree"),
    [FR_PLAN_PP] = FR_WRITTEN("megatron_lm_pp_degree"),
    [FR_PLAN_CP] = FR_REFUSED("beside Megatron-LM it divides ranks by tp and "
                              "pp alone (accelerator.py:2528, "
                              "_prepare_megatron_lm)"),
    [FR_PLAN_CP_KIND] = FR_REFUSED("of cp alone"),
    [FR_PLAN_EP] = FR_REFUSED("its GPT and Llama of Megatron-LM are dense "
                              "(utils/dataclasses.py, parse_llama_config)"),
    [FR_PLAN_ETP] = FR_REFUSED("of experts alone"),
    [FR_PLAN_MICRO_BATCH] = FR_WRITTEN("--per_device_train_batch_size"),
    [FR_PLAN_ZERO] = FR_WRITTEN_ONLY(
        FR_IS(0) | FR_IS(1), "megatron_lm_use_distributed_optimizer",
        "beside pp, or tp with sequence parallelism, it shards "
        "optimizer state alone"),
    [FR_PLAN_ZERO_GROUP] = FR_REFUSED("no key has a second copy"),
    [FR_PLAN_ZERO_RESHARD] = FR_REFUSED("of ZeRO 3 alone"),
    [FR_PLAN_ZERO_PREFETCH] = FR_REFUSED("of ZeRO 3 alone"),
    [FR_PLAN_GATHER_OVERLAP] =
        FR_IMPLIED_ONLY(FR_IS(false), "no key has --overlap-param-gather",
                        "no key has --overlap-param-gather"),
    [FR_PLAN_OVERLAP] =
        FR_IMPLIED_ONLY(FR_IS(false), "no key has --overlap-grad-reduce",
                        "no key has --overlap-grad-reduce"),
    [FR_PLAN_TP_OVERLAP] = FR_REFUSED("no key has --tp-comm-overlap"),
    [FR_PLAN_BUCKET] = FR_PREDICTED("no key has --ddp-bucket-size"),
    [FR_PLAN_COMPRESS] = FR_REFUSED("it sends gradients as they are"),
    [FR_PLAN_RECOMPUTE] =
        FR_WRITTEN("megatron_lm_recompute_granularity; before 1.13: "
                   "megatron_lm_recompute_activations"),
    [FR_PLAN_RECOMPUTE_PARTS] = FR_IMPLIED_ONLY(
        FR_IS(FR_RECOMPUTE_PART_ATTENTION), "selective is attention's core",
        "selective is attention's core alone"),
    [FR_PLAN_SEQUENCE_PARALLEL] = FR_WRITTEN("megatron_lm_sequence_"
                                             "parallelism"),
    [FR_PLAN_PRECISION] = FR_WRITTEN_ONLY(
        FR_IS(FR_DTYPE_F32) | FR_IS(FR_DTYPE_BF16) | FR_IS(FR_DTYPE_F16),
        "mixed_precision", "it has f32, bf16 and f16"),
    [FR_PLAN_GRAD_DTYPE] =
        FR_IMPLIED("Megatron-LM adds bf16 up in f32, others as they are"),
    [FR_PLAN_OFFLOAD_OPTIMIZER] = FR_WRITTEN("megatron_lm_optimizer_cpu_"
                                             "offload"),
    [FR_PLAN_OFFLOAD_ACTIVATIONS] = FR_REFUSED("no key has "
                                               "--cpu-offloading-num-layers"),
};

static const fr_target_field megatron_facts[FR_EXECUTION_FIELDS_N] = {
    FACTS_OF_ALL,
    [FR_EXECUTION_ZERO_UNIT] = FR_REFUSED("of ZeRO 3 alone"),
    [FR_EXECUTION_KERNELS] = FR_PREDICTED("kernels are Megatron's own"),
};

RULE(adds_up_as_megatron,
     plan->grad_dtype ==
         (plan->precision == FR_DTYPE_F16 ? FR_DTYPE_F16 : FR_DTYPE_F32))
RULE(recomputes_attention_alone, plan->recompute != FR_RECOMPUTE_FULL)
RULE(recomputes_all, plan->recompute == FR_RECOMPUTE_FULL)
RULE(has_no_offload, !plan->is_optimizer_offloaded)
RULE(offloads_shards, !plan->is_optimizer_offloaded || plan->zero_stage == 1)
RULE(has_optimizer_of_megatron,
     job->optimizer == FR_OPTIMIZER_ADAMW || job->optimizer == FR_OPTIMIZER_SGD)

#define OF_PARSER                                                              \
    "utils/dataclasses.py:2876, parse_gpt2_config, and :2939, "                \
    "parse_llama_config"

static const fr_target_rule megatron_rules[] = {
    {.text = "stages of as many layers each",
     .source = "megatron/training/arguments.py, validate_args; no key has "
               "--pipeline-model-parallel-layout",
     .fields = BIT(PP) | BIT(VPP) | BIT(LAYER_SPLIT),
     .holds = fr_has_even_stages},
    {.text = "grad-dtype f32 with f32 and bf16, f16 with f16",
     .source = "megatron/training/arguments.py, validate_args: "
               "accumulate_allreduce_grads_in_fp32",
     .fields = BIT(PRECISION) | BIT(GRAD_DTYPE),
     .holds = adds_up_as_megatron},
    {.text = "recompute none or selective with Megatron-LM before version 1.13",
     .source = "utils/dataclasses.py of 1.12.0, MegatronLMPlugin: "
               "recompute_activations alone",
     .fields = BIT(RECOMPUTE),
     .holds = recomputes_attention_alone,
     .until = FR_ACCELERATE_1_12},
    {.text = "recompute full with Megatron-LM",
     .source = "utils/dataclasses.py:2654, MegatronLMPlugin.__post_init__: "
               "recompute_granularity is \"full\" unless it is said, and "
               "recompute_method \"uniform\", which selective forbids",
     .fields = BIT(RECOMPUTE),
     .holds = recomputes_all,
     .since = FR_ACCELERATE_1_13},
    {.text = "no offload-optimizer with Megatron-LM before version 1.13",
     .source = "utils/dataclasses.py of 1.12.0, MegatronLMPlugin",
     .fields = BIT(OFFLOAD_OPTIMIZER),
     .holds = has_no_offload,
     .until = FR_ACCELERATE_1_12},
    {.text = "zero 1 with offload-optimizer and Megatron-LM",
     .source = "megatron/training/arguments.py, validate_args: "
               "use_precision_aware_optimizer, which wants the distributed "
               "optimizer",
     .fields = BIT(OFFLOAD_OPTIMIZER) | BIT(ZERO),
     .holds = offloads_shards},
    {.text = "adamw or sgd with Megatron-LM",
     .source = "utils/dataclasses.py:2767, set_optimizer_type",
     .holds = has_optimizer_of_megatron},
    {.text = "a decoder with Megatron-LM (GPT-2 or Llama)",
     .source = OF_PARSER,
     .holds = fr_script_is_decoder},
    {.text = "a dense model with Megatron-LM",
     .source = OF_PARSER,
     .holds = fr_script_is_dense},
    {.text = "plain or grouped-query attention with Megatron-LM",
     .source = OF_PARSER,
     .holds = fr_script_has_plain_attention},
    {.text = NULL}};

const fr_target fr_accelerate_megatron = {
    .name = "accelerate (Megatron-LM)",
    .executes_as = &fr_framework_megatron,
    .summary = "MEGATRON_LM",
    .fields = megatron_fields,
    .facts = megatron_facts,
    .rules = megatron_rules,
};

/* ---- what one of them has ------------------------------------------------ */

/* Said where some have it, and what the others do. */
#define SOME(text, limit)                                                      \
    {                                                                          \
        .fate = FR_FATE_WRITTEN, .how = (text), .why = (limit)                 \
    }

static const fr_target_field fields[FR_PLAN_FIELDS_N] = {
    FIELDS_OF_ALL,
    [FR_PLAN_DP] = FR_WRITTEN("num_processes"),
    [FR_PLAN_TP] = SOME("parallelism_config_tp_size, megatron_lm_tp_degree, "
                        "autotp_size of ds_config.json",
                        "not DDP; FSDP from 1.10, DeepSpeed from 1.6"),
    [FR_PLAN_PP] = SOME("megatron_lm_pp_degree", "Megatron-LM alone"),
    [FR_PLAN_CP] = SOME("parallelism_config_cp_size, "
                        "parallelism_config_sp_size",
                        "FSDP from 1.10, DeepSpeed from 1.12"),
    [FR_PLAN_EP] = SOME("autoep_size of ds_config.json", "DeepSpeed alone"),
    [FR_PLAN_ETP] = SOME("expert_tensor_parallel_size of ds_config.json",
                         "DeepSpeed alone"),
    [FR_PLAN_MICRO_BATCH] = FR_WRITTEN("--per_device_train_batch_size, "
                                       "ds_config.json"),
    [FR_PLAN_ZERO] = FR_WRITTEN("distributed_type: 0 is DDP or Megatron-LM, 1 "
                                "DeepSpeed or Megatron-LM, 2 DeepSpeed, 3 FSDP "
                                "or DeepSpeed"),
    [FR_PLAN_RECOMPUTE] =
        SOME("--gradient_checkpointing, fsdp_activation_checkpointing, "
             "megatron_lm_recompute_granularity",
             "selective with Megatron-LM before 1.13 alone, which from then on "
             "has full alone"),
    [FR_PLAN_RECOMPUTE_PARTS] = FR_IMPLIED_ONLY(
        FR_IS(FR_RECOMPUTE_PART_ATTENTION), "selective is attention's core",
        "selective is attention's core alone"),
    [FR_PLAN_SEQUENCE_PARALLEL] =
        SOME("megatron_lm_sequence_parallelism", "Megatron-LM alone"),
    [FR_PLAN_OVERLAP] = SOME("overlap_comm of ds_config.json",
                             "on with DDP and FSDP, off with Megatron-LM"),
    [FR_PLAN_BUCKET] = FR_WRITTEN("--ddp_bucket_cap_mb, reduce_bucket_size of "
                                  "ds_config.json"),
    [FR_PLAN_COMPRESS] = FR_WRITTEN_ONLY(
        FR_IS(FR_COMPRESSOR_NONE) | FR_IS(FR_COMPRESSOR_BF16),
        "communication_data_type of ds_config.json",
        "bf16, with DeepSpeed alone; DDP's hooks are code, which --to ddp "
        "writes"),
    FIELDS_OF_PLAIN_GRADIENTS,
    [FR_PLAN_PRECISION] = FR_WRITTEN_ONLY(
        OF_PRECISION, "mixed_precision; bf16, fp16 of ds_config.json",
        "f32, bf16, f16, and tf32 with compiled kernels; fp8 is of other "
        "libraries"),
    [FR_PLAN_GRAD_DTYPE] = SOME("grad_accum_dtype of ds_config.json",
                                "f32 with DDP, as the weights with FSDP"),
    [FR_PLAN_ZERO_GROUP] = SOME("parallelism_config_dp_shard_size, "
                                "mics_shard_size of ds_config.json",
                                "FSDP from 1.10, DeepSpeed"),
    [FR_PLAN_ZERO_RESHARD] =
        FR_WRITTEN("fsdp_reshard_after_forward, stage3_max_reuse_distance of "
                   "ds_config.json"),
    [FR_PLAN_ZERO_PREFETCH] =
        FR_WRITTEN("1 is FSDP, others are stage3_prefetch_bucket_size of "
                   "ds_config.json"),
    [FR_PLAN_GATHER_OVERLAP] =
        FR_IMPLIED_ONLY(FR_IS(false),
                        "parameters are gathered at the end of a "
                        "step",
                        "DeepSpeed gathers at the end of a step, and "
                        "Megatron-LM is not told otherwise"),
    [FR_PLAN_TP_OVERLAP] =
        SOME("tp_overlap_comm of ds_config.json", "DeepSpeed alone"),
    [FR_PLAN_CP_KIND] = FR_WRITTEN("parallelism_config_cp_comm_strategy; "
                                   "all-to-all is parallelism_config_sp_size"),
    [FR_PLAN_OFFLOAD_OPTIMIZER] =
        SOME("fsdp_offload_params, offload_optimizer of ds_config.json, "
             "megatron_lm_optimizer_cpu_offload",
             "not DDP; Megatron-LM from 1.13"),
    [FR_PLAN_OFFLOAD_ACTIVATIONS] = FR_WRITTEN_ONLY(
        FR_IS(0) | FR_IS(1), "cpu_checkpointing of ds_config.json",
        "DeepSpeed alone, and all checkpoints or none"),
};

static const fr_target_field facts[FR_EXECUTION_FIELDS_N] = {
    FACTS_OF_ALL,
    FACT_OF_DYNAMO,
    [FR_EXECUTION_ZERO_UNIT] =
        FR_PREDICTED("FSDP gathers by layer, DeepSpeed as its version does"),
};

static const char *const versions[] = {
    [FR_ACCELERATE_1_0] = "1.0",       [FR_ACCELERATE_1_6] = "1.6",
    [FR_ACCELERATE_1_10] = "1.10",     [FR_ACCELERATE_1_12] = "1.12",
    [FR_ACCELERATE_1_13] = "1.13",     [FR_ACCELERATE_1_14] = "1.14",
    [FR_ACCELERATE_VERSIONS_N] = NULL,
};

static const fr_target_rule rules[] = {{.text = NULL}};

static const fr_target *const backends[] = {
    &fr_accelerate_ddp, &fr_accelerate_fsdp, &fr_accelerate_deepspeed,
    &fr_accelerate_megatron, NULL};

const fr_target fr_target_accelerate = {
    .name = "accelerate",
    .summary = "a configuration of Hugging Face's Accelerate",
    .versions = versions,
    .fields = fields,
    .facts = facts,
    .rules = rules,
    .backends = backends,
    .backend_of = fr_accelerate_backend,
    .backend_fields = OF_BACKEND,
};
