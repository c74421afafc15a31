/*
 * hf_plain.c: llama by another name: decoders with attention, RMS norms and a
 * gated MLP or experts in every layer.  Differences are traits
 * (model_traits.inc).  Names and defaults are those of transformers'
 * configuration_<type>.py, or of the file of that name in the model's
 * repository (internlm2, internlm3, chatglm, baichuan).
 */
#include "spec/model/hf/hf_get.h"
#include "spec/model/hf/hf_marks.h"
#include "spec/model/hf/hf_type.h"
#include "spec/model/hf/model_hf_experts.h"
#include "spec/model/hf/model_hf_rope.h"

/* ---- llama by another name ------------------------------------------------*/

HF_READER(phi3)
{
    FR_TRY(fr_hf_read_llama_like(config, model, err));
    FR_TRY(fr_hf_refuse_unless(config, "attention_bias", false, err));
    FR_TRY(fr_hf_read_rotary_share(config, 1.0, model, err));
    return fr_hf_read_window(config, model, err);
}

HF_READER(ministral3)
{
    FR_TRY(fr_hf_read_llama_like(config, model, err));
    fr_model_set(model, FR_TRAIT_POSITION_SCALE);
    return fr_hf_read_window(config, model, err);
}

HF_READER(smollm3)
{
    FR_TRY(fr_hf_read_llama_like(config, model, err));
    FR_TRY(fr_hf_read_biases(config, model, err));
    FR_TRY(fr_hf_read_tied(config, model, err));
    FR_TRY(fr_hf_refuse_unless(config, "use_sliding_window", false, err));
    FR_TRY(fr_hf_refuse_other_layers(config, "full_attention", err));
    fr_model_set(model, FR_TRAIT_SOME_POSITIONS);
    return FR_OK;
}

HF_READER(internlm)
{
    FR_TRY(fr_hf_read_llama_like(config, model, err));
    FR_TRY(get_bool(config, "bias", true, &model->has_qkv_bias, err));
    model->has_out_bias = model->has_qkv_bias;
    return FR_OK;
}

HF_READER(internlm3)
{
    FR_TRY(fr_hf_read_llama_like(config, model, err));
    FR_TRY(get_bool(config, "qkv_bias", false, &model->has_qkv_bias, err));
    FR_TRY(get_bool(config, "bias", false, &model->has_out_bias, err));
    model->has_mlp_bias = model->has_out_bias;
    return FR_OK;
}

HF_READER(seed_oss)
{
    FR_TRY(fr_hf_read_llama_like(config, model, err));
    FR_TRY(get_bool(config, "attention_bias", true, &model->has_qkv_bias, err));
    FR_TRY(get_bool(config, "attention_out_bias", false, &model->has_out_bias,
                    err));
    return get_bool(config, "mlp_bias", false, &model->has_mlp_bias, err);
}

HF_READER(granite)
{
    FR_TRY(fr_hf_read_llama_like(config, model, err));
    FR_TRY(fr_hf_read_biases(config, model, err));
    fr_model_set(model, FR_TRAIT_MULTIPLIERS);
    fr_model_set(model, FR_TRAIT_SCORE_SCALE);
    return FR_OK;
}

HF_READER(granitemoe)
{
    FR_TRY(read_granite(config, model, err));
    FR_TRY(get(config, "num_local_experts", &model->n_experts, err));
    FR_TRY(get_or(config, "num_experts_per_tok", 2, &model->n_experts_per_token,
                  err));
    model->expert_ffn_hidden = model->ffn_hidden;
    return fr_hf_read_aux_loss(config, 0.001, model, err);
}

HF_READER(ernie4_5)
{
    FR_TRY(fr_hf_read_llama_like(config, model, err));
    FR_TRY(get_bool(config, "use_bias", false, &model->has_qkv_bias, err));
    model->has_out_bias = model->has_mlp_bias = model->has_qkv_bias;
    fr_model_set(model, FR_TRAIT_PAIRED_ROTARY);
    return fr_hf_read_tied(config, model, err);
}

HF_READER(ernie4_5_moe)
{
    int64_t n_shared, last;
    FR_TRY(read_ernie4_5(config, model, err));
    FR_TRY(get(config, "moe_num_experts", &model->n_experts, err));
    FR_TRY(get(config, "moe_k", &model->n_experts_per_token, err));
    FR_TRY(
        get(config, "moe_intermediate_size", &model->expert_ffn_hidden, err));
    FR_TRY(get_or(config, "moe_num_shared_experts", 0, &n_shared, err));
    FR_TRY(get_or(config, "moe_layer_start_index", 1,
                  &model->first_dense_layers, err));
    FR_TRY(get_or(config, "moe_layer_end_index", -1, &last, err));
    FR_TRY(fr_hf_refuse_but(config, "moe_layer_interval", 1, err));
    if (last != -1 && last != model->n_layers - 1)
        return fr_json_fail(fr_json_blamed(config, "moe_layer_end_index"), err,
                            "moe_layer_end_index %lld is not modelled, only "
                            "the last layer, %lld",
                            (long long)last, (long long)model->n_layers - 1);
    model->has_router_bias = true; /* a parameter of this class */
    return fr_hf_set_shared(config, n_shared, model, err);
}

HF_READER(hunyuan_dense)
{
    FR_TRY(fr_hf_read_llama_like(config, model, err));
    FR_TRY(fr_hf_read_biases(config, model, err));
    FR_TRY(get_bool(config, "use_qk_norm", true, &model->has_qk_norm, err));
    return FR_OK;
}

HF_READER(hunyuan_moe)
{
    int64_t n_shared;
    FR_TRY(read_hunyuan_dense(config, model, err));
    FR_TRY(get(config, "num_experts", &model->n_experts, err));
    FR_TRY(get(config, "moe_topk", &model->n_experts_per_token, err));
    FR_TRY(get_or(config, "moe_intermediate_size", model->ffn_hidden,
                  &model->expert_ffn_hidden, err));
    FR_TRY(get_or(config, "num_shared_expert", 1, &n_shared, err));
    FR_TRY(fr_hf_refuse_but(config, "moe_layer_num_skipped", 0, err));
    return fr_hf_set_shared(config, n_shared, model, err);
}

/* ---- norms in other places ------------------------------------------------*/

HF_READER(glm)
{
    FR_TRY(fr_hf_read_llama_like(config, model, err));
    FR_TRY(
        get_bool(config, "attention_bias", false, &model->has_qkv_bias, err));
    fr_model_set(model, FR_TRAIT_PAIRED_ROTARY);
    return fr_hf_read_rotary_share(config, 0.5, model, err);
}

HF_READER(glm4)
{
    FR_TRY(read_glm(config, model, err));
    fr_model_set(model, FR_TRAIT_OUTPUT_NORMS);
    return FR_OK;
}

/* GLM's remote class of generations 1 to 3 and of glm-4-9b. */
HF_READER(chatglm)
{
    bool has_one, is_after;
    FR_TRY(get(config, "num_layers", &model->n_layers, err));
    FR_TRY(get(config, "hidden_size", &model->hidden, err));
    FR_TRY(get(config, "num_attention_heads", &model->n_heads, err));
    FR_TRY(get(config, "ffn_hidden_size", &model->ffn_hidden, err));
    FR_TRY(get(config, "padded_vocab_size", &model->vocab, err));
    FR_TRY(get_or(config, "seq_length", 2048, &model->max_seq, err));
    FR_TRY(get_or(config, "kv_channels", 128, &model->head_dim, err));
    FR_TRY(get_bool(config, "multi_query_attention", false, &has_one, err));
    model->n_kv_heads = model->n_heads;
    if (has_one)
        FR_TRY(get_or(config, "multi_query_group_num", 1, &model->n_kv_heads,
                      err));
    FR_TRY(get_bool(config, "add_qkv_bias", false, &model->has_qkv_bias, err));
    FR_TRY(
        get_bool(config, "add_bias_linear", false, &model->has_out_bias, err));
    model->has_mlp_bias = model->has_out_bias;
    model->has_qkv_bias = model->has_qkv_bias || model->has_out_bias;
    FR_TRY(get_bool(config, "rmsnorm", true, &model->is_rms_norm, err));
    FR_TRY(get_bool(config, "apply_residual_connection_post_layernorm", false,
                    &is_after, err));
    if (is_after)
        fr_model_set(model, FR_TRAIT_NORMED_STREAM);
    FR_TRY(fr_json_get_double_or(config, "layernorm_epsilon", 1e-5,
                                 &model->norm_eps, err));
    FR_TRY(
        get_bool(config, "tie_word_embeddings", false, &model->is_tied, err));
    FR_TRY(fr_hf_refuse_unless(config, "post_layer_norm", true, err));
    model->activation = FR_ACTIVATION_SILU;
    model->is_gated_mlp = model->is_rope = true;
    model->rope_frac = 0.5;
    fr_model_set(model, FR_TRAIT_PAIRED_ROTARY);
    return FR_OK;
}

/* Baichuan 1 and 2: the larger one, which has no rotary base, has ALiBi; the
 * head of version 2 has rows of unit length (its vocabulary is 125696). */
HF_READER(baichuan)
{
    enum { VOCAB_2 = 125696, LARGE = 5120 };
    FR_TRY(fr_hf_read_llama_like(config, model, err));
    model->n_kv_heads = model->n_heads;
    if (model->vocab == VOCAB_2)
        fr_model_set(model, FR_TRAIT_UNIT_HEAD);
    if (model->hidden >= LARGE) {
        model->is_rope = false;
        fr_model_set(model, FR_TRAIT_ALIBI);
    }
    return FR_OK;
}

/* transformers, configuration_<type>.py: {layers, hidden, heads, mlp, vocab,
 * kv heads, head, positions, window, epsilon}. */
const fr_hf_type fr_hf_plain_types[] = {
    {"phi3", read_phi3, {32, 3072, 32, 8192, 32064, 0, 0, 4096, 0, 1e-5}},
    {"glm",
     read_glm,
     {40, 4096, 32, 13696, 151552, 2, 128, 131072, 0, 1.5625e-7}},
    {"glm4",
     read_glm4,
     {40, 4096, 32, 13696, 151552, 2, 128, 131072, 0, 1.5625e-7}},
    {"chatglm", read_chatglm, {0}},
    {"baichuan",
     read_baichuan,
     {32, 4096, 32, 11008, 64000, 0, 0, 4096, 0, 1e-6}},
    {"internlm",
     read_internlm,
     {32, 4096, 32, 11008, 103168, 0, 0, 2048, 0, 1e-6}},
    {"internlm2",
     read_internlm,
     {32, 4096, 32, 11008, 103168, 0, 0, 2048, 0, 1e-6}},
    {"internlm3",
     read_internlm3,
     {32, 4096, 32, 11008, 128512, 2, 128, 32768, 0, 1e-6}},
    {"ministral3",
     read_ministral3,
     {34, 4096, 32, 14336, 131072, 8, 128, 262144, 0, 1e-5}},
    {"smollm3",
     read_smollm3,
     {36, 2048, 16, 11008, 128256, 4, 0, 32768, 0, 1e-6}},
    {"seed_oss",
     read_seed_oss,
     {64, 4096, 32, 27648, 155136, 8, 128, 524288, 0, 1e-6}},
    {"granite",
     read_granite,
     {32, 4096, 32, 11008, 32000, 0, 0, 2048, 0, 1e-6}},
    {"granitemoe",
     read_granitemoe,
     {32, 4096, 32, 11008, 32000, 0, 0, 2048, 0, 1e-6}},
    {"ernie4_5",
     read_ernie4_5,
     {18, 1024, 16, 3072, 103424, 2, 128, 131072, 0, 1e-5}},
    {"ernie4_5_moe",
     read_ernie4_5_moe,
     {28, 2560, 20, 12288, 103424, 4, 0, 131072, 0, 1e-5}},
    {"hunyuan_v1_dense",
     read_hunyuan_dense,
     {32, 4096, 32, 11008, 290943, 0, 0, 2048, 0, 1e-5}},
    {"hunyuan_v1_moe",
     read_hunyuan_moe,
     {32, 4096, 32, 11008, 290943, 0, 0, 2048, 0, 1e-5}},
};

const size_t fr_n_hf_plain_types = FR_LENGTH(fr_hf_plain_types);
