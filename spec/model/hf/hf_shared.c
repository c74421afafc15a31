/* hf_shared.c: what readers of several model types share; see hf_type.h. */
#include "spec/model/hf/hf_get.h"
#include "spec/model/hf/hf_type.h"
#include "spec/model/hf/model_hf_rope.h"
#include "spec/model/model_json.h"

#include <string.h>

fr_status fr_hf_get_size(const fr_json_value *config, const char *key,
                         int64_t *inout, fr_err *err)
{
    return *inout > 0 ? get_or(config, key, *inout, inout, err)
                      : get(config, key, inout, err);
}

bool fr_hf_is_null(const fr_json_value *config, const char *key)
{
    for (size_t i = 0; i < fr_json_n(config); i++)
        if (strcmp(fr_json_key_at(config, i), key) == 0)
            return fr_json_kind_of(fr_json_at(config, i)) == FR_JSON_NULL;
    return false;
}

static const struct {
    const char *name;
    fr_activation activation;
} activations[] = {
    {"silu", FR_ACTIVATION_SILU},
    {"swish", FR_ACTIVATION_SILU},
    {"gelu_new", FR_ACTIVATION_GELU_TANH},
    {"gelu_pytorch_tanh", FR_ACTIVATION_GELU_TANH},
    {"gelu_fast", FR_ACTIVATION_GELU_TANH},
    {"gelu", FR_ACTIVATION_GELU},
    {"quick_gelu", FR_ACTIVATION_GELU_QUICK},
    {"relu", FR_ACTIVATION_RELU},
    {"relu2", FR_ACTIVATION_RELU_SQUARED},
};

const char *fr_model_hf_activation(const fr_model *model)
{
    for (size_t i = 0; i < FR_LENGTH(activations); i++)
        if (activations[i].activation == model->activation)
            return activations[i].name;
    return "silu";
}

fr_status fr_hf_get_activation(const fr_json_value *config, const char *key,
                               const char *otherwise, fr_model *model,
                               fr_err *err)
{
    const char *name;
    FR_TRY(fr_json_get_string_or(config, key, otherwise, &name, err));
    for (size_t i = 0; i < FR_LENGTH(activations); i++)
        if (strcmp(activations[i].name, name) == 0) {
            model->activation = activations[i].activation;
            return FR_OK;
        }
    return fr_json_fail(fr_json_blamed(config, key), err,
                        "%s '%s' is not known; silu, gelu, gelu_new, "
                        "quick_gelu, relu and relu2 are",
                        key, name);
}

fr_status fr_hf_check_hidden(const fr_json_value *config, const char *key,
                             const fr_model *model, fr_err *err)
{
    enum { MOST = 1 << 24 };
    if (model->hidden < 1 || model->hidden > MOST)
        return fr_json_fail(fr_json_blamed(config, key), err,
                            "%s is %lld; give 1 to %d", key,
                            (long long)model->hidden, MOST);
    return FR_OK;
}

fr_status fr_hf_refuse_unless(const fr_json_value *config, const char *key,
                              bool expected, fr_err *err)
{
    bool value;
    FR_TRY(fr_json_get_bool_or(config, key, expected, &value, err));
    if (value != expected)
        return fr_json_fail(fr_json_blamed(config, key), err,
                            "%s: %s changes the arithmetic in a way that is "
                            "not modelled",
                            key, value ? "true" : "false");
    return FR_OK;
}

fr_status fr_hf_refuse_but(const fr_json_value *config, const char *key,
                           int64_t expected, fr_err *err)
{
    int64_t value;
    FR_TRY(get_or(config, key, expected, &value, err));
    if (value != expected)
        return fr_json_fail(fr_json_blamed(config, key), err,
                            "%s %lld is not modelled, only %lld", key,
                            (long long)value, (long long)expected);
    return FR_OK;
}

fr_status fr_hf_derive_head_dim(const fr_json_value *config,
                                const char *heads_key, fr_model *model,
                                fr_err *err)
{
    FR_TRY(get_or(config, "head_dim",
                  fr_hf_is_null(config, "head_dim") ? 0 : model->head_dim,
                  &model->head_dim, err));
    if (model->head_dim != 0)
        return FR_OK;
    if (model->n_heads < 1 || model->hidden % model->n_heads != 0)
        return fr_json_fail(fr_json_blamed(config, heads_key), err,
                            "hidden size %lld %% heads %lld != 0 and there is "
                            "no head_dim",
                            (long long)model->hidden,
                            (long long)model->n_heads);
    model->head_dim = model->hidden / model->n_heads;
    return FR_OK;
}

fr_status fr_hf_read_sizes(const fr_json_value *config, fr_model *model,
                           fr_err *err)
{
    FR_TRY(fr_hf_get_size(config, "num_hidden_layers", &model->n_layers, err));
    FR_TRY(fr_hf_get_size(config, "hidden_size", &model->hidden, err));
    FR_TRY(fr_hf_get_size(config, "num_attention_heads", &model->n_heads, err));
    FR_TRY(
        fr_hf_get_size(config, "intermediate_size", &model->ffn_hidden, err));
    if (model->n_kv_heads == 0 || fr_hf_is_null(config, "num_key_value_heads"))
        model->n_kv_heads = model->n_heads;
    return fr_hf_derive_head_dim(config, "num_attention_heads", model, err);
}

fr_status fr_hf_read_llama_like(const fr_json_value *config, fr_model *model,
                                fr_err *err)
{
    FR_TRY(fr_hf_read_sizes(config, model, err));
    FR_TRY(fr_hf_get_size(config, "vocab_size", &model->vocab, err));
    FR_TRY(get_or(config, "num_key_value_heads", model->n_kv_heads,
                  &model->n_kv_heads, err));
    FR_TRY(get_or(config, "max_position_embeddings", model->max_seq,
                  &model->max_seq, err));
    FR_TRY(fr_json_get_double_or(config, "rms_norm_eps", model->norm_eps,
                                 &model->norm_eps, err));
    FR_TRY(fr_json_get_bool_or(config, "tie_word_embeddings", false,
                               &model->is_tied, err));
    FR_TRY(fr_hf_get_activation(config, "hidden_act", "silu", model, err));
    model->is_gated_mlp = true;
    model->is_rms_norm = true;
    return fr_model_hf_read_rope(config, model, err);
}

fr_status fr_hf_read_biases(const fr_json_value *config, fr_model *model,
                            fr_err *err)
{
    FR_TRY(fr_json_get_bool_or(config, "attention_bias", false,
                               &model->has_qkv_bias, err));
    model->has_out_bias = model->has_qkv_bias;
    return fr_json_get_bool_or(config, "mlp_bias", false, &model->has_mlp_bias,
                               err);
}

fr_status fr_hf_read_window(const fr_json_value *config, fr_model *model,
                            fr_err *err)
{
    if (fr_hf_is_null(config, "sliding_window")) {
        model->sliding_window = 0;
        return FR_OK;
    }
    return get_or(config, "sliding_window", model->sliding_window,
                  &model->sliding_window, err);
}

fr_status fr_hf_read_gemma_like(const fr_json_value *config, fr_model *model,
                                fr_err *err)
{
    FR_TRY(fr_hf_read_llama_like(config, model, err));
    FR_TRY(fr_hf_read_biases(config, model, err));
    FR_TRY(fr_json_get_bool_or(config, "tie_word_embeddings", true,
                               &model->is_tied, err));
    /* The class overrides hidden_act (gelu in old files) by this. */
    FR_TRY(fr_hf_get_activation(config, "hidden_activation",
                                "gelu_pytorch_tanh", model, err));
    model->has_scaled_embedding = true;
    return FR_OK;
}

/* Tied unless the file says otherwise. */
fr_status fr_hf_read_tied(const fr_json_value *config, fr_model *model,
                          fr_err *err)
{
    return get_bool(config, "tie_word_embeddings", true, &model->is_tied, err);
}

/* The rotated share of a head. */
fr_status fr_hf_read_rotary_share(const fr_json_value *config, double otherwise,
                                  fr_model *model, fr_err *err)
{
    const fr_json_value *rope = fr_json_find(config, "rope_parameters");
    if (rope != NULL && fr_json_kind_of(rope) == FR_JSON_OBJECT)
        FR_TRY(fr_json_get_double_or(rope, "partial_rotary_factor", otherwise,
                                     &otherwise, err));
    return fr_json_get_double_or(config, "partial_rotary_factor", otherwise,
                                 &model->rope_frac, err);
}

/* LayerNorm, whose epsilon has a key of its own. */
fr_status fr_hf_read_layer_norm(const fr_json_value *config, const char *key,
                                double otherwise, fr_model *model, fr_err *err)
{
    model->is_rms_norm = false;
    return fr_json_get_double_or(config, key, otherwise, &model->norm_eps, err);
}

/* A trait that a number other than 1, or 0, brings. */
fr_status fr_hf_read_number_trait(const fr_json_value *config, const char *key,
                                  double neutral, fr_model_trait trait,
                                  fr_model *model, fr_err *err)
{
    double value;
    FR_TRY(fr_json_get_double_or(config, key, neutral, &value, err));
    if (value < neutral || value > neutral)
        fr_model_set(model, trait);
    return FR_OK;
}

fr_status fr_hf_read_switch_trait(const fr_json_value *config, const char *key,
                                  bool otherwise, fr_model_trait trait,
                                  fr_model *model, fr_err *err)
{
    bool is_on;
    FR_TRY(get_bool(config, key, otherwise, &is_on, err));
    if (is_on)
        fr_model_set(model, trait);
    return FR_OK;
}
