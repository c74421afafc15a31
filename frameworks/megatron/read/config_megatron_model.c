/* config_megatron_model.c: the model that arguments of Megatron-LM say
 * (megatron/training/arguments.py, _add_network_size_args). */
#include "frameworks/megatron/read/megatron_flags.h"
#include "frameworks/megatron/target_megatron.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Its flags, all that fr_megatron_read_model() looks at. */
static const char *const model_flags[] = {"num-layers",
                                          "hidden-size",
                                          "ffn-hidden-size",
                                          "num-attention-heads",
                                          "group-query-attention",
                                          "num-query-groups",
                                          "kv-channels",
                                          "max-position-embeddings",
                                          "position-embedding-type",
                                          "use-rotary-position-embeddings",
                                          "rotary-base",
                                          "rotary-percent",
                                          "use-rope-scaling",
                                          "rope-scaling-factor",
                                          "normalization",
                                          "norm-epsilon",
                                          "swiglu",
                                          "no-bias-gelu-fusion",
                                          "disable-bias-linear",
                                          "add-qkv-bias",
                                          "untie-embeddings-and-output-weights",
                                          "qk-layernorm",
                                          "window-size",
                                          "vocab-size",
                                          "padded-vocab-size",
                                          "make-vocab-size-divisible-by",
                                          "multi-latent-attention",
                                          "q-lora-rank",
                                          "kv-lora-rank",
                                          "qk-head-dim",
                                          "qk-pos-emb-head-dim",
                                          "v-head-dim",
                                          "num-experts",
                                          "moe-router-topk",
                                          "moe-router-score-function",
                                          "moe-router-pre-softmax",
                                          "moe-router-num-groups",
                                          "moe-router-group-topk",
                                          "moe-router-topk-scaling-factor",
                                          "moe-router-enable-expert-bias",
                                          "moe-aux-loss-coeff",
                                          "moe-router-load-balancing-type",
                                          "moe-ffn-hidden-size",
                                          "moe-shared-expert-intermediate-size",
                                          "moe-shared-expert-gate",
                                          "moe-layer-freq",
                                          "mtp-num-layers",
                                          "mtp-loss-scaling-factor",
                                          "use-checkpoint-args"};

void fr_megatron_skip_model(fr_megatron_flags *flags)
{
    for (size_t i = 0; i < FR_LENGTH(model_flags); i++)
        (void)fr_megatron_find(flags, model_flags[i]);
}

static fr_status need(fr_megatron_flags *flags, const char *name, int64_t *out,
                      fr_err *err)
{
    if (!fr_megatron_has(flags, name))
        return fr_fail(err, FR_INPUT,
                       "%s:1: no --%s, of which the model is made; name the "
                       "model with --model",
                       flags->path, name);
    return fr_megatron_i64(flags, name, 1, out, err);
}

static fr_status read_vocab(fr_megatron_flags *flags, int version,
                            fr_model *model, fr_buffer *notes, fr_err *err)
{
    const char *tokenizer;
    FR_TRY(fr_megatron_word(flags, "tokenizer-type", "", &tokenizer, err));
    (void)fr_megatron_has(flags, "make-vocab-size-divisible-by");
    FR_TRY(fr_megatron_i64(flags, "padded-vocab-size", 1, &model->vocab, err));
    FR_TRY(fr_megatron_i64(flags, "vocab-size", 1, &model->vocab, err));
    if (model->vocab == 0 && strcmp(tokenizer, "GPT2BPETokenizer") == 0)
        model->vocab = 50257; /* OpenAI's encoder.json */
    if (model->vocab == 0)
        return fr_fail(err, FR_INPUT,
                       "%s:1: no --vocab-size: the tokenizer's file has it; "
                       "add --vocab-size N or name the model with --model",
                       flags->path);
    /* Before core 0.18 a NullTokenizer has an end of text besides. */
    if (strcmp(tokenizer, "NullTokenizer") == 0 && version < FR_MEGATRON_0_18 &&
        fr_megatron_has(flags, "vocab-size"))
        model->vocab++;
    fr_buffer_printf(notes,
                     "vocabulary of %lld tokens, without what Megatron-LM "
                     "fills it up with\n",
                     (long long)model->vocab);
    return FR_OK;
}

static fr_status read_attention(fr_megatron_flags *flags, fr_model *model,
                                fr_err *err)
{
    FR_TRY(need(flags, "num-attention-heads", &model->n_heads, err));
    model->n_kv_heads = model->n_heads;
    if (fr_megatron_has(flags, "group-query-attention")) {
        model->n_kv_heads = 1;
        FR_TRY(fr_megatron_i64(flags, "num-query-groups", 1, &model->n_kv_heads,
                               err));
    }
    if (model->hidden % model->n_heads == 0)
        model->head_dim = model->hidden / model->n_heads;
    FR_TRY(fr_megatron_i64(flags, "kv-channels", 1, &model->head_dim, err));
    model->has_qk_norm = fr_megatron_has(flags, "qk-layernorm");
    const fr_megatron_flag *window = fr_megatron_find(flags, "window-size");
    if (window != NULL) {
        const char *text = window->n_values > 0 ? window->values[0].text : "";
        char *end;
        long long left = strtoll(*text == '(' ? text + 1 : text, &end, 10);
        if (end == text || left >= 1 << 30)
            return fr_megatron_refuse(flags, window, "give its two numbers",
                                      err);
        model->sliding_window = left >= 0 ? left + 1 : 0;
    }
    return FR_OK;
}

static fr_status read_latent(fr_megatron_flags *flags, fr_model *model,
                             fr_err *err)
{
    if (!fr_megatron_has(flags, "multi-latent-attention"))
        return FR_OK;
    model->kv_lora_rank = 32; /* MLATransformerConfig's own values */
    model->qk_nope_head_dim = model->v_head_dim = 128;
    model->qk_rope_head_dim = 64;
    model->has_qk_norm = false; /* the latents' norms are part of it */
    model->is_rope = true;
    FR_TRY(fr_megatron_i64(flags, "q-lora-rank", 0, &model->q_lora_rank, err));
    FR_TRY(
        fr_megatron_i64(flags, "kv-lora-rank", 1, &model->kv_lora_rank, err));
    FR_TRY(fr_megatron_i64(flags, "qk-head-dim", 1, &model->qk_nope_head_dim,
                           err));
    FR_TRY(fr_megatron_i64(flags, "qk-pos-emb-head-dim", 1,
                           &model->qk_rope_head_dim, err));
    return fr_megatron_i64(flags, "v-head-dim", 1, &model->v_head_dim, err);
}

static fr_status read_positions(fr_megatron_flags *flags, fr_model *model,
                                fr_err *err)
{
    const char *kind;
    FR_TRY(need(flags, "max-position-embeddings", &model->max_seq, err));
    FR_TRY(fr_megatron_word(flags, "position-embedding-type",
                            "learned_absolute", &kind, err));
    if (fr_megatron_has(flags, "use-rotary-position-embeddings"))
        kind = "rope";
    model->is_rope = strcmp(kind, "rope") == 0 || strcmp(kind, "yarn") == 0;
    if (!model->is_rope && strcmp(kind, "learned_absolute") != 0)
        return fr_megatron_refuse(
            flags, fr_megatron_find(flags, "position-embedding-type"),
            "such positions are not modelled; take rope", err);
    FR_TRY(fr_megatron_real(flags, "rotary-base", &model->rope_theta, err));
    FR_TRY(fr_megatron_real(flags, "rotary-percent", &model->rope_frac, err));
    model->has_rope_scaling = fr_megatron_has(flags, "use-rope-scaling");
    return fr_megatron_real(flags, "rope-scaling-factor", &model->rope_factor,
                            err);
}

static fr_status read_layers(fr_megatron_flags *flags, fr_model *model,
                             fr_err *err)
{
    const char *norm;
    FR_TRY(need(flags, "num-layers", &model->n_layers, err));
    FR_TRY(need(flags, "hidden-size", &model->hidden, err));
    if (model->n_layers > 1 << 20 || model->hidden > 1 << 24)
        return fr_fail(err, FR_INPUT, "%s:1: a model too large to be meant",
                       flags->path);
    model->is_gated_mlp = fr_megatron_has(flags, "swiglu");
    model->ffn_hidden = model->is_gated_mlp
                            ? 4 * model->hidden * 2 / 3 / 64 * 64
                            : 4 * model->hidden;
    FR_TRY(
        fr_megatron_i64(flags, "ffn-hidden-size", 1, &model->ffn_hidden, err));
    bool is_exact = fr_megatron_has(flags, "no-bias-gelu-fusion");
    bool has_bias = !fr_megatron_has(flags, "disable-bias-linear");
    model->activation = model->is_gated_mlp     ? FR_ACTIVATION_SILU
                        : is_exact || !has_bias ? FR_ACTIVATION_GELU
                                                : FR_ACTIVATION_GELU_TANH;
    model->has_mlp_bias = model->has_out_bias = has_bias;
    model->has_qkv_bias = fr_megatron_has(flags, "add-qkv-bias") || has_bias;
    FR_TRY(fr_megatron_word(flags, "normalization", "LayerNorm", &norm, err));
    model->is_rms_norm = strcmp(norm, "RMSNorm") == 0;
    model->is_tied =
        !fr_megatron_has(flags, "untie-embeddings-and-output-weights");
    model->norm_eps = 1e-5;
    return fr_megatron_real(flags, "norm-epsilon", &model->norm_eps, err);
}

fr_status fr_megatron_read_model(fr_megatron_flags *flags, int version,
                                 fr_config *out, fr_err *err)
{
    fr_model *model = &out->file.model;
    fr_model_init(model);
    snprintf(model->name, sizeof model->name, "megatron");
    FR_TRY(read_layers(flags, model, err));
    FR_TRY(read_attention(flags, model, err));
    FR_TRY(read_positions(flags, model, err));
    FR_TRY(read_latent(flags, model, err));
    FR_TRY(fr_megatron_read_experts(flags, model, &out->notes, err));
    FR_TRY(
        fr_megatron_i64(flags, "mtp-num-layers", 0, &model->n_mtp_layers, err));
    if (model->n_mtp_layers > 0)
        model->mtp_loss_scale = 0.1; /* Megatron-LM's */
    FR_TRY(fr_megatron_real(flags, "mtp-loss-scaling-factor",
                            &model->mtp_loss_scale, err));
    FR_TRY(read_vocab(flags, version, model, &out->notes, err));
    fr_err why;
    fr_status status = fr_model_check(model, &why);
    return status == FR_OK ? FR_OK
                           : fr_fail(err, status, "%s:1: the model: %.400s",
                                     flags->path, why.text);
}
