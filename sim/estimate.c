/*
 * estimate.c: closed forms over what layers take.
 *
 * Of pipeline rank s, of one micro-batch: forward f_s, backward b_s (of
 * inputs where the schedule splits it), weights w_s; c_s to send to the next
 * rank; m micro-batches, p ranks, v chunks.
 *
 *   begin_s = sum over r < s of (f_r of chunk 0 + c_r), from where rank 0's
 *             gradients are zero
 *   back_s  = end of the last backward of chunk 0, at least
 *             max(begin_s + m (f_s + b_s),
 *                 back_(s+1) + c_s + b_s of chunk 0,
 *                 begin_s + ceil(m / k) turn_s)
 *
 * The last line holds for 1F1B and ZB-H1: rank s has k = p - s micro-batches
 * under way, and forward i + k waits for backward i, which has been to the
 * last rank and back: turn_s = sum over r >= s of (f_r + b_r) + 2 c_r.  So
 * in the long run a micro-batch takes max_s (f_s + b_s, turn_s / k): the
 * estimate is turn_0 + (m - 1) times that.
 *
 * Gradients: what is reduced beside backward begins at the earliest when the
 * last micro-batch has left the first bucket's layers and takes the sum of
 * all; its last bucket follows the last backward.  Then all stages meet for
 * the norm of the gradients, and take the optimizer's step.
 */
#include "sim/estimate.h"

#include "plan/optimizer.h"
#include "plan/schedule.h"
#include "sim/estimate_state.h"

#include <string.h>

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- passes ------------------------------------------------------------- */

/* What is summed over chunks; all else is set. */
static void clear(const est_plan *x, est_stage *stage)
{
    stage->times = &stage->layers->times[x->is_likely];
    stage->forward_ps = stage->backward_ps = stage->weights_ps = 0;
    stage->n_dense = stage->n_expert = stage->kept_bytes = 0;
    stage->n_layers = 0;
    stage->has_embed = stage->has_head = false;
}

/* Layers [first, end) of a chunk, those before `cut` are made again. */
static void add_chunk(est_stage *stage, int32_t first, int32_t end, int32_t cut,
                      int32_t chunk)
{
    const est_layers *l = stage->layers;
    const est_times *t = stage->times;
    int64_t forward = t->forward_ps[end] - t->forward_ps[first];
    int64_t backward = t->backward_ps[end] - t->backward_ps[first] +
                       t->remake_ps[cut] - t->remake_ps[first];
    stage->weights_ps += t->weights_ps[end] - t->weights_ps[first];
    stage->kept_bytes += l->kept_bytes[cut] - l->kept_bytes[first] +
                         l->plain_bytes[end] - l->plain_bytes[cut];
    stage->n_dense += l->n_dense[end] - l->n_dense[first];
    stage->n_expert += l->n_expert[end] - l->n_expert[first];
    stage->n_layers += end - first;
    stage->forward_ps += forward;
    stage->backward_ps += backward;
    stage->last_forward_ps = forward;
    stage->last_backward_ps = backward;
    if (chunk > 0)
        return;
    stage->first_forward_ps = forward;
    stage->first_backward_ps = backward;
    stage->early_ps = cut == end && end > first
                          ? t->remake_ps[end] - t->remake_ps[end - 1]
                          : 0;
    stage->first_layer = first;
    stage->end_layer = end;
}

static void add_ends(est_plan *x)
{
    const fr_schedule *schedule = fr_schedules[x->plan->schedule];
    int32_t last = fr_schedule_rank(schedule, x->pp * x->vpp - 1, x->pp);
    est_stage *first = &x->stages[0], *end = &x->stages[last];
    const est_times *l = first->times;
    first->has_embed = end->has_head = true;
    first->forward_ps += l->embed_ps;
    first->first_forward_ps += l->embed_ps;
    first->backward_ps += l->embed_back_ps;
    first->first_backward_ps += l->embed_back_ps;
    if (x->vpp == 1) {
        first->last_forward_ps += l->embed_ps;
        first->last_backward_ps += l->embed_back_ps;
    }
    first->n_dense += first->layers->n_embed;
    end->backward_ps += end->times->head_ps;
    end->last_backward_ps += end->times->head_ps;
    if (x->vpp == 1)
        end->first_backward_ps += end->times->head_ps;
    end->n_dense += end->layers->n_final;
}

/* The price of what rank s sends to the next one. */
static fr_status price_hop(est_plan *x, const est_layout *layout, int32_t s,
                           fr_err *err)
{
    est_stage *stage = &x->stages[s];
    const est_stage *before = s > 0 ? stage - 1 : NULL;
    const fr_comm_scope *hop = &layout->hop[s];
    uint64_t bytes = stage->layers->stream_bytes;
    if (before && before->layers == stage->layers &&
        memcmp(hop, &layout->hop[s - 1], sizeof *hop) == 0) {
        stage->hop_ps = before->hop_ps;
        return FR_OK;
    }
    if (x->e->model->kind == FR_MODEL_LAYERS) {
        stage->hop_ps = 0; /* each boundary has its own size */
        return FR_OK;
    }
    return est_send(x->e, hop, stage->place, x->weight_dtype,
                    bytes / fr_dtype_bytes(x->weight_dtype), &stage->hop_ps,
                    err);
}

/* Where each stage sits, what its layers are, and which. */
static fr_status find_layers(est_plan *x, fr_err *err)
{
    const int32_t n_stages = x->pp * x->vpp;
    int32_t layer = 0;
    FR_TRY(est_layout_find(x->e, x->plan, &x->layout, err));
    for (int32_t s = 0; s < x->pp; s++) {
        est_stage *stage = &x->stages[s];
        stage->place = &x->layout->places[s];
        if (s > 0 && stage->place->layer_key == stage[-1].place->layer_key)
            stage->layers = stage[-1].layers;
        else
            FR_TRY(est_layers_find(x->e, x->plan, stage->place, &stage->layers,
                                   err));
    }
    for (int32_t i = 0; i < n_stages; i++) {
        x->first_layer[i] = layer;
        layer += fr_plan_stage_layers(x->plan, x->e->model, i);
    }
    x->first_layer[n_stages] = x->e->n_layers;
    return FR_OK;
}

/* The first layer of a chunk that is not made again. */
static int32_t first_plain(const fr_plan *plan, int32_t first, int32_t end)
{
    if (plan->recompute != FR_RECOMPUTE_FULL)
        return first;
    return plan->recompute_layers == 0 || plan->recompute_layers > end - first
               ? end
               : first + plan->recompute_layers;
}

/* Is a stage's update that of the one before? */
static bool is_alike(const est_stage *a, const est_stage *b)
{
    return a->place->key == b->place->key && a->layers == b->layers &&
           a->layers->is_uniform && a->n_layers == b->n_layers &&
           a->has_embed == b->has_embed && a->has_head == b->has_head;
}

static fr_status find_stages(est_plan *x, fr_err *err)
{
    const fr_plan *plan = x->plan;
    const fr_schedule *schedule = fr_schedules[plan->schedule];
    for (int32_t s = 0; s < x->pp; s++)
        clear(x, &x->stages[s]);
    for (int32_t i = 0; i < x->pp * x->vpp; i++) {
        int32_t first = x->first_layer[i], end = x->first_layer[i + 1];
        add_chunk(&x->stages[fr_schedule_rank(schedule, i, x->pp)], first, end,
                  first_plain(plan, first, end), i / x->pp);
    }
    add_ends(x);
    for (int32_t s = 0; s < x->pp; s++) {
        est_stage *stage = &x->stages[s];
        if (x->pp > 1)
            FR_TRY(price_hop(x, x->layout, s, err));
        if (s > 0 && is_alike(stage, stage - 1))
            stage->update = stage[-1].update;
        else
            FR_TRY(est_update_find(x, stage, err));
        stage->begin_ps = stage->update.zero_ps;
        if (s > 0)
            stage->begin_ps =
                most(stage->begin_ps, stage[-1].begin_ps +
                                          stage[-1].first_forward_ps +
                                          stage[-1].hop_ps);
    }
    return FR_OK;
}

/* ---- the pipeline ------------------------------------------------------- */

/* The longest that a micro-batch takes in the long run, and a turn of one
 * from rank 0 to the last and back. */
static int64_t turns(est_plan *x, int64_t *period_ps)
{
    const int64_t m = x->n_micro;
    const bool is_1f1b = x->plan->schedule == FR_SCHEDULE_1F1B ||
                         x->plan->schedule == FR_SCHEDULE_ZB_H1;
    int64_t turn_ps = 0, forward_ps = 0, backward_ps = 0;
    *period_ps = 0;
    for (int32_t s = x->pp; s-- > 0;) {
        est_stage *stage = &x->stages[s];
        int64_t k = least(x->pp - s, m);
        int64_t pass_ps = stage->forward_ps + stage->backward_ps;
        turn_ps += pass_ps;
        if (s < x->pp - 1)
            turn_ps += 2 * stage->hop_ps - stage->early_ps;
        forward_ps = most(forward_ps, stage->forward_ps);
        backward_ps = most(backward_ps, stage->backward_ps);
        if (!is_1f1b)
            continue;
        stage->back_ps =
            most(stage->back_ps, stage->begin_ps + (m + k - 1) / k * turn_ps);
        *period_ps = most(*period_ps, most(pass_ps, turn_ps / k));
    }
    if (x->plan->schedule == FR_SCHEDULE_GPIPE)
        *period_ps = forward_ps + backward_ps;
    return turn_ps;
}

static void find_ends(est_plan *x)
{
    const int64_t m = x->n_micro;
    int64_t period_ps, tail_ps = 0, turn_ps;
    for (int32_t s = 0; s < x->pp; s++) {
        est_stage *stage = &x->stages[s];
        int64_t backward_ps =
            x->is_v ? stage->first_backward_ps : stage->backward_ps;
        stage->back_ps =
            stage->begin_ps + m * (stage->forward_ps + backward_ps);
        if (x->plan->schedule == FR_SCHEDULE_ZB_H1)
            stage->back_ps += most(0, m - 1 - s) * stage->weights_ps;
    }
    turn_ps = turns(x, &period_ps);
    for (int32_t s = x->pp; s-- > 0;) {
        est_stage *stage = &x->stages[s];
        if (s < x->pp - 1)
            stage->back_ps = most(
                stage->back_ps, stage[1].back_ps + stage->hop_ps +
                                    stage->first_backward_ps - stage->early_ps);
        int64_t rest_ps = x->plan->schedule == FR_SCHEDULE_ZB_H1
                              ? least(m, s + 1) * stage->weights_ps
                              : 0;
        stage->end_ps =
            most(stage->back_ps + rest_ps,
                 stage->begin_ps + m * (stage->forward_ps + stage->backward_ps +
                                        stage->weights_ps));
    }
    bool is_known = x->is_likely && period_ps > 0 && !x->is_split;
    for (int32_t s = 0; is_known && s < x->pp; s++) {
        est_stage *stage = &x->stages[s];
        stage->back_ps =
            most(stage->back_ps, x->stages[0].begin_ps + turn_ps +
                                     (m - 1) * period_ps - tail_ps);
        stage->end_ps = most(stage->back_ps, stage->end_ps);
        tail_ps += stage->first_backward_ps + stage->hop_ps;
    }
}

/* ---- after the passes --------------------------------------------------- */

/* Backward of the last micro-batch after the first bucket is complete, at
 * most. */
static int64_t after_first_bucket(const est_plan *x, const est_stage *stage,
                                  const est_update *update)
{
    const est_layers *l = stage->layers;
    const est_times *t = stage->times;
    if (x->plan->bucket_bytes == 0 && !x->is_by_unit && stage->n_expert == 0)
        return 0;
    if (x->vpp > 1)
        return x->pp * (stage->backward_ps - stage->last_backward_ps) +
               stage->last_backward_ps;
    int64_t done_ps = 0;
    int32_t i = stage->end_layer;
    uint64_t n = stage->has_head ? l->n_final : 0;
    if (stage->n_expert > 0)
        return stage->backward_ps;
    while (i > stage->first_layer && n < update->n_first) {
        n += l->n_dense[i] - l->n_dense[i - 1];
        done_ps += t->backward_ps[i] - t->backward_ps[i - 1];
        i--;
    }
    return most(0, stage->backward_ps - done_ps);
}

/* When the gradients are summed. */
static int64_t reduced_at(const est_plan *x, const est_stage *stage,
                          const est_update *update)
{
    const fr_plan *plan = x->plan;
    const int64_t m = x->n_micro;
    bool is_each = x->is_by_unit && x->pp == 1; /* after each micro-batch */
    int64_t all_ps = update->reduce_ps, start_ps;
    /* The embedding's gradients come with those of inputs. */
    bool is_embed_last = stage->has_embed && !x->is_split;
    int64_t last_ps =
        is_embed_last || !stage->has_embed ? update->last_reduce_ps : 0;
    if (!plan->is_overlap)
        return stage->end_ps + (is_each ? m : 1) * all_ps;
    if (x->is_split) /* last of all come weights */
        start_ps = x->is_v ? stage->begin_ps + stage->forward_ps
                           : stage->back_ps - stage->backward_ps;
    else if (x->vpp > 1)
        start_ps = stage->begin_ps +
                   m * (stage->forward_ps + stage->backward_ps) -
                   after_first_bucket(x, stage, update);
    else
        start_ps = stage->back_ps - after_first_bucket(x, stage, update);
    int64_t end_ps = most(stage->end_ps + last_ps, start_ps + all_ps);
    if (is_each)
        end_ps = most(end_ps, stage->forward_ps + m * all_ps);
    return end_ps;
}

/* When lane GATHER and what waits for its last gather are over. */
static int64_t gathered_at(const est_plan *x, const est_stage *stage,
                           const est_update *update)
{
    const fr_plan *plan = x->plan;
    const int64_t m = x->n_micro, all_ps = update->gather_ps;
    if (all_ps == 0)
        return 0;
    if (plan->zero_stage == 3) {
        /* Each layer twice in a micro-batch, but where it is still there. */
        bool is_kept = !plan->is_resharded;
        int64_t n_rounds = is_kept && x->pp > 1 ? 1 : m;
        int64_t reach_ps =
            (plan->n_prefetch + 1) * x->vpp * update->long_gather_ps;
        int64_t round_ps = is_kept || x->is_split
                               ? all_ps
                               : most(all_ps, 2 * all_ps - reach_ps);
        return n_rounds * round_ps;
    }
    int64_t before_ps = x->pp * (stage->forward_ps - stage->last_forward_ps) +
                        stage->last_forward_ps;
    int64_t passes_ps =
        m * (stage->forward_ps + stage->backward_ps + stage->weights_ps);
    return all_ps + most(0, passes_ps - before_ps);
}

/* When the squares of the own gradients are summed.  Those of a bucket wait
 * for its own sum only. */
static int64_t ready_at(const est_plan *x, const est_stage *stage,
                        const est_update *update)
{
    int64_t reduced_ps = reduced_at(x, stage, update);
    int64_t gathered_ps = gathered_at(x, stage, update);
    if (!x->plan->is_overlap)
        reduced_ps += update->norm_ps;
    else
        reduced_ps = most(reduced_ps + update->last_norm_ps,
                          stage->end_ps + update->norm_ps);
    return most(reduced_ps, gathered_ps + update->last_norm_ps);
}

/* Everybody meets for the norm and the loss. */
static fr_status meeting(est_plan *x, int64_t *out_ps, fr_err *err)
{
    const fr_plan *plan = x->plan;
    bool is_spread = plan->zero_stage > 0 || plan->ep > 1;
    int64_t norm_ps = 0;
    FR_TRY(est_collective(x->e, plan, x->stages[0].place,
                          &(est_move){FR_LANE_COMPUTE, FR_OP_ALL_REDUCE,
                                      FR_AXIS_WORLD, FR_DTYPE_F64, 1},
                          out_ps, err));
    if (x->e->job->clip_norm > 0)
        FR_TRY(est_collective(
            x->e, plan, x->stages[0].place,
            &(est_move){FR_LANE_COMPUTE, FR_OP_ALL_REDUCE,
                        is_spread ? FR_AXIS_WORLD : FR_AXIS_MODEL, FR_DTYPE_F64,
                        1},
            &norm_ps, err));
    *out_ps += norm_ps;
    return FR_OK;
}

/* The whole step, in seconds. */
static double total(est_plan *x)
{
    int64_t reduced_ps = 0, step_ps = 0, all_ps = 0;
    for (int32_t s = 0; s < x->pp; s++) {
        const est_stage *stage = &x->stages[s];
        const est_update *update = &stage->update;
        int64_t ready_ps = ready_at(x, stage, update);
        reduced_ps = most(reduced_ps, ready_ps);
        step_ps = most(step_ps, update->step_ps);
        all_ps = most(all_ps, ready_ps + x->meeting_ps + update->step_ps);
    }
    if (x->e->job->clip_norm > 0)
        all_ps = most(all_ps, reduced_ps + x->meeting_ps + step_ps);
    return 1e-12 * (double)all_ps;
}

/* Are the stages about as they are at least? */
static bool is_same_twice(const est_plan *x)
{
    bool is_same = x->pp == 1 || !x->e->model->is_tied;
    for (int32_t s = 0; s < x->pp; s++)
        is_same = is_same && x->stages[s].layers->is_exact;
    return is_same;
}

/* ---- memory ------------------------------------------------------------- */

static uint64_t peak_of(const est_plan *x, int32_t s)
{
    const fr_plan *plan = x->plan;
    const est_stage *stage = &x->stages[s];
    const fr_schedule *schedule = fr_schedules[plan->schedule];
    bool has_master = fr_plan_has_master(plan);
    uint64_t weight = fr_dtype_bytes(x->weight_dtype);
    uint64_t grad = fr_dtype_bytes(plan->grad_dtype);
    uint64_t n = stage->n_dense + stage->n_expert;
    uint64_t own_n =
        stage->n_dense / x->n_shards + stage->n_expert / x->n_expert_shards;
    uint64_t layers = (uint64_t)most(1, stage->n_layers);
    uint64_t bytes = plan->zero_stage == 3 ? own_n * weight : n * weight;
    bytes += plan->zero_stage >= 2 ? own_n * grad : n * grad;
    bytes +=
        fr_optimizer_resident_bytes(x->e->job->optimizer, own_n, has_master);
    if (plan->zero_stage >= 2)
        bytes += 2 * n / layers * grad;
    if (plan->zero_stage == 3)
        bytes += (uint64_t)(plan->n_prefetch + 1) * n / layers * weight;
    int64_t live = schedule->peak_live_micro(s, x->pp, x->n_micro, x->vpp);
    bytes += stage->kept_bytes * (uint64_t)live / (uint64_t)x->vpp;
    return bytes + stage->layers->scratch_bytes;
}

/* ---- plans -------------------------------------------------------------- */

static fr_status check(const fr_estimator *e, const fr_plan *plan, fr_err *err)
{
    FR_TRY(fr_plan_check_lowerable(plan, e->model, e->job, err));
    int64_t m = fr_plan_micro_batches(plan, e->job);
    if (!fr_schedules[plan->schedule]->fits(plan->pp, m, plan->vpp))
        return fr_fail(err, FR_INPUT,
                       "schedule %s does not fit pp %d, vpp %d and %lld "
                       "micro-batches",
                       fr_schedules[plan->schedule]->name, (int)plan->pp,
                       (int)plan->vpp, (long long)m);
    if (plan->compressor != FR_COMPRESSOR_NONE)
        return fr_fail(err, FR_INPUT,
                       "no estimate of compressed gradients; choose to "
                       "simulate, or compressor none");
    if (plan->is_optimizer_offloaded || plan->activation_offload_frac > 0)
        return fr_fail(err, FR_INPUT,
                       "no estimate of offloading; choose to simulate");
    if (plan->collective == FR_COLLECTIVE_PARAMETER_SERVER)
        return fr_fail(err, FR_INPUT,
                       "no estimate of parameter servers; choose to simulate, "
                       "or collective auto");
    if (plan->expert_dispatch != FR_DISPATCH_ALL_TO_ALL)
        return fr_fail(err, FR_INPUT,
                       "no estimate of dispatch by node; choose to simulate");
    return FR_OK;
}

fr_status fr_estimate_plan(fr_estimator *e, const fr_plan *plan,
                           fr_estimate *out, fr_err *err)
{
    est_plan x; /* filled below; its stages are large */
    FR_TRY(check(e, plan, err));
    x.e = e;
    x.plan = plan;
    x.pp = plan->pp;
    x.vpp = plan->vpp;
    x.n_micro = fr_plan_micro_batches(plan, e->job);
    x.is_split = fr_schedules[plan->schedule]->is_split;
    x.is_v = fr_schedules[plan->schedule]->is_v;
    x.is_by_unit = plan->zero_stage >= 2;
    x.shard_axis = fr_plan_group_size(plan, FR_AXIS_REPLICA) == 1
                       ? FR_AXIS_DP
                       : FR_AXIS_SHARD;
    bool is_sharded = plan->zero_stage > 0;
    x.n_shards =
        is_sharded ? (uint64_t)fr_plan_group_size(plan, x.shard_axis) : 1;
    x.n_expert_shards =
        is_sharded ? (uint64_t)fr_plan_group_size(plan, FR_AXIS_EDP) : 1;
    x.weight_dtype = fr_plan_storage_dtype(plan);
    x.is_executable = plan->zero_stage == 1 && est_is_executable(e, plan);
    x.is_gathered_early = plan->is_gather_overlap && !x.is_executable;
    FR_TRY(find_layers(&x, err));
    FR_TRY(meeting(&x, &x.meeting_ps, err));
    for (int i = 0; i < 2; i++) {
        x.is_likely = i > 0;
        if (i == 0 || !is_same_twice(&x))
            FR_TRY(find_stages(&x, err));
        find_ends(&x);
        *(i > 0 ? &out->estimate_s : &out->lower_bound_s) = total(&x);
    }
    if (out->estimate_s < out->lower_bound_s)
        out->estimate_s = out->lower_bound_s;
    out->peak_bytes = 0;
    for (int32_t s = 0; s < x.pp; s++) {
        /* Ranks that come earlier keep no less. */
        if (s > 0 && is_alike(&x.stages[s], &x.stages[s - 1]))
            continue;
        uint64_t bytes = peak_of(&x, s);
        out->peak_bytes = bytes > out->peak_bytes ? bytes : out->peak_bytes;
    }
    return FR_OK;
}

fr_status fr_estimator_create(const fr_model *model, const fr_job *job,
                              const fr_cluster *cluster,
                              const fr_cost_model *costs, fr_estimator **out,
                              fr_err *err)
{
    for (size_t i = 0; i < cluster->n_devices; i++)
        if (cluster->devices[i].kind != FR_DEVICE_GPU)
            return fr_fail(err, FR_INPUT,
                           "cluster %s has CPUs, estimates are of GPUs; "
                           "choose to simulate",
                           cluster->name);
    fr_estimator *e = calloc(1, sizeof *e);
    if (e == NULL)
        return fr_fail_no_memory(err);
    e->model = model;
    e->job = job;
    e->cluster = cluster;
    e->costs = costs;
    e->n_layers = (int32_t)(model->n_layers + model->n_mtp_layers);
    e->buckets = est_buckets_new(e->n_layers);
    if (e->buckets == NULL) {
        fr_estimator_destroy(e);
        return fr_fail_no_memory(err);
    }
    *out = e;
    return FR_OK;
}

void fr_estimator_destroy(fr_estimator *e)
{
    if (e == NULL)
        return;
    for (size_t i = 0; i < e->all_layouts.n; i++)
        est_layout_destroy(e->all_layouts.items[i]);
    for (size_t i = 0; i < e->all_layers.n; i++)
        est_layers_destroy(e->all_layers.items[i]);
    fr_vec_release(&e->all_layouts);
    fr_vec_release(&e->all_layers);
    fr_vec_release(&e->all_updates);
    est_map_release(&e->layouts);
    est_map_release(&e->layers);
    est_map_release(&e->prices);
    est_map_release(&e->updates);
    free(e->node_of_rank);
    free(e->ranks);
    free(e->buckets);
    free(e);
}

size_t fr_estimator_n_priced(const fr_estimator *e)
{
    return e->all_layers.n;
}
