/*
 * config_nanotron.c: the YAML that nanotron is started with
 * (huggingface/nanotron at 2411b022, src/nanotron/config: config.py,
 * parallelism_config.py, models_config.py).
 */
#include "frameworks/framework_list.h"
#include "frameworks/framework_plan.h"
#include "frameworks/read/config_parts.h"
#include "frameworks/read/settings.h"
#include "frameworks/read/yaml_marks.h"

#include <stdio.h>
#include <string.h>

typedef fr_settings_reader reader;

/* ---- keys ---------------------------------------------------------------- */

#define OF(member) FR_KEY_MEMBER(member)

static const fr_key_word engines[] = {
    {FR_SCHEDULE_1F1B, "1f1b"}, {FR_SCHEDULE_GPIPE, "afab"}, {0}};
static const fr_key_word modes[] = {{true, "REDUCE_SCATTER"},
                                    {true, "reduce_scatter"},
                                    {false, "ALL_REDUCE"},
                                    {false, "all_reduce"},
                                    {0}};
static const fr_key_word dtypes[] = {{FR_DTYPE_BF16, "bfloat16"},
                                     {FR_DTYPE_F16, "float16"},
                                     {FR_DTYPE_F32, "float32"},
                                     {FR_DTYPE_BF16, "torch.bfloat16"},
                                     {0}};
static const fr_key_word optimizers[] = {
    {FR_OPTIMIZER_ADAMW, "adamW"}, {FR_OPTIMIZER_SGD, "sgd"}, {0}};
static const fr_key_word schedules[] = {{FR_LR_COSINE, "cosine"},
                                        {FR_LR_LINEAR, "linear"},
                                        {FR_LR_INVERSE_SQRT, "1-sqrt"},
                                        {0}};

#define MODEL "model.model_config."
#define EXPERTS MODEL "moe_config."
#define PARALLEL "parallelism."
#define RATES "optimizer.learning_rate_scheduler."
#define FACTORY "optimizer.optimizer_factory."

static const fr_framework_key rows[] = {
    {MODEL, "num_hidden_layers", OF(model.n_layers), .least = 1},
    {MODEL, "hidden_size", OF(model.hidden), .least = 1},
    {MODEL, "intermediate_size", OF(model.ffn_hidden), .least = 1},
    {MODEL, "num_attention_heads", OF(model.n_heads), .least = 1},
    {MODEL, "num_key_value_heads", OF(model.n_kv_heads), .least = 1},
    {MODEL, "num_kv_heads", OF(model.n_kv_heads), .least = 1},
    {MODEL, "max_position_embeddings", OF(model.max_seq), .least = 1},
    {MODEL, "vocab_size", OF(model.vocab), .least = 1},
    {MODEL, "rms_norm_eps", OF(model.norm_eps)},
    {MODEL, "layer_norm_epsilon", OF(model.norm_eps)},
    {MODEL, "rope_theta", OF(model.rope_theta)},
    {MODEL, "tie_word_embeddings", OF(model.is_tied)},
    {MODEL, "attention_bias", OF(model.has_qkv_bias)},
    {MODEL, "sliding_window_size", OF(model.sliding_window), .least = 1},
    {MODEL, "z_loss_enabled", .why = "the loss has no such term"},
    {MODEL, "_use_doc_masking",
     .why = "attention is taken over whole sequences"},
    {MODEL, "no_rope_layer", .why = "all layers are taken to turn positions"},
    {EXPERTS, "num_experts", OF(model.n_experts), .least = 1},
    {EXPERTS, "top_k", OF(model.n_experts_per_token), .least = 1},
    {EXPERTS, "moe_intermediate_size", OF(model.expert_ffn_hidden), .least = 1},
    {EXPERTS, "router_aux_loss_coef", OF(model.router_aux_coef)},

    {PARALLEL, "tp", OF(plan.tp), .least = 1},
    {PARALLEL, "pp", OF(plan.pp), .least = 1},
    {PARALLEL, "context_parallel_size", OF(plan.cp), .least = 1},
    {PARALLEL, "expert_parallel_size", OF(plan.ep), .least = 1},
    {PARALLEL, "pp_engine", OF(plan.schedule), .words = engines,
     .mend = "a plan has 1f1b and afab of nanotron; take one of them"},
    {PARALLEL, "tp_mode", OF(plan.is_sequence_parallel), .words = modes,
     .mend = "give ALL_REDUCE or REDUCE_SCATTER"},
    {PARALLEL, "tp_linear_async_communication",
     .why = "a gather overlaps with the product of a rank's own part alone; "
            "predicted without"},
    {PARALLEL, "tp_recompute_allgather",
     .why = "gathered inputs are taken to "
            "be kept"},
    {"model.", "dtype", OF(plan.precision), .words = dtypes,
     .mend = "give bfloat16, float16 or float32"},
    {"tokens.", "micro_batch_size", OF(plan.micro_batch), .least = 1},
    {"tokens.", "sequence_length", OF(job.seq), .least = 1},
    {"tokens.", "train_steps", OF(job.n_steps), .least = 1},
    {"general.", "seed", OF(job.seed)},
    {"optimizer.", "zero_stage", OF(plan.zero_stage)},
    {"optimizer.", "weight_decay", OF(job.weight_decay)},
    {"optimizer.", "clip_grad", OF(job.clip_norm)},
    {FACTORY, "name", OF(job.optimizer), .words = optimizers,
     .mend = "adamW and sgd are known"},
    {FACTORY, "adam_beta1", OF(job.beta1)},
    {FACTORY, "adam_beta2", OF(job.beta2)},
    {FACTORY, "adam_eps", OF(job.optimizer_eps)},
    {RATES, "learning_rate", OF(job.lr)},
    {RATES, "lr_warmup_steps", OF(job.warmup_steps)},
    {RATES, "lr_decay_style", OF(job.lr_schedule), .words = schedules},
};

static const fr_framework_keys keys = {rows, FR_LENGTH(rows)};

/* The tables are called by what stands before their names. */
static fr_status read_table(reader *r, const char *table)
{
    return fr_settings_read_rows(&r->settings, keys, table, table,
                                 &r->out->file, &r->out->notes, r->err);
}

/* ---- the model ----------------------------------------------------------- */

static fr_status refuse_path(reader *r, const char *path, const char *why)
{
    const fr_setting *setting = fr_settings_first_below(&r->settings, path);
    return setting != NULL && !fr_setting_is_off(setting)
               ? fr_setting_refuse(setting, why, r->err)
               : FR_OK;
}

static fr_status check_kind(reader *r)
{
    static const char *const others[][2] = {
        {MODEL "is_mamba_config", "layers of state-space models are not read"},
        {MODEL "is_llamoe_config", "experts of llamoe are not modelled; "
                                   "moe_config of qwen2 is read"},
        {"doremi.", "DoReMi trains beside a second model, which is not "
                    "modelled"},
        {MODEL "global_attn_layers", "windows in some layers are not read"},
    };
    for (size_t i = 0; i < FR_LENGTH(others); i++)
        FR_TRY(refuse_path(r, others[i][0], others[i][1]));
    return FR_OK;
}

/* Starcoder 2 has layer norms, biases and two matrices; the others are as in
 * Llama. */
static fr_status read_starcoder(reader *r, bool *is_it)
{
    fr_model *model = &r->out->file.model;
    bool is_grouped = false, is_multi = false;
    FR_TRY(fr_settings_bool(&r->settings, MODEL "is_starcoder2_config", is_it,
                            r->err));
    if (!*is_it)
        return FR_OK;
    FR_TRY(fr_settings_bool(&r->settings, MODEL "grouped_query", &is_grouped,
                            r->err));
    FR_TRY(
        fr_settings_bool(&r->settings, MODEL "multi_query", &is_multi, r->err));
    model->is_gated_mlp = model->is_rms_norm = false;
    model->activation = FR_ACTIVATION_GELU_TANH;
    model->has_qkv_bias = model->has_out_bias = model->has_mlp_bias = true;
    model->is_tied = true;
    if (is_multi)
        model->n_kv_heads = 1;
    else if (!is_grouped)
        model->n_kv_heads = model->n_heads;
    if (model->ffn_hidden == 0)
        model->ffn_hidden = 4 * model->hidden;
    return FR_OK;
}

static fr_status read_experts(reader *r)
{
    fr_model *model = &r->out->file.model;
    bool is_shared = false;
    if (fr_settings_first_below(&r->settings, EXPERTS) == NULL)
        return FR_OK;
    model->n_experts = 8; /* MoEConfig's own values */
    model->n_experts_per_token = 2;
    model->expert_ffn_hidden = 1408;
    model->moe_every = 1;
    int64_t shared = 5632;
    FR_TRY(read_table(r, EXPERTS));
    FR_TRY(fr_settings_i64(&r->settings,
                           EXPERTS "shared_expert_intermediate_size", 1,
                           &shared, r->err));
    FR_TRY(fr_settings_bool(&r->settings, EXPERTS "enable_shared_expert",
                            &is_shared, r->err));
    if (is_shared)
        model->shared_expert_ffn_hidden = shared;
    const fr_setting *layers = fr_settings_find(&r->settings, EXPERTS "layers");
    if (layers != NULL && layers->list != NULL) {
        int64_t first = -1;
        if (fr_json_n(layers->list) == 1)
            FR_TRY(fr_json_as_i64(fr_json_at(layers->list, 0), &first, r->err));
        if (fr_json_n(layers->list) != 1 || first != -1)
            return fr_setting_refuse(
                layers, "experts are read in all layers, [-1]", r->err);
    }
    (void)fr_settings_find(&r->settings, EXPERTS "token_dispatcher_type");
    return FR_OK;
}

static fr_status read_shape(reader *r)
{
    fr_model *model = &r->out->file.model;
    bool is_starcoder = false;
    const char *activation = "silu";
    fr_model_init(model);
    snprintf(model->name, sizeof model->name, "nanotron");
    model->is_gated_mlp = model->is_rms_norm = model->is_rope = true;
    model->activation = FR_ACTIVATION_SILU;
    model->norm_eps = 1e-6;
    model->vocab = 32000;
    FR_TRY(read_table(r, MODEL));
    if (model->n_layers > 1 << 20 || model->hidden > 1 << 24 ||
        model->n_heads == 0)
        return fr_fail(r->err, FR_INPUT,
                       "%s:1: no " MODEL "num_attention_heads, or a model too "
                       "large to be meant; name the model with --model",
                       r->request->path);
    FR_TRY(read_starcoder(r, &is_starcoder));
    if (model->n_kv_heads == 0)
        model->n_kv_heads = model->n_heads;
    model->head_dim = model->hidden / model->n_heads;
    FR_TRY(fr_settings_word(&r->settings, MODEL "hidden_act", &activation,
                            r->err));
    if (!is_starcoder && strcmp(activation, "silu") != 0)
        return fr_setting_refuse(
            fr_settings_peek(&r->settings, MODEL "hidden_act"),
            "silu is read; name the model with --model", r->err);
    return read_experts(r);
}

static fr_status read_model(reader *r)
{
    fr_model *model = &r->out->file.model;
    fr_err why;
    if (r->request->model != NULL) {
        fr_settings_skip(&r->settings, MODEL);
        return fr_model_copy(r->request->model, model, r->err);
    }
    if (fr_settings_peek(&r->settings, MODEL "num_hidden_layers") == NULL)
        return fr_config_take_model(r->request, NULL, NULL, r->out, r->err);
    FR_TRY(read_shape(r));
    const fr_status status = fr_model_check(model, &why);
    return status == FR_OK ? FR_OK
                           : fr_fail(r->err, status, "%s:1: the model: %.400s",
                                     r->request->path, why.text);
}

/* ---- the plan ------------------------------------------------------------ */

static fr_status read_degrees(reader *r)
{
    fr_plan *plan = &r->out->file.plan;
    int64_t dp = 0;
    plan->schedule = FR_SCHEDULE_GPIPE; /* afab where nothing is said */
    FR_TRY(read_table(r, PARALLEL));
    FR_TRY(fr_settings_i64(&r->settings, PARALLEL "dp", 1, &dp, r->err));
    plan->is_sequence_parallel = plan->is_sequence_parallel && plan->tp > 1;
    if (plan->pp == 1)
        plan->schedule = FR_SCHEDULE_1F1B;
    plan->cp_kind = FR_CP_ALL_GATHER; /* llama3_ring_attention */
    if (dp > 1 << 20)
        return fr_setting_refuse(fr_settings_peek(&r->settings, PARALLEL "dp"),
                                 "give at most 1048576", r->err);
    return fr_config_take_dp(
        r->request,
        r->request->world > 0 ? 0 : dp * fr_config_other_ranks(plan), r->out,
        r->err);
}

static fr_status read_batch(reader *r)
{
    fr_plan *plan = &r->out->file.plan;
    int64_t n = 1;
    if (fr_settings_peek(&r->settings, "tokens.micro_batch_size") == NULL)
        return fr_fail(r->err, FR_INPUT, "%s:1: no tokens.micro_batch_size",
                       r->request->path);
    FR_TRY(read_table(r, "tokens."));
    FR_TRY(fr_settings_i64(
        &r->settings, "tokens.batch_accumulation_per_replica", 1, &n, r->err));
    if (plan->micro_batch > 1 << 24 || n > 1 << 24)
        return fr_fail(r->err, FR_INPUT, "%s:1: give smaller batches",
                       r->request->path);
    r->out->file.job.global_batch = plan->micro_batch * n * plan->dp;
    if (fr_settings_peek(&r->settings, "tokens.sequence_length") == NULL)
        fr_config_take_seq(r->request, r->out);
    return FR_OK;
}

static fr_status read_sharding(reader *r)
{
    fr_plan *plan = &r->out->file.plan;
    bool is_f32 = false, is_again = false;
    int64_t bucket = 25;
    FR_TRY(read_table(r, "optimizer."));
    if (plan->zero_stage < 0 || plan->zero_stage > 1)
        return fr_setting_refuse(
            fr_settings_peek(&r->settings, "optimizer.zero_stage"),
            "nanotron has 0 and 1", r->err);
    if ((int64_t)plan->dp * plan->cp == 1)
        plan->zero_stage = 0;
    FR_TRY(fr_settings_bool(&r->settings, "optimizer.accumulate_grad_in_fp32",
                            &is_f32, r->err));
    plan->grad_dtype = is_f32 ? FR_DTYPE_F32 : plan->precision;
    FR_TRY(fr_settings_i64(&r->settings, "model.ddp_bucket_cap_mb", 1, &bucket,
                           r->err));
    plan->bucket_bytes = (uint64_t)(bucket < 1 << 20 ? bucket : 1 << 20) << 20;
    FR_TRY(fr_settings_bool(&r->settings, PARALLEL "recompute_layer", &is_again,
                            r->err));
    plan->recompute = is_again ? FR_RECOMPUTE_FULL : FR_RECOMPUTE_NONE;
    plan->is_overlap = true;         /* DDP's hooks */
    plan->is_gather_overlap = false; /* optim/zero.py, after the step */
    return FR_OK;
}

static fr_status read_attention(reader *r)
{
    fr_plan *plan = &r->out->file.plan;
    const char *word = "flash_attention_2";
    fr_framework_run_plan(r->out->framework, 0, plan);
    FR_TRY(fr_settings_word(&r->settings, MODEL "_attn_implementation", &word,
                            r->err));
    plan->is_flash = true;
    if (strcmp(word, "sdpa") == 0)
        plan->execution.flash_kind = FR_FLASH_NATIVE;
    r->out->said |= FR_EXECUTION_BIT(FLASH_KIND);
    return FR_OK;
}

static fr_status read_rates(reader *r)
{
    fr_job *job = &r->out->file.job;
    double least = 0;
    FR_TRY(read_table(r, "general."));
    FR_TRY(read_table(r, FACTORY));
    FR_TRY(read_table(r, RATES));
    FR_TRY(
        fr_settings_real(&r->settings, RATES "min_decay_lr", &least, r->err));
    if (job->lr > 0 && least <= job->lr)
        job->lr_min_frac = least / job->lr;
    return FR_OK;
}

/* ---- the file ------------------------------------------------------------ */

static bool is_plain(const char *path)
{
    static const char *const names[] = {"checkpoints.",
                                        "data_stages",
                                        "general.",
                                        "lighteval",
                                        "logging.",
                                        "metrics_logging.",
                                        "profiler.",
                                        "s3_upload.",
                                        "tokenizer.",
                                        RATES,
                                        "tokens.",
                                        FACTORY,
                                        "model.init_method.",
                                        "make_vocab",
                                        "bos_token",
                                        "eos_token",
                                        "pad_token",
                                        "initializer_range",
                                        "pretraining_tp",
                                        "use_cache",
                                        "is_",
                                        "_fused",
                                        "_use_qkv",
                                        "rope_interleaved",
                                        "z_loss",
                                        "attn_pdrop",
                                        "embd_pdrop",
                                        "resid_pdrop",
                                        "activation_function",
                                        "scale_attn",
                                        "use_rotary",
                                        "use_position",
                                        "log_attn"};
    return fr_setting_begins(path, names, FR_LENGTH(names));
}

static fr_status read_root(reader *r)
{
    FR_TRY(fr_settings_read(r->request, &r->settings, r->err));
    FR_TRY(check_kind(r));
    FR_TRY(read_model(r));
    FR_TRY(read_degrees(r));
    r->out->file.plan.precision = FR_DTYPE_F32;
    FR_TRY(read_table(r, "model."));
    FR_TRY(read_batch(r));
    FR_TRY(read_sharding(r));
    FR_TRY(read_attention(r));
    FR_TRY(read_rates(r));
    fr_settings_note_rest(&r->settings, is_plain, &r->out->notes);
    return FR_OK;
}

static bool looks_like(const char *text, size_t n)
{
    (void)n;
    return fr_yaml_find_mark(text, "parallelism:") > 0 &&
           fr_yaml_find_mark(text, "tokens:") > 0;
}

static fr_status read_config(const fr_config_request *request, fr_config *out,
                             fr_err *err)
{
    return fr_settings_read_config(request, read_root, out, err);
}

const fr_config_format fr_config_nanotron = {
    .summary = "the YAML of nanotron",
    .looks_like = looks_like,
    .read = read_config,
};
