/*
 * lower_moe.c: a mixture of experts in the MLP's place.
 *
 * Each token goes to its experts and none is dropped (the all-to-all
 * dispatcher of Megatron-LM): rows are put in the order of their experts, sent
 * to the ranks that hold these (EP), there gathered by the ranks that split an
 * expert (ETP) and multiplied expert by expert; back the same way.  The
 * router's weights are applied with the activation: the rows of its
 * result, and so those of the product after it, are scaled.  The busiest rank
 * sets the pace, so all have its rows (execution.expert_imbalance).  An expert
 * that all tokens see is a dense MLP beside.
 */
#include "program/lower/experts/lower_dispatch.h"
#include "program/lower/framework/lower_overhead.h"
#include "program/lower/segment/lower_layer.h"

/* The operands that forward has written and backward reads. */
typedef struct moe_place {
    fr_ref in;              /* operand of the experts' first product */
    fr_ref fc1, act;        /* act: as it leaves the activation */
    fr_ref act_operand;     /* of backward */
    fr_ref scores, chosen;  /* by the router */
    fr_ref counts, weights; /* of the experts' rows; absent: not routed */
    fr_ref loads;           /* of experts; absent: not balanced */
    fr_ref shared_fc1, shared_act, shared_operand;
    /* The shared expert's gate: its scores and weights have one element per row
     * of the stream, gate_weights is for whole rows. */
    fr_ref gate_score, gate_weights;
} moe_place;

static lower_matrix expert_matrix(const lower_context *context,
                                  const lower_kind *kind, fr_ref counts,
                                  bool is_first)
{
    const lower_shape *s = &context->shape;
    const lower_layer_layout *l = &kind->layout;
    return (lower_matrix){.m = s->expert_rows,
                          .n = is_first ? s->expert_fc1 : s->hidden,
                          .k = is_first ? s->hidden : s->expert_ffn,
                          .w = is_first ? l->expert_fc1.w : l->expert_fc2.w,
                          .b = is_first ? l->expert_fc1.b : l->expert_fc2.b,
                          .n_groups = s->experts_local,
                          .n_rows = lower_is_routed(context) ? s->busy_rows
                                                             : s->expert_rows,
                          .n_runs = lower_expert_runs(context),
                          .counts = counts};
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

/* ---- forward ---- */

static fr_instr *router_instr(lower_context *context, fr_op op)
{
    const lower_shape *s = &context->shape;
    const fr_model *model = context->model;
    fr_instr *instr = lower_emit(context, op);
    instr->router.rows = s->stream_rows;
    instr->router.n_experts = model->n_experts;
    instr->router.top_k = model->n_experts_per_token;
    instr->router.n_slots = context->plan->ep;
    instr->router.slot_rows = s->routed_rows / context->plan->ep;
    instr->router.n_sets = lower_router_sets(context);
    if (model->n_expert_groups > 1) {
        instr->router.n_groups = model->n_expert_groups;
        instr->router.n_chosen_groups = model->n_chosen_groups;
    }
    if (model->has_softmax_over_all)
        instr->flags = FR_INSTR_APART;
    if (model->has_sigmoid_router)
        instr->activation = FR_ACTIVATION_SIGMOID;
    instr->scalar = model->routed_scale == 1.0 ? 0.0 : model->routed_scale;
    return instr;
}

/* Returns the operand into which the router writes how many of its rows each
 * expert gets.  The auxiliary loss reads it; without such a loss it is
 * absent. */
static fr_ref place_loads(lower_context *context, const lower_kind *kind)
{
    const int64_t n_sets = lower_router_sets(context);
    return n_sets > 0
               ? lower_place_kept(
                     context, kind->saved.loads,
                     lower_float_bytes(n_sets * context->model->n_experts))
               : lower_absent;
}

/* The loads of whole sequences, of which ranks have parts. */
static void sum_loads(lower_context *context, fr_ref loads)
{
    const fr_plan *plan = context->plan;
    const uint64_t n =
        (uint64_t)(lower_router_sets(context) * context->model->n_experts);
    if (loads.space == FR_SPACE_NONE)
        return;
    if (plan->is_sequence_parallel && plan->tp > 1)
        lower_collective(context, FR_OP_ALL_REDUCE, FR_AXIS_TP, FR_DTYPE_F32, n,
                         loads, loads);
    if (plan->cp > 1)
        lower_collective(context, FR_OP_ALL_REDUCE, FR_AXIS_CP, FR_DTYPE_F32, n,
                         loads, loads);
}

/* Scores, choices, and how many rows each expert gets. */
static void route(lower_context *context, const lower_kind *kind, fr_ref x,
                  moe_place *at)
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
    bool is_routed = lower_is_routed(context);
    fr_ref counts = lower_absent, own_counts = lower_absent;
    if (is_routed) {
        counts = lower_place_kept(
            context, kind->saved.counts,
            lower_float_bytes(lower_expert_runs(context) * s->experts_local));
        own_counts = lower_small_own(context, model->n_experts, counts);
    }
    at->loads = place_loads(context, kind);
    lower_product_fwd(context, kind, &router, x, scores);
    fr_instr *instr = router_instr(context, FR_OP_ROUTER_FWD);
    instr->ref[FR_ROUTER_FWD_LOADS] = at->loads;
    if (context->plan->expert_capacity > 0)
        instr->flags |= FR_INSTR_CAPPED;
    instr->ref[FR_ROUTER_FWD_COUNTS] = own_counts;
    instr->ref[FR_ROUTER_FWD_BIAS] =
        lower_weight(context, kind->layout.router_bias);
    instr->ref[FR_ROUTER_FWD_LOGITS] = scores;
    instr->ref[FR_ROUTER_FWD_CHOSEN] = chosen;
    lower_overhead_routing(context, false);
    sum_loads(context, at->loads);
    if (is_routed)
        lower_small_to_experts(context, model->n_experts, own_counts, counts);
    at->scores = scores;
    at->chosen = chosen;
    at->counts = counts;
}

/* From the type of activations to float32 or back, where these differ. */
static fr_ref in_type(lower_context *context, fr_ref x, fr_dtype from,
                      fr_dtype to)
{
    const int64_t n = context->shape.stream_rows;
    if (from == to)
        return x;
    fr_ref out = lower_temp(context, (uint64_t)n * fr_dtype_bytes(to));
    lower_cast(context, x, from, out, to, n);
    return out;
}

/* Weighs the shared expert's rows by a sigmoid of their own (Qwen 1.5 MoE), in
 * float32 as all weights of rows. */
static void gate_rows(lower_context *context, const lower_kind *kind, fr_ref x,
                      moe_place *at)
{
    const lower_shape *s = &context->shape;
    const lower_matrix gate =
        small_matrix(context, 1, kind->layout.shared_gate);
    if (!lower_is_routed(context) || kind->layout.shared_gate == LOWER_ABSENT)
        return;
    fr_ref score = lower_temp(context, lower_bytes(context, s->stream_rows, 1));
    at->gate_weights = lower_temp(context, lower_float_bytes(s->rows));
    fr_ref own = context->plan->is_sequence_parallel
                     ? lower_temp(context, lower_float_bytes(s->stream_rows))
                     : at->gate_weights;
    lower_product_fwd(context, kind, &gate, x, score);
    at->gate_score = in_type(
        context, score, fr_plan_storage_dtype(context->plan), FR_DTYPE_F32);
    fr_instr *instr = lower_emit(context, FR_OP_GELU_FWD);
    instr->dtype = FR_DTYPE_F32;
    instr->activation = FR_ACTIVATION_SIGMOID;
    instr->vector.n = s->stream_rows;
    instr->ref[FR_GELU_FWD_X] = at->gate_score;
    instr->ref[FR_GELU_FWD_Y] = own;
    if (context->plan->is_sequence_parallel)
        lower_collective(context, FR_OP_ALL_GATHER, FR_AXIS_TP, FR_DTYPE_F32,
                         (uint64_t)s->rows, own, at->gate_weights);
}

static void activate(lower_context *context, int64_t rows, int64_t ffn,
                     fr_ref fc1, fr_ref act, fr_ref weights)
{
    fr_instr *instr = lower_activation(context, false, rows, ffn);
    instr->ref[FR_SWIGLU_FWD_WEIGHTS] = weights;
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
    lower_matrix fc1 = expert_matrix(context, kind, lower_absent, true);
    const lower_matrix shared = shared_matrix(context, kind, true);
    moe_place at = {.in = lower_absent};
    at.fc1 = lower_place_kept(context, k->expert_fc1,
                              lower_bytes(context, fc1.m, fc1.n));
    at.act = lower_place_kept(context, k->expert_act.wide,
                              lower_bytes(context, fc1.m, s->expert_ffn));
    fr_ref in = lower_place_kept(context, k->expert_in.wide,
                                 lower_bytes(context, fc1.m, fc1.k));
    route(context, kind, x, &at);
    fc1.counts = at.counts;
    if (lower_is_routed(context))
        at.weights = lower_place_kept(context, k->row_weights,
                                      lower_float_bytes(s->expert_rows));
    uint64_t mark = lower_temp_mark(context);
    lower_dispatch(context, at.chosen, x, in, at.weights);
    lower_temp_reset(context, mark);
    at.in = lower_operand(context, in, k->expert_in, fc1.m, fc1.k);
    lower_product_fwd(context, kind, &fc1, at.in, at.fc1);
    activate(context, fc1.m, s->expert_ffn, at.fc1, at.act, at.weights);
    if (s->shared_ffn == 0)
        return at;
    gate_rows(context, kind, x, &at);
    at.shared_fc1 = lower_place_kept(context, k->shared_fc1,
                                     lower_bytes(context, s->rows, shared.n));
    at.shared_act =
        lower_place_kept(context, k->shared_act.wide,
                         lower_bytes(context, s->rows, s->shared_ffn));
    mark = lower_temp_mark(context);
    fr_ref whole = shared_input(context, kind, x, true);
    lower_product_fwd(context, kind, &shared, whole, at.shared_fc1);
    lower_temp_reset(context, mark);
    activate(context, s->rows, s->shared_ffn, at.shared_fc1, at.shared_act,
             at.gate_weights);
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
    if (kind->layout.shared_gate != LOWER_ABSENT && !lower_is_routed(context)) {
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
    uint64_t mark = lower_temp_mark(context);
    const moe_place at = begin(context, kind, x);
    const lower_matrix fc2 = expert_matrix(context, kind, at.counts, false);
    uint64_t after_begin = lower_temp_mark(context);
    fr_ref act =
        lower_operand(context, at.act, kind->saved.expert_act, fc2.m, fc2.k);
    fr_ref y = lower_temp_rows(context, s->expert_rows);
    lower_product_fwd(context, kind, &fc2, act, y);
    lower_combine(context, at.chosen, y, target);
    lower_temp_reset(context, after_begin);
    if (s->shared_ffn > 0)
        add_shared(context, kind, &at, x, target);
    lower_temp_reset(context, mark);
}

/* ---- backward ---- */

/* Returns the operands that backward needs: they are kept, or recomputed from
 * x. */
static moe_place places_for_backward(lower_context *context,
                                     const lower_kind *kind, fr_ref x)
{
    const lower_shape *s = &context->shape;
    const lower_saved *k = &kind->saved;
    const size_t first = context->instrs.n;
    moe_place at = {.in = lower_kept_operand(k->expert_in),
                    .scores = lower_saved_at(k->scores),
                    .chosen = lower_saved_at(k->chosen),
                    .counts = lower_saved_at(k->counts),
                    .weights = lower_saved_at(k->row_weights),
                    .loads = lower_saved_at(k->loads),
                    .fc1 = lower_saved_at(k->expert_fc1),
                    .act_operand = lower_kept_operand(k->expert_act),
                    .shared_fc1 = lower_saved_at(k->shared_fc1),
                    .shared_operand = lower_kept_operand(k->shared_act)};
    bool is_all = at.in.space == FR_SPACE_NONE;
    bool is_act = at.act_operand.space == FR_SPACE_NONE;
    if (!is_all && s->shared_ffn > 0)
        gate_rows(context, kind, x, &at);
    if (is_all) {
        at = begin(context, kind, x);
    } else if (is_act) {
        at.act = lower_temp(
            context, lower_bytes(context, s->expert_rows, s->expert_ffn));
        activate(context, s->expert_rows, s->expert_ffn, at.fc1, at.act,
                 at.weights);
        if (s->shared_ffn > 0) {
            at.shared_act = lower_temp(
                context, lower_bytes(context, s->rows, s->shared_ffn));
            activate(context, s->rows, s->shared_ffn, at.shared_fc1,
                     at.shared_act, at.gate_weights);
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

/* The weights of rows, if there are any, and their gradients. */
typedef struct row_weights {
    fr_ref at, gradient;
} row_weights;

static void activate_backward(lower_context *context, int64_t rows, int64_t ffn,
                              fr_ref dact, fr_ref fc1, fr_ref dfc1,
                              row_weights weights)
{
    fr_instr *instr = lower_activation(context, true, rows, ffn);
    instr->ref[FR_SWIGLU_BWD_WEIGHTS] = weights.at;
    instr->ref[FR_SWIGLU_BWD_DWEIGHTS] = weights.gradient;
    instr->ref[FR_GELU_BWD_DY] = dact;
    instr->ref[FR_GELU_BWD_X] = fc1;
    instr->ref[FR_GELU_BWD_DX] = dfc1;
    lower_overhead_activation(context, true, rows * ffn);
}

/* dweights: the gradients of the weights of the own rows' copies. */
static void experts_backward(lower_context *context, const lower_kind *kind,
                             const moe_place *at, fr_ref dy, fr_ref dx,
                             fr_ref dweights)
{
    const lower_shape *s = &context->shape;
    const lower_matrix fc1 = expert_matrix(context, kind, at->counts, true);
    const lower_matrix fc2 = expert_matrix(context, kind, at->counts, false);
    row_weights weights = {at->weights, dweights};
    if (lower_is_routed(context))
        weights.gradient = lower_small_own(context, s->expert_rows, dweights);
    fr_ref dout = lower_temp_rows(context, fc2.m);
    uint64_t after_dout = lower_temp_mark(context);
    lower_dispatch(context, at->chosen, dy, dout, lower_absent);
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
    activate_backward(context, fc1.m, s->expert_ffn, dact, at->fc1, dfc1,
                      weights);
    if (lower_is_routed(context))
        lower_weights_from_experts(context, weights.gradient, dweights);
    lower_temp_reset(context, after_dfc1);
    d = lower_gradient_operand(context, dfc1, false, fc1.m, fc1.n);
    /* dout is dead, unless the gradient of its weight is still to come: its
     * memory takes the gradient of what came in. */
    fr_ref din = context->is_temp_kept ? lower_temp_rows(context, fc1.m) : dout;
    lower_product_dgrad(context, kind, &fc1, d.rows, din);
    lower_product_wgrad(context, &fc1, d.columns, at->in);
    if (!context->is_temp_kept)
        lower_temp_reset(context, after_dout);
    lower_combine(context, at->chosen, din, dx);
}

static void router_backward(lower_context *context, const lower_kind *kind,
                            const moe_place *at, fr_ref dweights, fr_ref x,
                            fr_ref dx)
{
    const lower_shape *s = &context->shape;
    const fr_model *model = context->model;
    const lower_matrix router =
        small_matrix(context, model->n_experts, kind->layout.router);
    fr_ref dscores = lower_temp(
        context, lower_bytes(context, s->stream_rows, model->n_experts));
    fr_instr *instr = router_instr(context, FR_OP_ROUTER_BWD);
    instr->ref[FR_ROUTER_BWD_CHOSEN] = at->chosen;
    instr->ref[FR_ROUTER_BWD_DLOGITS] = dscores;
    if (lower_is_routed(context)) {
        instr->ref[FR_ROUTER_BWD_LOGITS] = at->scores;
        instr->ref[FR_ROUTER_BWD_DWEIGHTS] = dweights;
        instr->ref[FR_ROUTER_BWD_LOADS] = at->loads;
    }
    lower_overhead_routing(context, true);
    lower_product_dgrad(context, kind, &router, dscores, dx)->flags |=
        FR_INSTR_ACCUMULATE;
    lower_product_wgrad(context, &router, dscores, x);
}

/* From the gradients of whole rows' weights, of which each TP rank has a
 * part. */
static void gate_backward(lower_context *context, const lower_kind *kind,
                          const moe_place *at, fr_ref dweights, fr_ref x,
                          fr_ref dx)
{
    const lower_shape *s = &context->shape;
    const lower_matrix gate =
        small_matrix(context, 1, kind->layout.shared_gate);
    bool is_scattered = context->plan->is_sequence_parallel;
    fr_ref own = is_scattered
                     ? lower_temp(context, lower_float_bytes(s->stream_rows))
                     : dweights;
    if (context->plan->tp > 1)
        lower_collective(
            context, is_scattered ? FR_OP_REDUCE_SCATTER : FR_OP_ALL_REDUCE,
            FR_AXIS_TP, FR_DTYPE_F32, (uint64_t)s->rows, dweights, own);
    fr_ref dscore = lower_temp(context, lower_float_bytes(s->stream_rows));
    fr_instr *instr = lower_emit(context, FR_OP_GELU_BWD);
    instr->dtype = FR_DTYPE_F32;
    instr->activation = FR_ACTIVATION_SIGMOID;
    instr->vector.n = s->stream_rows;
    instr->ref[FR_GELU_BWD_DY] = own;
    instr->ref[FR_GELU_BWD_X] = at->gate_score;
    instr->ref[FR_GELU_BWD_DX] = dscore;
    dscore = in_type(context, dscore, FR_DTYPE_F32,
                     fr_plan_storage_dtype(context->plan));
    lower_product_dgrad(context, kind, &gate, dscore, dx)->flags |=
        FR_INSTR_ACCUMULATE;
    lower_product_wgrad(context, &gate, dscore, x);
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
    row_weights weights = {at->gate_weights, lower_absent};
    if (weights.at.space != FR_SPACE_NONE)
        weights.gradient = lower_temp(context, lower_float_bytes(s->rows));
    activate_backward(context, s->rows, s->shared_ffn, dact, at->shared_fc1,
                      dfc1, weights);
    if (weights.at.space != FR_SPACE_NONE)
        gate_backward(context, kind, at, weights.gradient, x, dx);
    lower_temp_reset(context, after_dfc1);
    fr_ref part = lower_temp(context, s->stream_bytes);
    d = lower_gradient_operand(context, dfc1, false, fc1.m, fc1.n);
    fr_ref partial = lower_partial_rows(context, part);
    lower_product_dgrad(context, kind, &fc1, d.rows, partial);
    lower_sum_rows(context, partial, part);
    fr_ref whole = shared_input(context, kind, x, false);
    lower_product_wgrad(context, &fc1, d.columns, whole);
    lower_add(context, part, dx, s->stream_rows * s->hidden);
    if (kind->layout.shared_gate == LOWER_ABSENT || lower_is_routed(context))
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
    fr_ref dweights = lower_absent;
    if (lower_is_routed(context))
        dweights = lower_temp(context, lower_float_bytes(s->routed_rows));
    uint64_t mark = lower_temp_mark(context);
    experts_backward(context, kind, &at, dy, dx, dweights);
    lower_temp_reset(context, mark);
    router_backward(context, kind, &at, dweights, x, dx);
    lower_temp_reset(context, mark);
    if (s->shared_ffn > 0)
        shared_backward(context, kind, &at, dy, x, dx);
    lower_temp_reset(context, after_dx);
    return dx;
}
