/*
 * config_bridge.c: YAML of Megatron-Bridge (NVIDIA-NeMo/Megatron-Bridge at
 * 067f987d): the run_config.yaml that it saves with a checkpoint, whose parts
 * are those of ConfigContainer (src/megatron/bridge/training/config.py), and
 * the files of overrides that its recipes take (tutorials/recipes).  The pairs
 * of names are those of scripts/translate_mlm_to_bridge.py.
 */
#include "core/base/text.h"
#include "frameworks/framework_list.h"
#include "frameworks/nemo/nemo_reader.h"
#include "frameworks/read/yaml_marks.h"

#include <string.h>

static const fr_megatron_alias aliases[] = {
    {.path = "model.layernorm_epsilon", .flag = "norm-epsilon"},
    {.path = "model.add_bias_linear",
     .flag = "disable-bias-linear",
     .is_inverted = true},
    {.path = "model.share_embeddings_and_output_weights",
     .flag = "untie-embeddings-and-output-weights",
     .is_inverted = true},
    {.path = "model.num_moe_experts", .flag = "num-experts"},
    {.path = "model.virtual_pipeline_model_parallel_size",
     .flag = "num-virtual-stages-per-pipeline-rank"},
    {.path = "model.num_layers_in_first_pipeline_stage",
     .flag = "decoder-first-pipeline-num-layers"},
    {.path = "model.num_layers_in_last_pipeline_stage",
     .flag = "decoder-last-pipeline-num-layers"},
    {.path = "model.gradient_accumulation_fusion",
     .flag = "no-gradient-accumulation-fusion",
     .is_inverted = true},
    {.path = "model.use_te_rng_tracker", .flag = "te-rng-tracker"},
    {.path = "model.seq_length", .is_own = true},
    {.path = "model.gated_linear_unit", .is_own = true},
    {.path = "model.recompute_modules", .is_own = true},
    {.path = "model.cpu_offloading_num_layers", .is_own = true},
    {.path = "model.cpu_offloading", .is_own = true},
    {.path = "model.bf16", .is_own = true},
    {.path = "model.fp16", .is_own = true},
    {.path = "model.fp8", .flag = "fp8-format"},
    {.path = "model.fp4", .flag = "fp4-format"},
    {.path = "model.fp8_recipe", .is_own = true},
    {.path = "model.fp4_recipe", .is_own = true},
    {.path = "model.moe_router_topk_limited_devices", .is_own = true},
    {.path = "model.cuda_graph_scope"},
    {.path = "model._target_", .is_own = true},
    {.path = "model."},
    {.path = "tokenizer.vocab_size"},
    {.path = "train."},
    {.path = "optimizer.bf16", .is_own = true},
    {.path = "optimizer.fp16", .is_own = true},
    {.path = "optimizer.fp8_recipe", .is_own = true},
    {.path = "optimizer.overlap_param_gather", .is_own = true},
    {.path = "optimizer.use_distributed_optimizer", .is_own = true},
    {.path = "optimizer."},
    {.path = "scheduler.lr_decay_iters", .is_own = true},
    {.path = "scheduler."},
    {.path = "ddp.grad_reduce_in_fp32", .is_own = true},
    {.path = "ddp.use_distributed_optimizer"},
    {.path = "ddp.overlap_grad_reduce"},
    {.path = "ddp.overlap_param_gather"},
    {.path = "ddp.bucket_size", .flag = "ddp-bucket-size"},
    {.path = "ddp.num_distributed_optimizer_instances"},
    {.path = "ddp.data_parallel_sharding_strategy"},
    {.path = "ddp.use_megatron_fsdp"},
    {.path = "dist.use_megatron_fsdp"},
    {.path = "dist.use_torch_fsdp2"},
    {.path = "dist.use_tp_pp_dp_mapping"},
    {.path = "comm_overlap.tp_comm_overlap"},
    {.path = "mixed_precision.fp8", .flag = "fp8-format"},
    {.path = "mixed_precision.fp8_recipe", .is_own = true},
    {.path = "mixed_precision.fp4", .flag = "fp4-format"},
    {.path = "rng.seed"},
};

/* ---- what is more than a name -------------------------------------------- */

/* Tokens of a sample: those of the data, whose configuration has had two names,
 * else of the model. */
static fr_status read_seq(fr_nemo_reader *r)
{
    static const char *const paths[] = {
        "dataset.seq_length", "dataset.sequence_length", "model.seq_length"};
    bool has_seq = false;
    for (size_t i = 0; i < FR_LENGTH(paths); i++) {
        const char *text = NULL;
        const fr_setting *setting = fr_settings_find(&r->settings, paths[i]);
        FR_TRY(fr_settings_word(&r->settings, paths[i], &text, r->err));
        if (text == NULL)
            continue;
        if (!has_seq)
            FR_TRY(fr_megatron_put_flag(&r->flags, setting, "seq-length", text,
                                        r->err));
        if (i == 2 && fr_settings_peek(&r->settings,
                                       "model.max_position_embeddings") == NULL)
            FR_TRY(fr_megatron_put_flag(
                &r->flags, setting, "max-position-embeddings", text, r->err));
        has_seq = true;
    }
    return FR_OK;
}

static fr_status read_activation(fr_nemo_reader *r)
{
    const char *word = "";
    bool is_gated = false;
    const char *path = "model.activation_func._target_";
    const fr_setting *setting = fr_settings_find(&r->settings, path);
    const fr_setting *gate =
        fr_settings_find(&r->settings, "model.gated_linear_unit");
    FR_TRY(fr_settings_bool(&r->settings, "model.gated_linear_unit", &is_gated,
                            r->err));
    if (setting == NULL)
        return is_gated ? fr_megatron_put_flag(&r->flags, gate, "swiglu", NULL,
                                               r->err)
                        : FR_OK;
    FR_TRY(fr_settings_word(&r->settings, path, &word, r->err));
    const char *name = fr_nemo_class(word);
    if (is_gated && strcmp(name, "silu") == 0)
        return fr_megatron_put_flag(&r->flags, setting, "swiglu", NULL, r->err);
    if ((!is_gated && strcmp(name, "gelu") == 0) || r->request->model != NULL)
        return FR_OK;
    return fr_setting_refuse(setting,
                             "gelu and a gated silu are read; name the model "
                             "with --model",
                             r->err);
}

/* A precision by its name, or as an object of switches. */
static fr_status read_precision(fr_nemo_reader *r)
{
    static const struct {
        const char *name, *flag, *fp8;
    } named[] = {
        {"bf16_with_fp8_delayed_scaling", "bf16", "delayed"},
        {"bf16_with_fp8_current_scaling", "bf16", "tensorwise"},
        {"bf16_with_fp8_subchannel_scaling", "bf16", "blockwise"},
        {"bf16_with_mxfp8", "bf16", "mxfp8"},
        {"nanov2_bf16_with_fp8_current_scaling", "bf16", "tensorwise"},
        {"bf16_mixed", "bf16", NULL},
        {"16_mixed", "fp16", NULL},
        {"fp16_mixed", "fp16", NULL},
    };
    const char *word = NULL;
    const char *path = "mixed_precision";
    if (fr_settings_peek(&r->settings, path) == NULL)
        path = "mixed_precision._target_"; /* {_target_: ...bf16_mixed} */
    const fr_setting *setting = fr_settings_find(&r->settings, path);
    FR_TRY(fr_settings_word(&r->settings, path, &word, r->err));
    const bool is_config = word != NULL && strcmp(fr_nemo_class(word),
                                                  "MixedPrecisionConfig") == 0;
    if (word != NULL && !is_config) {
        for (size_t i = 0; i < FR_LENGTH(named); i++) {
            if (strcmp(fr_nemo_class(word), named[i].name) != 0)
                continue;
            FR_TRY(fr_megatron_put_flag(&r->flags, setting, named[i].flag, NULL,
                                        r->err));
            if (named[i].fp8 == NULL)
                return FR_OK;
            FR_TRY(fr_megatron_put_flag(&r->flags, setting, "fp8-format",
                                        "hybrid", r->err));
            return fr_megatron_put_flag(&r->flags, setting, "fp8-recipe",
                                        named[i].fp8, r->err);
        }
        return fr_setting_refuse(setting,
                                 "give bf16_mixed, fp16_mixed or one "
                                 "of bf16_with_fp8_...",
                                 r->err);
    }
    FR_TRY(fr_nemo_put_switch(r, "mixed_precision.bf16", "bf16"));
    FR_TRY(fr_nemo_put_switch(r, "mixed_precision.fp16", "fp16"));
    if (word == NULL) {
        FR_TRY(fr_nemo_put_switch(r, "model.bf16", "bf16"));
        FR_TRY(fr_nemo_put_switch(r, "model.fp16", "fp16"));
    }
    return FR_OK;
}

/* The recipe counts where fp8 is on. */
static fr_status read_scaling(fr_nemo_reader *r)
{
    static const char *const paths[] = {"mixed_precision.fp8_recipe",
                                        "model.fp8_recipe"};
    for (size_t i = 0; i < FR_LENGTH(paths); i++) {
        const char *word = NULL;
        const fr_setting *setting = fr_settings_find(&r->settings, paths[i]);
        FR_TRY(fr_settings_word(&r->settings, paths[i], &word, r->err));
        if (word != NULL && fr_megatron_has(&r->flags, "fp8-format") &&
            !fr_megatron_has(&r->flags, "fp8-recipe"))
            FR_TRY(fr_megatron_put_flag(&r->flags, setting, "fp8-recipe", word,
                                        r->err));
    }
    return FR_OK;
}

/* The precision's value goes before that of ddp
 * (training/mixed_precision.py, MixedPrecisionConfig.setup). */
static fr_status read_gradients(fr_nemo_reader *r)
{
    static const char *const paths[] = {"mixed_precision.grad_reduce_in_fp32",
                                        "ddp.grad_reduce_in_fp32"};
    bool is_f32 = true;
    const fr_setting *setting = NULL;
    for (size_t i = FR_LENGTH(paths); i-- > 0;) {
        const fr_setting *next = fr_settings_find(&r->settings, paths[i]);
        FR_TRY(fr_settings_bool(&r->settings, paths[i], &is_f32, r->err));
        setting = next != NULL ? next : setting;
    }
    if (setting == NULL || is_f32 || fr_megatron_has(&r->flags, "fp16"))
        return FR_OK;
    return fr_megatron_put_flag(&r->flags, setting, "grad-reduce-in-bf16", NULL,
                                r->err);
}

/* recompute_modules has a value where nothing is made again. */
static fr_status read_recompute(fr_nemo_reader *r)
{
    const char *word = "";
    const char *path = "model.recompute_granularity";
    const fr_setting *modules =
        fr_settings_find(&r->settings, "model.recompute_modules");
    FR_TRY(fr_settings_word(&r->settings, path, &word, r->err));
    if (strcmp(word, "selective") != 0 || modules == NULL ||
        modules->list == NULL)
        return FR_OK;
    fr_shell_word *words = fr_arena_array(
        &r->flags.shell.arena, fr_json_n(modules->list), sizeof *words);
    fr_megatron_flag flag = {.name = "recompute-modules",
                             .values = words,
                             .n_values = fr_json_n(modules->list),
                             .setting = modules};
    if (words == NULL)
        return fr_fail_no_memory(r->err);
    for (size_t i = 0; i < flag.n_values; i++)
        FR_TRY(fr_json_as_string(fr_json_at(modules->list, i), &words[i].text,
                                 r->err));
    FR_TRY_PUSH(&r->flags.flags, flag, r->err);
    return FR_OK;
}

static fr_status read_offload(fr_nemo_reader *r)
{
    bool is_on = false;
    const char *n = NULL;
    const char *path = "model.cpu_offloading_num_layers";
    const fr_setting *setting = fr_settings_find(&r->settings, path);
    FR_TRY(
        fr_settings_bool(&r->settings, "model.cpu_offloading", &is_on, r->err));
    FR_TRY(fr_settings_word(&r->settings, path, &n, r->err));
    return is_on && n != NULL
               ? fr_megatron_put_flag(&r->flags, setting,
                                      "cpu-offloading-num-layers", n, r->err)
               : FR_OK;
}

/* An enumerator of AttnBackend, by its number: flash 1, fused 2, unfused 3,
 * local 4, auto 5. */
static fr_status read_attention(fr_nemo_reader *r)
{
    static const char *const words[] = {"flash", "fused", "unfused", "local",
                                        "auto"};
    const char *path = "model.attention_backend._args_";
    const fr_setting *setting = fr_settings_find(&r->settings, path);
    int64_t i = 5;
    fr_settings_skip(&r->settings, "model.attention_backend.");
    if (setting == NULL || setting->list == NULL ||
        fr_json_n(setting->list) != 1)
        return FR_OK;
    FR_TRY(fr_json_as_i64(fr_json_at(setting->list, 0), &i, r->err));
    if (i < 1 || i > (int64_t)FR_LENGTH(words))
        return fr_setting_refuse(setting, "AttnBackend has 1 to 5", r->err);
    return fr_megatron_put_flag(&r->flags, setting, "attention-backend",
                                words[i - 1], r->err);
}

static fr_status check_kind(fr_nemo_reader *r)
{
    static const char *const paths[] = {"peft._target_", "peft.dim",
                                        "peft.peft_scheme"};
    for (size_t i = 0; i < FR_LENGTH(paths); i++) {
        const fr_setting *peft = fr_settings_peek(&r->settings, paths[i]);
        if (peft != NULL)
            return fr_setting_refuse(
                peft, "training of adapters is not modelled", r->err);
    }
    const fr_setting *teacher =
        fr_settings_peek(&r->settings, "model.teacher._target_");
    if (teacher != NULL)
        return fr_setting_refuse(teacher, "distillation is not modelled",
                                 r->err);
    return FR_OK;
}

static fr_status read_source(fr_nemo_reader *r)
{
    const char *target = NULL;
    FR_TRY(fr_settings_word(&r->settings, "model._target_", &target, r->err));
    r->source.vocab = "model.vocab_size";
    if (target != NULL) {
        r->source.said = fr_nemo_class(target);
        r->source.known = fr_nemo_known_model(target);
    }
    return FR_OK;
}

/* ---- the file ------------------------------------------------------------ */

/* A file of overrides says only what it changes of a recipe; the other values
 * are those that recipes begin with (recipes/common.py, _pretrain_common). */
static fr_status take_recipe(fr_nemo_reader *r)
{
    static const struct {
        const char *path, *flag;
    } usual[] = {
        {"ddp.use_distributed_optimizer", "use-distributed-optimizer"},
        {"ddp.overlap_grad_reduce", "overlap-grad-reduce"},
        {"ddp.overlap_param_gather", "overlap-param-gather"},
    };
    if (fr_settings_peek(&r->settings, "_target_") != NULL ||
        fr_settings_peek(&r->settings, "model._target_") != NULL)
        return FR_OK;
    const fr_setting *any = &r->settings.items.items[0];
    for (size_t i = 0; i < FR_LENGTH(usual); i++)
        if (fr_settings_peek(&r->settings, usual[i].path) == NULL)
            FR_TRY(fr_megatron_put_flag(&r->flags, any, usual[i].flag, NULL,
                                        r->err));
    if (fr_settings_first_below(&r->settings, "mixed_precision") == NULL)
        FR_TRY(fr_megatron_put_flag(&r->flags, any, "bf16", NULL, r->err));
    fr_buffer_puts(&r->out->notes,
                   "the file changes a recipe, whose other values it does not "
                   "say: bf16, a distributed optimizer and overlap are taken, "
                   "as most recipes have them; the run_config.yaml of a run "
                   "has all values\n");
    return FR_OK;
}

static fr_status read_bridge(fr_nemo_reader *r)
{
    FR_TRY(check_kind(r));
    FR_TRY(fr_megatron_take_settings(r->request, &r->settings, aliases,
                                     FR_LENGTH(aliases), &r->flags, r->err));
    FR_TRY(take_recipe(r));
    FR_TRY(read_seq(r));
    FR_TRY(read_activation(r));
    FR_TRY(read_precision(r));
    FR_TRY(read_scaling(r));
    FR_TRY(read_gradients(r));
    FR_TRY(read_recompute(r));
    FR_TRY(read_offload(r));
    FR_TRY(read_attention(r));
    FR_TRY(read_source(r));
    return fr_megatron_read_settings(&r->flags, &r->source, &r->settings,
                                     fr_nemo_is_plain, r->out, r->err);
}

static bool looks_like(const char *text, size_t n)
{
    static const char *const marks[] = {
        "ddp:",        "dist:",   "scheduler:", "rng:",
        "checkpoint:", "logger:", "dataset:"};
    (void)n;
    if (fr_yaml_find_mark(text, "_target_: megatron.bridge") > 0)
        return !fr_nemo_2_looks_like(text);
    int n_marks = 0;
    for (size_t i = 0; i < FR_LENGTH(marks); i++)
        n_marks += fr_yaml_find_mark(text, marks[i]) > 0;
    return fr_yaml_find_mark(text, "train:") > 0 &&
           fr_yaml_find_mark(text, "model:") > 0 &&
           fr_yaml_find_mark(text, "trainer:") == 0 && n_marks >= 2;
}

static fr_status read_config(const fr_config_request *request, fr_config *out,
                             fr_err *err)
{
    return fr_nemo_read_config(request, read_bridge, out, err);
}

const fr_config_format fr_config_megatron_bridge = {
    .summary = "the YAML of Megatron-Bridge: run_config.yaml, or overrides",
    .looks_like = looks_like,
    .read = read_config,
};
