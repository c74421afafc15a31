/*
 * lower_attention.c: attention from the layer's normed input to the sum over
 * its output projection.
 *
 * The core is one fused kernel that keeps a log-sum-exp per row (Dao et al.
 * 2022, arXiv 2205.14135), or products and a softmax that write scores and
 * probabilities.  Where selective recompute covers it, its forward runs again
 * in backward and keeps nothing.
 */
#include "plan/lower_block.h"

static int64_t window_of(const lower_context *context)
{
    int64_t window = context->model->sliding_window;
    return window < context->job->seq ? window : 0;
}

static fr_instr *core(lower_context *context, fr_op op)
{
    const lower_shape *s = &context->shape;
    const int64_t dims[5] = {s->batch, s->seq, s->q_heads, s->kv_heads,
                             s->head_dim};
    bool is_apart = !context->is_fused && !lower_is_cpu_attention(context);
    bool is_causal = context->model->kind == FR_MODEL_DECODER && !is_apart;
    fr_instr *instr = lower_emit(context, op);
    for (int i = 0; i < 5; i++)
        instr->dim[i] = dims[i];
    instr->dim[5] = s->v_dim == s->head_dim ? 0 : s->v_dim;
    instr->dim[7] = is_apart ? 0 : window_of(context);
    instr->flags =
        (uint16_t)((context->is_fused ? 0 : FR_INSTR_SAVE_PROBS) |
                   (is_causal ? 0 : FR_INSTR_NONCAUSAL) |
                   (context->job->dropout > 0 ? FR_INSTR_DROPOUT : 0));
    return instr;
}

/* Scores, before they are probabilities; only where kernels write them. */
static fr_ref scores(lower_context *context)
{
    const lower_shape *s = &context->shape;
    if (context->is_fused || lower_is_cpu_attention(context))
        return lower_absent;
    return lower_temp(context,
                      lower_bytes(context, s->rows * s->q_heads, s->seq));
}

static void core_forward(lower_context *context, fr_ref qkv, fr_ref o,
                         fr_ref kept)
{
    fr_ref temp = scores(context);
    fr_instr *instr = core(context, FR_OP_ATTN_FWD);
    instr->ref[0] = qkv;
    instr->ref[1] = o;
    instr->ref[2] = kept;
    instr->ref[3] = temp;
}

void lower_rope(lower_context *context, fr_op op, fr_ref qkv)
{
    const fr_model *model = context->model;
    const lower_shape *s = &context->shape;
    bool is_latent = model->kv_lora_rank > 0;
    /* Of each head so many are turned; latent keys share their part. */
    int64_t turned = is_latent ? model->qk_rope_head_dim
                     : model->rope_frac < 1.0
                         ? (int64_t)(model->rope_frac * (double)s->head_dim)
                         : s->head_dim;
    const int64_t dims[5] = {s->rows, s->seq, s->q_heads,
                             is_latent ? 1 : s->kv_heads, turned};
    if (!model->is_rope)
        return;
    fr_instr *instr = lower_emit(context, op);
    for (int i = 0; i < 5; i++)
        instr->dim[i] = dims[i];
    instr->scalar = model->rope_theta;
    instr->ref[0] = qkv;
}

static lower_matrix qkv_matrix(const lower_context *context,
                               const lower_kind *kind)
{
    const lower_shape *s = &context->shape;
    return (lower_matrix){.m = s->rows,
                          .n = s->qkv,
                          .k = s->hidden,
                          .w = kind->layout.qkv_w,
                          .b = kind->layout.qkv_b};
}

/* The bias is added after the sum over TP. */
static lower_matrix out_matrix(const lower_context *context,
                               const lower_kind *kind, bool is_forward)
{
    const lower_shape *s = &context->shape;
    return (lower_matrix){.m = s->rows,
                          .n = s->hidden,
                          .k = s->attn,
                          .w = kind->layout.out_w,
                          .b = is_forward ? LOWER_ABSENT : kind->layout.out_b};
}

/* ---- norms of the heads (qwen3) --------------------------------------------
 */

/* The norms of q (i 0) and k (i 1): where they begin in the qkv operand, in
 * its normed copy and in the statistics. */
typedef struct head_norm {
    lower_norm norm;
    uint64_t at, stats;
} head_norm;

static head_norm head_norm_of(const lower_context *context,
                              const lower_kind *kind, int i)
{
    const lower_shape *s = &context->shape;
    const lower_layer_layout *l = &kind->layout;
    int64_t before = i == 0 ? 0 : s->rows * s->q_heads;
    int64_t rows = s->rows * (i == 0 ? s->q_heads : s->kv_heads);
    return (head_norm){
        {rows, s->head_dim, i == 0 ? l->q_norm : l->k_norm, LOWER_ABSENT, true},
        lower_bytes(context, before, s->head_dim),
        2 * sizeof(float) * (uint64_t)before};
}

static void norm_heads(lower_context *context, const lower_kind *kind)
{
    const lower_saved *k = &kind->saved;
    for (int i = 0; i < 2 && k->normed != LOWER_ABSENT; i++) {
        head_norm h = head_norm_of(context, kind, i);
        lower_norm_fwd(context, &h.norm, lower_saved_at(k->qkv + h.at),
                       lower_saved_at(k->normed + h.at),
                       lower_saved_at(k->normed_stats + h.stats));
    }
}

static void norm_heads_backward(lower_context *context, const lower_kind *kind,
                                fr_ref dqkv)
{
    const lower_saved *k = &kind->saved;
    for (int i = 0; i < 2 && k->normed != LOWER_ABSENT; i++) {
        head_norm h = head_norm_of(context, kind, i);
        fr_ref part = dqkv;
        part.offset_bytes += h.at;
        lower_norm_bwd(context, &h.norm, part, lower_saved_at(k->qkv + h.at),
                       lower_saved_at(k->normed_stats + h.stats), part);
    }
}

/* ---- forward ----------------------------------------------------------------
 */

static void project(lower_context *context, const lower_kind *kind, fr_ref x)
{
    const lower_shape *s = &context->shape;
    const lower_saved *k = &kind->saved;
    const lower_matrix matrix = qkv_matrix(context, kind);
    uint64_t mark = lower_temp_mark(context);
    fr_ref whole = lower_gather_rows(
        context, lower_operand(context, x, k->n1, s->stream_rows, s->hidden),
        s->hidden, lower_product_dtype(context));
    lower_product_fwd(context, kind, &matrix, whole, lower_saved_at(k->qkv));
    lower_temp_reset(context, mark);
    norm_heads(context, kind);
    lower_rope(context, FR_OP_ROPE_FWD, lower_saved_at(k->qkv));
}

void lower_attention_forward(lower_context *context, const lower_kind *kind,
                             fr_ref x, fr_ref target, bool is_partial)
{
    const lower_shape *s = &context->shape;
    const lower_saved *k = &kind->saved;
    const lower_matrix out = out_matrix(context, kind, true);
    uint64_t mark = lower_temp_mark(context);
    if (context->model->kv_lora_rank > 0)
        lower_latent_forward(context, kind, x);
    else
        project(context, kind, x);
    fr_ref kept = lower_place_kept(context, k->kept, lower_core_bytes(context));
    core_forward(context, lower_saved_at(k->qkv), lower_saved_at(k->o.wide),
                 kept);
    lower_temp_reset(context, mark);
    fr_ref o = lower_operand(context, lower_saved_at(k->o.wide), k->o, s->rows,
                             s->attn);
    fr_ref partial = is_partial ? target : lower_partial_rows(context, target);
    lower_product_fwd(context, kind, &out, o, partial);
    if (!is_partial)
        lower_sum_rows(context, partial, target);
    lower_temp_reset(context, mark);
}

/* ---- backward ---------------------------------------------------------------
 */

static void core_backward(lower_context *context, const lower_kind *kind,
                          fr_ref d_o, fr_ref dqkv)
{
    const lower_shape *s = &context->shape;
    const lower_saved *k = &kind->saved;
    const fr_ref qkv = lower_saved_at(k->qkv);
    fr_ref o = lower_saved_at(k->o.wide);
    fr_ref kept = lower_place_kept(context, k->kept, lower_core_bytes(context));
    if (context->is_core_remade) {
        size_t first = context->instrs.n;
        o = lower_temp(context, lower_bytes(context, s->rows, s->attn));
        core_forward(context, qkv, o, kept);
        lower_mark_remade(context, first);
    }
    fr_ref temp = scores(context);
    fr_instr *instr = core(context, FR_OP_ATTN_BWD);
    instr->ref[0] = d_o;
    instr->ref[1] = qkv;
    instr->ref[2] = o;
    instr->ref[3] = kept;
    instr->ref[4] = dqkv;
    instr->ref[5] = temp;
}

/* From dqkv to the gradient of the stream's rows. */
static fr_ref project_backward(lower_context *context, const lower_kind *kind,
                               fr_ref dqkv, fr_ref x)
{
    const lower_shape *s = &context->shape;
    const lower_matrix matrix = qkv_matrix(context, kind);
    norm_heads_backward(context, kind, dqkv);
    fr_ref dx = lower_temp(context, s->stream_bytes);
    uint64_t after_dx = lower_temp_mark(context);
    lower_gradient d =
        lower_gradient_operand(context, dqkv, false, s->rows, s->qkv);
    uint64_t after_d = lower_temp_mark(context);
    fr_ref partial = lower_partial_rows(context, dx);
    lower_product_dgrad(context, kind, &matrix, d.rows, partial);
    lower_sum_rows(context, partial, dx);
    lower_temp_reset(context, after_d);
    fr_ref whole =
        lower_gather_rows(context, x, s->hidden, lower_product_dtype(context));
    lower_product_wgrad(context, &matrix, d.columns, whole);
    lower_temp_reset(context, after_dx);
    return dx;
}

fr_ref lower_attention_backward(lower_context *context, const lower_kind *kind,
                                fr_ref dy, fr_ref x)
{
    const lower_shape *s = &context->shape;
    const lower_saved *k = &kind->saved;
    const lower_matrix out = out_matrix(context, kind, false);
    fr_ref dqkv = lower_temp(context, lower_bytes(context, s->rows, s->qkv));
    uint64_t after_dqkv = lower_temp_mark(context);
    fr_ref d_o = lower_temp(context, lower_bytes(context, s->rows, s->attn));
    lower_gradient d =
        lower_gradient_operand(context, lower_dropped(context, dy, k->mask1),
                               true, s->rows, s->hidden);
    lower_product_dgrad(context, kind, &out, d.rows, d_o);
    lower_product_wgrad(context, &out, d.columns, lower_kept_operand(k->o));
    core_backward(context, kind, d_o, dqkv);
    lower_rope(context, FR_OP_ROPE_BWD, dqkv);
    lower_temp_reset(context, after_dqkv);
    return context->model->kv_lora_rank > 0
               ? lower_latent_backward(context, kind, dqkv, x)
               : project_backward(context, kind, dqkv, x);
}
