/*
 * lower_latent.c: the projections of multi-head latent attention (DeepSeek-V2,
 * arXiv 2405.04434, section 2.1): hidden -> latents of q and of k and v, their
 * norms, latents -> heads.  A part of each key is rotated and shared by all
 * heads.
 *
 * The latents' matrices are whole on every tensor parallel rank and see its
 * rows of the stream; heads are split.
 */
#include "program/lower/segment/lower_layer.h"

/* Widths and places of the parts of `latent` and of the qkv operand. */
typedef struct latent_plan {
    int64_t rows, q_rank, kv_rank, rope; /* rows of the stream */
    int64_t q, kv;       /* widths of the heads: q; k without rope, and v */
    uint64_t kv_at;      /* of the kv latent, bytes */
    uint64_t key_at;     /* of k and v in the qkv operand, bytes */
    uint64_t key_bytes;  /* of what kv_up gives */
    uint64_t rope_bytes; /* of the rotated part in all keys */
    uint64_t kv_stats;
} latent_plan;

static latent_plan plan_of(const lower_context *context)
{
    const lower_shape *s = &context->shape;
    const fr_model *model = context->model;
    latent_plan p = {.rows = s->stream_rows,
                     .q_rank = model->q_lora_rank,
                     .kv_rank = model->kv_lora_rank,
                     .rope = model->qk_rope_head_dim,
                     .q = s->q_heads * s->head_dim,
                     .kv = s->q_heads * (model->qk_nope_head_dim + s->v_dim)};
    p.kv_at = lower_bytes(context, p.rows, p.q_rank);
    p.key_at = lower_bytes(context, s->rows, p.q);
    p.key_bytes = lower_bytes(context, s->rows, p.kv);
    p.rope_bytes = lower_bytes(context, s->rows, s->q_heads * p.rope);
    p.kv_stats = 2 * sizeof(float) * (uint64_t)p.rows;
    return p;
}

static lower_matrix matrix_of(int64_t m, int64_t n, int64_t k, uint64_t w)
{
    return (lower_matrix){.m = m, .n = n, .k = k, .w = w, .b = LOWER_ABSENT};
}

static fr_ref at(fr_ref ref, uint64_t offset_bytes)
{
    ref.offset_bytes += offset_bytes;
    return ref;
}

/* latent -> its norm -> heads. */
typedef struct latent_half {
    fr_ref raw, stats;
    lower_kept kept;
    lower_norm norm;
    lower_matrix up;
} latent_half;

static latent_half half_of(const lower_context *context, const lower_kind *kind,
                           bool is_q)
{
    const lower_shape *s = &context->shape;
    const lower_layer_layout *l = &kind->layout;
    const lower_saved *k = &kind->saved;
    const latent_plan p = plan_of(context);
    int64_t rank = is_q ? p.q_rank : p.kv_rank;
    return (latent_half){
        .raw = at(lower_saved_at(k->latent), is_q ? 0 : p.kv_at),
        .stats = at(lower_saved_at(k->latent_stats), is_q ? 0 : p.kv_stats),
        .kept = is_q ? k->q_latent : k->kv_latent,
        .norm = {p.rows, rank, is_q ? l->q_norm : l->k_norm, LOWER_ABSENT,
                 true},
        .up = matrix_of(s->rows, is_q ? p.q : p.kv, rank,
                        is_q ? l->q_up : l->kv_up)};
}

/* The normed latent as an operand of the product. */
static fr_ref half_norm(lower_context *context, const latent_half *h)
{
    fr_ref normed =
        lower_place_kept(context, h->kept.wide,
                         lower_bytes(context, h->norm.rows, h->norm.cols));
    lower_norm_fwd(context, &h->norm, h->raw, normed, h->stats);
    return lower_operand(context, normed, h->kept, h->norm.rows, h->norm.cols);
}

static void half_forward(lower_context *context, const lower_kind *kind,
                         bool is_q, bool is_recompute, fr_ref y)
{
    const latent_half h = half_of(context, kind, is_q);
    fr_ref x =
        is_recompute ? lower_kept_operand(h.kept) : half_norm(context, &h);
    x = lower_gather_rows(context, x, h.norm.cols,
                          lower_product_dtype(context));
    lower_product_fwd(context, kind, &h.up, x, y);
}

/* From the gradient of the heads to that of the latent before its norm. */
static void half_backward(lower_context *context, const lower_kind *kind,
                          bool is_q, fr_ref dy, fr_ref dlatent)
{
    const lower_shape *s = &context->shape;
    const latent_half h = half_of(context, kind, is_q);
    int64_t rank = h.norm.cols;
    lower_gradient d =
        lower_gradient_operand(context, dy, false, s->rows, h.up.n);
    fr_ref dnormed =
        lower_temp(context, lower_bytes(context, h.norm.rows, rank));
    fr_ref partial = lower_partial_cols(context, dnormed, rank);
    lower_product_dgrad(context, kind, &h.up, d.rows, partial);
    lower_sum_cols(context, partial, dnormed, rank);
    fr_ref x = lower_gather_rows(context, lower_kept_operand(h.kept), rank,
                                 lower_product_dtype(context));
    lower_product_wgrad(context, &h.up, d.columns, x);
    lower_norm_bwd(context, &h.norm, dnormed, h.raw, h.stats, dlatent, false);
}

/* The rotated part of all keys lies behind the latent. */
static lower_matrix down_matrix(const lower_context *context,
                                const lower_kind *kind, bool is_q)
{
    const latent_plan p = plan_of(context);
    lower_matrix down = matrix_of(
        p.rows, is_q ? p.q_rank : p.kv_rank + p.rope, context->shape.hidden,
        is_q ? kind->layout.q_down : kind->layout.kv_down);
    if (!is_q && lower_is_latent_run(context))
        down.n_first = p.kv_rank;
    return down;
}

static fr_instr *join_instr(lower_context *context, fr_op op, fr_ref qkv)
{
    const lower_shape *s = &context->shape;
    const fr_model *model = context->model;
    const latent_plan p = plan_of(context);
    fr_instr *instr = lower_emit(context, op);
    instr->latent = (fr_latent_dims){.rows = s->rows,
                                     .seq = s->seq,
                                     .heads = s->q_heads,
                                     .head_dim = s->head_dim,
                                     .rotated = p.rope,
                                     .up_cols = p.kv / s->q_heads,
                                     .kv_cols = s->head_dim + s->v_dim,
                                     .is_scaled = model->has_rope_scaling};
    instr->scalar = model->rope_theta;
    instr->ref[FR_LATENT_FWD_Q] = qkv;
    instr->ref[op == FR_OP_LATENT_FWD ? FR_LATENT_FWD_KEYS
                                      : FR_LATENT_BWD_DKEYS] =
        at(qkv, p.key_at);
    return instr;
}

/* Keys: each head's own part, and the rotated one that they share. */
static void make_keys(lower_context *context, const lower_kind *kind,
                      bool is_recompute, fr_ref qkv)
{
    const latent_plan p = plan_of(context);
    fr_ref kv = lower_temp(context, p.key_bytes);
    half_forward(context, kind, false, is_recompute, kv);
    if (lower_is_latent_run(context)) {
        const uint64_t at_rope =
            p.kv_at + lower_bytes(context, p.rows, p.kv_rank);
        fr_ref shared = lower_gather_rows(
            context, at(lower_saved_at(kind->saved.latent), at_rope), p.rope,
            fr_plan_storage_dtype(context->plan));
        fr_instr *instr = join_instr(context, FR_OP_LATENT_FWD, qkv);
        instr->ref[FR_LATENT_FWD_UP] = kv;
        instr->ref[FR_LATENT_FWD_SHARED] = shared;
        return;
    }
    lower_copy(context, kv, at(qkv, p.key_at), p.key_bytes);
    lower_copy(context, kv, at(qkv, p.key_at + p.key_bytes), p.rope_bytes);
    lower_rope(context, FR_OP_ROPE_FWD, qkv);
}

void lower_latent_recompute(lower_context *context, const lower_kind *kind,
                            fr_ref qkv)
{
    const size_t first = context->instrs.n;
    half_forward(context, kind, true, true, qkv);
    make_keys(context, kind, true, qkv);
    lower_mark_recompute(context, first);
}

void lower_latent_forward(lower_context *context, const lower_kind *kind,
                          fr_ref x, fr_ref qkv)
{
    const lower_shape *s = &context->shape;
    const lower_saved *k = &kind->saved;
    const latent_plan p = plan_of(context);
    const fr_ref latent = lower_saved_at(k->latent);
    const lower_matrix q_down = down_matrix(context, kind, true);
    const lower_matrix kv_down = down_matrix(context, kind, false);
    uint64_t mark = lower_temp_mark(context);
    fr_ref low = lower_operand(context, x, k->n1, p.rows, s->hidden);
    if (p.q_rank > 0) {
        lower_product_fwd(context, kind, &q_down, low, latent);
        half_forward(context, kind, true, false, qkv);
    } else {
        const lower_matrix q =
            matrix_of(s->rows, p.q, s->hidden, kind->layout.q_up);
        fr_ref whole = lower_gather_rows(context, low, s->hidden,
                                         lower_product_dtype(context));
        lower_product_fwd(context, kind, &q, whole, qkv);
    }
    lower_product_fwd(context, kind, &kv_down, low, at(latent, p.kv_at));
    make_keys(context, kind, false, qkv);
    lower_temp_reset(context, mark);
}

/* Gradients of keys to those of the latents' heads, dkv, and of the rotated
 * part, which all TP ranks' heads share. */
static void split_keys(lower_context *context, fr_ref dqkv, fr_ref dkv,
                       fr_ref drope)
{
    const latent_plan p = plan_of(context);
    if (!lower_is_latent_run(context)) {
        lower_copy(context, at(dqkv, p.key_at), dkv, p.key_bytes);
        return;
    }
    fr_ref partial = lower_partial_cols(context, drope, p.rope);
    fr_instr *instr = join_instr(context, FR_OP_LATENT_BWD, dqkv);
    instr->ref[FR_LATENT_BWD_DUP] = dkv;
    instr->ref[FR_LATENT_BWD_DSHARED] = partial;
    lower_sum_cols(context, partial, drope, p.rope);
}

fr_ref lower_latent_backward(lower_context *context, const lower_kind *kind,
                             fr_ref dqkv, fr_ref x)
{
    const lower_shape *s = &context->shape;
    const latent_plan p = plan_of(context);
    const lower_matrix q_down = down_matrix(context, kind, true);
    const lower_matrix kv_down = down_matrix(context, kind, false);
    fr_ref dx = lower_temp(context, s->stream_bytes);
    uint64_t after_dx = lower_temp_mark(context);
    fr_ref dkv = lower_temp(context, p.key_bytes);
    fr_ref dlatent =
        lower_temp(context, lower_bytes(context, p.rows, p.kv_rank + p.rope));
    const fr_ref drope = at(dlatent, lower_bytes(context, p.rows, p.kv_rank));
    split_keys(context, dqkv, dkv, drope);
    half_backward(context, kind, false, dkv, dlatent);
    if (!lower_is_latent_run(context))
        lower_copy(context, at(dqkv, p.key_at + p.key_bytes), drope,
                   lower_bytes(context, p.rows, p.rope));
    lower_gradient d = lower_gradient_operand(context, dlatent, false, p.rows,
                                              p.kv_rank + p.rope);
    lower_product_dgrad(context, kind, &kv_down, d.rows, dx);
    lower_product_wgrad(context, &kv_down, d.columns, x);
    lower_temp_reset(context, after_dx);
    if (p.q_rank > 0) {
        dlatent = lower_temp(context, lower_bytes(context, p.rows, p.q_rank));
        half_backward(context, kind, true, dqkv, dlatent);
        d = lower_gradient_operand(context, dlatent, false, p.rows, p.q_rank);
        lower_product_dgrad(context, kind, &q_down, d.rows, dx)->flags |=
            FR_INSTR_ACCUMULATE;
        lower_product_wgrad(context, &q_down, d.columns, x);
    } else {
        const lower_matrix q =
            matrix_of(s->rows, p.q, s->hidden, kind->layout.q_up);
        d = lower_gradient_operand(context, dqkv, false, s->rows, p.q);
        fr_ref dq = lower_temp(context, s->stream_bytes);
        fr_ref partial = lower_partial_rows(context, dq);
        lower_product_dgrad(context, kind, &q, d.rows, partial);
        lower_sum_rows(context, partial, dq);
        fr_ref whole = lower_gather_rows(context, x, s->hidden,
                                         lower_product_dtype(context));
        lower_product_wgrad(context, &q, d.columns, whole);
        lower_add(context, dq, dx, p.rows * s->hidden);
    }
    lower_temp_reset(context, after_dx);
    return dx;
}
