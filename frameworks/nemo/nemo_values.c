/* nemo_values.c: see nemo_reader.h. */
#include "core/base/text.h"
#include "frameworks/nemo/nemo_reader.h"

#include <stdio.h>
#include <string.h>

fr_status fr_nemo_read_config(const fr_config_request *request,
                              fr_status (*body)(fr_nemo_reader *),
                              fr_config *out, fr_err *err)
{
    fr_nemo_reader r = {.request = request, .out = out, .err = err};
    fr_settings_init(&r.settings, request->path);
    fr_status status = fr_settings_read(request, &r.settings, err);
    if (status == FR_OK)
        status = body(&r);
    fr_megatron_flags_release(&r.flags);
    fr_settings_release(&r.settings);
    return status;
}

fr_status fr_nemo_put_switch(fr_nemo_reader *r, const char *path,
                             const char *flag)
{
    bool is_on = false;
    const fr_setting *setting = fr_settings_find(&r->settings, path);
    FR_TRY(fr_settings_bool(&r->settings, path, &is_on, r->err));
    return is_on ? fr_megatron_put_flag(&r->flags, setting, flag, NULL, r->err)
                 : FR_OK;
}

fr_status fr_nemo_read_world(fr_nemo_reader *r)
{
    int64_t n_devices = 0, n_nodes = 1;
    const fr_setting *devices =
        fr_settings_find(&r->settings, "trainer.devices");
    if (devices == NULL || devices->list != NULL ||
        strcmp(devices->text, "auto") == 0 || strcmp(devices->text, "-1") == 0)
        return FR_OK;
    FR_TRY(fr_settings_i64(&r->settings, "trainer.devices", 1, &n_devices,
                           r->err));
    FR_TRY(fr_settings_i64(&r->settings, "trainer.num_nodes", 1, &n_nodes,
                           r->err));
    if (n_devices > 1 << 20 || n_nodes > 1 << 20)
        return fr_setting_refuse(devices, "give at most 1048576", r->err);
    r->source.world = n_devices * n_nodes;
    return FR_OK;
}

fr_status fr_nemo_put_betas(fr_nemo_reader *r, const char *path)
{
    static const char *const flags[] = {"adam-beta1", "adam-beta2"};
    const fr_setting *betas = fr_settings_find(&r->settings, path);
    if (betas == NULL)
        return FR_OK;
    if (betas->list == NULL || fr_json_n(betas->list) != 2)
        return fr_setting_refuse(betas, "give two numbers", r->err);
    for (size_t i = 0; i < FR_LENGTH(flags); i++) {
        char text[32];
        double beta;
        FR_TRY(fr_json_as_double(fr_json_at(betas->list, i), &beta, r->err));
        snprintf(text, sizeof text, "%.15g", beta);
        FR_TRY(fr_megatron_put_flag(&r->flags, betas, flags[i], text, r->err));
    }
    return FR_OK;
}

fr_status fr_nemo_put_precision(fr_nemo_reader *r, const char *path)
{
    static const char *const bf16[] = {"bf16", "bf16-mixed", "bf16_mixed",
                                       "bf16-true"};
    static const char *const f16[] = {"16", "16-mixed", "fp16", "16-true"};
    static const char *const f32[] = {"32", "32-true", "fp32"};
    const char *text = NULL;
    const fr_setting *setting = fr_settings_find(&r->settings, path);
    FR_TRY(fr_settings_word(&r->settings, path, &text, r->err));
    if (text == NULL || fr_text_find(text, f32, FR_LENGTH(f32)) >= 0)
        return FR_OK;
    const bool is_bf16 = fr_text_find(text, bf16, FR_LENGTH(bf16)) >= 0;
    if (!is_bf16 && fr_text_find(text, f16, FR_LENGTH(f16)) < 0)
        return fr_setting_refuse(
            setting, "give bf16-mixed, 16-mixed, 32, or one of their like",
            r->err);
    return fr_megatron_put_flag(&r->flags, setting, is_bf16 ? "bf16" : "fp16",
                                NULL, r->err);
}

const char *fr_nemo_class(const char *target)
{
    const char *last = strrchr(target, '.');
    return last != NULL ? last + 1 : target;
}

/* Classes of NeMo (collections/llm/gpt/model, 8cfedd72) and of Megatron-Bridge
 * (models, v0.2), whose sizes are those of the catalog. */
const char *fr_nemo_known_model(const char *target)
{
    static const struct {
        const char *name, *model;
    } known[] = {
        {"Llama3Config8B", "llama-3-8b"},
        {"Llama31Config8B", "llama-3-8b"},
        {"Llama3ModelProvider8B", "llama-3-8b"},
        {"Llama31ModelProvider8B", "llama-3-8b"},
        {"Llama3Config70B", "llama-3-70b"},
        {"Llama31Config70B", "llama-3-70b"},
        {"Llama3ModelProvider70B", "llama-3-70b"},
        {"Llama31ModelProvider70B", "llama-3-70b"},
        {"Llama31Config405B", "llama-3-405b"},
        {"Llama31ModelProvider405B", "llama-3-405b"},
        {"MixtralConfig8x7B", "mixtral-8x7b"},
        {"MixtralModelProvider8x7B", "mixtral-8x7b"},
        {"MixtralConfig8x22B", "mixtral-8x22b"},
        {"MixtralModelProvider8x22B", "mixtral-8x22b"},
        {"DeepSeekV3Config", "deepseek-v3"},
        {"DeepSeekV3ModelProvider", "deepseek-v3"},
        {"GPTConfig175B", "gpt3-175b"},
        {"GPTProvider175B", "gpt3-175b"},
    };
    const char *name = fr_nemo_class(target);
    for (size_t i = 0; i < FR_LENGTH(known); i++)
        if (strcmp(known[i].name, name) == 0)
            return known[i].model;
    return NULL;
}

/* Beginnings of names that no prediction depends on. */
static const char *const beginnings[] = {"exp_manager.",
                                         "run.",
                                         "hydra.",
                                         "defaults",
                                         "name",
                                         "s3_checkpointing.",
                                         "trainer.",
                                         "model.nsys_profile.",
                                         "model.data.",
                                         "model.tokenizer.",
                                         "model.megatron_timer_kwargs.",
                                         "model.generation_config.",
                                         "model.init_method",
                                         "model.output_layer_init_method",
                                         "model.embedding_init_method",
                                         "model.optim.sched.",
                                         "log.",
                                         "resume.",
                                         "checkpoint.",
                                         "logger.",
                                         "ft.",
                                         "nvrx_straggler.",
                                         "inprocess_restart.",
                                         "profiling.",
                                         "tokenizer.",
                                         "validation.",
                                         "dataset.",
                                         "data.",
                                         "dist.",
                                         "rng.",
                                         "straggler.",
                                         "rerun_state_machine.",
                                         "_",
                                         "init_method",
                                         "use_scaled_init",
                                         "native_amp",
                                         "hysteresis",
                                         "apex_transformer",
                                         "gc_interval",
                                         "persist_layer_norm",
                                         "pre_process",
                                         "post_process",
                                         "mcore_",
                                         "dist_ckpt",
                                         "make_vocab",
                                         "fp8_margin",
                                         "fp8_interval",
                                         "fp8_amax",
                                         "fp8_wgrad",
                                         "fp8_e4m3",
                                         "fp8_hybrid",
                                         "reduce_amax",
                                         "gradient_as_bucket",
                                         "grad_div_ar",
                                         "grad_allreduce_chunk",
                                         "get_attention_mask",
                                         "transformer_block_type",
                                         "attention_type",
                                         "normalize_attention_scores",
                                         "bias_activation_fusion",
                                         "bias_dropout",
                                         "bias_gelu",
                                         "masked_softmax",
                                         "apply_rope_fusion",
                                         "apply_query_key",
                                         "scale_positional",
                                         "batch_p2p",
                                         "overlap_p2p",
                                         "cuda_graph_warmup",
                                         "finalize_model_grads",
                                         "grad_scale_func",
                                         "grad_sync_func",
                                         "no_sync_func",
                                         "param_sync_func",
                                         "timers",
                                         "tp_comm_bulk",
                                         "tp_comm_split",
                                         "tp_comm_overlap_ag",
                                         "tp_comm_overlap_rs",
                                         "tp_comm_bootstrap",
                                         "contiguous_",
                                         "loss_scale",
                                         "min_loss_scale",
                                         "initial_loss_scale",
                                         "log_",
                                         "autocast",
                                         "params_dtype",
                                         "pipeline_dtype",
                                         "deallocate_pipeline",
                                         "clone_scatter",
                                         "scatter_embedding",
                                         "parallel_output",
                                         "barrier_with",
                                         "transformer_impl",
                                         "mamba_",
                                         "use_mamba",
                                         "moe_router_bias_update",
                                         "moe_z_loss",
                                         "old_context_len",
                                         "high_freq",
                                         "low_freq",
                                         "is_hybrid_model",
                                         "gradient_reduce_div",
                                         "check_for_nan",
                                         "preserve_fp32",
                                         "average_in_collective",
                                         "decoupled_weight_decay",
                                         "test_mode",
                                         "inference_",
                                         "mlp_chunks_for_prefill",
                                         "softmax_type",
                                         "microbatch_group_size",
                                         "moe_deepep_num_sms",
                                         "cpu_offloading_activations",
                                         "cpu_offloading_weights",
                                         "scheduler.",
                                         "train.eval",
                                         "pin_cpu_",
                                         "sgd_momentum",
                                         "store_param",
                                         "scale_factor"};

bool fr_nemo_is_plain(const char *path)
{
    return fr_setting_begins(path, beginnings, FR_LENGTH(beginnings)) ||
           fr_megatron_is_plain_setting(path);
}
