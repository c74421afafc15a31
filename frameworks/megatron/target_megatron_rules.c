/*
 * target_megatron_rules.c: what Megatron-LM's own source asks of arguments,
 * by version.  Lines are those of tag core_v0.19.0 of
 * https://github.com/NVIDIA/Megatron-LM, or of the last version that a rule
 * holds for; files are in megatron/training (arguments.py, initialize.py) and
 * megatron/core.
 */
#include "frameworks/megatron/target_megatron_rules.h"

#include "frameworks/target_rows.h"

/* A rule that is one expression over plan, model and job. */
#define RULE(name, expression)                                                 \
    static FR_TARGET_RULE(name)                                                \
    {                                                                          \
        (void)plan;                                                            \
        (void)model;                                                           \
        (void)job;                                                             \
        return expression;                                                     \
    }

static bool has_part(const fr_plan *plan, uint32_t parts)
{
    return plan->recompute == FR_RECOMPUTE_SELECTIVE &&
           (plan->recompute_parts & parts) != 0;
}

static bool has_graphs(const fr_plan *plan, fr_cuda_graphs graphs)
{
    return plan->execution.cuda_graphs == graphs;
}

static bool is_fp8(const fr_plan *plan)
{
    return plan->precision == FR_DTYPE_FP8;
}

static int64_t n_data(const fr_plan *plan)
{
    return (int64_t)plan->dp * plan->cp;
}

static bool has_partial_copies(const fr_plan *plan)
{
    return plan->zero_stage > 0 && plan->zero_group > 0 &&
           plan->zero_group != n_data(plan);
}

/* ---- stages -------------------------------------------------------------- */

RULE(has_no_split,
     plan->pp == 1 || (plan->n_split == 0 && fr_megatron_is_even(plan, model)))

/* Even stages, or ends of their own without virtual stages. */
static FR_TARGET_RULE(has_plain_ends)
{
    int32_t first, last;
    (void)job;
    return plan->pp == 1 || fr_megatron_is_even(plan, model) ||
           (plan->vpp == 1 && fr_megatron_ends(plan, model, &first, &last));
}

static FR_TARGET_RULE(has_ends)
{
    int32_t first, last;
    (void)job;
    return plan->pp == 1 || fr_megatron_is_even(plan, model) ||
           fr_megatron_ends(plan, model, &first, &last);
}

#define OF_STAGES                                                              \
    (FR_PLAN_BIT(PP) | FR_PLAN_BIT(VPP) | FR_PLAN_BIT(LAYER_SPLIT))

/* ---- parallel degrees ---------------------------------------------------- */

RULE(has_rows_of_experts,
     plan->tp == 1 || model->n_experts == 0 || plan->is_sequence_parallel)
RULE(overlaps_with_rows,
     !plan->is_tp_overlap || plan->tp == 1 || plan->is_sequence_parallel)
RULE(has_old_order, plan->rank_order != FR_RANK_ORDER_TP_PP_DP ||
                        (plan->cp == 1 && plan->ep == 1))
RULE(has_ring, plan->cp == 1 || plan->cp_kind == FR_CP_RING)
RULE(has_plain_etp, plan->etp == 0 || plan->etp == plan->tp)
RULE(has_bias_on_whole_experts, model->n_experts == 0 || !model->has_mlp_bias ||
                                    (plan->etp > 0 ? plan->etp : plan->tp) == 1)
RULE(has_plain_dispatch,
     model->n_experts == 0 || plan->expert_dispatch == FR_DISPATCH_ALL_TO_ALL)
RULE(dispatches_to_others,
     model->n_experts == 0 || plan->expert_dispatch == FR_DISPATCH_ALL_TO_ALL ||
         (int64_t)plan->ep * (plan->etp > 0 ? plan->etp : plan->tp) > 1)
RULE(has_no_ep_overlap, plan->ep == 1 || !plan->is_ep_overlap)

static FR_TARGET_RULE(overlaps_ep_in_16_bits)
{
    (void)model;
    (void)job;
    fr_dtype base = fr_plan_storage_dtype(plan);
    return plan->ep == 1 || !plan->is_ep_overlap || base == FR_DTYPE_BF16 ||
           base == FR_DTYPE_F16;
}

RULE(overlaps_ep_with_one_mtp,
     plan->ep == 1 || !plan->is_ep_overlap || model->n_mtp_layers <= 1)

/* ---- data parallel ------------------------------------------------------- */

RULE(shards_optimizer_alone, plan->zero_stage <= 1)
RULE(overlaps_shards, plan->zero_stage < 2 || plan->is_overlap)
RULE(has_whole_copies, !has_partial_copies(plan))
RULE(has_no_bf16_gradients, plan->grad_dtype != FR_DTYPE_BF16)

static FR_TARGET_RULE(has_its_gradients)
{
    (void)model;
    (void)job;
    fr_dtype base = fr_plan_storage_dtype(plan);
    return plan->grad_dtype == FR_DTYPE_F32 ||
           (plan->grad_dtype == base &&
            (base == FR_DTYPE_BF16 || base == FR_DTYPE_F16));
}

/* ---- recompute and offload ----------------------------------------------- */

#define PARTS_OF_0_11 (FR_RECOMPUTE_PART_ATTENTION | FR_RECOMPUTE_PART_EXPERTS)

RULE(recomputes_core_alone, !has_part(plan, ~(uint32_t)PARTS_OF_0_11))
RULE(recomputes_something,
     plan->recompute != FR_RECOMPUTE_SELECTIVE || plan->recompute_parts != 0)
RULE(recomputes_no_products, !has_part(plan, FR_RECOMPUTE_PART_PRODUCTS))
RULE(recomputes_experts_activation,
     model->n_experts > 0 || !has_part(plan, FR_RECOMPUTE_PART_ACTIVATION))
RULE(recomputes_latent_heads,
     model->kv_lora_rank > 0 || !has_part(plan, FR_RECOMPUTE_PART_LATENT))
RULE(recomputes_without_delayed_scales,
     !is_fp8(plan) || plan->execution.scaling != FR_SCALING_DELAYED ||
         !has_part(plan, FR_RECOMPUTE_PART_NORM | FR_RECOMPUTE_PART_ACTIVATION))
RULE(recomputes_in_bf16, model->n_experts == 0 ||
                             !has_part(plan, FR_RECOMPUTE_PART_ACTIVATION) ||
                             fr_plan_storage_dtype(plan) == FR_DTYPE_BF16)
RULE(adds_shards_apart,
     plan->zero_stage < 2 || plan->execution.is_grad_added_apart)
RULE(recomputes_above_fp8,
     !is_fp8(plan) ||
         !has_part(plan, FR_RECOMPUTE_PART_NORM | FR_RECOMPUTE_PART_ACTIVATION))
RULE(has_no_offloaded_optimizer, !plan->is_optimizer_offloaded)
RULE(offloads_shards_of_adam,
     !plan->is_optimizer_offloaded ||
         (plan->zero_stage > 0 && job->optimizer == FR_OPTIMIZER_ADAMW))
RULE(has_no_offloaded_activations, plan->activation_offload_frac == 0)

static FR_TARGET_RULE(offloads_whole_layers)
{
    (void)job;
    int64_t n = fr_megatron_offloaded_layers(plan, model);
    return plan->activation_offload_frac == 0 || (n > 0 && n < model->n_layers);
}

RULE(offloads_without_pipeline,
     plan->activation_offload_frac == 0 || plan->pp == 1)
RULE(offloads_without_recompute,
     plan->activation_offload_frac == 0 || plan->recompute == FR_RECOMPUTE_NONE)
RULE(offloads_without_graphs,
     plan->activation_offload_frac == 0 ||
         plan->execution.cuda_graphs == FR_CUDA_GRAPHS_NONE)

/* ---- kernels ------------------------------------------------------------- */

RULE(has_delayed_scales,
     !is_fp8(plan) || plan->execution.scaling == FR_SCALING_DELAYED)
RULE(scales_no_rows, !is_fp8(plan) || plan->execution.scaling != FR_SCALING_ROW)
RULE(has_no_fp4, plan->precision != FR_DTYPE_FP4)
RULE(has_no_graphs, plan->execution.cuda_graphs == FR_CUDA_GRAPHS_NONE)
RULE(has_no_full_graph, !has_graphs(plan, FR_CUDA_GRAPHS_FULL))
RULE(graphs_layers_without_full_recompute,
     !has_graphs(plan, FR_CUDA_GRAPHS_LAYER) ||
         plan->recompute != FR_RECOMPUTE_FULL)
RULE(graphs_without_recompute,
     plan->execution.cuda_graphs == FR_CUDA_GRAPHS_NONE ||
         plan->recompute == FR_RECOMPUTE_NONE)
/* The graphs of a layer are Transformer Engine's from core 0.12. */
RULE(graphs_step_without_recompute, !has_graphs(plan, FR_CUDA_GRAPHS_FULL) ||
                                        plan->recompute == FR_RECOMPUTE_NONE)

/* Beside a graph of attention alone, other parts may be made again. */
static FR_TARGET_RULE(graphs_what_is_kept)
{
    bool has_part_of_attention =
        has_part(plan, FR_RECOMPUTE_PART_ATTENTION | FR_RECOMPUTE_PART_LATENT);
    (void)job;
    if (plan->execution.cuda_graphs == FR_CUDA_GRAPHS_NONE ||
        plan->recompute == FR_RECOMPUTE_NONE)
        return true;
    return plan->execution.cuda_graphs == FR_CUDA_GRAPHS_LAYER &&
           model->n_experts > 0 && plan->recompute == FR_RECOMPUTE_SELECTIVE &&
           !has_part_of_attention;
}

RULE(graphs_no_merged_passes, !has_graphs(plan, FR_CUDA_GRAPHS_FULL) ||
                                  plan->ep == 1 || !plan->is_ep_overlap)
RULE(graphs_experts_apart, !has_graphs(plan, FR_CUDA_GRAPHS_LAYER) ||
                               model->n_experts == 0 ||
                               !has_part(plan, FR_RECOMPUTE_PART_EXPERTS))

/* Recomputation within a graph draws no random numbers. */
static FR_TARGET_RULE(graphs_recompute_without_dropout)
{
    bool has_whole_layer = plan->execution.cuda_graphs == FR_CUDA_GRAPHS_FULL ||
                           model->n_experts == 0;
    bool has_dense = model->first_dense_layers > 0 || model->moe_every > 1;
    uint32_t parts = FR_RECOMPUTE_PART_ATTENTION;
    if (has_whole_layer)
        parts |= FR_RECOMPUTE_PART_MLP | FR_RECOMPUTE_PART_EXPERTS;
    else if (has_dense)
        parts |= FR_RECOMPUTE_PART_MLP;
    return plan->execution.cuda_graphs == FR_CUDA_GRAPHS_NONE ||
           job->dropout == 0 || !has_part(plan, parts);
}

RULE(has_own_loss, !plan->execution.is_loss_fused)
RULE(loss_is_fused_of_16_bits, !plan->execution.is_loss_fused ||
                                   fr_plan_storage_dtype(plan) != FR_DTYPE_F32)

/* ---- model and job ------------------------------------------------------- */

RULE(is_decoder, model->kind == FR_MODEL_DECODER && !model->is_parallel_block &&
                     !model->has_scaled_embedding && model->has_final_norm &&
                     !model->has_embed_norm && model->traits == 0 &&
                     fr_model_is_unmarked(model))

/* --disable-bias-linear takes all biases, --add-qkv-bias gives these back. */
RULE(has_known_biases, model->has_out_bias == model->has_mlp_bias &&
                           (!model->has_out_bias || model->has_qkv_bias))

RULE(has_known_activation,
     model->is_gated_mlp ? model->activation == FR_ACTIVATION_SILU
                         : model->activation == FR_ACTIVATION_GELU ||
                               model->activation == FR_ACTIVATION_GELU_TANH)

RULE(has_whole_rotary_base,
     !model->is_rope || model->rope_theta == (double)(int64_t)model->rope_theta)
RULE(has_no_rope_scaling, !model->has_rope_scaling)
RULE(has_usual_rope_factor,
     !model->has_rope_scaling || model->rope_factor == FR_MEGATRON_ROPE_FACTOR)
RULE(has_known_rope_scaling,
     !model->has_rope_scaling ||
         (model->rope_kind == FR_ROPE_LLAMA3 && model->rope_factor > 0 &&
          model->rope_low_factor == 1 && model->rope_high_factor == 4 &&
          model->rope_original_seq == 8192))
RULE(has_no_latent, model->kv_lora_rank == 0)
RULE(has_no_mtp, model->n_mtp_layers == 0)
RULE(has_mtp_without_context, model->n_mtp_layers == 0 || plan->cp == 1)
RULE(has_mtp_on_even_stages,
     model->n_mtp_layers == 0 || plan->pp == 1 ||
         (plan->n_split == 0 && fr_megatron_is_even(plan, model)))
RULE(overlaps_ep_and_mtp_in_pipeline, model->n_mtp_layers == 0 ||
                                          plan->ep == 1 ||
                                          !plan->is_ep_overlap || plan->pp > 1)
RULE(has_rope_with_mtp, model->n_mtp_layers == 0 || model->is_rope)
RULE(has_no_window, model->sliding_window == 0)
RULE(has_no_expert_gate,
     model->n_experts == 0 || !model->has_shared_expert_gate)

/* A softmax over the chosen, or over all, and nothing else. */
RULE(has_plain_router,
     model->n_experts == 0 ||
         (!model->has_sigmoid_router && !model->has_router_bias &&
          !fr_megatron_has_groups(model) && model->routed_scale == 1))
/* Sigmoids of several experts always add up to 1, that of one never does. */
RULE(has_known_sigmoids,
     model->n_experts == 0 || !model->has_sigmoid_router ||
         model->has_softmax_over_all == (model->n_experts_per_token == 1))
RULE(has_bias_of_sigmoids, model->n_experts == 0 || !model->has_router_bias ||
                               model->has_sigmoid_router)
RULE(has_groups_by_two, model->n_experts == 0 ||
                            !fr_megatron_has_groups(model) ||
                            fr_megatron_group_best(model) == 2)
RULE(has_groups_by_share,
     model->n_experts == 0 || !fr_megatron_has_groups(model) ||
         model->n_experts_per_token / model->n_chosen_groups ==
             fr_megatron_group_best(model))

/* Before core 0.10 every layer has experts, as wide as --ffn-hidden-size. */
RULE(has_experts_alone,
     model->n_experts == 0 ||
         (model->shared_expert_ffn_hidden == 0 &&
          model->first_dense_layers == 0 && model->moe_every == 1))

RULE(has_known_optimizer,
     job->optimizer == FR_OPTIMIZER_ADAMW || job->optimizer == FR_OPTIMIZER_SGD)
RULE(has_seed, job->seed > 0 && job->seed < UINT64_C(1) << 31)
RULE(has_steps_after_warmup, job->warmup_steps < job->n_steps)

/* ---- the table ----------------------------------------------------------- */

#define BIT FR_PLAN_BIT
#define FACT FR_EXECUTION_BIT

const fr_target_rule fr_megatron_rules[] = {
    /* Stages. */
    {"the same number of layers on all stages (a split of its own: core 0.9)",
     "arguments.py:264, validate_args", OF_STAGES, has_no_split, 0,
     FR_TARGET_FIRST_ALONE, 0},
    {"even stages, or a first and last of their own at vpp 1",
     "arguments.py:271, validate_args; transformer_config.py:430, "
     "__post_init__",
     OF_STAGES, has_plain_ends, FR_MEGATRON_0_9, FR_MEGATRON_0_10, 0},
    {"even stages, or a first and last pipeline rank of their own",
     "arguments.py:442, validate_args; transformer_config.py:760, "
     "__post_init__",
     OF_STAGES, has_ends, FR_MEGATRON_0_11, FR_MEGATRON_0_12, 0},
    /* Parallel degrees. */
    {"sequence parallel with experts and tp",
     "transformer/moe/moe_layer.py:629, MoELayer.forward",
     BIT(TP) | BIT(SEQUENCE_PARALLEL), has_rows_of_experts, 0, 0, 0},
    {"sequence parallel with tp-comm-overlap",
     "arguments.py:1402, validate_args",
     BIT(TP) | BIT(TP_OVERLAP) | BIT(SEQUENCE_PARALLEL), overlaps_with_rows, 0,
     0, 0},
    {"cp 1 and ep 1 with rank order tp-pp-dp",
     "arguments.py:689, validate_args", BIT(RANK_ORDER) | BIT(CP) | BIT(EP),
     has_old_order, 0, FR_MEGATRON_0_10, 0},
    {"cp-kind ring before core 0.10 (--cp-comm-type)",
     "arguments.py, _add_distributed_args", BIT(CP) | BIT(CP_KIND), has_ring, 0,
     FR_MEGATRON_0_9, 0},
    {"etp as tp before core 0.10 (--expert-tensor-parallel-size)",
     "arguments.py, _add_moe_args", BIT(TP) | BIT(ETP), has_plain_etp, 0,
     FR_MEGATRON_0_9, 0},
    {"etp 1 with experts that have biases",
     "transformer/transformer_config.py:2095, __post_init__",
     BIT(TP) | BIT(ETP), has_bias_on_whole_experts, FR_MEGATRON_0_10, 0, 0},
    {"expert-dispatch all-to-all before core 0.12 (flex)",
     "arguments.py, _add_moe_args", BIT(EXPERT_DISPATCH), has_plain_dispatch, 0,
     FR_MEGATRON_0_11, 0},
    {"ep x etp > 1 with expert-dispatch by-node",
     "transformer/moe/token_dispatcher.py, MoEFlexTokenDispatcher.__init__",
     BIT(EXPERT_DISPATCH) | BIT(EP) | BIT(TP) | BIT(ETP), dispatches_to_others,
     FR_MEGATRON_0_12, 0, 0},
    {"core 0.14 or later for ep-overlap", "arguments.py, _add_moe_args",
     BIT(EP) | BIT(EP_OVERLAP), has_no_ep_overlap, 0, FR_MEGATRON_0_13, 0},
    {"bf16 or f16 with ep-overlap",
     "transformer/transformer_config.py:2467, __post_init__",
     BIT(EP) | BIT(EP_OVERLAP) | BIT(PRECISION), overlaps_ep_in_16_bits,
     FR_MEGATRON_0_14, 0, 0},
    {"at most one layer of later tokens with ep-overlap",
     "transformer/transformer_config.py:2474, __post_init__",
     BIT(EP) | BIT(EP_OVERLAP), overlaps_ep_with_one_mtp, FR_MEGATRON_0_14, 0,
     0},
    /* Data parallel. */
    {"overlap-grad-reduce with overlap-param-gather",
     "arguments.py:994, validate_args",
     BIT(ZERO) | BIT(GATHER_OVERLAP) | BIT(OVERLAP), fr_gathers_with_reduction,
     0, 0, 0},
    {"zero 0 or 1 before core 0.12 (--use-custom-fsdp)",
     "arguments.py, _add_distributed_args", BIT(ZERO), shards_optimizer_alone,
     0, FR_MEGATRON_0_11, 0},
    {"pp 1 with sharded gradients or parameters",
     "docs/user-guide/features/megatron_fsdp.md: it goes with tensor, context "
     "and expert parallelism",
     BIT(ZERO) | BIT(PP), fr_shards_without_pipeline, FR_MEGATRON_0_12, 0, 0},
    {"overlap with sharded gradients or parameters",
     "arguments.py:587, validate_args", BIT(ZERO) | BIT(OVERLAP),
     overlaps_shards, FR_MEGATRON_0_12, FR_MEGATRON_0_13, 0},
    {"grad_added_apart with sharded gradients or parameters",
     "arguments.py:652, validate_args", BIT(ZERO), adds_shards_apart,
     FR_MEGATRON_0_12, FR_MEGATRON_0_13, FACT(GRAD_ADDED_APART)},
    {"zero-group 0 before core 0.10 (--num-distributed-optimizer-instances)",
     "arguments.py, _add_distributed_args",
     BIT(ZERO) | BIT(ZERO_GROUP) | BIT(DP) | BIT(CP), has_whole_copies, 0,
     FR_MEGATRON_0_9, 0},
    {"grad_dtype f32, or that of the weights where it has 16 bits",
     "arguments.py:1175, validate_args", BIT(GRAD_DTYPE) | BIT(PRECISION),
     has_its_gradients, 0, 0, 0},
    {"grad_dtype f32 with bf16 before core 0.12 (--grad-reduce-in-bf16)",
     "arguments.py:374, validate_args", BIT(GRAD_DTYPE), has_no_bf16_gradients,
     0, FR_MEGATRON_0_11, 0},
    /* Recompute and offload. */
    {"recompute of attention and experts alone before core 0.12",
     "arguments.py, _add_training_args", BIT(RECOMPUTE) | BIT(RECOMPUTE_PARTS),
     recomputes_core_alone, 0, FR_MEGATRON_0_11, 0},
    {"at least one part with selective recompute",
     "transformer/transformer_config.py:1763, __post_init__",
     BIT(RECOMPUTE) | BIT(RECOMPUTE_PARTS), recomputes_something, 0, 0, 0},
    {"recompute of other parts than products",
     "transformer/transformer_config.py:1768, __post_init__",
     BIT(RECOMPUTE) | BIT(RECOMPUTE_PARTS), recomputes_no_products, 0, 0, 0},
    {"experts where activations are made again (moe_act)",
     "transformer/transformer_config.py:1784, __post_init__",
     BIT(RECOMPUTE) | BIT(RECOMPUTE_PARTS), recomputes_experts_activation, 0, 0,
     0},
    {"bf16 where activations of experts are made again (grouped products)",
     "arguments.py:877, validate_args",
     BIT(RECOMPUTE) | BIT(RECOMPUTE_PARTS) | BIT(PRECISION), recomputes_in_bf16,
     FR_MEGATRON_0_12, FR_MEGATRON_0_15, 0},
    {"latent attention where its heads are made again (mla_up_proj)",
     "transformer/transformer_config.py:1789, __post_init__",
     BIT(RECOMPUTE) | BIT(RECOMPUTE_PARTS), recomputes_latent_heads, 0, 0, 0},
    {"no delayed scales with norms or activations made again",
     "transformer/transformer_config.py:1823, __post_init__",
     BIT(RECOMPUTE) | BIT(RECOMPUTE_PARTS) | BIT(PRECISION),
     recomputes_without_delayed_scales, FR_MEGATRON_0_14, 0, FACT(SCALING)},
    {"no fp8 with norms or activations made again",
     "transformer/transformer_config.py:846, __post_init__",
     BIT(RECOMPUTE) | BIT(RECOMPUTE_PARTS) | BIT(PRECISION),
     recomputes_above_fp8, FR_MEGATRON_0_13, FR_MEGATRON_0_13, 0},
    {"core 0.12 or later for offload-optimizer",
     "arguments.py, _add_training_args", BIT(OFFLOAD_OPTIMIZER),
     has_no_offloaded_optimizer, 0, FR_MEGATRON_0_11, 0},
    {"zero and adamw with offload-optimizer (precision-aware optimizer)",
     "optimizer/optimizer_config.py:430, __post_init__",
     BIT(OFFLOAD_OPTIMIZER) | BIT(ZERO), offloads_shards_of_adam,
     FR_MEGATRON_0_12, 0, 0},
    {"core 0.16 or later for offload-activations (--cpu-offloading-num-layers)",
     "arguments.py, add_megatron_arguments", BIT(OFFLOAD_ACTIVATIONS),
     has_no_offloaded_activations, 0, FR_MEGATRON_0_15, 0},
    {"offload-activations of whole layers, and not of all",
     "transformer/transformer_config.py:1704, __post_init__",
     BIT(OFFLOAD_ACTIVATIONS), offloads_whole_layers, FR_MEGATRON_0_16, 0, 0},
    {"pp 1 with offload-activations",
     "transformer/transformer_config.py:1711, __post_init__",
     BIT(OFFLOAD_ACTIVATIONS) | BIT(PP), offloads_without_pipeline,
     FR_MEGATRON_0_16, 0, 0},
    {"recompute none with offload-activations",
     "transformer/transformer_config.py:1716, __post_init__",
     BIT(OFFLOAD_ACTIVATIONS) | BIT(RECOMPUTE), offloads_without_recompute,
     FR_MEGATRON_0_16, 0, 0},
    {"cuda-graphs none with offload-activations",
     "transformer/transformer_config.py:2219, __post_init__",
     BIT(OFFLOAD_ACTIVATIONS), offloads_without_graphs, FR_MEGATRON_0_16, 0,
     FACT(CUDA_GRAPHS)},
    /* Kernels. */
    {"delayed scales before core 0.12 (--fp8-recipe)",
     "arguments.py, _add_transformer_engine_args", BIT(PRECISION),
     has_delayed_scales, 0, FR_MEGATRON_0_11, FACT(SCALING)},
    {"no scales of rows (--fp8-recipe)",
     "arguments.py, _add_transformer_engine_args", BIT(PRECISION),
     scales_no_rows, 0, 0, FACT(SCALING)},
    {"core 0.15 or later for fp4", "arguments.py, _add_transformer_engine_args",
     BIT(PRECISION), has_no_fp4, 0, FR_MEGATRON_0_14, 0},
    {"core 0.11 or later for cuda-graphs", "arguments.py, _add_training_args",
     0, has_no_graphs, 0, FR_MEGATRON_0_10, FACT(CUDA_GRAPHS)},
    {"core 0.14 or later for cuda-graphs full", "arguments.py, validate_args",
     0, has_no_full_graph, FR_MEGATRON_0_11, FR_MEGATRON_0_13,
     FACT(CUDA_GRAPHS)},
    {"recompute none with cuda-graphs",
     "transformer/transformer_config.py:919, __post_init__", BIT(RECOMPUTE),
     graphs_without_recompute, FR_MEGATRON_0_11, FR_MEGATRON_0_11,
     FACT(CUDA_GRAPHS)},
    {"recompute none with cuda-graphs full",
     "transformer/transformer_config.py:1270, __post_init__", BIT(RECOMPUTE),
     graphs_step_without_recompute, FR_MEGATRON_0_14, FR_MEGATRON_0_14,
     FACT(CUDA_GRAPHS)},
    {"recompute none with cuda-graphs, or of other parts than attention beside "
     "the graphs of layers with experts",
     "transformer/transformer_config.py:1397, __post_init__",
     BIT(RECOMPUTE) | BIT(RECOMPUTE_PARTS), graphs_what_is_kept,
     FR_MEGATRON_0_15, FR_MEGATRON_0_15, FACT(CUDA_GRAPHS)},
    {"another recompute than full with cuda-graphs layer",
     "transformer/transformer_config.py:2278, __post_init__", BIT(RECOMPUTE),
     graphs_layers_without_full_recompute, FR_MEGATRON_0_14, 0,
     FACT(CUDA_GRAPHS)},
    {"experts kept with cuda-graphs layer (moe_router is in the graph)",
     "transformer/transformer_config.py:2287, __post_init__",
     BIT(RECOMPUTE) | BIT(RECOMPUTE_PARTS), graphs_experts_apart,
     FR_MEGATRON_0_16, 0, FACT(CUDA_GRAPHS)},
    {"cuda-graphs none or layer with ep-overlap",
     "transformer/transformer_config.py:1899, __post_init__",
     BIT(EP) | BIT(EP_OVERLAP), graphs_no_merged_passes, FR_MEGATRON_0_16,
     FR_MEGATRON_0_17, FACT(CUDA_GRAPHS)},
    {"dropout 0 where a graph makes again what it drops",
     "transformer/transformer_config.py:2303, __post_init__",
     BIT(RECOMPUTE) | BIT(RECOMPUTE_PARTS), graphs_recompute_without_dropout,
     FR_MEGATRON_0_16, 0, FACT(CUDA_GRAPHS)},
    {"loss_fused off before core 0.12 (--cross-entropy-fusion-impl)",
     "arguments.py, _add_training_args", 0, has_own_loss, 0, FR_MEGATRON_0_11,
     FACT(LOSS_FUSED)},
    {"loss_fused off: it refuses Transformer Engine's fused loss",
     "arguments.py:1642, validate_args", 0, has_own_loss, FR_MEGATRON_0_18, 0,
     FACT(LOSS_FUSED)},
    {"a precision of 16 bits or fewer with loss_fused",
     "core/extensions/transformer_engine.py, te_parallel_cross_entropy",
     BIT(PRECISION), loss_is_fused_of_16_bits, FR_MEGATRON_0_12,
     FR_MEGATRON_0_17, FACT(LOSS_FUSED)},
    /* The model and the job. */
    {"a decoder of GPT's form", "gpt_builders.py, gpt_builder", 0, is_decoder,
     0, 0, 0},
    {"biases in all products, in none, or in those of q, k and v",
     "arguments.py:1549, validate_args", 0, has_known_biases, 0, 0, 0},
    {"SwiGLU or GELU",
     "argument_utils.py:313, core_transformer_config_from_args", 0,
     has_known_activation, 0, 0, 0},
    {"a whole number as the base of rotary positions (--rotary-base)",
     "arguments.py, _add_network_size_args", 0, has_whole_rotary_base, 0, 0, 0},
    {"rotary positions as they are, or rescaled as Llama 3's",
     "core/models/common/embeddings/rotary_pos_embedding.py, _apply_scaling", 0,
     has_known_rope_scaling, 0, 0, 0},
    {"core 0.11 or later for a factor other than 8 of rescaled rotary "
     "positions (--rope-scaling-factor)",
     "arguments.py, _add_network_size_args", 0, has_usual_rope_factor, 0,
     FR_MEGATRON_0_10, 0},
    {"core 0.10 or later for rescaled rotary positions (--use-rope-scaling)",
     "arguments.py, _add_network_size_args", 0, has_no_rope_scaling, 0,
     FR_MEGATRON_0_9, 0},
    {"core 0.10 or later for latent attention", "arguments.py, _add_mla_args",
     0, has_no_latent, 0, FR_MEGATRON_0_9, 0},
    {"core 0.12 or later for layers of later tokens (--mtp-num-layers)",
     "arguments.py, _add_network_size_args", 0, has_no_mtp, 0, FR_MEGATRON_0_11,
     0},
    {"cp 1 with layers of later tokens", "arguments.py:1075, validate_args",
     BIT(CP), has_mtp_without_context, FR_MEGATRON_0_12, FR_MEGATRON_0_13, 0},
    {"even stages with layers of later tokens",
     "transformer/pipeline_parallel_layer_layout.py:111, "
     "validate_layer_layout",
     OF_STAGES, has_mtp_on_even_stages, FR_MEGATRON_0_13, FR_MEGATRON_0_13, 0},
    {"pp > 1 with ep-overlap and layers of later tokens",
     "transformer/transformer_config.py:2138, __post_init__",
     BIT(PP) | BIT(EP) | BIT(EP_OVERLAP), overlaps_ep_and_mtp_in_pipeline,
     FR_MEGATRON_0_16, FR_MEGATRON_0_17, 0},
    {"rotary positions with layers of later tokens",
     "arguments.py:857, validate_args", 0, has_rope_with_mtp, FR_MEGATRON_0_12,
     0, 0},
    {"core 0.15 or later for a sliding window (--window-size)",
     "arguments.py, _add_network_size_args", 0, has_no_window, 0,
     FR_MEGATRON_0_14, 0},
    {"core 0.10 or later for dense layers or shared experts beside experts",
     "arguments.py, _add_moe_args", 0, has_experts_alone, 0, FR_MEGATRON_0_9,
     0},
    {"core 0.16 or later for gated shared experts (--moe-shared-expert-gate)",
     "arguments.py, _add_moe_args", 0, has_no_expert_gate, 0, FR_MEGATRON_0_15,
     0},
    {"core 0.11 or later for a router of sigmoids, with a bias, groups of "
     "experts or a scale (--moe-router-score-function)",
     "arguments.py, _add_moe_args", 0, has_plain_router, 0, FR_MEGATRON_0_10,
     0},
    {"sigmoids whose weights add up to 1 where a token has several experts, "
     "and do not where it has one",
     "transformer/moe/moe_utils.py:868, topk_routing_with_score_function", 0,
     has_known_sigmoids, FR_MEGATRON_0_11, 0, 0},
    {"a router of sigmoids where a bias chooses experts",
     "transformer/transformer_config.py:2284, __post_init__", 0,
     has_bias_of_sigmoids, FR_MEGATRON_0_11, 0, 0},
    {"groups of experts that are chosen by the sum of their two best scores",
     "transformer/moe/moe_utils.py:406, group_limited_topk", 0,
     has_groups_by_two, FR_MEGATRON_0_11, FR_MEGATRON_0_11, 0},
    {"groups of experts that are chosen by the sum of their best "
     "n_experts_per_token / n_chosen_groups scores",
     "transformer/moe/moe_utils.py:655, group_limited_topk", 0,
     has_groups_by_share, FR_MEGATRON_0_12, 0, 0},
    {"optimizer adamw or sgd", "arguments.py, _add_training_args", 0,
     has_known_optimizer, 0, 0, 0},
    {"a seed from 1 to 2^31 - 1", "initialize.py:436, _set_random_seed", 0,
     has_seed, 0, 0, 0},
    {"fewer warm-up steps than training steps",
     "optimizer_param_scheduler.py:160, OptimizerParamScheduler.__init__", 0,
     has_steps_after_warmup, 0, 0, 0},
    {.text = NULL}};
