/* config_megatron_model.c: the model that arguments of Megatron-LM say
 * (megatron/training/arguments.py, _add_network_size_args). */
#include "frameworks/megatron/read/megatron_flags.h"
#include "frameworks/megatron/target_megatron.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The tables of the model's arguments. */
static const char *const tables[] = {"shape",  "latent",  "layers",
                                     "router", "experts", "expert layers",
                                     "tokens"};

void fr_megatron_skip_model(fr_megatron_flags *flags)
{
    for (size_t i = 0; i < FR_LENGTH(tables); i++)
        fr_megatron_skip_rows(flags, tables[i]);
}

static fr_status check_needed(fr_megatron_flags *flags, fr_err *err)
{
    static const char *const needed[] = {"num-layers", "hidden-size",
                                         "num-attention-heads",
                                         "max-position-embeddings"};
    for (size_t i = 0; i < FR_LENGTH(needed); i++)
        if (!fr_megatron_has(flags, needed[i]))
            return fr_fail(err, FR_INPUT,
                           "%s:1: no --%s, of which the model is made; name "
                           "the model with --model",
                           flags->path, needed[i]);
    return FR_OK;
}

static fr_status read_vocab(fr_megatron_flags *flags, int version,
                            fr_model *model, fr_buffer *notes, fr_err *err)
{
    const char *tokenizer;
    FR_TRY(fr_megatron_word(flags, "tokenizer-type", "", &tokenizer, err));
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
    model->n_kv_heads = model->n_heads;
    if (fr_megatron_has(flags, "group-query-attention")) {
        model->n_kv_heads = 1;
        FR_TRY(fr_megatron_i64(flags, "num-query-groups", 1, &model->n_kv_heads,
                               err));
    }
    if (model->head_dim == 0 && model->hidden % model->n_heads == 0)
        model->head_dim = model->hidden / model->n_heads;
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

static fr_status read_latent(fr_megatron_flags *flags, fr_plan_file *file,
                             fr_err *err)
{
    fr_model *model = &file->model;
    if (!fr_megatron_has(flags, "multi-latent-attention"))
        return FR_OK;
    model->kv_lora_rank = 32; /* MLATransformerConfig's own values */
    model->qk_nope_head_dim = model->v_head_dim = 128;
    model->qk_rope_head_dim = 64;
    model->has_qk_norm = false; /* the latents' norms are part of it */
    model->is_rope = true;
    return fr_megatron_read_rows(flags, "latent", file, err);
}

static fr_status read_layers(fr_megatron_flags *flags, fr_plan_file *file,
                             fr_err *err)
{
    fr_model *model = &file->model;
    FR_TRY(check_needed(flags, err));
    FR_TRY(fr_megatron_read_rows(flags, "shape", file, err));
    if (model->n_layers > 1 << 20 || model->hidden > 1 << 24)
        return fr_fail(err, FR_INPUT, "%s:1: a model too large to be meant",
                       flags->path);
    FR_TRY(fr_megatron_read_rows(flags, "layers", file, err));
    if (fr_megatron_has(flags, "use-rotary-position-embeddings"))
        model->is_rope = true;
    if (model->ffn_hidden == 0)
        model->ffn_hidden = model->is_gated_mlp
                                ? 4 * model->hidden * 2 / 3 / 64 * 64
                                : 4 * model->hidden;
    const bool is_exact = fr_megatron_has(flags, "no-bias-gelu-fusion");
    const bool has_bias = model->has_mlp_bias;
    model->activation = model->is_gated_mlp     ? FR_ACTIVATION_SILU
                        : is_exact || !has_bias ? FR_ACTIVATION_GELU
                                                : FR_ACTIVATION_GELU_TANH;
    model->has_out_bias = has_bias;
    model->has_qkv_bias = model->has_qkv_bias || has_bias;
    return FR_OK;
}

static fr_status read_later_tokens(fr_megatron_flags *flags, fr_plan_file *file,
                                   fr_err *err)
{
    const double scale = file->model.mtp_loss_scale;
    file->model.mtp_loss_scale = 0.1; /* Megatron-LM's */
    FR_TRY(fr_megatron_read_rows(flags, "tokens", file, err));
    if (file->model.n_mtp_layers == 0 &&
        !fr_megatron_has(flags, "mtp-loss-scaling-factor"))
        file->model.mtp_loss_scale = scale;
    return FR_OK;
}

fr_status fr_megatron_read_model(fr_megatron_flags *flags, int version,
                                 fr_config *out, fr_err *err)
{
    fr_model *model = &out->file.model;
    fr_model_init(model);
    snprintf(model->name, sizeof model->name, "megatron");
    FR_TRY(read_layers(flags, &out->file, err));
    FR_TRY(read_attention(flags, model, err));
    FR_TRY(read_latent(flags, &out->file, err));
    FR_TRY(fr_megatron_read_experts(flags, &out->file, &out->notes, err));
    FR_TRY(read_later_tokens(flags, &out->file, err));
    FR_TRY(read_vocab(flags, version, model, &out->notes, err));
    fr_err why;
    fr_status status = fr_model_check(model, &why);
    return status == FR_OK ? FR_OK
                           : fr_fail(err, status, "%s:1: the model: %.400s",
                                     flags->path, why.text);
}
