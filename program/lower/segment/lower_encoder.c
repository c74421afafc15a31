/*
 * lower_encoder.c: the two ends of an encoder.
 *
 * Text (BERT, Devlin et al. 2018, arXiv 1810.04805): embeddings of tokens,
 * positions and types, normed; at the end the masked-token head (dense, GELU,
 * norm, the tied matrix) on all rows, and pooler and next-sentence head on the
 * first token.  Images (ViT, Dosovitskiy et al. 2020, arXiv 2010.11929): a
 * matrix over patches, positions; at the end a norm and a classifier on the
 * first token.
 *
 * The embedding keeps nothing: its backward recomputes what it needs.
 */
#include "program/lower/segment/lower_ends.h"

/* Halves of a sequence are in their order, or not. */
enum { ORDER_LABELS = 2 };

static lower_matrix matrix_of(int64_t m, int64_t n, int64_t k, uint64_t w,
                              uint64_t b)
{
    return (lower_matrix){
        .m = m, .n = n, .k = k, .w = w, .b = b, .is_wide = true};
}

/* ---- embedding ---- */

fr_instr *lower_look_up(lower_context *context, fr_op op, int64_t n_local,
                        int64_t n)
{
    const lower_shape *s = &context->shape;
    fr_instr *instr = lower_emit(context, op);
    instr->embed.rows = s->rows;
    instr->embed.cols = s->hidden;
    instr->embed.n_local = n_local;
    instr->embed.seq = context->job->seq;
    instr->embed.vocab = n;
    instr->embed.n_shares = context->plan->cp > 1 ? context->plan->cp : 0;
    instr->axis = FR_AXIS_TP;
    instr->ref[FR_EMBED_FWD_TOKENS] = lower_ref(FR_SPACE_TOKENS, 0);
    return instr;
}

/* The product that embeds patches, a row each; their values come from
 * outside. */
static lower_matrix patch_matrix(const lower_context *context,
                                 const lower_ends *ends)
{
    const fr_model *m = context->model;
    const lower_shape *s = &context->shape;
    return matrix_of(s->rows, s->hidden,
                     m->n_channels * m->patch_size * m->patch_size,
                     ends->embed.patch, ends->embed.patch_b);
}

static bool is_run(const lower_context *context)
{
    return context->target.kernels == LOWER_KERNELS_RUN;
}

static fr_instr *first_rows(lower_context *context, fr_op op, int64_t rows,
                            int64_t cols)
{
    const lower_shape *s = &context->shape;
    fr_instr *instr = lower_emit(context, op);
    instr->first_rows = (fr_first_rows_dims){rows, cols, s->batch, s->seq,
                                             s->seq * context->plan->cp};
    return instr;
}

static void clear(lower_context *context, fr_ref at, uint64_t n_bytes)
{
    fr_instr *instr = lower_emit(context, FR_OP_ZERO);
    instr->copy.n_bytes = (int64_t)n_bytes;
    instr->ref[FR_ZERO_DST] = at;
}

static fr_ref unfold_patches(lower_context *context, const lower_matrix *matrix)
{
    const uint64_t n_bytes = lower_bytes(context, matrix->m, matrix->k);
    fr_ref patches = lower_temp(context, n_bytes);
    if (is_run(context))
        first_rows(context, FR_OP_PATCHES, matrix->m, matrix->k)
            ->ref[FR_PATCHES_OUT] = patches;
    else
        clear(context, patches, n_bytes);
    return patches;
}

/* Positions, and the row that each sequence begins with. */
static void place_patches(lower_context *context, const lower_ends *ends,
                          fr_ref sum)
{
    const lower_shape *s = &context->shape;
    const lower_embed_places *e = &ends->embed;
    if (!is_run(context)) {
        lower_add(context, lower_weight(context, e->wpe), sum,
                  s->seq * s->hidden);
        return;
    }
    fr_instr *instr =
        first_rows(context, FR_OP_PATCH_EMBED_FWD, s->rows, s->hidden);
    instr->ref[FR_PATCH_EMBED_FWD_SUM] = sum;
    instr->ref[FR_PATCH_EMBED_FWD_WPE] = lower_weight(context, e->wpe);
    instr->ref[FR_PATCH_EMBED_FWD_FIRST] =
        lower_weight(context, e->first_token);
}

/* From the gradient of the stream's rows. */
static void patches_backward(lower_context *context, const lower_ends *ends,
                             fr_ref dy)
{
    const lower_shape *s = &context->shape;
    const lower_embed_places *e = &ends->embed;
    const lower_matrix matrix = patch_matrix(context, ends);
    if (is_run(context)) {
        if (!context->plan->is_sequence_parallel) { /* the input stays */
            fr_ref own = lower_temp(context, s->stream_bytes);
            lower_copy(context, dy, own, s->stream_bytes);
            dy = own;
        }
        fr_instr *instr =
            first_rows(context, FR_OP_PATCH_EMBED_BWD, s->rows, s->hidden);
        instr->ref[FR_PATCH_EMBED_BWD_DY] = dy;
        instr->ref[FR_PATCH_EMBED_BWD_DWPE] = lower_grad(context, e->wpe);
        instr->ref[FR_PATCH_EMBED_BWD_DFIRST] =
            lower_grad(context, e->first_token);
    }
    lower_product_wgrad(context, &matrix, dy, unfold_patches(context, &matrix));
}

/* All embeddings of whole rows, or this TP rank's share of their sum. */
static void embed_sum(lower_context *context, const lower_ends *ends,
                      fr_ref sum)
{
    const fr_model *m = context->model;
    const lower_shape *s = &context->shape;
    const lower_embed_places *e = &ends->embed;
    if (m->n_channels > 0) {
        const lower_matrix matrix = patch_matrix(context, ends);
        fr_ref patches = unfold_patches(context, &matrix);
        lower_product_fwd(context, NULL, &matrix, patches, sum);
        place_patches(context, ends, sum);
        return;
    }
    fr_instr *instr =
        lower_look_up(context, FR_OP_EMBED_FWD, s->vocab_local, s->vocab);
    instr->ref[FR_EMBED_FWD_WTE] = lower_weight(context, ends->embed.wte);
    instr->ref[FR_EMBED_FWD_WPE] = lower_weight(context, ends->embed.wpe);
    instr->ref[FR_EMBED_FWD_OUT] = sum;
    if (e->types == LOWER_ABSENT)
        return;
    fr_ref types =
        lower_temp(context, lower_bytes(context, s->rows, s->hidden));
    instr = lower_look_up(context, FR_OP_EMBED_FWD, m->n_token_types,
                          m->n_token_types);
    instr->flags |= FR_INSTR_FIRST_ROW;
    instr->ref[FR_EMBED_FWD_WTE] = lower_weight(context, e->types);
    instr->ref[FR_EMBED_FWD_OUT] = types;
    lower_add(context, types, sum, s->rows * s->hidden);
}

/* This TP rank's part of rows that all have. */
static void own_rows(lower_context *context, fr_ref whole, fr_ref out)
{
    lower_copy(context, whole, out, context->shape.stream_bytes);
    if (context->is_out_of_memory)
        return;
    fr_instr *instr = &context->instrs.items[context->instrs.n - 1];
    instr->axis = FR_AXIS_TP;
    instr->shard_bytes = context->shape.stream_bytes;
    instr->ref[FR_COPY_SRC].is_sharded = true;
}

/* Writes this rank's rows of the sum over TP; images need no sum. */
static void embed_rows(lower_context *context, const lower_ends *ends,
                       fr_ref out)
{
    fr_ref sum = lower_partial_rows(context, out);
    embed_sum(context, ends, sum);
    if (context->model->n_channels == 0)
        lower_sum_rows(context, sum, out);
    else if (context->plan->is_sequence_parallel)
        own_rows(context, sum, out);
}

static lower_norm embed_norm(const lower_context *context,
                             const lower_ends *ends)
{
    return lower_stream_norm(context, ends->embed.norm_w, ends->embed.norm_b);
}

static uint64_t stats_bytes(const lower_context *context)
{
    return 2 * sizeof(float) * (uint64_t)context->shape.stream_rows;
}

void lower_encoder_embed(lower_context *context, const lower_ends *ends,
                         lower_ends_segments *out)
{
    const lower_shape *s = &context->shape;
    const lower_embed_places *e = &ends->embed;
    const fr_ref y_out = lower_ref(FR_SPACE_OUT, 0);
    const lower_norm norm = embed_norm(context, ends);
    bool is_normed = e->norm_w != LOWER_ABSENT;
    out->i_embed_fwd =
        lower_segment_begin(context, FR_LANE_COMPUTE, "embed_fwd");
    lower_segments_mark(context, out->i_embed_fwd, FR_SEGMENT_EMBED);
    fr_ref rows = is_normed ? lower_temp(context, s->stream_bytes) : y_out;
    embed_rows(context, ends, rows);
    if (is_normed)
        lower_norm_fwd(context, &norm, rows, y_out,
                       lower_temp(context, stats_bytes(context)));

    out->i_embed_bwd =
        lower_segment_begin(context, FR_LANE_COMPUTE, "embed_bwd");
    lower_segments_mark(context, out->i_embed_bwd, FR_SEGMENT_EMBED_BACKWARD);
    fr_ref dy = lower_ref(FR_SPACE_IN, 0);
    if (is_normed) {
        const size_t first = context->instrs.n;
        fr_ref stats = lower_temp(context, stats_bytes(context));
        fr_ref y = lower_temp(context, s->stream_bytes);
        rows = lower_temp(context, s->stream_bytes);
        embed_rows(context, ends, rows);
        lower_norm_fwd(context, &norm, rows, y, stats);
        lower_mark_recompute(context, first);
        lower_norm_bwd(context, &norm, dy, rows, stats, y, false);
        dy = y;
    }
    dy = lower_gather_rows(context, dy, s->hidden,
                           fr_plan_storage_dtype(context->plan));
    if (context->model->n_channels > 0) {
        patches_backward(context, ends, dy);
        return;
    }
    fr_instr *instr =
        lower_look_up(context, FR_OP_EMBED_BWD, s->vocab_local, s->vocab);
    instr->ref[FR_EMBED_BWD_DOUT] = dy;
    instr->ref[FR_EMBED_BWD_DWTE] = lower_grad(context, ends->embed.wte);
    instr->ref[FR_EMBED_BWD_DWPE] = lower_grad(context, ends->embed.wpe);
    if (e->types == LOWER_ABSENT)
        return;
    instr =
        lower_look_up(context, FR_OP_EMBED_BWD, context->model->n_token_types,
                      context->model->n_token_types);
    instr->flags |= FR_INSTR_FIRST_ROW;
    instr->ref[FR_EMBED_BWD_DOUT] = dy;
    instr->ref[FR_EMBED_BWD_DWTE] = lower_grad(context, e->types);
}

/* ---- head ---- */

/* ---- what the first token tells of its sequence ---- */

static void activate_pooled(lower_context *context, fr_op op,
                            const fr_ref refs[3])
{
    const lower_shape *s = &context->shape;
    fr_instr *instr = lower_emit(context, op);
    instr->activation = FR_ACTIVATION_TANH;
    instr->vector.n = s->batch * s->hidden;
    for (int i = 0; i < 3; i++)
        instr->ref[i] = refs[i];
}

/* Pooler, from the first rows to their activation, and back in place. */
static void pool(lower_context *context, const lower_head_places *e,
                 fr_ref first, fr_ref raw, fr_ref pooled)
{
    const lower_shape *s = &context->shape;
    const lower_matrix pooler =
        matrix_of(s->batch, s->hidden, s->hidden, e->pooler, e->pooler_b);
    lower_product_fwd(context, NULL, &pooler, first, raw);
    activate_pooled(context, FR_OP_GELU_FWD,
                    (const fr_ref[3]){raw, pooled, lower_absent});
}

static void pool_backward(lower_context *context, const lower_head_places *e,
                          fr_ref first, fr_ref raw, fr_ref pooled)
{
    const lower_shape *s = &context->shape;
    const lower_matrix pooler =
        matrix_of(s->batch, s->hidden, s->hidden, e->pooler, e->pooler_b);
    activate_pooled(context, FR_OP_GELU_BWD,
                    (const fr_ref[3]){pooled, raw, pooled});
    lower_product_wgrad(context, &pooler, pooled, first);
    lower_product_dgrad(context, NULL, &pooler, pooled, first);
}

/* The loss of what the first token tells of its sequence: the order of its
 * halves, through the pooler, or an image's class.  Returns the gradient of the
 * first rows. */
static fr_ref first_token_head(lower_context *context,
                               const lower_head_places *e, fr_ref x)
{
    const fr_model *m = context->model;
    const lower_shape *s = &context->shape;
    const int64_t n = s->batch, c = s->hidden;
    const int64_t n_labels = m->has_pooler ? ORDER_LABELS : m->n_labels;
    const uint64_t row_bytes = lower_bytes(context, n, c);
    const lower_matrix matrix =
        m->has_pooler ? matrix_of(n, n_labels, c, e->pair, e->pair_b)
                      : matrix_of(n, n_labels, c, e->labels, e->labels_b);
    fr_ref first = lower_temp(context, row_bytes), top = first, raw = first;
    if (m->has_pooler) {
        raw = lower_temp(context, row_bytes);
        top = lower_temp(context, row_bytes);
    }
    fr_ref logits = lower_temp(context, lower_bytes(context, n, n_labels));
    fr_ref labels = lower_temp(context, 2 * sizeof(int32_t) * (uint64_t)n);
    fr_ref whole =
        lower_gather_rows(context, x, c, fr_plan_storage_dtype(context->plan));
    fr_instr *instr = first_rows(context, FR_OP_FIRST_ROWS_FWD, s->rows, c);
    instr->ref[FR_FIRST_ROWS_FWD_SRC] = whole;
    instr->ref[FR_FIRST_ROWS_FWD_DST] = first;
    if (m->has_pooler)
        pool(context, e, first, raw, top);
    lower_product_fwd(context, NULL, &matrix, top, logits);
    lower_labels_loss(context, logits, labels, n, n_labels);
    lower_product_wgrad(context, &matrix, logits, top);
    lower_product_dgrad(context, NULL, &matrix, logits, top);
    if (m->has_pooler)
        pool_backward(context, e, first, raw, top);
    return first;
}

/* Products on the first token of each sequence: forward, then backward from
 * its own output (losses of so few elements are left out). */
static void first_token_product(lower_context *context, int64_t n,
                                uint64_t weight, uint64_t bias, fr_ref x)
{
    const lower_shape *s = &context->shape;
    const lower_matrix matrix = matrix_of(s->batch, n, s->hidden, weight, bias);
    if (weight == LOWER_ABSENT)
        return;
    fr_ref y = lower_temp(context, lower_bytes(context, s->batch, n));
    fr_ref dx = lower_temp(context, lower_bytes(context, s->batch, s->hidden));
    lower_product_fwd(context, NULL, &matrix, x, y);
    lower_product_dgrad(context, NULL, &matrix, y, dx);
    lower_product_wgrad(context, &matrix, y, x);
}

/* Goes from x through the masked-token head and back to its gradient, dx. */
static void masked_token_head(lower_context *context,
                              const lower_head_places *e, fr_ref x, fr_ref dx)
{
    const lower_shape *s = &context->shape;
    const int64_t rows = s->stream_rows, c = s->hidden;
    const lower_matrix dense = matrix_of(rows, c, c, e->dense, e->dense_b);
    const lower_matrix vocab =
        matrix_of(s->rows, s->vocab_local, c, e->head, e->vocab_b);
    const lower_norm norm =
        lower_stream_norm(context, e->dense_norm_w, e->dense_norm_b);
    fr_dtype dtype = fr_plan_storage_dtype(context->plan);
    fr_ref h = lower_temp(context, s->stream_bytes);
    fr_ref act = lower_temp(context, s->stream_bytes);
    fr_ref y = lower_temp(context, s->stream_bytes);
    fr_ref stats = lower_temp(context, stats_bytes(context));
    lower_product_fwd(context, NULL, &dense, x, h);
    fr_instr *instr = lower_emit(context, FR_OP_GELU_FWD);
    instr->activation = (uint8_t)context->model->activation;
    instr->vector.n = rows * c;
    instr->ref[FR_GELU_FWD_X] = h;
    instr->ref[FR_GELU_FWD_Y] = act;
    lower_norm_fwd(context, &norm, act, y, stats);
    fr_ref whole = lower_gather_rows(context, y, c, dtype);
    fr_ref logits =
        lower_temp(context, lower_bytes(context, s->rows, s->vocab_local));
    lower_product_fwd(context, NULL, &vocab, whole, logits);
    lower_loss(context, logits, false);
    lower_product_wgrad(context, &vocab, logits, whole);
    /* y is dead: its memory takes its gradient. */
    fr_ref partial = lower_partial_rows(context, y);
    lower_product_dgrad(context, NULL, &vocab, logits, partial);
    lower_sum_rows(context, partial, y);
    lower_norm_bwd(context, &norm, y, act, stats, y, false);
    instr = lower_emit(context, FR_OP_GELU_BWD);
    instr->activation = (uint8_t)context->model->activation;
    instr->vector.n = rows * c;
    instr->ref[FR_GELU_BWD_DY] = y;
    instr->ref[FR_GELU_BWD_X] = h;
    instr->ref[FR_GELU_BWD_DX] = y;
    lower_product_wgrad(context, &dense, y, x);
    lower_product_dgrad(context, NULL, &dense, y, dx);
}

void lower_encoder_head(lower_context *context, const lower_ends *ends,
                        lower_ends_segments *out_segments)
{
    const fr_model *m = context->model;
    const lower_shape *s = &context->shape;
    const lower_head_places *e = &ends->head;
    const lower_norm norm =
        lower_stream_norm(context, ends->head.norm_w, ends->head.norm_b);
    const fr_ref in = lower_ref(FR_SPACE_IN, 0);
    const fr_ref out = lower_ref(FR_SPACE_OUT, 0);
    out_segments->i_head =
        lower_segment_begin(context, FR_LANE_COMPUTE, "head");
    fr_ref x = in, stats = lower_absent, dx = out;
    if (m->has_final_norm) {
        stats = lower_temp(context, stats_bytes(context));
        x = lower_temp(context, s->stream_bytes);
        dx = x;
        lower_norm_fwd(context, &norm, in, x, stats);
    }
    bool has_first = m->has_pooler || m->n_labels > 0;
    fr_ref dfirst = lower_absent;
    if (is_run(context) && has_first) {
        dfirst = first_token_head(context, e, x);
    } else {
        first_token_product(context, s->hidden, e->pooler, e->pooler_b, x);
        first_token_product(context, 2, e->pair, e->pair_b, x);
        first_token_product(context, m->n_labels, e->labels, e->labels_b, x);
    }
    if (m->has_mlm_head)
        masked_token_head(context, e, x, dx);
    else if (is_run(context))
        clear(context, dx, s->stream_bytes);
    else if (!m->has_final_norm)
        lower_copy(context, in, out, s->stream_bytes);
    if (dfirst.space != FR_SPACE_NONE) {
        fr_instr *instr = first_rows(context, FR_OP_FIRST_ROWS_BWD,
                                     s->stream_rows, s->hidden);
        instr->ref[FR_FIRST_ROWS_BWD_DY] = dfirst;
        instr->ref[FR_FIRST_ROWS_BWD_DX] = dx;
    }
    if (m->has_final_norm)
        lower_norm_bwd(context, &norm, dx, in, stats, out, false);
}
