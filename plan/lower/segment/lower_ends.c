/*
 * lower_ends.c: the two ends of the model: embedding, and last norm, head and
 * loss.
 *
 * These segments occur in one rank program each, so WEIGHT and GRAD are the
 * whole flat lists.  The head's forward and backward are one segment that runs
 * when the micro-batch's backward begins: the logits live only that long.
 */
#include "plan/lower/segment/lower_block.h"

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

static void set_dims(fr_instr *instr, const int64_t *dims, int n)
{
    for (int i = 0; i < n; i++)
        instr->dim[i] = dims[i];
}

/* rows x hidden over TP, between whole and stream-sharded rows. */
static void tp_rows(lower_context *context, fr_op op, fr_ref src, fr_ref dst)
{
    const lower_shape *s = &context->shape;
    fr_instr *instr = lower_collective(context, op, FR_AXIS_TP,
                                       fr_plan_storage_dtype(context->plan),
                                       (uint64_t)(s->rows * s->hidden));
    instr->ref[0] = src;
    instr->ref[1] = dst;
}

static void embed_segments(lower_class *lc)
{
    lower_context *context = lc->context;
    const lower_shape *s = &context->shape;
    bool is_sp = context->plan->is_sequence_parallel;
    const int64_t dims[5] = {s->rows, s->hidden, s->vocab_local, s->seq,
                             s->vocab};
    const fr_ref tokens = lower_ref(FR_SPACE_TOKENS, 0);
    const fr_ref out = lower_ref(FR_SPACE_OUT, 0);
    const fr_ref in = lower_ref(FR_SPACE_IN, 0);

    lc->i_embed_fwd =
        lower_segment_begin(context, FR_LANE_COMPUTE, "embed_fwd");
    lower_segments_mark(context, lc->i_embed_fwd, FR_SEGMENT_EMBED);
    fr_ref whole =
        is_sp ? lower_temp(context, wide_bytes(context, s->rows, s->hidden))
              : out;
    fr_instr *instr = lower_emit(context, FR_OP_EMBED_FWD);
    set_dims(instr, dims, 5);
    instr->axis = FR_AXIS_TP;
    instr->ref[0] = tokens;
    instr->ref[1] = lower_parameter(context, FR_SPACE_WEIGHT, lc->ends.wte);
    instr->ref[2] = lower_parameter(context, FR_SPACE_WEIGHT, lc->ends.wpe);
    instr->ref[3] = whole;
    if (context->plan->tp > 1)
        tp_rows(context, is_sp ? FR_OP_REDUCE_SCATTER : FR_OP_ALL_REDUCE, whole,
                out);

    lc->i_embed_bwd =
        lower_segment_begin(context, FR_LANE_COMPUTE, "embed_bwd");
    lower_segments_mark(context, lc->i_embed_bwd, FR_SEGMENT_EMBED_BACKWARD);
    whole = is_sp ? lower_temp(context, wide_bytes(context, s->rows, s->hidden))
                  : in;
    if (is_sp)
        tp_rows(context, FR_OP_ALL_GATHER, in, whole);
    instr = lower_emit(context, FR_OP_EMBED_BWD);
    set_dims(instr, dims, 5);
    instr->axis = FR_AXIS_TP;
    instr->ref[0] = tokens;
    instr->ref[1] = whole;
    instr->ref[2] = lower_parameter(context, FR_SPACE_GRAD, lc->ends.wte);
    instr->ref[3] = lower_parameter(context, FR_SPACE_GRAD, lc->ends.wpe);
}

static fr_instr *xent(lower_context *context, fr_op op, fr_ref logits)
{
    const lower_shape *s = &context->shape;
    const int64_t dims[3] = {s->rows, s->vocab_local, s->vocab};
    fr_instr *instr = lower_emit(context, op);
    if (!lower_is_loss_narrow(context))
        instr->dtype = FR_DTYPE_F32;
    set_dims(instr, dims, 3);
    /* The mean over the global batch: gradients are then plain sums. */
    instr->scalar =
        1.0 / ((double)context->job->global_batch * (double)context->job->seq);
    instr->axis = FR_AXIS_TP;
    instr->ref[0] = logits;
    instr->ref[1] = lower_ref(FR_SPACE_TOKENS, 0);
    return instr;
}

static void tp_row_sums(lower_context *context, fr_ref at, int64_t n,
                        uint16_t flags)
{
    fr_instr *instr = lower_collective(context, FR_OP_ALL_REDUCE, FR_AXIS_TP,
                                       FR_DTYPE_F32, (uint64_t)n);
    instr->flags = flags;
    instr->ref[0] = instr->ref[1] = at;
}

/* Logits become their gradients. */
static void loss(lower_context *context, fr_ref logits)
{
    const int64_t rows = context->shape.rows;
    const fr_ref step = lower_ref(FR_SPACE_STEP, 0);
    fr_instr *instr;
    if (context->plan->tp == 1) {
        xent(context, FR_OP_XENT, logits)->ref[2] = step;
        return;
    }
    uint64_t mark = lower_temp_mark(context);
    fr_ref row_max = lower_temp(context, f32_bytes(rows, 1));
    fr_ref sums = lower_temp(context, f32_bytes(rows, 2));
    xent(context, FR_OP_XENT_MAX, logits)->ref[2] = row_max;
    tp_row_sums(context, row_max, rows, FR_INSTR_MAX);
    instr = xent(context, FR_OP_XENT_SUM, logits);
    instr->ref[2] = row_max;
    instr->ref[3] = sums;
    tp_row_sums(context, sums, 2 * rows, 0);
    instr = xent(context, FR_OP_XENT_GRAD, logits);
    instr->ref[2] = row_max;
    instr->ref[3] = sums;
    instr->ref[4] = step;
    lower_temp_reset(context, mark);
}

static fr_instr *norm(lower_context *context, fr_op op)
{
    fr_instr *instr = lower_emit(context, op);
    instr->dim[0] = context->shape.stream_rows;
    instr->dim[1] = context->shape.hidden;
    instr->scalar = context->model->norm_eps;
    instr->flags = context->model->is_rms_norm ? FR_INSTR_RMS : 0;
    return instr;
}

/* The head's products have at least 16 bits (tf32 where the plan says so). */
static void set_product(const lower_context *context, fr_instr *instr,
                        const int64_t mnk[3])
{
    if (context->plan->precision == FR_DTYPE_TF32)
        instr->dtype = FR_DTYPE_TF32;
    set_dims(instr, mnk, 3);
}

/* The two products of the head's backward; dy: whole rows or the stream's. */
static void head_backward(lower_class *lc, fr_ref logits, fr_ref y, fr_ref dy)
{
    lower_context *context = lc->context;
    const lower_shape *s = &context->shape;
    const int64_t mnk[3] = {s->rows, s->vocab_local, s->hidden};
    bool is_sp = context->plan->is_sequence_parallel;

    fr_instr *instr = lower_emit(context, FR_OP_LINEAR_WGRAD);
    set_product(context, instr, mnk);
    instr->ref[0] = logits;
    instr->ref[1] = y;
    instr->ref[2] = lower_parameter(context, FR_SPACE_GRAD, lc->ends.head);
    /* y is dead: its memory takes the partial sums. */
    fr_ref partial = is_sp ? y : dy;
    instr = lower_emit(context, FR_OP_LINEAR_DGRAD);
    set_product(context, instr, mnk);
    instr->ref[0] = logits;
    instr->ref[1] = lower_parameter(context, FR_SPACE_WEIGHT, lc->ends.head);
    instr->ref[2] = partial;
    if (context->plan->tp > 1)
        tp_rows(context, is_sp ? FR_OP_REDUCE_SCATTER : FR_OP_ALL_REDUCE,
                partial, dy);
}

static void cast_logits(lower_context *context, fr_ref src, fr_ref dst,
                        fr_dtype from, fr_dtype to)
{
    const lower_shape *s = &context->shape;
    fr_instr *instr = lower_emit(context, FR_OP_CAST);
    instr->dtype = (uint8_t)to;
    instr->scalar = (double)fr_dtype_bytes(from);
    instr->dim[0] = s->rows * s->vocab_local;
    instr->ref[0] = src;
    instr->ref[1] = dst;
}

/*
 * The loss is computed in float32: logits of 16 bits are cast to a copy, in
 * which they become their gradients, and these are cast back (Megatron-LM's
 * vocabulary-parallel cross entropy: 6 bytes per logit at the peak).
 */
void lower_loss(lower_context *context, fr_ref logits)
{
    const lower_shape *s = &context->shape;
    fr_dtype dtype = fr_plan_storage_dtype(context->plan);
    lower_besides_metrics(context);
    if (dtype == FR_DTYPE_F32 || lower_is_loss_narrow(context)) {
        loss(context, logits);
        return;
    }
    uint64_t mark = lower_temp_mark(context);
    fr_ref whole = lower_temp(context, f32_bytes(s->rows, s->vocab_local));
    cast_logits(context, logits, whole, dtype, FR_DTYPE_F32);
    loss(context, whole);
    lower_besides_loss(context);
    cast_logits(context, whole, logits, FR_DTYPE_F32, dtype);
    lower_temp_reset(context, mark);
}

/* The head's forward, loss and backward; `is_added`: onto a gradient that is
 * there. */
static uint32_t head_segment(lower_class *lc, const char *name, bool is_added)
{
    lower_context *context = lc->context;
    const lower_shape *s = &context->shape;
    const int64_t mnk[3] = {s->rows, s->vocab_local, s->hidden};
    const lower_ends *e = &lc->ends;
    const lower_norm last =
        lower_stream_norm(context, LOWER_ABSENT, LOWER_ABSENT);
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
    instr->ref[0] = in;
    instr->ref[1] = lower_parameter(context, FR_SPACE_WEIGHT, e->norm_w);
    instr->ref[2] = lower_parameter(context, FR_SPACE_WEIGHT, e->norm_b);
    instr->ref[3] = shard;
    instr->ref[4] = stats;
    lower_besides_norm_fwd(context, &last);
    if (is_sp)
        tp_rows(context, FR_OP_ALL_GATHER, shard, y);
    instr = lower_emit(context, FR_OP_LINEAR_FWD);
    set_product(context, instr, mnk);
    instr->ref[0] = y;
    instr->ref[1] = lower_parameter(context, FR_SPACE_WEIGHT, e->head);
    instr->ref[3] = logits;
    lower_loss(context, logits);
    /* The gradient of the norm's output takes the place of that output. */
    head_backward(lc, logits, y, shard);
    instr = norm(context, FR_OP_NORM_BWD);
    if (is_added)
        instr->flags |= FR_INSTR_ACCUMULATE;
    instr->ref[0] = shard;
    instr->ref[1] = in;
    instr->ref[2] = lower_parameter(context, FR_SPACE_WEIGHT, e->norm_w);
    instr->ref[3] = stats;
    instr->ref[4] = lower_ref(FR_SPACE_OUT, 0);
    instr->ref[5] = lower_parameter(context, FR_SPACE_GRAD, e->norm_w);
    instr->ref[6] = lower_parameter(context, FR_SPACE_GRAD, e->norm_b);
    lower_besides_norm_bwd(context, &last, is_added);
    lower_besides_gradients(context, (uint64_t)(s->vocab_local * s->hidden));
    return i_segment;
}

void lower_ends_segments(lower_class *lc)
{
    fr_model_kind kind = lc->context->model->kind;
    if (kind == FR_MODEL_LAYERS) {
        lower_list_ends(lc);
        return;
    }
    if (kind == FR_MODEL_ENCODER) {
        if (lc->is_first)
            lower_encoder_embed(lc);
        if (lc->is_last)
            lower_encoder_head(lc);
        return;
    }
    if (lc->is_first)
        embed_segments(lc);
    if (lc->is_last)
        lc->i_head = head_segment(lc, "head", false);
    if (lc->is_last && lc->context->model->n_mtp_layers > 0)
        lc->i_head_again = head_segment(lc, "head_again", true);
}
