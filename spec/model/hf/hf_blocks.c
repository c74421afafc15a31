/*
 * hf_blocks.c: decoders whose blocks are not llama's: layer norms, MLPs of two
 * matrices, parallel blocks, ALiBi, learned positions.  See hf_plain.c.
 */
#include "spec/model/hf/hf_get.h"
#include "spec/model/hf/hf_marks.h"
#include "spec/model/hf/hf_type.h"
#include "spec/model/hf/model_hf_experts.h"
#include "spec/model/hf/model_hf_rope.h"

/* ---- layer norms, two-matrix MLPs, parallel blocks ------------------------*/

HF_READER(starcoder2)
{
    FR_TRY(fr_hf_read_llama_like(config, model, err));
    FR_TRY(fr_hf_read_layer_norm(config, "norm_epsilon", 1e-5, model, err));
    FR_TRY(fr_hf_get_activation(config, "hidden_act", "gelu_pytorch_tanh",
                                model, err));
    FR_TRY(get_bool(config, "use_bias", true, &model->has_qkv_bias, err));
    model->has_out_bias = model->has_mlp_bias = model->has_qkv_bias;
    model->is_gated_mlp = false;
    FR_TRY(fr_hf_read_tied(config, model, err));
    return fr_hf_read_window(config, model, err);
}

HF_READER(nemotron)
{
    FR_TRY(fr_hf_read_llama_like(config, model, err));
    FR_TRY(fr_hf_read_biases(config, model, err));
    FR_TRY(fr_hf_read_layer_norm(config, "norm_eps", 1e-5, model, err));
    FR_TRY(fr_hf_get_activation(config, "hidden_act", "relu2", model, err));
    model->is_gated_mlp = false;
    return fr_hf_read_rotary_share(config, 0.5, model, err);
}

HF_READER(stablelm)
{
    FR_TRY(fr_hf_read_llama_like(config, model, err));
    FR_TRY(fr_hf_read_layer_norm(config, "layer_norm_eps", 1e-5, model, err));
    FR_TRY(get_bool(config, "use_qkv_bias", false, &model->has_qkv_bias, err));
    FR_TRY(get_bool(config, "qk_layernorm", false, &model->has_qk_norm, err));
    if (model->has_qk_norm)
        fr_model_set(model, FR_TRAIT_WIDE_QK_NORM);
    FR_TRY(get_bool(config, "use_parallel_residual", false,
                    &model->is_parallel_block, err));
    if (model->is_parallel_block)
        fr_model_set(model, FR_TRAIT_ONE_BLOCK_NORM);
    return fr_hf_read_rotary_share(config, 0.25, model, err);
}

HF_READER(phimoe)
{
    FR_TRY(fr_hf_read_llama_like(config, model, err));
    FR_TRY(fr_hf_read_biases(config, model, err));
    FR_TRY(fr_hf_read_layer_norm(config, "rms_norm_eps", 1e-5, model, err));
    FR_TRY(get_or(config, "num_local_experts", 16, &model->n_experts, err));
    FR_TRY(get_or(config, "num_experts_per_tok", 2, &model->n_experts_per_token,
                  err));
    model->expert_ffn_hidden = model->ffn_hidden;
    model->has_mlp_bias = false;
    FR_TRY(fr_hf_read_switch_trait(config, "lm_head_bias", false,
                                   FR_TRAIT_HEAD_BIAS, model, err));
    fr_model_set(model, FR_TRAIT_OTHER_ROUTER); /* sparsemixer, two rounds */
    FR_TRY(fr_hf_read_window(config, model, err));
    return fr_hf_read_aux_loss(config, 0.0, model, err);
}

/* Falcon 7b (one norm, one head of keys), 40b and 180b (two norms), rw-1b
 * (ALiBi, in sequence). */
HF_READER(falcon)
{
    bool is_new, has_one, has_alibi, has_bias;
    FR_TRY(fr_hf_get_size(config, "num_hidden_layers", &model->n_layers, err));
    FR_TRY(fr_hf_get_size(config, "hidden_size", &model->hidden, err));
    FR_TRY(fr_hf_get_size(config, "num_attention_heads", &model->n_heads, err));
    FR_TRY(fr_hf_get_size(config, "vocab_size", &model->vocab, err));
    FR_TRY(fr_hf_derive_head_dim(config, "num_attention_heads", model, err));
    FR_TRY(
        get_or(config, "max_position_embeddings", 2048, &model->max_seq, err));
    FR_TRY(fr_hf_check_hidden(config, "hidden_size", model, err));
    FR_TRY(get_or(config, "ffn_hidden_size", 4 * model->hidden,
                  &model->ffn_hidden, err));
    FR_TRY(get_bool(config, "new_decoder_architecture", false, &is_new, err));
    FR_TRY(get_bool(config, "multi_query", true, &has_one, err));
    model->n_kv_heads = has_one ? 1 : model->n_heads;
    if (is_new)
        FR_TRY(get_or(config, "num_kv_heads", model->n_heads,
                      &model->n_kv_heads, err));
    FR_TRY(get_bool(config, "parallel_attn", true, &model->is_parallel_block,
                    err));
    model->is_parallel_block = model->is_parallel_block || is_new;
    int64_t n_norms = 0;
    FR_TRY(get_or(config, "num_ln_in_parallel_attn", is_new ? 2 : 1, &n_norms,
                  err));
    if (model->is_parallel_block && n_norms == 1)
        fr_model_set(model, FR_TRAIT_ONE_BLOCK_NORM);
    FR_TRY(get_bool(config, "bias", false, &has_bias, err));
    model->has_qkv_bias = model->has_out_bias = model->has_mlp_bias = has_bias;
    FR_TRY(fr_hf_get_activation(config, "activation", "gelu", model, err));
    FR_TRY(get_bool(config, "alibi", false, &has_alibi, err));
    FR_TRY(fr_hf_read_tied(config, model, err));
    FR_TRY(
        fr_hf_read_layer_norm(config, "layer_norm_epsilon", 1e-5, model, err));
    if (!has_alibi)
        return fr_model_hf_read_rope(config, model, err);
    fr_model_set(model, FR_TRAIT_ALIBI);
    return FR_OK;
}

/* gpt-j: one norm, biases in the MLP and of the head. */
HF_READER(gptj)
{
    int64_t rotated;
    FR_TRY(get(config, "n_layer", &model->n_layers, err));
    FR_TRY(get(config, "n_embd", &model->hidden, err));
    FR_TRY(get(config, "n_head", &model->n_heads, err));
    FR_TRY(get(config, "vocab_size", &model->vocab, err));
    FR_TRY(get_or(config, "n_positions", 2048, &model->max_seq, err));
    FR_TRY(fr_hf_derive_head_dim(config, "n_head", model, err));
    FR_TRY(get_or(config, "rotary_dim", 64, &rotated, err));
    FR_TRY(fr_hf_check_hidden(config, "n_embd", model, err));
    FR_TRY(
        get_or(config, "n_inner", 4 * model->hidden, &model->ffn_hidden, err));
    FR_TRY(fr_hf_get_activation(config, "activation_function", "gelu_new",
                                model, err));
    FR_TRY(
        get_bool(config, "tie_word_embeddings", false, &model->is_tied, err));
    FR_TRY(
        fr_hf_read_layer_norm(config, "layer_norm_epsilon", 1e-5, model, err));
    model->n_kv_heads = model->n_heads;
    model->has_mlp_bias = model->is_rope = model->is_parallel_block = true;
    model->rope_frac = (double)rotated / (double)model->head_dim;
    fr_model_set(model, FR_TRAIT_ONE_BLOCK_NORM);
    fr_model_set(model, FR_TRAIT_PAIRED_ROTARY);
    fr_model_set(model, FR_TRAIT_HEAD_BIAS);
    return FR_OK;
}

/* Bloom calls its sizes as Megatron does or as GPT-2. */
HF_READER(bloom)
{
    FR_TRY(get_or(config, "n_layer", 0, &model->n_layers, err));
    FR_TRY(get_or(config, "num_hidden_layers", model->n_layers,
                  &model->n_layers, err));
    FR_TRY(get_or(config, "n_embed", 0, &model->hidden, err));
    FR_TRY(get_or(config, "hidden_size", model->hidden, &model->hidden, err));
    FR_TRY(get_or(config, "n_head", 0, &model->n_heads, err));
    FR_TRY(get_or(config, "num_attention_heads", model->n_heads,
                  &model->n_heads, err));
    FR_TRY(get(config, "vocab_size", &model->vocab, err));
    FR_TRY(get_or(config, "seq_length", 2048, &model->max_seq, err));
    FR_TRY(fr_hf_derive_head_dim(config, "n_head", model, err));
    FR_TRY(fr_hf_check_hidden(config, "hidden_size", model, err));
    model->ffn_hidden = 4 * model->hidden;
    model->n_kv_heads = model->n_heads;
    model->activation = FR_ACTIVATION_GELU_TANH;
    model->has_qkv_bias = model->has_out_bias = model->has_mlp_bias = true;
    model->has_embed_norm = true;
    fr_model_set(model, FR_TRAIT_ALIBI);
    FR_TRY(fr_hf_read_switch_trait(config,
                                   "apply_residual_connection_post_layernorm",
                                   false, FR_TRAIT_NORMED_STREAM, model, err));
    FR_TRY(
        fr_hf_read_layer_norm(config, "layer_norm_epsilon", 1e-5, model, err));
    return fr_hf_read_tied(config, model, err);
}

/* Opt's table of positions has two rows more than the context. */
HF_READER(opt)
{
    int64_t width;
    bool has_bias;
    FR_TRY(fr_hf_get_size(config, "num_hidden_layers", &model->n_layers, err));
    FR_TRY(fr_hf_get_size(config, "hidden_size", &model->hidden, err));
    FR_TRY(fr_hf_get_size(config, "num_attention_heads", &model->n_heads, err));
    FR_TRY(get(config, "ffn_dim", &model->ffn_hidden, err));
    FR_TRY(get(config, "vocab_size", &model->vocab, err));
    FR_TRY(
        get_or(config, "max_position_embeddings", 2048, &model->max_seq, err));
    FR_TRY(fr_hf_derive_head_dim(config, "num_attention_heads", model, err));
    FR_TRY(get_or(config, "word_embed_proj_dim", model->hidden, &width, err));
    if (width != model->hidden)
        return fr_json_fail(fr_json_blamed(config, "word_embed_proj_dim"), err,
                            "word_embed_proj_dim %lld beside hidden_size %lld "
                            "is not modelled: the embedding has a width of its "
                            "own",
                            (long long)width, (long long)model->hidden);
    FR_TRY(fr_hf_refuse_unless(config, "do_layer_norm_before", true, err));
    FR_TRY(fr_hf_refuse_unless(config, "_remove_final_layer_norm", false, err));
    FR_TRY(fr_hf_refuse_unless(config, "layer_norm_elementwise_affine", true,
                               err));
    FR_TRY(get_bool(config, "enable_bias", true, &has_bias, err));
    FR_TRY(fr_hf_get_activation(config, "activation_function", "relu", model,
                                err));
    model->max_seq =
        model->max_seq > 0 && model->max_seq < 1 << 30 ? model->max_seq + 2 : 0;
    model->n_kv_heads = model->n_heads;
    model->has_qkv_bias = model->has_out_bias = model->has_mlp_bias = has_bias;
    return fr_hf_read_tied(config, model, err);
}

/* ---- sizes in objects of their own ----------------------------------------*/

/* A member of an object that may be absent. */
static fr_status get_inner(const fr_json_value *object, const char *key,
                           int64_t otherwise, int64_t *out, fr_err *err)
{
    *out = otherwise;
    return object != NULL && fr_json_kind_of(object) == FR_JSON_OBJECT
               ? get_or(object, key, otherwise, out, err)
               : FR_OK;
}

static fr_status read_d_model(const fr_json_value *config, fr_model *model,
                              fr_err *err)
{
    FR_TRY(get(config, "n_layers", &model->n_layers, err));
    FR_TRY(get(config, "d_model", &model->hidden, err));
    FR_TRY(get(config, "n_heads", &model->n_heads, err));
    FR_TRY(get(config, "vocab_size", &model->vocab, err));
    FR_TRY(get_or(config, "max_seq_len", 2048, &model->max_seq, err));
    FR_TRY(fr_hf_derive_head_dim(config, "n_heads", model, err));
    model->is_rms_norm = false;
    fr_model_set(model, FR_TRAIT_NO_NORM_BIAS);
    return FR_OK;
}

HF_READER(mpt)
{
    const fr_json_value *attention = fr_json_find(config, "attn_config");
    int64_t ratio, clip;
    bool has_alibi = true;
    FR_TRY(read_d_model(config, model, err));
    FR_TRY(get_or(config, "expansion_ratio", 4, &ratio, err));
    FR_TRY(fr_hf_check_hidden(config, "d_model", model, err));
    if (ratio < 1 || ratio > 1024)
        return fr_json_fail(fr_json_blamed(config, "expansion_ratio"), err,
                            "expansion_ratio %lld of d_model %lld is out of "
                            "range",
                            (long long)ratio, (long long)model->hidden);
    model->ffn_hidden = ratio * model->hidden;
    FR_TRY(get_inner(attention, "kv_n_heads", model->n_heads,
                     &model->n_kv_heads, err));
    FR_TRY(get_inner(attention, "clip_qkv", 0, &clip, err));
    if (attention != NULL) {
        FR_TRY(get_bool(attention, "alibi", false, &has_alibi, err));
        FR_TRY(fr_hf_refuse_unless(attention, "qk_ln", false, err));
        FR_TRY(fr_hf_refuse_unless(attention, "prefix_lm", false, err));
    }
    if (has_alibi)
        fr_model_set(model, FR_TRAIT_ALIBI);
    if (clip > 0)
        fr_model_set(model, FR_TRAIT_CLAMPED_QKV);
    FR_TRY(fr_hf_refuse_unless(config, "no_bias", true, err));
    model->activation = FR_ACTIVATION_GELU;
    return fr_hf_read_tied(config, model, err);
}

HF_READER(dbrx)
{
    const fr_json_value *attention, *experts;
    double clip;
    FR_TRY(read_d_model(config, model, err));
    FR_TRY(fr_json_get_object(config, "attn_config", &attention, err));
    FR_TRY(fr_json_get_object(config, "ffn_config", &experts, err));
    FR_TRY(get(attention, "kv_n_heads", &model->n_kv_heads, err));
    FR_TRY(fr_json_get_double_or(attention, "rope_theta", 10000.0,
                                 &model->rope_theta, err));
    FR_TRY(fr_json_get_double_or(attention, "clip_qkv", 0.0, &clip, err));
    if (clip > 0)
        fr_model_set(model, FR_TRAIT_CLAMPED_QKV);
    FR_TRY(get(experts, "ffn_hidden_size", &model->expert_ffn_hidden, err));
    FR_TRY(get(experts, "moe_num_experts", &model->n_experts, err));
    FR_TRY(get(experts, "moe_top_k", &model->n_experts_per_token, err));
    model->ffn_hidden = model->expert_ffn_hidden;
    model->is_gated_mlp = model->is_rope = true;
    model->activation = FR_ACTIVATION_SILU;
    return get_bool(config, "tie_word_embeddings", false, &model->is_tied, err);
}

/* transformers, configuration_<type>.py: {layers, hidden, heads, mlp, vocab,
 * kv heads, head, positions, window, epsilon}. */
const fr_hf_type fr_hf_block_types[] = {
    {"starcoder2",
     read_starcoder2,
     {30, 3072, 24, 12288, 49152, 2, 0, 4096, 0, 1e-5}},
    {"nemotron",
     read_nemotron,
     {32, 6144, 48, 24576, 256000, 0, 0, 4096, 0, 1e-5}},
    {"stablelm",
     read_stablelm,
     {32, 2560, 32, 6912, 50304, 32, 0, 4096, 0, 1e-5}},
    {"phimoe", read_phimoe, {32, 4096, 32, 6400, 32064, 8, 0, 131072, 0, 1e-5}},
    {"falcon", read_falcon, {32, 4544, 71, 0, 65024, 0, 0, 2048, 0, 1e-5}},
    {"gptj", read_gptj, {0}},
    {"bloom", read_bloom, {0}},
    {"opt", read_opt, {0}},
    {"mpt", read_mpt, {0}},
    {"dbrx", read_dbrx, {0}},
};

const size_t fr_n_hf_block_types = FR_LENGTH(fr_hf_block_types);
