/*
 * lower_loss.c: the loss of whole or of vocabulary-parallel logits, and its
 * gradient.
 */
#include "program/lower/framework/lower_overhead.h"
#include "program/lower/segment/lower_ends.h"

static uint64_t f32_bytes(int64_t rows, int64_t cols)
{
    return (uint64_t)rows * (uint64_t)cols * sizeof(float);
}

fr_ref lower_tokens(const lower_context *context, bool is_later)
{
    const uint64_t n_bytes = sizeof(int32_t) * (uint64_t)context->shape.rows;
    return lower_ref(FR_SPACE_TOKENS, is_later ? n_bytes : 0);
}

static fr_instr *xent(lower_context *context, fr_op op, fr_ref logits,
                      bool is_later)
{
    const fr_model *model = context->model;
    const lower_shape *s = &context->shape;
    fr_instr *instr = lower_emit(context, op);
    if (!context->target.is_loss_narrow)
        instr->dtype = FR_DTYPE_F32;
    instr->loss.rows = s->rows;
    instr->loss.n_local = s->vocab_local;
    instr->loss.vocab = s->vocab;
    /* The mean over the global batch: gradients are then plain sums. */
    instr->scalar =
        1.0 / ((double)context->job->global_batch * (double)context->job->seq);
    if (is_later) {
        instr->scalar *= model->mtp_loss_scale / (double)model->n_mtp_layers;
        instr->flags |= FR_INSTR_UNTOLD;
    }
    instr->axis = FR_AXIS_TP;
    instr->ref[FR_XENT_LOGITS] = logits;
    instr->ref[FR_XENT_TOKENS] = lower_tokens(context, is_later);
    return instr;
}

static void tp_row_sums(lower_context *context, fr_ref at, int64_t n,
                        uint16_t flags)
{
    fr_instr *instr = lower_collective(context, FR_OP_ALL_REDUCE, FR_AXIS_TP,
                                       FR_DTYPE_F32, (uint64_t)n, at, at);
    instr->flags = flags;
}

/* Logits become their gradients. */
static void loss(lower_context *context, fr_ref logits, bool is_later)
{
    const int64_t rows = context->shape.rows;
    const fr_ref step = lower_ref(FR_SPACE_STEP, 0);
    fr_instr *instr;
    if (context->plan->tp == 1) {
        xent(context, FR_OP_XENT, logits, is_later)->ref[FR_XENT_STEP] = step;
        return;
    }
    uint64_t mark = lower_temp_mark(context);
    fr_ref row_max = lower_temp(context, f32_bytes(rows, 1));
    fr_ref sums = lower_temp(context, f32_bytes(rows, 2));
    xent(context, FR_OP_XENT_MAX, logits, is_later)->ref[FR_XENT_MAX_ROW_MAX] =
        row_max;
    tp_row_sums(context, row_max, rows, FR_INSTR_MAX);
    instr = xent(context, FR_OP_XENT_SUM, logits, is_later);
    instr->ref[FR_XENT_SUM_ROW_MAX] = row_max;
    instr->ref[FR_XENT_SUM_SUMS] = sums;
    tp_row_sums(context, sums, 2 * rows, 0);
    instr = xent(context, FR_OP_XENT_GRAD, logits, is_later);
    instr->ref[FR_XENT_GRAD_ROW_MAX] = row_max;
    instr->ref[FR_XENT_GRAD_SUMS] = sums;
    instr->ref[FR_XENT_GRAD_STEP] = step;
    lower_temp_reset(context, mark);
}

/*
 * Kernels that read no logits of 16 bits get a float32 copy of them, in which
 * they become their gradients, and these are cast back (Megatron-LM's
 * vocabulary-parallel cross entropy: 6 bytes per logit at the peak).
 */
void lower_loss(lower_context *context, fr_ref logits, bool is_later)
{
    const lower_shape *s = &context->shape;
    fr_dtype dtype = fr_plan_storage_dtype(context->plan);
    lower_overhead_metrics(context);
    if (dtype == FR_DTYPE_F32 || context->target.is_loss_narrow) {
        loss(context, logits, is_later);
        return;
    }
    uint64_t mark = lower_temp_mark(context);
    const int64_t n = s->rows * s->vocab_local;
    fr_ref whole = lower_temp(context, f32_bytes(s->rows, s->vocab_local));
    lower_cast(context, logits, dtype, whole, FR_DTYPE_F32, n);
    loss(context, whole, is_later);
    lower_overhead_loss(context);
    lower_cast(context, whole, FR_DTYPE_F32, logits, dtype, n);
    lower_temp_reset(context, mark);
}

void lower_labels_loss(lower_context *context, fr_ref logits, fr_ref labels,
                       int64_t n, int64_t n_labels)
{
    fr_instr *instr = lower_emit(context, FR_OP_LABELS);
    instr->labels = (fr_labels_dims){n, n_labels};
    instr->ref[FR_LABELS_TOKENS] = labels;
    instr = lower_emit(context, FR_OP_XENT);
    instr->loss = (fr_loss_dims){n, n_labels, n_labels};
    instr->scalar = 1.0 / (double)context->job->global_batch;
    instr->ref[FR_XENT_LOGITS] = logits;
    instr->ref[FR_XENT_TOKENS] = labels;
    instr->ref[FR_XENT_STEP] = lower_ref(FR_SPACE_STEP, 0);
}
