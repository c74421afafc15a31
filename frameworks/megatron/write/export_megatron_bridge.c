/*
 * export_megatron_bridge.c: a recipe of Megatron-Bridge in Python
 * (src/megatron/bridge/training/config.py, ConfigContainer; the model's fields
 * are those of Megatron Core's TransformerConfig).
 */
#include "frameworks/framework_keys.h"
#include "frameworks/framework_list.h"
#include "frameworks/megatron/megatron_keys.h"
#include "frameworks/megatron/write/megatron_arguments.h"
#include "frameworks/write/export_job.h"

#include <stdio.h>
#include <string.h>

enum { CORE = FR_MEGATRON_VERSIONS_N - 1 };

static void put_number(fr_buffer *out, const char *name, int64_t value)
{
    fr_buffer_printf(out, "        %s=%lld,\n", name, (long long)value);
}

static void put_real(fr_buffer *out, const char *name, double value)
{
    fr_buffer_printf(out, "        %s=%.15g,\n", name, value);
}

static void put_word(fr_buffer *out, const char *name, const char *word)
{
    fr_buffer_printf(out, "        %s=\"%s\",\n", name, word);
}

static void put_switch(fr_buffer *out, const char *name, bool is_on)
{
    fr_buffer_printf(out, "        %s=%s,\n", name, is_on ? "True" : "False");
}

static void put_words(fr_buffer *out, const char *name,
                      const char *const *words, int n)
{
    fr_buffer_printf(out, "        %s=[", name);
    for (int i = 0; i < n; i++)
        fr_buffer_printf(out, "%s\"%s\"", i > 0 ? ", " : "", words[i]);
    fr_buffer_puts(out, "],\n");
}

/* ---- the model ----------------------------------------------------------- */

static void put_latent(const fr_model *model, fr_buffer *out)
{
    /* The provider's bases leave it off. */
    put_switch(out, "multi_latent_attention", true);
    if (model->q_lora_rank > 0)
        put_number(out, "q_lora_rank", model->q_lora_rank);
    put_number(out, "kv_lora_rank", model->kv_lora_rank);
    put_number(out, "qk_head_dim", model->qk_nope_head_dim);
    put_number(out, "qk_pos_emb_head_dim", model->qk_rope_head_dim);
    put_number(out, "v_head_dim", model->v_head_dim);
    put_word(out, "rope_type", "rope");
    put_switch(out, "apply_rope_fusion", false); /* YaRN's alone */
}

/* As megatron_arguments.c has it. */
static void put_router(const fr_model *model, fr_buffer *out)
{
    put_number(out, "moe_router_topk", model->n_experts_per_token);
    if (model->has_sigmoid_router)
        put_word(out, "moe_router_score_function", "sigmoid");
    if (fr_megatron_has_pre_softmax(model))
        put_switch(out, "moe_router_pre_softmax", true);
    if (fr_megatron_has_pre_softmax(model) && !model->has_softmax_over_all)
        fr_buffer_puts(out, "        # the weight of a token's one expert is "
                            "its share of all, not 1\n");
    if (fr_megatron_has_groups(model)) {
        put_number(out, "moe_router_num_groups", model->n_expert_groups);
        put_number(out, "moe_router_group_topk", model->n_chosen_groups);
    }
    if (model->routed_scale != 1)
        put_real(out, "moe_router_topk_scaling_factor", model->routed_scale);
    if (model->has_router_bias) {
        fr_buffer_puts(out, "        # Megatron Core moves this bias by 0.001 "
                            "a step toward even loads\n");
        put_switch(out, "moe_router_enable_expert_bias", true);
    }
}

static void put_experts(const fr_model *model, fr_buffer *out)
{
    put_number(out, "num_moe_experts", model->n_experts);
    put_router(model, out);
    put_switch(out, "moe_grouped_gemm", true);
    put_number(out, "moe_ffn_hidden_size", model->expert_ffn_hidden);
    if (model->shared_expert_ffn_hidden > 0)
        put_number(out, "moe_shared_expert_intermediate_size",
                   model->shared_expert_ffn_hidden);
    if (model->has_shared_expert_gate)
        put_switch(out, "moe_shared_expert_gate", true);
    if (model->router_aux_coef > 0) {
        put_word(out, "moe_router_load_balancing_type",
                 model->is_aux_by_sequence ? "seq_aux_loss" : "aux_loss");
        put_real(out, "moe_aux_loss_coeff", model->router_aux_coef);
    }
    if (!fr_megatron_has_dense_layers(model))
        return;
    fr_buffer_puts(out, "        moe_layer_freq=");
    fr_megatron_put_expert_layers(model, out);
    fr_buffer_puts(out, ",\n");
}

static void put_positions(const fr_model *model, int64_t seq, fr_buffer *out)
{
    put_number(out, "seq_length", seq);
    put_word(out, "position_embedding_type",
             model->is_rope ? "rope" : "learned_absolute");
    if (model->is_rope)
        put_number(out, "rotary_base", (int64_t)model->rope_theta);
    if (model->rope_frac != 1)
        put_real(out, "rotary_percent", model->rope_frac);
    if (model->has_rope_scaling) {
        put_switch(out, "rope_scaling", true);
        put_real(out, "rope_scaling_factor", model->rope_factor);
    }
}

static void put_shape(const fr_model *model, fr_buffer *out)
{
    bool is_gelu = !model->is_gated_mlp;
    put_number(out, "num_layers", model->n_layers);
    put_number(out, "hidden_size", model->hidden);
    put_number(out, "ffn_hidden_size",
               model->ffn_hidden > 0 ? model->ffn_hidden
                                     : model->expert_ffn_hidden);
    put_number(out, "num_attention_heads", model->n_heads);
    put_number(out, "num_query_groups", model->n_kv_heads);
    put_number(out, "kv_channels", model->head_dim);
    put_number(out, "vocab_size", model->vocab);
    put_switch(out, "should_pad_vocab", true);
    put_word(out, "normalization",
             model->is_rms_norm ? "RMSNorm" : "LayerNorm");
    put_real(out, "layernorm_epsilon", model->norm_eps);
    put_switch(out, "gated_linear_unit", !is_gelu);
    fr_buffer_printf(out, "        activation_func=F.%s,\n",
                     is_gelu ? "gelu" : "silu");
    /* Fused with the bias GELU has its tanh form. */
    put_switch(out, "bias_activation_fusion",
               !is_gelu || (model->has_mlp_bias &&
                            model->activation == FR_ACTIVATION_GELU_TANH));
    put_switch(out, "add_bias_linear", model->has_mlp_bias);
    put_switch(out, "add_qkv_bias", model->has_qkv_bias);
    put_switch(out, "qk_layernorm",
               model->has_qk_norm || model->kv_lora_rank > 0);
    put_switch(out, "share_embeddings_and_output_weights", model->is_tied);
    if (model->sliding_window > 0)
        fr_buffer_printf(out, "        window_size=(%lld, 0),\n",
                         (long long)model->sliding_window - 1);
    if (model->n_mtp_layers > 0) {
        put_number(out, "mtp_num_layers", model->n_mtp_layers);
        put_real(out, "mtp_loss_scaling_factor", model->mtp_loss_scale);
    }
}

/* ---- the plan ------------------------------------------------------------ */

static void put_stages(const fr_plan *plan, const fr_model *model,
                       fr_buffer *out)
{
    put_number(out, "pipeline_model_parallel_size", plan->pp);
    if (plan->pp > 1 && plan->vpp > 1)
        put_number(out, "virtual_pipeline_model_parallel_size", plan->vpp);
    if (!fr_megatron_has_layout(plan, model, CORE))
        return;
    fr_buffer_puts(out, "        pipeline_model_parallel_layout=\"");
    fr_megatron_put_layout(plan, model, out);
    fr_buffer_puts(out, "\",\n");
}

static void put_parallel(const fr_plan *plan, const fr_model *model,
                         fr_buffer *out)
{
    put_number(out, "tensor_model_parallel_size", plan->tp);
    put_switch(out, "sequence_parallel",
               plan->is_sequence_parallel && plan->tp > 1);
    put_stages(plan, model, out);
    put_number(out, "context_parallel_size", plan->cp);
    if (plan->cp > 1)
        put_word(out, "cp_comm_type",
                 fr_key_word_of(fr_megatron_cp_kinds, (int)plan->cp_kind));
    if (model->n_experts == 0)
        return;
    bool is_flex = plan->expert_dispatch != FR_DISPATCH_ALL_TO_ALL;
    put_number(out, "expert_model_parallel_size", plan->ep);
    if (plan->etp > 0)
        put_number(out, "expert_tensor_parallel_size", plan->etp);
    put_word(out, "moe_token_dispatcher_type", is_flex ? "flex" : "alltoall");
    if (is_flex) {
        put_word(out, "moe_flex_dispatcher_backend", "deepep");
        put_word(out, "moe_router_dtype", "fp32");
    }
    if (plan->expert_capacity > 0) {
        put_real(out, "moe_expert_capacity_factor", plan->expert_capacity);
        put_word(out, "moe_token_drop_policy", "probs");
        put_switch(out, "moe_pad_expert_input_to_capacity",
                   plan->is_expert_padded);
    }
    put_switch(out, "overlap_moe_expert_parallel_comm",
               plan->is_ep_overlap && plan->ep > 1);
}

static void put_recompute(const fr_plan *plan, fr_buffer *out)
{
    const char *words[FR_MEGATRON_MODULES_MAX];
    if (plan->recompute == FR_RECOMPUTE_SELECTIVE) {
        put_word(out, "recompute_granularity", "selective");
        put_words(out, "recompute_modules", words,
                  fr_megatron_recompute_modules(plan, words));
    } else if (plan->recompute == FR_RECOMPUTE_FULL) {
        bool is_part = plan->recompute_layers > 0;
        put_word(out, "recompute_granularity", "full");
        put_word(out, "recompute_method", is_part ? "block" : "uniform");
        put_number(out, "recompute_num_layers",
                   is_part ? plan->recompute_layers : 1);
    }
}

static void put_kernels(const fr_plan *plan, const fr_model *model,
                        fr_buffer *out)
{
    const char *words[FR_MEGATRON_MODULES_MAX];
    bool is_full = plan->execution.cuda_graphs == FR_CUDA_GRAPHS_FULL;
    if (plan->activation_offload_frac > 0) {
        put_switch(out, "cpu_offloading", true);
        put_number(out, "cpu_offloading_num_layers",
                   fr_megatron_offloaded_layers(plan, model));
    }
    fr_buffer_printf(out, "        attention_backend=AttnBackend.%s,\n",
                     !plan->is_flash                            ? "unfused"
                     : plan->execution.flash_kind == FR_FLASH_2 ? "flash"
                                                                : "auto");
    put_switch(out, "cross_entropy_loss_fusion", false);
    put_switch(out, "gradient_accumulation_fusion",
               !plan->execution.is_grad_added_apart);
    if (plan->execution.cuda_graphs == FR_CUDA_GRAPHS_NONE)
        return;
    put_word(out, "cuda_graph_impl",
             is_full ? "full_iteration" : "transformer_engine");
    int n = is_full ? 0 : fr_megatron_graph_modules(plan, model, words);
    if (n > 0)
        put_words(out, "cuda_graph_modules", words, n);
    put_switch(out, "use_te_rng_tracker", true);
}

/* Megatron FSDP makes the weights in parts, where their modules can. */
static void put_meta_device(const fr_plan *plan, const fr_model *model,
                            fr_buffer *out)
{
    if (plan->zero_stage < 2)
        return;
    if (fr_megatron_builds_on_meta(model, CORE))
        put_switch(out, "init_model_with_meta_device", true);
    else
        fr_buffer_puts(out, "        # before it is sharded each GPU holds the "
                            "whole model: the gate of its\n        # shared "
                            "expert cannot be made in parts\n");
}

static void put_model(const fr_plan_file *file, fr_buffer *out)
{
    const fr_model *model = &file->model;
    fr_buffer_printf(out, "    model = %s(\n",
                     model->kv_lora_rank > 0 ? "MLAModelProvider"
                                             : "GPTModelProvider");
    put_shape(model, out);
    put_positions(model, file->job.seq, out);
    if (model->kv_lora_rank > 0)
        put_latent(model, out);
    if (model->n_experts > 0)
        put_experts(model, out);
    put_real(out, "hidden_dropout", file->job.dropout);
    put_real(out, "attention_dropout", file->job.dropout);
    fr_buffer_puts(out, "        # how it is split\n");
    put_parallel(&file->plan, model, out);
    fr_buffer_puts(out, "        # memory and kernels\n");
    put_meta_device(&file->plan, model, out);
    put_recompute(&file->plan, out);
    put_kernels(&file->plan, model, out);
    fr_buffer_puts(out, "    )\n");
}

static void put_ddp(const fr_plan *plan, fr_buffer *out)
{
    bool gathers_beside =
        plan->zero_stage == 3 ? plan->is_overlap : plan->is_gather_overlap;
    fr_buffer_puts(out, "    ddp = DistributedDataParallelConfig(\n");
    put_switch(out, "use_distributed_optimizer", plan->zero_stage > 0);
    put_switch(out, "overlap_grad_reduce", plan->is_overlap);
    put_switch(out, "overlap_param_gather",
               plan->zero_stage > 0 && gathers_beside);
    put_switch(out, "grad_reduce_in_fp32", plan->grad_dtype == FR_DTYPE_F32);
    if (plan->zero_stage < 2)
        put_number(out, "bucket_size", fr_megatron_bucket(plan));
    put_number(out, "num_distributed_optimizer_instances",
               fr_megatron_instances(plan));
    put_switch(out, "use_megatron_fsdp", plan->zero_stage > 1);
    if (plan->zero_stage > 1)
        put_word(out, "data_parallel_sharding_strategy",
                 fr_key_word_of(fr_megatron_shardings, plan->zero_stage));
    put_switch(out, "check_for_nan_in_grad",
               plan->execution.cuda_graphs != FR_CUDA_GRAPHS_FULL);
    fr_buffer_puts(out, "    )\n");
}

static void put_optimizer(const fr_plan *plan, const fr_job *job,
                          fr_buffer *out)
{
    double lr = fr_job_peak_lr(job);
    bool is_sgd = job->optimizer == FR_OPTIMIZER_SGD;
    fr_buffer_puts(out, "    optimizer = OptimizerConfig(\n");
    put_word(out, "optimizer", is_sgd ? "sgd" : "adam");
    put_real(out, "lr", lr);
    put_real(out, "min_lr", lr * job->lr_min_frac);
    put_real(out, "weight_decay", job->weight_decay);
    if (is_sgd) {
        put_real(out, "sgd_momentum", job->beta1);
    } else {
        put_real(out, "adam_beta1", job->beta1);
        put_real(out, "adam_beta2", job->beta2);
        put_real(out, "adam_eps", job->optimizer_eps);
    }
    put_real(out, "clip_grad", job->clip_norm);
    put_switch(out, "use_distributed_optimizer", plan->zero_stage > 0);
    if (plan->is_optimizer_offloaded) {
        put_switch(out, "optimizer_cpu_offload", true);
        put_real(out, "optimizer_offload_fraction", 1);
        put_switch(out, "use_precision_aware_optimizer", true);
    }
    fr_buffer_puts(out, "    )\n    scheduler = SchedulerConfig(\n");
    put_word(out, "lr_decay_style",
             fr_key_word_of(fr_megatron_lr_styles, (int)job->lr_schedule));
    put_number(out, "lr_decay_iters", job->n_steps);
    put_number(out, "lr_warmup_iters", job->warmup_steps);
    put_real(out, "start_weight_decay", job->weight_decay);
    put_real(out, "end_weight_decay", job->weight_decay);
    put_word(out, "weight_decay_incr_style", "constant");
    fr_buffer_puts(out, "    )\n");
}

static void put_precision(const fr_plan *plan, fr_buffer *out)
{
    fr_dtype base = fr_plan_storage_dtype(plan);
    fr_buffer_puts(out, "    precision = MixedPrecisionConfig(\n");
    if (base == FR_DTYPE_F32) {
        put_switch(out, "fp32", true);
        fr_buffer_puts(out, "        params_dtype=torch.float32,\n"
                            "        pipeline_dtype=torch.float32,\n");
    } else {
        const char *name = base == FR_DTYPE_F16 ? "float16" : "bfloat16";
        put_switch(out, base == FR_DTYPE_F16 ? "fp16" : "bf16", true);
        fr_buffer_printf(out,
                         "        params_dtype=torch.%s,\n"
                         "        pipeline_dtype=torch.%s,\n",
                         name, name);
    }
    put_switch(out, "grad_reduce_in_fp32", plan->grad_dtype == FR_DTYPE_F32);
    if (plan->precision == FR_DTYPE_FP8) {
        put_word(out, "fp8", "hybrid");
        put_word(
            out, "fp8_recipe",
            fr_key_word_of(fr_megatron_recipes, (int)plan->execution.scaling));
    } else if (plan->precision == FR_DTYPE_FP4) {
        put_word(out, "fp4", "e2m1");
        put_word(out, "fp4_recipe", "nvfp4");
    }
    fr_buffer_puts(out, "    )\n");
}

/* ---- the recipe ---------------------------------------------------------- */

/* As environment variables of the recipe (ConfigContainer.env_vars). */
static void put_variables(const fr_export_request *request, fr_buffer *out)
{
    fr_export_variable variables[FR_EXPORT_VARIABLES_MAX];
    const fr_plan *plan = &request->file->plan;
    int n = fr_export_environment(request, variables);
    fr_buffer_printf(out,
                     "        env_vars={\n"
                     "            \"CUDA_DEVICE_MAX_CONNECTIONS\": %d,\n",
                     plan->zero_stage > 1 ? 8 : 1);
    if (plan->precision == FR_DTYPE_F32)
        fr_buffer_puts(out, "            \"NVIDIA_TF32_OVERRIDE\": 0,\n");
    for (int i = 0; i < n; i++)
        fr_buffer_printf(out, "            \"%s\": \"%s\",\n",
                         variables[i].name, variables[i].value);
    fr_buffer_puts(out, "        },\n");
}

static void put_data_source(const fr_job *job, fr_buffer *out)
{
    char prefix[sizeof job->data];
    if (!fr_megatron_takes_data(job)) {
        fr_buffer_puts(out, "        # Mock data; a GPTDatasetConfig with "
                            "`blend` has your own.\n"
                            "        dataset=MockGPTDatasetConfig(\n");
        return;
    }
    fr_buffer_puts(out, "        dataset=GPTDatasetConfig(\n"
                        "            blend=([");
    fr_framework_put_string(fr_megatron_data_prefix(job, prefix, sizeof prefix),
                            out);
    fr_buffer_puts(out, "], None),\n");
}

/* The rest of a CheckpointConfig: it continues from the newest checkpoint of
 * `load`. */
static void put_checkpoints(const fr_export_request *request, fr_buffer *out)
{
    if (request->checkpoint_dir != NULL) {
        fr_buffer_puts(out, "            save=");
        fr_framework_put_string(request->checkpoint_dir, out);
        fr_buffer_puts(out, ",\n            load=");
        fr_framework_put_string(request->checkpoint_dir, out);
        fr_buffer_printf(out, ",\n            save_interval=%lld,\n",
                         (long long)request->checkpoint_every);
    }
    fr_buffer_puts(out, "        ),\n");
}

static void put_container(const fr_export_request *request, fr_buffer *out)
{
    const fr_plan *plan = &request->file->plan;
    const fr_job *job = &request->file->job;
    bool is_full = plan->execution.cuda_graphs == FR_CUDA_GRAPHS_FULL;
    fr_buffer_puts(out, "    return ConfigContainer(\n"
                        "        model=model,\n        ddp=ddp,\n"
                        "        optimizer=optimizer,\n"
                        "        scheduler=scheduler,\n"
                        "        mixed_precision=precision,\n");
    put_variables(request, out);
    fr_buffer_printf(out,
                     "        train=TrainingConfig(\n"
                     "            train_iters=%lld,\n"
                     "            global_batch_size=%lld,\n"
                     "            micro_batch_size=%lld,\n        ),\n",
                     (long long)job->n_steps, (long long)job->global_batch,
                     (long long)plan->micro_batch);
    fr_buffer_puts(out, "        validation=ValidationConfig(eval_iters=0),\n");
    put_data_source(job, out);
    fr_buffer_printf(
        out,
        "            seq_length=%lld,\n"
        "            random_seed=%llu,\n"
        "            reset_position_ids=False,\n"
        "            reset_attention_mask=False,\n"
        "            eod_mask_loss=False,\n        ),\n"
        "        tokenizer=TokenizerConfig(\n"
        "            tokenizer_type=\"NullTokenizer\", "
        "vocab_size=%lld\n        ),\n",
        (long long)job->seq, (unsigned long long)job->seed,
        (long long)fr_megatron_null_vocab(&request->file->model, CORE));
    fr_buffer_printf(out,
                     "        rng=RNGConfig(seed=%llu),\n"
                     "        dist=DistributedInitConfig(\n"
                     "            use_tp_pp_dp_mapping=%s,\n"
                     "            use_megatron_fsdp=%s,\n        ),\n"
                     "        logger=LoggerConfig(log_interval=1),\n"
                     "        checkpoint=CheckpointConfig(\n"
                     "            ckpt_format=\"%s\",\n",
                     (unsigned long long)job->seed,
                     plan->rank_order == FR_RANK_ORDER_TP_PP_DP ? "True"
                                                                : "False",
                     plan->zero_stage > 1 ? "True" : "False",
                     plan->zero_stage > 1 ? "fsdp_dtensor" : "torch_dist");
    put_checkpoints(request, out);
    if (plan->is_tp_overlap && plan->tp > 1)
        fr_buffer_printf(out, "        comm_overlap=CommOverlapConfig(\n"
                              "            tp_comm_overlap=True,\n"
                              "            overlap_grad_reduce=ddp."
                              "overlap_grad_reduce,\n"
                              "            overlap_param_gather=ddp."
                              "overlap_param_gather,\n"
                              "            bucket_size=ddp.bucket_size,\n"
                              "        ),\n");
    if (is_full)
        fr_buffer_puts(out, "        rerun_state_machine="
                            "RerunStateMachineConfig(check_for_nan_in_loss="
                            "False),\n");
    fr_buffer_puts(out, "    )\n");
}

static const char imports[] =
    "import torch\n"
    "import torch.nn.functional as F\n"
    "from megatron.bridge.models.gpt_provider import GPTModelProvider\n"
    "from megatron.bridge.models.mla_provider import MLAModelProvider\n"
    "from megatron.bridge.training.comm_overlap import CommOverlapConfig\n"
    "from megatron.bridge.training.config import (\n"
    "    CheckpointConfig,\n    ConfigContainer,\n"
    "    DistributedDataParallelConfig,\n    DistributedInitConfig,\n"
    "    GPTDatasetConfig,\n    LoggerConfig,\n    MockGPTDatasetConfig,\n"
    "    OptimizerConfig,\n"
    "    RerunStateMachineConfig,\n    RNGConfig,\n    SchedulerConfig,\n"
    "    TokenizerConfig,\n    TrainingConfig,\n    ValidationConfig,\n)\n"
    "from megatron.bridge.training.gpt_step import forward_step\n"
    "from megatron.bridge.training.mixed_precision import "
    "MixedPrecisionConfig\n"
    "from megatron.bridge.training.pretrain import pretrain\n"
    "from megatron.core.transformer.enums import AttnBackend\n";

static fr_status write_recipe(const fr_export_request *request,
                              fr_export_files *out, fr_err *err)
{
    const fr_plan_file *plan = request->file;
    char ranks[24];
    FR_TRY(fr_export_check_torchrun(request, err));
    fr_export_file *file = fr_export_add(out, "recipe.py", false);
    if (file == NULL)
        return fr_fail_no_memory(err);
    fr_buffer *text = &file->text;
    fr_export_put_header(request, &fr_target_megatron_bridge, "# ", text);
    fr_buffer_printf(text,
                     "# A recipe of Megatron-Bridge v%s.0: torchrun "
                     "--nnodes %lld --nproc_per_node %s recipe.py\n"
                     "%s%s\n\n"
                     "def forerun_config() -> ConfigContainer:\n",
                     fr_target_megatron_bridge.versions[request->version],
                     (long long)request->n_nodes,
                     fr_export_ranks_word(request, ranks, sizeof ranks),
                     plan->job.warmup_steps > 0
                         ? "# Its warm-up begins with a rate of 0, a step "
                           "behind forerun's.\n"
                         : "",
                     imports);
    put_model(plan, text);
    put_ddp(&plan->plan, text);
    put_optimizer(&plan->plan, &plan->job, text);
    put_precision(&plan->plan, text);
    put_container(request, text);
    fr_buffer_puts(text, "\n\nif __name__ == \"__main__\":\n"
                         "    pretrain(config=forerun_config(), "
                         "forward_step_func=forward_step)\n");
    return fr_buffer_check(text, err);
}

static fr_status put_command(const fr_export_request *request, fr_buffer *out,
                             fr_err *err)
{
    (void)request;
    (void)err;
    fr_buffer_puts(out, "\"$folder/recipe.py\"");
    return FR_OK;
}

const fr_exporter fr_exporter_megatron_bridge = {
    .target = &fr_target_megatron_bridge,
    .summary = "a recipe of Megatron-Bridge (NeMo) in Python",
    .write = write_recipe,
    .start = FR_START_TORCHRUN,
    .put_command = put_command,
    .left = {[FR_EXPORT_DATA] = FR_MEGATRON_NO_DATA},
    .takes_data = fr_megatron_takes_data,
};
