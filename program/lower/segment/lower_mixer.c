/*
 * lower_mixer.c: what mixes the tokens of a layer, by the row of its mixer
 * (mixers.h): attention, a product, a core along the sequence and a product
 * back, or both side by side.
 *
 * The core is simulated only: an operation with its flop and its bytes.
 */
#include "program/lower/segment/lower_layer.h"

static lower_matrix in_matrix(const lower_context *context,
                              const lower_kind *kind)
{
    return (lower_matrix){.m = context->shape.rows,
                          .n = kind->mix.in,
                          .k = context->shape.hidden,
                          .w = kind->layout.mix_in,
                          .b = LOWER_ABSENT};
}

static lower_matrix out_matrix(const lower_context *context,
                               const lower_kind *kind)
{
    return (lower_matrix){.m = context->shape.rows,
                          .n = context->shape.hidden,
                          .k = kind->mix.inner,
                          .w = kind->layout.mix_out,
                          .b = LOWER_ABSENT};
}

/* Backward has twice the flop and the bytes of forward. */
static void core(lower_context *context, const lower_kind *kind, fr_op op,
                 fr_ref from, fr_ref to)
{
    const lower_shape *s = &context->shape;
    const fr_mixer_sizes *mix = &kind->mix;
    bool is_forward = op == FR_OP_LAYER_FWD;
    const double times = (double)s->rows * (is_forward ? 1.0 : 2.0);
    const int64_t from_cols = is_forward ? mix->in : mix->inner;
    const int64_t to_cols = is_forward ? mix->inner : mix->in;
    fr_instr *instr = lower_emit(context, op);
    instr->dtype = (uint8_t)lower_product_dtype(context);
    instr->layer.moved_bytes =
        (int64_t)(times * mix->core_moved * (double)lower_bytes(context, 1, 1));
    instr->layer.kept_bytes =
        (int64_t)lower_bytes(context, s->rows, 1 + mix->kept);
    instr->layer.in_bytes = (int64_t)lower_bytes(context, s->rows, from_cols);
    instr->layer.out_bytes = (int64_t)lower_bytes(context, s->rows, to_cols);
    instr->scalar = times * mix->core_flop;
    instr->ref[FR_LAYER_FWD_IN] = from;
    instr->ref[FR_LAYER_FWD_KEPT] = lower_saved_at(kind->saved.mix_core);
    instr->ref[FR_LAYER_FWD_OUT] = to;
}

/* Adds up, over tensor parallel ranks, the elements in the middle of a core. */
static void reduce(lower_context *context, const lower_kind *kind, fr_ref at)
{
    if (context->plan->tp > 1 && kind->mix.reduced > 0)
        lower_collective(context, FR_OP_ALL_REDUCE, FR_AXIS_TP,
                         fr_plan_storage_dtype(context->plan),
                         (uint64_t)(context->shape.rows * kind->mix.reduced),
                         at, at);
}

static void state_forward(lower_context *context, const lower_kind *kind,
                          fr_ref x, fr_ref target, bool is_partial)
{
    const lower_shape *s = &context->shape;
    const lower_saved *k = &kind->saved;
    const lower_matrix in = in_matrix(context, kind);
    const lower_matrix out = out_matrix(context, kind);
    uint64_t mark = lower_temp_mark(context);
    fr_ref wide = lower_saved_at(k->mix_in),
           y = lower_saved_at(k->mix_out.wide);
    lower_column_forward(context, kind, &in, x, k->n1, wide);
    reduce(context, kind, wide);
    core(context, kind, FR_OP_LAYER_FWD, wide, y);
    y = lower_operand(context, y, k->mix_out, s->rows, kind->mix.inner);
    if (is_partial)
        lower_product_fwd(context, kind, &out, y, target);
    else
        lower_row_forward(context, kind, &out, y, target);
    lower_temp_reset(context, mark);
}

static fr_ref state_backward(lower_context *context, const lower_kind *kind,
                             fr_ref dy, fr_ref x)
{
    const lower_shape *s = &context->shape;
    const lower_saved *k = &kind->saved;
    const lower_matrix in = in_matrix(context, kind);
    const lower_matrix out = out_matrix(context, kind);
    fr_ref dwide = lower_temp(context, lower_bytes(context, s->rows, in.n));
    uint64_t mark = lower_temp_mark(context);
    fr_ref d_out = lower_temp(context, lower_bytes(context, s->rows, out.k));
    lower_row_backward(context, kind, &out,
                       lower_dropped(context, dy, k->mask1),
                       lower_kept_operand(k->mix_out), d_out);
    core(context, kind, FR_OP_LAYER_BWD, d_out, dwide);
    lower_temp_reset(context, mark);
    reduce(context, kind, dwide);
    return lower_column_backward(context, kind, &in, dwide, x);
}

void lower_mixer_forward(lower_context *context, const lower_kind *kind,
                         fr_ref x, fr_ref target)
{
    const lower_shape *s = &context->shape;
    if (!kind->mixer->has_side_attention) {
        if (kind->mixer->is_attention)
            lower_attention_forward(context, kind, x, target, false);
        else
            state_forward(context, kind, x, target, false);
        return;
    }
    uint64_t mark = lower_temp_mark(context);
    fr_ref sum = lower_partial_rows(context, target);
    fr_ref other =
        lower_temp(context, lower_bytes(context, s->rows, s->hidden));
    lower_attention_forward(context, kind, x, sum, true);
    state_forward(context, kind, x, other, true);
    lower_add(context, other, sum, s->rows * s->hidden);
    lower_sum_rows(context, sum, target);
    lower_temp_reset(context, mark);
}

fr_ref lower_mixer_backward(lower_context *context, const lower_kind *kind,
                            fr_ref dy, fr_ref x)
{
    const lower_shape *s = &context->shape;
    if (!kind->mixer->is_attention)
        return state_backward(context, kind, dy, x);
    fr_ref dx = lower_attention_backward(context, kind, dy, x);
    if (kind->mixer->has_side_attention)
        lower_add(context, state_backward(context, kind, dy, x), dx,
                  s->stream_rows * s->hidden);
    return dx;
}
