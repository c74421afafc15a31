/*
 * config_gpt_neox.c: the YAML that GPT-NeoX is started with
 * (EleutherAI/gpt-neox at ea7aefd8, megatron/neox_arguments/neox_args.py; what
 * follows from it: arguments.py, calculate_derived).  Its zero_optimization,
 * optimizer and precision are DeepSpeed's.
 */
#include "core/base/text.h"
#include "frameworks/deepspeed/config_deepspeed.h"
#include "frameworks/framework_list.h"
#include "frameworks/read/config_parts.h"
#include "frameworks/read/settings.h"
#include "frameworks/read/yaml_marks.h"
#include "spec/model/model_traits.h"

#include <stdio.h>
#include <string.h>

typedef struct reader {
    const fr_config_request *request;
    fr_settings settings;
    const fr_json_value *root;
    fr_config *out;
    fr_err *err;
} reader;

/* ---- keys ---------------------------------------------------------------- */

#define OF(member) FR_KEY_MEMBER(member)

/* A switch, whose member is false where it is on. */
#define OFF .is_switch = true

static const fr_key_word positions[] = {{true, "rotary"},
                                        {false, "learned"},
                                        {false, "alibi"},
                                        {false, "none"},
                                        {0}};
static const fr_key_word norms[] = {{false, "layernorm"},
                                    {true, "rmsnorm"},
                                    {false, "te_layernorm"},
                                    {true, "te_rmsnorm"},
                                    {0}};
static const fr_key_word schedules[] = {{FR_LR_CONSTANT, "constant"},
                                        {FR_LR_COSINE, "cosine"},
                                        {FR_LR_LINEAR, "linear"},
                                        {0}};

static const fr_framework_key rows[] = {
    {"model", "num_layers", OF(model.n_layers), .least = 1},
    {"model", "hidden_size", OF(model.hidden), .least = 1},
    {"model", "num_attention_heads", OF(model.n_heads), .least = 1},
    {"model", "num_kv_heads", OF(model.n_kv_heads), .least = 1},
    {"model", "max_position_embeddings", OF(model.max_seq), .least = 1},
    {"model", "sliding_window_width", OF(model.sliding_window), .least = 1},
    {"model", "norm", OF(model.is_rms_norm), .words = norms,
     .mend = "such norms are not modelled; take layernorm or rmsnorm"},
    {"model", "pos_emb", OF(model.is_rope), .words = positions,
     .mend = "such positions are not modelled; take rotary, learned, alibi or "
             "none"},
    {"model", "rotary_pct", OF(model.rope_frac)},
    {"model", "rotary_emb_base", OF(model.rope_theta)},
    {"model", "no_weight_tying", OF(model.is_tied), OFF},
    {"model", "gpt_j_residual", OF(model.is_parallel_block)},
    {"model", "use_bias_in_attn_linear", OF(model.has_qkv_bias)},
    {"model", "use_bias_in_mlp", OF(model.has_mlp_bias)},
    {"model", "use_qk_layernorm", OF(model.has_qk_norm)},
    {"model", "padded_vocab_size", OF(model.vocab), .least = 1},

    {"parallel", "model_parallel_size", OF(plan.tp), .least = 1},
    {"parallel", "sequence_parallel", OF(plan.is_sequence_parallel)},
    {"job", "seq_length", OF(job.seq), .least = 1},
    {"job", "train_iters", OF(job.n_steps), .least = 1},
    {"job", "seed", OF(job.seed)},
    {"job", "weight_decay", OF(job.weight_decay)},
    {"job", "hidden_dropout", OF(job.dropout)},
    {"job", "gradient_clipping", OF(job.clip_norm)},
    {"job", "lr_decay_style", OF(job.lr_schedule), .words = schedules},

    {"rest", "partition_activations",
     .why = "each tensor-parallel rank is taken to keep all of an input"},
    {"rest", "contiguous_checkpointing", .why = "no plan has it"},
    {"rest", "fp16_lm_cross_entropy", .why = "the loss is taken in float32"},
    {"rest", "fp32_allreduce", .why = "gradients are sent as they are kept"},
};

static const fr_framework_keys keys = {rows, FR_LENGTH(rows)};

static fr_status read_table(reader *r, const char *table)
{
    return fr_settings_read_rows(&r->settings, keys, table, "", &r->out->file,
                                 &r->out->notes, r->err);
}

/* ---- the model ----------------------------------------------------------- */

typedef struct activation {
    const char *word;
    fr_activation kind;
    bool is_gated;
} activation;

static fr_status read_activation(reader *r)
{
    static const activation known[] = {{"gelu", FR_ACTIVATION_GELU, false},
                                       {"geglu", FR_ACTIVATION_GELU, true},
                                       {"relu", FR_ACTIVATION_RELU, false},
                                       {"silu", FR_ACTIVATION_SILU, false},
                                       {"swiglu", FR_ACTIVATION_SILU, true}};
    fr_model *model = &r->out->file.model;
    const char *word = "gelu";
    bool is_fused = false;
    FR_TRY(fr_settings_word(&r->settings, "activation", &word, r->err));
    FR_TRY(
        fr_settings_bool(&r->settings, "bias_gelu_fusion", &is_fused, r->err));
    for (size_t i = 0; i < FR_LENGTH(known); i++)
        if (strcmp(known[i].word, word) == 0) {
            model->activation = known[i].kind;
            model->is_gated_mlp = known[i].is_gated;
            if (is_fused && i == 0) /* its kernel has the tanh form */
                model->activation = FR_ACTIVATION_GELU_TANH;
            return FR_OK;
        }
    return fr_setting_refuse(fr_settings_peek(&r->settings, "activation"),
                             "gelu, geglu, relu, silu and swiglu are read",
                             r->err);
}

static int64_t round_up(int64_t n, int64_t unit)
{
    return (n + unit - 1) / unit * unit;
}

/*
 * The width of the MLP, half of what is said for gated ones, which have a third
 * less, rounded up (megatron/model/transformer.py, ParallelMLP).
 */
static fr_status read_width(reader *r)
{
    fr_model *model = &r->out->file.model;
    int64_t width = 4 * model->hidden, unit = 1;
    double factor = 0;
    FR_TRY(fr_settings_real(&r->settings, "expansion_factor", &factor, r->err));
    if (factor > 0 && factor < 1e6)
        width = (int64_t)(factor * (double)model->hidden);
    FR_TRY(
        fr_settings_i64(&r->settings, "intermediate_size", 1, &width, r->err));
    FR_TRY(fr_settings_i64(&r->settings, "mlp_multiple_of", 1, &unit, r->err));
    if (width > 1 << 26 || unit > 1 << 20)
        return fr_fail(r->err, FR_INPUT, "%s:1: a model too large to be meant",
                       r->request->path);
    model->ffn_hidden = model->is_gated_mlp ? round_up(width * 2 / 3 / 2, unit)
                                            : round_up(width, 2 * unit);
    return FR_OK;
}

static fr_status read_traits(reader *r)
{
    fr_model *model = &r->out->file.model;
    const char *word = "learned";
    bool is_tied = false, has_bias = true;
    FR_TRY(fr_settings_word(&r->settings, "pos_emb", &word, r->err));
    if (strcmp(word, "alibi") == 0)
        fr_model_set(model, FR_TRAIT_ALIBI);
    if (strcmp(word, "none") == 0)
        fr_model_set(model, FR_TRAIT_NO_POSITIONS);
    FR_TRY(fr_settings_bool(&r->settings, "gpt_j_tied", &is_tied, r->err));
    if (is_tied && model->is_parallel_block)
        fr_model_set(model, FR_TRAIT_ONE_BLOCK_NORM);
    FR_TRY(
        fr_settings_bool(&r->settings, "use_bias_in_norms", &has_bias, r->err));
    if (!has_bias && !model->is_rms_norm)
        fr_model_set(model, FR_TRAIT_NO_NORM_BIAS);
    FR_TRY(fr_settings_real(&r->settings,
                            model->is_rms_norm ? "rms_norm_epsilon"
                                               : "layernorm_epsilon",
                            &model->norm_eps, r->err));
    (void)fr_settings_find(&r->settings, "layernorm_epsilon");
    return FR_OK;
}

/* megatron/tokenizer/tokenizer.py; a file's name says which it is where it is
 * the one of GPT-NeoX-20B (50,277 entries). */
static fr_status read_vocab(reader *r)
{
    fr_model *model = &r->out->file.model;
    const char *type = "GPT2BPETokenizer", *path = "";
    FR_TRY(fr_settings_word(&r->settings, "tokenizer_type", &type, r->err));
    const fr_setting *file = fr_settings_find(&r->settings, "vocab_file");
    if (file != NULL && file->text != NULL)
        path = file->text;
    (void)fr_settings_find(&r->settings, "make_vocab_size_divisible_by");
    if (model->vocab > 0)
        return FR_OK;
    if (strcmp(type, "GPT2BPETokenizer") == 0 ||
        strcmp(type, "HFGPT2Tokenizer") == 0)
        model->vocab = 50257;
    else if (strcmp(type, "CharLevelTokenizer") == 0)
        model->vocab = 512;
    else if (fr_text_ends(path, "20B_tokenizer.json"))
        model->vocab = 50277;
    else
        return fr_fail(r->err, FR_INPUT,
                       "%s:1: the size of the vocabulary stands in the "
                       "tokenizer's file; add padded_vocab_size: N, or name "
                       "the model with --model",
                       r->request->path);
    fr_buffer_printf(&r->out->notes,
                     "vocabulary of %lld tokens, that of %s, without what "
                     "GPT-NeoX fills it up with\n",
                     (long long)model->vocab, type);
    return FR_OK;
}

static fr_status check_needed(reader *r)
{
    static const char *const needed[] = {"num_layers", "hidden_size",
                                         "num_attention_heads",
                                         "max_position_embeddings"};
    for (size_t i = 0; i < FR_LENGTH(needed); i++)
        if (fr_settings_peek(&r->settings, needed[i]) == NULL)
            return fr_fail(r->err, FR_INPUT,
                           "%s:1: no %s, of which the model is made: join the "
                           "files that GPT-NeoX is started with, or name the "
                           "model with --model",
                           r->request->path, needed[i]);
    return FR_OK;
}

static fr_status read_model(reader *r)
{
    fr_model *model = &r->out->file.model;
    fr_err why;
    if (r->request->model != NULL) {
        for (size_t i = 0; i < FR_LENGTH(rows); i++)
            if (strcmp(rows[i].table, "model") == 0)
                (void)fr_settings_find(&r->settings, rows[i].name);
        return fr_model_copy(r->request->model, model, r->err);
    }
    FR_TRY(check_needed(r));
    fr_model_init(model);
    snprintf(model->name, sizeof model->name, "gpt-neox");
    model->is_tied = true;
    model->has_qkv_bias = model->has_mlp_bias = true;
    model->norm_eps = 1e-5;
    FR_TRY(read_table(r, "model"));
    if (model->n_layers > 1 << 20 || model->hidden > 1 << 24)
        return fr_fail(r->err, FR_INPUT, "%s:1: a model too large to be meant",
                       r->request->path);
    model->has_out_bias = model->has_qkv_bias;
    if (model->n_kv_heads == 0)
        model->n_kv_heads = model->n_heads;
    model->head_dim = model->hidden / model->n_heads;
    FR_TRY(read_activation(r));
    FR_TRY(read_width(r));
    FR_TRY(read_traits(r));
    FR_TRY(read_vocab(r));
    const fr_status status = fr_model_check(model, &why);
    return status == FR_OK ? FR_OK
                           : fr_fail(r->err, status, "%s:1: the model: %.400s",
                                     r->request->path, why.text);
}

/* Layers whose mixers a plan has no place for, and training that is another. */
static fr_status check_kind(reader *r)
{
    static const struct {
        const char *path, *usual, *why;
    } others[] = {
        {"moe_num_experts", "1", "its experts are not modelled"},
        {"train_impl", "normal", "only training on all tokens is modelled"},
        {"num_unique_layers", NULL, "shared layers are not modelled"},
        {"use_mup", "false", "scaled rates of mup are not modelled"},
        {"soft_prompt_tuning.enabled", "false",
         "training of prompts is not "
         "modelled"},
    };
    for (size_t i = 0; i < FR_LENGTH(others); i++) {
        const fr_setting *setting =
            fr_settings_find(&r->settings, others[i].path);
        if (setting != NULL && setting->text != NULL &&
            (others[i].usual == NULL ||
             strcmp(setting->text, others[i].usual) != 0))
            return fr_setting_refuse(setting, others[i].why, r->err);
    }
    return FR_OK;
}

/* [[["flash"], 32]]: kinds of layers, and how often they are repeated. */
static fr_status read_attention(reader *r)
{
    fr_plan *plan = &r->out->file.plan;
    const fr_setting *setting =
        fr_settings_find(&r->settings, "attention_config");
    bool is_engine = false;
    plan->is_flash = false;
    FR_TRY(fr_settings_bool(&r->settings, "te_mha", &is_engine, r->err));
    for (size_t i = 0; setting != NULL && setting->list != NULL &&
                       i < fr_json_n(setting->list);
         i++) {
        const fr_json_value *group = fr_json_at(setting->list, i);
        const fr_json_value *kinds =
            fr_json_kind_of(group) == FR_JSON_ARRAY && fr_json_n(group) > 0
                ? fr_json_at(group, 0)
                : group;
        for (size_t k = 0; k < fr_json_n(kinds); k++) {
            const char *kind;
            FR_TRY(fr_json_as_string(fr_json_at(kinds, k), &kind, r->err));
            const bool is_flash = strcmp(kind, "flash") == 0;
            if (!is_flash && strcmp(kind, "global") != 0)
                return fr_json_fail(fr_json_at(kinds, k), r->err,
                                    "attention_config '%.40s': global and "
                                    "flash attention are read",
                                    kind);
            plan->is_flash = plan->is_flash || is_flash;
        }
    }
    plan->is_flash = plan->is_flash || is_engine;
    plan->execution.flash_kind = FR_FLASH_2;
    return FR_OK;
}

/* ---- the plan ------------------------------------------------------------ */

static fr_status check_batch(reader *r)
{
    static const char *const paths[] = {"train_batch_size",
                                        "train_micro_batch_size_per_gpu"};
    for (size_t i = 0; i < FR_LENGTH(paths); i++)
        if (fr_settings_peek(&r->settings, paths[i]) != NULL)
            return FR_OK;
    return fr_fail(r->err, FR_INPUT,
                   "%s:1: neither train_micro_batch_size_per_gpu nor "
                   "train_batch_size: join the files that GPT-NeoX is "
                   "started with",
                   r->request->path);
}

/* train_batch_size = micro-batch x accumulation x data-parallel ranks, of which
 * two or one may be left out (arguments.py, calculate_batch_parameters). */
static fr_status read_batch(reader *r)
{
    fr_plan *plan = &r->out->file.plan;
    fr_job *job = &r->out->file.job;
    int64_t whole = 0, micro = 0, n = 0;
    FR_TRY(
        fr_settings_i64(&r->settings, "train_batch_size", 1, &whole, r->err));
    FR_TRY(fr_settings_i64(&r->settings, "train_micro_batch_size_per_gpu", 1,
                           &micro, r->err));
    FR_TRY(fr_settings_i64(&r->settings, "gradient_accumulation_steps", 1, &n,
                           r->err));
    if (micro > 1 << 30 || n > 1 << 30 || whole > 1 << 30)
        return fr_fail(r->err, FR_INPUT, "%s:1: give smaller batches",
                       r->request->path);
    if (n == 0 && (whole == 0 || micro == 0))
        n = 1;
    if (micro == 0)
        micro = whole / plan->dp / n;
    plan->micro_batch = micro;
    job->global_batch = whole > 0 ? whole : micro * n * plan->dp;
    if (micro >= 1 && (n == 0 || micro * n * plan->dp == job->global_batch))
        return FR_OK;
    return fr_fail(r->err, FR_INPUT,
                   "%s:1: train_batch_size %lld is not micro-batch %lld x "
                   "accumulation %lld x %d data-parallel ranks; give --ranks",
                   r->request->path, (long long)whole, (long long)micro,
                   (long long)n, plan->dp);
}

/* precision, or the block that is enabled; fp16's own `type` is its old form.
 * Gradients have the dtype of the weights unless data_types says otherwise. */
static fr_status read_precision(reader *r)
{
    fr_plan *plan = &r->out->file.plan;
    const char *word = "", *type = "", *sums = "";
    bool is_f16 = false, is_bf16 = false;
    FR_TRY(fr_settings_bool(&r->settings, "fp16.enabled", &is_f16, r->err));
    FR_TRY(fr_settings_bool(&r->settings, "bf16.enabled", &is_bf16, r->err));
    FR_TRY(fr_settings_word(&r->settings, "fp16.type", &type, r->err));
    FR_TRY(fr_settings_word(&r->settings, "precision", &word, r->err));
    is_bf16 = is_bf16 || strcmp(word, "bfloat16") == 0 ||
              (is_f16 && strcmp(type, "bfloat16") == 0);
    is_f16 = !is_bf16 && (is_f16 || strcmp(word, "fp16") == 0);
    plan->precision = is_bf16  ? FR_DTYPE_BF16
                      : is_f16 ? FR_DTYPE_F16
                               : FR_DTYPE_F32;
    plan->grad_dtype = plan->precision;
    FR_TRY(fr_settings_word(&r->settings, "data_types.grad_accum_dtype", &sums,
                            r->err));
    if (strcmp(sums, "fp32") == 0)
        plan->grad_dtype = FR_DTYPE_F32;
    fr_settings_skip(&r->settings, "fp16.");
    fr_settings_skip(&r->settings, "bf16.");
    return FR_OK;
}

static fr_status read_degrees(reader *r)
{
    fr_plan *plan = &r->out->file.plan;
    int32_t pp = 0;
    int64_t world = 0;
    FR_TRY(fr_settings_i32(&r->settings, "pipe_parallel_size", 0, &pp, r->err));
    FR_TRY(read_table(r, "parallel"));
    plan->pp = pp > 1 ? pp : 1;
    plan->is_sequence_parallel = plan->is_sequence_parallel && plan->tp > 1;
    FR_TRY(fr_settings_i64(&r->settings, "global_num_gpus", 1, &world, r->err));
    return fr_config_take_dp(r->request, r->request->world > 0 ? 0 : world,
                             r->out, r->err);
}

static fr_status read_recompute(reader *r)
{
    fr_plan *plan = &r->out->file.plan;
    bool is_on = false, is_offloaded = false;
    int64_t every = 1;
    FR_TRY(fr_settings_bool(&r->settings, "checkpoint_activations", &is_on,
                            r->err));
    FR_TRY(fr_settings_i64(&r->settings, "checkpoint_num_layers", 1, &every,
                           r->err));
    FR_TRY(fr_settings_bool(&r->settings, "checkpoint_in_cpu", &is_offloaded,
                            r->err));
    if (!is_on)
        return FR_OK;
    plan->recompute = FR_RECOMPUTE_FULL;
    plan->activation_offload_frac = is_offloaded ? 1 : 0;
    if (every > 1)
        fr_buffer_printf(&r->out->notes,
                         "checkpoint_num_layers %lld: inputs of so many layers "
                         "are kept together: predicted as of every layer\n",
                         (long long)every);
    return FR_OK;
}

/* optimizer and zero_optimization, as DeepSpeed has them. */
static fr_status read_deepspeed(reader *r)
{
    static const char *const parts[] = {"zero_optimization.", "optimizer."};
    fr_job *job = &r->out->file.job;
    double least = 0, warmup = 0.01;
    for (size_t i = 0; i < FR_LENGTH(parts); i++)
        fr_settings_skip(&r->settings, parts[i]);
    FR_TRY(fr_deepspeed_read_zero(r->root, r->out, r->err));
    FR_TRY(fr_deepspeed_read_job(r->root, r->out, r->err));
    FR_TRY(read_table(r, "job")); /* gradient_clipping once more */
    FR_TRY(fr_settings_real(&r->settings, "min_lr", &least, r->err));
    FR_TRY(fr_settings_real(&r->settings, "warmup", &warmup, r->err));
    if (job->lr > 0 && least <= job->lr)
        job->lr_min_frac = least / job->lr;
    if (warmup <= 1)
        job->warmup_steps = (int64_t)(warmup * (double)job->n_steps);
    return FR_OK;
}

/* ---- the file ------------------------------------------------------------ */

static bool is_plain(const char *path)
{
    static const char *const names[] = {"vocab",
                                        "merge",
                                        "save",
                                        "load",
                                        "data",
                                        "train_data",
                                        "valid_data",
                                        "test_data",
                                        "split",
                                        "tokenizer",
                                        "init_method",
                                        "output_layer",
                                        "distributed_backend",
                                        "checkpoint_factor",
                                        "checkpoint_scale",
                                        "extra_save",
                                        "eval",
                                        "log",
                                        "steps_per_print",
                                        "wall_clock",
                                        "tensor",
                                        "wandb",
                                        "use_wandb",
                                        "comet",
                                        "launcher",
                                        "deepspeed",
                                        "hostfile",
                                        "num_workers",
                                        "keep_last",
                                        "lr_decay_iters",
                                        "synchronize_each",
                                        "scaled_",
                                        "bias_",
                                        "rope_fusion",
                                        "layernorm_fusion",
                                        "rmsnorm_fusion",
                                        "attention_dropout",
                                        "hysteresis",
                                        "loss_scale",
                                        "min_scale",
                                        "initial_",
                                        "do_train",
                                        "do_valid",
                                        "do_test",
                                        "finetune",
                                        "no_save",
                                        "no_load",
                                        "use_shared_fs",
                                        "short_seq",
                                        "mmap",
                                        "text_gen",
                                        "temper",
                                        "top_",
                                        "maximum_tokens",
                                        "num_samples",
                                        "sample_",
                                        "recompute",
                                        "master",
                                        "include",
                                        "exclude",
                                        "comment",
                                        "account",
                                        "git_hash",
                                        "print_",
                                        "profile",
                                        "memory_profiling",
                                        "s3_",
                                        "onnx",
                                        "rotary_save",
                                        "attention_softmax",
                                        "apply_query",
                                        "flops_profiler",
                                        "dataset_impl",
                                        "pack_impl",
                                        "allow_chopped",
                                        "data_impl",
                                        "eod_",
                                        "is_pipe",
                                        "warmup",
                                        "fused_kernels",
                                        "char_level",
                                        "no_ssh",
                                        "num_gpus",
                                        "num_nodes",
                                        "config_files",
                                        "prescale",
                                        "gradient_noise"};
    return fr_setting_begins(path, names, FR_LENGTH(names));
}

/* DeepSpeed's launcher takes "-" for "_" in names. */
static fr_status take_names(reader *r)
{
    for (size_t i = 0; i < r->settings.items.n; i++) {
        fr_setting *item = &r->settings.items.items[i];
        char *path = fr_arena_strdup(&r->settings.arena, item->path);
        if (path == NULL)
            return fr_fail_no_memory(r->err);
        for (char *c = path; *c != '\0' && *c != '.'; c++)
            if (*c == '-')
                *c = '_';
        item->path = path;
    }
    return FR_OK;
}

static fr_status read_root(reader *r)
{
    fr_plan *plan = &r->out->file.plan;
    fr_job *job = &r->out->file.job;
    const fr_json_value *hyphen = fr_json_find(r->root, "zero-optimization");
    if (hyphen != NULL)
        return fr_json_fail(hyphen, r->err, "write zero_optimization");
    FR_TRY(take_names(r));
    FR_TRY(check_kind(r));
    job->weight_decay = 0.1;
    job->seed = 1234;
    job->dropout = 0;
    job->lr_schedule = FR_LR_LINEAR;
    job->beta2 = 0.999;
    job->optimizer_eps = 1e-8;
    FR_TRY(read_attention(r));
    FR_TRY(check_batch(r));
    FR_TRY(read_model(r));
    if (fr_settings_peek(&r->settings, "seq_length") == NULL)
        fr_config_take_seq(r->request, r->out);
    FR_TRY(read_degrees(r));
    FR_TRY(read_precision(r));
    FR_TRY(read_batch(r));
    FR_TRY(read_recompute(r));
    FR_TRY(read_deepspeed(r));
    FR_TRY(read_table(r, "rest"));
    if (plan->zero_stage > 0 && plan->dp == 1)
        plan->zero_stage = 0;
    fr_settings_note_rest(&r->settings, is_plain, &r->out->notes);
    return FR_OK;
}

static bool looks_like(const char *text, size_t n)
{
    static const char *const marks[] = {"pipe_parallel_size",
                                        "pipe-parallel-size"};
    (void)n;
    for (size_t i = 0; i < FR_LENGTH(marks); i++)
        if (fr_yaml_find_mark(text, marks[i]) > 0)
            return true;
    return false;
}

static fr_status read_config(const fr_config_request *request, fr_config *out,
                             fr_err *err)
{
    reader r = {.request = request, .out = out, .err = err};
    fr_settings_init(&r.settings, request->path);
    fr_status status =
        fr_settings_parse(&r.settings, request->path, request->text,
                          request->n_text, &r.root, err);
    if (status == FR_OK)
        status = fr_settings_put(&r.settings, r.root, "", err);
    if (status == FR_OK)
        status = read_root(&r);
    fr_settings_release(&r.settings);
    return status;
}

const fr_config_format fr_config_gpt_neox = {
    .summary = "the YAML of GPT-NeoX",
    .looks_like = looks_like,
    .read = read_config,
};
