/* bound_walk.c: workers, each with an estimator and what it found. */
#include "sim/predict/learned_step.h"
#include "tuner/bound/bound_walk_state.h"
#include "tuner/bound/walk_clock.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#ifdef _OPENMP
#include <omp.h>
#else
#define omp_get_thread_num() 0
#endif

/* The request and the shared state of one run of the walk. */
typedef struct run {
    fr_bound_walk *walk;
    const fr_walk_options *options;
    double limit; /* of the round */
    fr_walk_clock *clock;
} run;

/* One choice of LAYERS on the way down. */
typedef struct descent {
    const fr_plan_space_choice *layers, *pipeline;
    const fr_decision_list *gradients;
    const fr_goal_scale *scale;   /* the worker's */
    double step_factor;           /* expected over the sum of costs */
    double busy_s;                /* expected, of that, at least; 0: not known,
                                     or no matter */
    double limit_s;               /* about the step of the limit */
    double least;                 /* the lowest bound so far */
    const fr_bound_layers *needs; /* of all of them; NULL: not asked for */
    uint64_t kept_bytes;          /* then: by the pipeline, at least */
    fr_bounded found;
    fr_bounded best_by_estimate; /* of a group of gradients */
    bool has_best;
} descent;

/* ---- the goal ------------------------------------------------------------ */

/* Devices draw more while they compute: sets busy_s to the least that any of
 * these pipelines has to compute, if the goal asks for energy. */
static fr_status set_busy(const run *r, fr_walk_worker *w, const fr_plan *plan,
                          const fr_decision_list *pipelines, descent *d,
                          fr_err *err)
{
    d->busy_s = 0;
    if (!fr_goal_weighs_energy(&r->walk->goal) || !fr_estimate_knows(plan))
        return FR_OK;
    double least_s = HUGE_VAL;
    for (int kind = 0; kind < 2; kind++) {
        fr_least_work work;
        if (!pipelines->has_split[kind])
            continue;
        FR_TRY(fr_bound_layers_work(w->estimator, plan, kind > 0, &work, err));
        least_s = fmin(least_s, work.compute_s);
    }
    if (least_s < HUGE_VAL)
        d->busy_s = least_s * d->step_factor;
    return FR_OK;
}

/*
 * All plans of one choice of LAYERS have as many ranks: their value grows with
 * the step, and with the share of the memory that is taken.
 */
static fr_status set_scale(const run *r, fr_walk_worker *w, const fr_plan *plan,
                           const fr_decision_list *pipelines, descent *d,
                           fr_err *err)
{
    const fr_bound_walk *walk = r->walk;
    if (fr_plan_world(plan) != w->scale.n_devices ||
        plan->n_threads != w->scale.n_threads) {
        fr_goal_scale_release(&w->scale);
        FR_TRY(fr_goal_scale_make(&walk->goal, plan, &walk->subject, &w->scale,
                                  err));
    }
    d->scale = &w->scale;
    d->step_factor = fr_expected_step_factor(
        walk->in.costs, walk->in.request->cluster, plan->execution.kernels);
    FR_TRY(set_busy(r, w, plan, pipelines, d, err));
    d->limit_s = fr_goal_step_for(&walk->goal, d->scale, d->busy_s, r->limit) /
                 d->step_factor;
    return FR_OK;
}

static double value_at(const run *r, const descent *d, double step_s,
                       const fr_estimate *estimate)
{
    /* Shares of unlike devices cannot be compared. */
    bool is_known = r->walk->in.request->cluster->n_devices == 1 &&
                    estimate->capacity_bytes > 0;
    double taken_frac = is_known ? (double)estimate->least_bytes /
                                       (double)estimate->capacity_bytes
                                 : 0;
    const fr_weighed_step step = {.seconds = step_s * d->step_factor,
                                  .busy_s = d->busy_s,
                                  .p95_factor = 1,
                                  .useful_frac = 1};
    return fr_goal_at(&r->walk->goal, d->scale, &step, taken_frac);
}

/* Is all of such a bound passed over? */
static bool is_above_limit(const run *r, double bound)
{
    return r->options->is_best_only ? bound > r->limit || bound == HUGE_VAL
                                    : !(bound < r->limit);
}

/* ---- one plan ------------------------------------------------------------ */

/* A plan that only the simulator knows is bounded by 0 s, and has the estimate
 * of the same plan without what is not known. */
static fr_status estimate_plan(fr_walk_worker *w, const fr_plan *plan,
                               fr_estimate *out, fr_err *err)
{
    fr_plan known;
    fr_estimate_leave_unknown(plan, &known);
    FR_TRY(fr_estimate_legal_plan(w->estimator, &known, out, err));
    out->lower_bound_s = 0;
    out->least_bytes = 0;
    return FR_OK;
}

static fr_status bound_plan(const run *r, fr_walk_worker *w,
                            const fr_plan *plan, descent *d, fr_err *err)
{
    fr_estimate estimate;
    if (fr_estimate_knows(plan))
        FR_TRY(fr_estimate_legal_plan(w->estimator, plan, &estimate, err));
    else
        FR_TRY(estimate_plan(w, plan, &estimate, err));
    d->found.n_steps = estimate.n_steps;
    d->found.bound = value_at(r, d, estimate.lower_bound_s, &estimate);
    d->found.estimate = value_at(r, d, estimate.estimate_s, &estimate);
    d->found.short_by_bytes = fr_bound_lack(&estimate, r->walk->free_frac);
    d->found.seems_to_fit =
        (double)estimate.peak_bytes * (1 + r->walk->free_frac) <=
        (double)estimate.capacity_bytes;
    return FR_OK;
}

static void keep(const run *r, fr_walk_worker *w, descent *d)
{
    const fr_bounded *found = &d->found;
    const fr_bounded *after = r->options->after;
    if (found->short_by_bytes > 0) {
        w->n_too_large++;
        fr_bound_keep_offer(&w->nearest, found);
        return;
    }
    if (found->bound < HUGE_VAL &&
        (!d->has_best ||
         fr_bounded_has_lower_estimate(found, &d->best_by_estimate))) {
        d->best_by_estimate = *found;
        d->has_best = true;
    }
    if (r->options->is_best_only)
        return;
    if (!(found->bound < r->options->limit))
        w->n_pruned++;
    else if (after == NULL || fr_bounded_is_lower(after, found))
        fr_bound_keep_offer(&w->by_bound, found);
}

/* ---- plans of the same layers -------------------------------------------- */

static void join(const descent *d, size_t i_gradients, fr_candidate *out)
{
    fr_candidate_join(&d->layers->candidate, &d->pipeline->candidate,
                      &d->gradients->choices.items[i_gradients].candidate, out);
}

static fr_status walk_plans(const run *r, fr_walk_worker *w, fr_plan *plan,
                            const fr_gradient_group *group, descent *d,
                            fr_err *err)
{
    const fr_plan_space_request *request = r->walk->in.request;
    const fr_plan_space_choice *all = d->gradients->choices.items;
    d->has_best = false;
    fr_plan_space_set(request, FR_DECISION_GRADIENTS, &all[group->first], plan);
    for (size_t g = group->first; g < group->first + group->n; g++) {
        if (g > group->first)
            fr_plan_space_change(request, FR_DECISION_GRADIENTS, &all[g - 1],
                                 &all[g], plan);
        FR_TRY(bound_plan(r, w, plan, d, err));
        join(d, g, &d->found.candidate);
        keep(r, w, d);
    }
    if (d->has_best) {
        fr_bound_keep_offer(&w->by_estimate, &d->best_by_estimate);
        fr_walk_clock_note(r->clock);
    }
    w->n_estimated += group->n;
    return FR_OK;
}

/* Are all plans of a group passed over? */
static fr_status pass_over(const run *r, fr_walk_worker *w, fr_plan *plan,
                           const fr_gradient_group *group, descent *d,
                           bool *is_over, fr_err *err)
{
    fr_estimate least;
    *is_over = false;
    fr_plan_space_set(r->walk->in.request, FR_DECISION_GRADIENTS,
                      &d->gradients->choices.items[group->i_free], plan);
    if (!fr_estimate_knows(plan)) {
        d->least = value_at(r, d, 0, &(fr_estimate){0});
        return FR_OK;
    }
    FR_TRY(fr_estimate_least(w->estimator, plan, &group->variants, d->limit_s,
                             &least, err));
    const uint64_t lack = fr_bound_lack(&least, r->walk->free_frac);
    if (lack > 0) {
        d->found.short_by_bytes = lack;
        join(d, group->first, &d->found.candidate);
        fr_bound_keep_offer(&w->nearest, &d->found);
        w->n_too_large += group->n;
        *is_over = true;
        return FR_OK;
    }
    double bound = value_at(r, d, least.lower_bound_s, &least);
    d->least = fmin(d->least, bound);
    *is_over = is_above_limit(r, bound);
    w->n_pruned += *is_over ? group->n : 0;
    return FR_OK;
}

/*
 * Is such a state too large beside what the pipeline keeps?  Not if it may be
 * among the nearest of those that do not fit, while nothing is known that may.
 */
static bool is_out(const run *r, const fr_walk_worker *w, const descent *d,
                   uint64_t state_bytes)
{
    uint64_t lack = fr_bound_layers_lack(d->needs, d->kept_bytes, state_bytes);
    return lack > 0 &&
           (r->limit < HUGE_VAL || (w->nearest.n == w->nearest.n_max &&
                                    lack > w->nearest.at[0].short_by_bytes));
}

static fr_status walk_groups(const run *r, fr_walk_worker *w, fr_plan *plan,
                             descent *d, fr_err *err)
{
    for (size_t i = 0; i < d->gradients->groups.n; i++) {
        const fr_gradient_group *group = &d->gradients->groups.items[i];
        bool is_over = false;
        if (d->needs != NULL &&
            is_out(r, w, d, d->needs->state_bytes.items[i])) {
            w->n_too_large += group->n;
            continue;
        }
        if (!r->options->is_whole)
            FR_TRY(pass_over(r, w, plan, group, d, &is_over, err));
        if (!is_over)
            FR_TRY(walk_plans(r, w, plan, group, d, err));
    }
    return FR_OK;
}

/* ---- plans of the same layers, all at once ------------------------------- */

/* Sets kept_bytes to the least bytes that pipeline p keeps. */
static void set_kept(const fr_decision_list *pipelines, size_t p, descent *d)
{
    if (d->needs != NULL)
        d->kept_bytes =
            fr_estimate_kept(&d->needs->headroom, &pipelines->shares.items[p]);
}

/* Is every pipeline of a kind too large, whatever the gradients? */
static bool are_out(const run *r, const fr_walk_worker *w,
                    const fr_decision_list *pipelines, bool is_split,
                    descent *d)
{
    for (size_t p = 0; p < pipelines->choices.n; p++) {
        if (pipelines->shares.items[p].is_split != is_split)
            continue;
        set_kept(pipelines, p, d);
        if (!is_out(r, w, d, d->needs->least_state_bytes))
            return false;
    }
    return true;
}

/* Has every pipeline of a kind too much to do? */
static fr_status have_too_much(const run *r, fr_walk_worker *w,
                               const fr_plan *plan, bool is_split, descent *d,
                               bool *out, fr_err *err)
{
    fr_least_work work;
    FR_TRY(fr_bound_layers_work(w->estimator, plan, is_split, &work, err));
    double bound = value_at(r, d, work.lane_s, &(fr_estimate){0});
    *out = is_above_limit(r, bound);
    if (*out)
        d->least = fmin(d->least, bound);
    return FR_OK;
}

/*
 * Are all n plans of LAYERS passed over, whatever their pipelines and
 * gradients?  What fits is asked first: to know what a split backward has to do
 * its layers have to be priced once more.
 */
static fr_status pass_over_layers(const run *r, fr_walk_worker *w,
                                  const fr_plan *plan,
                                  const fr_decision_list *pipelines, uint64_t n,
                                  descent *d, bool *is_over, fr_err *err)
{
    bool are_all_out = true;
    *is_over = false;
    if (n == 0 || r->options->is_whole || !fr_estimate_knows(plan))
        return FR_OK;
    FR_TRY(fr_bound_layers_find(w->estimator, r->walk->in.request, plan,
                                pipelines, d->gradients, &w->needs, err));
    d->needs = &w->needs;
    for (int kind = 0; kind < 2; kind++) {
        bool is_too_much;
        if (!pipelines->has_split[kind] ||
            are_out(r, w, pipelines, kind > 0, d))
            continue;
        are_all_out = false;
        FR_TRY(have_too_much(r, w, plan, kind > 0, d, &is_too_much, err));
        if (!is_too_much)
            return FR_OK;
    }
    *is_over = true;
    *(are_all_out ? &w->n_too_large : &w->n_pruned) += n;
    return FR_OK;
}

static fr_status walk_pipelines(const run *r, fr_walk_worker *w, fr_plan *plan,
                                const fr_decision_list *pipelines, descent *d,
                                fr_err *err)
{
    for (size_t p = 0; p < pipelines->choices.n &&
                       (p == 0 || !fr_walk_clock_is_over(r->clock));
         p++) {
        FR_TRY(fr_walk_clock_step(r->clock, &w->n_steps, err));
        d->pipeline = &pipelines->choices.items[p];
        if (r->options->is_even &&
            d->pipeline->value[FR_SPACE_AXIS_LAYER_SPLIT] != 0)
            continue;
        set_kept(pipelines, p, d);
        if (d->needs != NULL && is_out(r, w, d, d->needs->least_state_bytes)) {
            w->n_too_large += d->gradients->choices.n;
            continue;
        }
        fr_plan_space_set(r->walk->in.request, FR_DECISION_PIPELINE,
                          d->pipeline, plan);
        FR_TRY(walk_groups(r, w, plan, d, err));
    }
    return FR_OK;
}

static fr_status walk_layers(const run *r, fr_walk_worker *w, size_t i_layers,
                             fr_err *err)
{
    const fr_plan_space_request *request = r->walk->in.request;
    const fr_decision_list *pipelines;
    fr_plan plan = request->base;
    descent d = {.layers = &r->walk->layers.items[i_layers], .least = HUGE_VAL};
    if (r->options->is_in_scope != NULL &&
        !r->options->is_in_scope(r->options->scope, d.layers))
        return FR_OK;
    FR_TRY(fr_walk_clock_step(r->clock, &w->n_steps, err));
    fr_plan_space_set(request, FR_DECISION_LAYERS, d.layers, &plan);
    fr_decision_lists *lists =
        r->options->is_unbalanced ? w->plain_lists : w->lists;
    FR_TRY(fr_decision_lists_find(lists, FR_DECISION_PIPELINE, &plan,
                                  &pipelines, err));
    FR_TRY(fr_decision_lists_find(lists, FR_DECISION_GRADIENTS, &plan,
                                  &d.gradients, err));
    uint64_t n = pipelines->choices.n * d.gradients->choices.n;
    w->n_plans += n;
    if (!r->options->is_whole && r->walk->has_least &&
        !(r->walk->least[i_layers] < r->limit)) {
        w->n_pruned += n;
        return FR_OK;
    }
    FR_TRY(set_scale(r, w, &plan, pipelines, &d, err));
    bool is_over;
    FR_TRY(pass_over_layers(r, w, &plan, pipelines, n, &d, &is_over, err));
    if (!is_over)
        FR_TRY(walk_pipelines(r, w, &plan, pipelines, &d, err));
    if (!r->options->is_whole && !r->walk->has_least)
        r->walk->least[i_layers] = d.least;
    return FR_OK;
}

/* ---- all layers ---------------------------------------------------------- */

static fr_status reset(fr_bound_walk *walk, fr_err *err)
{
    for (int i = 0; i < walk->n_workers; i++) {
        fr_walk_worker *w = &walk->workers[i];
        w->n_plans = w->n_too_large = w->n_pruned = w->n_estimated = 0;
        w->i_failed = SIZE_MAX;
        FR_TRY(fr_bound_keep_init(&w->by_bound, FR_WALK_KEPT,
                                  fr_bounded_is_lower, err));
        FR_TRY(fr_bound_keep_init(&w->by_estimate, FR_WALK_SEEDS,
                                  fr_bounded_has_lower_estimate, err));
        FR_TRY(fr_bound_keep_init(&w->nearest, FR_WALK_SEEDS,
                                  fr_bounded_is_nearer, err));
    }
    return FR_OK;
}

/* The error of the first layers that failed, whoever met them. */
static fr_status first_error(const fr_bound_walk *walk, fr_err *err)
{
    const fr_walk_worker *first = NULL;
    for (int i = 0; i < walk->n_workers; i++) {
        const fr_walk_worker *w = &walk->workers[i];
        if (w->i_failed < (first != NULL ? first->i_failed : SIZE_MAX))
            first = w;
    }
    return first == NULL
               ? FR_OK
               : fr_fail(err, first->err.status, "%s", first->err.text);
}

/* The highest of the estimates that are kept of all workers'. */
static fr_status lower_limit(run *r, fr_err *err)
{
    fr_bound_keep all = {0};
    FR_TRY(fr_bound_keep_init(&all, FR_WALK_SEEDS,
                              fr_bounded_has_lower_estimate, err));
    for (int i = 0; i < r->walk->n_workers; i++)
        fr_bound_keep_merge(&all, &r->walk->workers[i].by_estimate);
    if (all.n == all.n_max)
        r->limit = fmin(r->limit, all.at[0].estimate);
    fr_bound_keep_release(&all);
    return FR_OK;
}

/* In rounds, between which the limit falls or the time ends: what is passed
 * over does not depend on who is how fast.  A round takes blocks from all over
 * the space, so that the first one finds a good limit. */
enum { BLOCK = 8, N_ROUNDS = 32 };

static void walk_block(const run *r, size_t i_block)
{
    fr_bound_walk *walk = r->walk;
    fr_walk_worker *w = &walk->workers[omp_get_thread_num()];
    size_t end = (i_block + 1) * BLOCK;
    end = end < walk->layers.n ? end : walk->layers.n;
    for (size_t i = i_block * BLOCK; i < end; i++) {
        /* Each worker looks at some plans, however late it is. */
        bool is_late = w->n_plans > 0 && fr_walk_clock_is_over(r->clock);
        if (w->i_failed != SIZE_MAX || is_late ||
            walk_layers(r, w, i, &w->err) == FR_OK)
            continue;
        w->i_failed = i;
    }
}

static fr_status walk_all(run *r, bool *is_cut, fr_err *err)
{
    const size_t n = (r->walk->layers.n + BLOCK - 1) / BLOCK;
    const size_t n_rounds =
        r->options->is_best_only || r->options->until_s > 0 ? N_ROUNDS : 1;
    *is_cut = false;
    for (size_t round = 0; round < n_rounds && !*is_cut; round++) {
#pragma omp parallel for schedule(dynamic, 1) num_threads(r->walk->n_workers)
        for (size_t i = round; i < n; i += n_rounds)
            walk_block(r, i);
        if (r->options->is_best_only)
            FR_TRY(lower_limit(r, err));
        *is_cut = round + 1 < n_rounds ? fr_walk_clock_is_over(r->clock)
                                       : r->clock->is_over;
    }
    return FR_OK;
}

static fr_status collect(fr_bound_walk *walk, fr_walk_result *out, fr_err *err)
{
    fr_walk_worker *first = &walk->workers[0];
    for (int i = 0; i < walk->n_workers; i++) {
        fr_walk_worker *w = &walk->workers[i];
        out->n_plans += w->n_plans;
        out->n_too_large += w->n_too_large;
        out->n_pruned += w->n_pruned;
        out->n_estimated += w->n_estimated;
        if (i == 0)
            continue;
        fr_bound_keep_merge(&first->by_bound, &w->by_bound);
        fr_bound_keep_merge(&first->by_estimate, &w->by_estimate);
        fr_bound_keep_merge(&first->nearest, &w->nearest);
    }
    out->is_all = !first->by_bound.has_dropped;
    FR_TRY(fr_bound_keep_take(&first->by_bound, &out->by_bound, err));
    FR_TRY(fr_bound_keep_take(&first->by_estimate, &out->by_estimate, err));
    return fr_bound_keep_take(&first->nearest, &out->nearest, err);
}

fr_status fr_bound_walk_run(fr_bound_walk *walk, const fr_walk_options *options,
                            fr_walk_result *out, fr_err *err)
{
    fr_walk_clock clock =
        fr_walk_clock_of(options->until_s, walk->in.request->log);
    run r = {walk, options, options->limit, &clock};
    fr_walk_result result = {0};
    FR_TRY(reset(walk, err));
    FR_TRY(walk_all(&r, &result.is_cut, err));
    FR_TRY(first_error(walk, err));
    result.is_cut = result.is_cut || walk->is_cut;
    walk->has_least = walk->has_least ||
                      (!options->is_whole && !result.is_cut &&
                       options->is_in_scope == NULL && !options->is_unbalanced);
    fr_status status = collect(walk, &result, err);
    if (status == FR_OK)
        *out = result;
    else
        fr_walk_result_release(&result);
    return status;
}
