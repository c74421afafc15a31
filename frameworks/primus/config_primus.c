/*
 * config_primus.c: an experiment of Primus that trains by Megatron-LM
 * (AMD-AGI/Primus at fd1eeabb, examples/megatron/configs): a preset of the
 * module, one of the model, and what overrides them, whose names are the
 * attributes of Megatron-LM's arguments.  Presets stand in
 * primus/configs/{modules,models}/megatron of the checkout that the file is in,
 * or beside it, and extend each other (primus/core/config).
 */
#include "core/base/text.h"
#include "core/system/fileio.h"
#include "frameworks/framework_list.h"
#include "frameworks/megatron/read/megatron_settings.h"
#include "frameworks/read/config_parts.h"
#include "frameworks/read/yaml_marks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MODULE "modules.pre_trainer."

enum { EXTENDS_MAX = 8, FOLDERS_MAX = 12, PRESETS_MAX = 64 };

typedef struct reader {
    const fr_config_request *request;
    fr_settings experiment; /* the file as it stands */
    fr_settings settings;   /* all presets and overrides, one over the other */
    fr_megatron_flags flags;
    fr_megatron_source source;
    int n_presets; /* that were read */
    fr_config *out;
    fr_err *err;
} reader;

/* ---- presets ------------------------------------------------------------- */

/* The checkout's folder of presets is that of the file, or above it. */
static fr_status load_preset(reader *r, const char *name, char **text,
                             size_t *n_text)
{
    char folder[2048], path[4096];
    fr_err ignored;
    if (r->request->read_file != NULL)
        return r->request->read_file(r->request->context, name, text, n_text,
                                     &ignored);
    FR_TRY(fr_path_dir(r->request->path, folder, sizeof folder, r->err));
    for (int i = 0; i < FOLDERS_MAX; i++) {
        snprintf(path, sizeof path, "%s/%.1000s", folder, name);
        if (fr_file_read(path, FR_FILE_BYTES_MAX, text, n_text, &ignored) ==
            FR_OK)
            return FR_OK;
        const size_t n = strlen(folder);
        if (n + 4 > sizeof folder || strcmp(folder, "/") == 0)
            break;
        /* A relative path goes up by "..", an absolute one by its end. */
        if (folder[0] != '/')
            memcpy(folder + n, "/..", 4);
        else if (strrchr(folder, '/') != folder)
            *strrchr(folder, '/') = '\0';
        else
            folder[1] = '\0';
    }
    return fr_file_read(fr_path_name(name), 0, text, n_text, &ignored);
}

static fr_status put_preset(reader *r, const char *folder, const char *name,
                            int depth, bool *is_found);

/* `extends`: presets of the same folder, which come first. */
static fr_status put_extended(reader *r, const fr_json_value *root,
                              const char *folder, int depth)
{
    const fr_json_value *names = fr_json_find(root, "extends");
    if (names == NULL)
        return FR_OK;
    for (size_t i = 0; i < fr_json_n(names); i++) {
        const char *name;
        bool is_found = false;
        FR_TRY(fr_json_as_string(fr_json_at(names, i), &name, r->err));
        FR_TRY(put_preset(r, folder, name, depth + 1, &is_found));
        if (!is_found)
            return fr_json_fail(fr_json_at(names, i), r->err,
                                "no preset %.80s in %.80s; put it there", name,
                                folder);
    }
    return FR_OK;
}

/* A key replaces that of the presets which this one extends. */
static fr_status put_text(reader *r, const char *path, const char *text,
                          size_t n_text, int depth)
{
    const fr_json_value *root;
    char folder[512];
    const char *file = fr_arena_strdup(&r->settings.arena, path);
    if (file == NULL)
        return fr_fail_no_memory(r->err);
    FR_TRY(fr_path_dir(path, folder, sizeof folder, r->err));
    FR_TRY(fr_settings_parse(&r->settings, file, text, n_text, &root, r->err));
    FR_TRY(put_extended(r, root, folder, depth));
    r->settings.file = file;
    r->settings.is_preset = depth > 0 || strstr(path, "modules/") != NULL;
    FR_TRY(fr_settings_put(&r->settings, root, "", r->err));
    r->settings.file = NULL;
    r->settings.is_preset = false;
    return FR_OK;
}

static fr_status put_preset(reader *r, const char *folder, const char *name,
                            int depth, bool *is_found)
{
    char path[512], *text;
    size_t n_text;
    if (depth > EXTENDS_MAX || r->n_presets++ > PRESETS_MAX)
        return fr_fail(r->err, FR_INPUT,
                       "%s:1: presets extend each other without an end: "
                       "%.80s",
                       r->request->path, name);
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
        return fr_fail(r->err, FR_INPUT, "%s:1: a name of a preset too long",
                       r->request->path);
    *is_found = load_preset(r, path, &text, &n_text) == FR_OK;
    if (!*is_found)
        return FR_OK;
    const fr_status status = put_text(r, path, text, n_text, depth);
    free(text);
    return status;
}

/* These stand for the preset of the module, and for the one that all models
 * extend, where they are not near. */
static const char usual_module[] =
    "bf16: true\nuse_distributed_optimizer: true\nuse_flash_attn: true\n"
    "weight_decay: 0.0\nadam_beta2: 0.999\nadam_eps: 1.0e-8\nclip_grad: 1.0\n"
    "global_batch_size: 16\nmicro_batch_size: 2\nseq_length: 1024\n"
    "lr: 2.0e-05\nmin_lr: 0.0\nlr_warmup_iters: 40\nlr_decay_style: cosine\n"
    "train_iters: 1000\nseed: 1234\nfp8_recipe: delayed\n";
static const char usual_model[] =
    "sequence_parallel: true\nhidden_dropout: 0.0\nattention_dropout: 0.0\n"
    "moe_token_dispatcher_type: alltoall\n"
    "gradient_accumulation_fusion: true\n";

static fr_status put_module(reader *r)
{
    const char *name = "pre_trainer.yaml";
    bool is_found = false;
    FR_TRY(fr_settings_word(&r->experiment, MODULE "config", &name, r->err));
    FR_TRY(
        put_preset(r, "primus/configs/modules/megatron", name, 0, &is_found));
    if (is_found)
        return FR_OK;
    fr_buffer_printf(&r->out->notes,
                     "the preset %.80s is not near: Primus' own values are "
                     "taken\n",
                     name);
    return put_text(r, "modules/pre_trainer.yaml", usual_module,
                    strlen(usual_module), 1);
}

/* Models of the catalog, by the names of Primus' presets. */
static const char *find_known(const char *name)
{
    static const char *const known[][2] = {
        {"llama3_8B.yaml", "llama-3-8b"},
        {"llama3.1_8B.yaml", "llama-3-8b"},
        {"llama3_70B.yaml", "llama-3-70b"},
        {"llama3.1_70B.yaml", "llama-3-70b"},
        {"llama3.3_70B.yaml", "llama-3-70b"},
        {"llama3.1_405B.yaml", "llama-3-405b"},
        {"mixtral_8x7B_v0.1.yaml", "mixtral-8x7b"},
        {"mixtral_8x22B_v0.1.yaml", "mixtral-8x22b"},
        {"deepseek_v3.yaml", "deepseek-v3"},
    };
    for (size_t i = 0; i < FR_LENGTH(known); i++)
        if (strcmp(known[i][0], name) == 0)
            return known[i][1];
    return NULL;
}

static fr_status put_model(reader *r)
{
    const char *name = NULL;
    bool is_found = false;
    FR_TRY(fr_settings_word(&r->experiment, MODULE "model", &name, r->err));
    r->source.vocab = "vocab_size";
    if (name == NULL)
        return FR_OK;
    r->source.said = name;
    r->source.known = find_known(name);
    FR_TRY(put_preset(r, "primus/configs/models/megatron", name, 0, &is_found));
    return is_found ? FR_OK
                    : put_text(r, name, usual_model, strlen(usual_model), 1);
}

/* ---- settings that are arguments ----------------------------------------- */

static const fr_megatron_alias aliases[] = {
    {.path = "add_bias_linear",
     .flag = "disable-bias-linear",
     .is_inverted = true},
    {.path = "gradient_accumulation_fusion",
     .flag = "no-gradient-accumulation-fusion",
     .is_inverted = true},
    {.path = "bias_gelu_fusion",
     .flag = "no-bias-gelu-fusion",
     .is_inverted = true},
    {.path = "fp8", .flag = "fp8-format"},
    {.path = "fp4", .flag = "fp4-format"},
    {.path = "virtual_pipeline_model_parallel_size",
     .flag = "num-virtual-stages-per-pipeline-rank"},
    {.path = "moe_use_fused_router_with_aux_score",
     .flag = "moe-router-fusion"},
    {.path = "use_turbo_deepep", .flag = "moe-enable-deepep"},
    {.path = "tokenizer_model", .is_own = true},
    {.path = "extends", .is_own = true},
    {.path = ""},
};

/* Settings of models and schedules that no plan has. */
static fr_status check_kind(reader *r)
{
    static const struct {
        const char *path, *usual, *why;
    } others[] = {
        {"model_type", "gpt",
         "layers of state-space models, or images, are "
         "not read"},
        {"spec", NULL, "layers of another specification are not read"},
        {"lfm_layer_types", NULL, "layers that differ are not read"},
        {"final_logit_softcapping", NULL, "such a cap is not modelled"},
        {"attn_logit_softcapping", NULL, "such a cap is not modelled"},
        {"router_logit_softcapping", NULL, "such a cap is not modelled"},
        {"use_sink_attention", NULL, "attention sinks are not read"},
        {"qk_l2_norm", NULL, "such norms are not read"},
        {"patch_zero_bubble", NULL, "this pipeline schedule is not read"},
        {"patch_primus_pipeline", NULL, "this pipeline schedule is not read"},
        {"is_hybrid_model", NULL, "layers that differ are not read"},
        {"stage", NULL, "no stage but plain pre-training is read"},
    };
    for (size_t i = 0; i < FR_LENGTH(others); i++) {
        const fr_setting *setting =
            fr_settings_peek(&r->settings, others[i].path);
        if (setting == NULL || fr_setting_is_off(setting) ||
            (others[i].usual != NULL && setting->text != NULL &&
             strcmp(setting->text, others[i].usual) == 0))
            continue;
        return fr_setting_refuse(setting, others[i].why, r->err);
    }
    return FR_OK;
}

static fr_status check_backend(reader *r)
{
    const char *word = "megatron";
    const char *path = MODULE "framework";
    FR_TRY(fr_settings_word(&r->experiment, path, &word, r->err));
    if (fr_settings_first_below(&r->experiment, MODULE) == NULL)
        return fr_fail(r->err, FR_INPUT,
                       "%s:1: no modules.pre_trainer: experiments that "
                       "pre-train with Megatron-LM are read",
                       r->request->path);
    if (strcmp(word, "megatron") == 0)
        return FR_OK;
    return fr_setting_refuse(fr_settings_peek(&r->experiment, path),
                             "experiments that train with Megatron-LM are "
                             "read; give the configuration of that framework",
                             r->err);
}

static bool is_plain(const char *path)
{
    static const char *const names[] = {"wandb",
                                        "mlflow",
                                        "disable_",
                                        "stderr_sink",
                                        "file_sink",
                                        "log_",
                                        "mock_",
                                        "train_data",
                                        "valid_data",
                                        "test_data",
                                        "finetune",
                                        "auto_continue",
                                        "trainable",
                                        "sink_level",
                                        "num_workers",
                                        "profile",
                                        "use_pytorch",
                                        "turbo_deepep",
                                        "eod_mask",
                                        "init_method",
                                        "check_for",
                                        "exit_",
                                        "tokenizer",
                                        "lr_decay_iters",
                                        "spec",
                                        "ckpt",
                                        "create_attention_mask",
                                        "enable_experimental",
                                        "masked_softmax",
                                        "apply_rope_fusion",
                                        "no_persist",
                                        "ddp_average",
                                        "original_max",
                                        "rotary_scaling",
                                        "mscale",
                                        "moe_use_legacy",
                                        "moe_grouped",
                                        "eval",
                                        "torch_compile",
                                        "attention_softmax"};
    return fr_setting_begins(path, names, FR_LENGTH(names)) ||
           fr_megatron_is_plain_setting(path);
}

static fr_status read_experiment(reader *r)
{
    const fr_json_value *root = fr_json_root(r->experiment.documents.items[0]);
    const fr_json_value *module =
        fr_json_find(fr_json_find(root, "modules"), "pre_trainer");
    FR_TRY(check_backend(r));
    FR_TRY(put_module(r));
    FR_TRY(put_model(r));
    FR_TRY(fr_settings_put(&r->settings, fr_json_find(module, "overrides"), "",
                           r->err));
    FR_TRY(fr_settings_resolve(&r->settings, r->err));
    FR_TRY(check_kind(r));
    const fr_setting *tokenizer =
        fr_settings_find(&r->settings, "tokenizer_model");
    if (tokenizer != NULL && tokenizer->text != NULL)
        r->source.n_vocab = fr_megatron_tokenizer_vocab(tokenizer->text);
    FR_TRY(fr_megatron_take_settings(r->request, &r->settings, aliases,
                                     FR_LENGTH(aliases), &r->flags, r->err));
    return fr_megatron_read_settings(&r->flags, &r->source, &r->settings,
                                     is_plain, r->out, r->err);
}

/* ---- the file ------------------------------------------------------------ */

static bool looks_like(const char *text, size_t n)
{
    (void)n;
    return fr_yaml_find_mark(text, "modules:") > 0 &&
           (fr_yaml_find_mark(text, " pre_trainer:") > 0 ||
            fr_yaml_find_mark(text, " post_trainer:") > 0);
}

static fr_status read_config(const fr_config_request *request, fr_config *out,
                             fr_err *err)
{
    reader r = {.request = request, .out = out, .err = err};
    fr_settings_init(&r.experiment, request->path);
    fr_settings_init(&r.settings, request->path);
    fr_status status = fr_settings_read(request, &r.experiment, err);
    if (status == FR_OK)
        status = read_experiment(&r);
    fr_megatron_flags_release(&r.flags);
    fr_settings_release(&r.settings);
    fr_settings_release(&r.experiment);
    return status;
}

const fr_config_format fr_config_primus = {
    .summary = "the YAML of an experiment of Primus over Megatron-LM",
    .looks_like = looks_like,
    .read = read_config,
};
