/*
 * config_olmo_core.c: the config.json that OLMo-core saves with a run
 * (allenai/OLMo-core at fa6c5014: train/callbacks/config_saver.py; the classes
 * are those that it names under _CLASS_: nn/transformer/config.py,
 * train/train_module/transformer/config.py).  Its batches are tokens.
 */
#include "frameworks/framework_list.h"
#include "frameworks/framework_plan.h"
#include "frameworks/read/config_parts.h"
#include "frameworks/read/settings.h"
#include "spec/model/model_traits.h"

#include <stdio.h>
#include <string.h>

typedef fr_settings_reader reader;

/* ---- keys ---------------------------------------------------------------- */

#define OF(member) FR_KEY_MEMBER(member)

#define MODULE "train_module."
#define FEED "model.block.feed_forward."
#define EXPERTS "model.block.feed_forward_moe."

static const fr_key_word dtypes[] = {{FR_DTYPE_BF16, "bfloat16"},
                                     {FR_DTYPE_F16, "float16"},
                                     {FR_DTYPE_F32, "float32"},
                                     {0}};

static const fr_framework_key rows[] = {
    {"model.", "d_model", OF(model.hidden), .least = 1},
    {"model.", "n_layers", OF(model.n_layers), .least = 1},
    {"model.", "vocab_size", OF(model.vocab), .least = 1},
    {"model.", "tie_word_embeddings", OF(model.is_tied)},
    {"mixer", "n_heads", OF(model.n_heads), .least = 1},
    {"mixer", "n_kv_heads", OF(model.n_kv_heads), .least = 1},
    {"mixer", "head_dim", OF(model.head_dim), .least = 1},
    {"mixer", "bias", OF(model.has_qkv_bias)},
    {"mixer", "rope.theta", OF(model.rope_theta)},
    {FEED, "hidden_size", OF(model.ffn_hidden), .least = 1},
    {FEED, "bias", OF(model.has_mlp_bias)},
    {EXPERTS, "num_experts", OF(model.n_experts), .least = 1},
    {EXPERTS, "hidden_size", OF(model.expert_ffn_hidden), .least = 1},
    {EXPERTS, "router.top_k", OF(model.n_experts_per_token), .least = 1},
    {EXPERTS, "shared_mlp.hidden_size", OF(model.shared_expert_ffn_hidden),
     .least = 1},
    {EXPERTS, "lb_loss_weight", OF(model.router_aux_coef)},

    {MODULE, "max_sequence_length", OF(job.seq), .least = 1},
    {MODULE, "max_grad_norm", OF(job.clip_norm)},
    {MODULE, "tp_config.degree", OF(plan.tp), .least = 1},
    {MODULE, "cp_config.degree", OF(plan.cp), .least = 1},
    {MODULE, "ep_config.degree", OF(plan.ep), .least = 1},
    {MODULE, "dp_config.param_dtype", OF(plan.precision), .words = dtypes,
     .mend = "give bfloat16, float16 or float32"},
    {MODULE, "dp_config.reduce_dtype", OF(plan.grad_dtype), .words = dtypes,
     .mend = "give bfloat16, float16 or float32"},
    {MODULE, "optim.lr", OF(job.lr)},
    {MODULE, "optim.weight_decay", OF(job.weight_decay)},
    {MODULE, "optim.eps", OF(job.optimizer_eps)},
    {MODULE, "scheduler.warmup_steps", OF(job.warmup_steps)},
    {MODULE, "dp_config.prefetch_factor", .why = "one layer is gathered ahead"},
    {MODULE, "z_loss_multiplier", .why = "the loss has no such term"},
    {"", "init_seed", OF(job.seed)},
};

static const fr_framework_keys keys = {rows, FR_LENGTH(rows)};

static fr_status read_table(reader *r, const char *table, const char *before)
{
    return fr_settings_read_rows(&r->settings, keys, table, before,
                                 &r->out->file, &r->out->notes, r->err);
}

/* ---- the model ----------------------------------------------------------- */

static fr_status check_kind(reader *r)
{
    static const char *const others[][2] = {
        {"model.block_pattern", "layers that differ are not read"},
        {"model.block_overrides", "layers that differ are not read"},
        {"model.freeze_params", "training of some weights is not read"},
        {MODULE "pp_config.degree", "its pipelines are not read"},
        {"model.block.sequence_mixer.gate", "gates of attention are not read"},
    };
    for (size_t i = 0; i < FR_LENGTH(others); i++) {
        const fr_setting *setting =
            fr_settings_first_below(&r->settings, others[i][0]);
        if (setting != NULL && !fr_setting_is_off(setting))
            return fr_setting_refuse(setting, others[i][1], r->err);
    }
    return FR_OK;
}

/* A window for each layer of a pattern, -1: none; the first and last layer have
 * none unless it is said (SlidingWindowAttentionConfig). */
static fr_status read_windows(reader *r, const char *mixer)
{
    fr_model *model = &r->out->file.model;
    char path[160];
    bool is_first = true, is_last = true;
    snprintf(path, sizeof path, "%ssliding_window.pattern", mixer);
    const fr_setting *pattern = fr_settings_find(&r->settings, path);
    if (pattern == NULL || pattern->list == NULL ||
        fr_json_n(pattern->list) == 0)
        return FR_OK;
    snprintf(path, sizeof path,
             "%ssliding_window.force_full_attention_on_first_layer", mixer);
    FR_TRY(fr_settings_bool(&r->settings, path, &is_first, r->err));
    snprintf(path, sizeof path,
             "%ssliding_window.force_full_attention_on_last_layer", mixer);
    FR_TRY(fr_settings_bool(&r->settings, path, &is_last, r->err));
    if (model->n_layers > FR_MODEL_MOST_MARKS)
        return fr_setting_refuse(pattern, "too many layers with windows",
                                 r->err);
    for (int64_t i = 0; i < model->n_layers; i++) {
        const size_t at = (size_t)(i >= is_first ? i - is_first : 0);
        const fr_json_value *value =
            fr_json_at(pattern->list, at % fr_json_n(pattern->list));
        int64_t window;
        FR_TRY(fr_json_as_i64(value, &window, r->err));
        const bool is_whole = window < 1 || (is_first && i == 0) ||
                              (is_last && i + 1 == model->n_layers);
        if (!is_whole && model->sliding_window > 0 &&
            window != model->sliding_window)
            return fr_setting_refuse(pattern, "windows of one size are read",
                                     r->err);
        if (!is_whole)
            model->sliding_window = window;
        model->mixers[i] = is_whole ? 'a' : 'w';
        model->mlps[i] = model->n_experts > 0 ? 'e' : 'm';
    }
    return FR_OK;
}

/* The name of a block says where its norms stand. */
static fr_status read_block(reader *r)
{
    static const struct {
        const char *name;
        bool has_in, has_out, has_experts;
    } known[] = {
        {"default", true, false, false},
        {"reordered_norm", false, true, false},
        {"peri_norm", true, true, false},
        {"moe", true, false, true},
        {"moe_reordered_norm", false, true, true},
    };
    fr_model *model = &r->out->file.model;
    const char *word = "default";
    const char *path = "model.block.name";
    FR_TRY(fr_settings_word(&r->settings, path, &word, r->err));
    for (size_t i = 0; i < FR_LENGTH(known); i++) {
        if (strcmp(known[i].name, word) != 0)
            continue;
        if (known[i].has_out)
            fr_model_set(model, FR_TRAIT_OUTPUT_NORMS);
        if (!known[i].has_in)
            fr_model_set(model, FR_TRAIT_NO_INPUT_NORMS);
        if (!known[i].has_experts)
            return FR_OK;
        model->moe_every = 1;
        return read_table(r, EXPERTS, EXPERTS);
    }
    return fr_setting_refuse(fr_settings_peek(&r->settings, path),
                             "such blocks are not read", r->err);
}

static fr_status read_mixer(reader *r)
{
    fr_model *model = &r->out->file.model;
    const char *mixer = "model.block.sequence_mixer.";
    char path[160];
    bool is_by_head = false;
    if (fr_settings_first_below(&r->settings, mixer) == NULL)
        mixer = "model.block.attention."; /* before version 2.5 */
    FR_TRY(read_table(r, "mixer", mixer));
    snprintf(path, sizeof path, "%sqk_norm.", mixer);
    model->has_qk_norm = fr_settings_first_below(&r->settings, path) != NULL;
    snprintf(path, sizeof path, "%suse_head_qk_norm", mixer);
    FR_TRY(fr_settings_bool(&r->settings, path, &is_by_head, r->err));
    if (model->has_qk_norm && !is_by_head)
        fr_model_set(model, FR_TRAIT_WIDE_QK_NORM);
    model->has_out_bias = model->has_qkv_bias;
    if (model->n_kv_heads == 0)
        model->n_kv_heads = model->n_heads;
    if (model->head_dim == 0 && model->n_heads > 0)
        model->head_dim = model->hidden / model->n_heads;
    return read_windows(r, mixer);
}

static fr_status read_model(reader *r)
{
    fr_model *model = &r->out->file.model;
    fr_err why;
    if (r->request->model != NULL) {
        fr_settings_skip(&r->settings, "model.");
        return fr_model_copy(r->request->model, model, r->err);
    }
    if (fr_settings_peek(&r->settings, "model.n_layers") == NULL)
        return fr_config_take_model(r->request, NULL, NULL, r->out, r->err);
    fr_model_init(model);
    snprintf(model->name, sizeof model->name, "olmo-core");
    model->is_gated_mlp = model->is_rms_norm = model->is_rope = true;
    model->activation = FR_ACTIVATION_SILU;
    model->n_heads = 16; /* AttentionConfig's */
    model->rope_theta = 500000;
    model->max_seq = r->out->file.job.seq;
    FR_TRY(read_table(r, "model.", "model."));
    FR_TRY(read_table(r, FEED, FEED));
    if (model->n_layers > 1 << 20 || model->hidden > 1 << 24)
        return fr_fail(r->err, FR_INPUT, "%s:1: a model too large to be meant",
                       r->request->path);
    FR_TRY(read_block(r));
    FR_TRY(read_mixer(r));
    const fr_status status = fr_model_check(model, &why);
    return status == FR_OK ? FR_OK
                           : fr_fail(r->err, status, "%s:1: the model: %.400s",
                                     r->request->path, why.text);
}

/* ---- the plan ------------------------------------------------------------ */

static fr_status read_data_parallel(reader *r)
{
    fr_plan *plan = &r->out->file.plan;
    const char *path = MODULE "dp_config.name", *word = "ddp";
    int64_t n_copies = 0, degree = 0;
    FR_TRY(fr_settings_word(&r->settings, path, &word, r->err));
    FR_TRY(fr_settings_i64(&r->settings, MODULE "dp_config.num_replicas", 1,
                           &n_copies, r->err));
    FR_TRY(fr_settings_i64(&r->settings, MODULE "dp_config.shard_degree", 1,
                           &degree, r->err));
    plan->zero_stage = strcmp(word, "ddp") == 0 ? 0 : 3;
    if (strcmp(word, "hsdp") != 0)
        return FR_OK;
    const int64_t n_data = (int64_t)plan->dp * plan->cp;
    if (degree == 0 && n_copies > 0)
        degree = n_data / n_copies;
    if (degree == 0) {
        degree = n_data < 8 ? n_data : 8;
        fr_buffer_printf(&r->out->notes,
                         "hsdp shards within a node: %lld ranks are taken; "
                         "train_module.dp_config.shard_degree says otherwise\n",
                         (long long)degree);
    }
    if (degree < 1 || n_data % degree != 0)
        return fr_setting_refuse(fr_settings_peek(&r->settings, path),
                                 "its shards do not divide the data-parallel "
                                 "ranks",
                                 r->err);
    plan->zero_group = degree == n_data ? 0 : (int32_t)degree;
    return FR_OK;
}

/* Sizes are tokens of whole sequences. */
static fr_status read_batch(reader *r)
{
    static const char *const paths[] = {MODULE "rank_microbatch_size",
                                        "data_loader.global_batch_size"};
    int64_t sizes[2] = {0};
    for (size_t i = 0; i < FR_LENGTH(paths); i++) {
        const fr_setting *setting = fr_settings_peek(&r->settings, paths[i]);
        if (setting == NULL)
            return fr_fail(r->err, FR_INPUT, "%s:1: no %s", r->request->path,
                           paths[i]);
        FR_TRY(fr_settings_i64(&r->settings, paths[i], 1, &sizes[i], r->err));
        if (sizes[i] % r->out->file.job.seq != 0)
            return fr_setting_refuse(
                setting, "its tokens are no whole sequences", r->err);
    }
    r->out->file.plan.micro_batch = sizes[0] / r->out->file.job.seq;
    r->out->file.job.global_batch = sizes[1] / r->out->file.job.seq;
    return FR_OK;
}

static fr_status read_recompute(reader *r)
{
    fr_plan *plan = &r->out->file.plan;
    const char *path = MODULE "ac_config.mode", *word = "full";
    if (fr_settings_first_below(&r->settings, MODULE "ac_config.") == NULL)
        return FR_OK;
    FR_TRY(fr_settings_word(&r->settings, path, &word, r->err));
    if (strcmp(word, "full") == 0) {
        plan->recompute = FR_RECOMPUTE_FULL;
        return FR_OK;
    }
    if (strcmp(word, "selected_ops") == 0) {
        plan->recompute = FR_RECOMPUTE_SELECTIVE;
        plan->recompute_parts = FR_RECOMPUTE_PART_PRODUCTS;
        return FR_OK;
    }
    const fr_setting *modules =
        fr_settings_find(&r->settings, MODULE "ac_config.modules");
    const char *module = "";
    if (modules != NULL && modules->list != NULL &&
        fr_json_n(modules->list) == 1)
        FR_TRY(
            fr_json_as_string(fr_json_at(modules->list, 0), &module, r->err));
    if (strcmp(word, "selected_modules") != 0 ||
        strcmp(module, "blocks.*.feed_forward") != 0)
        return fr_setting_refuse(fr_settings_peek(&r->settings, path),
                                 "full, selected_ops and the module "
                                 "blocks.*.feed_forward are read",
                                 r->err);
    plan->recompute = FR_RECOMPUTE_SELECTIVE;
    plan->recompute_parts = FR_RECOMPUTE_PART_MLP;
    return FR_OK;
}

static fr_status read_kernels(reader *r)
{
    fr_plan *plan = &r->out->file.plan;
    const char *word = "flash_2";
    bool is_compiled = false, is_fp8 = false;
    fr_framework_run_plan(r->out->framework, 0, plan);
    FR_TRY(fr_settings_bool(&r->settings, MODULE "compile_model", &is_compiled,
                            r->err));
    FR_TRY(fr_settings_bool(&r->settings, MODULE "float8_config.enabled",
                            &is_fp8, r->err));
    FR_TRY(fr_settings_word(&r->settings, "model.block.sequence_mixer.backend",
                            &word, r->err));
    plan->is_flash = true;
    if (strcmp(word, "torch") == 0 || strcmp(word, "te") == 0)
        plan->execution.flash_kind = FR_FLASH_NATIVE;
    if (is_compiled)
        plan->execution.kernels = FR_KERNELS_COMPILED;
    if (is_fp8)
        plan->precision = FR_DTYPE_FP8;
    r->out->said |= FR_EXECUTION_BIT(FLASH_KIND) | FR_EXECUTION_BIT(KERNELS);
    return FR_OK;
}

static fr_status read_optimizer(reader *r)
{
    fr_job *job = &r->out->file.job;
    const char *name = "", *unit = "";
    const char *path = MODULE "optim._CLASS_";
    int64_t value = 0;
    FR_TRY(fr_settings_word(&r->settings, path, &name, r->err));
    if (*name != '\0' && strstr(name, "Adam") == NULL)
        return fr_setting_refuse(fr_settings_peek(&r->settings, path),
                                 "AdamW and its like are known", r->err);
    const fr_setting *betas =
        fr_settings_find(&r->settings, MODULE "optim.betas");
    if (betas != NULL && betas->list != NULL && fr_json_n(betas->list) == 2) {
        FR_TRY(
            fr_json_as_double(fr_json_at(betas->list, 0), &job->beta1, r->err));
        FR_TRY(
            fr_json_as_double(fr_json_at(betas->list, 1), &job->beta2, r->err));
    }
    FR_TRY(fr_settings_i64(&r->settings, "trainer.max_duration.value", 0,
                           &value, r->err));
    FR_TRY(fr_settings_word(&r->settings, "trainer.max_duration.unit", &unit,
                            r->err));
    if (strcmp(unit, "steps") == 0 && value > 0)
        job->n_steps = value;
    if (strcmp(unit, "tokens") == 0 && value > 0)
        job->n_steps = value / (job->global_batch * job->seq) + 1;
    return FR_OK;
}

/* ---- the file ------------------------------------------------------------ */

/* Beginnings of names that no prediction depends on. */
static const char *const names[] = {
    "_CLASS_",     "dataset.",       "trainer.",
    "run_name",    "launch.",        "data_loader.",
    "init_",       "model.lm_head.", "model.block.layer_norm.",
    "model.name",  "model.dtype",    "qk_norm.",
    "rope.",       "dtype",          "name",
    "tokenizer.",  "label_ignore",   "wrapping_strategy",
    "determinism", "state_dict",     "group_overrides",
    "scheduler.",  "autocast",       "backend",
    "use_flash",   "activation",     "num_",
    "seed",        "work_dir"};

static bool is_plain(const char *path)
{
    return fr_setting_begins(path, names, FR_LENGTH(names)) ||
           strstr(path, ".qk_norm.") != NULL ||
           strstr(path, ".rope.") != NULL ||
           strstr(path, ".scheduler.") != NULL ||
           strstr(path, ".layer_norm.") != NULL;
}

static fr_status read_root(reader *r)
{
    FR_TRY(fr_settings_read(r->request, &r->settings, r->err));
    fr_plan *plan = &r->out->file.plan;
    fr_job *job = &r->out->file.job;
    FR_TRY(read_table(r, "", ""));
    plan->precision = FR_DTYPE_F32;
    plan->grad_dtype = FR_DTYPE_F32;
    job->clip_norm = 0;
    job->seq = 0;
    FR_TRY(read_table(r, MODULE, MODULE));
    if (job->seq == 0)
        return fr_fail(r->err, FR_INPUT,
                       "%s:1: no train_module.max_sequence_length",
                       r->request->path);
    FR_TRY(check_kind(r));
    FR_TRY(read_model(r));
    FR_TRY(fr_config_take_dp(r->request, 0, r->out, r->err));
    FR_TRY(read_batch(r));
    FR_TRY(read_data_parallel(r));
    plan->is_overlap = plan->is_gather_overlap = true;
    if (plan->cp > 1)
        plan->cp_kind = FR_CP_RING;
    plan->is_sequence_parallel = plan->tp > 1;
    FR_TRY(read_recompute(r));
    FR_TRY(read_kernels(r));
    FR_TRY(read_optimizer(r));
    fr_settings_note_rest(&r->settings, is_plain, &r->out->notes);
    return FR_OK;
}

static bool looks_like(const char *text, size_t n)
{
    (void)n;
    return strstr(text, "_CLASS_") != NULL &&
           strstr(text, "olmo_core.") != NULL;
}

static fr_status read_config(const fr_config_request *request, fr_config *out,
                             fr_err *err)
{
    return fr_settings_read_config(request, read_root, out, err);
}

const fr_config_format fr_config_olmo_core = {
    .summary = "the config.json of a run of OLMo-core",
    .looks_like = looks_like,
    .read = read_config,
};
