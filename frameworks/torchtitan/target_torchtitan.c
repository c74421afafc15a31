/*
 * target_torchtitan.c: torchtitan 0.2 (config/job_config.py, TOML; 0.2.0 has
 * fewer keys than 0.2.1 and 0.2.2) and its main
 * of August 2026 (config/configs.py, a Python recipe).  FSDP2 shards
 * parameters, gradients and optimizer together (reshard_after_forward never:
 * they stay gathered), or DDP; schedules are those of
 * torch.distributed.pipelining.
 */
#include "frameworks/framework_list.h"
#include "frameworks/target_rows.h"
#include "frameworks/torchtitan/torchtitan_keys.h"

static int64_t n_data(const fr_plan *plan)
{
    return (int64_t)plan->dp * plan->cp;
}

static FR_TARGET_RULE(shards_over_some)
{
    (void)model;
    (void)job;
    return plan->zero_stage == 0 || (n_data(plan) > 1 && plan->zero_group != 1);
}

static FR_TARGET_RULE(shards_whole_contexts)
{
    (void)model;
    (void)job;
    return plan->zero_stage == 0 || plan->zero_group % plan->cp == 0;
}

static FR_TARGET_RULE(replicates_alone)
{
    (void)model;
    (void)job;
    return plan->zero_stage > 0 || plan->dp == 1 || plan->cp > 1 ||
           (plan->tp == 1 && plan->pp == 1 && plan->ep == 1);
}

static FR_TARGET_RULE(shards_over_contexts)
{
    (void)model;
    (void)job;
    return plan->zero_stage > 0 || plan->cp == 1;
}

static FR_TARGET_RULE(has_mixed_precision)
{
    (void)model;
    (void)job;
    return plan->zero_stage > 0 || plan->precision == FR_DTYPE_F32 ||
           (plan->tp == 1 && plan->pp == 1);
}

static FR_TARGET_RULE(offloads_with_fsdp)
{
    (void)model;
    (void)job;
    return plan->zero_stage > 0 || !plan->is_optimizer_offloaded;
}

static FR_TARGET_RULE(has_sequence_parallel)
{
    (void)model;
    (void)job;
    return plan->tp == 1 || plan->is_sequence_parallel;
}

static FR_TARGET_RULE(compiles_overlap_of_tp)
{
    (void)model;
    (void)job;
    return plan->tp == 1 || !plan->is_tp_overlap ||
           plan->execution.kernels == FR_KERNELS_COMPILED;
}

static FR_TARGET_RULE(has_stages_of_schedule)
{
    (void)model;
    (void)job;
    bool is_looped = plan->schedule == FR_SCHEDULE_INTERLEAVED ||
                     plan->schedule == FR_SCHEDULE_ZB_V;
    return plan->pp == 1 || (is_looped ? plan->vpp > 1 : plan->vpp == 1);
}

static FR_TARGET_RULE(fills_stages)
{
    (void)model;
    bool is_single = plan->schedule == FR_SCHEDULE_1F1B ||
                     plan->schedule == FR_SCHEDULE_GPIPE;
    return !is_single || fr_plan_micro_batches(plan, job) >= plan->pp;
}

static FR_TARGET_RULE(has_whole_rounds)
{
    (void)model;
    const int64_t n_micro = fr_plan_micro_batches(plan, job);
    const int64_t n_rounds = n_micro / plan->pp;
    return plan->pp == 1 || plan->schedule != FR_SCHEDULE_INTERLEAVED ||
           n_rounds < 2 || n_micro % n_rounds == 0;
}

/* fp8 with scales of blocks (MXFP8), not of whole tensors. */
static bool has_blocks(const fr_plan *plan)
{
    return plan->precision == FR_DTYPE_FP8 &&
           plan->execution.scaling == FR_SCALING_BLOCK;
}

static FR_TARGET_RULE(scales_at_once)
{
    (void)model;
    (void)job;
    return plan->precision != FR_DTYPE_FP8 ||
           plan->execution.scaling != FR_SCALING_DELAYED;
}

static FR_TARGET_RULE(splits_no_blocks)
{
    (void)model;
    (void)job;
    return !has_blocks(plan) || plan->tp == 1 ||
           (plan->execution.kernels != FR_KERNELS_COMPILED &&
            !plan->is_tp_overlap);
}

static FR_TARGET_RULE(captures_nothing)
{
    (void)model;
    (void)job;
    return plan->execution.cuda_graphs == FR_CUDA_GRAPHS_NONE;
}

static FR_TARGET_RULE(captures_whole_steps)
{
    (void)model;
    (void)job;
    return plan->execution.cuda_graphs == FR_CUDA_GRAPHS_NONE ||
           (plan->pp == 1 && plan->ep == 1);
}

static FR_TARGET_RULE(gathers_keys)
{
    (void)model;
    (void)job;
    return plan->cp == 1 || plan->cp_kind == FR_CP_ALL_GATHER;
}

/* Ranks that split an expert. */
static int32_t etp_of(const fr_plan *plan)
{
    return plan->etp > 0 ? plan->etp : plan->tp;
}

static FR_TARGET_RULE(splits_experts)
{
    (void)job;
    const int32_t etp = etp_of(plan);
    return model->n_experts == 0 ||
           (plan->ep == 1 ? etp == plan->tp : etp == 1 || etp == plan->tp);
}

static FR_TARGET_RULE(has_whole_experts)
{
    (void)job;
    return model->n_experts == 0 ||
           etp_of(plan) == (plan->ep == 1 ? plan->tp : 1);
}

/* 0.2.0: experts of etp 1 take whole rows of cp x tp ranks. */
static FR_TARGET_RULE(covers_contexts)
{
    (void)job;
    return model->n_experts == 0 || plan->ep == 1 ||
           (etp_of(plan) == plan->tp ? plan->ep % plan->cp == 0
                                     : plan->ep % (plan->cp * plan->tp) == 0);
}

static FR_TARGET_RULE(dispatches_to_each)
{
    (void)job;
    return model->n_experts == 0 || plan->ep == 1 ||
           plan->expert_dispatch == FR_DISPATCH_ALL_TO_ALL;
}

static FR_TARGET_RULE(dispatches_whole_experts)
{
    return model->n_experts == 0 || plan->ep == 1 ||
           plan->expert_dispatch == FR_DISPATCH_ALL_TO_ALL ||
           has_whole_experts(plan, model, job);
}

static FR_TARGET_RULE(shards_with_experts)
{
    (void)job;
    return model->n_experts == 0 || plan->ep == 1 || plan->zero_stage > 0;
}

static FR_TARGET_RULE(hands_latents_round)
{
    (void)job;
    return model->kv_lora_rank == 0 || plan->cp == 1;
}

/* Experts lie within what shards: replicas are outside. */
static FR_TARGET_RULE(borrows_ranks)
{
    (void)job;
    const int64_t etp = plan->ep > 1 && model->n_experts > 0 ? etp_of(plan) : 1;
    const int64_t n_shards = plan->zero_stage == 0  ? plan->cp
                             : plan->zero_group > 0 ? plan->zero_group
                                                    : n_data(plan);
    return n_shards * plan->tp % (etp * plan->ep) == 0;
}

/* ---- models -------------------------------------------------------------- */

static FR_TARGET_RULE(is_decoder)
{
    (void)plan;
    (void)job;
    return model->kind == FR_MODEL_DECODER;
}

/* The rule holds for all three forms. */
static FR_TARGET_RULE(has_blocks_of_llama)
{
    (void)plan;
    (void)job;
    return model->is_rms_norm && model->is_gated_mlp &&
           model->activation == FR_ACTIVATION_SILU && model->is_rope &&
           model->rope_frac == 1 && !model->has_qkv_bias &&
           !model->has_out_bias && !model->has_mlp_bias &&
           !model->is_parallel_block && !model->has_scaled_embedding &&
           model->traits == 0 && fr_model_is_unmarked(model);
}

static FR_TARGET_RULE(sees_all_tokens)
{
    (void)plan;
    (void)job;
    return model->sliding_window == 0;
}

static FR_TARGET_RULE(has_heads_of_hidden)
{
    (void)plan;
    (void)job;
    return model->has_qk_norm || model->kv_lora_rank > 0 ||
           model->head_dim * model->n_heads == model->hidden;
}

static FR_TARGET_RULE(has_known_experts)
{
    (void)plan;
    (void)job;
    return model->n_experts == 0 || model->has_qk_norm ||
           model->kv_lora_rank > 0;
}

static FR_TARGET_RULE(has_experts_of_qwen3)
{
    (void)plan;
    (void)job;
    return model->n_experts == 0 || !model->has_qk_norm ||
           (model->first_dense_layers == 0 && model->moe_every == 1 &&
            model->shared_expert_ffn_hidden == 0 &&
            !model->has_softmax_over_all && !model->has_sigmoid_router);
}

static FR_TARGET_RULE(has_layers_of_deepseek)
{
    (void)plan;
    (void)job;
    return model->kv_lora_rank == 0 ||
           (model->n_experts > 0 && model->moe_every == 1 &&
            model->shared_expert_ffn_hidden > 0 &&
            model->shared_expert_ffn_hidden % model->expert_ffn_hidden == 0 &&
            !model->has_shared_expert_gate && !model->has_qk_norm &&
            !model->is_tied);
}

static FR_TARGET_RULE(has_own_head)
{
    (void)plan;
    (void)job;
    return model->has_qk_norm || !model->is_tied;
}

static FR_TARGET_RULE(stages_no_qwen3)
{
    (void)job;
    return !model->has_qk_norm || plan->pp == 1;
}

static FR_TARGET_RULE(dispatches_qwen3_to_each)
{
    return !model->has_qk_norm || dispatches_to_each(plan, model, job);
}

#define BIT(symbol) FR_PLAN_BIT(symbol)
#define FACT(symbol) FR_EXECUTION_BIT(symbol)

static const fr_target_rule rules[] = {
    {.text = "a decoder: it has no encoders and no lists of layers",
     .source = "models/ (main, b5bcd76): llama3, qwen3, deepseek_v3 ...",
     .holds = is_decoder},
    {.text = "RMSNorm, SwiGLU, rotary positions of whole heads and no biases, "
             "one after the other, as Llama, Qwen3 and DeepSeek-V3 have",
     .source = "models/common/config_utils.py, make_gqa_config, "
               "make_ffn_config (main); models/*/model/model.py (0.2)",
     .holds = has_blocks_of_llama},
    {.text = "attention to all tokens: its models of that form have no window",
     .source = "models/common/config_utils.py, get_attention_config (main)",
     .holds = sees_all_tokens},
    {.text = "heads of hidden / heads columns, or norms of q and k (Qwen3)",
     .source = "models/llama3/__init__.py, _build_llama3_layers",
     .holds = has_heads_of_hidden},
    {.text = "experts with norms of q and k (Qwen3) or latent attention "
             "(DeepSeek-V3); others it has not",
     .source = "models/{qwen3,deepseek_v3}/__init__.py",
     .holds = has_known_experts},
    {.text = "experts in all layers, none shared, whose weights add up to 1, "
             "with norms of q and k",
     .source = "models/qwen3/__init__.py, _build_qwen3_moe_layers",
     .holds = has_experts_of_qwen3},
    {.text = "experts beside shared ones of whole width, and a head of its "
             "own, with latent attention",
     .source = "models/deepseek_v3/__init__.py, build_mla_moe_layers",
     .holds = has_layers_of_deepseek},
    {.text = "a head apart from the embedding without norms of q and k",
     .source = "models/llama3/model/args.py (0.2): no enable_weight_tying",
     .holds = has_own_head,
     .until = FR_TORCHTITAN_0_2},
    {.text = "pp 1 with norms of q and k before main",
     .source = "models/qwen3/__init__.py (0.2), pipelining_fn=None",
     .fields = BIT(PP),
     .holds = stages_no_qwen3,
     .until = FR_TORCHTITAN_0_2},
    {.text = "expert-dispatch all-to-all with norms of q and k before main",
     .source = "models/qwen3/infra/parallelize.py (0.2), apply_moe_ep_tp: no "
               "use_deepep",
     .fields = BIT(EP) | BIT(EXPERT_DISPATCH),
     .holds = dispatches_qwen3_to_each,
     .until = FR_TORCHTITAN_0_2},
    {.text = "more than one rank to shard over with zero 3",
     .source = "distributed/parallel_dims.py, fsdp_enabled",
     .fields = BIT(ZERO) | BIT(DP) | BIT(CP) | BIT(ZERO_GROUP),
     .holds = shards_over_some},
    {.text = "a zero-group that cp divides",
     .source = "distributed/parallel_dims.py: fsdp is dp_shard x cp",
     .fields = BIT(ZERO) | BIT(ZERO_GROUP) | BIT(CP),
     .holds = shards_whole_contexts},
    {.text = "tp 1, pp 1 and ep 1 with zero 0 and dp (DDP)",
     .source = "models/llama3/infra/parallelize.py:151 (0.2): \"DDP has not "
               "supported > 1D parallelism\"; main has FSDP over one rank",
     .fields = BIT(ZERO) | BIT(DP) | BIT(TP) | BIT(PP) | BIT(CP) | BIT(EP),
     .holds = replicates_alone,
     .until = FR_TORCHTITAN_0_2},
    {.text = "zero 3 with cp, which shards parameters too",
     .source = "distributed/parallel_dims.py: fsdp is dp_shard x cp",
     .fields = BIT(ZERO) | BIT(CP),
     .holds = shards_over_contexts},
    {.text = "precision f32 without FSDP in tensor and pipeline parallelism",
     .source = "config/job_config.py, mixed_precision_param: \"takes effect "
               "via fully_shard ... or torch.autocast\"",
     .fields = BIT(ZERO) | BIT(PRECISION) | BIT(TP) | BIT(PP),
     .holds = has_mixed_precision,
     .until = FR_TORCHTITAN_0_2},
    {.text = "zero 3 with offload-optimizer",
     .source = "config/job_config.py, enable_cpu_offload: \"in FSDP\"",
     .fields = BIT(ZERO) | BIT(OFFLOAD_OPTIMIZER),
     .holds = offloads_with_fsdp},
    {.text = "sequence-parallel with tp",
     .source = "models/llama3/infra/parallelize.py, apply_tp (0.2)",
     .fields = BIT(TP) | BIT(SEQUENCE_PARALLEL),
     .holds = has_sequence_parallel,
     .until = FR_TORCHTITAN_0_2},
    {.text = "vpp 1 with 1f1b and gpipe, more with interleaved and zb-v",
     .source = "distributed/pipeline_parallel.py:97 and 105: \"Single stage "
               "schedule requires exactly 1 stage per rank\"",
     .fields = BIT(SCHEDULE) | BIT(VPP) | BIT(PP),
     .holds = has_stages_of_schedule},
    {.text = "layers that pp x vpp divides, or a layer-split",
     .source = "distributed/pipeline_parallel.py:86",
     .fields = BIT(PP) | BIT(VPP) | BIT(LAYER_SPLIT),
     .holds = fr_has_even_stages},
    {.text = "as many micro-batches as stages with 1f1b and gpipe",
     .source = "torch/distributed/pipelining/schedules.py, "
               "PipelineScheduleSingle: \"Number of microbatches must be "
               "greater than or equal to the number of stages\"",
     .fields = BIT(SCHEDULE) | BIT(PP) | BIT(DP) | BIT(MICRO_BATCH),
     .holds = fills_stages},
    {.text = "micro-batches that micro-batches / pp divides with interleaved",
     .source = "torch/distributed/pipelining/schedules.py, "
               "ScheduleInterleaved1F1B: \"a multiple of the number of "
               "rounds\"",
     .fields = BIT(SCHEDULE) | BIT(PP) | BIT(DP) | BIT(MICRO_BATCH),
     .holds = has_whole_rounds},
    {.text = "scaling current or block with fp8",
     .source = "components/quantization/float8.py and mx.py: scales of the "
               "tensor, its rows or blocks, none of steps before",
     .fields = BIT(PRECISION),
     .facts = FACT(SCALING),
     .holds = scales_at_once},
    {.text = "compiled kernels with tp_overlap",
     .source = "config/configs.py, CompileConfig: \"Async "
               "TP requires 'model' in --compile.components and "
               "--compile.enable\"",
     .fields = BIT(TP) | BIT(TP_OVERLAP),
     .facts = FACT(KERNELS),
     .holds = compiles_overlap_of_tp},
    {.text = "tp 1 with block scaling and compiled kernels",
     .source = "components/quantization/mx.py (0.2): \"TP not yet supported "
               "with torch.compile for mxfp8\"",
     .fields = BIT(PRECISION) | BIT(TP) | BIT(TP_OVERLAP),
     .facts = FACT(KERNELS) | FACT(SCALING),
     .holds = splits_no_blocks,
     .until = FR_TORCHTITAN_0_2},
    {.text = "no cuda-graphs before main",
     .source = "config/job_config.py (0.2): no such key",
     .facts = FACT(CUDA_GRAPHS),
     .holds = captures_nothing,
     .until = FR_TORCHTITAN_0_2},
    {.text = "pp 1 and ep 1 with cuda-graphs",
     .source = "trainer.py, _validate_cuda_graphs (main)",
     .fields = BIT(PP) | BIT(EP),
     .facts = FACT(CUDA_GRAPHS),
     .holds = captures_whole_steps,
     .since = FR_TORCHTITAN_MAIN},
    {.text = "cp-kind all-gather",
     .source = "distributed/context_parallel (main): no rotate method",
     .fields = BIT(CP) | BIT(CP_KIND),
     .holds = gathers_keys,
     .since = FR_TORCHTITAN_MAIN},
    {.text = "etp 1 or tp",
     .source = "distributed/parallel_dims.py (0.2): \"Currently we only "
               "support ETP=TP or ETP=1\"",
     .fields = BIT(EP) | BIT(ETP) | BIT(TP),
     .holds = splits_experts},
    {.text = "etp 1 with ep, tp without",
     .source = "distributed/parallel_dims.py (main): efsdp = dp_shard x cp x "
               "tp / ep",
     .fields = BIT(EP) | BIT(ETP) | BIT(TP),
     .holds = has_whole_experts,
     .since = FR_TORCHTITAN_MAIN},
    {.text = "ep that cp x tp / etp divides before 0.2.1",
     .source = "distributed/parallel_dims.py:58 (0.2.0), _validate",
     .fields = BIT(EP) | BIT(ETP) | BIT(TP) | BIT(CP),
     .holds = covers_contexts,
     .until = FR_TARGET_FIRST_ALONE},
    {.text = "expert-dispatch all-to-all before 0.2.1",
     .source = "config/job_config.py (0.2.0): no expert_parallel_comm_backend",
     .fields = BIT(EP) | BIT(EXPERT_DISPATCH),
     .holds = dispatches_to_each,
     .until = FR_TARGET_FIRST_ALONE},
    {.text = "etp 1 with ep and expert-dispatch by-node (DeepEP)",
     .source = "models/deepseek_v3/infra/parallelize.py (0.2): \"DeepEP with "
               "Expert Tensor Parallelism (ETP) is not supported yet\"",
     .fields = BIT(EP) | BIT(ETP) | BIT(TP) | BIT(EXPERT_DISPATCH),
     .holds = dispatches_whole_experts,
     .until = FR_TORCHTITAN_0_2},
    {.text = "zero 3 with ep",
     .source = "models/deepseek_v3/infra/parallelize.py (0.2): experts are "
               "sharded over a mesh that FSDP alone makes",
     .fields = BIT(EP) | BIT(ZERO),
     .holds = shards_with_experts,
     .since = FR_TORCHTITAN_0_2,
     .until = FR_TORCHTITAN_0_2},
    {.text = "cp 1 with latent attention",
     .source = "models/deepseek_v3/model/args.py (0.2), update_from_config: "
               "\"Context Parallel only supports SDPA attention\", its 671B "
               "has FlexAttention",
     .fields = BIT(CP),
     .holds = hands_latents_round,
     .until = FR_TORCHTITAN_0_2},
    {.text = "ep that divides dp_shard x cp x tp / etp",
     .source = "distributed/parallel_dims.py, _validate: "
               "\"expert_parallel_degree must divide dp_shard * cp * tp\"",
     .fields = BIT(EP) | BIT(ETP) | BIT(TP) | BIT(CP) | BIT(DP) | BIT(ZERO) |
               BIT(ZERO_GROUP),
     .holds = borrows_ranks},
    {.text = NULL}};

static const fr_target_field fields[FR_PLAN_FIELDS_N] = {
    FR_TARGET_FIELDS_OF_NO_KEY,
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
        FR_WRITTEN("training.local_batch_size, "
                   "parallelism.pipeline_parallel_microbatch_size"),
    [FR_PLAN_SCHEDULE] = FR_WRITTEN_ONLY(
        FR_IS(FR_SCHEDULE_1F1B) | FR_IS(FR_SCHEDULE_GPIPE) |
            FR_IS(FR_SCHEDULE_INTERLEAVED) | FR_IS(FR_SCHEDULE_ZB_V) |
            FR_IS(FR_SCHEDULE_ZB_H1),
        "parallelism.pipeline_parallel_schedule, zb-h1 by "
        "pipeline_parallel_schedule_csv",
        "torch.distributed.pipelining has gpipe, 1f1b, interleaved and zb-v, "
        "and zb-h1 is written task by task"),
    [FR_PLAN_ZERO] = FR_WRITTEN_ONLY(
        FR_IS(0) | FR_IS(3), "parallelism.data_parallel_shard_degree",
        "zero 3 is FSDP and zero 0 DDP, it has nothing between"),
    [FR_PLAN_RECOMPUTE] = FR_WRITTEN("activation_checkpoint.mode"),
    [FR_PLAN_SEQUENCE_PARALLEL] =
        FR_WRITTEN("parallelism.enable_sequence_parallel; 0.2: always with "
                   "tp"),
    [FR_PLAN_OVERLAP] =
        FR_IMPLIED_ONLY(FR_IS(true), "FSDP and DDP reduce beside backward",
                        "FSDP and DDP reduce beside backward"),
    [FR_PLAN_BUCKET] = FR_PREDICTED("its DDP has buckets of 100 MiB, FSDP "
                                    "reduces by layer"),
    [FR_PLAN_COMPRESS] = FR_REFUSED("it reduces in f32 (config/job_config.py, "
                                    "mixed_precision_reduce)"),
    [FR_PLAN_COMPRESSOR_RANK] = FR_REFUSED("it has no PowerSGD"),
    [FR_PLAN_COMPRESSOR_DENSITY] = FR_REFUSED("it has no top-k"),
    [FR_PLAN_ERROR_FEEDBACK] = FR_REFUSED("it keeps no residuals"),
    [FR_PLAN_RANK_ORDER] =
        FR_IMPLIED_ONLY(FR_IS(FR_RANK_ORDER_TP_DP_PP),
                        "its mesh is pp, dp, cp, tp", "its order is tp-dp-pp"),
    [FR_PLAN_LAYER_SPLIT] =
        FR_WRITTEN("parallelism.module_fqns_per_model_part"),
    FR_TARGET_SHARES,
    [FR_PLAN_PRECISION] = FR_WRITTEN_ONLY(
        FR_IS(FR_DTYPE_F32) | FR_IS(FR_DTYPE_BF16) | FR_IS(FR_DTYPE_FP8),
        "training.mixed_precision_param, converters", "it has f32, bf16, fp8"),
    [FR_PLAN_GRAD_DTYPE] =
        FR_WRITTEN_ONLY(FR_IS(FR_DTYPE_F32), "training.mixed_precision_reduce",
                        "it reduces in f32 alone"),
    [FR_PLAN_FLASH_ATTENTION] = FR_PREDICTED("SDPA decides it"),
    [FR_PLAN_RECOMPUTE_PARTS] =
        FR_WRITTEN_ONLY(FR_IS(FR_RECOMPUTE_PART_PRODUCTS),
                        "activation_checkpoint.selective_ac_option op",
                        "its selective makes every second product again "
                        "(recompute-parts products)"),
    [FR_PLAN_RECOMPUTE_LAYERS] = FR_REFUSED("it makes whole chunks again"),
    [FR_PLAN_ZERO_GROUP] = FR_WRITTEN("parallelism.data_parallel_shard_degree"),
    [FR_PLAN_ZERO_RESHARD] =
        FR_WRITTEN("parallelism.fsdp_reshard_after_forward"),
    [FR_PLAN_ZERO_PREFETCH] =
        FR_IMPLIED_ONLY(FR_IS(1), "FSDP2 gathers one layer ahead",
                        "FSDP2 gathers one layer ahead"),
    [FR_PLAN_GATHER_OVERLAP] = FR_PREDICTED("of ZeRO 1 and 2 alone"),
    [FR_PLAN_TP_OVERLAP] = FR_WRITTEN(
        "compile.enable_async_tensor_parallel (0.2: of parallelism)"),
    [FR_PLAN_EP_OVERLAP] = FR_REFUSED("it has no combined 1F1B"),
    [FR_PLAN_CP_KIND] =
        FR_WRITTEN_ONLY(FR_IS(FR_CP_ALL_GATHER) | FR_IS(FR_CP_RING),
                        "parallelism.context_parallel_rotate_method",
                        "it gathers keys and values, or hands them round"),
    [FR_PLAN_ETP] = FR_WRITTEN("parallelism.expert_tensor_parallel_degree "
                               "(0.2)"),
    [FR_PLAN_EXPERT_DISPATCH] =
        FR_WRITTEN("parallelism.expert_parallel_comm_backend (main: of the "
                   "model)"),
    [FR_PLAN_OFFLOAD_OPTIMIZER] = FR_WRITTEN("training.enable_cpu_offload"),
    [FR_PLAN_OFFLOAD_ACTIVATIONS] = FR_REFUSED("it has no such key"),
};

static const fr_target_field facts[FR_EXECUTION_FIELDS_N] = {
    [FR_EXECUTION_KERNELS] = FR_WRITTEN("compile.enable: compiled, or eager"),
    [FR_EXECUTION_COMPRESS_BY] = FR_REFUSED("it compresses no gradients"),
    [FR_EXECUTION_SCALING] =
        FR_WRITTEN("converters: float8 (main: of rows), MXFP8"),
    [FR_EXECUTION_CUDA_GRAPHS] = FR_WRITTEN_ONLY(
        FR_IS(FR_CUDA_GRAPHS_NONE) | FR_IS(FR_CUDA_GRAPHS_FULL),
        "training.disable_cuda_graphs (main)", "main captures whole steps"),
    [FR_EXECUTION_LOSS_FUSED] = FR_PREDICTED("compile.components decides it"),
    [FR_EXECUTION_ZERO_UNIT] = FR_REFUSED("FSDP2 gathers by layer"),
};

static const char *const versions[] = {[FR_TORCHTITAN_0_2_0] = "0.2.0",
                                       [FR_TORCHTITAN_0_2] = "0.2",
                                       [FR_TORCHTITAN_MAIN] = "main",
                                       NULL};

const fr_target fr_target_torchtitan = {
    .name = "torchtitan",
    .summary = "a configuration of torchtitan",
    .versions = versions,
    .fields = fields,
    .facts = facts,
    .rules = rules,
};
