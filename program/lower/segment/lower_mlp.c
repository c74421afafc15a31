/* lower_mlp.c: a dense MLP, forward and backward. */
#include "program/lower/framework/lower_overhead.h"
#include "program/lower/segment/lower_layer.h"

static lower_matrix fc1_matrix(const lower_context *context,
                               const lower_kind *kind)
{
    const lower_shape *s = &context->shape;
    return (lower_matrix){.m = s->rows,
                          .n = s->fc1,
                          .k = s->hidden,
                          .w = kind->layout.fc1_w,
                          .b = kind->layout.fc1_b};
}

static lower_matrix fc2_matrix(const lower_context *context,
                               const lower_kind *kind, bool is_forward)
{
    const lower_shape *s = &context->shape;
    return (lower_matrix){.m = s->rows,
                          .n = s->hidden,
                          .k = s->ffn,
                          .w = kind->layout.fc2_w,
                          .b = is_forward ? LOWER_ABSENT : kind->layout.fc2_b};
}

static void activate(lower_context *context, fr_ref fc1, fr_ref act)
{
    const lower_shape *s = &context->shape;
    fr_instr *instr = lower_activation(context, false, s->rows, s->ffn);
    instr->ref[FR_GELU_FWD_X] = fc1;
    instr->ref[FR_GELU_FWD_Y] = act;
    lower_overhead_activation(context, false, s->rows * s->ffn);
}

/* Scratch for what is not kept stays until the last product. */
lower_mlp_place lower_mlp_begin(lower_context *context, const lower_kind *kind,
                                fr_ref x)
{
    const lower_shape *s = &context->shape;
    const lower_saved *k = &kind->saved;
    const lower_matrix matrix = fc1_matrix(context, kind);
    lower_mlp_place at;
    at.fc1 = lower_place_kept(context, k->fc1,
                              lower_bytes(context, s->rows, s->fc1));
    at.act = lower_place_kept(context, k->act.wide,
                              lower_bytes(context, s->rows, s->ffn));
    lower_column_forward(context, kind, &matrix, x, k->n2, at.fc1);
    if (k->fc1_half != LOWER_ABSENT)
        lower_overhead_alias(context, at.fc1, lower_saved_at(k->fc1_half),
                             lower_bytes(context, s->rows, s->ffn));
    activate(context, at.fc1, at.act);
    return at;
}

void lower_mlp_finish(lower_context *context, const lower_kind *kind,
                      lower_mlp_place at, fr_ref target, bool is_partial)
{
    const lower_shape *s = &context->shape;
    const lower_matrix matrix = fc2_matrix(context, kind, true);
    fr_ref act =
        lower_operand(context, at.act, kind->saved.act, s->rows, s->ffn);
    if (is_partial)
        lower_product_fwd(context, kind, &matrix, act, target);
    else
        lower_row_forward(context, kind, &matrix, act, target);
}

void lower_mlp_keep(lower_context *context, const lower_kind *kind, fr_ref x)
{
    const lower_shape *s = &context->shape;
    const lower_mlp_place at = lower_mlp_begin(context, kind, x);
    (void)lower_operand(context, at.act, kind->saved.act, s->rows, s->ffn);
}

/* Recomputes from x what selective recompute has not kept. */
static lower_mlp_place recompute(lower_context *context, const lower_kind *kind,
                                 fr_ref x)
{
    const lower_shape *s = &context->shape;
    const lower_saved *k = &kind->saved;
    const size_t first = context->instrs.n;
    lower_mlp_place at = {lower_saved_at(k->fc1), lower_kept_operand(k->act)};
    if (k->fc1 == LOWER_ABSENT) {
        at.fc1 = lower_temp(context, lower_bytes(context, s->rows, s->fc1));
        fr_ref whole = lower_gather_rows(context, x, s->hidden,
                                         lower_product_dtype(context));
        lower_matrix matrix = fc1_matrix(context, kind);
        fr_ref made = at.fc1;
        if (k->fc1_half != LOWER_ABSENT) {
            const uint64_t half = lower_bytes(context, s->rows, s->ffn);
            lower_overhead_alias(context, lower_saved_at(k->fc1_half), made,
                                 half);
            made.offset_bytes += half;
            matrix.n = s->ffn;
        }
        lower_product_fwd(context, kind, &matrix, whole, made);
    }
    if (at.act.space == FR_SPACE_NONE) {
        fr_ref act = lower_temp(context, lower_bytes(context, s->rows, s->ffn));
        activate(context, at.fc1, act);
        at.act = lower_operand(context, act, k->act, s->rows, s->ffn);
    }
    lower_mark_recompute(context, first);
    return at;
}

fr_ref lower_mlp_backward(lower_context *context, const lower_kind *kind,
                          fr_ref dy, fr_ref x)
{
    const lower_shape *s = &context->shape;
    const lower_matrix fc1 = fc1_matrix(context, kind);
    const lower_matrix fc2 = fc2_matrix(context, kind, false);
    const lower_mlp_place at = recompute(context, kind, x);
    bool is_gated = context->model->is_gated_mlp;

    fr_ref dfc1 = lower_temp(context, lower_bytes(context, s->rows, s->fc1));
    uint64_t after_dfc1 = lower_temp_mark(context);
    fr_ref dact =
        is_gated ? lower_temp(context, lower_bytes(context, s->rows, s->ffn))
                 : dfc1;
    lower_row_backward(context, kind, &fc2,
                       lower_dropped(context, dy, kind->saved.mask2), at.act,
                       dact);
    fr_instr *instr = lower_activation(context, true, s->rows, s->ffn);
    instr->ref[FR_GELU_BWD_DY] = dact;
    instr->ref[FR_GELU_BWD_X] = at.fc1;
    instr->ref[FR_GELU_BWD_DX] = dfc1;
    lower_overhead_activation(context, true, s->rows * s->ffn);
    lower_temp_reset(context, after_dfc1);

    lower_overhead_parts(context, fc1.m * fc1.k, 2);
    return lower_column_backward(context, kind, &fc1, dfc1, x);
}
