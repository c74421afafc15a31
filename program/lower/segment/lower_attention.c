/*
 * lower_attention.c: attention from the layer's normed input to the sum over
 * its output projection.
 *
 * The core is one fused kernel that keeps a log-sum-exp per row (Dao et al.
 * 2022, arXiv 2205.14135), or products and a softmax that write scores and
 * probabilities.  Where selective recompute covers it, its forward runs again
 * in backward and keeps nothing.
 */
#include "program/lower/framework/lower_overhead.h"
#include "program/lower/segment/lower_layer.h"
#include "spec/model/model_traits.h"

static int64_t window_of(const lower_context *context)
{
    return context->kind != NULL ? context->kind->window : 0;
}

/* The keys that a call of the core sees.  In a ring a value above 0 stands for
 * the keys of the rank that is so many places before, of which half matter. */
enum {
    CORE_WHOLE = -1, /* all of the sequence that this rank has to do with */
    CORE_OWN = 0     /* ring: own queries, own keys */
};

static bool is_cp(const lower_context *context, fr_cp_kind kind)
{
    return context->plan->cp > 1 && context->plan->cp_kind == kind;
}

/*
 * Causal attention over cp ranks is balanced by giving each two pieces of the
 * sequence, one from the front and one from the back (Megatron-LM, Llama 3:
 * arXiv 2407.21783, section 3.3.2).  In a ring every rank then has half of the
 * pairs with each other rank's keys: all queries with half of the keys, or
 * half of the queries with all.
 */
static void set_core_dims(const lower_context *context, int32_t place,
                          bool is_apart, fr_instr *instr)
{
    const lower_shape *s = &context->shape;
    const int64_t cp = context->plan->cp;
    bool is_swapped = is_cp(context, FR_CP_ALL_TO_ALL);
    bool is_causal = context->model->kind == FR_MODEL_DECODER && !is_apart;
    instr->attention.batch = s->batch;
    instr->attention.seq = is_swapped ? s->seq * cp : s->seq;
    instr->attention.q_heads = is_swapped ? s->q_heads / cp : s->q_heads;
    instr->attention.kv_heads = is_swapped ? s->kv_heads / cp : s->kv_heads;
    instr->attention.head_dim = s->head_dim;
    instr->attention.v_dim = s->v_dim == s->head_dim ? 0 : s->v_dim;
    if (is_cp(context, FR_CP_ALL_GATHER))
        instr->attention.key_rows = s->seq * cp;
    if (place > 0 && is_causal)
        instr->attention.key_rows = s->seq / 2;
    instr->attention.window = is_apart ? 0 : window_of(context);
    if (cp > 1 && place != CORE_OWN)
        instr->axis = FR_AXIS_CP;
    if (place > 0)
        instr->peer = (int16_t)place;
    if (lower_is_keys_apart(context))
        instr->flags |= FR_INSTR_KEYS_APART;
    if (!is_causal || place > 0)
        instr->flags |= FR_INSTR_NONCAUSAL;
}

static fr_instr *core(lower_context *context, fr_op op, int32_t place)
{
    const lower_attention kind = context->target.attention;
    bool is_fused = kind == LOWER_ATTENTION_FUSED;
    bool is_apart = kind == LOWER_ATTENTION_APART;
    fr_instr *instr = lower_emit(context, op);
    instr->flags =
        (uint16_t)((is_fused ? 0 : FR_INSTR_SAVE_PROBS) |
                   (context->job->dropout > 0 ? FR_INSTR_DROPOUT : 0));
    if (is_fused)
        instr->flash_kind = (uint8_t)context->plan->execution.flash_kind;
    set_core_dims(context, place, is_apart, instr);
    return instr;
}

/* Scratch for the scores, where kernels write them before the
 * probabilities. */
static fr_ref scores(lower_context *context)
{
    const lower_shape *s = &context->shape;
    if (context->target.attention != LOWER_ATTENTION_APART)
        return lower_absent;
    return lower_temp(context, lower_bytes(context, s->rows * s->q_heads,
                                           s->seq * context->plan->cp));
}

/* Bytes of q, and of k and v, in the qkv operand. */
static uint64_t query_bytes(const lower_context *context)
{
    const lower_shape *s = &context->shape;
    return lower_bytes(context, s->rows, s->q_heads * s->head_dim);
}

uint64_t lower_key_bytes(const lower_context *context)
{
    const lower_shape *s = &context->shape;
    return lower_bytes(context, s->rows, s->qkv) - query_bytes(context);
}

/* A collective over the context parallel ranks. */
static void exchange(lower_context *context, fr_op op, uint64_t n_bytes,
                     fr_ref src, fr_ref dst)
{
    lower_collective(context, op, FR_AXIS_CP,
                     fr_plan_storage_dtype(context->plan),
                     n_bytes / lower_bytes(context, 1, 1), src, dst);
}

/* Gathers the keys of all ranks behind the own queries, if the plan says
 * so. */
static fr_ref gather_keys(lower_context *context, fr_ref qkv)
{
    const uint64_t q = query_bytes(context), kv = lower_key_bytes(context);
    const uint64_t all = kv * (uint64_t)context->plan->cp;
    if (!is_cp(context, FR_CP_ALL_GATHER))
        return qkv;
    fr_ref whole = lower_temp(context, q + all);
    lower_copy(context, qkv, whole, q);
    exchange(context, FR_OP_ALL_GATHER, all, lower_moved(qkv, q),
             lower_moved(whole, q));
    return whole;
}

/* A gate, which lies behind q, k and v, on attention's output: forward reads
 * both and writes one, backward reads three and writes two. */
static void gate_output(lower_context *context, fr_ref o, bool is_backward)
{
    const lower_shape *s = &context->shape;
    const uint64_t n_bytes = lower_bytes(context, s->rows, s->attn);
    if (!fr_model_has(context->model, FR_TRAIT_OUTPUT_GATE))
        return;
    fr_instr *instr = lower_emit(context, FR_OP_ELEMENTWISE);
    instr->elementwise.moved_bytes = (int64_t)n_bytes * (is_backward ? 5 : 3);
    instr->elementwise.n_kernels = 1;
    instr->elementwise.x_bytes = (int64_t)n_bytes;
    instr->ref[FR_ELEMENTWISE_X] = o;
}

static void core_call(lower_context *context, int32_t place, fr_ref qkv,
                      fr_ref o, fr_ref kept)
{
    fr_ref temp = scores(context);
    if (place <= 0)
        lower_overhead_core(context, false);
    fr_instr *instr = core(context, FR_OP_ATTN_FWD, place);
    instr->ref[FR_ATTN_FWD_QKV] = qkv;
    instr->ref[FR_ATTN_FWD_O] = o;
    instr->ref[FR_ATTN_FWD_KEPT] = kept;
    instr->ref[FR_ATTN_FWD_TEMP] = temp;
    if (place > 0)
        instr->ref[FR_ATTN_FWD_KEYS] = lower_ref(FR_SPACE_PIECE_IN, 0);
}

static uint64_t output_bytes(const lower_context *context)
{
    const lower_shape *s = &context->shape;
    return lower_bytes(context, s->rows, s->attn);
}

/* Heads of own rows to own heads of all rows, or back; `parts`: of queries,
 * keys and values, or of attention's output. */
static void swap_heads(lower_context *context, const fr_heads_dims *parts,
                       bool is_back, fr_ref src, fr_ref dst)
{
    const uint64_t n_bytes = lower_bytes(context, parts->rows, parts->cols);
    uint64_t mark = lower_temp_mark(context);
    fr_ref packed = lower_temp(context, n_bytes);
    if (is_back)
        exchange(context, FR_OP_ALL_TO_ALL, n_bytes, src, packed);
    fr_instr *instr = lower_emit(context, FR_OP_PACK_HEADS);
    instr->heads = *parts;
    instr->flags = is_back ? FR_INSTR_TRANSPOSE : 0;
    instr->ref[FR_PACK_HEADS_SRC] = is_back ? packed : src;
    instr->ref[FR_PACK_HEADS_DST] = is_back ? dst : packed;
    if (!is_back)
        exchange(context, FR_OP_ALL_TO_ALL, n_bytes, packed, dst);
    lower_temp_reset(context, mark);
}

/* Queries, keys and values; keys and values that lie apart go by themselves. */
static void swap_qkv(lower_context *context, bool is_back, fr_ref src,
                     fr_ref dst)
{
    const lower_shape *s = &context->shape;
    const int64_t cp = context->plan->cp;
    const int64_t q = s->q_heads * s->head_dim, k = s->kv_heads * s->head_dim;
    const fr_heads_dims all = {s->rows, s->qkv, cp, q, k};
    const fr_heads_dims queries = {s->rows, q, cp, q, 0};
    const fr_heads_dims keys = {s->rows, s->qkv - q, cp, k, 0};
    if (!lower_is_keys_apart(context)) {
        swap_heads(context, &all, is_back, src, dst);
        return;
    }
    const uint64_t n_bytes = query_bytes(context);
    swap_heads(context, &queries, is_back, src, dst);
    swap_heads(context, &keys, is_back, lower_moved(src, n_bytes),
               lower_moved(dst, n_bytes));
}

static fr_heads_dims output_parts(const lower_context *context)
{
    const lower_shape *s = &context->shape;
    return (fr_heads_dims){s->rows, s->attn, context->plan->cp, s->attn, 0};
}

/* `by_head`: where the output is kept before heads go back to their ranks. */
static void core_forward(lower_context *context, fr_ref qkv, fr_ref o,
                         fr_ref by_head, fr_ref kept)
{
    if (is_cp(context, FR_CP_ALL_TO_ALL)) {
        const fr_heads_dims out = output_parts(context);
        core_call(context, CORE_WHOLE, qkv, by_head, kept);
        swap_heads(context, &out, true, by_head, o);
        return;
    }
    core_call(context, CORE_WHOLE, gather_keys(context, qkv), o, kept);
}

static lower_matrix qkv_matrix(const lower_context *context,
                               const lower_kind *kind)
{
    const lower_shape *s = &context->shape;
    return (lower_matrix){
        .m = s->rows,
        .n = s->qkv,
        .k = s->hidden,
        .w = kind->layout.qkv_w,
        .b = kind->layout.qkv_b,
        .n_first = lower_is_keys_apart(context) ? s->q_heads * s->head_dim : 0};
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

/* ---- norms of the heads (qwen3) ---- */

/* The norms of q (i 0) and k (i 1), in place on qkv or its gradient. */
static fr_instr *norm_heads_of(lower_context *context, const lower_kind *kind,
                               fr_op op, fr_ref qkv, int i)
{
    const lower_shape *s = &context->shape;
    const lower_saved *k = &kind->saved;
    const lower_layer_layout *l = &kind->layout;
    const int64_t first = i == 0 ? 0 : s->q_heads;
    const int64_t n = i == 0 ? s->q_heads : s->kv_heads;
    fr_head_norm_dims dims = {s->rows, n, s->head_dim,
                              s->q_heads + 2 * s->kv_heads, first};
    if (lower_is_keys_apart(context)) {
        dims.row_heads = i == 0 ? s->q_heads : 2 * s->kv_heads;
        dims.first_head = 0;
        qkv.offset_bytes += i == 0 ? 0 : query_bytes(context);
    }
    fr_instr *instr = lower_emit(context, op);
    instr->head_norm = dims;
    instr->scalar = context->model->norm_eps;
    instr->flags = FR_INSTR_RMS;
    instr->ref[FR_HEAD_NORM_FWD_QKV] = qkv;
    instr->ref[FR_HEAD_NORM_FWD_W] =
        lower_weight(context, i == 0 ? l->q_norm : l->k_norm);
    instr->ref[FR_HEAD_NORM_FWD_RAW] = lower_saved_at(
        k->raw_heads + lower_bytes(context, s->rows * first, s->head_dim));
    instr->ref[FR_HEAD_NORM_FWD_STATS] = lower_saved_at(
        k->raw_stats + 2 * sizeof(float) * (uint64_t)(s->rows * first));
    return instr;
}

static void norm_heads(lower_context *context, const lower_kind *kind,
                       fr_ref qkv)
{
    const lower_shape *s = &context->shape;
    const lower_saved *k = &kind->saved;
    for (int i = 0; i < 2 && k->raw_heads != LOWER_ABSENT; i++) {
        (void)norm_heads_of(context, kind, FR_OP_HEAD_NORM_FWD, qkv, i);
        lower_overhead_norm_fwd(
            context,
            s->rows * (i == 0 ? s->q_heads : s->kv_heads) * s->head_dim, true);
    }
}

static void norm_heads_backward(lower_context *context, const lower_kind *kind,
                                fr_ref dqkv)
{
    const lower_shape *s = &context->shape;
    const lower_layer_layout *l = &kind->layout;
    for (int i = 0; i < 2 && kind->saved.raw_heads != LOWER_ABSENT; i++) {
        norm_heads_of(context, kind, FR_OP_HEAD_NORM_BWD, dqkv, i)
            ->ref[FR_HEAD_NORM_BWD_DW] =
            lower_grad(context, i == 0 ? l->q_norm : l->k_norm);
        lower_overhead_norm_bwd(context,
                                s->rows * (i == 0 ? s->q_heads : s->kv_heads) *
                                    s->head_dim,
                                true, false);
    }
}

/* ---- forward ---- */

static void project(lower_context *context, const lower_kind *kind, fr_ref x,
                    fr_ref qkv)
{
    const lower_matrix matrix = qkv_matrix(context, kind);
    lower_column_forward(context, kind, &matrix, x, kind->saved.n1, qkv);
    norm_heads(context, kind, qkv);
    lower_rope(context, FR_OP_ROPE_FWD, qkv);
}

void lower_attention_project(lower_context *context, const lower_kind *kind,
                             fr_ref x, fr_ref qkv)
{
    if (context->model->kv_lora_rank > 0)
        lower_latent_forward(context, kind, x, qkv);
    else
        project(context, kind, x, qkv);
}

/* Returns the place of the heads: the one where forward keeps them, or
 * scratch. */
static fr_ref place_heads(lower_context *context, const lower_kind *kind)
{
    const lower_shape *s = &context->shape;
    return lower_place_kept(context, kind->saved.qkv,
                            lower_bytes(context, s->rows, s->qkv));
}

void lower_attention_finish(lower_context *context, const lower_kind *kind,
                            fr_ref target, bool is_partial)
{
    const lower_shape *s = &context->shape;
    const lower_saved *k = &kind->saved;
    const lower_matrix out = out_matrix(context, kind, true);
    uint64_t mark = lower_temp_mark(context);
    fr_ref o = lower_operand(context, lower_saved_at(k->o.wide), k->o, s->rows,
                             s->attn);
    if (is_partial)
        lower_product_fwd(context, kind, &out, o, target);
    else
        lower_row_forward(context, kind, &out, o, target);
    lower_temp_reset(context, mark);
}

/* The heads that this rank's core works on. */
static void project_for_core(lower_context *context, const lower_kind *kind,
                             fr_ref x, fr_ref qkv)
{
    const lower_shape *s = &context->shape;
    uint64_t mark = lower_temp_mark(context);
    if (!is_cp(context, FR_CP_ALL_TO_ALL)) {
        lower_attention_project(context, kind, x, qkv);
        return;
    }
    fr_ref rows = lower_temp(context, lower_bytes(context, s->rows, s->qkv));
    lower_attention_project(context, kind, x, rows);
    swap_qkv(context, false, rows, qkv);
    lower_temp_reset(context, mark);
}

void lower_attention_forward(lower_context *context, const lower_kind *kind,
                             fr_ref x, fr_ref target, bool is_partial)
{
    const lower_saved *k = &kind->saved;
    uint64_t mark = lower_temp_mark(context);
    fr_ref qkv = place_heads(context, kind);
    project_for_core(context, kind, x, qkv);
    fr_ref kept = lower_place_kept(context, k->kept, lower_core_bytes(context));
    core_forward(context, qkv, lower_saved_at(k->o.wide),
                 lower_saved_at(k->o_by_head), kept);
    gate_output(context, lower_saved_at(k->o.wide), false);
    lower_temp_reset(context, mark);
    lower_attention_finish(context, kind, target, is_partial);
}

/* One step of the ring: results of other keys are merged into the own. */
void lower_ring_core(lower_context *context, const lower_kind *kind,
                     int32_t step)
{
    const lower_shape *s = &context->shape;
    const lower_saved *k = &kind->saved;
    const fr_ref qkv = lower_saved_at(k->qkv);
    const fr_ref o = lower_saved_at(k->o.wide), lse = lower_saved_at(k->kept);
    if (step == CORE_OWN) {
        core_call(context, CORE_OWN, qkv, o, lse);
        return;
    }
    fr_ref part = lower_temp(context, output_bytes(context));
    fr_ref part_lse = lower_temp(context, lower_core_bytes(context));
    core_call(context, step, qkv, part, part_lse);
    fr_instr *instr = lower_emit(context, FR_OP_ATTN_MERGE);
    instr->merge.rows = s->rows;
    instr->merge.q_heads = s->q_heads;
    instr->merge.v_dim = s->v_dim;
    instr->merge.seq = s->seq;
    instr->ref[FR_ATTN_MERGE_O] = part;
    instr->ref[FR_ATTN_MERGE_LSE] = part_lse;
    instr->ref[FR_ATTN_MERGE_SUM] = o;
    instr->ref[FR_ATTN_MERGE_SUM_LSE] = lse;
}

/* ---- recompute of every second product ---- */

/*
 * PyTorch's checkpointing by operators as torchtitan sets it (apply_ac): each
 * layer's products are counted, the results of the first, third ... are kept,
 * and attention's.  Of Llama's seven these are q, v, gate and the last; of a
 * packed projection's four the first of each half.  Scaled products below 16
 * bits are not on its list: all are recomputed.
 */
void lower_attention_recompute_output(lower_context *context,
                                      const lower_kind *kind, fr_ref target)
{
    const lower_matrix out = out_matrix(context, kind, true);
    lower_row_forward(context, kind, &out, lower_kept_operand(kind->saved.o),
                      target);
}

void lower_attention_recompute_keys(lower_context *context,
                                    const lower_kind *kind, fr_ref x)
{
    const lower_shape *s = &context->shape;
    lower_matrix matrix = qkv_matrix(context, kind);
    /* Forerun's kernels keep heads as they are after rotation. */
    bool is_kept =
        context->target.kernels & (LOWER_KERNELS_RUN | LOWER_KERNELS_PLANNED);
    if (!lower_is_recomputed(context, FR_RECOMPUTE_PART_PRODUCTS) || is_kept ||
        lower_is_ring(context) || context->model->kv_lora_rank > 0)
        return;
    const size_t first = context->instrs.n;
    uint64_t mark = lower_temp_mark(context);
    fr_ref qkv = lower_temp(context, lower_bytes(context, s->rows, s->qkv));
    if (!context->target.is_low)
        matrix.n = context->target.is_apart ? s->kv_heads * s->head_dim : 0;
    matrix.b = LOWER_ABSENT;
    if (matrix.n > 0) {
        fr_ref whole = lower_gather_rows(context, x, matrix.k,
                                         lower_product_dtype(context));
        lower_product_fwd(context, kind, &matrix, whole, qkv);
    }
    lower_rope(context, FR_OP_ROPE_FWD, qkv);
    lower_overhead_core(context, false);
    lower_temp_reset(context, mark);
    lower_mark_recompute(context, first);
}

/* ---- backward ---- */

static void core_gradient(lower_context *context, int32_t place,
                          const fr_ref refs[FR_ATTN_BWD_N_REFS])
{
    fr_ref temp = scores(context);
    if (place <= 0)
        lower_overhead_core(context, true);
    fr_instr *instr = core(context, FR_OP_ATTN_BWD, place);
    for (int i = 0; i < FR_ATTN_BWD_N_REFS; i++)
        instr->ref[i] = refs[i];
    instr->ref[FR_ATTN_BWD_TEMP] = temp;
}

static void core_backward(lower_context *context, const lower_kind *kind,
                          fr_ref d_o, fr_ref dqkv)
{
    const lower_saved *k = &kind->saved;
    const uint64_t q = query_bytes(context), kv = lower_key_bytes(context);
    const fr_heads_dims out_heads = output_parts(context);
    bool is_swapped = is_cp(context, FR_CP_ALL_TO_ALL);
    fr_ref o = lower_saved_at(is_swapped ? k->o_by_head : k->o.wide);
    fr_ref kept = lower_place_kept(context, k->kept, lower_core_bytes(context));
    if (is_swapped)
        swap_heads(context, &out_heads, false, d_o, d_o);
    fr_ref heads = place_heads(context, kind);
    if (lower_is_latent_recomputed(context))
        lower_latent_recompute(context, kind, heads);
    const size_t first = context->instrs.n;
    fr_ref qkv = gather_keys(context, heads);
    if (context->target.is_core_recomputed) {
        o = lower_temp(context, output_bytes(context));
        core_call(context, CORE_WHOLE, qkv, o, kept);
        lower_mark_recompute(context, first);
    }
    fr_ref gradient = dqkv;
    if (is_cp(context, FR_CP_ALL_GATHER))
        gradient = lower_temp(context, q + kv * (uint64_t)context->plan->cp);
    core_gradient(
        context, CORE_WHOLE,
        (const fr_ref[FR_ATTN_BWD_N_REFS]){[FR_ATTN_BWD_DO] = d_o,
                                           [FR_ATTN_BWD_QKV] = qkv,
                                           [FR_ATTN_BWD_O] = o,
                                           [FR_ATTN_BWD_KEPT] = kept,
                                           [FR_ATTN_BWD_DQKV] = gradient});
    if (is_cp(context, FR_CP_ALL_GATHER)) {
        lower_copy(context, gradient, dqkv, q);
        exchange(context, FR_OP_REDUCE_SCATTER,
                 kv * (uint64_t)context->plan->cp, lower_moved(gradient, q),
                 lower_moved(dqkv, q));
    }
    if (is_swapped)
        swap_qkv(context, true, dqkv, dqkv);
}

/* One step of the ring: gradients of q add up here, those of k and v travel
 * after their keys. */
void lower_ring_core_backward(lower_context *context, const lower_kind *kind,
                              fr_ref d_o, fr_ref dqkv, fr_ref dkeys,
                              int32_t step)
{
    const lower_shape *s = &context->shape;
    const lower_saved *k = &kind->saved;
    fr_ref refs[FR_ATTN_BWD_N_REFS] = {
        [FR_ATTN_BWD_DO] = d_o,
        [FR_ATTN_BWD_QKV] = lower_saved_at(k->qkv),
        [FR_ATTN_BWD_O] = lower_saved_at(k->o.wide),
        [FR_ATTN_BWD_KEPT] = lower_saved_at(k->kept),
        [FR_ATTN_BWD_DQKV] = dqkv};
    if (step > CORE_OWN) {
        refs[FR_ATTN_BWD_DQKV] = lower_temp(context, query_bytes(context));
        refs[FR_ATTN_BWD_KEYS] = lower_ref(FR_SPACE_PIECE_IN, 0);
        refs[FR_ATTN_BWD_DKEYS] = dkeys;
    }
    core_gradient(context, step, refs);
    if (step > CORE_OWN)
        lower_add(context, refs[FR_ATTN_BWD_DQKV], dqkv,
                  s->rows * s->q_heads * s->head_dim);
}

/* Takes dqkv to the gradient of the stream's rows, which it returns. */
static fr_ref project_backward(lower_context *context, const lower_kind *kind,
                               fr_ref dqkv, fr_ref x)
{
    const lower_matrix matrix = qkv_matrix(context, kind);
    norm_heads_backward(context, kind, dqkv);
    lower_overhead_parts(context, matrix.m * matrix.k, 3);
    return lower_column_backward(context, kind, &matrix, dqkv, x);
}

void lower_attention_open(lower_context *context, const lower_kind *kind,
                          fr_ref dy, fr_ref d_o)
{
    const lower_saved *k = &kind->saved;
    const lower_matrix out = out_matrix(context, kind, false);
    lower_row_backward(context, kind, &out,
                       lower_dropped(context, dy, k->mask1),
                       lower_kept_operand(k->o), d_o);
}

fr_ref lower_attention_close(lower_context *context, const lower_kind *kind,
                             fr_ref dqkv, fr_ref x)
{
    return context->model->kv_lora_rank > 0
               ? lower_latent_backward(context, kind, dqkv, x)
               : project_backward(context, kind, dqkv, x);
}

fr_ref lower_attention_backward(lower_context *context, const lower_kind *kind,
                                fr_ref dy, fr_ref x)
{
    const lower_shape *s = &context->shape;
    fr_ref dqkv = lower_temp(context, lower_bytes(context, s->rows, s->qkv));
    uint64_t after_dqkv = lower_temp_mark(context);
    fr_ref d_o = lower_temp(context, output_bytes(context));
    lower_attention_open(context, kind, dy, d_o);
    gate_output(context, d_o, true);
    core_backward(context, kind, d_o, dqkv);
    lower_rope(context, FR_OP_ROPE_BWD, dqkv);
    lower_temp_reset(context, after_dqkv);
    return lower_attention_close(context, kind, dqkv, x);
}
