/*
 * estimate_memory.c: what a rank holds: about, and at least.
 *
 * At least: the device is never seen with less than is live at one instant of
 * the program, and every term below is live when the first backward of a rank
 * begins, in the replay that fr_predict_memory() makes:
 *
 *   - parameters and optimizer state (and gradients, but with ZeRO 2 and 3)
 *     are there all the time;
 *   - no micro-batch has been backward yet, so what forward keeps of all that
 *     a schedule runs before its first backward is there: min(m, p - s) of
 *     1F1B and ZB-H1, m of GPipe, and of schedules with chunks as many
 *     (chunk, micro-batch) pairs as peak_live_micro() says, each no smaller
 *     than the smallest chunk;
 *   - the last layer's backward needs its scratch, at one of its calls, and
 *     with ZeRO 3 its weights (or all, where they stay gathered);
 *   - the workspaces of libraries are allocated before the first step, and the
 *     driver's context and NCCL's buffers stand beside that.
 *
 * Split backwards also hold what waits for its weights' part, between any two
 * passes of the schedule (estimate_pending.c); then no weights need be
 * gathered.
 *
 * With ZeRO 2 and 3 a later time may need more: that of the same backward of
 * a later micro-batch, when gradients of every layer are there.
 *
 * An allocator rounds up and keeps more, so allocated <= reserved only adds.
 * Own shards of ranges are rounded down, once for each unit of parameters.
 */
#include "cost_models/gpu/gpu_memory.h"
#include "cost_models/gpu/gpu_price.h"
#include "plan/schedule/schedule.h"
#include "sim/bound/estimate_state.h"

uint64_t est_live_pairs(const fr_plan *plan, int64_t n_micro, int32_t s)
{
    const fr_schedule *schedule = fr_schedules[plan->schedule];
    return (uint64_t)(schedule->live_at_backward != NULL
                          ? schedule->live_at_backward(s, plan->pp, n_micro)
                          : schedule->peak_live_micro(s, plan->pp, n_micro,
                                                      plan->vpp));
}

static uint64_t live_pairs(const est_plan *x, const est_stage *stage)
{
    return est_live_pairs(x->plan, x->n_micro, stage->rank);
}

/* Elements of the own shards, at least. */
static uint64_t own_at_least(const est_plan *x, const est_stage *stage)
{
    uint64_t n = fr_sharding_own(&x->sharding, stage->n_dense, stage->n_expert);
    uint64_t n_units = 2 * (uint64_t)stage->n_layers + 2;
    if (x->sharding.n_shards[0] == 1 && x->sharding.n_shards[1] == 1)
        return n;
    return n > n_units ? n - n_units : 0;
}

static uint64_t more(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t fewer(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Pairs that are live at a backward of the last layer before which every layer
 * has been backward, and after which each is again; 0: there is none. */
static uint64_t later_pairs(const est_plan *x, const est_stage *stage)
{
    const uint64_t m = (uint64_t)x->n_micro, p = (uint64_t)x->pp;
    const uint64_t v = (uint64_t)x->vpp;
    const uint64_t n_before = v == 1 ? 1 : x->is_v ? 2 * p : p;
    return m > n_before ? fewer(live_pairs(x, stage), v * (m - n_before)) : 0;
}

/* Gradients of ZeRO 2 and 3 once every layer has been backward: with a
 * pipeline they add up whole until the last micro-batch. */
static uint64_t later_gradients(const est_plan *x, const est_stage *stage)
{
    uint64_t n =
        x->pp > 1 ? stage->n_dense + stage->n_expert : own_at_least(x, stage);
    return x->sharding.is_by_unit ? n * fr_dtype_bytes(x->plan->grad_dtype) : 0;
}

uint64_t est_gathered_at_least(const est_plan *x, const est_stage *stage)
{
    const fr_plan *plan = x->plan;
    if (plan->zero_stage != 3)
        return 0;
    uint64_t n = plan->is_resharded ? stage->n_last_layer
                                    : stage->n_dense + stage->n_expert;
    return n * fr_dtype_bytes(x->sharding.weight_dtype);
}

uint64_t est_states_at_least(const est_plan *x, const est_stage *stage)
{
    fr_state_bytes bytes = fr_sharding_state(&x->sharding, x->e->job->optimizer,
                                             stage->n_dense + stage->n_expert,
                                             own_at_least(x, stage));
    if (x->sharding.is_by_unit)
        bytes.gradients = 0;
    return fr_sharding_resident(&x->sharding, &bytes);
}

static uint64_t least_of(const est_plan *x, const est_stage *stage)
{
    const est_layers *l = stage->layers;
    uint64_t kept = stage->chunk_bytes;
    /* The output of a stage's last layer is sent away. */
    if (stage->has_embed && !stage->has_head)
        kept -= kept < l->stream_bytes ? kept : l->stream_bytes;
    uint64_t first = kept * live_pairs(x, stage);
    uint64_t n_later = later_pairs(x, stage);
    uint64_t later =
        n_later > 0 ? kept * n_later + later_gradients(x, stage) : 0;
    /* The first part of a split backward may do with less. */
    uint64_t scratch = x->is_split ? 0 : stage->scratch_bytes;
    uint64_t in_backward =
        est_gathered_at_least(x, stage) + scratch + more(first, later);
    const uint64_t pending = stage->pending_bytes;
    const uint64_t gradients = later_gradients(x, stage);
    uint64_t between = more(
        est_occupancy_bytes(stage->occupancy, kept, pending, gradients),
        est_occupancy_bytes(stage->last_occupancy, kept, pending, gradients));
    return est_states_at_least(x, stage) + more(in_backward, between);
}

static uint64_t about(const est_plan *x, const est_stage *stage)
{
    const fr_plan *plan = x->plan;
    const fr_schedule *schedule = fr_schedules[plan->schedule];
    const fr_sharding *sharding = &x->sharding;
    uint64_t n = stage->n_dense + stage->n_expert;
    uint64_t layers = stage->n_layers > 1 ? (uint64_t)stage->n_layers : 1;
    const fr_state_bytes state = fr_sharding_state(
        sharding, x->e->job->optimizer, n,
        fr_sharding_own(sharding, stage->n_dense, stage->n_expert));
    uint64_t bytes = state.parameters + state.gradients + state.optimizer;
    if (sharding->is_by_unit)
        bytes += 2 * n / layers * fr_dtype_bytes(sharding->grad_dtype);
    if (sharding->is_gathered)
        bytes += (uint64_t)(plan->n_prefetch + 1) * n / layers *
                 fr_dtype_bytes(sharding->weight_dtype);
    int64_t live =
        schedule->peak_live_micro(stage->rank, x->pp, x->n_micro, x->vpp);
    uint64_t passes = stage->kept_bytes * (uint64_t)live / (uint64_t)x->vpp;
    passes = more(passes,
                  est_occupancy_bytes(stage->last_occupancy, stage->chunk_bytes,
                                      stage->pending_bytes, 0));
    return bytes + passes + stage->layers->scratch_bytes;
}

/* Beside what the program has, at least: stages are kept for all of ZeRO. */
uint64_t est_overhead(const est_plan *x, const fr_device_type *device)
{
    fr_gpu_memory memory = fr_gpu_memory_least(x->plan, device);
    fr_gpu_workspaces spaces =
        fr_gpu_workspaces_of(x->plan, x->e->model, device);
    uint64_t bytes = memory.context_bytes + memory.nccl_bytes;
    fr_own_memory own;
    for (int i = 0; i < spaces.n; i++)
        bytes += spaces.n_bytes[i];
    /* Measured of forerun's own runtime: at least what one rank has. */
    if (fr_gpu_prices_own_memory(fr_cost_gpu_prices(x->e->costs), x->plan,
                                 x->layout->places[0].node, &own) &&
        own.alone_bytes < bytes)
        return own.alone_bytes;
    return bytes;
}

void est_memory(const est_plan *x, fr_estimate *out)
{
    const fr_cluster *cluster = x->e->cluster;
    const est_ranks *ranks = &x->ranks[0];
    out->peak_bytes = out->least_bytes = out->capacity_bytes = 0;
    for (int32_t i = 0; i < ranks->n; i++) {
        /* The first of them; those that come later keep no more. */
        const est_stage *stage = &ranks->at[i];
        const fr_device_type *device =
            fr_cluster_device(cluster, stage->place->node);
        uint64_t bytes = about(x, stage);
        out->peak_bytes = bytes > out->peak_bytes ? bytes : out->peak_bytes;
        bytes = least_of(x, stage) + stage->overhead_bytes;
        if (i > 0 && (int64_t)(device->memory_bytes - bytes) >=
                         (int64_t)(out->capacity_bytes - out->least_bytes))
            continue;
        out->least_bytes = bytes;
        out->capacity_bytes = device->memory_bytes;
    }
}

void est_memory_first(const est_plan *x, fr_estimate *out)
{
    const fr_device_type *device =
        fr_cluster_device(x->e->cluster, x->first.place->node);
    out->least_bytes = least_of(x, &x->first) + x->first.overhead_bytes;
    out->capacity_bytes = device->memory_bytes;
}
