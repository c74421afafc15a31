/*
 * hf_mixed.c: models whose layers are of several kinds, or have no attention:
 * state spaces, linear attention, short convolutions (mixers.h).  Names and
 * defaults are those of transformers' configuration_<type>.py.
 */
#include "spec/model/hf/hf_get.h"
#include "spec/model/hf/hf_marks.h"
#include "spec/model/hf/hf_type.h"
#include "spec/model/hf/model_hf_experts.h"
#include "spec/model/hf/model_hf_rope.h"

#include <string.h>

/* Marks all layers alike. */
static fr_status mark_all(const fr_json_value *config, char mixer, char mlp,
                          fr_model *model, fr_err *err)
{
    FR_TRY(fr_hf_mark_period(config, 1, 0, mixer, mixer, model, err));
    return fr_hf_mark_mlps(config, mlp, model, err);
}

/* A model without attention has one head as wide as the stream, which nothing
 * counts. */
static fr_status read_state_model(const fr_json_value *config, char mixer,
                                  fr_model *model, fr_err *err)
{
    FR_TRY(get(config, "num_hidden_layers", &model->n_layers, err));
    FR_TRY(get(config, "hidden_size", &model->hidden, err));
    FR_TRY(fr_hf_check_hidden(config, "hidden_size", model, err));
    FR_TRY(get(config, "vocab_size", &model->vocab, err));
    FR_TRY(get_or(config, "state_size", mixer == 's' ? 16 : 128,
                  &model->mix_state, err));
    FR_TRY(get_or(config, "conv_kernel", 4, &model->mix_conv, err));
    FR_TRY(fr_json_get_double_or(config, "layer_norm_epsilon", 1e-5,
                                 &model->norm_eps, err));
    FR_TRY(fr_hf_get_activation(config, "hidden_act", "silu", model, err));
    FR_TRY(fr_hf_refuse_unless(config, "use_bias", false, err));
    FR_TRY(fr_hf_refuse_unless(config, "use_conv_bias", true, err));
    model->is_rms_norm = true;
    model->n_heads = model->n_kv_heads = 1;
    model->head_dim = 64;
    fr_model_set(model, FR_TRAIT_NO_POSITIONS);
    return mark_all(config, mixer, '-', model, err);
}

/* ceil(hidden / 16), the class's "auto". */
static fr_status read_step_rank(const fr_json_value *config, const char *key,
                                fr_model *model, fr_err *err)
{
    const fr_json_value *rank = fr_json_find(config, key);
    model->mix_rank = (model->hidden + 15) / 16;
    if (rank != NULL && fr_json_kind_of(rank) == FR_JSON_STRING)
        return FR_OK;
    return get_or(config, key, model->mix_rank, &model->mix_rank, err);
}

static fr_status read_inner(const fr_json_value *config, const char *key,
                            int64_t otherwise, int64_t *out, fr_err *err)
{
    FR_TRY(get_or(config, key, otherwise, out, err));
    if (*out < 1 || *out > 1024)
        return fr_json_fail(fr_json_blamed(config, key), err,
                            "%s is %lld; give 1 to 1024", key, (long long)*out);
    return FR_OK;
}

HF_READER(mamba)
{
    int64_t expand;
    FR_TRY(read_state_model(config, 's', model, err));
    FR_TRY(read_inner(config, "expand", 2, &expand, err));
    FR_TRY(get_or(config, "intermediate_size", expand * model->hidden,
                  &model->mix_heads, err));
    FR_TRY(read_step_rank(config, "time_step_rank", model, err));
    model->mix_head_dim = 1; /* channels stand alone */
    return get_bool(config, "tie_word_embeddings", true, &model->is_tied, err);
}

/* Its norms of step, B and C have no weights. */
HF_READER(falcon_mamba)
{
    FR_TRY(read_mamba(config, model, err));
    return get_bool(config, "tie_word_embeddings", true, &model->is_tied, err);
}

HF_READER(mamba2)
{
    FR_TRY(read_state_model(config, 'm', model, err));
    FR_TRY(get_or(config, "num_heads", 128, &model->mix_heads, err));
    FR_TRY(get_or(config, "head_dim", 64, &model->mix_head_dim, err));
    FR_TRY(get_or(config, "n_groups", 8, &model->mix_groups, err));
    FR_TRY(get_or(config, "chunk_size", 256, &model->mix_chunk, err));
    model->head_dim = 64;
    model->has_mix_norm = true;
    return get_bool(config, "tie_word_embeddings", false, &model->is_tied, err);
}

/* ---- attention, state spaces and MLPs -------------------------------------*/

/* The keys that Jamba's and Granite 4's classes share. */
static fr_status read_mamba_sizes(const fr_json_value *config, fr_model *model,
                                  fr_err *err)
{
    FR_TRY(get_or(config, "mamba_d_conv", 4, &model->mix_conv, err));
    FR_TRY(fr_hf_refuse_unless(config, "mamba_conv_bias", true, err));
    FR_TRY(fr_hf_refuse_unless(config, "mamba_proj_bias", false, err));
    return FR_OK;
}

static fr_status mark_mlps(const fr_json_value *config, int64_t period,
                           int64_t offset, fr_model *model, fr_err *err)
{
    if (period < 1)
        return fr_json_fail(config, err,
                            "the period of experts is %lld; give 1 or more",
                            (long long)period);
    for (int64_t i = 0; i < model->n_layers; i++)
        model->mlps[i] =
            model->n_experts > 0 && i % period == offset ? 'e' : 'm';
    model->mlps[model->n_layers] = '\0';
    return FR_OK;
}

HF_READER(jamba)
{
    int64_t period, offset, expand;
    FR_TRY(fr_hf_read_llama_like(config, model, err));
    FR_TRY(fr_hf_check_hidden(config, "hidden_size", model, err));
    FR_TRY(read_mamba_sizes(config, model, err));
    model->is_rope = false;
    fr_model_set(model, FR_TRAIT_NO_POSITIONS);
    FR_TRY(get_or(config, "mamba_d_state", 16, &model->mix_state, err));
    FR_TRY(read_inner(config, "mamba_expand", 2, &expand, err));
    model->mix_heads = expand * model->hidden;
    model->mix_head_dim = 1;
    model->has_mix_norm = true;
    FR_TRY(read_step_rank(config, "mamba_dt_rank", model, err));
    FR_TRY(get_or(config, "attn_layer_period", 8, &period, err));
    FR_TRY(get_or(config, "attn_layer_offset", 4, &offset, err));
    FR_TRY(fr_hf_mark_period(config, period, offset, 's', 'a', model, err));
    FR_TRY(get_or(config, "num_experts", 16, &model->n_experts, err));
    FR_TRY(get_or(config, "num_experts_per_tok", 2, &model->n_experts_per_token,
                  err));
    model->expert_ffn_hidden = model->ffn_hidden;
    model->has_softmax_over_all = true;
    if (model->n_experts <= 1) /* one expert is an MLP */
        model->n_experts = 0;
    FR_TRY(get_or(config, "expert_layer_period", 2, &period, err));
    FR_TRY(get_or(config, "expert_layer_offset", 1, &offset, err));
    FR_TRY(mark_mlps(config, period, offset, model, err));
    return fr_hf_read_aux_loss(config, 0.001, model, err);
}

/* Granite 4: attention without positions, or Mamba-2; then experts and, next to
 * them, a shared MLP of the same input. */
HF_READER(granitemoehybrid)
{
    static const fr_hf_mark marks[] = {{"mamba", 'm'}, {"attention", 'a'}};
    const char *positions;
    int64_t shared, expand;
    bool is_listed;
    FR_TRY(fr_hf_read_llama_like(config, model, err));
    FR_TRY(fr_hf_check_hidden(config, "hidden_size", model, err));
    FR_TRY(fr_hf_read_biases(config, model, err));
    fr_model_set(model, FR_TRAIT_MULTIPLIERS);
    fr_model_set(model, FR_TRAIT_SCORE_SCALE);
    FR_TRY(fr_json_get_string_or(config, "position_embedding_type", "nope",
                                 &positions, err));
    if (strcmp(positions, "rope") != 0) {
        model->is_rope = false;
        fr_model_set(model, FR_TRAIT_NO_POSITIONS);
    }
    FR_TRY(read_mamba_sizes(config, model, err));
    FR_TRY(get_or(config, "mamba_n_heads", 128, &model->mix_heads, err));
    FR_TRY(get_or(config, "mamba_n_groups", 1, &model->mix_groups, err));
    FR_TRY(get_or(config, "mamba_d_state", 256, &model->mix_state, err));
    FR_TRY(get_or(config, "mamba_chunk_size", 256, &model->mix_chunk, err));
    FR_TRY(read_inner(config, "mamba_expand", 2, &expand, err));
    model->mix_head_dim =
        model->mix_heads > 0 ? expand * model->hidden / model->mix_heads : 0;
    if (fr_json_find(config, "mamba_d_head") != NULL)
        if (fr_json_kind_of(fr_json_find(config, "mamba_d_head")) ==
            FR_JSON_NUMBER)
            FR_TRY(get(config, "mamba_d_head", &model->mix_head_dim, err));
    model->has_mix_norm = true;
    FR_TRY(fr_hf_read_marks(config, "layer_types", marks, FR_LENGTH(marks),
                            model, &is_listed, err));
    if (!is_listed)
        FR_TRY(fr_hf_read_marks(config, "layers_block_type", marks,
                                FR_LENGTH(marks), model, &is_listed, err));
    if (!is_listed)
        FR_TRY(fr_hf_mark_period(config, 1, 0, 'm', 'm', model, err));
    if (strspn(model->mixers, "a") == strlen(model->mixers))
        model->mixers[0] = '\0';
    FR_TRY(get_or(config, "num_local_experts", 8, &model->n_experts, err));
    FR_TRY(get_or(config, "num_experts_per_tok", 2, &model->n_experts_per_token,
                  err));
    FR_TRY(get_or(config, "shared_intermediate_size", 1024, &shared, err));
    model->expert_ffn_hidden = model->ffn_hidden;
    if (model->n_experts == 0)
        model->ffn_hidden = shared;
    else
        model->shared_expert_ffn_hidden = shared;
    return fr_hf_read_aux_loss(config, 0.001, model, err);
}

/* Falcon-H1: attention and Mamba-2 side by side in each layer. */
HF_READER(falcon_h1)
{
    int64_t inner;
    FR_TRY(fr_hf_read_llama_like(config, model, err));
    FR_TRY(fr_hf_read_biases(config, model, err));
    FR_TRY(read_mamba_sizes(config, model, err));
    FR_TRY(fr_hf_refuse_unless(config, "projectors_bias", false, err));
    FR_TRY(get_or(config, "mamba_n_heads", 128, &model->mix_heads, err));
    FR_TRY(get_or(config, "mamba_n_groups", 1, &model->mix_groups, err));
    FR_TRY(get_or(config, "mamba_d_state", 256, &model->mix_state, err));
    FR_TRY(get_or(config, "mamba_chunk_size", 256, &model->mix_chunk, err));
    FR_TRY(get(config, "mamba_d_ssm", &inner, err));
    if (model->mix_heads < 1 || inner % model->mix_heads != 0)
        return fr_json_fail(fr_json_blamed(config, "mamba_d_ssm"), err,
                            "mamba_d_ssm %lld is no multiple of mamba_n_heads "
                            "%lld",
                            (long long)inner, (long long)model->mix_heads);
    model->mix_head_dim = inner / model->mix_heads;
    FR_TRY(
        get_bool(config, "mamba_rms_norm", false, &model->has_mix_norm, err));
    fr_model_set(model, FR_TRAIT_MULTIPLIERS);
    return fr_hf_mark_period(config, 1, 0, 'h', 'h', model, err);
}

/* Nemotron-H: each layer is one norm and one of Mamba-2 (M), attention (*), an
 * MLP (-), experts (E). */
HF_READER(nemotron_h)
{
    const char *pattern;
    FR_TRY(fr_hf_get_size(config, "num_hidden_layers", &model->n_layers, err));
    FR_TRY(fr_hf_get_size(config, "hidden_size", &model->hidden, err));
    FR_TRY(fr_hf_get_size(config, "num_attention_heads", &model->n_heads, err));
    FR_TRY(get(config, "vocab_size", &model->vocab, err));
    FR_TRY(get_or(config, "num_key_value_heads", model->n_heads,
                  &model->n_kv_heads, err));
    FR_TRY(get_or(config, "attention_head_dim", 0, &model->head_dim, err));
    FR_TRY(fr_hf_derive_head_dim(config, "num_attention_heads", model, err));
    FR_TRY(get_or(config, "intermediate_size", 0, &model->ffn_hidden, err));
    FR_TRY(
        get_or(config, "max_position_embeddings", 4096, &model->max_seq, err));
    FR_TRY(get(config, "mamba_num_heads", &model->mix_heads, err));
    FR_TRY(get(config, "mamba_head_dim", &model->mix_head_dim, err));
    FR_TRY(get_or(config, "n_groups", 8, &model->mix_groups, err));
    FR_TRY(get_or(config, "ssm_state_size", 128, &model->mix_state, err));
    FR_TRY(get_or(config, "conv_kernel", 4, &model->mix_conv, err));
    FR_TRY(get_or(config, "chunk_size", 128, &model->mix_chunk, err));
    FR_TRY(fr_hf_get_activation(config, "mlp_hidden_act", "relu2", model, err));
    FR_TRY(fr_json_get_double_or(config, "layer_norm_epsilon", 1e-5,
                                 &model->norm_eps, err));
    FR_TRY(fr_hf_refuse_unless(config, "use_bias", false, err));
    FR_TRY(fr_hf_refuse_unless(config, "attention_bias", false, err));
    FR_TRY(fr_hf_refuse_unless(config, "mlp_bias", false, err));
    FR_TRY(fr_hf_refuse_unless(config, "use_conv_bias", true, err));
    FR_TRY(
        get_bool(config, "tie_word_embeddings", false, &model->is_tied, err));
    FR_TRY(
        fr_json_get_string(config, "hybrid_override_pattern", &pattern, err));
    model->is_rms_norm = model->has_mix_norm = true;
    fr_model_set(model, FR_TRAIT_NO_POSITIONS);
    FR_TRY(fr_hf_mark_period(config, 1, 0, '-', '-', model, err));
    if (strlen(pattern) != (size_t)model->n_layers ||
        strspn(pattern, "M*-E") != strlen(pattern))
        return fr_json_fail(
            fr_json_blamed(config, "hybrid_override_pattern"), err,
            "hybrid_override_pattern '%.80s' does not say M, *, - or E for "
            "each of %lld layers",
            pattern, (long long)model->n_layers);
    for (size_t i = 0; pattern[i] != '\0'; i++) {
        model->mixers[i] = pattern[i] == 'M'   ? 'm'
                           : pattern[i] == '*' ? 'a'
                                               : '-';
        model->mlps[i] = pattern[i] == '-'   ? 'm'
                         : pattern[i] == 'E' ? 'e'
                                             : '-';
    }
    model->mlps[model->n_layers] = '\0';
    if (strchr(pattern, 'E') == NULL)
        return FR_OK;
    FR_TRY(get(config, "n_routed_experts", &model->n_experts, err));
    FR_TRY(
        get(config, "num_experts_per_tok", &model->n_experts_per_token, err));
    FR_TRY(
        get(config, "moe_intermediate_size", &model->expert_ffn_hidden, err));
    FR_TRY(get_or(config, "moe_shared_expert_intermediate_size", 0,
                  &model->shared_expert_ffn_hidden, err));
    FR_TRY(fr_json_get_double_or(config, "routed_scaling_factor", 1.0,
                                 &model->routed_scale, err));
    model->has_sigmoid_router = true;
    return FR_OK;
}

/* ---- linear attention -----------------------------------------------------*/

/* Qwen3-Next and Qwen3.5: three of four layers are gated DeltaNet; attention
 * has a gate of its output. */
static fr_status read_qwen_delta(const fr_json_value *config, fr_model *model,
                                 fr_err *err)
{
    static const fr_hf_mark marks[] = {{"linear_attention", 'd'},
                                       {"full_attention", 'a'}};
    const fr_json_value *rope = fr_json_find(config, "rope_parameters");
    double share = 0.25;
    int64_t period;
    bool is_listed;
    FR_TRY(fr_hf_read_llama_like(config, model, err));
    FR_TRY(fr_hf_refuse_unless(config, "attention_bias", false, err));
    FR_TRY(fr_hf_refuse_unless(config, "attn_output_gate", true, err));
    model->has_qk_norm = true;
    fr_model_set(model, FR_TRAIT_OUTPUT_GATE);
    if (rope != NULL && fr_json_kind_of(rope) == FR_JSON_OBJECT)
        FR_TRY(fr_json_get_double_or(rope, "partial_rotary_factor", share,
                                     &share, err));
    FR_TRY(fr_json_get_double_or(config, "partial_rotary_factor", share,
                                 &model->rope_frac, err));
    FR_TRY(
        get_or(config, "linear_num_value_heads", 32, &model->mix_heads, err));
    FR_TRY(get_or(config, "linear_num_key_heads", 16, &model->mix_groups, err));
    FR_TRY(get_or(config, "linear_key_head_dim", 128, &model->mix_state, err));
    FR_TRY(get_or(config, "linear_value_head_dim", 128, &model->mix_head_dim,
                  err));
    FR_TRY(get_or(config, "linear_conv_kernel_dim", 4, &model->mix_conv, err));
    model->mix_chunk = 64;
    FR_TRY(
        get_or(config, "mtp_num_hidden_layers", 0, &model->n_mtp_layers, err));
    FR_TRY(fr_hf_read_marks(config, "layer_types", marks, FR_LENGTH(marks),
                            model, &is_listed, err));
    if (is_listed)
        return FR_OK;
    FR_TRY(get_or(config, "full_attention_interval", 4, &period, err));
    return fr_hf_mark_period(config, period, period - 1, 'd', 'a', model, err);
}

HF_READER(qwen3_5)
{
    return read_qwen_delta(config, model, err);
}

HF_READER(qwen3_next)
{
    FR_TRY(read_qwen_delta(config, model, err));
    FR_TRY(get_or(config, "shared_expert_intermediate_size", 512,
                  &model->shared_expert_ffn_hidden, err));
    model->has_shared_expert_gate = model->shared_expert_ffn_hidden > 0;
    return fr_hf_read_qwen_experts(config, model, err);
}

/* Qwen3.5's class has no switch: weights of the chosen add up to 1. */
HF_READER(qwen3_5_moe)
{
    FR_TRY(read_qwen3_next(config, model, err));
    model->has_softmax_over_all = false;
    return FR_OK;
}

/* MiniMax-Text-01 and M1: 0 is lightning attention, 1 attention. */
HF_READER(minimax)
{
    static const fr_hf_mark marks[] = {{"linear_attention", 'l'},
                                       {"full_attention", 'a'}};
    const fr_json_value *list = fr_json_find(config, "attn_type_list");
    int64_t rotated;
    bool is_listed;
    FR_TRY(fr_hf_read_llama_like(config, model, err));
    FR_TRY(get_or(config, "rotary_dim", model->head_dim, &rotated, err));
    model->rope_frac =
        model->head_dim > 0 ? (double)rotated / (double)model->head_dim : 1.0;
    FR_TRY(get(config, "num_local_experts", &model->n_experts, err));
    FR_TRY(get_or(config, "num_experts_per_tok", 2, &model->n_experts_per_token,
                  err));
    model->expert_ffn_hidden = model->ffn_hidden;
    fr_model_set(model, FR_TRAIT_NORMED_STREAM);
    FR_TRY(fr_hf_refuse_but(config, "shared_intermediate_size", 0, err));
    FR_TRY(fr_hf_read_aux_loss(config, 0.001, model, err));
    FR_TRY(fr_hf_read_marks(config, "layer_types", marks, FR_LENGTH(marks),
                            model, &is_listed, err));
    if (is_listed)
        return FR_OK;
    if (list == NULL || fr_json_kind_of(list) != FR_JSON_ARRAY ||
        fr_json_n(list) != (size_t)model->n_layers)
        return fr_json_fail(fr_json_blamed(config, "attn_type_list"), err,
                            "attn_type_list does not say 0 or 1 for each of "
                            "%lld layers",
                            (long long)model->n_layers);
    FR_TRY(fr_hf_mark_period(config, 1, 0, 'l', 'l', model, err));
    for (size_t i = 0; i < fr_json_n(list); i++) {
        int64_t is_full;
        FR_TRY(fr_json_as_i64(fr_json_at(list, i), &is_full, err));
        model->mixers[i] = is_full != 0 ? 'a' : 'l';
    }
    return FR_OK;
}

/* ---- short convolutions ---------------------------------------------------*/

/* The MLP is two thirds of block_ff_dim, times a factor, rounded up. */
static fr_status adjust_width(const fr_json_value *config, fr_model *model,
                              fr_err *err)
{
    bool is_adjusted;
    int64_t unit;
    double factor;
    FR_TRY(get_or(config, "block_ff_dim", model->ffn_hidden, &model->ffn_hidden,
                  err));
    FR_TRY(
        get_bool(config, "block_auto_adjust_ff_dim", true, &is_adjusted, err));
    FR_TRY(get_or(config, "block_multiple_of", 256, &unit, err));
    FR_TRY(fr_json_get_double_or(config, "block_ffn_dim_multiplier", 1.0,
                                 &factor, err));
    if (unit < 1 || unit > 1 << 20 || !(factor > 0.0 && factor < 1024.0) ||
        model->ffn_hidden < 1 || model->ffn_hidden > 1 << 28)
        return fr_json_fail(config, err,
                            "block_ff_dim %lld x %g in units of %lld is out "
                            "of range",
                            (long long)model->ffn_hidden, factor,
                            (long long)unit);
    if (!is_adjusted)
        return FR_OK;
    const int64_t width =
        (int64_t)(factor * (double)(2 * model->ffn_hidden / 3));
    model->ffn_hidden = (width + unit - 1) / unit * unit;
    return FR_OK;
}

static fr_status read_lfm2_like(const fr_json_value *config, fr_model *model,
                                fr_err *err)
{
    static const fr_hf_mark marks[] = {{"conv", 'k'}, {"full_attention", 'a'}};
    bool is_listed;
    FR_TRY(fr_hf_read_llama_like(config, model, err));
    FR_TRY(fr_json_get_double_or(config, "norm_eps", model->norm_eps,
                                 &model->norm_eps, err));
    FR_TRY(get_bool(config, "tie_embedding", true, &model->is_tied, err));
    FR_TRY(get_bool(config, "tie_word_embeddings", model->is_tied,
                    &model->is_tied, err));
    FR_TRY(get_or(config, "conv_L_cache", 3, &model->mix_conv, err));
    FR_TRY(fr_hf_refuse_unless(config, "conv_bias", false, err));
    model->has_qk_norm = true;
    FR_TRY(fr_hf_read_marks(config, "layer_types", marks, FR_LENGTH(marks),
                            model, &is_listed, err));
    if (!is_listed)
        return fr_json_fail(fr_json_blamed(config, "layer_types"), err,
                            "layer_types is missing; it says which layers "
                            "are convolutions");
    return FR_OK;
}

HF_READER(lfm2)
{
    FR_TRY(read_lfm2_like(config, model, err));
    return adjust_width(config, model, err);
}

HF_READER(lfm2_moe)
{
    bool is_normed;
    FR_TRY(read_lfm2_like(config, model, err));
    FR_TRY(get(config, "num_experts", &model->n_experts, err));
    FR_TRY(
        get(config, "num_experts_per_tok", &model->n_experts_per_token, err));
    FR_TRY(
        get(config, "moe_intermediate_size", &model->expert_ffn_hidden, err));
    FR_TRY(
        get_or(config, "num_dense_layers", 2, &model->first_dense_layers, err));
    FR_TRY(get_bool(config, "norm_topk_prob", true, &is_normed, err));
    FR_TRY(fr_json_get_double_or(config, "routed_scaling_factor", 1.0,
                                 &model->routed_scale, err));
    model->has_softmax_over_all = !is_normed;
    model->has_sigmoid_router = true;
    return FR_OK;
}

const fr_hf_type fr_hf_mixed_types[] = {
    {"mamba", read_mamba, {0}},
    {"falcon_mamba", read_falcon_mamba, {0}},
    {"mamba2", read_mamba2, {0}},
    {"jamba", read_jamba, {32, 4096, 32, 14336, 65536, 8, 0, 262144, 0, 1e-6}},
    {"granitemoehybrid",
     read_granitemoehybrid,
     {32, 4096, 32, 11008, 32000, 0, 0, 2048, 0, 1e-6}},
    {"falcon_h1",
     read_falcon_h1,
     {32, 4096, 32, 14336, 128000, 8, 0, 8192, 0, 1e-5}},
    {"nemotron_h", read_nemotron_h, {0}},
    {"qwen3_next",
     read_qwen3_next,
     {48, 2048, 16, 5632, 151936, 2, 256, 32768, 0, 1e-6}},
    {"qwen3_5_text",
     read_qwen3_5,
     {32, 4096, 16, 12288, 248320, 4, 256, 32768, 0, 1e-6}},
    {"qwen3_5_moe_text",
     read_qwen3_5_moe,
     {40, 2048, 16, 0, 248320, 2, 256, 32768, 0, 1e-6}},
    {"minimax", read_minimax, {0}},
    {"minimax_text_01", read_minimax, {0}},
    {"minimax_m1", read_minimax, {0}},
    {"lfm2", read_lfm2, {32, 2560, 32, 12288, 65536, 8, 0, 128000, 0, 1e-5}},
    {"lfm2_moe",
     read_lfm2_moe,
     {32, 2048, 32, 7168, 65536, 8, 0, 128000, 0, 1e-5}},
};

const size_t fr_n_hf_mixed_types = FR_LENGTH(fr_hf_mixed_types);
