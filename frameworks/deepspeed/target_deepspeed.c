/*
 * target_deepspeed.c: DeepSpeed 0.19 (deepspeed/...).  A pipeline is 1F1B
 * (runtime/pipe/schedule.py, TrainSchedule); sequence parallelism is Ulysses
 * (sequence/layer.py); experts are those of AutoEP (module_inject).
 */
#include "frameworks/framework_list.h"
#include "frameworks/target_rows.h"

static FR_TARGET_RULE(has_grads_of_zero)
{
    (void)model;
    (void)job;
    return plan->zero_stage > 0 ||
           plan->grad_dtype == fr_plan_storage_dtype(plan);
}

/* BF16_Optimizer, which is taken for bf16 weights with f32 gradients, and plans
 * without ZeRO reduce at the end; other wrappers reduce during backward. */
static FR_TARGET_RULE(has_overlap_of_zero)
{
    (void)model;
    (void)job;
    bool is_bf16_optimizer =
        plan->zero_stage == 1 && plan->precision == FR_DTYPE_BF16 &&
        plan->grad_dtype == FR_DTYPE_F32 && !plan->is_optimizer_offloaded;
    return !plan->is_overlap ||
           (plan->zero_stage > 0 && plan->pp == 1 && !is_bf16_optimizer);
}

static FR_TARGET_RULE(offloads_with_zero)
{
    (void)model;
    (void)job;
    return plan->zero_stage > 0 || !plan->is_optimizer_offloaded;
}

static FR_TARGET_RULE(has_mics_of_zero_3)
{
    (void)model;
    (void)job;
    return plan->zero_group == 0 || plan->zero_stage == 0 ||
           (plan->zero_stage == 3 && !plan->is_optimizer_offloaded &&
            plan->tp == 1 && plan->cp == 1 && plan->ep == 1);
}

static FR_TARGET_RULE(splits_sequence_alone)
{
    (void)model;
    (void)job;
    return plan->cp == 1 || (plan->pp == 1 && plan->tp == 1);
}

static FR_TARGET_RULE(divides_heads)
{
    (void)job;
    return plan->cp == 1 || model->n_heads % plan->cp == 0;
}

static FR_TARGET_RULE(has_whole_experts)
{
    const int etp = plan->etp > 0 ? plan->etp : plan->tp;
    (void)job;
    return model->n_experts == 0 || etp == (plan->ep > 1 ? 1 : plan->tp);
}

static FR_TARGET_RULE(folds_experts)
{
    (void)model;
    (void)job;
    return plan->ep == 1 || plan->tp == 1 ||
           (plan->pp == 1 && plan->zero_stage < 3 &&
            !plan->is_optimizer_offloaded);
}

static FR_TARGET_RULE(shards_experts)
{
    (void)model;
    (void)job;
    return plan->ep == 1 || plan->zero_stage < 3 ||
           (plan->tp == 1 && plan->cp == 1);
}

static FR_TARGET_RULE(offloads_checkpoints)
{
    (void)model;
    (void)job;
    return plan->activation_offload_frac == 0 ||
           plan->recompute == FR_RECOMPUTE_FULL;
}

#define BIT(symbol) FR_PLAN_BIT(symbol)

static const fr_target_rule rules[] = {
    {.text = "zero 0 or 1 with a pipeline",
     .source = "runtime/pipe/engine.py:76, PipelineEngine: \"ZeRO-2 and ZeRO-3 "
               "are incompatible with pipeline parallelism\"",
     .fields = BIT(ZERO) | BIT(PP),
     .holds = fr_shards_without_pipeline},
    {.text = "--grad-dtype equal to --precision without ZeRO",
     .source = "runtime/engine.py:2020, _do_optimizer_sanity_check: "
               "\"unsupported mix\"",
     .fields = BIT(ZERO) | BIT(GRAD_DTYPE) | BIT(PRECISION),
     .holds = has_grads_of_zero},
    {.text = "no-overlap without ZeRO, with a pipeline, and with bf16 weights "
             "whose f32 gradients ZeRO 1 reduces",
     .source = "runtime/engine.py:2891, allreduce_gradients(); :2391, "
               "_configure_zero_optimizer(); runtime/bf16_optimizer.py",
     .fields = BIT(OVERLAP) | BIT(ZERO) | BIT(PP) | BIT(PRECISION) |
               BIT(GRAD_DTYPE) | BIT(OFFLOAD_OPTIMIZER),
     .holds = has_overlap_of_zero},
    {.text = "ZeRO with offload-optimizer",
     .source = "runtime/zero/config.py:161, offload_optimizer: \"Valid for "
               "ZeRO stage 1, 2, 3\"",
     .fields = BIT(ZERO) | BIT(OFFLOAD_OPTIMIZER),
     .holds = offloads_with_zero},
    {.text = "zero 3, tp 1, cp 1, ep 1 and no offload-optimizer with a "
             "zero-group (MiCS)",
     .source = "runtime/zero/mics.py:422, mics_utils.py:86; runtime/engine.py:"
               "1905 and 2468",
     .fields = BIT(ZERO) | BIT(ZERO_GROUP) | BIT(OFFLOAD_OPTIMIZER) | BIT(TP) |
               BIT(CP) | BIT(EP),
     .holds = has_mics_of_zero_3},
    {.text = "tp 1 and pp 1 with cp (Ulysses)",
     .source = "runtime/config.py:722: the ranks are sequence x data; "
               "utils/groups.py, _init_tp_mesh_device: tensor x data",
     .fields = BIT(CP) | BIT(PP) | BIT(TP),
     .holds = splits_sequence_alone},
    {.text = "heads that cp divides (Ulysses)",
     .source = "sequence/layer.py:40, _generate_layout_params",
     .fields = BIT(CP),
     .holds = divides_heads},
    {.text = "etp 1 with ep, tp without",
     .source = "module_inject/auto_ep_folding.py, validate_folding_global: "
               "\"is reserved for expert-internal tensor parallelism\"",
     .fields = BIT(EP) | BIT(ETP) | BIT(TP),
     .holds = has_whole_experts},
    {.text = "pp 1, zero 0 to 2 and no offload-optimizer with experts and tp",
     .source = "module_inject/auto_ep_folding.py, validate_folding_global",
     .fields = BIT(EP) | BIT(TP) | BIT(PP) | BIT(ZERO) | BIT(OFFLOAD_OPTIMIZER),
     .holds = folds_experts},
    {.text = "tp 1 and cp 1 with experts and zero 3",
     .source = "runtime/engine.py:1872, _validate_zero3_moe_compatibility",
     .fields = BIT(EP) | BIT(ZERO) | BIT(TP) | BIT(CP),
     .holds = shards_experts},
    {.text = "recompute full with offload-activations",
     .source = "runtime/activation_checkpointing/checkpointing.py, "
               "cpu_checkpointing: it is checkpoints that wait on the host",
     .fields = BIT(OFFLOAD_ACTIVATIONS) | BIT(RECOMPUTE),
     .holds = offloads_checkpoints},
    {.text = NULL}};

const fr_target_field fr_deepspeed_fields[FR_PLAN_FIELDS_N] = {
    FR_TARGET_FIELDS_OF_NO_KEY,
    FR_TARGET_FIELDS_OF_NCCL,
    [FR_PLAN_DP] = FR_IMPLIED("no argument says it: it is the world size / "
                              "(tp x pp x cp)"),
    [FR_PLAN_TP] = FR_WRITTEN("tensor_parallel.autotp_size"),
    [FR_PLAN_PP] = FR_WRITTEN("pipeline.stages, and num_stages of "
                              "PipelineModule in the script"),
    [FR_PLAN_CP] = FR_WRITTEN("sequence_parallel_size"),
    [FR_PLAN_EP] = FR_WRITTEN("expert_parallel.autoep_size"),
    [FR_PLAN_VPP] = FR_REFUSED("one chunk per rank"),
    [FR_PLAN_MICRO_BATCH] = FR_WRITTEN("train_micro_batch_size_per_gpu"),
    [FR_PLAN_SCHEDULE] =
        FR_IMPLIED_ONLY(FR_IS(FR_SCHEDULE_1F1B), "its pipeline is 1f1b",
                        "its pipeline is 1f1b (runtime/pipe/schedule.py)"),
    [FR_PLAN_ZERO] = FR_WRITTEN("zero_optimization.stage"),
    [FR_PLAN_RECOMPUTE] = FR_CODED_ONLY(
        FR_IS(FR_RECOMPUTE_NONE) | FR_IS(FR_RECOMPUTE_FULL),
        "activation_checkpointing, pipeline.activation_checkpoint_interval",
        "it makes whole layers again"),
    [FR_PLAN_SEQUENCE_PARALLEL] = FR_REFUSED("AutoTP has no sequence parallel"),
    [FR_PLAN_OVERLAP] = FR_WRITTEN("zero_optimization.overlap_comm"),
    [FR_PLAN_BUCKET] = FR_WRITTEN("zero_optimization.reduce_bucket_size"),
    [FR_PLAN_COMPRESS] =
        FR_WRITTEN_ONLY(FR_IS(FR_COMPRESSOR_NONE) | FR_IS(FR_COMPRESSOR_BF16),
                        "communication_data_type",
                        "it sends gradients as they are, or as bf16"),
    [FR_PLAN_COMPRESSOR_RANK] = FR_REFUSED("it has no PowerSGD"),
    [FR_PLAN_COMPRESSOR_DENSITY] = FR_REFUSED("it has no top-k"),
    [FR_PLAN_ERROR_FEEDBACK] = FR_REFUSED("it keeps no residuals"),
    [FR_PLAN_RANK_ORDER] =
        FR_IMPLIED_ONLY(FR_IS(FR_RANK_ORDER_TP_DP_PP), "its order is tp-dp-pp",
                        "its order is tp-dp-pp (runtime/pipe/topology.py, "
                        "PipeModelDataParallelTopology)"),
    [FR_PLAN_LAYER_SPLIT] = FR_REFUSED("it splits layers by itself"),
    FR_TARGET_SHARES,
    [FR_PLAN_PRECISION] = FR_WRITTEN_ONLY(
        FR_IS(FR_DTYPE_F32) | FR_IS(FR_DTYPE_BF16) | FR_IS(FR_DTYPE_F16),
        "bf16.enabled, fp16.enabled", "it has f32, bf16 and f16"),
    [FR_PLAN_GRAD_DTYPE] = FR_WRITTEN_ONLY(
        FR_IS(FR_DTYPE_F32) | FR_IS(FR_DTYPE_BF16) | FR_IS(FR_DTYPE_F16),
        "data_types.grad_accum_dtype, communication_data_type",
        "it has f32, bf16 and f16"),
    [FR_PLAN_FLASH_ATTENTION] = FR_PREDICTED("the model's code decides it"),
    [FR_PLAN_RECOMPUTE_PARTS] = FR_REFUSED("it makes whole layers again"),
    [FR_PLAN_RECOMPUTE_LAYERS] = FR_REFUSED("it makes whole chunks again"),
    [FR_PLAN_ZERO_GROUP] = FR_WRITTEN("zero_optimization.mics_shard_size"),
    [FR_PLAN_ZERO_RESHARD] =
        FR_WRITTEN("zero_optimization.stage3_max_reuse_distance, "
                   "stage3_max_live_parameters"),
    [FR_PLAN_ZERO_PREFETCH] =
        FR_WRITTEN("zero_optimization.stage3_prefetch_bucket_size"),
    [FR_PLAN_GATHER_OVERLAP] =
        FR_IMPLIED_ONLY(FR_IS(false), "it gathers at the end of a step",
                        "it gathers at the end of a step "
                        "(runtime/zero/stage_1_and_2.py, step())"),
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
    [FR_PLAN_OFFLOAD_ACTIVATIONS] = FR_CODED_ONLY(
        FR_IS(0) | FR_IS(1), "activation_checkpointing.cpu_checkpointing",
        "all checkpoints wait on the host, or none"),
};

const fr_target_field fr_deepspeed_facts[FR_EXECUTION_FIELDS_N] = {
    [FR_EXECUTION_COMPRESS_BY] = FR_REFUSED("it compresses no gradients"),
    [FR_EXECUTION_SCALING] = FR_PREDICTED("it has no fp8"),
    [FR_EXECUTION_CUDA_GRAPHS] = FR_REFUSED("it has no such key"),
};

static const char *const versions[] = {"0.19", NULL};

const fr_target fr_target_deepspeed = {
    .name = "deepspeed",
    .summary = "ds_config.json of DeepSpeed",
    .versions = versions,
    .fields = fr_deepspeed_fields,
    .facts = fr_deepspeed_facts,
    .rules = rules,
};
