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
 *                 begin_s + ceil(m / k) trip_s)
 *
 * The last line holds for 1F1B and ZB-H1: rank s has k = p - s micro-batches
 * under way, and forward i + k waits for backward i, which has been to the
 * last rank and back: trip_s = sum over r >= s of (f_r + b_r) + 2 c_r.  So
 * in the long run a micro-batch takes max_s (f_s + b_s, trip_s / k): the
 * estimate is trip_0 + (m - 1) times that.
 *
 * Gradients: what is reduced beside backward begins at the earliest when the
 * last micro-batch has left the first bucket's layers and takes the sum of
 * all; its last bucket follows the last backward.  Then all stages meet for
 * the norm of the gradients, and take the optimizer's step.
 *
 * Hosts, processors, stragglers, gathers that somebody waits for: docs/tuner.md
 * has the list, with why each is admissible.
 *
 * Wires: bytes of gradients and parameters that leave a node, of all its ranks
 * of one stage, over what its NICs carry: no step is shorter than their sum.
 */
#include "sim/bound/estimate.h"

#include "plan/decide/grid.h"
#include "plan/schedule/schedule.h"
#include "sim/bound/estimate_stages.h"
#include "sim/bound/estimate_state.h"
#include "sim/engine/virtual_time.h"

#include <math.h>
#include <string.h>

/* ---- after the passes --------------------------------------------------- */

/* Backward of the last micro-batch after the first bucket is complete, at
 * most. */
static int64_t after_first_bucket(const est_plan *x, const est_stage *stage,
                                  const est_update *update)
{
    const est_layers *l = stage->layers;
    const est_times *t = stage->times;
    if (x->plan->bucket_bytes == 0 && !x->sharding.is_by_unit &&
        stage->n_expert == 0)
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
    return est_most(0, stage->backward_ps - done_ps);
}

/* Returns the time at which all gradients are reduced. */
static int64_t reduced_at(const est_plan *x, const est_stage *stage,
                          const est_update *update)
{
    const fr_plan *plan = x->plan;
    const int64_t m = x->n_micro;
    bool is_each =
        x->sharding.is_by_unit && x->pp == 1; /* after each micro-batch */
    int64_t all_ps = update->reduce_ps, start_ps;
    const int64_t path_ps = stage->path_ps;
    const int64_t end_ps = est_most(stage->end_ps, path_ps);
    /* The embedding's gradients come with those of inputs. */
    bool is_embed_last = stage->has_embed && !x->is_split;
    int64_t last_ps =
        is_embed_last || !stage->has_embed ? update->last_reduce_ps : 0;
    /* If sums come between passes, the critical path need not contain any of
     * them. */
    if (!plan->is_overlap && x->sharding.is_by_unit)
        return est_most(stage->end_ps + (is_each ? m : 1) * all_ps, path_ps);
    if (!plan->is_overlap)
        return end_ps + all_ps;
    /* The head's gradients of a split backward come with those of inputs. */
    if (x->is_v || (x->is_split && stage->has_head))
        start_ps = stage->begin_ps + stage->forward_ps;
    else if (x->is_split) /* last of all come weights of the last one */
        start_ps = end_ps - stage->weights_ps -
                   (stage->has_embed ? update->last_reduce_ps : 0);
    else if (x->vpp > 1)
        start_ps = stage->begin_ps +
                   m * (stage->forward_ps + stage->backward_ps) -
                   after_first_bucket(x, stage, update);
    else
        start_ps = est_most(stage->back_ps, path_ps) -
                   after_first_bucket(x, stage, update);
    int64_t reduced_ps = est_most(end_ps + last_ps, start_ps + all_ps);
    if (is_each)
        reduced_ps = est_most(reduced_ps, stage->forward_ps + m * all_ps);
    return reduced_ps;
}

/*
 * ZeRO 3: each layer twice in a micro-batch (or once, where its weights are
 * kept), but where it is still there.  Layers that are alike are counted.  Of
 * others each is gathered as often as the one that is gathered least; and in a
 * micro-batch no more than n_prefetch + 1 gathers are spared where each chunk
 * turns: about, where the last one does.
 */
static int64_t rounds_of(const est_plan *x, const est_stage *stage,
                         int64_t layer_ps, int64_t all_ps, int64_t long_ps)
{
    const fr_plan *plan = x->plan;
    bool is_kept = !plan->is_resharded;
    if (stage->gathers.n > 0)
        return stage->gathers.n * layer_ps;
    int64_t n_rounds = is_kept && x->pp > 1 ? 1 : x->n_micro;
    int64_t reach_ps =
        (plan->n_prefetch + 1) * (x->is_estimate ? 1 : x->vpp) * long_ps;
    int64_t each_ps = is_kept || x->is_split ? all_ps : 2 * all_ps;
    int64_t least_ps = est_most(1, stage->gathers.n_least) * all_ps;
    return est_most(least_ps, n_rounds * est_most(0, each_ps - reach_ps));
}

/*
 * About: while the gradients of a layer are reduced the next gather shares the
 * NICs with them.  With chunks p micro-batches follow each other in the time
 * of both.
 */
static int64_t shared_ps(const est_plan *x, const est_stage *stage)
{
    const est_update *u = stage->update;
    const int64_t n_passes = x->pp > 1 && x->vpp > 1 ? x->pp : 1;
    const int64_t n = x->pp == 1 ? stage->gathers.n_after_backward
                                 : est_least(stage->n_layers,
                                             stage->gathers.n_after_backward);
    int64_t both_ps = u->layer_gather_ps + u->layer_reduce_ps;
    if (!x->is_estimate || !x->plan->is_overlap)
        return 0;
    return n *
           est_most(0, both_ps - n_passes * stage->layers->most_backward_ps);
}

/* ZeRO 2 and 3: the compute lane with what it has to do for whole gradients
 * and weights; estimate_gathers.c. */
static int64_t used_at(const est_plan *x, const est_stage *stage)
{
    const est_layers *l = stage->layers;
    const est_update *u = stage->update;
    const est_gathers *n = &stage->gathers;
    const int64_t n_zeros = (x->pp == 1 ? x->n_micro : 1) * stage->n_layers;
    const int64_t passes_ps =
        stage->begin_ps +
        x->n_micro * (stage->forward_ps + stage->backward_ps) +
        n_zeros * u->layer_zero_ps + n->n * u->layer_copy_ps;
    const int64_t lane_ps = passes_ps + x->n_micro * stage->weights_ps;
    if (!x->sharding.is_by_unit || x->plan->n_prefetch > 1)
        return lane_ps;
    int64_t forward_ps =
        est_most(u->layer_gather_ps - l->most_forward_ps - u->layer_copy_ps,
                 u->layer_core_ps - l->most_forward_rest_ps);
    int64_t backward_ps = est_most(u->layer_gather_ps - l->most_backward_ps -
                                       u->layer_copy_ps - u->layer_zero_ps,
                                   u->layer_core_ps - l->most_backward_rest_ps);
    int64_t waits_ps = n->n_after_backward * est_most(0, backward_ps);
    waits_ps = est_most(waits_ps, shared_ps(x, stage));
    waits_ps += n->n_after_forward * est_most(0, forward_ps);
    return est_most(lane_ps, passes_ps + waits_ps);
}

/* Returns the time at which lane GATHER has ended, and the work that waits for
 * its last gather too. */
static int64_t gathered_at(const est_plan *x, const est_stage *stage,
                           const est_update *update)
{
    const int64_t m = x->n_micro, all_ps = update->gather_ps;
    if (all_ps == 0)
        return 0;
    if (x->plan->zero_stage == 3)
        return rounds_of(x, stage, update->layer_gather_ps, all_ps,
                         update->long_gather_ps);
    int64_t before_ps = x->pp * (stage->forward_ps - stage->last_forward_ps) +
                        stage->last_forward_ps;
    int64_t passes_ps =
        m * (stage->forward_ps + stage->backward_ps + stage->weights_ps);
    return all_ps + est_most(0, passes_ps - before_ps);
}

/* Returns the time in a step for which gradients and parameters keep the NICs
 * of the node busy. */
static int64_t wired(const est_plan *x, const est_stage *stage)
{
    const est_update *update = stage->update;
    bool is_each = x->sharding.is_by_unit && x->pp == 1;
    int64_t gathers_ps =
        x->plan->zero_stage == 3
            ? rounds_of(x, stage, update->layer_wire_ps, update->wire_gather_ps,
                        update->wire_long_gather_ps)
            : update->wire_gather_ps;
    return gathers_ps + (is_each ? x->n_micro : 1) * update->wire_reduce_ps;
}

/* Returns the time at which the device's multiprocessors have done all work of
 * the passes and of the collectives that overlap them.  Gathers of ZeRO 1 and 2
 * may come before the passes. */
static int64_t worked_at(const est_plan *x, const est_stage *stage,
                         int64_t start_ps)
{
    const est_update *update = stage->update;
    bool is_each = x->sharding.is_by_unit && x->pp == 1;
    int64_t core_ps = x->n_micro * stage->core_ps +
                      (is_each ? x->n_micro : 1) * update->core_reduce_ps;
    int64_t long_ps = update->core_long_gather_ps;
    int64_t end_ps = stage->begin_ps + start_ps + core_ps;
    if (x->plan->zero_stage < 3)
        return est_most(end_ps, core_ps + update->core_gather_ps);
    int64_t gather_ps = rounds_of(x, stage, update->layer_core_ps,
                                  update->core_gather_ps, long_ps);
    int64_t early_ps = (x->plan->n_prefetch + 2) * long_ps;
    return end_ps + est_most(0, gather_ps - early_ps);
}

/*
 * Returns by how much gathers delay the end of the first rank's first forward;
 * all times that are counted from begin_s are later by this.  With ZeRO 3 the
 * first layer waits for its own gather, else the last layer of chunk 0 comes
 * after the last gather.
 */
static int64_t start_of(const est_plan *x, const est_stage *first)
{
    const est_update *update = first->update;
    int64_t late_ps = update->start_gather_ps;
    if (late_ps == 0)
        return 0;
    if (x->plan->zero_stage == 3)
        return est_most(0, late_ps - first->times->embed_ps - first->begin_ps);
    late_ps -= first->first_forward_ps;
    if (!first->has_head)
        late_ps += first->layers->least_forward_ps;
    return est_most(0, est_most(update->first_gather_ps, late_ps) -
                           first->begin_ps);
}

/* Returns the time at which the squares of the own gradients are summed.  The
 * squares of a bucket wait only for the sum of that bucket. */
static int64_t ready_at(const est_plan *x, const est_stage *stage,
                        int64_t start_ps)
{
    const est_update *update = stage->update;
    int64_t reduced_ps = reduced_at(x, stage, update);
    int64_t gathered_ps = gathered_at(x, stage, update);
    if (!x->plan->is_overlap)
        reduced_ps += update->norm_ps;
    else
        reduced_ps =
            est_most(reduced_ps + update->last_norm_ps,
                     est_most(stage->end_ps, stage->path_ps) + update->norm_ps);
    reduced_ps = est_most(reduced_ps, stage->contended_ps);
    reduced_ps = est_most(reduced_ps, used_at(x, stage)) + start_ps;
    reduced_ps = est_most(reduced_ps, worked_at(x, stage, start_ps));
    reduced_ps = est_most(reduced_ps, stage->issued_ps);
    return est_most(reduced_ps, gathered_ps + update->last_norm_ps);
}

/* Everybody meets for the norm and the loss: sets x->meeting_ps. */
static fr_status meet(est_plan *x, const est_stage *stage, fr_err *err)
{
    const fr_plan *plan = x->plan;
    const fr_move norm = fr_sharding_norm_sum(&x->sharding);
    const fr_move loss = fr_sharding_loss_sum();
    int64_t loss_ps, norm_ps = 0;
    if (x->met == stage->place && x->met_axis == norm.axis)
        return FR_OK;
    FR_TRY(est_collective(x->e, plan, stage->place, &loss, &loss_ps, err));
    if (x->e->job->clip_norm > 0)
        FR_TRY(est_collective(x->e, plan, stage->place, &norm, &norm_ps, err));
    x->meeting_ps = loss_ps + norm_ps;
    x->met = stage->place;
    x->met_axis = norm.axis;
    return FR_OK;
}

/* The whole step of n ranks, in seconds. */
static double total_of(const est_plan *x, const est_stage *ranks, int32_t n)
{
    int64_t reduced_ps = 0, step_ps = 0, all_ps = 0;
    const int64_t start_ps = start_of(x, &ranks[0]);
    for (int32_t i = 0; i < n; i++) {
        const est_stage *stage = &ranks[i];
        const est_update *update = stage->update;
        int64_t ready_ps = ready_at(x, stage, start_ps);
        reduced_ps = est_most(reduced_ps, ready_ps);
        step_ps = est_most(step_ps, update->step_ps);
        all_ps = est_most(all_ps, ready_ps + x->meeting_ps + update->step_ps);
        all_ps = est_most(all_ps, wired(x, stage));
    }
    if (x->e->job->clip_norm > 0)
        all_ps = est_most(all_ps, reduced_ps + x->meeting_ps + step_ps);
    return 1e-12 * (double)all_ps;
}

static double total(const est_plan *x)
{
    const est_ranks *ranks = &x->ranks[x->is_estimate];
    return total_of(x, ranks->at, ranks->n);
}

/* Prices the communication and the optimizer of each rank after its passes.
 * The estimate usually equals the lower bound when both are for the same
 * rank. */
static fr_status find_updates(est_plan *x, fr_err *err)
{
    const est_ranks *least = &x->ranks[0];
    est_ranks *ranks = &x->ranks[x->is_estimate];
    for (int32_t i = 0; i < ranks->n; i++) {
        est_stage *stage = &ranks->at[i];
        const est_stage *other = &least->at[i];
        const bool is_known =
            x->is_estimate && i < least->n && other->rank == stage->rank;
        if (is_known && !est_update_differs(x, stage))
            stage->update = other->update;
        else
            FR_TRY(est_update_find(x, stage, err));
        if (is_known)
            stage->gathers = other->gathers;
        else
            FR_TRY(est_gathers_find(x, stage, err));
    }
    return FR_OK;
}

/* ---- plans -------------------------------------------------------------- */

static fr_status check(const fr_estimator *e, const fr_plan *plan, fr_err *err)
{
    FR_TRY(fr_plan_check_lowerable(plan, e->model, e->job, err));
    int64_t m = fr_plan_micro_batches(plan, e->job);
    if (!fr_schedule_fits(fr_schedules[plan->schedule], plan->pp, m, plan->vpp))
        return fr_fail(err, FR_INPUT,
                       "schedule %s does not fit pp %d, vpp %d and %lld "
                       "micro-batches",
                       fr_schedules[plan->schedule]->name, (int)plan->pp,
                       (int)plan->vpp, (long long)m);
    const char *unknown = fr_estimate_unknown(plan);
    return unknown != NULL ? fr_fail(err, FR_INPUT, "%s", unknown) : FR_OK;
}

void est_plan_set(est_plan *x, const fr_plan *plan)
{
    const fr_schedule *schedule = fr_schedules[plan->schedule];
    const fr_estimator *e = x->e;
    x->plan = plan;
    x->pp = plan->pp;
    x->vpp = plan->vpp;
    x->n_micro = fr_plan_micro_batches(plan, e->job);
    x->is_split = schedule->is_split;
    x->is_v = schedule->is_v;
    x->is_executable = (plan->zero_stage == 1 || plan->zero_stage == 2) &&
                       est_is_executable(e, plan);
    est_sharding_set(x);
}

/* Longer than the clock goes: no search takes it while there is another. */
static void set_endless(fr_estimate *out)
{
    out->lower_bound_s = out->estimate_s = 1e-12 * (double)FR_PS_END;
}

/* Nor is a step shorter than what its samples take. */
static double with_input(const est_plan *x, double step_s)
{
    const fr_estimator *e = x->e;
    const int64_t n_nodes =
        (fr_plan_world(x->plan) + e->least_slots - 1) / e->least_slots;
    return fmax(step_s, fr_input_s(&e->input, e->job, x->plan, n_nodes));
}

fr_status fr_estimate_legal_plan(fr_estimator *e, const fr_plan *plan,
                                 fr_estimate *out, fr_err *err)
{
    est_plan *x = e->at_plan;
    double s[2];
    est_plan_set(x, plan);
    FR_TRY(est_pipeline_find(x, err));
    FR_TRY(meet(x, &x->stages[0], err));
    est_memory(x, out);
    out->n_steps = x->n_micro * x->stages[0].layers->n_steps;
    if (x->is_endless) {
        set_endless(out);
        return FR_OK;
    }
    if (out->least_bytes <= out->capacity_bytes)
        FR_TRY(est_paths_find(x, err));
    for (int i = 0; i < 2; i++) {
        x->is_estimate = i > 0;
        FR_TRY(find_updates(x, err));
        s[i] = with_input(x, total(x));
    }
    out->lower_bound_s = s[0];
    out->estimate_s = s[1] > s[0] ? s[1] : s[0];
    return FR_OK;
}

/* total() of the first rank alone. */
static fr_status bound_first(est_plan *x, const fr_estimate_variants *variants,
                             double *out_s, fr_err *err)
{
    x->is_estimate = false;
    FR_TRY(est_update_least(x, variants, &x->first, err));
    FR_TRY(est_gathers_find(x, &x->first, err));
    *out_s = with_input(x, total_of(x, &x->first, 1));
    return FR_OK;
}

fr_status fr_estimate_least(fr_estimator *e, const fr_plan *plan,
                            const fr_estimate_variants *variants,
                            double limit_s, fr_estimate *out, fr_err *err)
{
    est_plan *x = e->at_plan;
    est_plan_set(x, plan);
    *out = (fr_estimate){0};
    FR_TRY(est_first_find(x, err));
    est_memory_first(x, out);
    if (out->least_bytes > out->capacity_bytes)
        return FR_OK;
    if (x->is_first_endless) {
        set_endless(out);
        return FR_OK;
    }
    FR_TRY(meet(x, &x->first, err));
    FR_TRY(bound_first(x, variants, &out->lower_bound_s, err));
    if (out->lower_bound_s > limit_s)
        return FR_OK;
    FR_TRY(est_pipeline_find(x, err));
    est_memory(x, out);
    if (out->least_bytes > out->capacity_bytes)
        return FR_OK;
    if (x->is_endless) {
        set_endless(out);
        return FR_OK;
    }
    x->is_estimate = false;
    for (int32_t i = 0; i < x->ranks[0].n; i++) {
        est_stage *stage = &x->ranks[0].at[i];
        FR_TRY(est_update_least(x, variants, stage, err));
        FR_TRY(est_gathers_find(x, stage, err));
    }
    out->lower_bound_s = out->estimate_s = with_input(x, total(x));
    if (out->lower_bound_s > limit_s)
        return FR_OK;
    FR_TRY(est_paths_find(x, err));
    out->lower_bound_s = out->estimate_s = with_input(x, total(x));
    return FR_OK;
}

fr_status fr_estimate_plan(fr_estimator *e, const fr_plan *plan,
                           fr_estimate *out, fr_err *err)
{
    FR_TRY(check(e, plan, err));
    return fr_estimate_legal_plan(e, plan, out, err);
}

static void destroy_plan(est_plan *x)
{
    if (x == NULL)
        return;
    free(x->ranks[0].at);
    free(x->ranks[1].at);
    free(x);
}

static est_plan *new_plan(fr_estimator *e)
{
    est_plan *x = calloc(1, sizeof *x);
    if (x == NULL)
        return NULL;
    x->e = e;
    for (int i = 0; i < 2; i++)
        x->ranks[i].at = calloc(FR_PLAN_MAX_STAGES, sizeof *x->ranks[i].at);
    if (x->ranks[0].at == NULL || x->ranks[1].at == NULL) {
        destroy_plan(x);
        return NULL;
    }
    return x;
}

/* Sets the size of the values that each memo holds. */
static void set_values(fr_estimator *e)
{
    fr_memo *const numbers[] = {
        &e->nets,     &e->layer_places,  &e->places,      &e->splits,
        &e->variants, &e->update_stages, &e->update_plans};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        numbers[i]->value_bytes = sizeof(uint32_t);
    e->layouts.value_bytes = sizeof(est_layout *);
    e->layers.value_bytes = sizeof(est_layers *);
    e->prices.value_bytes = sizeof(int64_t);
    e->gathers.value_bytes = sizeof(est_gathers);
    e->paths.value_bytes = sizeof(int64_t);
    e->occupancy.value_bytes = sizeof(est_occupancy *);
}

fr_status fr_estimator_create(const fr_model *model, const fr_job *job,
                              const fr_cluster *cluster,
                              const fr_cost_model *costs, fr_estimator **out,
                              fr_err *err)
{
    if (!fr_cluster_is_all_gpu(cluster))
        return fr_fail(err, FR_INPUT,
                       "cluster %s has CPUs, estimates are of GPUs; choose to "
                       "simulate",
                       cluster->name);
    return fr_estimator_create_stages(model, job, cluster, costs, out, err);
}

fr_status fr_estimator_create_stages(const fr_model *model, const fr_job *job,
                                     const fr_cluster *cluster,
                                     const fr_cost_model *costs,
                                     fr_estimator **out, fr_err *err)
{
    fr_estimator *e = calloc(1, sizeof *e);
    if (e == NULL)
        return fr_fail_no_memory(err);
    e->model = model;
    e->job = job;
    e->cluster = cluster;
    e->costs = costs;
    e->n_layers = (int32_t)(model->n_layers + model->n_mtp_layers);
    /* Offloading only makes the host's cache of samples smaller, so none is
     * assumed. */
    e->input = fr_input_cost_of(model, job, cluster, 0);
    e->least_slots = INT64_MAX;
    for (size_t i = 0; i < cluster->n_node_types; i++)
        if (cluster->node_types[i].n_devices < e->least_slots)
            e->least_slots = cluster->node_types[i].n_devices;
    set_values(e);
    e->buckets = est_buckets_new(e->n_layers);
    e->at_plan = new_plan(e);
    e->pool = est_pool_create();
    if (e->buckets == NULL || e->at_plan == NULL || e->pool == NULL) {
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
    for (est_layout **at = fr_memo_next(&e->layouts, NULL); at != NULL;
         at = fr_memo_next(&e->layouts, at))
        est_layout_destroy(*at);
    for (est_occupancy **at = fr_memo_next(&e->occupancy, NULL); at != NULL;
         at = fr_memo_next(&e->occupancy, at)) {
        fr_vec_release(*at);
        free(*at);
    }
    est_pool_leave(e->pool);
    fr_memo *const memos[] = {
        &e->nets,     &e->layer_places,  &e->places,       &e->splits,
        &e->variants, &e->update_stages, &e->update_plans, &e->layouts,
        &e->layers,   &e->prices,        &e->gathers,      &e->paths,
        &e->occupancy};
    for (size_t i = 0; i < sizeof memos / sizeof memos[0]; i++)
        fr_memo_release(memos[i]);
    for (size_t i = 0; i < e->update_rows.n; i++)
        fr_vec_release(&e->update_rows.items[i]);
    fr_vec_release(&e->update_rows);
    fr_arena_release(&e->updates);
    fr_vec_release(&e->all_passed);
    fr_vec_release(&e->last_variants);
    fr_vec_release(&e->last_split);
    free(e->node_of_rank);
    free(e->ranks);
    free(e->buckets);
    destroy_plan(e->at_plan);
    free(e);
}

size_t fr_estimator_n_priced(const fr_estimator *e)
{
    return e->layers.n;
}
