/*
 * lower_ends.c: the two ends of the model: embedding, and last norm, head and
 * loss.
 *
 * These segments occur in one rank program each, so WEIGHT and GRAD are the
 * whole flat lists.  The head's forward and backward are one segment that runs
 * when the micro-batch's backward begins: the logits live only that long.
 */
#include "program/lower/segment/lower_ends.h"

#include "program/lower/framework/lower_overhead.h"

#include <math.h>

/* Returns the factor of the tokens' embeddings; 0: they are not multiplied. */
static double embed_scale(const fr_model *model)
{
    return model->has_scaled_embedding ? sqrt((double)model->hidden) : 0.0;
}

static void embed_segments(lower_context *context, const lower_embed_places *e,
                           lower_ends_segments *segments)
{
    const lower_shape *s = &context->shape;
    const fr_ref out = lower_ref(FR_SPACE_OUT, 0);

    segments->i_embed_fwd =
        lower_segment_begin(context, FR_LANE_COMPUTE, "embed_fwd");
    lower_segments_mark(context, segments->i_embed_fwd, FR_SEGMENT_EMBED);
    fr_ref whole = lower_partial_rows(context, out);
    fr_instr *instr =
        lower_look_up(context, FR_OP_EMBED_FWD, s->vocab_local, s->vocab);
    instr->scalar = embed_scale(context->model);
    instr->ref[FR_EMBED_FWD_WTE] = lower_weight(context, e->wte);
    instr->ref[FR_EMBED_FWD_WPE] = lower_weight(context, e->wpe);
    instr->ref[FR_EMBED_FWD_OUT] = whole;
    lower_sum_rows(context, whole, out);

    segments->i_embed_bwd =
        lower_segment_begin(context, FR_LANE_COMPUTE, "embed_bwd");
    lower_segments_mark(context, segments->i_embed_bwd,
                        FR_SEGMENT_EMBED_BACKWARD);
    whole = lower_gather_rows(context, lower_ref(FR_SPACE_IN, 0), s->hidden,
                              fr_plan_storage_dtype(context->plan));
    instr = lower_look_up(context, FR_OP_EMBED_BWD, s->vocab_local, s->vocab);
    instr->scalar = embed_scale(context->model);
    instr->ref[FR_EMBED_BWD_DOUT] = whole;
    instr->ref[FR_EMBED_BWD_DWTE] = lower_grad(context, e->wte);
    instr->ref[FR_EMBED_BWD_DWPE] = lower_grad(context, e->wpe);
}

/* The use of a head: it predicts the next token; HEAD_AGAIN: the same once
 * more, in a model that is only simulated; HEAD_LATER: it predicts a later
 * token from rows that are normed already; HEAD_BESIDE_LATER: it predicts the
 * next token from where the stream divides. */
typedef enum head_use {
    HEAD_NEXT,
    HEAD_AGAIN,
    HEAD_LATER,
    HEAD_BESIDE_LATER
} head_use;

/* The rows that the head's product reads, in scratch. */
static void head_input(lower_context *context, const lower_norm *norm,
                       head_use use, fr_ref stats, fr_ref out)
{
    const fr_ref in = lower_ref(FR_SPACE_IN, 0);
    if (use == HEAD_LATER)
        lower_copy(context, in, out, context->shape.stream_bytes);
    else
        lower_norm_fwd(context, norm, in, out, stats);
}

/* From the gradient of those rows to that of the stream. */
static void head_gradient(lower_context *context, const lower_norm *norm,
                          head_use use, fr_ref stats, fr_ref dy)
{
    const lower_shape *s = &context->shape;
    const fr_ref out = lower_ref(FR_SPACE_OUT, 0);
    if (use == HEAD_LATER) {
        lower_copy(context, dy, out, s->stream_bytes);
        return;
    }
    if (use == HEAD_BESIDE_LATER)
        lower_add(context, out, dy, s->stream_rows * s->hidden);
    lower_norm_bwd(context, norm, dy, lower_ref(FR_SPACE_IN, 0), stats, out,
                   use == HEAD_AGAIN);
}

/* The embeddings of the next tokens, or their gradients: behind the stream. */
static void later_embedding(lower_context *context, const lower_ends *ends,
                            fr_op op)
{
    const lower_shape *s = &context->shape;
    const fr_ref rows = lower_ref(FR_SPACE_OUT, s->stream_bytes);
    bool is_forward = op == FR_OP_EMBED_FWD;
    fr_ref whole =
        is_forward ? lower_partial_rows(context, rows)
                   : lower_gather_rows(context, rows, s->hidden,
                                       fr_plan_storage_dtype(context->plan));
    fr_instr *instr = lower_look_up(context, op, s->vocab_local, s->vocab);
    instr->scalar = embed_scale(context->model);
    instr->ref[FR_EMBED_FWD_TOKENS] = lower_tokens(context, true);
    if (is_forward) {
        instr->ref[FR_EMBED_FWD_WTE] = lower_weight(context, ends->embed.wte);
        instr->ref[FR_EMBED_FWD_OUT] = whole;
        lower_sum_rows(context, whole, rows);
    } else {
        instr->ref[FR_EMBED_BWD_DOUT] = whole;
        instr->ref[FR_EMBED_BWD_DWTE] = lower_grad(context, ends->embed.wte);
    }
}

/* The segment with the head's forward, loss and backward. */
static uint32_t head_segment(lower_context *context, const lower_ends *ends,
                             const char *name, head_use use)
{
    const lower_shape *s = &context->shape;
    const lower_head_places *e = &ends->head;
    const lower_norm norm = lower_stream_norm(context, e->norm_w, e->norm_b);
    /* The head's products have at least 16 bits. */
    const lower_matrix head = {.m = s->rows,
                               .n = s->vocab_local,
                               .k = s->hidden,
                               .w = e->head,
                               .b = e->vocab_b,
                               .is_wide = true};
    uint32_t i_segment =
        lower_segment_begin(context, FR_LANE_COMPUTE, "%s", name);
    fr_ref logits =
        lower_temp(context, lower_bytes(context, s->rows, s->vocab_local));
    fr_ref stats =
        lower_temp(context, 2 * sizeof(float) * (uint64_t)s->stream_rows);
    fr_ref shard = lower_temp(context, s->stream_bytes);
    fr_ref y = lower_partial_rows(context, shard);
    head_input(context, &norm, use, stats, shard);
    if (context->plan->is_sequence_parallel) {
        lower_collective(context, FR_OP_ALL_GATHER, FR_AXIS_TP,
                         fr_plan_storage_dtype(context->plan),
                         (uint64_t)(s->rows * s->hidden), shard, y);
    }
    lower_product_fwd(context, NULL, &head, y, logits);
    lower_loss(context, logits, use == HEAD_LATER);
    lower_product_wgrad(context, &head, logits, y);
    /* y is dead: its memory takes the partial sums, and that of the norm's
     * output takes its gradient. */
    lower_product_dgrad(context, NULL, &head, logits, y);
    lower_sum_rows(context, y, shard);
    head_gradient(context, &norm, use, stats, shard);
    if (use == HEAD_BESIDE_LATER)
        later_embedding(context, ends, FR_OP_EMBED_BWD);
    lower_overhead_gradients(context, (uint64_t)(s->vocab_local * s->hidden));
    return i_segment;
}

/* Writes the segment for the input of a later token's layer: the stream as the
 * head reads it (so do the layers of Megatron-LM and vLLM), and embeddings. */
static uint32_t later_segment(lower_context *context, const lower_ends *ends)
{
    const lower_norm norm =
        lower_stream_norm(context, ends->head.norm_w, ends->head.norm_b);
    uint32_t i_segment =
        lower_segment_begin(context, FR_LANE_COMPUTE, "mtp_input");
    lower_segments_mark(context, i_segment, FR_SEGMENT_FORWARD);
    fr_ref stats = lower_temp(
        context, 2 * sizeof(float) * (uint64_t)context->shape.stream_rows);
    lower_norm_fwd(context, &norm, lower_ref(FR_SPACE_IN, 0),
                   lower_ref(FR_SPACE_OUT, 0), stats);
    later_embedding(context, ends, FR_OP_EMBED_FWD);
    return i_segment;
}

static void head_segments(lower_context *context, const lower_ends *ends,
                          lower_ends_segments *out)
{
    bool is_run = lower_is_later_run(context);
    if (is_run)
        out->i_later = later_segment(context, ends);
    out->i_head = head_segment(context, ends, is_run ? "mtp_head" : "head",
                               is_run ? HEAD_LATER : HEAD_NEXT);
    if (context->model->n_mtp_layers > 0)
        out->i_head_added =
            head_segment(context, ends, is_run ? "head" : "head_again",
                         is_run ? HEAD_BESIDE_LATER : HEAD_AGAIN);
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
    if (has_embed && context->model->has_embed_norm)
        lower_encoder_embed(context, ends, out);
    else if (has_embed)
        embed_segments(context, &ends->embed, out);
    if (has_head)
        head_segments(context, ends, out);
}
