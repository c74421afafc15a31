/*
 * model_count.c: exact parameter counts and model flop.
 *
 * Names of the matrices as in Hugging Face's modelling code, of which every
 * count here is a transcription in numbers: q,k,v,o; gate,up,down; router.
 */
#include "spec/model/mixers.h"
#include "spec/model/model_traits.h"

static uint64_t u(int64_t value)
{
    return (uint64_t)value;
}

/* Matrix elements of one attention block. */
static uint64_t attention_matrices(const fr_model *m)
{
    uint64_t hidden = u(m->hidden), heads = u(m->n_heads);
    if (m->kv_lora_rank > 0) {
        uint64_t qk = u(m->qk_nope_head_dim + m->qk_rope_head_dim);
        uint64_t q = m->q_lora_rank > 0
                         ? u(m->q_lora_rank) * (hidden + heads * qk)
                         : hidden * heads * qk;
        uint64_t kv =
            hidden * u(m->kv_lora_rank + m->qk_rope_head_dim) +
            u(m->kv_lora_rank) * heads * u(m->qk_nope_head_dim + m->v_head_dim);
        return q + kv + heads * u(m->v_head_dim) * hidden;
    }
    uint64_t q = heads * u(m->head_dim);
    uint64_t kv = u(m->n_kv_heads) * u(m->head_dim);
    uint64_t gate = fr_model_has(m, FR_TRAIT_OUTPUT_GATE) ? q : 0;
    return hidden * (2 * q + 2 * kv + gate);
}

/* Biases and norms inside one attention block. */
static uint64_t attention_vectors(const fr_model *m)
{
    uint64_t n = 0;
    if (m->kv_lora_rank > 0)
        n += u(m->kv_lora_rank + m->q_lora_rank);
    else if (m->has_qkv_bias)
        n += u(m->head_dim) *
             u(m->n_heads * (fr_model_has(m, FR_TRAIT_OUTPUT_GATE) ? 2 : 1) +
               2 * m->n_kv_heads);
    if (m->has_out_bias)
        n += u(m->hidden);
    if (m->has_qk_norm && !fr_model_has(m, FR_TRAIT_UNIT_QK))
        n += (fr_model_has(m, FR_TRAIT_WIDE_QK_NORM)
                  ? u(m->n_heads + m->n_kv_heads)
                  : 2) *
             u(m->head_dim);
    if (fr_model_has(m, FR_TRAIT_SINKS))
        n += u(m->n_heads);
    return n;
}

static uint64_t mlp_matrices(const fr_model *m, int64_t ffn_hidden)
{
    return (m->is_gated_mlp ? 3 : 2) * u(m->hidden) * u(ffn_hidden);
}

static uint64_t mlp_vectors(const fr_model *m, int64_t ffn_hidden)
{
    if (!m->has_mlp_bias)
        return 0;
    return (m->is_gated_mlp ? 2 : 1) * u(ffn_hidden) + u(m->hidden);
}

static uint64_t norm(const fr_model *m)
{
    bool has_bias = !m->is_rms_norm && !fr_model_has(m, FR_TRAIT_NO_NORM_BIAS);
    return (has_bias ? 2 : 1) * u(m->hidden);
}

/* Matrices of one MoE block of which n_used experts are counted. */
static uint64_t moe_matrices(const fr_model *m, int64_t n_used)
{
    uint64_t n = u(n_used) * mlp_matrices(m, m->expert_ffn_hidden) +
                 u(m->hidden) * u(m->n_experts);
    if (m->shared_expert_ffn_hidden > 0)
        n += mlp_matrices(m, m->shared_expert_ffn_hidden);
    if (m->has_shared_expert_gate)
        n += u(m->hidden);
    return n;
}

static uint64_t moe_vectors(const fr_model *m, int64_t n_used)
{
    uint64_t n = u(n_used) * mlp_vectors(m, m->expert_ffn_hidden);
    if (m->shared_expert_ffn_hidden > 0)
        n += mlp_vectors(m, m->shared_expert_ffn_hidden);
    if (m->has_router_bias)
        n += u(m->n_experts);
    if (fr_model_has(m, FR_TRAIT_ROUTER_OFFSET))
        n += u(m->n_experts);
    return n;
}

/* Matrices of what mixes the tokens of layer i. */
static uint64_t mixer_matrices(const fr_model *m, int64_t i_layer)
{
    const fr_mixer *mixer = fr_model_mixer(m, i_layer);
    uint64_t n = mixer->is_attention ? attention_matrices(m) : 0;
    if (mixer->sizes != NULL) {
        const fr_mixer_sizes sizes = mixer->sizes(m);
        n += u(m->hidden) * u(sizes.in + sizes.inner);
    }
    return n;
}

static uint64_t mixer_vectors(const fr_model *m, int64_t i_layer)
{
    const fr_mixer *mixer = fr_model_mixer(m, i_layer);
    uint64_t n = mixer->is_attention ? attention_vectors(m) : 0;
    if (mixer->sizes != NULL) {
        const fr_mixer_sizes sizes = mixer->sizes(m);
        n += u(sizes.split + sizes.whole);
    }
    return n;
}

/* The norms of layer i: before its branches, and after them. */
static uint64_t count_norms(const fr_model *m, int64_t i_layer)
{
    uint64_t n_branches = (fr_model_mixer(m, i_layer)->letter != '-') +
                          (uint64_t)fr_model_layer_has_mlp(m, i_layer);
    uint64_t n = fr_model_has(m, FR_TRAIT_NO_INPUT_NORMS)   ? 0
                 : fr_model_has(m, FR_TRAIT_ONE_BLOCK_NORM) ? 1
                                                            : n_branches;
    return fr_model_has(m, FR_TRAIT_OUTPUT_NORMS) ? n + n_branches : n;
}

/* Matrices of all blocks. */
static uint64_t block_matrices(const fr_model *m, int64_t n_used)
{
    uint64_t n = 0;
    for (int64_t i = 0; i < m->n_layers; i++) {
        n += mixer_matrices(m, i);
        if (fr_model_layer_is_moe(m, i))
            n += moe_matrices(m, n_used);
        else if (fr_model_layer_has_mlp(m, i))
            n += mlp_matrices(m, m->ffn_hidden);
    }
    return n;
}

static uint64_t block_vectors(const fr_model *m, int64_t n_used)
{
    uint64_t n = 0;
    for (int64_t i = 0; i < m->n_layers; i++) {
        n += mixer_vectors(m, i) + count_norms(m, i) * norm(m);
        if (fr_model_layer_is_moe(m, i))
            n += moe_vectors(m, n_used);
        else if (fr_model_layer_has_mlp(m, i))
            n += mlp_vectors(m, m->ffn_hidden);
    }
    return n;
}

/* Returns the parameters of the inputs: tokens or patches, positions, types,
 * their norm. */
static uint64_t embedding(const fr_model *m)
{
    uint64_t hidden = u(m->hidden);
    uint64_t n = u(m->vocab) * hidden + u(m->n_token_types) * hidden;
    if (fr_model_has_position_table(m))
        n += u(m->max_seq) * hidden;
    if (m->has_embed_norm)
        n += norm(m);
    if (m->n_channels > 0) /* patch matrix with bias, class token */
        n += u(m->n_channels) * u(m->patch_size) * u(m->patch_size) * hidden +
             2 * hidden;
    return n;
}

/* Returns the parameters of the outputs: norm, heads. */
static uint64_t outputs(const fr_model *m)
{
    uint64_t hidden = u(m->hidden), n = 0;
    if (m->has_final_norm)
        n += norm(m);
    if (m->kind == FR_MODEL_DECODER && !m->is_tied)
        n += u(m->vocab) * hidden;
    if (fr_model_has(m, FR_TRAIT_HEAD_BIAS))
        n += u(m->vocab);
    if (m->has_pooler)
        n += hidden * hidden + hidden;
    if (m->has_mlm_head)
        n += hidden * hidden + hidden + norm(m) + u(m->vocab);
    if (m->has_pooler && m->has_mlm_head) /* next sentence or not */
        n += 2 * hidden + 2;
    return n + u(m->n_labels) * (hidden + 1);
}

static uint64_t layer_list_parameters(const fr_model *m)
{
    uint64_t n = 0;
    for (size_t i = 0; i < m->n_layer_entries; i++)
        n += m->layers[i].n_parameters * u(m->layers[i].repeat);
    return n;
}

static uint64_t count(const fr_model *m, int64_t n_used)
{
    if (m->kind == FR_MODEL_LAYERS)
        return layer_list_parameters(m);
    return embedding(m) + block_matrices(m, n_used) + block_vectors(m, n_used) +
           outputs(m);
}

uint64_t fr_model_parameters(const fr_model *model)
{
    return count(model, model->n_experts);
}

uint64_t fr_model_active_parameters(const fr_model *model)
{
    return count(model, model->n_experts_per_token);
}

/* Matrix elements that one token is multiplied with. */
static double matmul_parameters(const fr_model *m)
{
    double hidden = (double)m->hidden;
    double n = (double)block_matrices(m, m->n_experts_per_token);
    if (m->kind == FR_MODEL_DECODER || m->has_mlm_head)
        n += (double)m->vocab * hidden;
    if (m->has_mlm_head)
        n += hidden * hidden;
    if (m->n_channels > 0)
        n += (double)m->n_channels * (double)m->patch_size *
             (double)m->patch_size * hidden;
    return n;
}

/* Flop of forward and backward of a token in layer i, beside those of
 * matrices: of attention, of other cores. */
static double core_flop(const fr_model *m, int64_t i_layer, int64_t seq,
                        bool is_causal)
{
    const fr_mixer *mixer = fr_model_mixer(m, i_layer);
    double width = 2.0 * (double)m->head_dim, n = 0.0;
    if (m->kv_lora_rank > 0)
        width =
            (double)(m->qk_nope_head_dim + m->qk_rope_head_dim + m->v_head_dim);
    if (mixer->is_attention)
        n = 6.0 * (double)m->n_heads * width *
            fr_mixer_span(mixer, m, seq, is_causal);
    return mixer->sizes != NULL ? n + 3.0 * mixer->sizes(m).core_flop : n;
}

double fr_model_flop_per_token(const fr_model *model, int64_t seq,
                               bool is_causal_counted)
{
    if (model->kind == FR_MODEL_LAYERS) {
        double forward = 0.0;
        for (size_t i = 0; i < model->n_layer_entries; i++)
            forward +=
                model->layers[i].forward_flop * (double)model->layers[i].repeat;
        return 3.0 * forward / (double)seq;
    }
    bool is_causal = is_causal_counted && model->kind == FR_MODEL_DECODER;
    if (fr_model_is_unmarked(model))
        return 6.0 * matmul_parameters(model) +
               (double)model->n_layers * core_flop(model, 0, seq, is_causal);
    double n = 6.0 * matmul_parameters(model);
    for (int64_t i = 0; i < model->n_layers; i++)
        n += core_flop(model, i, seq, is_causal);
    return n;
}
