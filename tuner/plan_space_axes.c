/*
 * plan_space_axes.c: the axes of the space and their values.  What is left out
 * because it cannot win, or cannot differ, is said at each axis.
 */
#include "tuner/plan_space.h"

static void push(fr_plan_space_values *values, int64_t value)
{
    if (values->n < FR_SPACE_VALUES)
        values->at[values->n++] = value;
}

static bool is_pinned(const fr_plan_space_request *request, fr_pin pin)
{
    return (request->pins & (unsigned)pin) != 0;
}

/* The pinned value alone, or divisors of n up to `high`. */
static void push_divisors(int64_t n, int64_t high, fr_plan_space_values *values)
{
    for (int64_t d = 1; d <= n && d <= high; d++)
        if (n % d == 0)
            push(values, d);
}

/* ---- ranks ---------------------------------------------------------------
 * The number of ranks travels in dp until tp and pp have taken theirs. */
static void list_world(const fr_plan_space_request *request,
                       const fr_plan *plan, fr_plan_space_values *values)
{
    const unsigned all = FR_PIN_DP | FR_PIN_TP | FR_PIN_PP;
    (void)plan;
    if (request->world > 0)
        push(values, request->world);
    else if ((request->pins & all) == all)
        push(values,
             (int64_t)request->base.dp * request->base.tp * request->base.pp);
    else
        push_divisors(fr_cluster_slots(request->cluster), INT32_MAX, values);
}

static void set_world(const fr_plan_space_request *request, fr_plan *plan,
                      int64_t value)
{
    (void)request;
    plan->dp = (int32_t)value;
    plan->tp = plan->pp = 1;
}

/* CPU: r ranks on a node share its cores; every r that fills whole nodes. */
static void list_threads(const fr_plan_space_request *request,
                         const fr_plan *plan, fr_plan_space_values *values)
{
    const fr_device_type *device = fr_cluster_device(request->cluster, 0);
    int64_t n_nodes = fr_cluster_n_nodes(request->cluster);
    int64_t world = plan->dp;
    if (is_pinned(request, FR_PIN_THREADS)) {
        push(values, request->base.n_threads);
        return;
    }
    if (device->kind == FR_DEVICE_GPU) {
        push(values, 1);
        return;
    }
    int64_t last = 0;
    for (int64_t r = 1; r <= world; r++) {
        if (world % r != 0 || world / r > n_nodes)
            continue;
        int64_t n_threads = device->n_cores > r ? device->n_cores / r : 1;
        if (n_threads != last)
            push(values, n_threads);
        last = n_threads;
    }
}

static void set_threads(const fr_plan_space_request *request, fr_plan *plan,
                        int64_t value)
{
    (void)request;
    plan->n_threads = (int32_t)value;
}

static void list_tp(const fr_plan_space_request *request, const fr_plan *plan,
                    fr_plan_space_values *values)
{
    if (is_pinned(request, FR_PIN_TP)) {
        if (plan->dp % request->base.tp == 0)
            push(values, request->base.tp);
        return;
    }
    for (int64_t d = 1; d <= plan->dp; d++)
        if (plan->dp % d == 0 && (d == 1 || request->model->n_heads % d == 0))
            push(values, d);
}

static void set_tp(const fr_plan_space_request *request, fr_plan *plan,
                   int64_t value)
{
    (void)request;
    plan->tp = (int32_t)value;
    plan->dp /= plan->tp;
}

static void list_pp(const fr_plan_space_request *request, const fr_plan *plan,
                    fr_plan_space_values *values)
{
    for (int64_t d = 1; d <= plan->dp && d <= request->model->n_layers; d++) {
        if (plan->dp % d != 0)
            continue;
        if (is_pinned(request, FR_PIN_PP) && d != request->base.pp)
            continue;
        if (is_pinned(request, FR_PIN_DP) && plan->dp / d != request->base.dp)
            continue;
        push(values, d);
    }
}

static void set_pp(const fr_plan_space_request *request, fr_plan *plan,
                   int64_t value)
{
    (void)request;
    plan->pp = (int32_t)value;
    plan->dp /= plan->pp;
}

/* ---- pipeline ------------------------------------------------------------
 * Virtual stages only where all get the same number of layers. */
static void list_vpp(const fr_plan_space_request *request, const fr_plan *plan,
                     fr_plan_space_values *values)
{
    if (is_pinned(request, FR_PIN_VPP)) {
        if (plan->pp > 1 || request->base.vpp == 1)
            push(values, request->base.vpp);
        return;
    }
    push(values, 1);
    int64_t n_layers = request->model->n_layers;
    for (int64_t v = 2; plan->pp > 1 && v * plan->pp <= n_layers; v++)
        if (n_layers % (v * plan->pp) == 0)
            push(values, v);
}

static void set_vpp(const fr_plan_space_request *request, fr_plan *plan,
                    int64_t value)
{
    (void)request;
    plan->vpp = (int32_t)value;
}

static void list_micro_batch(const fr_plan_space_request *request,
                             const fr_plan *plan, fr_plan_space_values *values)
{
    if (is_pinned(request, FR_PIN_MICRO_BATCH))
        push(values, request->base.micro_batch);
    else if (request->job->global_batch % plan->dp == 0)
        push_divisors(request->job->global_batch / plan->dp, INT32_MAX, values);
}

static void set_micro_batch(const fr_plan_space_request *request, fr_plan *plan,
                            int64_t value)
{
    (void)request;
    plan->micro_batch = value;
}

/* Without a pipeline, or with one micro-batch, all schedules are the same. */
static void list_schedule(const fr_plan_space_request *request,
                          const fr_plan *plan, fr_plan_space_values *values)
{
    bool is_pin = is_pinned(request, FR_PIN_SCHEDULE);
    int64_t pin = (int64_t)request->base.schedule;
    if (plan->vpp > 1) {
        if (!is_pin || pin == FR_SCHEDULE_INTERLEAVED)
            push(values, FR_SCHEDULE_INTERLEAVED);
        return;
    }
    if (plan->pp > 1 && is_pin) {
        if (pin != FR_SCHEDULE_INTERLEAVED)
            push(values, pin);
        return;
    }
    push(values, FR_SCHEDULE_1F1B);
    if (plan->pp > 1 && fr_plan_micro_batches(plan, request->job) > 1)
        push(values, FR_SCHEDULE_GPIPE);
}

static void set_schedule(const fr_plan_space_request *request, fr_plan *plan,
                         int64_t value)
{
    (void)request;
    plan->schedule = (fr_schedule_kind)value;
}

/*
 * Uneven splits pay because the first stage has the embedding and the last
 * one the head.  Value 0 is the even split; others take `a` layers from the
 * first and `b` from the last stage, and spread them over the stages between
 * (two stages: over the other one); coded as 1 + (a + 8) * 17 + (b + 8).
 */
enum { SPLIT_MOVE = 8, SPLIT_RADIX = 2 * SPLIT_MOVE + 1, SPLIT_MANY = 3 };

static int64_t split_code(int64_t a, int64_t b)
{
    return 1 + (a + SPLIT_MOVE) * SPLIT_RADIX + b + SPLIT_MOVE;
}

static void list_split(const fr_plan_space_request *request,
                       const fr_plan *plan, fr_plan_space_values *values)
{
    push(values, 0);
    if (plan->pp == 1 || plan->vpp > 1 || is_pinned(request, FR_PIN_SPLIT))
        return;
    int64_t base = request->model->n_layers / plan->pp;
    int64_t n_first = fr_plan_stage_layers(plan, request->model, 0);
    int64_t n_last = fr_plan_stage_layers(plan, request->model, plan->pp - 1);
    if (plan->pp == 2) {
        for (int64_t a = -SPLIT_MOVE; a <= SPLIT_MOVE; a++)
            if (a != 0 && n_first - a >= 1 && n_last + a >= 1)
                push(values, split_code(a, -a));
        return;
    }
    for (int64_t a = 0; a <= SPLIT_MANY; a++)
        for (int64_t b = 0; b <= SPLIT_MANY; b++)
            if (a + b > 0 && a < base && b < base)
                push(values, split_code(a, b));
}

static void set_split(const fr_plan_space_request *request, fr_plan *plan,
                      int64_t value)
{
    if (is_pinned(request, FR_PIN_SPLIT))
        return; /* it stands in the base plan */
    plan->n_split = 0;
    if (value == 0)
        return;
    int64_t a = (value - 1) / SPLIT_RADIX - SPLIT_MOVE;
    int64_t b = (value - 1) % SPLIT_RADIX - SPLIT_MOVE;
    int32_t last = plan->pp - 1;
    for (int32_t i = 0; i <= last; i++)
        plan->layer_split[i] = fr_plan_stage_layers(plan, request->model, i);
    plan->layer_split[0] -= (int32_t)a;
    plan->layer_split[last] -= (int32_t)b;
    int64_t n_over = last > 1 ? a + b : 0;
    for (int32_t i = 0; n_over > 0; i = (i + 1) % (last - 1), n_over--)
        plan->layer_split[1 + i]++;
    plan->n_split = plan->pp;
}

/* ---- memory -------------------------------------------------------------- */
static void list_recompute(const fr_plan_space_request *request,
                           const fr_plan *plan, fr_plan_space_values *values)
{
    (void)plan;
    if (is_pinned(request, FR_PIN_RECOMPUTE)) {
        push(values, (int64_t)request->base.recompute);
        return;
    }
    for (int i = 0; i < FR_RECOMPUTE_N; i++)
        push(values, i);
}

static void set_recompute(const fr_plan_space_request *request, fr_plan *plan,
                          int64_t value)
{
    (void)request;
    plan->recompute = (fr_recompute)value;
}

static void list_sequence_parallel(const fr_plan_space_request *request,
                                   const fr_plan *plan,
                                   fr_plan_space_values *values)
{
    bool is_pin = is_pinned(request, FR_PIN_SEQUENCE_PARALLEL);
    bool pin = request->base.is_sequence_parallel;
    if (!is_pin || !pin || plan->tp == 1)
        push(values, 0);
    if (plan->tp > 1 && (!is_pin || pin))
        push(values, 1);
}

static void set_sequence_parallel(const fr_plan_space_request *request,
                                  fr_plan *plan, int64_t value)
{
    (void)request;
    plan->is_sequence_parallel = value != 0;
}

static void list_zero(const fr_plan_space_request *request, const fr_plan *plan,
                      fr_plan_space_values *values)
{
    if (plan->dp == 1) {
        push(values, 0);
    } else if (is_pinned(request, FR_PIN_ZERO)) {
        push(values, request->base.zero_stage);
    } else {
        push(values, 0);
        push(values, 1);
    }
}

static void set_zero(const fr_plan_space_request *request, fr_plan *plan,
                     int64_t value)
{
    (void)request;
    plan->zero_stage = (int32_t)value;
}

/* ---- gradients ----------------------------------------------------------- */
static void list_compressor(const fr_plan_space_request *request,
                            const fr_plan *plan, fr_plan_space_values *values)
{
    if (plan->dp == 1) {
        push(values, FR_COMPRESSOR_NONE);
        return;
    }
    if (is_pinned(request, FR_PIN_COMPRESSOR)) {
        push(values, (int64_t)request->base.compressor);
        return;
    }
    push(values, FR_COMPRESSOR_NONE);
    for (int i = 1; request->allow_lossy && i < FR_COMPRESSOR_N; i++)
        if (plan->zero_stage == 0 || i == FR_COMPRESSOR_BF16)
            push(values, i);
}

static void set_compressor(const fr_plan_space_request *request, fr_plan *plan,
                           int64_t value)
{
    (void)request;
    plan->compressor = (fr_compressor_kind)value;
}

/* Gradient bytes of one rank, near enough to leave out useless buckets. */
static uint64_t gradient_bytes(const fr_plan_space_request *request,
                               const fr_plan *plan)
{
    uint64_t n_parameters = fr_model_parameters(request->model);
    return 4 * n_parameters / (uint64_t)(plan->tp * plan->pp);
}

static const uint64_t bucket_bytes[] = {1000000, 4000000, 25000000, 100000000};
enum { N_BUCKETS = sizeof bucket_bytes / sizeof bucket_bytes[0] };

/* One bucket is complete only when backward ends: nothing to overlap. */
static void list_overlap(const fr_plan_space_request *request,
                         const fr_plan *plan, fr_plan_space_values *values)
{
    bool can_split = bucket_bytes[0] < gradient_bytes(request, plan);
    if (plan->dp == 1) {
        push(values, 1); /* the default, so that names stay short */
    } else if (is_pinned(request, FR_PIN_OVERLAP)) {
        push(values, request->base.is_overlap);
    } else {
        if (can_split || is_pinned(request, FR_PIN_BUCKET))
            push(values, 1);
        push(values, 0);
    }
}

static void set_overlap(const fr_plan_space_request *request, fr_plan *plan,
                        int64_t value)
{
    (void)request;
    plan->is_overlap = value != 0;
}

static void list_bucket(const fr_plan_space_request *request,
                        const fr_plan *plan, fr_plan_space_values *values)
{
    if (plan->dp == 1 || is_pinned(request, FR_PIN_BUCKET)) {
        push(values, (int64_t)request->base.bucket_bytes);
        return;
    }
    if (!plan->is_overlap) {
        push(values, 0);
        return;
    }
    uint64_t all_bytes = gradient_bytes(request, plan);
    for (int i = 0; i < N_BUCKETS; i++)
        if (i == 0 || bucket_bytes[i] < all_bytes)
            push(values, (int64_t)bucket_bytes[i]);
}

static void set_bucket(const fr_plan_space_request *request, fr_plan *plan,
                       int64_t value)
{
    (void)request;
    plan->bucket_bytes = (uint64_t)value;
}

/* ---- placement -----------------------------------------------------------
 * On one node every order is the same; else orders that differ only in axes
 * of size one are. */
static void list_rank_order(const fr_plan_space_request *request,
                            const fr_plan *plan, fr_plan_space_values *values)
{
    if (is_pinned(request, FR_PIN_RANK_ORDER)) {
        push(values, (int64_t)request->base.rank_order);
        return;
    }
    push(values, FR_RANK_ORDER_TP_DP_PP);
    int n_wide = (plan->tp > 1) + (plan->dp > 1) + (plan->pp > 1);
    if (fr_cluster_n_nodes(request->cluster) == 1 || n_wide < 2)
        return;
    if (n_wide == 3) {
        for (int i = 1; i < FR_RANK_ORDER_N; i++)
            push(values, i);
        return;
    }
    /* the other order of the two wide axes */
    push(values, plan->tp == 1   ? FR_RANK_ORDER_TP_PP_DP
                 : plan->dp == 1 ? FR_RANK_ORDER_PP_TP_DP
                                 : FR_RANK_ORDER_DP_TP_PP);
}

static void set_rank_order(const fr_plan_space_request *request, fr_plan *plan,
                           int64_t value)
{
    (void)request;
    plan->rank_order = (fr_rank_order)value;
}

/* As asked for: programs compute in f32 only. */
static void list_precision(const fr_plan_space_request *request,
                           const fr_plan *plan, fr_plan_space_values *values)
{
    (void)plan;
    push(values, (int64_t)request->base.precision);
}

static void set_precision(const fr_plan_space_request *request, fr_plan *plan,
                          int64_t value)
{
    (void)request;
    plan->precision = (fr_dtype)value;
}

const fr_plan_space_axis_row fr_plan_space_axes[FR_SPACE_AXIS_N] = {
    [FR_SPACE_AXIS_WORLD] = {"world", list_world, set_world},
    [FR_SPACE_AXIS_THREADS] = {"threads", list_threads, set_threads},
    [FR_SPACE_AXIS_TP] = {"tp", list_tp, set_tp},
    [FR_SPACE_AXIS_PP] = {"pp", list_pp, set_pp},
    [FR_SPACE_AXIS_VPP] = {"vpp", list_vpp, set_vpp},
    [FR_SPACE_AXIS_MICRO_BATCH] = {"micro-batch", list_micro_batch,
                                   set_micro_batch},
    [FR_SPACE_AXIS_SCHEDULE] = {"schedule", list_schedule, set_schedule},
    [FR_SPACE_AXIS_SPLIT] = {"layer-split", list_split, set_split},
    [FR_SPACE_AXIS_RECOMPUTE] = {"recompute", list_recompute, set_recompute},
    [FR_SPACE_AXIS_SEQUENCE_PARALLEL] = {"sequence-parallel",
                                         list_sequence_parallel,
                                         set_sequence_parallel},
    [FR_SPACE_AXIS_ZERO] = {"zero", list_zero, set_zero},
    [FR_SPACE_AXIS_COMPRESSOR] = {"compress", list_compressor, set_compressor},
    [FR_SPACE_AXIS_OVERLAP] = {"overlap", list_overlap, set_overlap},
    [FR_SPACE_AXIS_BUCKET] = {"bucket", list_bucket, set_bucket},
    [FR_SPACE_AXIS_RANK_ORDER] = {"rank-order", list_rank_order,
                                  set_rank_order},
    [FR_SPACE_AXIS_PRECISION] = {"precision", list_precision, set_precision},
};
