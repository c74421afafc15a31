/*
 * model_count.c: exact parameter counts and model flop.
 *
 * Names of the matrices as in Hugging Face's modelling code, of which every
 * count here is a transcription in numbers: q,k,v,o; gate,up,down; router.
 */
#include "spec/model/model.h"

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
    return hidden * (2 * q + 2 * kv);
}

/* Biases and norms inside one attention block. */
static uint64_t attention_vectors(const fr_model *m)
{
    uint64_t n = 0;
    if (m->kv_lora_rank > 0)
        n += u(m->kv_lora_rank + m->q_lora_rank);
    else if (m->has_qkv_bias)
        n += u(m->head_dim) * u(m->n_heads + 2 * m->n_kv_heads);
    if (m->has_out_bias)
        n += u(m->hidden);
    if (m->has_qk_norm)
        n += 2 * u(m->head_dim);
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
    return (m->is_rms_norm ? 1 : 2) * u(m->hidden);
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
    return n;
}

static int64_t count_moe_layers(const fr_model *m)
{
    int64_t n = 0;
    for (int64_t i = 0; i < m->n_layers; i++)
        n += fr_model_layer_is_moe(m, i);
    return n;
}

/* Matrices of all blocks. */
static uint64_t block_matrices(const fr_model *m, int64_t n_used)
{
    uint64_t n_moe = u(count_moe_layers(m));
    uint64_t n = u(m->n_layers) * attention_matrices(m);
    n += (u(m->n_layers) - n_moe) * mlp_matrices(m, m->ffn_hidden);
    return n_moe > 0 ? n + n_moe * moe_matrices(m, n_used) : n;
}

static uint64_t block_vectors(const fr_model *m, int64_t n_used)
{
    uint64_t n_moe = u(count_moe_layers(m));
    uint64_t n = u(m->n_layers) * (attention_vectors(m) + 2 * norm(m));
    n += (u(m->n_layers) - n_moe) * mlp_vectors(m, m->ffn_hidden);
    return n_moe > 0 ? n + n_moe * moe_vectors(m, n_used) : n;
}

/* Returns the parameters of the inputs: tokens or patches, positions, types,
 * their norm. */
static uint64_t embedding(const fr_model *m)
{
    uint64_t hidden = u(m->hidden);
    uint64_t n = u(m->vocab) * hidden + u(m->n_token_types) * hidden;
    if (!m->is_rope)
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

/* Positions that one token looks at, on average. */
static double attention_span(const fr_model *m, int64_t seq, bool is_causal)
{
    double s = (double)seq;
    double window = (double)m->sliding_window;
    bool is_windowed = m->sliding_window > 0 && m->sliding_window < seq;
    if (!is_causal)
        return is_windowed ? window : s;
    return is_windowed ? window - window * window / (2.0 * s) : s / 2.0;
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
    double width = 2.0 * (double)model->head_dim;
    if (model->kv_lora_rank > 0)
        width = (double)(model->qk_nope_head_dim + model->qk_rope_head_dim +
                         model->v_head_dim);
    bool is_causal = is_causal_counted && model->kind == FR_MODEL_DECODER;
    double attention = 6.0 * (double)model->n_layers * (double)model->n_heads *
                       width * attention_span(model, seq, is_causal);
    return 6.0 * matmul_parameters(model) + attention;
}
