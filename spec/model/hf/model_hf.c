/* model_hf.c: Hugging Face config.json; see hf_type.h. */
#include "core/base/text.h"
#include "spec/model/hf/hf_get.h"
#include "spec/model/hf/hf_type.h"
#include "spec/model/hf/model_hf_experts.h"
#include "spec/model/hf/model_hf_rest.h"
#include "spec/model/hf/model_hf_rope.h"
#include "spec/model/model_json.h"

#include <string.h>

/* Returns the number of items of a list or object that may be absent. */
static size_t count(const fr_json_value *value)
{
    return value != NULL ? fr_json_n(value) : 0;
}

static fr_status read_llama(const fr_json_value *config, fr_model *model,
                            fr_err *err)
{
    FR_TRY(fr_hf_read_llama_like(config, model, err));
    return fr_hf_read_biases(config, model, err);
}

static fr_status read_mistral(const fr_json_value *config, fr_model *model,
                              fr_err *err)
{
    FR_TRY(fr_hf_read_llama_like(config, model, err));
    return fr_hf_read_window(config, model, err);
}

/* Qwen's window holds for some layers only; layer_types or the first
 * max_window_layers say which.  Off in all published base models. */
static fr_status read_qwen_window(const fr_json_value *config, fr_model *model,
                                  fr_err *err)
{
    (void)model;
    FR_TRY(fr_hf_refuse_unless(config, "use_sliding_window", false, err));
    const fr_json_value *types = fr_json_find(config, "layer_types");
    for (size_t i = 0; i < count(types); i++) {
        const char *type;
        const fr_json_value *at = fr_json_at(types, i);
        FR_TRY(fr_json_as_string(at, &type, err));
        if (strcmp(type, "full_attention") != 0)
            return fr_json_fail(at, err,
                                "layer type '%s' is not modelled here; only "
                                "full_attention is",
                                type);
    }
    return FR_OK;
}

static fr_status read_qwen2(const fr_json_value *config, fr_model *model,
                            fr_err *err)
{
    FR_TRY(fr_hf_read_llama_like(config, model, err));
    model->has_qkv_bias = true;
    return read_qwen_window(config, model, err);
}

static fr_status read_qwen3(const fr_json_value *config, fr_model *model,
                            fr_err *err)
{
    FR_TRY(fr_hf_read_llama_like(config, model, err));
    FR_TRY(fr_hf_read_biases(config, model, err));
    model->has_qk_norm = true;
    return read_qwen_window(config, model, err);
}

static fr_status read_mixtral(const fr_json_value *config, fr_model *model,
                              fr_err *err)
{
    FR_TRY(read_mistral(config, model, err));
    FR_TRY(get(config, "num_local_experts", &model->n_experts, err));
    FR_TRY(get_or(config, "num_experts_per_tok", 2, &model->n_experts_per_token,
                  err));
    model->expert_ffn_hidden = model->ffn_hidden;
    return fr_hf_read_aux_loss(config, 0.001, model, err);
}

static fr_status read_qwen2_moe(const fr_json_value *config, fr_model *model,
                                fr_err *err)
{
    FR_TRY(fr_hf_read_llama_like(config, model, err));
    FR_TRY(fr_json_get_bool_or(config, "qkv_bias", true, &model->has_qkv_bias,
                               err));
    FR_TRY(get(config, "shared_expert_intermediate_size",
               &model->shared_expert_ffn_hidden, err));
    model->has_shared_expert_gate = model->shared_expert_ffn_hidden > 0;
    FR_TRY(read_qwen_window(config, model, err));
    return fr_hf_read_qwen_experts(config, model, err);
}

static fr_status read_qwen3_moe(const fr_json_value *config, fr_model *model,
                                fr_err *err)
{
    FR_TRY(fr_hf_read_llama_like(config, model, err));
    FR_TRY(fr_hf_read_biases(config, model, err));
    model->has_qk_norm = true;
    FR_TRY(read_qwen_window(config, model, err));
    return fr_hf_read_qwen_experts(config, model, err);
}

static fr_status read_gpt2(const fr_json_value *config, fr_model *model,
                           fr_err *err)
{
    FR_TRY(get(config, "n_layer", &model->n_layers, err));
    FR_TRY(get(config, "n_embd", &model->hidden, err));
    FR_TRY(get(config, "n_head", &model->n_heads, err));
    FR_TRY(get(config, "vocab_size", &model->vocab, err));
    FR_TRY(get_or(config, "n_positions", 1024, &model->max_seq, err));
    FR_TRY(fr_hf_derive_head_dim(config, "n_head", model, err));
    FR_TRY(fr_hf_check_hidden(config, "n_embd", model, err));
    FR_TRY(
        get_or(config, "n_inner", 4 * model->hidden, &model->ffn_hidden, err));
    FR_TRY(fr_json_get_double_or(config, "layer_norm_epsilon", 1e-5,
                                 &model->norm_eps, err));
    FR_TRY(fr_json_get_bool_or(config, "tie_word_embeddings", true,
                               &model->is_tied, err));
    FR_TRY(fr_hf_get_activation(config, "activation_function", "gelu_new",
                                model, err));
    FR_TRY(fr_hf_refuse_unless(config, "scale_attn_weights", true, err));
    FR_TRY(fr_hf_refuse_unless(config, "scale_attn_by_inverse_layer_idx", false,
                               err));
    FR_TRY(fr_hf_refuse_unless(config, "add_cross_attention", false, err));
    model->n_kv_heads = model->n_heads;
    model->has_qkv_bias = model->has_out_bias = model->has_mlp_bias = true;
    return FR_OK;
}

static fr_status read_gpt_neox(const fr_json_value *config, fr_model *model,
                               fr_err *err)
{
    bool has_bias;
    FR_TRY(fr_hf_read_sizes(config, model, err));
    FR_TRY(get(config, "vocab_size", &model->vocab, err));
    FR_TRY(
        get_or(config, "max_position_embeddings", 2048, &model->max_seq, err));
    FR_TRY(fr_json_get_double_or(config, "layer_norm_eps", 1e-5,
                                 &model->norm_eps, err));
    FR_TRY(fr_json_get_bool_or(config, "tie_word_embeddings", false,
                               &model->is_tied, err));
    FR_TRY(fr_json_get_bool_or(config, "use_parallel_residual", true,
                               &model->is_parallel_block, err));
    FR_TRY(fr_json_get_bool_or(config, "attention_bias", true, &has_bias, err));
    FR_TRY(fr_hf_get_activation(config, "hidden_act", "gelu", model, err));
    FR_TRY(fr_model_hf_read_rope(config, model, err));
    FR_TRY(fr_json_get_double_or(config, "rotary_emb_base", model->rope_theta,
                                 &model->rope_theta, err));
    FR_TRY(fr_json_get_double_or(config, "rotary_pct", 0.25, &model->rope_frac,
                                 err));
    model->has_qkv_bias = model->has_out_bias = has_bias;
    model->has_mlp_bias = true;
    return FR_OK;
}

/* The class name of a BERT says which heads it has. */
static fr_status read_bert_heads(const fr_json_value *config, fr_model *model,
                                 fr_err *err)
{
    const fr_json_value *names = fr_json_find(config, "architectures");
    const char *name = "BertModel";
    if (count(names) > 0)
        FR_TRY(fr_json_as_string(fr_json_at(names, 0), &name, err));
    bool is_pretraining = strcmp(name, "BertForPreTraining") == 0;
    model->has_mlm_head = is_pretraining || fr_text_ends(name, "ForMaskedLM");
    model->has_pooler = is_pretraining || (!model->has_mlm_head &&
                                           !fr_model_hf_labels_tokens(name));
    return FR_OK;
}

static fr_status read_bert(const fr_json_value *config, fr_model *model,
                           fr_err *err)
{
    model->kind = FR_MODEL_ENCODER;
    FR_TRY(fr_hf_read_sizes(config, model, err));
    FR_TRY(get(config, "vocab_size", &model->vocab, err));
    FR_TRY(
        get_or(config, "max_position_embeddings", 512, &model->max_seq, err));
    FR_TRY(get_or(config, "type_vocab_size", 2, &model->n_token_types, err));
    FR_TRY(fr_json_get_double_or(config, "layer_norm_eps", 1e-12,
                                 &model->norm_eps, err));
    FR_TRY(fr_hf_get_activation(config, "hidden_act", "gelu", model, err));
    FR_TRY(fr_hf_refuse_unless(config, "is_decoder", false, err));
    FR_TRY(fr_hf_refuse_unless(config, "add_cross_attention", false, err));
    model->is_tied = true;
    model->has_embed_norm = true;
    model->has_final_norm = false;
    model->has_qkv_bias = model->has_out_bias = model->has_mlp_bias = true;
    return read_bert_heads(config, model, err);
}

static fr_status read_vit(const fr_json_value *config, fr_model *model,
                          fr_err *err)
{
    model->kind = FR_MODEL_ENCODER;
    FR_TRY(fr_hf_read_sizes(config, model, err));
    FR_TRY(get_or(config, "image_size", 224, &model->image_size, err));
    FR_TRY(get_or(config, "patch_size", 16, &model->patch_size, err));
    FR_TRY(get_or(config, "num_channels", 3, &model->n_channels, err));
    FR_TRY(fr_json_get_double_or(config, "layer_norm_eps", 1e-12,
                                 &model->norm_eps, err));
    FR_TRY(fr_hf_get_activation(config, "hidden_act", "gelu", model, err));
    FR_TRY(fr_json_get_bool_or(config, "qkv_bias", true, &model->has_qkv_bias,
                               err));
    model->has_out_bias = model->has_mlp_bias = true;
    const fr_json_value *labels = fr_json_find(config, "id2label");
    FR_TRY(get_or(config, "num_labels", (int64_t)count(labels),
                  &model->n_labels, err));
    model->has_pooler = model->n_labels == 0;
    if (model->patch_size < 1 || model->image_size < model->patch_size ||
        model->image_size > 1 << 16)
        return fr_json_fail(config, err,
                            "image_size %lld with patch_size %lld has no "
                            "whole patch",
                            (long long)model->image_size,
                            (long long)model->patch_size);
    int64_t side = model->image_size / model->patch_size;
    model->max_seq = side * side + 1;
    return FR_OK;
}

/* transformers, configuration_<type>.py: {layers, hidden, heads, mlp, vocab,
 * kv heads, head, positions, window, epsilon}. */
static const fr_hf_type types[] = {
    {"gpt2", read_gpt2, {0}},
    {"llama", read_llama, {32, 4096, 32, 11008, 32000, 0, 0, 2048, 0, 1e-6}},
    {"mistral",
     read_mistral,
     {32, 4096, 32, 14336, 32000, 8, 0, 131072, 4096, 1e-6}},
    {"qwen2", read_qwen2, {32, 4096, 32, 22016, 151936, 32, 0, 32768, 0, 1e-6}},
    {"qwen3",
     read_qwen3,
     {32, 4096, 32, 22016, 151936, 32, 128, 32768, 0, 1e-6}},
    {"gemma",
     fr_hf_read_gemma_like,
     {28, 3072, 16, 24576, 256000, 16, 256, 8192, 0, 1e-6}},
    {"mixtral",
     read_mixtral,
     {32, 4096, 32, 14336, 32000, 8, 0, 131072, 0, 1e-5}},
    {"qwen2_moe",
     read_qwen2_moe,
     {24, 2048, 16, 5632, 151936, 16, 0, 32768, 0, 1e-6}},
    {"qwen3_moe",
     read_qwen3_moe,
     {24, 2048, 32, 6144, 151936, 4, 0, 32768, 0, 1e-6}},
    {"deepseek_v3",
     fr_hf_read_deepseek,
     {61, 7168, 128, 18432, 129280, 128, 0, 4096, 0, 1e-6}},
    {"gpt_neox", read_gpt_neox, {0}},
    {"bert", read_bert, {0}},
    /* Its positions begin at 2: the table has two rows more than the context.
     */
    {"roberta", read_bert, {0}},
    {"qwen2_vl",
     read_qwen2,
     {32, 8192, 64, 29568, 152064, 8, 0, 32768, 0, 1e-5}},
    {"qwen2_vl_text",
     read_qwen2,
     {80, 8192, 64, 29568, 152064, 8, 0, 32768, 0, 1e-5}},
    {"qwen2_5_vl",
     read_qwen2,
     {80, 8192, 64, 29568, 152064, 8, 0, 32768, 0, 1e-5}},
    {"qwen2_5_vl_text",
     read_qwen2,
     {80, 8192, 64, 29568, 152064, 8, 0, 32768, 0, 1e-5}},
    {"qwen3_vl_text",
     read_qwen3,
     {32, 4096, 32, 22016, 151936, 32, 128, 128000, 0, 1e-6}},
    {"qwen3_vl_moe_text",
     read_qwen3_moe,
     {24, 2048, 16, 5632, 151936, 16, 0, 128000, 0, 1e-6}},
    {"vit", read_vit, {0}},
};

/* A file of its own has all sizes, because transformers writes those that its
 * common class lacks; a part of a wrapper has those alone that differ from the
 * defaults of its class (configuration_utils.py, recursive_diff_dict()). */
static void set_defaults(const fr_hf_defaults *defaults, bool is_part,
                         fr_model *model)
{
    model->n_kv_heads = defaults->n_kv_heads;
    model->head_dim = defaults->head_dim;
    model->max_seq = defaults->max_seq;
    model->sliding_window = defaults->sliding_window;
    if (defaults->norm_eps > 0)
        model->norm_eps = defaults->norm_eps;
    if (!is_part)
        return;
    model->n_layers = defaults->n_layers;
    model->hidden = defaults->hidden;
    model->n_heads = defaults->n_heads;
    model->ffn_hidden = defaults->ffn_hidden;
    model->vocab = defaults->vocab;
}

/* Returns row i of all tables, NULL past the last. */
static const fr_hf_type *type_at(size_t i)
{
    const struct {
        const fr_hf_type *rows;
        size_t n;
    } tables[] = {{types, FR_LENGTH(types)},
                  {fr_hf_plain_types, fr_n_hf_plain_types},
                  {fr_hf_block_types, fr_n_hf_block_types},
                  {fr_hf_expert_types, fr_n_hf_expert_types},
                  {fr_hf_window_types, fr_n_hf_window_types},
                  {fr_hf_mixed_types, fr_n_hf_mixed_types}};
    for (size_t k = 0; k < FR_LENGTH(tables); k++) {
        if (i < tables[k].n)
            return &tables[k].rows[i];
        i -= tables[k].n;
    }
    return NULL;
}

enum { MOST_TYPES = 128 };

static fr_status fail_type(const fr_json_value *config, const char *type,
                           fr_err *err)
{
    const char *names[MOST_TYPES];
    size_t n = 0;
    for (; n < MOST_TYPES && type_at(n) != NULL; n++)
        names[n] = type_at(n)->name;
    char hint[FR_HINT_MAX];
    const char *nearest = fr_text_nearest(type, names, n);
    return fr_json_fail(fr_json_blamed(config, "model_type"), err,
                        "model_type '%s' is not known%s; %zu types are read: "
                        "docs/formats.md lists them",
                        type, fr_text_hint(nearest, hint), n);
}

static fr_status read_config(const fr_json_value *object, const char *name,
                             fr_model *model, fr_err *err)
{
    const fr_json_value *text = fr_json_find(object, "text_config");
    const fr_json_value *config = text != NULL ? text : object;
    const char *type, *own_name;
    FR_TRY(fr_model_hf_get_type(object, config, &type, err));
    FR_TRY(
        fr_json_get_string_or(object, "_name_or_path", name, &own_name, err));
    fr_text_copy_cut(model->name, sizeof model->name,
                     own_name[0] ? own_name : name);
    for (size_t i = 0; type_at(i) != NULL; i++) {
        if (strcmp(type_at(i)->name, type) != 0)
            continue;
        set_defaults(&type_at(i)->defaults, text != NULL, model);
        FR_TRY(type_at(i)->read(config, model, err));
        FR_TRY(fr_model_hf_read_rest(object, config, model, err));
        fr_err broken = {0};
        if (fr_model_check(model, &broken) != FR_OK)
            return fr_json_fail(config, err, "%s", broken.text);
        return FR_OK;
    }
    return fail_type(config, type, err);
}

fr_status fr_model_from_hugging_face(const fr_json_value *object,
                                     const char *name, fr_model *out,
                                     fr_err *err)
{
    fr_model model;
    fr_model_init(&model);
    FR_TRY(read_config(object, name, &model, err));
    *out = model;
    return FR_OK;
}
