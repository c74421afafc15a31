/*
 * lower_ends.c: the two ends of the model: embedding, and last norm, head and
 * loss.
 *
 * These segments occur in one rank program each, so WEIGHT and GRAD are the
 * whole flat lists.  The head's forward and backward are one segment that runs
 * when the micro-batch's backward begins: the logits live only that long.
 */
#include "plan/lower/segment/lower_ends.h"
#include "plan/lower/framework/lower_overhead.h"

#include <stddef.h>

static uint64_t f32_bytes(int64_t rows, int64_t cols)
{
    return (uint64_t)rows * (uint64_t)cols * sizeof(float);
}

static uint64_t wide_bytes(const lower_context *context, int64_t rows,
                           int64_t cols)
{
    return f32_bytes(rows, cols) / sizeof(float) *
           fr_dtype_bytes(fr_plan_storage_dtype(context->plan));
}

/* A collective over TP between whole rows and those of the stream. */
static void tp_rows(lower_context *context, fr_op op, fr_ref src, fr_ref dst)
{
    const lower_shape *s = &context->shape;
    fr_instr *instr = lower_collective(context, op, FR_AXIS_TP,
                                       fr_plan_storage_dtype(context->plan),
                                       (uint64_t)(s->rows * s->hidden));
    instr->ref[FR_COMM_SRC] = src;
    instr->ref[FR_COMM_DST] = dst;
}

static void embed_segments(lower_context *context, const lower_embed_places *e,
                           lower_ends_segments *segments)
{
    const lower_shape *s = &context->shape;
    bool is_sp = context->plan->is_sequence_parallel;
    const fr_embed_dims dims = {s->rows, s->hidden, s->vocab_local, s->seq,
                                s->vocab};
    const fr_ref tokens = lower_ref(FR_SPACE_TOKENS, 0);
    const fr_ref out = lower_ref(FR_SPACE_OUT, 0);
    const fr_ref in = lower_ref(FR_SPACE_IN, 0);

    segments->i_embed_fwd =
        lower_segment_begin(context, FR_LANE_COMPUTE, "embed_fwd");
    lower_segments_mark(context, segments->i_embed_fwd, FR_SEGMENT_EMBED);
    fr_ref whole =
        is_sp ? lower_temp(context, wide_bytes(context, s->rows, s->hidden))
              : out;
    fr_instr *instr = lower_emit(context, FR_OP_EMBED_FWD);
    instr->embed = dims;
    instr->axis = FR_AXIS_TP;
    instr->ref[FR_EMBED_FWD_TOKENS] = tokens;
    instr->ref[FR_EMBED_FWD_WTE] =
        lower_parameter(context, FR_SPACE_WEIGHT, e->wte);
    instr->ref[FR_EMBED_FWD_WPE] =
        lower_parameter(context, FR_SPACE_WEIGHT, e->wpe);
    instr->ref[FR_EMBED_FWD_OUT] = whole;
    if (context->plan->tp > 1)
        tp_rows(context, is_sp ? FR_OP_REDUCE_SCATTER : FR_OP_ALL_REDUCE, whole,
                out);

    segments->i_embed_bwd =
        lower_segment_begin(context, FR_LANE_COMPUTE, "embed_bwd");
    lower_segments_mark(context, segments->i_embed_bwd,
                        FR_SEGMENT_EMBED_BACKWARD);
    whole = is_sp ? lower_temp(context, wide_bytes(context, s->rows, s->hidden))
                  : in;
    if (is_sp)
        tp_rows(context, FR_OP_ALL_GATHER, in, whole);
    instr = lower_emit(context, FR_OP_EMBED_BWD);
    instr->embed = dims;
    instr->axis = FR_AXIS_TP;
    instr->ref[FR_EMBED_BWD_TOKENS] = tokens;
    instr->ref[FR_EMBED_BWD_DOUT] = whole;
    instr->ref[FR_EMBED_BWD_DWTE] =
        lower_parameter(context, FR_SPACE_GRAD, e->wte);
    instr->ref[FR_EMBED_BWD_DWPE] =
        lower_parameter(context, FR_SPACE_GRAD, e->wpe);
}

static fr_instr *norm(lower_context *context, fr_op op)
{
    fr_instr *instr = lower_emit(context, op);
    instr->matrix.rows = context->shape.stream_rows;
    instr->matrix.cols = context->shape.hidden;
    instr->scalar = context->model->norm_eps;
    instr->flags = context->model->is_rms_norm ? FR_INSTR_RMS : 0;
    return instr;
}

/* The head's products have at least 16 bits (tf32 where the plan says so). */
static void set_product(const lower_context *context, fr_instr *instr,
                        fr_linear_dims mnk)
{
    if (context->plan->precision == FR_DTYPE_TF32)
        instr->dtype = FR_DTYPE_TF32;
    instr->linear = mnk;
}

/* Writes the two products of the head's backward; dy is whole or the
 * stream's. */
static void head_backward(lower_context *context, const lower_head_places *e,
                          fr_ref logits, fr_ref y, fr_ref dy)
{
    const lower_shape *s = &context->shape;
    const fr_linear_dims mnk = {s->rows, s->vocab_local, s->hidden, 0};
    bool is_sp = context->plan->is_sequence_parallel;

    fr_instr *instr = lower_emit(context, FR_OP_LINEAR_WGRAD);
    set_product(context, instr, mnk);
    instr->ref[FR_LINEAR_WGRAD_DY] = logits;
    instr->ref[FR_LINEAR_WGRAD_X] = y;
    instr->ref[FR_LINEAR_WGRAD_DW] =
        lower_parameter(context, FR_SPACE_GRAD, e->head);
    /* y is dead: its memory takes the partial sums. */
    fr_ref partial = is_sp ? y : dy;
    instr = lower_emit(context, FR_OP_LINEAR_DGRAD);
    set_product(context, instr, mnk);
    instr->ref[FR_LINEAR_DGRAD_DY] = logits;
    instr->ref[FR_LINEAR_DGRAD_W] =
        lower_parameter(context, FR_SPACE_WEIGHT, e->head);
    instr->ref[FR_LINEAR_DGRAD_DX] = partial;
    if (context->plan->tp > 1)
        tp_rows(context, is_sp ? FR_OP_REDUCE_SCATTER : FR_OP_ALL_REDUCE,
                partial, dy);
}

/* The segment with the head's forward, loss and backward; with is_added its
 * gradient goes onto one that is there. */
static uint32_t head_segment(lower_context *context, const lower_head_places *e,
                             const char *name, bool is_added)
{
    const lower_shape *s = &context->shape;
    const fr_linear_dims mnk = {s->rows, s->vocab_local, s->hidden, 0};
    const fr_ref in = lower_ref(FR_SPACE_IN, 0);
    bool is_sp = context->plan->is_sequence_parallel;

    uint32_t i_segment =
        lower_segment_begin(context, FR_LANE_COMPUTE, "%s", name);
    fr_ref logits =
        lower_temp(context, wide_bytes(context, s->rows, s->vocab_local));
    fr_ref stats = lower_temp(context, f32_bytes(2, s->stream_rows));
    fr_ref shard = lower_temp(context, s->stream_bytes);
    fr_ref y =
        is_sp ? lower_temp(context, wide_bytes(context, s->rows, s->hidden))
              : shard;
    fr_instr *instr = norm(context, FR_OP_NORM_FWD);
    instr->ref[FR_NORM_FWD_X] = in;
    instr->ref[FR_NORM_FWD_W] =
        lower_parameter(context, FR_SPACE_WEIGHT, e->norm_w);
    instr->ref[FR_NORM_FWD_B] =
        lower_parameter(context, FR_SPACE_WEIGHT, e->norm_b);
    instr->ref[FR_NORM_FWD_Y] = shard;
    instr->ref[FR_NORM_FWD_STATS] = stats;
    lower_overhead_norm_fwd(context, s->stream_rows * s->hidden,
                            context->model->is_rms_norm);
    if (is_sp)
        tp_rows(context, FR_OP_ALL_GATHER, shard, y);
    instr = lower_emit(context, FR_OP_LINEAR_FWD);
    set_product(context, instr, mnk);
    instr->ref[FR_LINEAR_FWD_X] = y;
    instr->ref[FR_LINEAR_FWD_W] =
        lower_parameter(context, FR_SPACE_WEIGHT, e->head);
    instr->ref[FR_LINEAR_FWD_Y] = logits;
    lower_loss(context, logits);
    /* The gradient of the norm's output takes the place of that output. */
    head_backward(context, e, logits, y, shard);
    instr = norm(context, FR_OP_NORM_BWD);
    if (is_added)
        instr->flags |= FR_INSTR_ACCUMULATE;
    instr->ref[FR_NORM_BWD_DY] = shard;
    instr->ref[FR_NORM_BWD_X] = in;
    instr->ref[FR_NORM_BWD_W] =
        lower_parameter(context, FR_SPACE_WEIGHT, e->norm_w);
    instr->ref[FR_NORM_BWD_STATS] = stats;
    instr->ref[FR_NORM_BWD_DX] = lower_ref(FR_SPACE_OUT, 0);
    instr->ref[FR_NORM_BWD_DW] =
        lower_parameter(context, FR_SPACE_GRAD, e->norm_w);
    instr->ref[FR_NORM_BWD_DB] =
        lower_parameter(context, FR_SPACE_GRAD, e->norm_b);
    lower_overhead_norm_bwd(context, s->stream_rows * s->hidden,
                            context->model->is_rms_norm, is_added);
    lower_overhead_gradients(context, (uint64_t)(s->vocab_local * s->hidden));
    return i_segment;
}

void lower_ends_write(lower_context *context, const lower_ends *ends,
                      bool has_embed, bool has_head, lower_ends_segments *out)
{
    fr_model_kind kind = context->model->kind;
    if (kind == FR_MODEL_LAYERS) {
        lower_list_ends(context, has_embed, has_head, out);
        return;
    }
    if (kind == FR_MODEL_ENCODER) {
        if (has_embed)
            lower_encoder_embed(context, ends, out);
        if (has_head)
            lower_encoder_head(context, ends, out);
        return;
    }
    if (has_embed)
        embed_segments(context, &ends->embed, out);
    if (has_head)
        out->i_head = head_segment(context, &ends->head, "head", false);
    if (has_head && context->model->n_mtp_layers > 0)
        out->i_head_added =
            head_segment(context, &ends->head, "head_again", true);
}
