/*
 * megatron_arguments.c: a plan as arguments of pretrain_gpt.py
 * (https://github.com/NVIDIA/Megatron-LM, megatron/training/arguments.py, and
 * from core 0.15 the dataclasses that it makes arguments of).
 */
#include "frameworks/megatron/write/megatron_arguments.h"

#include "frameworks/megatron/megatron_keys.h"
#include "frameworks/write/export_job.h"
#include "plan/decide/plan_fields.h"

static void put_number(fr_buffer *out, const char *flag, int64_t value)
{
    fr_buffer_printf(out, "    --%s %lld\n", flag, (long long)value);
}

static void put_real(fr_buffer *out, const char *flag, double value)
{
    fr_buffer_printf(out, "    --%s %.15g\n", flag, value);
}

static void put_word(fr_buffer *out, const char *flag, const char *word)
{
    fr_buffer_printf(out, "    --%s %s\n", flag, word);
}

static void put_switch(fr_buffer *out, const char *flag)
{
    fr_buffer_printf(out, "    --%s\n", flag);
}

static void put_comment(fr_buffer *out, const char *text)
{
    fr_buffer_printf(out, "    # %s\n", text);
}

static void put_words(fr_buffer *out, const char *flag,
                      const char *const *words, int n)
{
    fr_buffer_printf(out, "    --%s", flag);
    for (int i = 0; i < n; i++)
        fr_buffer_printf(out, " %s", words[i]);
    fr_buffer_putc(out, '\n');
}

/* ---- the model ----------------------------------------------------------- */

static void put_positions(const fr_megatron_request *of, fr_buffer *out)
{
    const fr_model *model = of->model;
    int64_t max_seq = model->max_seq;
    if (max_seq < of->job->seq)
        max_seq = of->job->seq;
    put_number(out, "seq-length", of->job->seq);
    put_number(out, "max-position-embeddings", max_seq);
    if (!model->is_rope) {
        put_word(out, "position-embedding-type", "learned_absolute");
        return;
    }
    put_word(out, "position-embedding-type", "rope");
    put_number(out, "rotary-base", (int64_t)model->rope_theta);
    if (model->rope_frac != 1)
        put_real(out, "rotary-percent", model->rope_frac);
    if (model->has_rope_scaling)
        put_switch(out, "use-rope-scaling");
    if (model->has_rope_scaling &&
        model->rope_factor != FR_MEGATRON_ROPE_FACTOR)
        put_real(out, "rope-scaling-factor", model->rope_factor);
}

static void put_latent(const fr_megatron_request *of, fr_buffer *out)
{
    const fr_model *model = of->model;
    put_switch(out, "multi-latent-attention");
    if (model->q_lora_rank > 0)
        put_number(out, "q-lora-rank", model->q_lora_rank);
    put_number(out, "kv-lora-rank", model->kv_lora_rank);
    put_number(out, "qk-head-dim", model->qk_nope_head_dim);
    put_number(out, "qk-pos-emb-head-dim", model->qk_rope_head_dim);
    put_number(out, "v-head-dim", model->v_head_dim);
    put_comment(out, "norms of the latents");
    put_switch(out, "qk-layernorm");
    if (of->version >= FR_MEGATRON_0_14)
        put_word(out, "rope-type", "rope");
    put_switch(out, "no-rope-fusion"); /* that is YaRN's alone */
}

static void put_attention(const fr_megatron_request *of, fr_buffer *out)
{
    const fr_model *model = of->model;
    put_number(out, "num-attention-heads", model->n_heads);
    if (model->n_kv_heads != model->n_heads) {
        put_switch(out, "group-query-attention");
        put_number(out, "num-query-groups", model->n_kv_heads);
    }
    put_number(out, "kv-channels", model->head_dim);
    if (model->kv_lora_rank > 0)
        put_latent(of, out);
    else if (model->has_qk_norm)
        put_switch(out, "qk-layernorm");
    if (model->sliding_window > 0)
        /* Tokens to the left of a token and itself, none to the right. */
        fr_buffer_printf(out, "    --window-size '%lld,0'\n",
                         (long long)model->sliding_window - 1);
}

/* Until core 0.15 of bf16 alone (arguments.py, validate_args), until core 0.9
 * not of fp8 (transformer_config.py, __post_init__). */
static bool has_grouped_products(const fr_megatron_request *of)
{
    if (of->version < FR_MEGATRON_0_10 && of->plan->precision == FR_DTYPE_FP8)
        return false;
    return of->version >= FR_MEGATRON_0_16 ||
           fr_plan_storage_dtype(of->plan) == FR_DTYPE_BF16;
}

/* Before core 0.11 shares are those of a micro-batch (arguments.py,
 * _add_moe_args). */
static void put_aux_loss(const fr_megatron_request *of, fr_buffer *out)
{
    const fr_model *model = of->model;
    if (!(model->router_aux_coef > 0))
        return;
    if (!model->is_aux_by_sequence)
        put_word(out, "moe-router-load-balancing-type", "aux_loss");
    else if (of->version >= FR_MEGATRON_0_11)
        put_word(out, "moe-router-load-balancing-type", "seq_aux_loss");
    else
        put_comment(out, "experts are balanced over micro-batches, not over "
                         "sequences, before core 0.11");
    put_real(out, "moe-aux-loss-coeff", model->router_aux_coef);
}

/* Puts how a token's experts are chosen and weighed
 * (transformer/moe/moe_utils.py, topk_routing_with_score_function). */
static void put_router(const fr_model *model, fr_buffer *out)
{
    put_number(out, "moe-router-topk", model->n_experts_per_token);
    if (model->has_sigmoid_router)
        put_word(out, "moe-router-score-function", "sigmoid");
    if (fr_megatron_has_pre_softmax(model))
        put_switch(out, "moe-router-pre-softmax");
    if (fr_megatron_has_pre_softmax(model) && !model->has_softmax_over_all)
        put_comment(out, "the weight of a token's one expert is its share of "
                         "all, not 1");
    if (fr_megatron_has_groups(model)) {
        put_number(out, "moe-router-num-groups", model->n_expert_groups);
        put_number(out, "moe-router-group-topk", model->n_chosen_groups);
    }
    if (model->routed_scale != 1)
        put_real(out, "moe-router-topk-scaling-factor", model->routed_scale);
    if (model->has_router_bias) {
        put_comment(out, "Megatron-LM moves this bias by 0.001 a step toward "
                         "even loads");
        put_switch(out, "moe-router-enable-expert-bias");
    }
}

static void put_experts(const fr_megatron_request *of, fr_buffer *out)
{
    const fr_model *model = of->model;
    put_number(out, "num-experts", model->n_experts);
    put_router(model, out);
    if (has_grouped_products(of))
        put_switch(out, "moe-grouped-gemm");
    if (of->version >= FR_MEGATRON_0_10)
        put_number(out, "moe-ffn-hidden-size", model->expert_ffn_hidden);
    if (model->shared_expert_ffn_hidden > 0)
        put_number(out, "moe-shared-expert-intermediate-size",
                   model->shared_expert_ffn_hidden);
    if (model->has_shared_expert_gate)
        put_switch(out, "moe-shared-expert-gate");
    put_aux_loss(of, out);
    if (!fr_megatron_has_dense_layers(model))
        return;
    fr_buffer_puts(out, "    --moe-layer-freq '");
    fr_megatron_put_expert_layers(model, out);
    fr_buffer_puts(out, "'\n");
}

/* GELU has its tanh form where it is fused with the bias before it. */
static void put_activation(const fr_model *model, fr_buffer *out)
{
    bool is_tanh = model->activation == FR_ACTIVATION_GELU_TANH;
    if (model->is_gated_mlp)
        put_switch(out, "swiglu");
    else if (is_tanh && !model->has_mlp_bias)
        put_comment(out, "without biases GELU has its erf form, not tanh");
    else if (!is_tanh && model->has_mlp_bias)
        put_switch(out, "no-bias-gelu-fusion");
}

static void put_biases(const fr_model *model, fr_buffer *out)
{
    if (!model->has_mlp_bias)
        put_switch(out, "disable-bias-linear");
    if (!model->has_mlp_bias && model->has_qkv_bias)
        put_switch(out, "add-qkv-bias");
}

/* Before core 0.10 experts are as wide as --ffn-hidden-size says. */
static int64_t ffn_hidden(const fr_megatron_request *of)
{
    const fr_model *model = of->model;
    bool is_of_experts =
        model->n_experts > 0 &&
        (of->version < FR_MEGATRON_0_10 || model->ffn_hidden == 0);
    return is_of_experts ? model->expert_ffn_hidden : model->ffn_hidden;
}

void fr_megatron_put_model(const fr_megatron_request *of, fr_buffer *out)
{
    const fr_model *model = of->model;
    put_number(out, "num-layers", model->n_layers);
    put_number(out, "hidden-size", model->hidden);
    put_number(out, "ffn-hidden-size", ffn_hidden(of));
    put_attention(of, out);
    put_positions(of, out);
    put_word(out, "normalization",
             model->is_rms_norm ? "RMSNorm" : "LayerNorm");
    put_real(out, "norm-epsilon", model->norm_eps);
    put_activation(model, out);
    put_biases(model, out);
    if (!model->is_tied)
        put_switch(out, "untie-embeddings-and-output-weights");
    if (model->n_experts > 0)
        put_experts(of, out);
    if (model->n_mtp_layers > 0) {
        put_number(out, "mtp-num-layers", model->n_mtp_layers);
        put_real(out, "mtp-loss-scaling-factor", model->mtp_loss_scale);
    }
}

/* ---- the job ------------------------------------------------------------- */

static void put_optimizer(const fr_job *job, fr_buffer *out)
{
    if (job->optimizer == FR_OPTIMIZER_SGD) {
        put_word(out, "optimizer", "sgd");
        put_real(out, "sgd-momentum", job->beta1);
    } else {
        put_word(out, "optimizer", "adam"); /* its decay is decoupled */
        put_real(out, "adam-beta1", job->beta1);
        put_real(out, "adam-beta2", job->beta2);
        put_real(out, "adam-eps", job->optimizer_eps);
    }
    put_real(out, "weight-decay", job->weight_decay);
    put_real(out, "clip-grad", job->clip_norm);
}

void fr_megatron_put_training(const fr_megatron_request *of, fr_buffer *out)
{
    const fr_job *job = of->job;
    double lr = fr_job_peak_lr(job);
    put_number(out, "micro-batch-size", of->plan->micro_batch);
    put_number(out, "global-batch-size", job->global_batch);
    put_number(out, "train-iters", job->n_steps);
    put_number(out, "seed", (int64_t)job->seed);
    put_optimizer(job, out);
    if (job->lr_rule != FR_LR_RULE_NONE)
        fr_buffer_printf(out,
                         "    # %.15g of a batch of %lld, scaled to this "
                         "batch\n",
                         job->lr, (long long)job->lr_base_batch);
    put_real(out, "lr", lr);
    put_real(out, "min-lr", lr * job->lr_min_frac);
    put_word(out, "lr-decay-style",
             fr_key_word_of(fr_megatron_lr_styles, (int)job->lr_schedule));
    put_number(out, "lr-decay-iters", job->n_steps);
    put_number(out, "lr-warmup-iters", job->warmup_steps);
    put_real(out, "attention-dropout", job->dropout);
    put_real(out, "hidden-dropout", job->dropout);
    put_number(out, "eval-iters", 0);
    put_number(out, "log-interval", 1);
}

/* It loads from a folder that holds none as if nothing were asked for
 * (training/checkpointing.py, load_checkpoint).  Of a submission's time a
 * tenth, 15 minutes at most, is for its start and its last checkpoint. */
void fr_megatron_put_checkpoints(const fr_export_request *request,
                                 fr_buffer *out)
{
    const int64_t minutes = fr_export_minutes(request);
    if (request->checkpoint_dir == NULL)
        return;
    fr_buffer_puts(out, "    --save ");
    fr_export_put_word(request->checkpoint_dir, out);
    fr_buffer_puts(out, "\n    --load ");
    fr_export_put_word(request->checkpoint_dir, out);
    fr_buffer_putc(out, '\n');
    put_number(out, "save-interval", request->checkpoint_every);
    if (request->time_limit_s > 0)
        put_number(out, "exit-duration-in-mins",
                   minutes > 1
                       ? minutes - (minutes < 150 ? (minutes + 9) / 10 : 15)
                       : 1);
}

void fr_megatron_put_data(const fr_megatron_request *of, fr_buffer *out)
{
    char prefix[sizeof of->job->data];
    if (fr_megatron_takes_data(of->job)) {
        fr_buffer_puts(out, "    --data-path ");
        fr_export_put_word(
            fr_megatron_data_prefix(of->job, prefix, sizeof prefix), out);
        fr_buffer_putc(out, '\n');
        put_comment(out, "The tokens of the data have to be below the "
                         "vocabulary's size.");
    } else {
        put_comment(out, "Mock data.  For data of tools/preprocess_data.py: "
                         "--data-path PREFIX, and their tokenizer.");
        put_switch(out, "mock-data");
    }
    put_word(out, "tokenizer-type", "NullTokenizer");
    put_comment(out, "the vocabulary is padded to a multiple of 128 x tp");
    put_number(out, "vocab-size",
               fr_megatron_null_vocab(of->model, of->version));
}

/* ---- parallel degrees ---------------------------------------------------- */

static void put_stages(const fr_megatron_request *of, fr_buffer *out)
{
    const fr_plan *plan = of->plan;
    const fr_model *model = of->model;
    int32_t first = 0, last = 0;
    if (fr_megatron_has_layout(plan, model, of->version)) {
        fr_buffer_puts(out, "    --pipeline-model-parallel-layout '");
        fr_megatron_put_layout(plan, model, out);
        fr_buffer_puts(out, "'\n");
        return;
    }
    bool has_ends = plan->pp > 1 && !fr_megatron_is_even(plan, model) &&
                    fr_megatron_ends(plan, model, &first, &last);
    if (plan->vpp > 1 && of->version >= FR_MEGATRON_0_11)
        put_number(out, "num-virtual-stages-per-pipeline-rank", plan->vpp);
    else if (plan->vpp > 1)
        put_number(out, "num-layers-per-virtual-pipeline-stage",
                   fr_plan_stage_layers(plan, model, 0));
    if (has_ends) {
        put_number(out, "decoder-first-pipeline-num-layers", first);
        if (plan->pp > 2) /* of two, the last has the rest */
            put_number(out, "decoder-last-pipeline-num-layers", last);
    }
}

static void put_expert_parallel(const fr_megatron_request *of, fr_buffer *out)
{
    const fr_plan *plan = of->plan;
    put_number(out, "expert-model-parallel-size", plan->ep);
    if (of->version >= FR_MEGATRON_0_10 && plan->etp > 0)
        put_number(out, "expert-tensor-parallel-size", plan->etp);
    if (plan->expert_dispatch == FR_DISPATCH_ALL_TO_ALL) {
        put_word(out, "moe-token-dispatcher-type", "alltoall");
    } else {
        put_word(out, "moe-token-dispatcher-type", "flex");
        if (of->version >= FR_MEGATRON_0_16)
            put_word(out, "moe-flex-dispatcher-backend", "deepep");
        else
            put_switch(out, "moe-enable-deepep");
        put_word(out, "moe-router-dtype", "fp32");
    }
    if (plan->is_ep_overlap && plan->ep > 1)
        put_switch(out, "overlap-moe-expert-parallel-comm");
    if (plan->expert_capacity > 0) {
        put_real(out, "moe-expert-capacity-factor", plan->expert_capacity);
        put_word(out, "moe-token-drop-policy", "probs");
    }
    if (plan->expert_capacity > 0 && plan->is_expert_padded)
        put_switch(out, "moe-pad-expert-input-to-capacity");
}

void fr_megatron_put_parallel(const fr_megatron_request *of, fr_buffer *out)
{
    const fr_plan *plan = of->plan;
    put_number(out, "tensor-model-parallel-size", plan->tp);
    if (plan->is_sequence_parallel && plan->tp > 1)
        put_switch(out, "sequence-parallel");
    if (plan->is_tp_overlap && plan->tp > 1)
        put_switch(out, "tp-comm-overlap");
    put_number(out, "pipeline-model-parallel-size", plan->pp);
    put_stages(of, out);
    put_number(out, "context-parallel-size", plan->cp);
    if (plan->cp > 1 && of->version >= FR_MEGATRON_0_10)
        put_word(out, "cp-comm-type",
                 fr_key_word_of(fr_megatron_cp_kinds, (int)plan->cp_kind));
    if (of->model->n_experts > 0)
        put_expert_parallel(of, out);
    if (plan->rank_order == FR_RANK_ORDER_TP_PP_DP)
        put_switch(out, "use-tp-pp-dp-mapping");
}

/* ---- data parallel, memory, kernels -------------------------------------- */

static void put_fsdp(const fr_megatron_request *of, fr_buffer *out)
{
    bool has_new_name = of->version >= FR_MEGATRON_0_14;
    put_switch(out, has_new_name ? "use-megatron-fsdp" : "use-custom-fsdp");
    put_word(out, "data-parallel-sharding-strategy",
             fr_key_word_of(fr_megatron_shardings, of->plan->zero_stage));
    if (has_new_name)
        put_word(out, "ckpt-format", "fsdp_dtensor");
    if (fr_megatron_builds_on_meta(of->model, of->version))
        put_switch(out, "init-model-with-meta-device");
    else
        put_comment(out, "before it is sharded each GPU holds the whole model: "
                         "its router or the gate of its shared expert cannot "
                         "be made in parts");
}

static void put_buckets(const fr_megatron_request *of, fr_buffer *out)
{
    const fr_plan *plan = of->plan;
    uint64_t n_bytes = fr_dtype_bytes(plan->grad_dtype);
    int64_t n = fr_megatron_bucket(plan);
    if (!fr_plan_field_is_used(plan, FR_PLAN_BUCKET))
        return;
    if (plan->bucket_bytes > 0 && plan->bucket_bytes % n_bytes != 0)
        fr_buffer_printf(out, "    # %llu bytes are no whole elements\n",
                         (unsigned long long)plan->bucket_bytes);
    if (!plan->is_overlap)
        put_comment(out, "without --overlap-grad-reduce all goes as one "
                         "bucket, whatever its size");
    put_number(out, "ddp-bucket-size", n);
}

static void put_data_parallel(const fr_megatron_request *of, fr_buffer *out)
{
    const fr_plan *plan = of->plan;
    bool gathers_beside =
        plan->zero_stage == 3 ? plan->is_overlap : plan->is_gather_overlap;
    if (plan->zero_stage > 0)
        put_switch(out, "use-distributed-optimizer");
    if (plan->zero_stage > 1)
        put_fsdp(of, out);
    if (fr_megatron_instances(plan) > 1)
        put_number(out, "num-distributed-optimizer-instances",
                   fr_megatron_instances(plan));
    if (plan->is_overlap)
        put_switch(out, "overlap-grad-reduce");
    if (plan->zero_stage > 0 && gathers_beside)
        put_switch(out, "overlap-param-gather");
    put_buckets(of, out);
    if (plan->grad_dtype == FR_DTYPE_BF16)
        put_switch(out, "grad-reduce-in-bf16");
    else if (plan->grad_dtype == FR_DTYPE_F32 &&
             fr_plan_storage_dtype(plan) != FR_DTYPE_F32)
        put_switch(out, "accumulate-allreduce-grads-in-fp32");
    if (plan->execution.is_grad_added_apart)
        put_switch(out, "no-gradient-accumulation-fusion");
}

static void put_selective(const fr_megatron_request *of, fr_buffer *out)
{
    const fr_plan *plan = of->plan;
    const char *words[FR_MEGATRON_MODULES_MAX];
    int n = fr_megatron_recompute_modules(plan, words);
    bool has_modules = of->version >= FR_MEGATRON_0_12;
    if (has_modules || plan->recompute_parts & FR_RECOMPUTE_PART_ATTENTION)
        put_word(out, "recompute-granularity", "selective");
    if (has_modules)
        put_words(out, "recompute-modules", words, n);
    else if (plan->recompute_parts & FR_RECOMPUTE_PART_EXPERTS)
        put_switch(out, "moe-layer-recompute");
}

static void put_recompute(const fr_megatron_request *of, fr_buffer *out)
{
    const fr_plan *plan = of->plan;
    if (plan->recompute == FR_RECOMPUTE_SELECTIVE)
        put_selective(of, out);
    if (plan->recompute != FR_RECOMPUTE_FULL)
        return;
    put_word(out, "recompute-granularity", "full");
    if (plan->recompute_layers > 0) {
        put_word(out, "recompute-method", "block");
        put_number(out, "recompute-num-layers", plan->recompute_layers);
    } else {
        put_word(out, "recompute-method", "uniform");
        put_number(out, "recompute-num-layers", 1);
    }
}

static void put_offload(const fr_megatron_request *of, fr_buffer *out)
{
    const fr_plan *plan = of->plan;
    if (plan->is_optimizer_offloaded) {
        put_switch(out, "optimizer-cpu-offload");
        put_real(out, "optimizer-offload-fraction", 1);
        put_switch(out, "use-precision-aware-optimizer");
    }
    if (plan->activation_offload_frac > 0)
        put_number(out, "cpu-offloading-num-layers",
                   fr_megatron_offloaded_layers(plan, of->model));
}

static void put_precision(const fr_megatron_request *of, fr_buffer *out)
{
    const fr_plan *plan = of->plan;
    fr_dtype base = fr_plan_storage_dtype(plan);
    if (base == FR_DTYPE_F16)
        put_switch(out, "fp16");
    else if (base == FR_DTYPE_BF16)
        put_switch(out, "bf16");
    if (plan->precision == FR_DTYPE_FP8) {
        put_word(out, "fp8-format", "hybrid");
        if (of->version >= FR_MEGATRON_0_12)
            put_word(out, "fp8-recipe",
                     fr_key_word_of(fr_megatron_recipes,
                                    (int)plan->execution.scaling));
    } else if (plan->precision == FR_DTYPE_FP4) {
        put_word(out, "fp4-format", "e2m1");
        put_word(out, "fp4-recipe", "nvfp4");
    }
    if (plan->precision != FR_DTYPE_FP8 &&
        plan->execution.scaling != FR_SCALING_DELAYED)
        fr_buffer_printf(
            out,
            "    # scaling %s: nothing is scaled at this "
            "precision\n",
            fr_name_of(&fr_scaling_names, (int)plan->execution.scaling));
    if (of->version < FR_MEGATRON_0_11)
        return; /* by environment variables */
    put_word(out, "attention-backend",
             !plan->is_flash                            ? "unfused"
             : plan->execution.flash_kind == FR_FLASH_2 ? "flash"
                                                        : "auto");
}

static void put_layer_graphs(const fr_megatron_request *of, fr_buffer *out)
{
    const char *words[FR_MEGATRON_MODULES_MAX];
    int n = fr_megatron_graph_modules(of->plan, of->model, words);
    bool has_experts = of->model->n_experts > 0;
    if (of->version < FR_MEGATRON_0_12) {
        put_switch(out, "enable-cuda-graph");
    } else if (of->version < FR_MEGATRON_0_15) {
        put_switch(out, "external-cuda-graph");
        put_word(out, "cuda-graph-scope", has_experts ? "attn" : "full");
    } else {
        put_word(out, "cuda-graph-impl", "transformer_engine");
        if (of->version < FR_MEGATRON_0_16)
            put_word(out, "cuda-graph-scope", has_experts ? "attn" : "full");
        else if (n > 0)
            put_words(out,
                      of->version < FR_MEGATRON_0_18 ? "cuda-graph-scope"
                                                     : "cuda-graph-modules",
                      words, n);
    }
    put_switch(out, "te-rng-tracker");
}

static void put_graphs(const fr_megatron_request *of, fr_buffer *out)
{
    if (of->plan->execution.cuda_graphs == FR_CUDA_GRAPHS_LAYER)
        put_layer_graphs(of, out);
    if (of->plan->execution.cuda_graphs != FR_CUDA_GRAPHS_FULL)
        return;
    if (of->version < FR_MEGATRON_0_15)
        put_switch(out, "enable-cuda-graph");
    else
        put_word(out, "cuda-graph-impl",
                 of->version < FR_MEGATRON_0_18 ? "local" : "full_iteration");
    if (of->version < FR_MEGATRON_0_18)
        put_word(out, "cuda-graph-scope", "full_iteration");
    if (of->plan->ep > 1 &&
        (of->version == FR_MEGATRON_0_16 || of->version == FR_MEGATRON_0_17))
        /* Asked for with experts, though it is of inference alone. */
        put_switch(out, "moe-pad-experts-for-cuda-graph-inference");
    put_switch(out, "te-rng-tracker");
    put_switch(out, "no-check-for-nan-in-loss-and-grad");
}

void fr_megatron_put_memory(const fr_megatron_request *of, fr_buffer *out)
{
    put_data_parallel(of, out);
    put_recompute(of, out);
    put_offload(of, out);
    put_precision(of, out);
    put_graphs(of, out);
    if (of->plan->execution.is_loss_fused) {
        put_switch(out, "cross-entropy-loss-fusion");
        put_word(out, "cross-entropy-fusion-impl", "te");
    }
}
