/*
 * config_gpt_neox.c: the YAML that GPT-NeoX is started with
 * (EleutherAI/gpt-neox at ea7aefd8, megatron/neox_arguments/neox_args.py; what
 * follows from it: arguments.py, calculate_derived).  Its zero_optimization,
 * optimizer and precision are DeepSpeed's.
 */
#include "core/base/text.h"
#include "frameworks/deepspeed/config_deepspeed.h"
#include "frameworks/framework_list.h"
#include "frameworks/gpt_neox/gpt_neox_reader.h"
#include "frameworks/read/yaml_marks.h"

#include <stdio.h>
#include <string.h>

typedef fr_gpt_neox_reader reader;

/* ---- keys ---------------------------------------------------------------- */

#define OF(member) FR_KEY_MEMBER(member)

static const fr_key_word schedules[] = {{FR_LR_CONSTANT, "constant"},
                                        {FR_LR_COSINE, "cosine"},
                                        {FR_LR_LINEAR, "linear"},
                                        {0}};

static const fr_framework_key rows[] = {
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

/* Beginnings of keys that no prediction depends on. */
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

static bool is_plain(const char *path)
{
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
    FR_TRY(fr_gpt_neox_read_model(r));
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
    static const char *const marks[] = {
        "pipe_parallel_size", "pipe-parallel-size", "checkpoint_factor"};
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
