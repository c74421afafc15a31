/*
 * hf_windows.c: decoders with attention in every layer that sees a window, or a
 * chunk, in some of them; and their older kin.  See hf_plain.c.
 */
#include "spec/model/hf/hf_get.h"
#include "spec/model/hf/hf_marks.h"
#include "spec/model/hf/hf_type.h"
#include "spec/model/hf/model_hf_experts.h"
#include "spec/model/hf/model_hf_rope.h"

/* Olmo 2: norms on outputs alone, q and k normed over all heads. */
HF_READER(olmo2)
{
    FR_TRY(fr_hf_read_llama_like(config, model, err));
    FR_TRY(fr_hf_read_biases(config, model, err));
    model->has_qk_norm = true;
    fr_model_set(model, FR_TRAIT_WIDE_QK_NORM);
    fr_model_set(model, FR_TRAIT_OUTPUT_NORMS);
    fr_model_set(model, FR_TRAIT_NO_INPUT_NORMS);
    return FR_OK;
}

/* Command R: parallel blocks with one layer norm without bias. */
HF_READER(cohere)
{
    FR_TRY(fr_hf_read_llama_like(config, model, err));
    FR_TRY(fr_hf_read_biases(config, model, err));
    FR_TRY(fr_hf_read_layer_norm(config, "layer_norm_eps", 1e-5, model, err));
    FR_TRY(get_bool(config, "use_qk_norm", false, &model->has_qk_norm, err));
    if (model->has_qk_norm)
        fr_model_set(model, FR_TRAIT_WIDE_QK_NORM);
    fr_model_set(model, FR_TRAIT_NO_NORM_BIAS);
    fr_model_set(model, FR_TRAIT_ONE_BLOCK_NORM);
    fr_model_set(model, FR_TRAIT_PAIRED_ROTARY);
    fr_model_set(model, FR_TRAIT_MULTIPLIERS);
    model->is_parallel_block = true;
    return fr_hf_read_tied(config, model, err);
}

/* ---- windows in turn, and what comes with them ----------------------------*/

HF_READER(gemma2)
{
    FR_TRY(fr_hf_read_gemma_like(config, model, err));
    fr_model_set(model, FR_TRAIT_OUTPUT_NORMS);
    FR_TRY(fr_hf_read_number_trait(config, "attn_logit_softcapping", 0,
                                   FR_TRAIT_SCORE_CAP, model, err));
    FR_TRY(fr_hf_read_number_trait(config, "final_logit_softcapping", 0,
                                   FR_TRAIT_LOGIT_CAP, model, err));
    if (!fr_hf_is_null(config, "attn_logit_softcapping"))
        fr_model_set(model, FR_TRAIT_SCORE_CAP);
    if (!fr_hf_is_null(config, "final_logit_softcapping"))
        fr_model_set(model, FR_TRAIT_LOGIT_CAP);
    FR_TRY(fr_hf_read_number_trait(config, "query_pre_attn_scalar", 256,
                                   FR_TRAIT_SCORE_SCALE, model, err));
    FR_TRY(fr_hf_read_window(config, model, err));
    return fr_hf_read_windows(config, 2, model, err);
}

HF_READER(gemma3)
{
    FR_TRY(fr_hf_read_gemma_like(config, model, err));
    model->has_qk_norm = true;
    fr_model_set(model, FR_TRAIT_OUTPUT_NORMS);
    fr_model_set(model, FR_TRAIT_LOCAL_ROTARY);
    FR_TRY(fr_hf_read_number_trait(config, "attn_logit_softcapping", 0,
                                   FR_TRAIT_SCORE_CAP, model, err));
    FR_TRY(fr_hf_read_number_trait(config, "final_logit_softcapping", 0,
                                   FR_TRAIT_LOGIT_CAP, model, err));
    FR_TRY(
        fr_hf_refuse_unless(config, "use_bidirectional_attention", false, err));
    FR_TRY(fr_hf_read_window(config, model, err));
    return fr_hf_read_windows(config, 6, model, err);
}

HF_READER(olmo3)
{
    FR_TRY(read_olmo2(config, model, err));
    FR_TRY(fr_hf_read_window(config, model, err));
    return fr_hf_read_windows(config, 4, model, err);
}

/* EXAONE 4: norms of each head; the smaller one has no windows. */
HF_READER(exaone4)
{
    FR_TRY(fr_hf_read_llama_like(config, model, err));
    model->has_qk_norm = true;
    fr_model_set(model, FR_TRAIT_OUTPUT_NORMS);
    fr_model_set(model, FR_TRAIT_NO_INPUT_NORMS);
    FR_TRY(fr_hf_read_window(config, model, err));
    if (model->sliding_window == 0)
        return fr_hf_refuse_other_layers(config, "full_attention", err);
    fr_model_set(model, FR_TRAIT_SOME_POSITIONS);
    return fr_hf_read_windows(config, 4, model, err);
}

HF_READER(cohere2)
{
    FR_TRY(read_cohere(config, model, err));
    fr_model_set(model, FR_TRAIT_SOME_POSITIONS);
    FR_TRY(fr_hf_read_window(config, model, err));
    return fr_hf_read_windows(config, 4, model, err);
}

HF_READER(gpt_oss)
{
    FR_TRY(fr_hf_read_llama_like(config, model, err));
    FR_TRY(get_bool(config, "attention_bias", true, &model->has_qkv_bias, err));
    model->has_out_bias = model->has_qkv_bias;
    model->has_mlp_bias = true; /* of each expert */
    fr_model_set(model, FR_TRAIT_SINKS);
    fr_model_set(model, FR_TRAIT_ROUTER_OFFSET);
    fr_model_set(model, FR_TRAIT_CLAMPED_EXPERTS);
    FR_TRY(get_or(config, "num_local_experts", 128, &model->n_experts, err));
    FR_TRY(get_or(config, "num_experts_per_tok", 4, &model->n_experts_per_token,
                  err));
    model->expert_ffn_hidden = model->ffn_hidden;
    FR_TRY(fr_hf_read_aux_loss(config, 0.9, model, err));
    FR_TRY(fr_hf_read_window(config, model, err));
    return fr_hf_read_windows(config, 2, model, err);
}

/* moe_layers has the numbers of the layers with experts; where it is absent
 * they follow a period. */
static fr_status read_moe_layers(const fr_json_value *config, fr_model *model,
                                 fr_err *err)
{
    const fr_json_value *list = fr_json_find(config, "moe_layers");
    bool is_regular = true;
    if (list == NULL || fr_json_kind_of(list) != FR_JSON_ARRAY)
        return FR_OK;
    FR_TRY(fr_hf_mark_mlps(config, 'm', model, err));
    for (size_t i = 0; i < fr_json_n(list); i++) {
        const fr_json_value *at = fr_json_at(list, i);
        int64_t layer;
        FR_TRY(fr_json_as_i64(at, &layer, err));
        if (layer < 0 || layer >= model->n_layers)
            return fr_json_fail(at, err, "moe_layers names layer %lld of %lld",
                                (long long)layer, (long long)model->n_layers);
        model->mlps[layer] = 'e';
    }
    for (int64_t i = 0; i < model->n_layers && model->moe_every > 0; i++)
        is_regular = is_regular && (model->mlps[i] == 'e') ==
                                       ((i + 1) % model->moe_every == 0);
    if (is_regular)
        model->mlps[0] = '\0';
    return FR_OK;
}

/* Scout has experts in all layers, Maverick in every second; a dense layer has
 * a width of its own.  Three of four layers attend within chunks. */
HF_READER(llama4)
{
    FR_TRY(fr_hf_read_llama_like(config, model, err));
    FR_TRY(fr_hf_refuse_unless(config, "attention_bias", false, err));
    model->expert_ffn_hidden = model->shared_expert_ffn_hidden =
        model->ffn_hidden;
    FR_TRY(get_or(config, "intermediate_size_mlp", 16384, &model->ffn_hidden,
                  err));
    FR_TRY(get_or(config, "num_local_experts", 16, &model->n_experts, err));
    FR_TRY(get_or(config, "num_experts_per_tok", 1, &model->n_experts_per_token,
                  err));
    FR_TRY(
        get_or(config, "interleave_moe_layer_step", 1, &model->moe_every, err));
    FR_TRY(get_bool(config, "use_qk_norm", true, &model->has_qk_norm, err));
    if (model->has_qk_norm)
        fr_model_set(model, FR_TRAIT_UNIT_QK);
    fr_model_set(model, FR_TRAIT_POSITION_SCALE);
    fr_model_set(model, FR_TRAIT_PAIRED_ROTARY);
    fr_model_set(model, FR_TRAIT_SOME_POSITIONS);
    fr_model_set(model, FR_TRAIT_OTHER_ROUTER);
    model->has_sigmoid_router = true;
    FR_TRY(read_moe_layers(config, model, err));
    return fr_hf_read_chunks(config, model, err);
}

/* transformers, configuration_<type>.py: {layers, hidden, heads, mlp, vocab,
 * kv heads, head, positions, window, epsilon}. */
const fr_hf_type fr_hf_window_types[] = {
    {"olmo2", read_olmo2, {32, 4096, 32, 11008, 50304, 0, 0, 2048, 0, 1e-5}},
    {"olmo3", read_olmo3, {32, 4096, 32, 11008, 50304, 0, 0, 2048, 4096, 1e-5}},
    {"exaone4",
     read_exaone4,
     {32, 4096, 32, 16384, 102400, 0, 0, 2048, 4096, 1e-5}},
    {"cohere", read_cohere, {40, 8192, 64, 22528, 256000, 0, 0, 8192, 0, 1e-5}},
    {"cohere2",
     read_cohere2,
     {40, 8192, 64, 22528, 256000, 0, 0, 8192, 4096, 1e-5}},
    {"gemma2",
     read_gemma2,
     {26, 2304, 8, 9216, 256000, 4, 256, 8192, 4096, 1e-6}},
    {"gemma3_text",
     read_gemma3,
     {26, 2304, 8, 9216, 262208, 4, 256, 131072, 4096, 1e-6}},
    {"gpt_oss",
     read_gpt_oss,
     {36, 2880, 64, 2880, 201088, 8, 64, 131072, 128, 1e-5}},
    {"llama4_text",
     read_llama4,
     {48, 5120, 40, 8192, 202048, 8, 128, 131072, 0, 1e-5}},
};

const size_t fr_n_hf_window_types = FR_LENGTH(fr_hf_window_types);
