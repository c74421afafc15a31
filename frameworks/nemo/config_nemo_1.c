/*
 * config_nemo_1.c: the YAML of NeMo 1 (NVIDIA/NeMo at 8cfedd72,
 * examples/nlp/language_modeling/conf; NVIDIA/NeMo-Framework-Launcher at
 * 26e42fa9, launcher_scripts/conf/training).  What each key comes to:
 * nemo/collections/nlp/models/language_modeling/megatron_base_model.py and
 * megatron_gpt_model.py (build_transformer_config, setup_optimization).
 */
#include "core/base/text.h"
#include "frameworks/nemo/nemo_reader.h"

#include <string.h>

static const fr_megatron_alias_word normalizations[] = {
    {"layernorm", "LayerNorm"},
    {"layernorm1p", "LayerNorm"},
    {"rmsnorm", "RMSNorm"},
    {NULL, NULL}};
static const fr_megatron_alias_word schedules[] = {
    {"CosineAnnealing", "cosine"},
    {"WarmupAnnealing", "linear"},
    {"InverseSquareRootAnnealing", "inverse-square-root"},
    {"WarmupHoldPolicy", "constant"},
    {NULL, NULL}};
static const fr_megatron_alias_word optimizers[] = {
    {"fused_adam", "adam"},
    {"distributed_fused_adam", "adam"},
    {"mcore_distributed_optim", "adam"},
    {"adamw", "adam"},
    {NULL, NULL}};

/* Names that Megatron Core has differently. */
static const fr_megatron_alias aliases[] = {
    {.path = "model.encoder_seq_length", .flag = "seq-length"},
    {.path = "model.virtual_pipeline_model_parallel_size",
     .flag = "num-virtual-stages-per-pipeline-rank"},
    {.path = "model.normalization",
     .flag = "normalization",
     .words = normalizations},
    {.path = "model.layernorm_epsilon", .flag = "norm-epsilon"},
    {.path = "model.bias", .flag = "disable-bias-linear", .is_inverted = true},
    {.path = "model.qkv_bias", .flag = "add-qkv-bias"},
    {.path = "model.rotary_percentage", .flag = "rotary-percent"},
    {.path = "model.share_embeddings_and_output_weights",
     .flag = "untie-embeddings-and-output-weights",
     .is_inverted = true},
    {.path = "model.num_moe_experts", .flag = "num-experts"},
    {.path = "model.activations_checkpoint_granularity",
     .flag = "recompute-granularity"},
    {.path = "model.activations_checkpoint_method", .flag = "recompute-method"},
    {.path = "model.activations_checkpoint_num_layers",
     .flag = "recompute-num-layers"},
    {.path = "model.ub_tp_comm_overlap", .flag = "tp-comm-overlap"},
    {.path = "model.gradient_accumulation_fusion",
     .flag = "no-gradient-accumulation-fusion",
     .is_inverted = true},
    {.path = "model.override_vocab_size", .flag = "vocab-size"},
    {.path = "model.num_layers_in_first_pipeline_stage",
     .flag = "decoder-first-pipeline-num-layers"},
    {.path = "model.num_layers_in_last_pipeline_stage",
     .flag = "decoder-last-pipeline-num-layers"},
    {.path = "model.optim.name", .flag = "optimizer", .words = optimizers},
    {.path = "model.optim.lr", .flag = "lr"},
    {.path = "model.optim.weight_decay", .flag = "weight-decay"},
    {.path = "model.optim.eps", .flag = "adam-eps"},
    {.path = "model.optim.overlap_grad_sync", .flag = "overlap-grad-reduce"},
    {.path = "model.optim.overlap_param_sync", .flag = "overlap-param-gather"},
    {.path = "model.optim.ddp_bucket_size", .flag = "ddp-bucket-size"},
    {.path = "model.optim.sched.name",
     .flag = "lr-decay-style",
     .words = schedules},
    {.path = "model.optim.sched.warmup_steps", .flag = "lr-warmup-iters"},
    {.path = "model.optim.sched.min_lr", .flag = "min-lr"},
    {.path = "model.tokenizer.type", .flag = "tokenizer-type"},
    {.path = "trainer.max_steps", .flag = "train-iters"},
    {.path = "trainer.gradient_clip_val", .flag = "clip-grad"},
    /* Read below, or of no meaning to the plan. */
    {.path = "model.fp8", .is_own = true},
    {.path = "model.activation", .is_own = true},
    {.path = "model.openai_gelu", .is_own = true},
    {.path = "model.cpu_offloading", .is_own = true},
    {.path = "model.cpu_offloading_num_layers", .is_own = true},
    {.path = "model.fsdp", .is_own = true},
    {.path = "model.precision", .is_own = true},
    {.path = "model.mcore_customization_config."},
    {.path = "model."},
};

/* ---- what is more than a name -------------------------------------------- */

static fr_status read_activation(fr_nemo_reader *r)
{
    static const struct {
        const char *word;
        fr_activation kind;
        bool is_gated;
    } others[] = {{"geglu", FR_ACTIVATION_GELU, true},
                  {"fast-geglu", FR_ACTIVATION_GELU, true},
                  {"squared-relu", FR_ACTIVATION_RELU_SQUARED, false},
                  {"relu", FR_ACTIVATION_RELU, false}};
    const char *word = "gelu";
    const char *path = "model.activation";
    const fr_setting *setting = fr_settings_find(&r->settings, path);
    (void)fr_settings_find(&r->settings, "model.openai_gelu");
    FR_TRY(fr_settings_word(&r->settings, path, &word, r->err));
    if (setting == NULL || strcmp(word, "gelu") == 0)
        return FR_OK;
    if (strcmp(word, "swiglu") == 0 || strcmp(word, "fast-swiglu") == 0)
        return fr_megatron_put_flag(&r->flags, setting, "swiglu", NULL, r->err);
    for (size_t i = 0; i < FR_LENGTH(others); i++)
        if (strcmp(word, others[i].word) == 0) {
            r->source.activation = others[i].kind;
            r->source.has_activation = true;
            return others[i].is_gated
                       ? fr_megatron_put_flag(&r->flags, setting, "swiglu",
                                              NULL, r->err)
                       : FR_OK;
        }
    return fr_setting_refuse(
        setting, "gelu, geglu, swiglu and squared-relu are read", r->err);
}

/* fp8 with one of its formats; the recipe is Transformer Engine's default. */
static fr_status read_fp8(fr_nemo_reader *r)
{
    bool is_on = false;
    const fr_setting *setting = fr_settings_find(&r->settings, "model.fp8");
    FR_TRY(fr_settings_bool(&r->settings, "model.fp8", &is_on, r->err));
    return is_on ? fr_megatron_put_flag(&r->flags, setting, "fp8-format",
                                        "hybrid", r->err)
                 : FR_OK;
}

static fr_status read_precision(fr_nemo_reader *r)
{
    bool is_o2 = false;
    FR_TRY(fr_nemo_put_precision(r, "trainer.precision"));
    FR_TRY(fr_settings_bool(&r->settings, "model.megatron_amp_O2", &is_o2,
                            r->err));
    if (!is_o2 && (fr_megatron_has(&r->flags, "bf16") ||
                   fr_megatron_has(&r->flags, "fp16")))
        fr_buffer_puts(&r->out->notes,
                       "megatron_amp_O2 is off: NeMo keeps parameters in "
                       "float32 and casts them for each product; predicted "
                       "with parameters of 16 bits and a float32 copy\n");
    return read_fp8(r);
}

/* Gradients add up in float32 unless grad_sync_dtype says otherwise; the
 * distributed optimizers are those that have the word in their name. */
static fr_status read_optimizer(fr_nemo_reader *r)
{
    const char *name = "", *dtype = "fp32";
    const char *path = "model.optim.name";
    const fr_setting *setting = fr_settings_find(&r->settings, path);
    FR_TRY(fr_settings_word(&r->settings, path, &name, r->err));
    if (strstr(name, "distributed") != NULL)
        FR_TRY(fr_megatron_put_flag(&r->flags, setting,
                                    "use-distributed-optimizer", NULL, r->err));
    path = "model.optim.grad_sync_dtype";
    setting = fr_settings_find(&r->settings, path);
    FR_TRY(fr_settings_word(&r->settings, path, &dtype, r->err));
    if (strcmp(dtype, "bf16") == 0)
        FR_TRY(fr_megatron_put_flag(&r->flags, setting, "grad-reduce-in-bf16",
                                    NULL, r->err));
    return fr_nemo_put_betas(r, "model.optim.betas");
}

/* torch's FSDP. */
static fr_status read_fsdp(fr_nemo_reader *r)
{
    static const char *const words[] = {"full", "grad"};
    static const char *const flags[] = {"optim_grads_params", "optim_grads"};
    const char *word = "full", *dtype = "32";
    const char *path = "model.fsdp_sharding_strategy";
    const fr_setting *setting = fr_settings_find(&r->settings, path);
    bool is_on = false;
    FR_TRY(fr_settings_bool(&r->settings, "model.fsdp", &is_on, r->err));
    if (!is_on) {
        fr_settings_skip(&r->settings, "model.fsdp_");
        return FR_OK;
    }
    FR_TRY(fr_settings_word(&r->settings, path, &word, r->err));
    FR_TRY(fr_settings_word(&r->settings, "model.fsdp_grad_reduce_dtype",
                            &dtype, r->err));
    const int i = fr_text_find(word, words, FR_LENGTH(words));
    if (i < 0)
        return fr_setting_refuse(setting,
                                 "no plan shards within the ranks of a node "
                                 "that NeMo does not name; give full or grad",
                                 r->err);
    setting = fr_settings_peek(&r->settings, "model.fsdp");
    if (strcmp(dtype, "32") != 0)
        FR_TRY(fr_megatron_put_flag(&r->flags, setting, "grad-reduce-in-bf16",
                                    NULL, r->err));
    FR_TRY(fr_megatron_put_flag(&r->flags, setting, "use-megatron-fsdp", NULL,
                                r->err));
    return fr_megatron_put_flag(&r->flags, setting,
                                "data-parallel-sharding-strategy", flags[i],
                                r->err);
}

static fr_status read_offload(fr_nemo_reader *r)
{
    bool is_on = false;
    const char *n = NULL;
    const char *path = "model.cpu_offloading_num_layers";
    const fr_setting *setting = fr_settings_find(&r->settings, path);
    FR_TRY(
        fr_settings_bool(&r->settings, "model.cpu_offloading", &is_on, r->err));
    if (!is_on || setting == NULL)
        return FR_OK;
    FR_TRY(fr_settings_word(&r->settings, path, &n, r->err));
    return fr_megatron_put_flag(&r->flags, setting, "cpu-offloading-num-layers",
                                n, r->err);
}

/* Outside of Transformer Engine attention is fused where the key says so. */
static fr_status read_attention(fr_nemo_reader *r)
{
    bool is_engine = false, is_core = false, is_fused = false;
    const fr_setting *setting =
        fr_settings_find(&r->settings, "model.use_flash_attention");
    FR_TRY(fr_settings_bool(&r->settings, "model.use_flash_attention",
                            &is_fused, r->err));
    FR_TRY(fr_settings_bool(&r->settings, "model.transformer_engine",
                            &is_engine, r->err));
    FR_TRY(fr_settings_bool(&r->settings, "model.mcore_gpt", &is_core, r->err));
    if (setting == NULL || is_engine || is_core || is_fused)
        return FR_OK;
    return fr_megatron_put_flag(&r->flags, setting, "attention-backend",
                                "unfused", r->err);
}

/* ---- the model ----------------------------------------------------------- */

/* Keys of models that are no decoders, or whose layers are not attention. */
static fr_status check_kind(fr_nemo_reader *r)
{
    static const struct {
        const char *path, *why;
    } others[] = {
        {"model.encoder.", "models of encoder and decoder are not read"},
        {"model.pipeline_model_parallel_split_",
         "models of encoder and decoder are not read"},
        {"model.bert_", "encoders of NeMo are not read"},
        {"model.num_tokentypes", "encoders of NeMo are not read"},
        {"model.mamba_", "layers of state-space models are not modelled"},
        {"model.hybrid_", "layers of state-space models are not modelled"},
        {"model.hyena.", "such layers are not modelled"},
        {"model.logits_soft_cap", "such a cap of logits is not modelled"},
        {"model.retro", "retrieval is not modelled"},
        {"model.mm_cfg.", "models of images and text are not read"},
        {"model.peft.peft_scheme", "training of adapters is not modelled"},
        {"model.kd_loss", "distillation is not modelled"},
    };
    for (size_t i = 0; i < FR_LENGTH(others); i++) {
        const fr_setting *setting =
            fr_settings_first_below(&r->settings, others[i].path);
        const size_t n = strlen(others[i].path);
        const bool is_group = strchr("._", others[i].path[n - 1]) != NULL;
        if (setting != NULL && (is_group || !fr_setting_is_off(setting)))
            return fr_setting_refuse(setting, others[i].why, r->err);
    }
    if (fr_settings_peek(&r->settings, "model.micro_batch_size") == NULL)
        return fr_fail(r->err, FR_INPUT,
                       "%s:1: no model.micro_batch_size: language models that "
                       "NeMo 1 trains with Megatron are read, no other models",
                       r->request->path);
    return FR_OK;
}

/* A tokenizer of the hub, or a file, whose size is known. */
static void read_tokenizer(fr_nemo_reader *r)
{
    static const char *const paths[] = {"model.tokenizer.type",
                                        "model.tokenizer.model"};
    r->source.vocab = "model.override_vocab_size";
    for (size_t i = 0; i < FR_LENGTH(paths); i++) {
        const fr_setting *name = fr_settings_find(&r->settings, paths[i]);
        if (name != NULL && name->text != NULL && r->source.n_vocab == 0)
            r->source.n_vocab = fr_megatron_tokenizer_vocab(name->text);
    }
}

fr_status fr_nemo_1_read(fr_nemo_reader *r)
{
    FR_TRY(check_kind(r));
    FR_TRY(fr_megatron_take_settings(r->request, &r->settings, aliases,
                                     FR_LENGTH(aliases), &r->flags, r->err));
    FR_TRY(fr_nemo_read_world(r));
    FR_TRY(read_precision(r));
    FR_TRY(read_activation(r));
    FR_TRY(read_optimizer(r));
    FR_TRY(read_fsdp(r));
    FR_TRY(read_offload(r));
    FR_TRY(read_attention(r));
    read_tokenizer(r);
    return fr_megatron_read_settings(&r->flags, &r->source, &r->settings,
                                     fr_nemo_is_plain, r->out, r->err);
}
