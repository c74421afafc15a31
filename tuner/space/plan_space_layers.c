/*
 * plan_space_layers.c: axes that decide where ranks sit and what a layer
 * costs.  What is left out because it cannot win, or cannot differ, is said at
 * each axis.
 */
#include "cost_models/gpu/gpu_precision.h"
#include "tuner/space/plan_space_lists.h"

/* ---- ranks ---------------------------------------------------------------
 * The number of ranks travels in dp until cp, tp and pp have taken theirs. */
static int64_t nodes_of(const fr_plan_space_request *request)
{
    int64_t n_nodes =
        fr_nodes_with_precision(request->cluster, request->base.precision);
    if (n_nodes == 0) /* the costs say what is missing */
        n_nodes = fr_cluster_n_nodes(request->cluster);
    return request->most_nodes > 0 && request->most_nodes < n_nodes
               ? request->most_nodes
               : n_nodes;
}

/* Returns the number of ranks for which the first n_nodes nodes have slots. */
static int64_t slots_of(const fr_plan_space_request *request, int64_t n_nodes)
{
    return fr_cluster_slots_of_nodes(request->cluster, n_nodes, 1);
}

/* The next number of at most five significant bits: 1 to 32, then 34, 36 ...
 * 64, 68, 72 ... */
static int64_t after_rounded(int64_t n)
{
    int64_t step = 1;
    while (n / step >= 32)
        step *= 2;
    return n + step;
}

/*
 * Numbers of whole nodes, from one to all of them; on CPUs also fewer ranks on
 * each node, equally many.  Beyond 32 nodes one number in each 3 % is tried.
 */
static void push_nodes(const fr_plan_space_request *request,
                       fr_plan_space_values *values)
{
    int64_t n_nodes = nodes_of(request);
    for (int64_t n = 1; n <= n_nodes; n = after_rounded(n)) {
        fr_plan_space_values of_node = {0};
        if (!fr_is_gpu_space(request))
            fr_push_divisors(fr_cluster_node_slots(request->cluster, 0, 1),
                             INT32_MAX, &of_node);
        for (int i = 0; i < of_node.n; i++)
            fr_push_new(n * of_node.at[i], values);
        fr_push_new(slots_of(request, n), values);
    }
}

/*
 * Numbers of nodes of which a batch or layers may be a multiple where they are
 * none of all nodes: 2^k, 3 x 2^k and 5 x 2^k, in ascending order.  Fewer than
 * half of the nodes are never the best for want of a divisor.
 */
static void push_round_nodes(const fr_plan_space_request *request,
                             fr_plan_space_values *values)
{
    const int64_t n_nodes = nodes_of(request);
    bool is_power_of_two = (n_nodes & (n_nodes - 1)) == 0;
    if (is_power_of_two || !fr_is_gpu_space(request))
        return;
    for (int64_t unit = 1; unit < n_nodes; unit *= 2)
        for (int64_t n = 4; n < 7; n++)
            if (n * unit % 4 == 0 && n * unit / 4 < n_nodes &&
                n * unit / 2 > n_nodes)
                fr_push_new(slots_of(request, n * unit / 4), values);
}

/* Keeps the values for which the first nodes have slots: the request may name
 * more ranks than fit there. */
static void drop_beyond(const fr_plan_space_request *request,
                        fr_plan_space_values *values)
{
    const int64_t most = slots_of(request, nodes_of(request));
    int n = 0;
    for (int i = 0; i < values->n; i++)
        if (values->at[i] <= most)
            values->at[n++] = values->at[i];
    values->n = n;
}

static void list_worlds(const fr_plan_space_request *request,
                        fr_plan_space_values *values)
{
    const uint64_t all = FR_PIN(DP) | FR_PIN(TP) | FR_PIN(PP);
    const fr_plan *base = &request->base;
    bool is_one = (request->pins & all) == all &&
                  !fr_is_ranged(request, FR_SPACE_AXIS_TP) &&
                  !fr_is_ranged(request, FR_SPACE_AXIS_PP) &&
                  !fr_is_ranged(request, FR_SPACE_AXIS_CP);
    if (fr_push_given(request, FR_SPACE_AXIS_WORLD, values))
        return;
    if (request->world > 0)
        fr_push_value(values, request->world);
    else if (is_one)
        fr_push_value(values,
                      (int64_t)base->dp * base->tp * base->pp *
                          (fr_is_pinned(request, FR_PLAN_CP) ? base->cp : 1));
    else {
        fr_plan_space_values divisors = {0};
        if (request->is_any_nodes)
            push_nodes(request, values);
        fr_push_divisors(slots_of(request, nodes_of(request)), INT32_MAX,
                         &divisors);
        for (int i = 0; i < divisors.n; i++) {
            if (i + 1 == divisors.n)
                push_round_nodes(request, values);
            fr_push_new(divisors.at[i], values);
        }
    }
}

void fr_list_world(const fr_plan_space_request *request, const fr_plan *plan,
                   fr_plan_space_values *values)
{
    (void)plan;
    list_worlds(request, values);
    if (request->most_nodes > 0)
        drop_beyond(request, values);
}

void fr_set_world(const fr_plan_space_request *request, fr_plan *plan,
                  int64_t value)
{
    (void)request;
    plan->dp = (int32_t)value;
    plan->tp = plan->pp = plan->cp = 1;
}

/* On CPUs r ranks of a node share its cores; every r that fills whole nodes is
 * tried. */
void fr_list_threads(const fr_plan_space_request *request, const fr_plan *plan,
                     fr_plan_space_values *values)
{
    const fr_device_type *device = fr_cluster_device(request->cluster, 0);
    int64_t n_nodes = nodes_of(request);
    int64_t world = plan->dp;
    if (fr_is_pinned(request, FR_PLAN_THREADS)) {
        fr_push_value(values, request->base.n_threads);
        return;
    }
    if (device->kind == FR_DEVICE_GPU) {
        fr_push_value(values, 1);
        return;
    }
    int64_t last = 0;
    for (int64_t r = 1; r <= world; r++) {
        if (world % r != 0 || world / r > n_nodes)
            continue;
        int64_t n_threads = device->n_cores > r ? device->n_cores / r : 1;
        if (n_threads != last)
            fr_push_value(values, n_threads);
        last = n_threads;
    }
}

/*
 * On GPUs no rank has less than this many tokens of a sequence, unless asked
 * for: with fewer, moving keys and values takes longer than attention over
 * them.
 */
enum { LEAST_TOKENS = 1024 };

void fr_list_cp(const fr_plan_space_request *request, const fr_plan *plan,
                fr_plan_space_values *values)
{
    const int64_t seq = request->job->seq;
    if (fr_push_given(request, FR_SPACE_AXIS_CP, values)) {
        fr_keep_divisors(plan->dp, values);
        return;
    }
    fr_push_value(values, 1);
    if (!fr_is_gpu_space(request) || request->model->kind == FR_MODEL_LAYERS)
        return;
    for (int64_t d = 2; d <= plan->dp && seq / d >= LEAST_TOKENS; d++)
        if (plan->dp % d == 0 && seq % (2 * d) == 0)
            fr_push_value(values, d);
}

void fr_set_cp(const fr_plan_space_request *request, fr_plan *plan,
               int64_t value)
{
    (void)request;
    plan->cp = (int32_t)value;
    plan->dp /= plan->cp;
}

/* On GPUs tp is at most the GPUs of two nodes, unless asked for. */
void fr_list_tp(const fr_plan_space_request *request, const fr_plan *plan,
                fr_plan_space_values *values)
{
    int64_t high = plan->dp;
    if (fr_push_given(request, FR_SPACE_AXIS_TP, values)) {
        fr_keep_divisors(plan->dp, values);
        return;
    }
    if (fr_is_gpu_space(request) && high > 2 * fr_space_node_devices(request))
        high = 2 * fr_space_node_devices(request);
    for (int64_t d = 1; d <= high; d++)
        if (plan->dp % d == 0 && (d == 1 || request->model->n_heads % d == 0))
            fr_push_value(values, d);
}

void fr_set_tp(const fr_plan_space_request *request, fr_plan *plan,
               int64_t value)
{
    (void)request;
    plan->tp = (int32_t)value;
    plan->dp /= plan->tp;
}

void fr_list_pp(const fr_plan_space_request *request, const fr_plan *plan,
                fr_plan_space_values *values)
{
    fr_plan_space_values all = {0};
    if (!fr_push_given(request, FR_SPACE_AXIS_PP, &all))
        fr_push_divisors(plan->dp, request->model->n_layers, &all);
    fr_keep_divisors(plan->dp, &all);
    for (int i = 0; i < all.n; i++)
        if (!fr_is_pinned(request, FR_PLAN_DP) ||
            plan->dp / all.at[i] == request->base.dp)
            fr_push_value(values, all.at[i]);
}

void fr_set_pp(const fr_plan_space_request *request, fr_plan *plan,
               int64_t value)
{
    (void)request;
    plan->pp = (int32_t)value;
    plan->dp /= plan->pp;
}

/* Experts are spread over as many ranks as divide both the experts and the
 * ranks of a stage. */
void fr_list_ep(const fr_plan_space_request *request, const fr_plan *plan,
                fr_plan_space_values *values)
{
    if (fr_push_given(request, FR_SPACE_AXIS_EP, values))
        return;
    if (fr_is_gpu_space(request) && request->model->n_experts > 0)
        fr_push_divisors(request->model->n_experts, INT32_MAX, values);
    else
        fr_push_value(values, 1);
    fr_keep_divisors((int64_t)plan->tp * plan->cp * plan->dp, values);
}

/* An expert is whole (1) or split like the rest of the layer (0: tp). */
void fr_list_etp(const fr_plan_space_request *request, const fr_plan *plan,
                 fr_plan_space_values *values)
{
    if (fr_push_given(request, FR_SPACE_AXIS_ETP, values))
        return;
    fr_push_value(values, 0);
    if (fr_is_gpu_space(request) && plan->ep > 1 && plan->tp > 1)
        fr_push_value(values, 1);
}

/*
 * On one node every order is the same, and orders that differ only in axes of
 * size one always are.  On GPUs only orders that begin with tp and cp are tried
 * by default, because these move bytes in every layer.
 */
void fr_list_rank_order(const fr_plan_space_request *request,
                        const fr_plan *plan, fr_plan_space_values *values)
{
    if (fr_push_given(request, FR_SPACE_AXIS_RANK_ORDER, values))
        return;
    bool is_gpu = fr_is_gpu_space(request);
    fr_push_value(values, FR_RANK_ORDER_TP_DP_PP);
    int n_wide = (plan->tp * plan->cp > 1) + (plan->dp > 1) + (plan->pp > 1);
    if (fr_cluster_n_nodes(request->cluster) == 1 || n_wide < 2)
        return;
    if (is_gpu) {
        if (plan->dp > 1 && plan->pp > 1)
            fr_push_value(values, FR_RANK_ORDER_TP_PP_DP);
        return;
    }
    if (n_wide == 3) {
        for (int i = 1; i < FR_RANK_ORDER_N; i++)
            fr_push_value(values, i);
        return;
    }
    /* The remaining choice is the other order of the two wide axes. */
    fr_push_value(values, plan->tp == 1   ? FR_RANK_ORDER_TP_PP_DP
                          : plan->dp == 1 ? FR_RANK_ORDER_PP_TP_DP
                                          : FR_RANK_ORDER_DP_TP_PP);
}

/* ---- layers -------------------------------------------------------------- */
void fr_list_micro_batch(const fr_plan_space_request *request,
                         const fr_plan *plan, fr_plan_space_values *values)
{
    if (fr_push_given(request, FR_SPACE_AXIS_MICRO_BATCH, values))
        return;
    if (fr_is_pinned(request, FR_PLAN_BATCH_SHARES) &&
        request->base.n_shares > 0) {
        fr_push_value(values, fr_micro_batch_of_shares(request));
        return;
    }
    const int64_t batch = request->job->global_batch;
    if (batch % plan->dp == 0)
        fr_push_divisors(batch / plan->dp, INT32_MAX, values);
    else if (fr_has_uneven_shares(request))
        fr_push_divisors(batch, batch / plan->dp, values);
}

void fr_list_cp_kind(const fr_plan_space_request *request, const fr_plan *plan,
                     fr_plan_space_values *values)
{
    if (plan->cp == 1) {
        fr_push_value(values, (int64_t)request->base.cp_kind);
        return;
    }
    if (fr_push_given(request, FR_SPACE_AXIS_CP_KIND, values))
        return;
    for (int i = 0; i < FR_CP_N; i++)
        fr_push_value(values, i);
}

void fr_list_sequence_parallel(const fr_plan_space_request *request,
                               const fr_plan *plan,
                               fr_plan_space_values *values)
{
    bool is_pin = fr_is_pinned(request, FR_PLAN_SEQUENCE_PARALLEL);
    bool pin = request->base.is_sequence_parallel;
    if (!is_pin || !pin || plan->tp == 1)
        fr_push_value(values, 0);
    if (plan->tp > 1 && (!is_pin || pin))
        fr_push_value(values, 1);
}

/* On GPUs products run in pieces only where sequence parallelism has rows to
 * gather and to scatter. */
void fr_list_tp_overlap(const fr_plan_space_request *request,
                        const fr_plan *plan, fr_plan_space_values *values)
{
    bool is_pin = fr_is_pinned(request, FR_PLAN_TP_OVERLAP);
    bool pin = request->base.is_tp_overlap;
    bool is_there = plan->tp > 1 && plan->is_sequence_parallel;
    if (!is_there || !fr_is_gpu_space(request) || is_pin) {
        fr_push_value(values, is_pin && (is_there || plan->tp > 1) && pin);
        return;
    }
    fr_push_value(values, 0);
    fr_push_value(values, 1);
}

void fr_list_recompute(const fr_plan_space_request *request,
                       const fr_plan *plan, fr_plan_space_values *values)
{
    (void)plan;
    if (fr_push_given(request, FR_SPACE_AXIS_RECOMPUTE, values))
        return;
    for (int i = 0; i < FR_RECOMPUTE_N; i++)
        fr_push_value(values, i);
}

/* On GPUs it is tried off and on where experts lie on several ranks;
 * fr_plan_check() refuses what is illegal. */
void fr_list_ep_overlap(const fr_plan_space_request *request,
                        const fr_plan *plan, fr_plan_space_values *values)
{
    bool is_pin = fr_is_pinned(request, FR_PLAN_EP_OVERLAP);
    bool is_there = plan->ep > 1 && fr_is_gpu_space(request);
    if (!is_there || !is_pin || !request->base.is_ep_overlap)
        fr_push_value(values, 0);
    if (is_there && (!is_pin || request->base.is_ep_overlap))
        fr_push_value(values, 1);
}

/* Precision changes the result, so it is not searched: the plan has what was
 * asked for. */
void fr_list_precision(const fr_plan_space_request *request,
                       const fr_plan *plan, fr_plan_space_values *values)
{
    (void)plan;
    if (!fr_push_given(request, FR_SPACE_AXIS_PRECISION, values))
        fr_push_value(values, (int64_t)request->base.precision);
}
