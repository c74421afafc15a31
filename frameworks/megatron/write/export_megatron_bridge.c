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

/* ---- fields that are no arguments of Megatron-LM ------------------------- */

FR_KEY_COUNT(put_width, model->ffn_hidden > 0 ? model->ffn_hidden
                                              : model->expert_ffn_hidden)
FR_KEY_PUT(put_activation, "F.%s", model->is_gated_mlp ? "silu" : "gelu")
/* Fused with the bias GELU has its tanh form. */
FR_KEY_PYTHON_SWITCH(put_fused,
                     model->is_gated_mlp ||
                         (model->has_mlp_bias &&
                          model->activation == FR_ACTIVATION_GELU_TANH))
FR_KEY_PYTHON_SWITCH(put_qk_norm, model->has_qk_norm || model->kv_lora_rank > 0)
FR_KEY_PUT(put_window, "(%lld, 0)", (long long)model->sliding_window - 1)
FR_KEY_COUNT(put_theta, model->rope_theta)
FR_KEY_PYTHON_SWITCH(put_sequence_parallel,
                     plan->is_sequence_parallel && plan->tp > 1)
FR_KEY_PYTHON_SWITCH(put_ep_overlap, plan->is_ep_overlap && plan->ep > 1)
FR_KEY_COUNT(put_layers_offloaded, fr_megatron_offloaded_layers(plan, model))
FR_KEY_PUT(put_attention, "AttnBackend.%s", fr_megatron_attention_backend(plan))
FR_KEY_PYTHON_SWITCH(put_summed_fused, !plan->execution.is_grad_added_apart)
FR_KEY_PYTHON_SWITCH(put_sharded, plan->zero_stage > 0)
FR_KEY_PYTHON_SWITCH(put_fsdp, plan->zero_stage > 1)
FR_KEY_PYTHON_SWITCH(put_gather_overlap,
                     plan->zero_stage == 3
                         ? plan->is_overlap
                         : plan->zero_stage > 0 && plan->is_gather_overlap)
FR_KEY_PYTHON_SWITCH(put_summed_f32, plan->grad_dtype == FR_DTYPE_F32)
FR_KEY_COUNT(put_bucket, fr_megatron_bucket(plan))
FR_KEY_COUNT(put_copies, fr_megatron_instances(plan))
FR_KEY_PYTHON_SWITCH(put_nan_check,
                     plan->execution.cuda_graphs != FR_CUDA_GRAPHS_FULL)
FR_KEY_PUT(put_dtype, "torch.%s",
           fr_plan_storage_dtype(plan) == FR_DTYPE_F32   ? "float32"
           : fr_plan_storage_dtype(plan) == FR_DTYPE_F16 ? "float16"
                                                         : "bfloat16")

static void put_layout(const fr_plan_file *file, fr_buffer *out)
{
    fr_buffer_putc(out, '"');
    fr_megatron_put_layout(&file->plan, &file->model, out);
    fr_buffer_putc(out, '"');
}

static void put_expert_layers(const fr_plan_file *file, fr_buffer *out)
{
    fr_megatron_put_expert_layers(&file->model, out);
}

static void put_graph_modules(const fr_plan_file *file, fr_buffer *out)
{
    const char *words[FR_MEGATRON_MODULES_MAX];
    int n = fr_megatron_graph_modules(&file->plan, &file->model, words);
    for (int i = 0; i < n; i++)
        fr_buffer_printf(out, "%s\"%s\"", i > 0 ? ", " : "[", words[i]);
    fr_buffer_putc(out, ']');
}

FR_KEY_IF(has_window, model->sliding_window > 0)
FR_KEY_IF(is_rope, model->is_rope)
FR_KEY_IF(is_rope_scaled, model->has_rope_scaling)
FR_KEY_IF(has_router_bias, model->has_router_bias)
FR_KEY_IF(has_dense_layers, fr_megatron_has_dense_layers(model))
FR_KEY_IF(has_chunks, plan->pp > 1 && plan->vpp > 1)
FR_KEY_IF(has_layout, fr_megatron_has_layout(plan, model, CORE))
FR_KEY_IF(is_context_parallel, plan->cp > 1)
FR_KEY_IF(is_flex, plan->expert_dispatch != FR_DISPATCH_ALL_TO_ALL)
FR_KEY_IF(has_capacity, plan->expert_capacity > 0)
FR_KEY_IF(is_meta,
          plan->zero_stage > 1 && fr_megatron_builds_on_meta(model, CORE))
FR_KEY_IF(is_whole,
          plan->zero_stage > 1 && !fr_megatron_builds_on_meta(model, CORE))
FR_KEY_IF(has_layers_offloaded, plan->activation_offload_frac > 0)
FR_KEY_IF(is_layer_graph, plan->execution.cuda_graphs == FR_CUDA_GRAPHS_LAYER)
FR_KEY_IF(is_module_graph, is_layer_graph(file) && model->n_experts > 0)
FR_KEY_IF(is_step_graph, plan->execution.cuda_graphs == FR_CUDA_GRAPHS_FULL)
FR_KEY_IF(is_graph, plan->execution.cuda_graphs != FR_CUDA_GRAPHS_NONE)
FR_KEY_IF(is_fsdp, plan->zero_stage > 1)
FR_KEY_IF(is_no_fsdp, plan->zero_stage < 2)
FR_KEY_IF(is_f32, fr_plan_storage_dtype(plan) == FR_DTYPE_F32)
FR_KEY_IF(is_f16, fr_plan_storage_dtype(plan) == FR_DTYPE_F16)
FR_KEY_IF(is_bf16, fr_plan_storage_dtype(plan) == FR_DTYPE_BF16)
FR_KEY_IF(is_fp8, plan->precision == FR_DTYPE_FP8)
FR_KEY_IF(is_fp4, plan->precision == FR_DTYPE_FP4)

static const fr_key_word norms[] = {
    {true, "RMSNorm"}, {false, "LayerNorm"}, {0}};
static const fr_key_word positions[] = {
    {true, "rope"}, {false, "learned_absolute"}, {0}};
static const fr_key_word dispatchers[] = {
    {FR_DISPATCH_ALL_TO_ALL, "alltoall"}, {FR_DISPATCH_BY_NODE, "flex"}, {0}};

#define OF(member) FR_KEY_MEMBER(member)
#define IF(condition) .is_used = (condition)

static const fr_framework_key rows[] = {
    {"shape", "num_layers", OF(model.n_layers)},
    {"shape", "hidden_size", OF(model.hidden)},
    {"shape", "ffn_hidden_size", .put = put_width},
    {"shape", "num_attention_heads", OF(model.n_heads)},
    {"shape", "num_query_groups", OF(model.n_kv_heads)},
    {"shape", "kv_channels", OF(model.head_dim)},
    {"shape", "vocab_size", OF(model.vocab)},
    {"shape", "should_pad_vocab", .text = "True"},
    {"shape", "normalization", OF(model.is_rms_norm), .words = norms},
    {"shape", "layernorm_epsilon", OF(model.norm_eps)},
    {"shape", "gated_linear_unit", OF(model.is_gated_mlp)},
    {"shape", "activation_func", .put = put_activation},
    {"shape", "bias_activation_fusion", .put = put_fused},
    {"shape", "add_bias_linear", OF(model.has_mlp_bias)},
    {"shape", "add_qkv_bias", OF(model.has_qkv_bias)},
    {"shape", "qk_layernorm", .put = put_qk_norm},
    {"shape", "share_embeddings_and_output_weights", OF(model.is_tied)},
    {"shape", "window_size", .put = put_window, IF(has_window)},
    {"positions", "seq_length", OF(job.seq)},
    {"positions", "position_embedding_type", OF(model.is_rope),
     .words = positions},
    {"positions", "rotary_base", .put = put_theta, IF(is_rope)},
    {"positions", "rotary_percent", OF(model.rope_frac), .has_default = true,
     .usual = 1},
    {"positions", "rope_scaling", .text = "True", IF(is_rope_scaled)},
    {"positions", "rope_scaling_factor", OF(model.rope_factor),
     IF(is_rope_scaled)},
    {"latent rope", "rope_type", .word = "rope"},
    {"latent rope", "apply_rope_fusion", .text = "False"}, /* YaRN's alone */
    {"router bias",
     .comment =
         "Megatron Core moves this bias by 0.001 a step toward even loads",
     IF(has_router_bias)},
    {"expert layers", "moe_layer_freq", .put = put_expert_layers,
     IF(has_dense_layers)},
    {"dropout", "hidden_dropout", OF(job.dropout)},
    {"dropout", "attention_dropout", OF(job.dropout)},
    {"parallel", .comment = "how it is split"},
    {"parallel", "tensor_model_parallel_size", OF(plan.tp)},
    {"parallel", "sequence_parallel", .put = put_sequence_parallel},
    {"parallel", "pipeline_model_parallel_size", OF(plan.pp)},
    {"parallel", "virtual_pipeline_model_parallel_size", OF(plan.vpp),
     IF(has_chunks)},
    {"parallel", "pipeline_model_parallel_layout", .put = put_layout,
     IF(has_layout)},
    {"parallel", "context_parallel_size", OF(plan.cp)},
    {"parallel", "cp_comm_type", OF(plan.cp_kind),
     .words = fr_megatron_cp_kinds, IF(is_context_parallel)},
    {"expert parallel", "expert_model_parallel_size", OF(plan.ep)},
    {"expert parallel", "expert_tensor_parallel_size", OF(plan.etp),
     .has_default = true},
    {"expert parallel", "moe_token_dispatcher_type", OF(plan.expert_dispatch),
     .words = dispatchers},
    {"expert parallel", "moe_flex_dispatcher_backend", .word = "deepep",
     IF(is_flex)},
    {"expert parallel", "moe_router_dtype", .word = "fp32", IF(is_flex)},
    {"expert parallel", "moe_expert_capacity_factor", OF(plan.expert_capacity),
     IF(has_capacity)},
    {"expert parallel", "moe_token_drop_policy", .word = "probs",
     IF(has_capacity)},
    {"expert parallel", "moe_pad_expert_input_to_capacity",
     OF(plan.is_expert_padded), IF(has_capacity)},
    {"expert parallel", "overlap_moe_expert_parallel_comm",
     .put = put_ep_overlap},
    /* Megatron FSDP makes the weights in parts, where their modules can. */
    {"memory", .comment = "memory and kernels"},
    {"memory", "init_model_with_meta_device", .text = "True", IF(is_meta)},
    {"memory",
     .comment = "before it is sharded each GPU holds the whole model: the gate "
                "of its\n        # shared expert cannot be made in parts",
     IF(is_whole)},
    {"kernels", "cpu_offloading", .text = "True", IF(has_layers_offloaded)},
    {"kernels", "cpu_offloading_num_layers", .put = put_layers_offloaded,
     IF(has_layers_offloaded)},
    {"kernels", "attention_backend", .put = put_attention},
    {"kernels", "cross_entropy_loss_fusion", .text = "False"},
    {"kernels", "gradient_accumulation_fusion", .put = put_summed_fused},
    {"kernels", "cuda_graph_impl", .word = "transformer_engine",
     IF(is_layer_graph)},
    {"kernels", "cuda_graph_impl", .word = "full_iteration", IF(is_step_graph)},
    {"kernels", "cuda_graph_modules", .put = put_graph_modules,
     IF(is_module_graph)},
    {"kernels", "use_te_rng_tracker", .text = "True", IF(is_graph)},
    {"ddp", "use_distributed_optimizer", .put = put_sharded},
    {"ddp", "overlap_grad_reduce", OF(plan.is_overlap)},
    {"ddp", "overlap_param_gather", .put = put_gather_overlap},
    {"ddp", "grad_reduce_in_fp32", .put = put_summed_f32},
    {"ddp", "bucket_size", .put = put_bucket, IF(is_no_fsdp)},
    {"ddp", "num_distributed_optimizer_instances", .put = put_copies},
    {"ddp", "use_megatron_fsdp", .put = put_fsdp},
    {"ddp", "data_parallel_sharding_strategy", OF(plan.zero_stage),
     .words = fr_megatron_shardings, IF(is_fsdp)},
    {"ddp", "check_for_nan_in_grad", .put = put_nan_check},
    {"optimizer", "weight_decay", OF(job.weight_decay)},
    {"clipping", "clip_grad", OF(job.clip_norm)},
    {"clipping", "use_distributed_optimizer", .put = put_sharded},
    {"decay", "start_weight_decay", OF(job.weight_decay)},
    {"decay", "end_weight_decay", OF(job.weight_decay)},
    {"decay", "weight_decay_incr_style", .word = "constant"},
    {"precision", "fp32", .text = "True", IF(is_f32)},
    {"precision", "fp16", .text = "True", IF(is_f16)},
    {"precision", "bf16", .text = "True", IF(is_bf16)},
    {"precision", "params_dtype", .put = put_dtype},
    {"precision", "pipeline_dtype", .put = put_dtype},
    {"precision", "grad_reduce_in_fp32", .put = put_summed_f32},
    {"precision", "fp8", .word = "hybrid", IF(is_fp8)},
    {"precision", "fp8_recipe", OF(plan.execution.scaling),
     .words = fr_megatron_recipes, IF(is_fp8)},
    {"precision", "fp4", .word = "e2m1", IF(is_fp4)},
    {"precision", "fp4_recipe", .word = "nvfp4", IF(is_fp4)},
};

static const fr_framework_keys bridge_keys = {rows, FR_LENGTH(rows)};

/* Rows of a table of this file, or of Megatron-LM's arguments. */
static void put_own(const char *table, const fr_plan_file *file, fr_buffer *out)
{
    fr_framework_keys_put(bridge_keys, table, 0, &fr_key_style_python, file,
                          out);
}

static void put_shared(const char *table, const fr_plan_file *file,
                       fr_buffer *out)
{
    fr_framework_keys_put(fr_megatron_keys, table, CORE, &fr_key_style_python,
                          file, out);
}

static void put_experts(const fr_plan_file *file, fr_buffer *out)
{
    put_shared("router", file, out);
    put_own("router bias", file, out);
    put_shared("experts", file, out);
    put_own("expert layers", file, out);
}

static void put_model(const fr_plan_file *file, fr_buffer *out)
{
    const fr_model *model = &file->model;
    const bool has_experts = model->n_experts > 0;
    fr_buffer_printf(out, "    model = %s(\n",
                     model->kv_lora_rank > 0 ? "MLAModelProvider"
                                             : "GPTModelProvider");
    put_own("shape", file, out);
    put_shared("tokens", file, out);
    put_own("positions", file, out);
    if (model->kv_lora_rank > 0) {
        put_shared("latent", file, out);
        put_own("latent rope", file, out);
    }
    if (has_experts) {
        fr_buffer_printf(out, "        num_moe_experts=%lld,\n",
                         (long long)model->n_experts);
        put_experts(file, out);
    }
    put_own("dropout", file, out);
    put_own("parallel", file, out);
    if (has_experts)
        put_own("expert parallel", file, out);
    put_own("memory", file, out);
    put_shared("recompute", file, out);
    put_own("kernels", file, out);
    fr_buffer_puts(out, "    )\n    ddp = DistributedDataParallelConfig(\n");
    put_own("ddp", file, out);
    fr_buffer_puts(out, "    )\n");
}

static void put_optimizer(const fr_plan_file *file, fr_buffer *out)
{
    const char *const moments = fr_megatron_moments(&file->job);
    fr_buffer_printf(out,
                     "    optimizer = OptimizerConfig(\n"
                     "        optimizer=\"%s\",\n",
                     moments);
    put_shared("rates", file, out);
    put_own("optimizer", file, out);
    put_shared(moments, file, out);
    put_own("clipping", file, out);
    put_shared("offload", file, out);
    fr_buffer_puts(out, "    )\n    scheduler = SchedulerConfig(\n");
    put_shared("schedule", file, out);
    put_own("decay", file, out);
    fr_buffer_puts(out, "    )\n    precision = MixedPrecisionConfig(\n");
    put_own("precision", file, out);
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
    fr_buffer_printf(out,
                     "            seq_length=%lld,\n"
                     "            random_seed=%llu,\n"
                     "            reset_position_ids=False,\n"
                     "            reset_attention_mask=False,\n"
                     "            eod_mask_loss=False,\n        ),\n"
                     "        tokenizer=TokenizerConfig(\n"
                     "            tokenizer_type=\"NullTokenizer\", "
                     "vocab_size=%lld\n        ),\n",
                     (long long)job->seq, (unsigned long long)job->seed,
                     (long long)request->file->model.vocab);
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
    put_optimizer(plan, text);
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
