/*
 * lower_layer.c: a transformer layer, forward and backward.
 *
 * Bases of a call: WEIGHT and GRAD at the layer's first parameter, SAVED, TEMP,
 * LOW; forward IN -> OUT; backward INPUT is what came in, and IN is the
 * gradient of the residual stream, which the layer updates in place.
 *
 * Tensor parallelism (Shoeybi et al. 2019, arXiv 1909.08053): qkv and fc1 are
 * split by output, out and fc2 by input, whose partial sums are all-reduced.
 * With sequence parallelism (Korthikanti et al. 2022, arXiv 2205.05198) the
 * residual stream and the norms hold 1/tp of the rows: an all-gather stands
 * before the former and a reduce-scatter after the latter.
 */
#include "program/lower/segment/lower_layer.h"

#include "program/lower/framework/lower_overhead.h"

static lower_norm first_norm(const lower_context *context,
                             const lower_kind *kind)
{
    return lower_stream_norm(context, kind->layout.ln1_w, kind->layout.ln1_b);
}

static lower_norm second_norm(const lower_context *context,
                              const lower_kind *kind)
{
    return lower_stream_norm(context, kind->layout.ln2_w, kind->layout.ln2_b);
}

/* ---- forward ---- */

/* Norms the stream to where the result is kept, or to scratch. */
static fr_ref norm_rows(lower_context *context, const lower_norm *norm,
                        fr_ref x, lower_kept kept, uint64_t stats)
{
    fr_ref y =
        lower_place_kept(context, kept.wide, context->shape.stream_bytes);
    lower_norm_fwd(context, norm, x, y, lower_saved_at(stats));
    return y;
}

/* The norm of the output of branch i: 0 the mixer, 1 the MLP. */
static lower_norm output_norm(const lower_context *context,
                              const lower_kind *kind, int i)
{
    const lower_layer_layout *l = &kind->layout;
    return i == 0 ? lower_stream_norm(context, l->out1_w, l->out1_b)
                  : lower_stream_norm(context, l->out2_w, l->out2_b);
}

/* Returns the place where a branch writes, `out` unless its output is normed
 * to there. */
static fr_ref branch_place(const lower_kind *kind, int i, fr_ref out)
{
    return kind->saved.branch[i] != LOWER_ABSENT
               ? lower_saved_at(kind->saved.branch[i])
               : out;
}

static void norm_branch(lower_context *context, const lower_kind *kind, int i,
                        fr_ref out)
{
    const lower_norm norm = output_norm(context, kind, i);
    if (kind->saved.branch[i] != LOWER_ABSENT)
        lower_norm_fwd(context, &norm, lower_saved_at(kind->saved.branch[i]),
                       out, lower_saved_at(kind->saved.branch_stats[i]));
}

/* From the gradient of the stream to that of the branch's output. */
static fr_ref branch_gradient(lower_context *context, const lower_kind *kind,
                              int i, fr_ref dy)
{
    const lower_norm norm = output_norm(context, kind, i);
    if (kind->saved.branch[i] == LOWER_ABSENT)
        return dy;
    fr_ref dx = lower_temp(context, context->shape.stream_bytes);
    lower_norm_bwd(context, &norm, dy, lower_saved_at(kind->saved.branch[i]),
                   lower_saved_at(kind->saved.branch_stats[i]), dx, false);
    return dx;
}

/* Writes the MLP, or the experts, of x and adds `residual`. */
static void second_half(lower_context *context, const lower_kind *kind,
                        fr_ref x, fr_ref residual, fr_ref out)
{
    fr_ref branch = branch_place(kind, 1, out);
    if (kind->is_moe)
        lower_moe_forward(context, kind, x, branch);
    else
        lower_mlp_finish(context, kind, lower_mlp_begin(context, kind, x),
                         branch, false);
    norm_branch(context, kind, 1, out);
    lower_residual(context, residual, kind->layout.fc2_b, out,
                   kind->saved.mask2, 2);
}

/* The mixer of `in`, added to it in `mid`. */
static void first_half(lower_context *context, const lower_kind *kind,
                       fr_ref in, fr_ref mid)
{
    const lower_saved *k = &kind->saved;
    const lower_norm norm1 = first_norm(context, kind);
    uint64_t mark = lower_temp_mark(context);
    fr_ref x = in;
    if (norm1.w != LOWER_ABSENT)
        x = norm_rows(context, &norm1, in, k->n1, k->stats1);
    lower_mixer_forward(context, kind, x, branch_place(kind, 0, mid));
    norm_branch(context, kind, 0, mid);
    lower_residual(context, in, kind->layout.out_b, mid, k->mask1, 1);
    lower_temp_reset(context, mark);
}

static void forward_pre_norm(lower_context *context, const lower_kind *kind,
                             fr_ref in, fr_ref out, bool is_whole)
{
    const lower_saved *k = &kind->saved;
    const lower_norm norm2 = second_norm(context, kind);
    const bool has_mixer = kind->mixer->letter != '-';
    if (!kind->has_mlp) {
        first_half(context, kind, in, out);
        return;
    }
    fr_ref mid = in;
    if (has_mixer) {
        mid = lower_place_kept(context, k->mid, context->shape.stream_bytes);
        first_half(context, kind, in, mid);
    }
    uint64_t mark = lower_temp_mark(context);
    fr_ref x = mid;
    if (norm2.w != LOWER_ABSENT)
        x = norm_rows(context, &norm2, mid, k->n2, k->stats2);
    if (is_whole)
        second_half(context, kind, x, mid, out);
    else
        lower_mlp_keep(context, kind, x);
    lower_temp_reset(context, mark);
}

/* Attention and MLP side by side (GPT-NeoX): one sum over TP for both. */
static void forward_parallel(lower_context *context, const lower_kind *kind,
                             fr_ref in, fr_ref out)
{
    const lower_shape *s = &context->shape;
    const lower_saved *k = &kind->saved;
    const lower_norm norm1 = first_norm(context, kind);
    const lower_norm norm2 = second_norm(context, kind);
    const int64_t n = s->rows * s->hidden;
    uint64_t mark = lower_temp_mark(context);
    fr_ref sum = lower_partial_rows(context, out);
    fr_ref x = norm_rows(context, &norm1, in, k->n1, k->stats1);
    lower_attention_forward(context, kind, x, sum, true);
    if (norm2.w != LOWER_ABSENT)
        x = norm_rows(context, &norm2, in, k->n2, k->stats2);
    lower_mlp_place at = lower_mlp_begin(context, kind, x);
    fr_ref mlp = lower_temp(context, lower_bytes(context, s->rows, s->hidden));
    lower_mlp_finish(context, kind, at, mlp, true);
    lower_add(context, mlp, sum, n);
    lower_sum_rows(context, sum, out);
    lower_residual_two(context, in, kind, out);
    lower_temp_reset(context, mark);
}

/* Norms after the sums (BERT); n2 is the first one's output. */
static void forward_post_norm(lower_context *context, const lower_kind *kind,
                              fr_ref in, fr_ref out)
{
    const lower_saved *k = &kind->saved;
    const lower_norm norm1 = first_norm(context, kind);
    const lower_norm norm2 = second_norm(context, kind);
    const fr_ref mid = lower_saved_at(k->mid), n2 = lower_saved_at(k->n2.wide);
    const fr_ref last = lower_saved_at(k->last);
    uint64_t mark = lower_temp_mark(context);
    lower_attention_forward(context, kind, in, mid, false);
    lower_residual(context, in, kind->layout.out_b, mid, k->mask1, 1);
    lower_norm_fwd(context, &norm1, mid, n2, lower_saved_at(k->stats1));
    second_half(context, kind, n2, n2, last);
    lower_norm_fwd(context, &norm2, last, out, lower_saved_at(k->stats2));
    lower_temp_reset(context, mark);
}

/*
 * Norms and joins what came in with the next token's embedding (DeepSeek-V3,
 * section 2.2 of arXiv 2412.19437), which stands first in a row, as in the
 * model's weights and in Megatron-LM (core/transformer/
 * multi_token_prediction.py).  What came in is the stream, normed as for the
 * head, and behind it the embedding; what is only priced has the stream alone.
 */
static lower_matrix join_matrix(const lower_context *context,
                                const lower_kind *kind)
{
    const lower_shape *s = &context->shape;
    return (lower_matrix){.m = s->stream_rows,
                          .n = s->hidden,
                          .k = 2 * s->hidden,
                          .w = kind->layout.mtp_join,
                          .b = LOWER_ABSENT};
}

/* Rows of one half behind those of the other to rows with both, or back. */
static void join_halves(lower_context *context, fr_ref src, fr_ref dst,
                        bool is_back)
{
    const lower_shape *s = &context->shape;
    fr_instr *instr = lower_emit(context, FR_OP_PACK_HEADS);
    instr->heads =
        (fr_heads_dims){s->stream_rows, 2 * s->hidden, 2, 2 * s->hidden, 0};
    instr->flags = is_back ? 0 : FR_INSTR_TRANSPOSE;
    instr->ref[FR_PACK_HEADS_SRC] = src;
    instr->ref[FR_PACK_HEADS_DST] = dst;
}

/* Returns the source of half i of the joined input: 0 the stream, 1 the
 * embedding. */
static fr_ref joined_part(const lower_context *context, fr_ref in, uint64_t i)
{
    return lower_moved(
        in, lower_is_later_run(context) ? i * context->shape.stream_bytes : 0);
}

static fr_ref join_stats(const lower_context *context, const lower_kind *kind,
                         uint64_t i)
{
    return lower_saved_at(kind->saved.join_stats +
                          i * 2 * sizeof(float) *
                              (uint64_t)context->shape.stream_rows);
}

static void join_forward(lower_context *context, const lower_kind *kind,
                         fr_ref in)
{
    const lower_shape *s = &context->shape;
    const lower_saved *k = &kind->saved;
    const lower_matrix matrix = join_matrix(context, kind);
    bool is_run = lower_is_later_run(context);
    uint64_t mark = lower_temp_mark(context);
    fr_ref both =
        lower_place_kept(context, k->joined.wide, 2 * s->stream_bytes);
    fr_ref halves = is_run ? lower_temp(context, 2 * s->stream_bytes) : both;
    for (uint64_t i = 0; i < 2; i++) {
        lower_norm norm =
            lower_stream_norm(context, kind->layout.mtp_norm[i], LOWER_ABSENT);
        lower_norm_fwd(context, &norm, joined_part(context, in, i),
                       lower_moved(halves, (1 - i) * s->stream_bytes),
                       join_stats(context, kind, i));
    }
    if (is_run)
        join_halves(context, halves, both, false);
    fr_ref x =
        lower_operand(context, both, k->joined, s->stream_rows, 2 * s->hidden);
    lower_product_fwd(context, kind, &matrix, x, lower_saved_at(k->join_out));
    lower_temp_reset(context, mark);
}

/* The gradient becomes that of what came in. */
static void join_backward(lower_context *context, const lower_kind *kind)
{
    const lower_shape *s = &context->shape;
    const lower_saved *k = &kind->saved;
    bool is_run = lower_is_later_run(context);
    const lower_matrix matrix = join_matrix(context, kind);
    const fr_ref grad = lower_ref(FR_SPACE_IN, 0);
    uint64_t mark = lower_temp_mark(context);
    fr_ref dboth = lower_temp(context, 2 * s->stream_bytes);
    lower_gradient d =
        lower_gradient_operand(context, grad, false, s->stream_rows, s->hidden);
    lower_product_dgrad(context, kind, &matrix, d.rows, dboth);
    lower_product_wgrad(context, &matrix, d.columns,
                        lower_kept_operand(k->joined));
    fr_ref halves = dboth;
    if (is_run) {
        halves = lower_temp(context, 2 * s->stream_bytes);
        join_halves(context, dboth, halves, true);
    }
    for (uint64_t i = 0; i < 2; i++) {
        lower_norm norm =
            lower_stream_norm(context, kind->layout.mtp_norm[i], LOWER_ABSENT);
        const fr_ref half = lower_moved(halves, (1 - i) * s->stream_bytes);
        lower_norm_bwd(context, &norm, half,
                       joined_part(context, lower_ref(FR_SPACE_INPUT, 0), i),
                       join_stats(context, kind, i),
                       i == 0 || is_run ? joined_part(context, grad, i) : half,
                       false);
    }
    lower_temp_reset(context, mark);
}

/* The norm that ends a later token's layer, which has a head behind it. */
static lower_norm later_norm(const lower_context *context,
                             const lower_kind *kind)
{
    return lower_stream_norm(context, kind->layout.mtp_last[0],
                             kind->layout.mtp_last[1]);
}

/* Returns the place of the layer's last sum, which the layer of a later token
 * norms once more. */
static fr_ref last_sum(const lower_kind *kind, fr_ref out)
{
    return kind->saved.later_out != LOWER_ABSENT
               ? lower_saved_at(kind->saved.later_out)
               : out;
}

static void norm_last(lower_context *context, const lower_kind *kind,
                      fr_ref out)
{
    const lower_norm norm = later_norm(context, kind);
    if (kind->saved.later_out != LOWER_ABSENT)
        lower_norm_fwd(context, &norm, last_sum(kind, out), out,
                       lower_saved_at(kind->saved.later_stats));
}

static void norm_last_backward(lower_context *context, const lower_kind *kind)
{
    const lower_norm norm = later_norm(context, kind);
    const fr_ref grad = lower_ref(FR_SPACE_IN, 0);
    if (kind->saved.later_out != LOWER_ABSENT)
        lower_norm_bwd(context, &norm, grad, last_sum(kind, grad),
                       lower_saved_at(kind->saved.later_stats), grad, false);
}

void lower_layer_forward(lower_context *context, const lower_kind *kind,
                         fr_ref out, bool is_whole)
{
    fr_ref in = lower_ref(FR_SPACE_IN, 0), sum = last_sum(kind, out);
    if (kind->is_mtp) {
        join_forward(context, kind, in);
        in = lower_saved_at(kind->saved.join_out);
    }
    if (lower_is_post_norm(context))
        forward_post_norm(context, kind, in, sum);
    else if (context->model->is_parallel_block)
        forward_parallel(context, kind, in, sum);
    else
        forward_pre_norm(context, kind, in, sum, is_whole);
    norm_last(context, kind, out);
}

/* ---- backward ---- */

static fr_ref recompute_norm(lower_context *context, const lower_norm *norm,
                             fr_ref x)
{
    const lower_shape *s = &context->shape;
    const size_t first = context->instrs.n;
    fr_ref y = lower_temp(context, s->stream_bytes);
    fr_ref stats =
        lower_temp(context, 2 * sizeof(float) * (uint64_t)s->stream_rows);
    lower_norm_fwd(context, norm, x, y, stats);
    lower_mark_recompute(context, first);
    return y;
}

/* A norm's output as an operand of products: kept, or recomputed. */
static fr_ref norm_for_backward(lower_context *context, const lower_norm *norm,
                                fr_ref x, lower_kept kept)
{
    const lower_shape *s = &context->shape;
    fr_ref y = lower_kept_operand(kept);
    if (y.space != FR_SPACE_NONE)
        return y;
    y = recompute_norm(context, norm, x);
    const size_t first = context->instrs.n;
    y = lower_operand(context, y, kept, s->stream_rows, s->hidden);
    lower_mark_recompute(context, first);
    return y;
}

/* The same where there may be no norm: then the stream itself is read. */
static fr_ref input_for_backward(lower_context *context, const lower_norm *norm,
                                 fr_ref x, lower_kept kept)
{
    if (norm->w != LOWER_ABSENT)
        return norm_for_backward(context, norm, x, kept);
    return kept.low != LOWER_ABSENT ? lower_kept_operand(kept) : x;
}

/* Adds a norm's backward, if there is one, onto the gradient of the stream. */
static void add_norm(lower_context *context, const lower_norm *norm, fr_ref dy,
                     fr_ref x, uint64_t stats)
{
    if (norm->w == LOWER_ABSENT) {
        lower_add(context, dy, lower_ref(FR_SPACE_IN, 0),
                  context->shape.stream_rows * context->shape.hidden);
        return;
    }
    lower_norm_bwd(context, norm, dy, x, lower_saved_at(stats),
                   lower_ref(FR_SPACE_IN, 0), true);
}

/* The router reads the wide copy of the norm; experts cast their own rows. */
static fr_ref second_backward(lower_context *context, const lower_kind *kind,
                              const lower_norm *norm, fr_ref mid)
{
    const fr_ref dy =
        branch_gradient(context, kind, 1, lower_ref(FR_SPACE_IN, 0));
    const lower_kept kept = kind->saved.n2;
    bool is_normed = norm->w != LOWER_ABSENT;
    if (!kind->is_moe)
        return lower_mlp_backward(context, kind, dy,
                                  input_for_backward(context, norm, mid, kept));
    fr_ref x = is_normed ? lower_saved_at(kept.wide) : mid;
    if (x.space == FR_SPACE_NONE)
        x = recompute_norm(context, norm, mid);
    return lower_moe_backward(context, kind, dy, x);
}

/* The sum after attention: kept, or recomputed. */
static fr_ref mid_for_backward(lower_context *context, const lower_kind *kind,
                               fr_ref input)
{
    const lower_saved *k = &kind->saved;
    const size_t first = context->instrs.n;
    if (k->mid != LOWER_ABSENT)
        return lower_saved_at(k->mid);
    fr_ref mid = lower_temp(context, context->shape.stream_bytes);
    lower_attention_recompute_output(context, kind, mid);
    lower_residual(context, input, kind->layout.out_b, mid, k->mask1, 1);
    lower_mark_recompute(context, first);
    return mid;
}

static void backward_pre_norm(lower_context *context, const lower_kind *kind,
                              fr_ref input)
{
    const lower_saved *k = &kind->saved;
    const lower_norm norm1 = first_norm(context, kind);
    const lower_norm norm2 = second_norm(context, kind);
    const bool has_mixer = kind->mixer->letter != '-';
    if (kind->has_mlp) {
        const fr_ref mid =
            has_mixer ? mid_for_backward(context, kind, input) : input;
        uint64_t mark = lower_temp_mark(context);
        fr_ref dx = second_backward(context, kind, &norm2, mid);
        add_norm(context, &norm2, dx, mid, k->stats2);
        lower_temp_reset(context, mark);
    }
    if (!has_mixer)
        return;
    uint64_t mark = lower_temp_mark(context);
    fr_ref x = input_for_backward(context, &norm1, input, k->n1);
    if (kind->mixer->is_attention)
        lower_attention_recompute_keys(context, kind, x);
    fr_ref dx = lower_mixer_backward(
        context, kind,
        branch_gradient(context, kind, 0, lower_ref(FR_SPACE_IN, 0)), x);
    add_norm(context, &norm1, dx, input, k->stats1);
    lower_temp_reset(context, mark);
}

static void backward_parallel(lower_context *context, const lower_kind *kind,
                              fr_ref input)
{
    const lower_saved *k = &kind->saved;
    const lower_norm norm1 = first_norm(context, kind);
    const lower_norm norm2 = second_norm(context, kind);
    const fr_ref dy = lower_ref(FR_SPACE_IN, 0);
    uint64_t mark = lower_temp_mark(context);
    bool has_one = norm2.w == LOWER_ABSENT;
    fr_ref x = norm_for_backward(context, has_one ? &norm1 : &norm2, input,
                                 has_one ? k->n1 : k->n2);
    fr_ref dx2 = lower_mlp_backward(context, kind, dy, x);
    if (!has_one)
        x = norm_for_backward(context, &norm1, input, k->n1);
    fr_ref dx1 = lower_attention_backward(context, kind, dy, x);
    if (has_one) /* one norm has both gradients */
        lower_add(context, dx2, dx1,
                  context->shape.stream_rows * context->shape.hidden);
    else
        add_norm(context, &norm2, dx2, input, k->stats2);
    add_norm(context, &norm1, dx1, input, k->stats1);
    lower_temp_reset(context, mark);
}

static void backward_post_norm(lower_context *context, const lower_kind *kind,
                               fr_ref input)
{
    const lower_saved *k = &kind->saved;
    const lower_norm norm1 = first_norm(context, kind);
    const lower_norm norm2 = second_norm(context, kind);
    const fr_ref grad = lower_ref(FR_SPACE_IN, 0);
    const int64_t n = context->shape.stream_rows * context->shape.hidden;
    uint64_t mark = lower_temp_mark(context);
    lower_norm_bwd(context, &norm2, grad, lower_saved_at(k->last),
                   lower_saved_at(k->stats2), grad, false);
    fr_ref dx = second_backward(context, kind, &norm1, lower_saved_at(k->mid));
    lower_add(context, dx, grad, n);
    lower_temp_reset(context, mark);
    lower_norm_bwd(context, &norm1, grad, lower_saved_at(k->mid),
                   lower_saved_at(k->stats1), grad, false);
    dx = lower_attention_backward(
        context, kind, grad,
        context->target.is_low ? lower_kept_operand(k->n1) : input);
    lower_add(context, dx, grad, n);
    lower_temp_reset(context, mark);
}

static fr_ref layer_input(const lower_kind *kind, fr_space space)
{
    return kind->is_mtp ? lower_saved_at(kind->saved.join_out)
                        : lower_ref(space, 0);
}

void lower_layer_backward(lower_context *context, const lower_kind *kind)
{
    fr_ref input = layer_input(kind, FR_SPACE_INPUT);
    norm_last_backward(context, kind);
    if (lower_is_post_norm(context))
        backward_post_norm(context, kind, input);
    else if (context->model->is_parallel_block)
        backward_parallel(context, kind, input);
    else
        backward_pre_norm(context, kind, input);
    if (kind->is_mtp)
        join_backward(context, kind);
    lower_overhead_gradients(context, kind->layout.n);
}

/* ---- in parts, for a ring ---- */

void lower_layer_before(lower_context *context, const lower_kind *kind)
{
    const lower_saved *k = &kind->saved;
    const lower_norm norm1 = first_norm(context, kind);
    if (kind->is_mtp)
        join_forward(context, kind, lower_ref(FR_SPACE_IN, 0));
    fr_ref in = layer_input(kind, FR_SPACE_IN);
    fr_ref x = norm_rows(context, &norm1, in, k->n1, k->stats1);
    lower_attention_project(context, kind, x, lower_saved_at(k->qkv));
}

void lower_layer_after(lower_context *context, const lower_kind *kind,
                       fr_ref out)
{
    const lower_saved *k = &kind->saved;
    const lower_norm norm2 = second_norm(context, kind);
    const fr_ref mid = lower_saved_at(k->mid);
    lower_attention_finish(context, kind, mid, false);
    lower_residual(context, layer_input(kind, FR_SPACE_IN), kind->layout.out_b,
                   mid, k->mask1, 1);
    fr_ref x = norm_rows(context, &norm2, mid, k->n2, k->stats2);
    second_half(context, kind, x, mid, last_sum(kind, out));
    norm_last(context, kind, out);
}

void lower_layer_backward_before(lower_context *context, const lower_kind *kind,
                                 fr_ref d_o)
{
    const lower_saved *k = &kind->saved;
    const lower_norm norm2 = second_norm(context, kind);
    const fr_ref mid = lower_saved_at(k->mid);
    uint64_t mark = lower_temp_mark(context);
    norm_last_backward(context, kind);
    fr_ref dx = second_backward(context, kind, &norm2, mid);
    add_norm(context, &norm2, dx, mid, k->stats2);
    lower_temp_reset(context, mark);
    lower_attention_open(context, kind, lower_ref(FR_SPACE_IN, 0), d_o);
}

void lower_layer_backward_after(lower_context *context, const lower_kind *kind,
                                fr_ref dqkv)
{
    const lower_saved *k = &kind->saved;
    const lower_norm norm1 = first_norm(context, kind);
    fr_ref input = layer_input(kind, FR_SPACE_INPUT);
    lower_rope(context, FR_OP_ROPE_BWD, dqkv);
    fr_ref x = norm_for_backward(context, &norm1, input, k->n1);
    fr_ref dx = lower_attention_close(context, kind, dqkv, x);
    add_norm(context, &norm1, dx, input, k->stats1);
    if (kind->is_mtp)
        join_backward(context, kind);
    lower_overhead_gradients(context, kind->layout.n);
}
