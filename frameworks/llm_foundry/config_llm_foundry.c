/*
 * config_llm_foundry.c: the YAML that LLM Foundry's train.py is started with
 * (mosaicml/llm-foundry at 8c8dd48f, scripts/train/yamls; the model's keys:
 * llmfoundry/models/mpt/configuration_mpt.py; sharding and precision are those
 * of Composer: composer/distributed/mosaic_fsdp, core/precision.py).
 */
#include "core/base/text.h"
#include "frameworks/framework_list.h"
#include "frameworks/framework_plan.h"
#include "frameworks/read/config_parts.h"
#include "frameworks/read/settings.h"
#include "frameworks/read/yaml_marks.h"
#include "spec/model/model_traits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef fr_settings_reader reader;

/* ---- keys ---------------------------------------------------------------- */

#define OF(member) FR_KEY_MEMBER(member)
#define OFF                                                                    \
    .is_switch = true /* a switch, whose member is false where it is on */

static const fr_key_word strategies[] = {
    {3, "FULL_SHARD"}, {2, "SHARD_GRAD_OP"}, {0, "NO_SHARD"}, {0}};
static const fr_key_word precisions[] = {
    {FR_DTYPE_BF16, "amp_bf16"}, {FR_DTYPE_F16, "amp_fp16"},
    {FR_DTYPE_F32, "fp32"},      {FR_DTYPE_FP8, "amp_fp8"},
    {FR_DTYPE_BF16, "bf16"},     {0}};
static const fr_key_word schedules[] = {
    {FR_LR_COSINE, "cosine_with_warmup"},
    {FR_LR_LINEAR, "linear_decay_with_warmup"},
    {FR_LR_CONSTANT, "constant_with_warmup"},
    {FR_LR_INVERSE_SQRT, "inv_sqrt_with_warmup"},
    {0}};
static const fr_key_word optimizers[] = {
    {FR_OPTIMIZER_ADAMW, "decoupled_adamw"},
    {FR_OPTIMIZER_ADAMW, "adamw"},
    {FR_OPTIMIZER_ADAMW, "adam"},
    {FR_OPTIMIZER_SGD, "sgd"},
    {0}};

#define FSDP "fsdp_config."
#define ATTENTION "model.attn_config."
#define EXPERTS "model.ffn_config."
#define CLIPPING "algorithms.gradient_clipping."

static const fr_framework_key rows[] = {
    {"model.", "n_layers", OF(model.n_layers), .least = 1},
    {"model.", "d_model", OF(model.hidden), .least = 1},
    {"model.", "n_heads", OF(model.n_heads), .least = 1},
    {"model.", "head_dim", OF(model.head_dim), .least = 1},
    {"model.", "vocab_size", OF(model.vocab), .least = 1},
    {"model.", "max_seq_len", OF(model.max_seq), .least = 1},
    {"model.", "norm_eps", OF(model.norm_eps)},
    {"model.", "no_bias", OF(model.has_mlp_bias), OFF},
    {"model.", "tie_word_embeddings", OF(model.is_tied)},
    {"model.", "resid_pdrop", OF(job.dropout)},
    {ATTENTION, "kv_n_heads", OF(model.n_kv_heads), .least = 1},
    {ATTENTION, "rope", OF(model.is_rope)},
    {ATTENTION, "rope_theta", OF(model.rope_theta)},
    {ATTENTION, "attn_uses_sequence_id",
     .why = "attention is taken over whole sequences"},
    {ATTENTION, "qk_ln", .why = "no norm of queries and keys is taken"},
    {EXPERTS, "moe_num_experts", OF(model.n_experts), .least = 1},
    {EXPERTS, "moe_top_k", OF(model.n_experts_per_token), .least = 1},
    {EXPERTS, "moe_world_size", OF(plan.ep), .least = 1},
    {EXPERTS, "moe_loss_weight", OF(model.router_aux_coef)},

    {"", "max_seq_len", OF(job.seq), .least = 1},
    {"", "global_train_batch_size", OF(job.global_batch), .least = 1},
    {"", "seed", OF(job.seed)},
    {"", "precision", OF(plan.precision), .words = precisions,
     .mend = "give amp_bf16, amp_fp16, amp_fp8 or fp32"},
    {FSDP, "sharding_strategy", OF(plan.zero_stage), .words = strategies,
     .mend = "a plan has FULL_SHARD, SHARD_GRAD_OP and NO_SHARD"},
    {"optimizer.", "name", OF(job.optimizer), .words = optimizers,
     .mend = "decoupled_adamw, adamw and sgd are known"},
    {"optimizer.", "lr", OF(job.lr)},
    {"optimizer.", "eps", OF(job.optimizer_eps)},
    {"optimizer.", "weight_decay", OF(job.weight_decay)},
    {"scheduler.", "name", OF(job.lr_schedule), .words = schedules},
    {"scheduler.", "alpha_f", OF(job.lr_min_frac)},
    {CLIPPING, "clipping_threshold", OF(job.clip_norm)},
};

static const fr_framework_keys keys = {rows, FR_LENGTH(rows)};

static fr_status read_table(reader *r, const char *table)
{
    return fr_settings_read_rows(&r->settings, keys, table, table,
                                 &r->out->file, &r->out->notes, r->err);
}

/* ---- the model ----------------------------------------------------------- */

/* Refuses training that is not of all weights on all tokens. */
static fr_status check_kind(reader *r)
{
    static const char *const others[][2] = {
        {"model.peft_config.", "training of adapters is not modelled"},
        {"model.lora", "training of adapters is not modelled"},
        {"lora.", "training of adapters is not modelled"},
        {"model.block_overrides", "layers that differ are not read"},
        {"tp_config.", "Composer's tensor parallelism is not read"},
        {FSDP "cpu_offload", "no plan has parameters on the host"},
        {ATTENTION "qk_gn", "such norms are not modelled"},
    };
    for (size_t i = 0; i < FR_LENGTH(others); i++) {
        const fr_setting *setting =
            fr_settings_first_below(&r->settings, others[i][0]);
        if (setting != NULL && !fr_setting_is_off(setting))
            return fr_setting_refuse(setting, others[i][1], r->err);
    }
    return FR_OK;
}

/* Models of the Hugging Face hub that the catalog has. */
static const char *find_known(const char *name)
{
    static const char *const known[][2] = {
        {"meta-llama/Meta-Llama-3-8B", "llama-3-8b"},
        {"meta-llama/Meta-Llama-3.1-8B", "llama-3-8b"},
        {"meta-llama/Llama-3.1-8B", "llama-3-8b"},
        {"meta-llama/Meta-Llama-3-70B", "llama-3-70b"},
        {"meta-llama/Meta-Llama-3.1-70B", "llama-3-70b"},
        {"meta-llama/Llama-3.1-70B", "llama-3-70b"},
        {"mistralai/Mixtral-8x7B-v0.1", "mixtral-8x7b"},
        {"mistralai/Mixtral-8x22B-v0.1", "mixtral-8x22b"},
        {"gpt2", "gpt2-124m"},
        {"gpt2-xl", "gpt2-1.5b"},
    };
    for (size_t i = 0; i < FR_LENGTH(known); i++) {
        const size_t n = strlen(known[i][0]);
        if (strncmp(name, known[i][0], n) == 0 &&
            (name[n] == '\0' || strcmp(name + n, "-Instruct") == 0))
            return known[i][1];
    }
    return NULL;
}

static fr_status take_named(reader *r)
{
    static const char *const lengths[] = {
        "model.config_overrides.n_positions",
        "model.config_overrides.max_seq_len",
        "model.config_overrides.max_position_embeddings"};
    const char *name = NULL;
    FR_TRY(fr_settings_word(&r->settings, "model.pretrained_model_name_or_path",
                            &name, r->err));
    fr_model *model = &r->out->file.model;
    int64_t positions = 0;
    for (size_t i = 0; i < FR_LENGTH(lengths); i++)
        FR_TRY(
            fr_settings_i64(&r->settings, lengths[i], 1, &positions, r->err));
    for (size_t i = 0; i < r->settings.items.n; i++) {
        fr_setting *item = &r->settings.items.items[i];
        if (!fr_text_starts(item->path, "model."))
            continue;
        if (fr_text_starts(item->path, "model.config_overrides.") &&
            !item->is_read && r->request->model == NULL)
            fr_buffer_printf(&r->out->notes,
                             "line %d: %.80s is not read: the model is as it "
                             "is published\n",
                             fr_json_line(item->value), item->path);
        item->is_read = true;
    }
    FR_TRY(fr_config_take_model(r->request, name,
                                name != NULL ? find_known(name) : NULL, r->out,
                                r->err));
    if (positions > 0 && r->request->model == NULL)
        model->max_seq = positions;
    return FR_OK;
}

static fr_status read_attention_kind(reader *r)
{
    fr_model *model = &r->out->file.model;
    const char *kind = "multihead_attention";
    bool is_alibi = false;
    int64_t window = -1;
    double clip = 0;
    FR_TRY(read_table(r, ATTENTION));
    FR_TRY(
        fr_settings_word(&r->settings, ATTENTION "attn_type", &kind, r->err));
    FR_TRY(
        fr_settings_bool(&r->settings, ATTENTION "alibi", &is_alibi, r->err));
    FR_TRY(fr_settings_i64(&r->settings, ATTENTION "sliding_window_size", -1,
                           &window, r->err));
    FR_TRY(fr_settings_real(&r->settings, ATTENTION "clip_qkv", &clip, r->err));
    if (strcmp(kind, "multiquery_attention") == 0)
        model->n_kv_heads = 1;
    if (model->n_kv_heads == 0)
        model->n_kv_heads = model->n_heads;
    if (is_alibi)
        fr_model_set(model, FR_TRAIT_ALIBI);
    if (clip > 0)
        fr_model_set(model, FR_TRAIT_CLAMPED_QKV);
    model->sliding_window = window > 0 ? window : 0;
    return FR_OK;
}

/* The MLP is expansion_ratio times as wide; ffn_type says which it is. */
static fr_status read_mlp(reader *r)
{
    fr_model *model = &r->out->file.model;
    const char *kind = "mptmlp";
    double ratio = 4;
    FR_TRY(fr_settings_word(&r->settings, EXPERTS "ffn_type", &kind, r->err));
    FR_TRY(fr_settings_real(&r->settings, "model.expansion_ratio", &ratio,
                            r->err));
    if (!(ratio <= 1e4) || model->hidden > 1 << 24)
        return fr_fail(r->err, FR_INPUT, "%s:1: a model too large to be meant",
                       r->request->path);
    model->ffn_hidden = (int64_t)(ratio * (double)model->hidden);
    FR_TRY(fr_settings_i64(&r->settings, EXPERTS "ffn_hidden_size", 1,
                           &model->ffn_hidden, r->err));
    model->is_gated_mlp = fr_text_ends(kind, "glu");
    model->activation = FR_ACTIVATION_GELU;
    if (fr_settings_peek(&r->settings, EXPERTS "moe_num_experts") == NULL)
        return FR_OK;
    FR_TRY(read_table(r, EXPERTS));
    if (model->n_experts_per_token == 0)
        model->n_experts_per_token = 1;
    model->expert_ffn_hidden = model->ffn_hidden;
    model->moe_every = 1;
    return FR_OK;
}

static fr_status read_mpt(reader *r)
{
    fr_model *model = &r->out->file.model;
    const char *norm = "low_precision_layernorm";
    bool has_positions = true;
    fr_model_init(model);
    snprintf(model->name, sizeof model->name, "mpt");
    /* MPTConfig's own values. */
    model->n_layers = 24;
    model->hidden = model->max_seq = 2048;
    model->n_heads = 16;
    model->vocab = 50368;
    model->norm_eps = 1e-5;
    model->is_tied = model->has_mlp_bias = true;
    FR_TRY(read_table(r, "model."));
    model->has_qkv_bias = model->has_out_bias = model->has_mlp_bias;
    if (model->head_dim == 0 && model->n_heads > 0)
        model->head_dim = model->hidden / model->n_heads;
    FR_TRY(fr_settings_bool(&r->settings, "model.attention_bias",
                            &model->has_qkv_bias, r->err));
    FR_TRY(read_attention_kind(r));
    FR_TRY(read_mlp(r));
    FR_TRY(fr_settings_word(&r->settings, "model.norm_type", &norm, r->err));
    model->is_rms_norm = strstr(norm, "rmsnorm") != NULL;
    if (!model->has_mlp_bias && !model->is_rms_norm)
        fr_model_set(model, FR_TRAIT_NO_NORM_BIAS);
    FR_TRY(fr_settings_bool(&r->settings, "model.learned_pos_emb",
                            &has_positions, r->err));
    if (!has_positions && !model->is_rope &&
        !fr_model_has(model, FR_TRAIT_ALIBI))
        fr_model_set(model, FR_TRAIT_NO_POSITIONS);
    return FR_OK;
}

static fr_status read_model(reader *r)
{
    const char *kind = "mpt_causal_lm";
    fr_err why;
    FR_TRY(fr_settings_word(&r->settings, "model.name", &kind, r->err));
    if (strcmp(kind, "hf_t5") == 0)
        return fr_setting_refuse(fr_settings_peek(&r->settings, "model.name"),
                                 "models of encoder and decoder are not read",
                                 r->err);
    if (r->request->model != NULL || strcmp(kind, "mpt_causal_lm") != 0)
        return take_named(r);
    FR_TRY(read_mpt(r));
    const fr_status status = fr_model_check(&r->out->file.model, &why);
    return status == FR_OK ? FR_OK
                           : fr_fail(r->err, status, "%s:1: the model: %.400s",
                                     r->request->path, why.text);
}

/* ---- the plan ------------------------------------------------------------ */

/* Composer divides the batch over ranks, and a rank's share into micro-batches
 * (composer/trainer/trainer.py). */
static fr_status read_batch(reader *r)
{
    fr_plan *plan = &r->out->file.plan;
    fr_job *job = &r->out->file.job;
    const char *path = "device_train_microbatch_size", *word = "";
    const fr_setting *setting = fr_settings_find(&r->settings, path);
    const fr_setting *whole =
        fr_settings_peek(&r->settings, "global_train_batch_size");
    if (whole == NULL)
        return fr_fail(r->err, FR_INPUT, "%s:1: no global_train_batch_size",
                       r->request->path);
    FR_TRY(read_table(r, ""));
    FR_TRY(fr_settings_word(&r->settings, path, &word, r->err));
    const int64_t share = job->global_batch / plan->dp;
    if (share == 0 || job->global_batch % plan->dp != 0)
        return fr_setting_refuse(whole,
                                 "it does not divide by the ranks; give "
                                 "--ranks",
                                 r->err);
    plan->micro_batch = 1;
    if (setting == NULL || strcmp(word, "auto") == 0)
        fr_buffer_puts(&r->out->notes,
                       "device_train_microbatch_size auto: taken as 1; "
                       "Composer tries which fits; give --micro-batch\n");
    else
        FR_TRY(
            fr_settings_i64(&r->settings, path, 1, &plan->micro_batch, r->err));
    if (plan->micro_batch > share)
        plan->micro_batch = share;
    return FR_OK;
}

/*
 * Parameters are float32 and cast for products; with mixed_precision PURE
 * gradients are reduced in 16 bits, else in float32.  Without an fsdp_config
 * Composer takes DDP.
 */
static fr_status read_sharding(reader *r)
{
    fr_plan *plan = &r->out->file.plan;
    const char *mixed = "DEFAULT";
    bool is_again = false, is_offloaded = false;
    const bool has_fsdp = fr_settings_first_below(&r->settings, FSDP) != NULL;
    plan->zero_stage = has_fsdp ? 3 : 0;
    FR_TRY(read_table(r, FSDP));
    FR_TRY(
        fr_settings_word(&r->settings, FSDP "mixed_precision", &mixed, r->err));
    plan->grad_dtype = strcmp(mixed, "PURE") == 0 && has_fsdp
                           ? fr_plan_storage_dtype(plan)
                           : FR_DTYPE_F32;
    FR_TRY(fr_settings_bool(&r->settings, FSDP "activation_checkpointing",
                            &is_again, r->err));
    FR_TRY(fr_settings_bool(&r->settings, FSDP "activation_cpu_offload",
                            &is_offloaded, r->err));
    plan->recompute = is_again ? FR_RECOMPUTE_FULL : FR_RECOMPUTE_NONE;
    plan->activation_offload_frac = is_offloaded ? 1 : 0;
    plan->is_overlap = plan->is_gather_overlap = true;
    plan->bucket_bytes = 25 << 20; /* DDP's */
    return FR_OK;
}

static fr_status read_kernels(reader *r)
{
    fr_plan *plan = &r->out->file.plan;
    const char *word = "flash";
    fr_framework_run_plan(r->out->framework, 0, plan);
    FR_TRY(
        fr_settings_word(&r->settings, ATTENTION "attn_impl", &word, r->err));
    plan->is_flash = strcmp(word, "torch") != 0;
    return FR_OK;
}

/* "63900ba", "134e9tok", "8ep"; other durations depend on the data. */
static fr_status read_duration(reader *r, const char *path, int64_t *out)
{
    const char *text = NULL;
    char *end;
    FR_TRY(fr_settings_word(&r->settings, path, &text, r->err));
    if (text == NULL)
        return FR_OK;
    const double value = strtod(text, &end);
    const fr_job *job = &r->out->file.job;
    const double per_step = (double)job->global_batch * (double)job->seq;
    if (!(value >= 0 && value < 1e15))
        return fr_setting_refuse(fr_settings_peek(&r->settings, path),
                                 "give a duration as 100ba", r->err);
    if (strcmp(end, "ba") == 0)
        *out = (int64_t)value;
    else if (strcmp(end, "tok") == 0 && per_step > 0)
        *out = (int64_t)(value / per_step + 0.5);
    else
        fr_buffer_printf(
            &r->out->notes,
            "line %d: %s %.40s is not read: a run counts batches "
            "(ba) or tokens (tok)\n",
            fr_json_line(fr_settings_peek(&r->settings, path)->value), path,
            text);
    return FR_OK;
}

static fr_status read_rates(reader *r)
{
    fr_job *job = &r->out->file.job;
    const fr_setting *betas = fr_settings_find(&r->settings, "optimizer.betas");
    job->clip_norm = 0;
    FR_TRY(read_table(r, "optimizer."));
    FR_TRY(read_table(r, "scheduler."));
    FR_TRY(read_table(r, CLIPPING));
    (void)fr_settings_find(&r->settings, CLIPPING "clipping_type");
    FR_TRY(read_duration(r, "max_duration", &job->n_steps));
    if (job->n_steps < 1)
        job->n_steps = 1;
    FR_TRY(read_duration(r, "scheduler.t_warmup", &job->warmup_steps));
    if (betas == NULL || betas->list == NULL || fr_json_n(betas->list) != 2)
        return FR_OK;
    FR_TRY(fr_json_as_double(fr_json_at(betas->list, 0), &job->beta1, r->err));
    return fr_json_as_double(fr_json_at(betas->list, 1), &job->beta2, r->err);
}

/* ---- the file ------------------------------------------------------------ */

static bool is_plain(const char *path)
{
    static const char *const names[] = {"variables.",
                                        "run_name",
                                        "tokenizer",
                                        "train_loader.",
                                        "eval_loader",
                                        "eval_",
                                        "callbacks.",
                                        "loggers.",
                                        "console_log",
                                        "progress_bar",
                                        "log_",
                                        "device_eval",
                                        "save_",
                                        "load_",
                                        "data_",
                                        "global_seed",
                                        "icl_",
                                        "dist_timeout",
                                        "model.init",
                                        "model.loss_fn",
                                        "model.name",
                                        "max_seq_len",
                                        "python_log",
                                        "expandable",
                                        "autoresume",
                                        "only_",
                                        "image",
                                        "name",
                                        "compute.",
                                        "command",
                                        "integrations",
                                        "cluster",
                                        "gpu_",
                                        "scheduling",
                                        FSDP
                                        "activation_checkpointing_reentrant",
                                        FSDP "limit_all",
                                        FSDP "state_dict",
                                        FSDP "verbose",
                                        FSDP "sync",
                                        FSDP "backward_prefetch",
                                        FSDP "forward_prefetch",
                                        FSDP "use_orig",
                                        FSDP "load_",
                                        "attn_pdrop",
                                        "emb_pdrop",
                                        "rope_impl",
                                        "rope_dail",
                                        "rope_hf",
                                        "fused_qkv",
                                        "alibi_bias",
                                        EXPERTS,
                                        "use_cache",
                                        "fc_type",
                                        "verbose",
                                        "accumulate_train",
                                        "embedding_fraction",
                                        "logit_scale",
                                        "auto_"};
    return fr_setting_begins(path, names, FR_LENGTH(names));
}

static fr_status read_root(reader *r)
{
    FR_TRY(check_kind(r));
    FR_TRY(read_model(r));
    FR_TRY(fr_config_take_dp(r->request, 0, r->out, r->err));
    r->out->file.plan.precision = FR_DTYPE_BF16; /* amp_bf16 is Composer's */
    FR_TRY(read_batch(r));
    FR_TRY(read_sharding(r));
    FR_TRY(read_kernels(r));
    FR_TRY(read_rates(r));
    fr_settings_note_rest(&r->settings, is_plain, &r->out->notes);
    return FR_OK;
}

static bool looks_like(const char *text, size_t n)
{
    (void)n;
    return fr_yaml_find_mark(text, " device_train_microbatch_size:") > 0;
}

/* MosaicML's command line has the file below `parameters`. */
static fr_status read_file(reader *r)
{
    const fr_config_request *request = r->request;
    const fr_json_value *root;
    FR_TRY(fr_settings_parse(&r->settings, request->path, request->text,
                             request->n_text, &root, r->err));
    const fr_json_value *inner = fr_json_find(root, "parameters");
    FR_TRY(fr_settings_put(&r->settings,
                           inner != NULL && fr_json_n(inner) > 0 ? inner : root,
                           "", r->err));
    FR_TRY(fr_settings_resolve(&r->settings, r->err));
    return read_root(r);
}

static fr_status read_config(const fr_config_request *request, fr_config *out,
                             fr_err *err)
{
    return fr_settings_read_config(request, read_file, out, err);
}

const fr_config_format fr_config_llm_foundry = {
    .summary = "the YAML of LLM Foundry",
    .looks_like = looks_like,
    .read = read_config,
};
