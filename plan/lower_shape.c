/*
 * lower_shape.c: sizes on one rank, where a layer's parameters lie and where
 * what its forward keeps.
 */
#include "plan/lower_internal.h"

enum { VOCAB_ALIGN = 64 };

uint64_t lower_padded(uint64_t n)
{
    return (n + LOWER_TENSOR_ALIGN - 1) / LOWER_TENSOR_ALIGN *
           LOWER_TENSOR_ALIGN;
}

uint64_t lower_place(uint64_t *used, bool is_there, int64_t rows, int64_t cols)
{
    uint64_t at = *used;
    if (!is_there)
        return LOWER_ABSENT;
    *used += lower_padded((uint64_t)rows * (uint64_t)cols);
    return at;
}

static void init_layer_layout(lower_context *context)
{
    const fr_model *model = context->model;
    const lower_shape *s = &context->shape;
    lower_layer_layout *l = &context->layer;
    bool has_norm_bias = !model->is_rms_norm;
    uint64_t used = 0;
    l->ln1_w = lower_place(&used, true, 1, s->hidden);
    l->ln1_b = lower_place(&used, has_norm_bias, 1, s->hidden);
    l->ln2_w = lower_place(&used, true, 1, s->hidden);
    l->ln2_b = lower_place(&used, has_norm_bias, 1, s->hidden);
    l->n_norm = used;
    l->qkv_w = lower_place(&used, true, s->qkv, s->hidden);
    l->qkv_b = lower_place(&used, model->has_qkv_bias, 1, s->qkv);
    l->out_w = lower_place(&used, true, s->hidden, s->attn);
    l->out_b = lower_place(&used, model->has_out_bias, 1, s->hidden);
    l->fc1_w = lower_place(&used, true, s->fc1, s->hidden);
    l->fc1_b = lower_place(&used, model->has_mlp_bias, 1, s->fc1);
    l->fc2_w = lower_place(&used, true, s->hidden, s->ffn);
    l->fc2_b = lower_place(&used, model->has_mlp_bias, 1, s->hidden);
    l->n = l->n_dense = used;
}

static uint64_t keep(uint64_t *used, int64_t rows, int64_t cols)
{
    uint64_t at = *used;
    *used += ((uint64_t)rows * (uint64_t)cols * sizeof(float) + 63) / 64 * 64;
    return at;
}

static void init_saved(lower_context *context)
{
    const lower_shape *s = &context->shape;
    lower_saved *k = &context->saved;
    uint64_t used = 0;
    k->n1 = keep(&used, s->stream_rows, s->hidden);
    k->stats1 = keep(&used, 2, s->stream_rows);
    k->qkv = keep(&used, s->rows, s->qkv);
    k->o = keep(&used, s->rows, s->attn);
    k->kept =
        keep(&used, s->rows * s->q_heads, context->is_probs_saved ? s->seq : 1);
    k->mid = keep(&used, s->stream_rows, s->hidden);
    k->n2 = keep(&used, s->stream_rows, s->hidden);
    k->stats2 = keep(&used, 2, s->stream_rows);
    k->fc1 = keep(&used, s->rows, s->fc1);
    k->act = keep(&used, s->rows, s->ffn);
    k->n_bytes = used;
}

void lower_shape_init(lower_context *context)
{
    const fr_model *model = context->model;
    const fr_plan *plan = context->plan;
    lower_shape *s = &context->shape;
    int64_t vocab_unit = (int64_t)VOCAB_ALIGN * plan->tp;
    s->batch = plan->micro_batch;
    s->seq = context->job->seq;
    s->rows = s->batch * s->seq;
    s->stream_rows = plan->is_sequence_parallel ? s->rows / plan->tp : s->rows;
    s->hidden = model->hidden;
    s->q_heads = model->n_heads / plan->tp;
    s->kv_heads = model->n_kv_heads / plan->tp;
    s->head_dim = model->head_dim;
    s->attn = s->q_heads * s->head_dim;
    s->qkv = (s->q_heads + 2 * s->kv_heads) * s->head_dim;
    s->ffn = model->ffn_hidden / plan->tp;
    s->fc1 = model->is_gated_mlp ? 2 * s->ffn : s->ffn;
    s->vocab = model->vocab;
    s->vocab_local = (model->vocab + vocab_unit - 1) / vocab_unit * VOCAB_ALIGN;
    s->stream_bytes =
        (uint64_t)s->stream_rows * (uint64_t)s->hidden * sizeof(float);
    context->is_probs_saved = plan->recompute == FR_RECOMPUTE_NONE;
    init_layer_layout(context);
    init_saved(context);
}
