/* megatron_keys.c: see megatron_keys.h.  The names and their versions are those
 * of megatron/training/arguments.py, and from core 0.15 of the dataclasses that
 * it makes arguments of (https://github.com/NVIDIA/Megatron-LM). */
#include "frameworks/megatron/megatron_keys.h"

#include "frameworks/megatron/megatron_words.h"
#include "frameworks/write/export_job.h"

/* ---- when an argument is written ----------------------------------------- */

FR_KEY_IF(is_grouped, model->n_kv_heads != model->n_heads)
FR_KEY_IF(has_head_norms, model->has_qk_norm && model->kv_lora_rank == 0)
FR_KEY_IF(has_window, model->sliding_window > 0)
FR_KEY_IF(is_rope, model->is_rope)
FR_KEY_IF(is_rope_part, model->is_rope && model->rope_frac != 1)
FR_KEY_IF(is_rope_scaled, model->is_rope && model->has_rope_scaling)
FR_KEY_IF(is_rope_factor,
          is_rope_scaled(file) && model->rope_factor != FR_MEGATRON_ROPE_FACTOR)
FR_KEY_IF(is_erf_gelu, !model->is_gated_mlp && model->has_mlp_bias &&
                           model->activation != FR_ACTIVATION_GELU_TANH)
FR_KEY_IF(is_tanh_lost, !model->is_gated_mlp && !model->has_mlp_bias &&
                            model->activation == FR_ACTIVATION_GELU_TANH)
FR_KEY_IF(has_qkv_bias_alone, !model->has_mlp_bias && model->has_qkv_bias)
FR_KEY_IF(is_bf16, fr_plan_storage_dtype(plan) == FR_DTYPE_BF16)
FR_KEY_IF(is_f16, fr_plan_storage_dtype(plan) == FR_DTYPE_F16)
FR_KEY_IF(is_fp8, plan->precision == FR_DTYPE_FP8)
FR_KEY_IF(is_fp4, plan->precision == FR_DTYPE_FP4)
FR_KEY_IF(is_bf16_alone, is_bf16(file) && !is_fp8(file))
FR_KEY_IF(has_pre_softmax, fr_megatron_has_pre_softmax(model))
FR_KEY_IF(has_one_share, has_pre_softmax(file) && !model->has_softmax_over_all)
FR_KEY_IF(has_groups, fr_megatron_has_groups(model))
FR_KEY_IF(has_router_bias, model->has_router_bias)
FR_KEY_IF(is_balanced, model->router_aux_coef > 0)
FR_KEY_IF(is_balanced_whole, is_balanced(file) && !model->is_aux_by_sequence)
FR_KEY_IF(is_balance_lost, is_balanced(file) && model->is_aux_by_sequence)
FR_KEY_IF(has_dense_layers, fr_megatron_has_dense_layers(model))
FR_KEY_IF(has_later_tokens, model->n_mtp_layers > 0)
FR_KEY_IF(is_rate_scaled, file->job.lr_rule != FR_LR_RULE_NONE)
FR_KEY_IF(has_data, fr_megatron_takes_data(&file->job))
FR_KEY_IF(has_no_data, !has_data(file))
FR_KEY_IF(is_sequence_parallel, plan->is_sequence_parallel && plan->tp > 1)
FR_KEY_IF(is_tp_overlap, plan->is_tp_overlap && plan->tp > 1)
FR_KEY_IF(is_context_parallel, plan->cp > 1)
FR_KEY_IF(is_flex, plan->expert_dispatch != FR_DISPATCH_ALL_TO_ALL)
FR_KEY_IF(is_ep_overlap, plan->is_ep_overlap && plan->ep > 1)
FR_KEY_IF(has_capacity, plan->expert_capacity > 0)
FR_KEY_IF(is_padded, plan->expert_capacity > 0 && plan->is_expert_padded)
FR_KEY_IF(is_sharded, plan->zero_stage > 0)
FR_KEY_IF(is_fsdp, plan->zero_stage > 1)
FR_KEY_IF(has_copies, fr_megatron_instances(plan) > 1)
FR_KEY_IF(is_gather_overlap,
          is_sharded(file) && (plan->zero_stage == 3 ? plan->is_overlap
                                                     : plan->is_gather_overlap))
FR_KEY_IF(is_summed_bf16, plan->grad_dtype == FR_DTYPE_BF16)
FR_KEY_IF(is_summed_f32, plan->grad_dtype == FR_DTYPE_F32 &&
                             fr_plan_storage_dtype(plan) != FR_DTYPE_F32)
FR_KEY_IF(is_selective, plan->recompute == FR_RECOMPUTE_SELECTIVE)
FR_KEY_IF(is_experts_again,
          is_selective(file) &&
              (plan->recompute_parts & FR_RECOMPUTE_PART_EXPERTS) != 0)
FR_KEY_IF(is_full, plan->recompute == FR_RECOMPUTE_FULL)
FR_KEY_IF(is_again, plan->recompute != FR_RECOMPUTE_NONE)
FR_KEY_IF(is_attention_or_all_again,
          is_full(file) ||
              (is_selective(file) &&
               (plan->recompute_parts & FR_RECOMPUTE_PART_ATTENTION) != 0))
FR_KEY_IF(is_offloaded, plan->is_optimizer_offloaded)
FR_KEY_IF(has_layers_offloaded, plan->activation_offload_frac > 0)
FR_KEY_IF(is_scaling_idle,
          !is_fp8(file) && plan->execution.scaling != FR_SCALING_DELAYED)
FR_KEY_IF(is_layer_graph, plan->execution.cuda_graphs == FR_CUDA_GRAPHS_LAYER)
FR_KEY_IF(is_module_graph, is_layer_graph(file) && model->n_experts > 0)
FR_KEY_IF(is_step_graph, plan->execution.cuda_graphs == FR_CUDA_GRAPHS_FULL)
FR_KEY_IF(is_step_graph_parted, is_step_graph(file) && plan->ep > 1)
FR_KEY_IF(is_graph, plan->execution.cuda_graphs != FR_CUDA_GRAPHS_NONE)
FR_KEY_IF(is_loss_fused, plan->execution.is_loss_fused)

/* ---- values that are no member ------------------------------------------- */

/* Before core 0.10 experts are as wide as --ffn-hidden-size says. */
FR_KEY_COUNT(put_widest, model->n_experts > 0 ? model->expert_ffn_hidden
                                              : model->ffn_hidden)
FR_KEY_COUNT(put_width, model->n_experts > 0 && model->ffn_hidden == 0
                            ? model->expert_ffn_hidden
                            : model->ffn_hidden)
FR_KEY_COUNT(put_kv_heads, model->n_kv_heads)
/* Tokens to the left of a token and itself, none to the right. */
FR_KEY_PUT(put_window, "'%lld,0'", (long long)model->sliding_window - 1)
FR_KEY_COUNT(put_seq, job->seq)
FR_KEY_COUNT(put_max_seq, model->max_seq < job->seq ? job->seq : model->max_seq)
FR_KEY_COUNT(put_theta, model->rope_theta)
FR_KEY_COUNT(put_vocab, model->vocab)
FR_KEY_COUNT(put_null_vocab, model->vocab - 1)
FR_KEY_PUT(put_lr, "%.15g", fr_job_peak_lr(job))
FR_KEY_PUT(put_min_lr, "%.15g", fr_job_peak_lr(job) * job->lr_min_frac)
FR_KEY_PUT(put_rate, "    # %.15g of a batch of %lld, scaled to this batch\n",
           job->lr, (long long)job->lr_base_batch)
FR_KEY_COUNT(put_steps, job->n_steps)
FR_KEY_COUNT(put_copies, fr_megatron_instances(plan))
FR_KEY_COUNT(put_layers_again,
             plan->recompute_layers > 0 ? plan->recompute_layers : 1)
FR_KEY_COUNT(put_layers_offloaded, fr_megatron_offloaded_layers(plan, model))
FR_KEY_PUT(put_scaling,
           "    # scaling %s: nothing is scaled at this precision\n",
           fr_name_of(&fr_scaling_names, (int)plan->execution.scaling))
FR_KEY_PUT(put_backend, "%s", fr_megatron_attention_backend(plan))
FR_KEY_PUT(put_scope, "%s", model->n_experts > 0 ? "attn" : "full")

static void put_expert_layers(const fr_plan_file *file, fr_buffer *out)
{
    fr_buffer_putc(out, '\'');
    fr_megatron_put_expert_layers(&file->model, out);
    fr_buffer_putc(out, '\'');
}

static void put_prefix(const fr_plan_file *file, fr_buffer *out)
{
    char prefix[sizeof file->job.data];
    fr_export_put_word(
        fr_megatron_data_prefix(&file->job, prefix, sizeof prefix), out);
}

static void put_graph_modules(const fr_plan_file *file, fr_buffer *out)
{
    const char *words[FR_MEGATRON_MODULES_MAX];
    int n = fr_megatron_graph_modules(&file->plan, &file->model, words);
    for (int i = 0; i < n; i++)
        fr_buffer_printf(out, "%s%s", i > 0 ? " " : "", words[i]);
}

/* ---- words --------------------------------------------------------------- */

const fr_key_word fr_megatron_cp_kinds[] = {{FR_CP_RING, "p2p"},
                                            {FR_CP_ALL_GATHER, "all_gather"},
                                            {FR_CP_ALL_GATHER, "allgather"},
                                            {FR_CP_ALL_TO_ALL, "a2a"},
                                            {0}};

/* Scales of rows are refused (scales_no_rows). */
const fr_key_word fr_megatron_recipes[] = {{FR_SCALING_DELAYED, "delayed"},
                                           {FR_SCALING_CURRENT, "tensorwise"},
                                           {FR_SCALING_BLOCK, "mxfp8"},
                                           {FR_SCALING_BLOCK, "blockwise"},
                                           {0}};

const fr_key_word fr_megatron_lr_styles[] = {
    {FR_LR_CONSTANT, "constant"},
    {FR_LR_COSINE, "cosine"},
    {FR_LR_LINEAR, "linear"},
    {FR_LR_INVERSE_SQRT, "inverse-square-root"},
    {0}};

const fr_key_word fr_megatron_shardings[] = {{0, "no_shard"},
                                             {1, "optim"},
                                             {2, "optim_grads"},
                                             {3, "optim_grads_params"},
                                             {0}};

const fr_key_word fr_megatron_modules[] = {
    {FR_RECOMPUTE_PART_ATTENTION, "core_attn"},
    {FR_RECOMPUTE_PART_NORM, "layernorm"},
    {FR_RECOMPUTE_PART_ACTIVATION, "moe_act"},
    {FR_RECOMPUTE_PART_MLP, "mlp"},
    {FR_RECOMPUTE_PART_EXPERTS, "moe"},
    {FR_RECOMPUTE_PART_LATENT, "mla_up_proj"},
    {0, "shared_experts"}, /* less than an activation of a layer */
    {0}};

static const fr_key_word positions[] = {
    {true, "rope"}, {false, "learned_absolute"}, {true, "yarn"}, {0}};
static const fr_key_word norms[] = {
    {true, "RMSNorm"}, {false, "LayerNorm"}, {0}};
static const fr_key_word scores[] = {
    {true, "sigmoid"}, {false, "softmax"}, {0}};
static const fr_key_word balances[] = {
    {false, "aux_loss"}, {true, "seq_aux_loss"}, {0}};
static const fr_key_word optimizers[] = {
    {FR_OPTIMIZER_ADAMW, "adam"}, {FR_OPTIMIZER_SGD, "sgd"}, {0}};
static const fr_key_word dispatchers[] = {
    {FR_DISPATCH_ALL_TO_ALL, "alltoall"}, {FR_DISPATCH_BY_NODE, "flex"}, {0}};
/* Every number of layers but 0 has the first word. */
static const fr_key_word methods[] = {{1, "block"}, {0, "uniform"}, {0}};
static const fr_key_word granularities[] = {
    {FR_RECOMPUTE_SELECTIVE, "selective"}, {FR_RECOMPUTE_FULL, "full"}, {0}};

/* ---- the arguments, in the order in which they are written --------------- */

#define SINCE(version) .since = FR_MEGATRON_##version
#define UNTIL(version) .until = FR_MEGATRON_##version
#define OF(member) FR_KEY_MEMBER(member)
#define IF(condition) .is_used = (condition)
/* A switch, whose member is false where it stands; one whose is true. */
#define MARK .is_switch = true
#define ON .is_switch = true, .on = true
/* The reader's own code reads it; the writer's writes it, if any. */
#define READ .text = NULL
/* Only some files are read for it, or by rules of its own. */
#define OWN .has_reader = true
/* A note says that it is not read. */
#define IDLE .why = "no prediction depends on it"

static const fr_framework_key rows[] = {
    {"shape", "num-layers", OF(model.n_layers), .least = 1},
    {"shape", "hidden-size", OF(model.hidden), .least = 1},
    {"shape", "ffn-hidden-size", OF(model.ffn_hidden), .least = 1,
     .put = put_widest, UNTIL(0_9)},
    {"shape", "ffn-hidden-size", .put = put_width, SINCE(0_10)},
    {"shape", "num-attention-heads", OF(model.n_heads), .least = 1},
    {"shape", "group-query-attention", MARK, IF(is_grouped)},
    {"shape", "num-query-groups", .put = put_kv_heads, IF(is_grouped), OWN},
    {"shape", "kv-channels", OF(model.head_dim), .least = 1},
    {"shape", "qk-layernorm", OF(model.has_qk_norm), ON, IF(has_head_norms)},

    /* MLATransformerConfig. */
    {"latent", "multi-latent-attention", MARK},
    {"latent", "q-lora-rank", OF(model.q_lora_rank), .has_default = true},
    {"latent", "kv-lora-rank", OF(model.kv_lora_rank), .least = 1},
    {"latent", "qk-head-dim", OF(model.qk_nope_head_dim), .least = 1},
    {"latent", "qk-pos-emb-head-dim", OF(model.qk_rope_head_dim), .least = 1},
    {"latent", "v-head-dim", OF(model.v_head_dim), .least = 1},
    {"latent norms", "qk-layernorm", MARK, .comment = "norms of the latents"},
    {"latent norms", "rope-type", .word = "rope", IDLE, SINCE(0_14)},
    /* This fusion is of YaRN alone. */
    {"latent norms", "no-rope-fusion", MARK, IDLE},

    {"layers", "window-size", .put = put_window, IF(has_window)},
    {"layers", "seq-length", .put = put_seq},
    {"layers", "max-position-embeddings", OF(model.max_seq), .least = 1,
     .put = put_max_seq},
    {"layers", "position-embedding-type", OF(model.is_rope), .words = positions,
     .mend = "such positions are not modelled; take rope"},
    {"layers", "rotary-base", OF(model.rope_theta), .put = put_theta,
     IF(is_rope)},
    {"layers", "rotary-percent", OF(model.rope_frac), IF(is_rope_part)},
    {"layers", "use-rope-scaling", OF(model.has_rope_scaling), ON,
     IF(is_rope_scaled)},
    {"layers", "rope-scaling-factor", OF(model.rope_factor),
     IF(is_rope_factor)},
    {"layers", "normalization", OF(model.is_rms_norm), .words = norms},
    {"layers", "norm-epsilon", OF(model.norm_eps)},
    {"layers", "swiglu", OF(model.is_gated_mlp), ON},
    {"layers", .comment = "without biases GELU has its erf form, not tanh",
     IF(is_tanh_lost)},
    /* GELU has its tanh form where it is fused with the bias before it. */
    {"layers", "no-bias-gelu-fusion", MARK, IF(is_erf_gelu)},
    {"layers", "disable-bias-linear", OF(model.has_mlp_bias), MARK},
    {"layers", "add-qkv-bias", OF(model.has_qkv_bias), ON,
     IF(has_qkv_bias_alone)},
    {"layers", "untie-embeddings-and-output-weights", OF(model.is_tied), MARK},
    {"layers", "num-experts", OF(model.n_experts), .has_default = true},
    {"layers", "use-rotary-position-embeddings", READ},
    {"layers", "vocab-size", READ},
    {"layers", "padded-vocab-size", READ},
    {"layers", "make-vocab-size-divisible-by", READ},
    {"layers", "use-checkpoint-args", READ},

    /* The router chooses and weighs a token's experts
     * (transformer/moe/moe_utils.py, topk_routing_with_score_function). */
    {"router", "moe-router-topk", OF(model.n_experts_per_token), .least = 1},
    {"router", "moe-router-score-function", OF(model.has_sigmoid_router),
     .words = scores, .has_default = true,
     .mend = "such scores are not modelled; take softmax or sigmoid"},
    {"router", "moe-router-pre-softmax", MARK, IF(has_pre_softmax)},
    {"router",
     .comment = "the weight of a token's one expert is its share of all, not 1",
     IF(has_one_share)},
    {"router", "moe-router-num-groups", OF(model.n_expert_groups),
     IF(has_groups), OWN},
    {"router", "moe-router-group-topk", OF(model.n_chosen_groups),
     IF(has_groups), OWN},
    {"router", "moe-router-topk-scaling-factor", OF(model.routed_scale),
     .has_default = true, .usual = 1},
    {"router bias",
     .comment = "Megatron-LM moves this bias by 0.001 a step toward even loads",
     IF(has_router_bias)},
    {"experts", "moe-router-enable-expert-bias", OF(model.has_router_bias), ON},
    /* Until core 0.15 of bf16 alone (arguments.py, validate_args), until core
     * 0.9 not of fp8 (transformer_config.py, __post_init__). */
    {"experts", "moe-grouped-gemm", MARK, IF(is_bf16_alone), IDLE, UNTIL(0_9)},
    {"experts", "moe-grouped-gemm", MARK, IF(is_bf16), IDLE, SINCE(0_10),
     UNTIL(0_15)},
    {"experts", "moe-grouped-gemm", MARK, IDLE, SINCE(0_16)},
    {"experts", "moe-ffn-hidden-size", OF(model.expert_ffn_hidden), .least = 1,
     SINCE(0_10)},
    {"experts", "moe-shared-expert-intermediate-size",
     OF(model.shared_expert_ffn_hidden), .least = 1, .has_default = true},
    {"experts", "moe-shared-expert-gate", OF(model.has_shared_expert_gate), ON},
    /* Before core 0.11 shares are those of a micro-batch (arguments.py,
     * _add_moe_args). */
    {"experts", "moe-router-load-balancing-type", OF(model.is_aux_by_sequence),
     .words = balances, IF(is_balanced_whole), OWN, UNTIL(0_10)},
    {"experts",
     .comment = "experts are balanced over micro-batches, not over sequences, "
                "before core 0.11",
     IF(is_balance_lost), UNTIL(0_10)},
    {"experts", "moe-router-load-balancing-type", OF(model.is_aux_by_sequence),
     .words = balances, IF(is_balanced), OWN, SINCE(0_11)},
    {"experts", "moe-aux-loss-coeff", OF(model.router_aux_coef),
     IF(is_balanced), OWN},
    {"expert layers", "moe-layer-freq", .put = put_expert_layers,
     IF(has_dense_layers)},

    {"tokens", "mtp-num-layers", OF(model.n_mtp_layers), .has_default = true},
    {"tokens", "mtp-loss-scaling-factor", OF(model.mtp_loss_scale),
     IF(has_later_tokens)},

    {"batch", "micro-batch-size", OF(plan.micro_batch), .least = 1},
    {"batch", "global-batch-size", OF(job.global_batch), .least = 1},
    {"batch", "train-iters", OF(job.n_steps), .least = 1},
    {"batch", "seed", OF(job.seed)},
    {"batch", "optimizer", OF(job.optimizer), .words = optimizers,
     .mend = "forerun knows adam and sgd of Megatron's optimizers; take one of "
             "them"},
    {"sgd", "sgd-momentum", OF(job.beta1)},
    {"adam", "adam-beta1", OF(job.beta1)},
    {"adam", "adam-beta2", OF(job.beta2)},
    {"adam", "adam-eps", OF(job.optimizer_eps)},
    {"decay", "weight-decay", OF(job.weight_decay)},
    {"decay", "clip-grad", OF(job.clip_norm)},
    {"decay", .put = put_rate, IF(is_rate_scaled)},
    {"rates", "lr", OF(job.lr), .put = put_lr},
    {"rates", "min-lr", .put = put_min_lr},
    {"schedule", "lr-decay-style", OF(job.lr_schedule),
     .words = fr_megatron_lr_styles, OWN},
    {"schedule", "lr-decay-iters", .put = put_steps},
    {"schedule", "lr-warmup-iters", OF(job.warmup_steps)},
    {"dropout", "attention-dropout", OF(job.dropout), OWN},
    {"dropout", "hidden-dropout", OF(job.dropout)},
    {"dropout", "eval-iters", .text = "0", IDLE},
    {"dropout", "log-interval", .text = "1", IDLE},

    {"data", "data-path", .put = put_prefix, IF(has_data)},
    {"data",
     .comment =
         "The tokens of the data have to be below the vocabulary's size.",
     IF(has_data)},
    {"data",
     .comment = "Mock data.  For data of tools/preprocess_data.py: --data-path "
                "PREFIX, and their tokenizer.",
     IF(has_no_data)},
    {"data", "mock-data", MARK, IF(has_no_data), IDLE},
    {"data", "tokenizer-type", .word = "NullTokenizer"},
    {"data", .comment = "the vocabulary is padded to a multiple of 128 x tp"},
    /* Until core 0.17 a NullTokenizer has a token more. */
    {"data", "vocab-size", .put = put_null_vocab, UNTIL(0_17)},
    {"data", "vocab-size", .put = put_vocab, SINCE(0_18)},

    {"parallel", "tensor-model-parallel-size", OF(plan.tp), .least = 1},
    {"parallel", "sequence-parallel", OF(plan.is_sequence_parallel), ON,
     IF(is_sequence_parallel)},
    {"parallel", "tp-comm-overlap", OF(plan.is_tp_overlap), ON,
     IF(is_tp_overlap)},
    {"parallel", "pipeline-model-parallel-size", OF(plan.pp), .least = 1},
    {"stages", "pipeline-model-parallel-layout", READ},
    {"stages", "num-virtual-stages-per-pipeline-rank", READ},
    {"stages", "num-layers-per-virtual-pipeline-stage", READ},
    {"stages", "decoder-first-pipeline-num-layers", READ},
    {"stages", "decoder-last-pipeline-num-layers", READ},
    {"stages", "account-for-embedding-in-pipeline-split", READ},
    {"stages", "account-for-loss-in-pipeline-split", READ},
    {"context", "context-parallel-size", OF(plan.cp), .least = 1},
    {"context", "cp-comm-type", OF(plan.cp_kind), .words = fr_megatron_cp_kinds,
     IF(is_context_parallel),
     .mend = "a plan has p2p, all_gather and a2a; take one of them",
     SINCE(0_10)},

    {"expert parallel", "expert-model-parallel-size", OF(plan.ep), .least = 1},
    {"expert parallel", "expert-tensor-parallel-size", OF(plan.etp), .least = 1,
     .has_default = true, SINCE(0_10)},
    {"expert parallel", "moe-token-dispatcher-type", OF(plan.expert_dispatch),
     .words = dispatchers, OWN},
    {"expert parallel", "moe-flex-dispatcher-backend", .word = "deepep",
     IF(is_flex), SINCE(0_16)},
    {"expert parallel", "moe-enable-deepep", MARK, IF(is_flex), UNTIL(0_15)},
    {"expert parallel", "moe-router-dtype", .word = "fp32", IF(is_flex), IDLE},
    {"expert parallel", "overlap-moe-expert-parallel-comm",
     OF(plan.is_ep_overlap), ON, IF(is_ep_overlap)},
    {"expert parallel", "moe-expert-capacity-factor", OF(plan.expert_capacity),
     IF(has_capacity), OWN},
    {"expert parallel", "moe-token-drop-policy", .word = "probs",
     IF(has_capacity)},
    {"expert parallel", "moe-pad-expert-input-to-capacity", MARK,
     IF(is_padded)},

    {"order", "use-tp-pp-dp-mapping", OF(plan.rank_order), MARK,
     .on = FR_RANK_ORDER_TP_PP_DP},
    {"order", "moe-router-fusion", READ},
    {"order", "moe-permute-fusion", READ},

    {"sharding", "use-distributed-optimizer", MARK, IF(is_sharded)},
    {"sharding", "use-custom-fsdp", MARK, IF(is_fsdp), UNTIL(0_13)},
    {"sharding", "use-megatron-fsdp", MARK, IF(is_fsdp), SINCE(0_14)},
    {"sharding", "data-parallel-sharding-strategy", OF(plan.zero_stage),
     .words = fr_megatron_shardings, IF(is_fsdp), OWN,
     .mend = "give no_shard, optim, optim_grads or optim_grads_params"},
    {"sharding", "ckpt-format", .word = "fsdp_dtensor", IF(is_fsdp),
     SINCE(0_14)},
    {"sharding", "use-torch-fsdp2", READ},
    {"sharding", "torch-fsdp2-no-reshard-after-forward", READ},
    {"sharding", "init-model-with-meta-device", IDLE},
    {"reduction", "num-distributed-optimizer-instances", .put = put_copies,
     IF(has_copies)},
    {"reduction", "overlap-grad-reduce", OF(plan.is_overlap), ON},
    {"reduction", "overlap-param-gather", OF(plan.is_gather_overlap), ON,
     IF(is_gather_overlap)},
    {"reduction", "ddp-bucket-size", READ},
    {"gradients", "grad-reduce-in-bf16", MARK, IF(is_summed_bf16)},
    {"gradients", "accumulate-allreduce-grads-in-fp32", MARK,
     IF(is_summed_f32)},
    {"gradients", "no-gradient-accumulation-fusion",
     OF(plan.execution.is_grad_added_apart), ON},

    {"recompute", "recompute-granularity", OF(plan.recompute),
     .words = granularities, IF(is_attention_or_all_again), OWN, UNTIL(0_11)},
    {"recompute", "recompute-granularity", OF(plan.recompute),
     .words = granularities, IF(is_again), OWN, SINCE(0_12)},
    {"recompute", "recompute-modules", OF(plan.recompute_parts),
     .words = fr_megatron_modules, .is_set = true,
     .mend = "one of its parts is none that a plan makes again",
     IF(is_selective), OWN, SINCE(0_12)},
    {"recompute", "moe-layer-recompute", MARK, IF(is_experts_again),
     UNTIL(0_11)},
    {"recompute", "recompute-method", OF(plan.recompute_layers),
     .words = methods, IF(is_full), OWN},
    {"recompute", "recompute-num-layers", .put = put_layers_again, IF(is_full)},
    {"recompute", "recompute-activations", READ},

    {"offload", "optimizer-cpu-offload", OF(plan.is_optimizer_offloaded), ON},
    {"offload", "optimizer-offload-fraction", .text = "1", IF(is_offloaded)},
    {"offload", "use-precision-aware-optimizer", MARK, IF(is_offloaded)},

    {"memory", "cpu-offloading-num-layers", .put = put_layers_offloaded,
     IF(has_layers_offloaded)},
    {"memory", "fp16", MARK, IF(is_f16)},
    {"memory", "bf16", MARK, IF(is_bf16)},
    {"memory", "fp8-format", .word = "hybrid", IF(is_fp8)},
    {"memory", "fp8-recipe", OWN, OF(plan.execution.scaling),
     .words = fr_megatron_recipes, IF(is_fp8),
     .mend = "give delayed, tensorwise, mxfp8 or blockwise", SINCE(0_12)},
    {"memory", "fp4-format", .word = "e2m1", IF(is_fp4)},
    {"memory", "fp4-recipe", .word = "nvfp4", IF(is_fp4)},
    {"memory", .put = put_scaling, IF(is_scaling_idle)},
    {"memory", "attention-backend", .put = put_backend, SINCE(0_11)},
    {"memory", "use-flash-attn", READ},
    {"memory", "enable-cuda-graph", MARK, IF(is_layer_graph), UNTIL(0_11)},
    {"memory", "external-cuda-graph", MARK, IF(is_layer_graph), SINCE(0_12),
     UNTIL(0_14)},
    {"memory", "cuda-graph-impl", .word = "transformer_engine",
     IF(is_layer_graph), SINCE(0_15)},
    {"memory", "cuda-graph-scope", .put = put_scope, IF(is_layer_graph),
     SINCE(0_12), UNTIL(0_15)},
    {"memory", "cuda-graph-scope", .put = put_graph_modules,
     IF(is_module_graph), SINCE(0_16), UNTIL(0_17)},
    {"memory", "cuda-graph-modules", .put = put_graph_modules,
     IF(is_module_graph), SINCE(0_18)},
    {"memory", "enable-cuda-graph", MARK, IF(is_step_graph), UNTIL(0_14)},
    {"memory", "cuda-graph-impl", .word = "local", IF(is_step_graph),
     SINCE(0_15), UNTIL(0_17)},
    {"memory", "cuda-graph-impl", .word = "full_iteration", IF(is_step_graph),
     SINCE(0_18)},
    {"memory", "cuda-graph-scope", .word = "full_iteration", IF(is_step_graph),
     UNTIL(0_17)},
    /* Asked for with experts, though it is of inference alone. */
    {"memory", "moe-pad-experts-for-cuda-graph-inference", MARK,
     IF(is_step_graph_parted), SINCE(0_16), UNTIL(0_17)},
    {"memory", "te-rng-tracker", MARK, IF(is_graph), IDLE},
    {"memory", "no-check-for-nan-in-loss-and-grad", MARK, IF(is_step_graph),
     IDLE},
    {"memory", "cross-entropy-loss-fusion", MARK, IF(is_loss_fused)},
    {"memory", "cross-entropy-fusion-impl", .word = "te", IF(is_loss_fused)},
};

const fr_framework_keys fr_megatron_keys = {rows, FR_LENGTH(rows)};
