/*
 * lower_moe.c: a mixture of experts in the MLP's place.
 *
 * Each token goes to its experts and none is dropped (the all-to-all
 * dispatcher of Megatron-LM): rows are put in the order of their experts, sent
 * to the ranks that hold these (EP), there gathered by the ranks that split an
 * expert (ETP) and multiplied expert by expert; back the same way.  The
 * router's weights are applied with the activation.  The busiest rank sets the
 * pace, so all have its rows (plan.expert_imbalance).  An expert that all
 * tokens see is a dense MLP beside.
 */
#include "plan/decide/grid.h"
#include "plan/lower/framework/lower_overhead.h"
#include "plan/lower/segment/lower_layer.h"

#include <math.h>

/* Where forward has put what backward reads. */
typedef struct moe_place {
    fr_ref in;          /* operand of the experts' first product */
    fr_ref fc1, act;    /* act: as it leaves the activation */
    fr_ref act_operand; /* of backward */
    fr_ref chosen;      /* by the router */
    fr_ref shared_fc1, shared_act, shared_operand;
} moe_place;

static int64_t etp_of(const lower_context *context)
{
    return context->plan->etp > 0 ? context->plan->etp : context->plan->tp;
}

static lower_matrix expert_matrix(const lower_context *context,
                                  const lower_kind *kind, bool is_first)
{
    const lower_shape *s = &context->shape;
    const lower_layer_layout *l = &kind->layout;
    return (lower_matrix){.m = s->expert_rows,
                          .n = is_first ? s->expert_fc1 : s->hidden,
                          .k = is_first ? s->hidden : s->expert_ffn,
                          .w = is_first ? l->expert_fc1.w : l->expert_fc2.w,
                          .b = is_first ? l->expert_fc1.b : l->expert_fc2.b,
                          .n_groups = s->experts_local};
}

static lower_matrix shared_matrix(const lower_context *context,
                                  const lower_kind *kind, bool is_first)
{
    const lower_shape *s = &context->shape;
    const lower_layer_layout *l = &kind->layout;
    return (lower_matrix){.m = s->rows,
                          .n = is_first ? s->shared_fc1 : s->hidden,
                          .k = is_first ? s->hidden : s->shared_ffn,
                          .w = is_first ? l->shared_fc1.w : l->shared_fc2.w,
                          .b = is_first ? l->shared_fc1.b : l->shared_fc2.b};
}

/* The router, and the gate of the shared expert: whole on every rank. */
static lower_matrix small_matrix(const lower_context *context, int64_t n,
                                 uint64_t w)
{
    const lower_shape *s = &context->shape;
    return (lower_matrix){.m = s->stream_rows,
                          .n = n,
                          .k = s->hidden,
                          .w = w,
                          .b = LOWER_ABSENT,
                          .is_wide = true};
}

/* ---- to the experts and back ---- */

static void permute(lower_context *context, fr_op op, int64_t from, int64_t to,
                    fr_ref src, fr_ref dst)
{
    fr_instr *instr = lower_emit(context, op);
    instr->permute.rows_in = from;
    instr->permute.rows_out = to;
    instr->permute.cols = context->shape.hidden;
    instr->ref[FR_PERMUTE_SRC] = src;
    instr->ref[FR_PERMUTE_DST] = dst;
}

/*
 * Of the copies of a token that go to experts on other nodes, how many travel:
 * one for each such node.  With k experts spread evenly over n nodes, (n-1)
 * (1 - (1 - 1/n)^k) nodes are met against k (n-1)/n copies.
 */
static double far_share(lower_context *context)
{
    const fr_plan *plan = context->plan;
    const int32_t *node_of_rank = context->node_of_rank;
    double k = (double)context->model->n_experts_per_token, n = 1;
    if (plan->expert_dispatch != FR_DISPATCH_BY_NODE || node_of_rank == NULL)
        return 0;
    int64_t *ranks = malloc((size_t)fr_plan_world(plan) * sizeof *ranks);
    if (ranks == NULL) {
        context->is_out_of_memory = true;
        return 0;
    }
    int64_t n_group = fr_plan_group(plan, 0, FR_AXIS_EP, ranks, NULL);
    for (int64_t i = 1; i < n_group; i++)
        n += node_of_rank[ranks[i]] != node_of_rank[ranks[i - 1]];
    free(ranks);
    return n > 1 ? n * (1 - pow(1 - 1 / n, k)) / k : 0;
}

static void exchange(lower_context *context, fr_op op, fr_axis axis,
                     int64_t rows, fr_ref src, fr_ref dst)
{
    bool is_beside =
        op == FR_OP_ALL_TO_ALL && lower_is_exchange_overlapped(context);
    if (is_beside)
        lower_pass_exchange(context, src, dst);
    fr_instr *instr = lower_collective(
        context, op, axis, fr_plan_storage_dtype(context->plan),
        (uint64_t)(rows * context->shape.hidden), src, dst);
    if (op == FR_OP_ALL_TO_ALL)
        instr->scalar = far_share(context);
    if (is_beside)
        lower_pass_compute(context, LOWER_NO_PIECE, LOWER_NO_PIECE);
}

/* Do ranks that split an expert have to gather each other's tokens? */
static bool is_gathered(const lower_context *context)
{
    return context->plan->is_sequence_parallel && etp_of(context) > 1;
}

/* Rows that come from several ranks and go to several experts are sorted
 * twice. */
static bool is_sorted_twice(const lower_context *context)
{
    return context->plan->ep > 1 && context->shape.experts_local > 1;
}

static fr_ref temp_rows(lower_context *context, int64_t rows)
{
    return lower_temp(context,
                      lower_bytes(context, rows, context->shape.hidden));
}

/* Brings rows of the stream to those of the experts. */
static void dispatch(lower_context *context, fr_ref x, fr_ref out)
{
    const lower_shape *s = &context->shape;
    bool is_sent = context->plan->ep > 1,
         is_last_sort = is_sorted_twice(context);
    bool is_joined = is_gathered(context);
    fr_ref now =
        is_sent || is_joined ? temp_rows(context, s->routed_rows) : out;
    permute(context, FR_OP_PERMUTE, s->stream_rows, s->routed_rows, x, now);
    if (is_sent) {
        fr_ref next = is_joined || is_last_sort
                          ? temp_rows(context, s->routed_rows)
                          : out;
        exchange(context, FR_OP_ALL_TO_ALL, FR_AXIS_EP, s->routed_rows, now,
                 next);
        now = next;
    }
    if (is_joined) {
        fr_ref next = is_last_sort ? temp_rows(context, s->expert_rows) : out;
        exchange(context, FR_OP_ALL_GATHER, FR_AXIS_ETP, s->expert_rows, now,
                 next);
        now = next;
    }
    if (is_last_sort)
        permute(context, FR_OP_PERMUTE, s->expert_rows, s->expert_rows, now,
                out);
}

/* Brings rows of the experts back to those of the stream and adds them up. */
static void combine(lower_context *context, fr_ref y, fr_ref out)
{
    const lower_shape *s = &context->shape;
    fr_ref now = y;
    if (is_sorted_twice(context)) {
        now = temp_rows(context, s->expert_rows);
        permute(context, FR_OP_PERMUTE, s->expert_rows, s->expert_rows, y, now);
    }
    if (is_gathered(context)) {
        fr_ref next = temp_rows(context, s->routed_rows);
        exchange(context, FR_OP_REDUCE_SCATTER, FR_AXIS_ETP, s->expert_rows,
                 now, next);
        now = next;
    }
    if (context->plan->ep > 1) {
        fr_ref next = temp_rows(context, s->routed_rows);
        exchange(context, FR_OP_ALL_TO_ALL, FR_AXIS_EP, s->routed_rows, now,
                 next);
        now = next;
    }
    permute(context, FR_OP_UNPERMUTE, s->routed_rows, s->stream_rows, now, out);
    /* Tokens that all TP ranks hold: each has a part of every expert. */
    if (!context->plan->is_sequence_parallel)
        lower_sum_rows(context, out, out);
}

/* ---- forward ---- */

static fr_ref route(lower_context *context, const lower_kind *kind, fr_ref x)
{
    const lower_shape *s = &context->shape;
    const fr_model *model = context->model;
    const lower_matrix router =
        small_matrix(context, model->n_experts, kind->layout.router);
    fr_ref scores = lower_place_kept(
        context, kind->saved.scores,
        lower_bytes(context, s->stream_rows, model->n_experts));
    fr_ref chosen = lower_place_kept(
        context, kind->saved.chosen,
        2 * sizeof(float) *
            (uint64_t)(s->stream_rows * model->n_experts_per_token));
    lower_product_fwd(context, kind, &router, x, scores);
    fr_instr *instr = lower_emit(context, FR_OP_ROUTER_FWD);
    instr->router.rows = s->stream_rows;
    instr->router.n_experts = model->n_experts;
    instr->router.top_k = model->n_experts_per_token;
    instr->ref[FR_ROUTER_FWD_LOGITS] = scores;
    instr->ref[FR_ROUTER_FWD_CHOSEN] = chosen;
    return chosen;
}

static void activate(lower_context *context, int64_t rows, int64_t ffn,
                     fr_ref fc1, fr_ref act)
{
    fr_instr *instr = lower_activation(context, false, rows, ffn);
    instr->ref[FR_GELU_FWD_X] = fc1;
    instr->ref[FR_GELU_FWD_Y] = act;
    lower_overhead_activation(context, false, rows * ffn);
}

/* The operand of the shared expert's first product: whole rows. */
static fr_ref shared_input(lower_context *context, const lower_kind *kind,
                           fr_ref x, bool is_forward)
{
    const lower_shape *s = &context->shape;
    const lower_kept kept = kind->saved.n2;
    bool is_kept = !is_forward && kept.low != LOWER_ABSENT;
    fr_ref operand =
        is_kept ? lower_saved_at(kept.low)
                : lower_operand(context, x, kept, s->stream_rows, s->hidden);
    return lower_gather_rows(context, operand, s->hidden,
                             lower_product_dtype(context));
}

/* Writes forward up to the experts' last products. */
static moe_place begin(lower_context *context, const lower_kind *kind, fr_ref x)
{
    const lower_shape *s = &context->shape;
    const lower_saved *k = &kind->saved;
    const lower_matrix fc1 = expert_matrix(context, kind, true);
    const lower_matrix shared = shared_matrix(context, kind, true);
    moe_place at = {.in = lower_absent};
    at.fc1 = lower_place_kept(context, k->expert_fc1,
                              lower_bytes(context, fc1.m, fc1.n));
    at.act = lower_place_kept(context, k->expert_act.wide,
                              lower_bytes(context, fc1.m, s->expert_ffn));
    fr_ref in = lower_place_kept(context, k->expert_in.wide,
                                 lower_bytes(context, fc1.m, fc1.k));
    at.chosen = route(context, kind, x);
    uint64_t mark = lower_temp_mark(context);
    dispatch(context, x, in);
    lower_temp_reset(context, mark);
    at.in = lower_operand(context, in, k->expert_in, fc1.m, fc1.k);
    lower_product_fwd(context, kind, &fc1, at.in, at.fc1);
    activate(context, fc1.m, s->expert_ffn, at.fc1, at.act);
    if (s->shared_ffn == 0)
        return at;
    at.shared_fc1 = lower_place_kept(context, k->shared_fc1,
                                     lower_bytes(context, s->rows, shared.n));
    at.shared_act =
        lower_place_kept(context, k->shared_act.wide,
                         lower_bytes(context, s->rows, s->shared_ffn));
    mark = lower_temp_mark(context);
    fr_ref whole = shared_input(context, kind, x, true);
    lower_product_fwd(context, kind, &shared, whole, at.shared_fc1);
    lower_temp_reset(context, mark);
    activate(context, s->rows, s->shared_ffn, at.shared_fc1, at.shared_act);
    return at;
}

static void add_shared(lower_context *context, const lower_kind *kind,
                       const moe_place *at, fr_ref x, fr_ref target)
{
    const lower_shape *s = &context->shape;
    const lower_matrix shared = shared_matrix(context, kind, false);
    const lower_matrix gate =
        small_matrix(context, 1, kind->layout.shared_gate);
    const int64_t n = s->stream_rows * s->hidden;
    fr_ref act = lower_operand(context, at->shared_act, kind->saved.shared_act,
                               s->rows, s->shared_ffn);
    fr_ref out = lower_temp(context, s->stream_bytes);
    fr_ref partial = lower_partial_rows(context, out);
    lower_product_fwd(context, kind, &shared, act, partial);
    lower_sum_rows(context, partial, out);
    if (kind->layout.shared_gate != LOWER_ABSENT) {
        fr_ref score =
            lower_temp(context, lower_bytes(context, s->stream_rows, 1));
        lower_product_fwd(context, kind, &gate, x, score);
    }
    lower_add(context, out, target, n);
}

void lower_moe_forward(lower_context *context, const lower_kind *kind, fr_ref x,
                       fr_ref target)
{
    const lower_shape *s = &context->shape;
    const lower_matrix fc2 = expert_matrix(context, kind, false);
    uint64_t mark = lower_temp_mark(context);
    const moe_place at = begin(context, kind, x);
    uint64_t after_begin = lower_temp_mark(context);
    fr_ref act =
        lower_operand(context, at.act, kind->saved.expert_act, fc2.m, fc2.k);
    fr_ref y = temp_rows(context, s->expert_rows);
    lower_product_fwd(context, kind, &fc2, act, y);
    combine(context, y, target);
    lower_temp_reset(context, after_begin);
    if (s->shared_ffn > 0)
        add_shared(context, kind, &at, x, target);
    lower_temp_reset(context, mark);
}

/* ---- backward ---- */

/* What backward needs: kept, or recomputed from x. */
static moe_place places_for_backward(lower_context *context,
                                     const lower_kind *kind, fr_ref x)
{
    const lower_shape *s = &context->shape;
    const lower_saved *k = &kind->saved;
    const size_t first = context->instrs.n;
    moe_place at = {.in = lower_kept_operand(k->expert_in),
                    .chosen = lower_saved_at(k->chosen),
                    .fc1 = lower_saved_at(k->expert_fc1),
                    .act_operand = lower_kept_operand(k->expert_act),
                    .shared_fc1 = lower_saved_at(k->shared_fc1),
                    .shared_operand = lower_kept_operand(k->shared_act)};
    bool is_all = at.in.space == FR_SPACE_NONE;
    bool is_act = at.act_operand.space == FR_SPACE_NONE;
    if (is_all) {
        at = begin(context, kind, x);
    } else if (is_act) {
        at.act = lower_temp(
            context, lower_bytes(context, s->expert_rows, s->expert_ffn));
        activate(context, s->expert_rows, s->expert_ffn, at.fc1, at.act);
        if (s->shared_ffn > 0) {
            at.shared_act = lower_temp(
                context, lower_bytes(context, s->rows, s->shared_ffn));
            activate(context, s->rows, s->shared_ffn, at.shared_fc1,
                     at.shared_act);
        }
    }
    if (is_all || is_act) {
        at.act_operand = lower_operand(context, at.act, k->expert_act,
                                       s->expert_rows, s->expert_ffn);
        if (s->shared_ffn > 0)
            at.shared_operand = lower_operand(
                context, at.shared_act, k->shared_act, s->rows, s->shared_ffn);
    }
    lower_mark_recompute(context, first);
    return at;
}

static void activate_backward(lower_context *context, int64_t rows, int64_t ffn,
                              fr_ref dact, fr_ref fc1, fr_ref dfc1)
{
    fr_instr *instr = lower_activation(context, true, rows, ffn);
    instr->ref[FR_GELU_BWD_DY] = dact;
    instr->ref[FR_GELU_BWD_X] = fc1;
    instr->ref[FR_GELU_BWD_DX] = dfc1;
    lower_overhead_activation(context, true, rows * ffn);
}

static void experts_backward(lower_context *context, const lower_kind *kind,
                             const moe_place *at, fr_ref dy, fr_ref dx)
{
    const lower_shape *s = &context->shape;
    const lower_matrix fc1 = expert_matrix(context, kind, true);
    const lower_matrix fc2 = expert_matrix(context, kind, false);
    fr_ref dout = temp_rows(context, fc2.m);
    uint64_t after_dout = lower_temp_mark(context);
    dispatch(context, dy, dout);
    lower_temp_reset(context, after_dout);
    fr_ref dfc1 = lower_temp(context, lower_bytes(context, fc1.m, fc1.n));
    uint64_t after_dfc1 = lower_temp_mark(context);
    fr_ref dact = context->model->is_gated_mlp
                      ? lower_temp(context, lower_bytes(context, fc2.m, fc2.k))
                      : dfc1;
    lower_gradient d =
        lower_gradient_operand(context, dout, false, fc2.m, fc2.n);
    lower_product_dgrad(context, kind, &fc2, d.rows, dact);
    lower_product_wgrad(context, &fc2, d.columns, at->act_operand);
    activate_backward(context, fc1.m, s->expert_ffn, dact, at->fc1, dfc1);
    lower_temp_reset(context, after_dfc1);
    d = lower_gradient_operand(context, dfc1, false, fc1.m, fc1.n);
    /* dout is dead: its memory takes the gradient of what came in. */
    lower_product_dgrad(context, kind, &fc1, d.rows, dout);
    lower_product_wgrad(context, &fc1, d.columns, at->in);
    lower_temp_reset(context, after_dout);
    combine(context, dout, dx);
}

static void router_backward(lower_context *context, const lower_kind *kind,
                            fr_ref chosen, fr_ref x, fr_ref dx)
{
    const lower_shape *s = &context->shape;
    const fr_model *model = context->model;
    const lower_matrix router =
        small_matrix(context, model->n_experts, kind->layout.router);
    fr_ref dscores = lower_temp(
        context, lower_bytes(context, s->stream_rows, model->n_experts));
    fr_instr *instr = lower_emit(context, FR_OP_ROUTER_BWD);
    instr->router.rows = s->stream_rows;
    instr->router.n_experts = model->n_experts;
    instr->router.top_k = model->n_experts_per_token;
    instr->ref[FR_ROUTER_BWD_DCHOSEN] = chosen; /* as large as its gradient */
    instr->ref[FR_ROUTER_BWD_DLOGITS] = dscores;
    lower_product_dgrad(context, kind, &router, dscores, dx)->flags |=
        FR_INSTR_ACCUMULATE;
    lower_product_wgrad(context, &router, dscores, x);
}

/* Adds the shared expert's gradient to dx. */
static void shared_backward(lower_context *context, const lower_kind *kind,
                            const moe_place *at, fr_ref dy, fr_ref x, fr_ref dx)
{
    const lower_shape *s = &context->shape;
    const lower_matrix fc1 = shared_matrix(context, kind, true);
    const lower_matrix fc2 = shared_matrix(context, kind, false);
    const lower_matrix gate =
        small_matrix(context, 1, kind->layout.shared_gate);
    fr_ref dfc1 = lower_temp(context, lower_bytes(context, fc1.m, fc1.n));
    uint64_t after_dfc1 = lower_temp_mark(context);
    fr_ref dact = context->model->is_gated_mlp
                      ? lower_temp(context, lower_bytes(context, fc2.m, fc2.k))
                      : dfc1;
    lower_gradient d =
        lower_gradient_operand(context, dy, true, s->rows, s->hidden);
    lower_product_dgrad(context, kind, &fc2, d.rows, dact);
    lower_product_wgrad(context, &fc2, d.columns, at->shared_operand);
    activate_backward(context, s->rows, s->shared_ffn, dact, at->shared_fc1,
                      dfc1);
    lower_temp_reset(context, after_dfc1);
    fr_ref part = lower_temp(context, s->stream_bytes);
    d = lower_gradient_operand(context, dfc1, false, fc1.m, fc1.n);
    fr_ref partial = lower_partial_rows(context, part);
    lower_product_dgrad(context, kind, &fc1, d.rows, partial);
    lower_sum_rows(context, partial, part);
    fr_ref whole = shared_input(context, kind, x, false);
    lower_product_wgrad(context, &fc1, d.columns, whole);
    lower_add(context, part, dx, s->stream_rows * s->hidden);
    if (kind->layout.shared_gate == LOWER_ABSENT)
        return;
    fr_ref dscore =
        lower_temp(context, lower_bytes(context, s->stream_rows, 1));
    fr_instr *instr = lower_emit(context, FR_OP_ZERO);
    instr->copy.n_bytes = (int64_t)lower_bytes(context, s->stream_rows, 1);
    instr->ref[FR_ZERO_DST] = dscore;
    lower_product_dgrad(context, kind, &gate, dscore, dx)->flags |=
        FR_INSTR_ACCUMULATE;
    lower_product_wgrad(context, &gate, dscore, x);
}

fr_ref lower_moe_backward(lower_context *context, const lower_kind *kind,
                          fr_ref dy, fr_ref x)
{
    const lower_shape *s = &context->shape;
    fr_ref dx = lower_temp(context, s->stream_bytes);
    uint64_t after_dx = lower_temp_mark(context);
    const moe_place at = places_for_backward(context, kind, x);
    dy = lower_dropped(context, dy, kind->saved.mask2);
    uint64_t mark = lower_temp_mark(context);
    experts_backward(context, kind, &at, dy, dx);
    lower_temp_reset(context, mark);
    router_backward(context, kind, at.chosen, x, dx);
    lower_temp_reset(context, mark);
    if (s->shared_ffn > 0)
        shared_backward(context, kind, &at, dy, x, dx);
    lower_temp_reset(context, after_dx);
    return dx;
}
