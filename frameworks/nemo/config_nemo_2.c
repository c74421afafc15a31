/*
 * config_nemo_2.c: a recipe of NeMo 2 as NeMo-Run writes it to YAML (the
 * classes of nemo/collections/llm and nemo/lightning, NVIDIA/NeMo at 8cfedd72:
 * api.py, pretrain; MegatronStrategy, MegatronMixedPrecision,
 * MegatronOptimizerModule).
 */
#include "core/base/text.h"
#include "frameworks/nemo/nemo_reader.h"
#include "frameworks/read/yaml_marks.h"

#include <string.h>

bool fr_nemo_2_looks_like(const char *text)
{
    return fr_yaml_find_mark(text, "_target_: nemo.") > 0;
}

static const fr_megatron_alias_word schedules[] = {
    {"nemo.lightning.pytorch.optim.lr_scheduler.CosineAnnealingScheduler",
     "cosine"},
    {"nemo.lightning.pytorch.optim.lr_scheduler.WarmupHoldPolicyScheduler",
     "constant"},
    {"nemo.lightning.pytorch.optim.lr_scheduler.InverseSquareRootAnnealing"
     "Scheduler",
     "inverse-square-root"},
    {NULL, NULL}};

/* TransformerConfig's names that Megatron-LM has differently. */
#define OF_STRATEGY "trainer.strategy."

static const fr_megatron_alias aliases[] = {
    {.path = "model.config.layernorm_epsilon", .flag = "norm-epsilon"},
    {.path = "model.config.add_bias_linear",
     .flag = "disable-bias-linear",
     .is_inverted = true},
    {.path = "model.config.share_embeddings_and_output_weights",
     .flag = "untie-embeddings-and-output-weights",
     .is_inverted = true},
    {.path = "model.config.num_moe_experts", .flag = "num-experts"},
    {.path = "model.config.gated_linear_unit", .flag = "swiglu"},
    {.path = "model.config.gradient_accumulation_fusion",
     .flag = "no-gradient-accumulation-fusion",
     .is_inverted = true},
    {.path = "model.config.fp8", .flag = "fp8-format"},
    {.path = "model.config.fp4", .flag = "fp4-format"},
    {.path = "model.config._target_", .is_own = true},
    {.path = "model.config.seq_length", .is_own = true},
    {.path = "model.config."},
    {.path = "data.micro_batch_size"},
    {.path = "data.global_batch_size"},
    {.path = "data.seq_length"},
    {.path = OF_STRATEGY "virtual_pipeline_model_parallel_size",
     .flag = "num-virtual-stages-per-pipeline-rank"},
    {.path = OF_STRATEGY "num_layers_in_first_pipeline_stage",
     .flag = "decoder-first-pipeline-num-layers"},
    {.path = OF_STRATEGY "num_layers_in_last_pipeline_stage",
     .flag = "decoder-last-pipeline-num-layers"},
    {.path = OF_STRATEGY "_target_", .is_own = true},
    {.path = OF_STRATEGY "fsdp", .is_own = true},
    {.path = OF_STRATEGY "ddp", .is_own = true},
    {.path = OF_STRATEGY},
    {.path = OF_STRATEGY "ddp._target_", .is_own = true},
    {.path = OF_STRATEGY "ddp.grad_reduce_in_fp32", .is_own = true},
    {.path = OF_STRATEGY "ddp.bucket_size", .flag = "ddp-bucket-size"},
    {.path = OF_STRATEGY "ddp."},
    {.path = "trainer.plugins.fp8", .flag = "fp8-format"},
    {.path = "trainer.plugins.fp8_recipe"},
    {.path = "trainer.plugins.fp4", .flag = "fp4-format"},
    {.path = "trainer.max_steps", .flag = "train-iters"},
    {.path = "optim.config._target_", .is_own = true},
    {.path = "optim.config.bf16", .is_own = true},
    {.path = "optim.config.fp16", .is_own = true},
    {.path = "optim.config."},
    {.path = "optim.lr_scheduler._target_",
     .flag = "lr-decay-style",
     .words = schedules},
    {.path = "optim.lr_scheduler.warmup_steps", .flag = "lr-warmup-iters"},
    {.path = "optim.lr_scheduler.min_lr"},
};

/* grad_reduce_in_fp32 is on unless the precision says otherwise, whose value
 * goes before that of the strategy (MegatronMixedPrecision,
 * update_config_with_dtype_overrides). */
static fr_status read_gradients(fr_nemo_reader *r)
{
    static const char *const paths[] = {"trainer.plugins.grad_reduce_in_fp32",
                                        OF_STRATEGY "ddp.grad_reduce_in_fp32"};
    for (size_t i = 0; i < FR_LENGTH(paths); i++) {
        bool is_f32 = true;
        const fr_setting *setting = fr_settings_find(&r->settings, paths[i]);
        FR_TRY(fr_settings_bool(&r->settings, paths[i], &is_f32, r->err));
        if (setting == NULL)
            continue;
        if (i == 0)
            (void)fr_settings_find(&r->settings, paths[1]);
        return is_f32
                   ? FR_OK
                   : fr_megatron_put_flag(&r->flags, setting,
                                          "grad-reduce-in-bf16", NULL, r->err);
    }
    return FR_OK;
}

/* strategy.fsdp: "megatron" shards as ddp says; "pytorch" shards all. */
static fr_status read_fsdp(fr_nemo_reader *r)
{
    const char *word = NULL;
    const char *path = OF_STRATEGY "fsdp";
    const fr_setting *setting = fr_settings_find(&r->settings, path);
    FR_TRY(fr_settings_word(&r->settings, path, &word, r->err));
    if (word == NULL)
        return FR_OK;
    return fr_megatron_put_flag(
        &r->flags, setting,
        strcmp(word, "pytorch") == 0 ? "use-torch-fsdp2" : "use-megatron-fsdp",
        NULL, r->err);
}

/* A callback that turns overlap of communication on stands in a list. */
static fr_status read_callbacks(fr_nemo_reader *r)
{
    const fr_setting *setting =
        fr_settings_find(&r->settings, "trainer.callbacks");
    for (size_t i = 0; setting != NULL && setting->list != NULL &&
                       i < fr_json_n(setting->list);
         i++) {
        const fr_json_value *callback = fr_json_at(setting->list, i);
        const char *target;
        bool is_on = false;
        FR_TRY(
            fr_json_get_string_or(callback, "_target_", "", &target, r->err));
        if (strcmp(fr_nemo_class(target), "MegatronCommOverlapCallback") != 0)
            continue;
        FR_TRY(fr_json_get_bool_or(callback, "tp_comm_overlap", false, &is_on,
                                   r->err));
        if (is_on)
            FR_TRY(fr_megatron_put_flag(&r->flags, setting, "tp-comm-overlap",
                                        NULL, r->err));
    }
    return FR_OK;
}

/* The class of the model's configuration; its own sizes are not in the file. */
static fr_status read_class(fr_nemo_reader *r)
{
    const char *target = NULL;
    FR_TRY(fr_settings_word(&r->settings, "model.config._target_", &target,
                            r->err));
    if (target == NULL)
        return FR_OK;
    r->source.said = fr_nemo_class(target);
    r->source.known = fr_nemo_known_model(target);
    r->source.vocab = "model.config.vocab_size";
    return FR_OK;
}

static fr_status check_kind(fr_nemo_reader *r)
{
    const fr_setting *peft = fr_settings_peek(&r->settings, "peft._target_");
    if (peft != NULL)
        return fr_setting_refuse(peft, "training of adapters is not modelled",
                                 r->err);
    if (fr_settings_peek(&r->settings, "data.micro_batch_size") != NULL)
        return FR_OK;
    return fr_fail(r->err, FR_INPUT,
                   "%s:1: no data.micro_batch_size: recipes of NeMo 2 for "
                   "language models (llm.pretrain, llm.finetune) are read",
                   r->request->path);
}

fr_status fr_nemo_2_read(fr_nemo_reader *r)
{
    FR_TRY(check_kind(r));
    FR_TRY(fr_megatron_take_settings(r->request, &r->settings, aliases,
                                     FR_LENGTH(aliases), &r->flags, r->err));
    FR_TRY(fr_nemo_read_world(r));
    FR_TRY(fr_nemo_put_precision(r, "trainer.plugins.precision"));
    FR_TRY(read_gradients(r));
    FR_TRY(read_fsdp(r));
    FR_TRY(read_callbacks(r));
    FR_TRY(read_class(r));
    return fr_megatron_read_settings(&r->flags, &r->source, &r->settings,
                                     fr_nemo_is_plain, r->out, r->err);
}
