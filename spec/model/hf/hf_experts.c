/*
 * hf_experts.c: decoders with experts like DeepSeek's: sigmoid scores, groups,
 * dense layers first, latent attention.  See hf_plain.c.
 */
#include "spec/model/hf/hf_get.h"
#include "spec/model/hf/hf_marks.h"
#include "spec/model/hf/hf_type.h"
#include "spec/model/hf/model_hf_experts.h"
#include "spec/model/hf/model_hf_rope.h"

#include <string.h>

fr_status fr_hf_read_deepseek(const fr_json_value *config, fr_model *model,
                              fr_err *err)
{
    int64_t n_shared, frequency;
    FR_TRY(get(config, "qk_nope_head_dim", &model->qk_nope_head_dim, err));
    FR_TRY(get(config, "qk_rope_head_dim", &model->qk_rope_head_dim, err));
    model->head_dim = model->qk_rope_head_dim; /* the class's own head_dim */
    FR_TRY(fr_hf_read_llama_like(config, model, err));
    model->head_dim = model->qk_nope_head_dim + model->qk_rope_head_dim;
    model->n_kv_heads = model->n_heads;
    FR_TRY(fr_hf_refuse_unless(config, "attention_bias", false, err));
    FR_TRY(get(config, "v_head_dim", &model->v_head_dim, err));
    FR_TRY(get(config, "kv_lora_rank", &model->kv_lora_rank, err));
    FR_TRY(get_or(config, "q_lora_rank", 0, &model->q_lora_rank, err));
    FR_TRY(get(config, "n_routed_experts", &model->n_experts, err));
    FR_TRY(
        get(config, "num_experts_per_tok", &model->n_experts_per_token, err));
    FR_TRY(
        get(config, "moe_intermediate_size", &model->expert_ffn_hidden, err));
    FR_TRY(get_or(config, "n_shared_experts", 0, &n_shared, err));
    FR_TRY(get_or(config, "first_k_dense_replace", 0,
                  &model->first_dense_layers, err));
    FR_TRY(get_or(config, "moe_layer_freq", 1, &frequency, err));
    FR_TRY(get_or(config, "num_nextn_predict_layers", 0, &model->n_mtp_layers,
                  err));
    if (frequency != 1)
        return fr_json_fail(fr_json_blamed(config, "moe_layer_freq"), err,
                            "moe_layer_freq %lld is not modelled, only 1",
                            (long long)frequency);
    if (n_shared < 0 || n_shared > 1024 || model->expert_ffn_hidden < 0 ||
        model->expert_ffn_hidden > 1 << 28)
        return fr_json_fail(config, err,
                            "n_shared_experts %lld x moe_intermediate_size "
                            "%lld is out of range",
                            (long long)n_shared,
                            (long long)model->expert_ffn_hidden);
    model->shared_expert_ffn_hidden = n_shared * model->expert_ffn_hidden;
    return fr_hf_read_deepseek_router(config, model, err);
}

/* ---- experts like DeepSeek's ----------------------------------------------*/

/* Keys of GLM 4.5's and dots.llm1's classes. */
static fr_status read_sigmoid_experts(const fr_json_value *config,
                                      const char *n_experts_key,
                                      const char *n_shared_key, fr_model *model,
                                      fr_err *err)
{
    int64_t n_shared;
    FR_TRY(get(config, n_experts_key, &model->n_experts, err));
    FR_TRY(
        get(config, "num_experts_per_tok", &model->n_experts_per_token, err));
    FR_TRY(
        get(config, "moe_intermediate_size", &model->expert_ffn_hidden, err));
    FR_TRY(get_or(config, n_shared_key, 0, &n_shared, err));
    FR_TRY(get_or(config, "first_k_dense_replace", 1,
                  &model->first_dense_layers, err));
    FR_TRY(get_or(config, "n_group", 1, &model->n_expert_groups, err));
    FR_TRY(get_or(config, "topk_group", 1, &model->n_chosen_groups, err));
    FR_TRY(fr_json_get_double_or(config, "routed_scaling_factor", 1.0,
                                 &model->routed_scale, err));
    bool is_normed;
    FR_TRY(get_bool(config, "norm_topk_prob", true, &is_normed, err));
    model->has_softmax_over_all = !is_normed;
    model->has_sigmoid_router = true;
    return fr_hf_set_shared(config, n_shared, model, err);
}

HF_READER(glm4_moe)
{
    FR_TRY(fr_hf_read_llama_like(config, model, err));
    FR_TRY(
        get_bool(config, "attention_bias", false, &model->has_qkv_bias, err));
    FR_TRY(get_bool(config, "use_qk_norm", false, &model->has_qk_norm, err));
    FR_TRY(fr_hf_read_rotary_share(config, 0.5, model, err));
    FR_TRY(get_or(config, "num_nextn_predict_layers", 0, &model->n_mtp_layers,
                  err));
    return read_sigmoid_experts(config, "n_routed_experts", "n_shared_experts",
                                model, err);
}

HF_READER(dots1)
{
    FR_TRY(fr_hf_read_llama_like(config, model, err));
    FR_TRY(fr_hf_read_biases(config, model, err));
    model->has_qk_norm = true;
    FR_TRY(fr_hf_refuse_other_layers(config, "full_attention", err));
    FR_TRY(fr_hf_refuse_but(config, "sliding_window", 0, err));
    return read_sigmoid_experts(config, "n_routed_experts", "n_shared_experts",
                                model, err);
}

/* Ling 2.0; the class of version 1 has another router and no norms. */
HF_READER(bailing)
{
    FR_TRY(fr_hf_read_llama_like(config, model, err));
    FR_TRY(fr_hf_refuse_unless(config, "use_bias", false, err));
    FR_TRY(fr_hf_refuse_unless(config, "use_qkv_bias", false, err));
    FR_TRY(get_bool(config, "use_qk_norm", false, &model->has_qk_norm, err));
    FR_TRY(get_or(config, "num_nextn_predict_layers", 0, &model->n_mtp_layers,
                  err));
    FR_TRY(fr_hf_read_rotary_share(config, 0.5, model, err));
    return read_sigmoid_experts(config, "num_experts", "num_shared_experts",
                                model, err);
}

/* DeepSeek-V2: a softmax over all experts, of which groups are chosen by
 * their best one. */
HF_READER(deepseek_v2)
{
    const char *method, *scores;
    bool is_normed;
    FR_TRY(fr_hf_read_deepseek(config, model, err));
    FR_TRY(
        fr_json_get_string_or(config, "scoring_func", "softmax", &scores, err));
    FR_TRY(
        fr_json_get_string_or(config, "topk_method", "greedy", &method, err));
    FR_TRY(get_or(config, "n_group", 1, &model->n_expert_groups, err));
    FR_TRY(get_or(config, "topk_group", 1, &model->n_chosen_groups, err));
    if (strcmp(method, "greedy") == 0)
        model->n_expert_groups = model->n_chosen_groups = 1;
    FR_TRY(get_bool(config, "norm_topk_prob", false, &is_normed, err));
    model->has_softmax_over_all = !is_normed;
    model->has_sigmoid_router = strcmp(scores, "sigmoid") == 0;
    return fr_json_get_double_or(config, "routed_scaling_factor", 1.0,
                                 &model->routed_scale, err);
}

HF_READER(kimi_k2)
{
    return fr_hf_read_deepseek(config, model, err);
}

/* GLM 4.7 Flash: DeepSeek's layer with the router of GLM 4.5. */
HF_READER(glm4_moe_lite)
{
    FR_TRY(fr_hf_read_deepseek(config, model, err));
    FR_TRY(get_or(config, "n_group", 1, &model->n_expert_groups, err));
    FR_TRY(get_or(config, "topk_group", 1, &model->n_chosen_groups, err));
    return fr_json_get_double_or(config, "routed_scaling_factor", 1.8,
                                 &model->routed_scale, err);
}

/* transformers, configuration_<type>.py: {layers, hidden, heads, mlp, vocab,
 * kv heads, head, positions, window, epsilon}. */
const fr_hf_type fr_hf_expert_types[] = {
    {"kimi_k2",
     read_kimi_k2,
     {61, 7168, 128, 18432, 129280, 128, 0, 4096, 0, 1e-6}},
    {"glm4_moe",
     read_glm4_moe,
     {46, 4096, 96, 10944, 151552, 8, 0, 131072, 0, 1e-5}},
    {"glm4_moe_lite",
     read_glm4_moe_lite,
     {47, 2048, 20, 10240, 154880, 20, 0, 202752, 0, 1e-5}},
    {"deepseek_v2",
     read_deepseek_v2,
     {32, 4096, 32, 11008, 102400, 0, 0, 2048, 0, 1e-6}},
    {"dots1", read_dots1, {62, 4096, 32, 10944, 152064, 32, 0, 2048, 0, 1e-6}},
    {"bailing_moe",
     read_bailing,
     {20, 2048, 16, 5120, 157184, 0, 0, 32768, 0, 1e-6}},
};

const size_t fr_n_hf_expert_types = FR_LENGTH(fr_hf_expert_types);
