/*
 * lower_layer.c: one transformer layer, forward and backward.
 *
 * Bases of a call: WEIGHT and GRAD at the layer's first parameter, SAVED, TEMP;
 * forward IN -> OUT; backward INPUT is what came in, and IN is the gradient of
 * the residual stream, which the layer updates in place.
 *
 * Tensor parallelism (Shoeybi et al. 2019, arXiv 1909.08053): qkv and fc1 are
 * split by output, out and fc2 by input, whose partial sums are all-reduced.
 * With sequence parallelism (Korthikanti et al. 2022, arXiv 2205.05198) the
 * residual stream and the norms hold 1/tp of the rows: an all-gather stands
 * before the former and a reduce-scatter after the latter.
 */
#include "plan/lower_internal.h"

#include <stddef.h>

static const fr_ref absent = {0};

static fr_ref saved(uint64_t offset_bytes)
{
    return lower_ref(FR_SPACE_SAVED, offset_bytes);
}

static fr_ref weight(const lower_context *context, uint64_t first)
{
    return lower_parameter(context, FR_SPACE_WEIGHT, first);
}

static fr_ref grad(const lower_context *context, uint64_t first)
{
    return lower_parameter(context, FR_SPACE_GRAD, first);
}

static uint64_t f32_bytes(int64_t rows, int64_t cols)
{
    return (uint64_t)rows * (uint64_t)cols * sizeof(float);
}

static bool is_split(const lower_context *context)
{
    return context->plan->tp > 1;
}

/* The whole rows of a stream-sharded operand; itself where nothing is. */
static fr_ref gather_rows(lower_context *context, fr_ref shard)
{
    const lower_shape *s = &context->shape;
    if (!context->plan->is_sequence_parallel)
        return shard;
    fr_ref whole = lower_temp(context, f32_bytes(s->rows, s->hidden));
    fr_instr *instr =
        lower_collective(context, FR_OP_ALL_GATHER, FR_AXIS_TP, FR_DTYPE_F32,
                         (uint64_t)(s->rows * s->hidden));
    instr->ref[0] = shard;
    instr->ref[1] = whole;
    return whole;
}

/* Where a partial sum is to be written that sum_rows() will finish. */
static fr_ref partial_rows(lower_context *context, fr_ref target)
{
    const lower_shape *s = &context->shape;
    return context->plan->is_sequence_parallel
               ? lower_temp(context, f32_bytes(s->rows, s->hidden))
               : target;
}

/* Sums the partial results of the TP ranks into `target`. */
static void sum_rows(lower_context *context, fr_ref partial, fr_ref target)
{
    const lower_shape *s = &context->shape;
    bool is_scattered = context->plan->is_sequence_parallel;
    if (!is_split(context))
        return;
    fr_instr *instr = lower_collective(
        context, is_scattered ? FR_OP_REDUCE_SCATTER : FR_OP_ALL_REDUCE,
        FR_AXIS_TP, FR_DTYPE_F32, (uint64_t)(s->rows * s->hidden));
    instr->ref[0] = partial;
    instr->ref[1] = target;
}

static void linear_fwd(lower_context *context, const int64_t mnk[3], fr_ref x,
                       fr_ref w, fr_ref bias, fr_ref y)
{
    fr_instr *instr = lower_emit(context, FR_OP_LINEAR_FWD);
    for (int i = 0; i < 3; i++)
        instr->dim[i] = mnk[i];
    instr->ref[0] = x;
    instr->ref[1] = w;
    instr->ref[2] = bias;
    instr->ref[3] = y;
}

static void linear_dgrad(lower_context *context, const int64_t mnk[3],
                         fr_ref dy, fr_ref w, fr_ref dx)
{
    fr_instr *instr = lower_emit(context, FR_OP_LINEAR_DGRAD);
    for (int i = 0; i < 3; i++)
        instr->dim[i] = mnk[i];
    instr->ref[0] = dy;
    instr->ref[1] = w;
    instr->ref[2] = dx;
}

static void linear_wgrad(lower_context *context, const int64_t mnk[3],
                         fr_ref dy, fr_ref x, fr_ref dw, fr_ref dbias)
{
    fr_instr *instr = lower_emit(context, FR_OP_LINEAR_WGRAD);
    for (int i = 0; i < 3; i++)
        instr->dim[i] = mnk[i];
    instr->ref[0] = dy;
    instr->ref[1] = x;
    instr->ref[2] = dw;
    instr->ref[3] = dbias;
}

static void norm_fwd(lower_context *context, fr_ref x, const uint64_t wb[2],
                     fr_ref y, fr_ref stats)
{
    fr_instr *instr = lower_emit(context, FR_OP_NORM_FWD);
    instr->dim[0] = context->shape.stream_rows;
    instr->dim[1] = context->shape.hidden;
    instr->scalar = context->model->norm_eps;
    instr->flags = context->model->is_rms_norm ? FR_INSTR_RMS : 0;
    instr->ref[0] = x;
    instr->ref[1] = weight(context, wb[0]);
    instr->ref[2] = weight(context, wb[1]);
    instr->ref[3] = y;
    instr->ref[4] = stats;
}

/* Adds onto the gradient of the stream. */
static void norm_bwd(lower_context *context, fr_ref dy, fr_ref x,
                     const uint64_t wb[2], fr_ref stats)
{
    fr_instr *instr = lower_emit(context, FR_OP_NORM_BWD);
    instr->dim[0] = context->shape.stream_rows;
    instr->dim[1] = context->shape.hidden;
    instr->scalar = context->model->norm_eps;
    instr->flags = (uint16_t)((context->model->is_rms_norm ? FR_INSTR_RMS : 0) |
                              FR_INSTR_ACCUMULATE);
    instr->ref[0] = dy;
    instr->ref[1] = x;
    instr->ref[2] = weight(context, wb[0]);
    instr->ref[3] = stats;
    instr->ref[4] = lower_ref(FR_SPACE_IN, 0);
    instr->ref[5] = grad(context, wb[0]);
    instr->ref[6] = grad(context, wb[1]);
}

/* sum = a + sum (+ bias) */
static void residual_add(lower_context *context, fr_ref a, uint64_t bias,
                         fr_ref sum)
{
    fr_instr *instr = lower_emit(context, FR_OP_RESIDUAL_ADD);
    instr->dim[0] = context->shape.stream_rows;
    instr->dim[1] = context->shape.hidden;
    instr->ref[0] = a;
    instr->ref[1] = sum;
    instr->ref[2] = weight(context, bias);
    instr->ref[3] = sum;
}

static void rope(lower_context *context, fr_op op, fr_ref qkv)
{
    const lower_shape *s = &context->shape;
    const int64_t dims[5] = {s->rows, s->seq, s->q_heads, s->kv_heads,
                             s->head_dim};
    if (!context->model->is_rope)
        return;
    fr_instr *instr = lower_emit(context, op);
    for (int i = 0; i < 5; i++)
        instr->dim[i] = dims[i];
    instr->scalar = context->model->rope_theta;
    instr->ref[0] = qkv;
}

static fr_instr *attention(lower_context *context, fr_op op)
{
    const lower_shape *s = &context->shape;
    const int64_t dims[5] = {s->batch, s->seq, s->q_heads, s->kv_heads,
                             s->head_dim};
    fr_instr *instr = lower_emit(context, op);
    for (int i = 0; i < 5; i++)
        instr->dim[i] = dims[i];
    instr->flags = context->is_probs_saved ? FR_INSTR_SAVE_PROBS : 0;
    return instr;
}

static fr_instr *activation(lower_context *context, bool is_backward)
{
    const lower_shape *s = &context->shape;
    bool is_gated = context->model->is_gated_mlp;
    fr_instr *instr = lower_emit(
        context, is_gated ? is_backward ? FR_OP_SWIGLU_BWD : FR_OP_SWIGLU_FWD
                 : is_backward ? FR_OP_GELU_BWD
                               : FR_OP_GELU_FWD);
    instr->dim[0] = is_gated ? s->rows : s->rows * s->ffn;
    instr->dim[1] = is_gated ? s->ffn : 0;
    return instr;
}

/* Everything that backward needs; the rest is finish_forward(). */
static void emit_kept_forward(lower_context *context)
{
    const lower_shape *s = &context->shape;
    const lower_layer_layout *l = &context->layer;
    const lower_saved *k = &context->saved;
    const fr_ref in = lower_ref(FR_SPACE_IN, 0), mid = saved(k->mid);
    uint64_t mark = lower_temp_mark(context);

    norm_fwd(context, in, (const uint64_t[2]){l->ln1_w, l->ln1_b}, saved(k->n1),
             saved(k->stats1));
    fr_ref n1 = gather_rows(context, saved(k->n1));
    linear_fwd(context, (const int64_t[3]){s->rows, s->qkv, s->hidden}, n1,
               weight(context, l->qkv_w), weight(context, l->qkv_b),
               saved(k->qkv));
    lower_temp_reset(context, mark);
    rope(context, FR_OP_ROPE_FWD, saved(k->qkv));
    fr_instr *instr = attention(context, FR_OP_ATTN_FWD);
    instr->ref[0] = saved(k->qkv);
    instr->ref[1] = saved(k->o);
    instr->ref[2] = saved(k->kept);
    fr_ref partial = partial_rows(context, mid);
    linear_fwd(context, (const int64_t[3]){s->rows, s->hidden, s->attn},
               saved(k->o), weight(context, l->out_w), absent, partial);
    sum_rows(context, partial, mid);
    lower_temp_reset(context, mark);
    residual_add(context, in, l->out_b, mid);

    norm_fwd(context, mid, (const uint64_t[2]){l->ln2_w, l->ln2_b},
             saved(k->n2), saved(k->stats2));
    fr_ref n2 = gather_rows(context, saved(k->n2));
    linear_fwd(context, (const int64_t[3]){s->rows, s->fc1, s->hidden}, n2,
               weight(context, l->fc1_w), weight(context, l->fc1_b),
               saved(k->fc1));
    lower_temp_reset(context, mark);
    instr = activation(context, false);
    instr->ref[0] = saved(k->fc1);
    instr->ref[1] = saved(k->act);
}

static void finish_forward(lower_context *context)
{
    const lower_shape *s = &context->shape;
    const lower_layer_layout *l = &context->layer;
    const lower_saved *k = &context->saved;
    const fr_ref out = lower_ref(FR_SPACE_OUT, 0);
    fr_ref partial = partial_rows(context, out);
    linear_fwd(context, (const int64_t[3]){s->rows, s->hidden, s->ffn},
               saved(k->act), weight(context, l->fc2_w), absent, partial);
    sum_rows(context, partial, out);
    residual_add(context, saved(k->mid), l->fc2_b, out);
}

static void emit_mlp_backward(lower_context *context)
{
    const lower_shape *s = &context->shape;
    const lower_layer_layout *l = &context->layer;
    const lower_saved *k = &context->saved;
    const int64_t fc1[3] = {s->rows, s->fc1, s->hidden};
    const int64_t fc2[3] = {s->rows, s->hidden, s->ffn};
    bool is_gated = context->model->is_gated_mlp;
    uint64_t mark = lower_temp_mark(context);

    fr_ref dfc1 = lower_temp(context, f32_bytes(s->rows, s->fc1));
    uint64_t after_dfc1 = lower_temp_mark(context);
    fr_ref dact =
        is_gated ? lower_temp(context, f32_bytes(s->rows, s->ffn)) : dfc1;
    fr_ref dy = gather_rows(context, lower_ref(FR_SPACE_IN, 0));
    linear_dgrad(context, fc2, dy, weight(context, l->fc2_w), dact);
    linear_wgrad(context, fc2, dy, saved(k->act), grad(context, l->fc2_w),
                 grad(context, l->fc2_b));
    fr_instr *instr = activation(context, true);
    instr->ref[0] = dact;
    instr->ref[1] = saved(k->fc1);
    instr->ref[2] = dfc1;
    lower_temp_reset(context, after_dfc1);

    fr_ref dn2 = lower_temp(context, s->stream_bytes);
    uint64_t after_dn2 = lower_temp_mark(context);
    fr_ref partial = partial_rows(context, dn2);
    linear_dgrad(context, fc1, dfc1, weight(context, l->fc1_w), partial);
    sum_rows(context, partial, dn2);
    lower_temp_reset(context, after_dn2);
    fr_ref n2 = gather_rows(context, saved(k->n2));
    linear_wgrad(context, fc1, dfc1, n2, grad(context, l->fc1_w),
                 grad(context, l->fc1_b));
    norm_bwd(context, dn2, saved(k->mid),
             (const uint64_t[2]){l->ln2_w, l->ln2_b}, saved(k->stats2));
    lower_temp_reset(context, mark);
}

static void emit_attention_backward(lower_context *context)
{
    const lower_shape *s = &context->shape;
    const lower_layer_layout *l = &context->layer;
    const lower_saved *k = &context->saved;
    const int64_t qkv[3] = {s->rows, s->qkv, s->hidden};
    const int64_t out[3] = {s->rows, s->hidden, s->attn};
    uint64_t mark = lower_temp_mark(context);

    fr_ref dqkv = lower_temp(context, f32_bytes(s->rows, s->qkv));
    uint64_t after_dqkv = lower_temp_mark(context);
    fr_ref d_o = lower_temp(context, f32_bytes(s->rows, s->attn));
    fr_ref dy = gather_rows(context, lower_ref(FR_SPACE_IN, 0));
    linear_dgrad(context, out, dy, weight(context, l->out_w), d_o);
    linear_wgrad(context, out, dy, saved(k->o), grad(context, l->out_w),
                 grad(context, l->out_b));
    fr_instr *instr = attention(context, FR_OP_ATTN_BWD);
    instr->ref[0] = d_o;
    instr->ref[1] = saved(k->qkv);
    instr->ref[2] = saved(k->o);
    instr->ref[3] = saved(k->kept);
    instr->ref[4] = dqkv;
    rope(context, FR_OP_ROPE_BWD, dqkv);
    lower_temp_reset(context, after_dqkv);

    fr_ref dn1 = lower_temp(context, s->stream_bytes);
    uint64_t after_dn1 = lower_temp_mark(context);
    fr_ref partial = partial_rows(context, dn1);
    linear_dgrad(context, qkv, dqkv, weight(context, l->qkv_w), partial);
    sum_rows(context, partial, dn1);
    lower_temp_reset(context, after_dn1);
    fr_ref n1 = gather_rows(context, saved(k->n1));
    linear_wgrad(context, qkv, dqkv, n1, grad(context, l->qkv_w),
                 grad(context, l->qkv_b));
    norm_bwd(context, dn1, lower_ref(FR_SPACE_INPUT, 0),
             (const uint64_t[2]){l->ln1_w, l->ln1_b}, saved(k->stats1));
    lower_temp_reset(context, mark);
}

void lower_layer_segments(lower_context *context)
{
    context->i_layer_fwd =
        lower_segment_begin(context, FR_LANE_COMPUTE, "layer_fwd");
    emit_kept_forward(context);
    finish_forward(context);
    if (context->plan->recompute == FR_RECOMPUTE_FULL) {
        context->i_layer_remake =
            lower_segment_begin(context, FR_LANE_COMPUTE, "layer_recompute");
        context->segments.items[context->i_layer_remake].is_recompute = true;
        emit_kept_forward(context);
    }
    context->i_layer_bwd =
        lower_segment_begin(context, FR_LANE_COMPUTE, "layer_bwd");
    emit_mlp_backward(context);
    emit_attention_backward(context);
    if (!context->plan->is_sequence_parallel)
        return;
    /* Each TP rank's norms have seen its own rows only. */
    context->i_norm_reduce =
        lower_segment_begin(context, FR_LANE_COMPUTE, "norm_grad_reduce");
    fr_instr *instr = lower_collective(context, FR_OP_ALL_REDUCE, FR_AXIS_TP,
                                       FR_DTYPE_F32, context->layer.n_norm);
    instr->ref[0] = instr->ref[1] = lower_ref(FR_SPACE_GRAD, 0);
}
