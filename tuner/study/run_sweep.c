/* run_sweep.c: points in parallel, each written to its own row. */
#include "tuner/study/run_sweep.h"

#include "core/base/text.h"
#include "core/system/clock.h"
#include "spec/cluster/cluster_power.h"
#include "spec/result/fit_advice.h"
#include "tuner/answer/tune.h"
#include "tuner/search/evaluate.h"
#include "tuner/search/tune_quick.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef _OPENMP
#include <omp.h>
#else
#define omp_get_max_threads() 1
#endif

/* ---- ranks and batch ----------------------------------------------------- */

/* Places for ranks of the plan's threads; CPUs: all cores of a node are one
 * rank's unless threads were given. */
static int64_t places(fr_sweep_case *at)
{
    const fr_device_type *device = fr_cluster_device(at->cluster, 0);
    if (device->kind == FR_DEVICE_CPU && !(at->pins & FR_PIN(THREADS)))
        at->plan.n_threads = (int32_t)device->n_cores;
    return fr_cluster_slots_of_nodes(
        at->cluster, fr_cluster_n_nodes(at->cluster), at->plan.n_threads);
}

/* dp of a case such that the plan fills the ranks that the cluster has places
 * for.  False: they cannot be divided so, and *why says it. */
static bool fill_cluster(fr_sweep_case *at, char *why, size_t n_why)
{
    int64_t others = fr_plan_world(&at->plan) / at->plan.dp;
    if (at->pins & FR_PIN(DP)) {
        if (at->n_ranks == 0 || at->n_ranks == fr_plan_world(&at->plan))
            return true;
        snprintf(why, n_why, "the plan has %lld ranks, not %lld: leave out dp",
                 (long long)fr_plan_world(&at->plan), (long long)at->n_ranks);
        return false;
    }
    int64_t n_ranks = at->n_ranks > 0 ? at->n_ranks : places(at);
    if (n_ranks < others || n_ranks % others != 0) {
        snprintf(why, n_why,
                 "tp %d x pp %d x cp %d = %lld ranks of one copy do not divide "
                 "%lld",
                 at->plan.tp, at->plan.pp, at->plan.cp, (long long)others,
                 (long long)n_ranks);
        return false;
    }
    at->plan.dp = (int32_t)(n_ranks / others);
    if (at->framework != NULL)
        fr_framework_set_plan(at->framework, at->given, at->facts, &at->plan);
    return true;
}

static int64_t ranks_of(const fr_sweep_case *at, bool is_fixed)
{
    if (is_fixed)
        return fr_plan_world(&at->plan);
    return at->n_ranks > 0 ? at->n_ranks : fr_cluster_slots(at->cluster);
}

static void refuse(fr_sweep_point *point, const char *why)
{
    fr_text_copy_cut(point->why, sizeof point->why, why);
}

/* The batch of the fewest ranks times as many as there are. */
static void grow_batches(fr_sweep_case *cases, const fr_sweep_options *options,
                         fr_sweep *sweep)
{
    int64_t least = 0;
    for (size_t i = 0; i < sweep->n_points; i++) {
        int64_t n_ranks = ranks_of(&cases[i], options->is_fixed);
        if (sweep->points[i].why[0] == '\0' && (least == 0 || n_ranks < least))
            least = n_ranks;
    }
    for (size_t i = 0; i < sweep->n_points; i++) {
        double grown = (double)cases[i].job.global_batch *
                       (double)ranks_of(&cases[i], options->is_fixed) /
                       (double)least;
        char why[120];
        if (sweep->points[i].why[0] != '\0')
            continue;
        snprintf(why, sizeof why,
                 "the batch of %lld ranks, %lld sequences, grows to %.2f",
                 (long long)least, (long long)cases[i].job.global_batch, grown);
        if (grown != floor(grown) || grown > 1e15)
            refuse(&sweep->points[i], why);
        else
            cases[i].job.global_batch = (int64_t)grown;
        fr_job_count_steps(&cases[i].job, cases[i].model);
    }
}

static void prepare(fr_sweep_case *cases, const fr_sweep_options *options,
                    fr_sweep *sweep)
{
    for (size_t i = 0; i < sweep->n_points; i++) {
        char why[200];
        fr_sweep_case *at = &cases[i];
        if (at->why != NULL)
            refuse(&sweep->points[i], at->why);
        else if (options->is_fixed && !fill_cluster(at, why, sizeof why))
            refuse(&sweep->points[i], why);
    }
    if (options->is_weak)
        grow_batches(cases, options, sweep);
}

/* ---- one point ----------------------------------------------------------- */

static fr_plan_space_request request_of(const fr_sweep_case *at,
                                        const fr_log *log)
{
    bool is_gpu = fr_cluster_device(at->cluster, 0)->kind == FR_DEVICE_GPU;
    int64_t all = is_gpu ? fr_cluster_slots(at->cluster) : 0;
    return (fr_plan_space_request){
        .model = at->model,
        .job = &at->job,
        .cluster = at->cluster,
        .base = at->plan,
        .pins = at->pins,
        .world = at->n_ranks > 0 ? at->n_ranks : all,
        .allow_lossy = at->allow_lossy,
        .fit_confidence = at->fit_confidence,
        .target = at->target,
        .target_version = at->target != NULL ? fr_target_newest(at->target) : 0,
        .log = log,
    };
}

static void refuse_too_large(const fr_prediction *prediction,
                             fr_sweep_point *point)
{
    const bool is_host = fr_fit_is_of_hosts(prediction);
    fr_fit_verdict(prediction, point->why, sizeof point->why);
    point->is_too_large = true;
    point->peak_bytes =
        is_host ? prediction->memory.host_bytes : prediction->memory.peak_bytes;
    point->capacity_bytes = is_host ? prediction->memory.host_capacity_bytes
                                    : prediction->memory.capacity_bytes;
}

/* Illegal, unplaceable, without a program: a row.  Else the caller's error. */
static fr_status as_row(fr_status status, const fr_err *why,
                        fr_sweep_point *point, fr_err *err)
{
    if (status == FR_OK)
        return FR_OK;
    if (status != FR_INPUT && status != FR_INFEASIBLE)
        return fr_fail(err, status, "%s", why->text);
    refuse(point, why->text);
    return FR_OK;
}

static void fill_costs(const fr_sweep_case *at, const fr_plan *plan,
                       bool has_goal, const fr_prediction *prediction,
                       fr_sweep_point *point)
{
    char *broken = point->broken;
    const fr_job job = fr_goal_job(at->model, &at->job);
    const fr_goal *asked = &at->goal;
    const fr_goal_subject subject = {at->model, &job, at->cluster};
    const fr_weighed_step step = fr_weighed_step_of(prediction);
    fr_goal_run run = fr_goal_run_of(asked, &step, plan, &subject);
    double hours_per_1e9 = 1e9 / prediction->tokens_per_s / 3600;
    point->n_nodes = run.n_nodes;
    point->usd_per_h =
        fr_cluster_usd_per_h(at->cluster, run.n_nodes, asked->is_spot);
    point->usd_per_1e9_tokens = point->usd_per_h * hours_per_1e9;
    point->kwh_per_1e9_tokens =
        fr_cluster_training_w(at->cluster, run.n_nodes, run.n_devices,
                              plan->n_threads, prediction->busy_frac) /
        1000 * hours_per_1e9;
    if (fr_goal_has_tokens(asked, &job))
        point->run = run.outlook;
    if (!(run.outlook.interruptions > 0))
        point->run.useful_frac = 0; /* nothing to tell */
    if (!has_goal)
        return;
    point->goal = fr_goal_value(asked, prediction, plan, &subject);
    fr_goal_why_not(asked, prediction, plan, &subject, broken,
                    sizeof point->broken);
    fr_err why;
    if (broken[0] == '\0' &&
        fr_goal_check_cluster(asked, at->cluster, &why) != FR_OK)
        fr_text_copy_cut(broken, sizeof point->broken, why.text);
}

/* best: the plan is kept there; NULL: nobody asks for it. */
static void fill_point(const fr_sweep_case *at, const fr_plan *plan,
                       bool has_goal, const fr_prediction *prediction,
                       fr_sweep_point *point, fr_plan *best)
{
    point->is_feasible = true;
    if (best != NULL)
        *best = *plan;
    fr_plan_describe(plan, point->plan, sizeof point->plan);
    point->source = prediction->source;
    point->n_ranks = fr_plan_world(plan);
    point->step_s = prediction->expected_step_s;
    point->busy_frac = prediction->busy_frac;
    point->step_s_p5 = prediction->step_s_p5;
    point->step_s_p95 = prediction->step_s_p95;
    point->tokens_per_s = prediction->tokens_per_s;
    point->tokens_per_s_per_rank =
        prediction->tokens_per_s / (double)point->n_ranks;
    point->mfu = prediction->mfu;
    point->peak_bytes = prediction->memory.peak_bytes;
    point->capacity_bytes = prediction->memory.capacity_bytes;
    point->p_fits = prediction->memory.p_fits;
    fill_costs(at, plan, has_goal, prediction, point);
}

static fr_status simulate_point(const fr_sweep_case *at,
                                const fr_sweep_options *options,
                                fr_sweep_point *point, fr_err *err)
{
    fr_evaluation found;
    fr_err why;
    fr_plan_space_request request = request_of(at, options->log);
    request.fit_confidence = 0; /* the plan is as it is asked for */
    fr_plan_describe(&at->plan, point->plan, sizeof point->plan);
    fr_status status = fr_plan_check(&at->plan, at->model, &at->job, &why);
    if (status == FR_OK)
        status = fr_evaluate(&request, at->costs, &at->plan, &found, &why);
    if (status != FR_OK)
        return as_row(status, &why, point, err);
    if (found.outcome == FR_OUTCOME_UNPLACEABLE)
        refuse(point, found.why);
    else if (found.outcome == FR_OUTCOME_TOO_LARGE)
        refuse_too_large(&found.prediction, point);
    else
        fill_point(at, &at->plan, options->has_goal, &found.prediction, point,
                   NULL);
    return FR_OK;
}

static fr_status tune_wholly(const fr_sweep_case *at,
                             const fr_sweep_options *options, int n_threads,
                             fr_sweep_point *point, fr_plan *best, fr_err *err)
{
    fr_tuning found;
    fr_err why;
    fr_tune_options tune = {.space = request_of(at, options->log),
                            .is_best_only = true,
                            .is_exact = options->is_exact,
                            .n_alternatives = 1,
                            .n_threads = n_threads};
    fr_status status = FR_OK;
    /* A search knows its threads by their numbers, from 0: here begins a team
     * of its own, whichever thread of the sweep this is. */
#pragma omp parallel num_threads(1)
    status = fr_tune(&tune, at->costs, &found, &why);
    if (status != FR_OK)
        return as_row(status, &why, point, err);
    point->n_plans = found.space.plans;
    point->n_simulated = found.space.simulated;
    if (found.best.plan != NULL) {
        point->gap =
            found.certificate.optimal_in_space ? 0 : found.certificate.gap;
        fill_point(at, found.best.plan, options->has_goal,
                   &found.best.prediction, point, best);
    } else if (found.nearest.plan != NULL) {
        fr_plan_describe(found.nearest.plan, point->plan, sizeof point->plan);
        refuse_too_large(&found.nearest.prediction, point);
    } else {
        refuse(point, "no plan can be placed");
    }
    fr_tuning_release(&found);
    return FR_OK;
}

/* The search of tune, if it finds something faster. */
static fr_status try_wholly(const fr_sweep_case *at,
                            const fr_sweep_options *options, int n_threads,
                            fr_sweep_point *point, fr_plan *best, fr_err *err)
{
    fr_sweep_point other = *point;
    fr_plan plan;
    FR_TRY(tune_wholly(at, options, n_threads, &other, &plan, err));
    if (other.is_feasible && other.step_s < point->step_s) {
        *point = other;
        *best = plan;
    }
    return FR_OK;
}

static fr_status tune_quickly(const fr_sweep_case *at,
                              const fr_sweep_options *options, int n_threads,
                              fr_sweep_point *point, fr_plan *best, fr_err *err)
{
    fr_quick found;
    fr_err why;
    const fr_plan_space_request request = request_of(at, options->log);
    fr_status status =
        fr_tune_quick(&request, at->costs, n_threads, &found, &why);
    if (status != FR_OK)
        return as_row(status, &why, point, err);
    if (!found.fits && found.may_fit)
        return tune_wholly(at, options, n_threads, point, best, err);
    if (!found.has_plan) {
        refuse(point, "no plan can be placed");
        return FR_OK;
    }
    point->n_plans = found.n_plans;
    point->n_simulated = (uint64_t)found.n_simulated;
    if (found.fits) {
        fill_point(at, &found.plan, options->has_goal, &found.prediction, point,
                   best);
        point->gap = found.gap;
        return found.is_doubtful
                   ? try_wholly(at, options, n_threads, point, best, err)
                   : FR_OK;
    }
    fr_plan_describe(&found.plan, point->plan, sizeof point->plan);
    refuse_too_large(&found.prediction, point);
    return FR_OK;
}

/* Balanced layers and shares of the batch are no part of the quick walks. */
static fr_status tune_point(const fr_sweep_case *at,
                            const fr_sweep_options *options, int n_threads,
                            fr_sweep_point *point, fr_plan *best, fr_err *err)
{
    return fr_cluster_is_all_gpu(at->cluster) &&
                   !fr_cluster_is_unlike(at->cluster) && !options->is_exact
               ? tune_quickly(at, options, n_threads, point, best, err)
               : tune_wholly(at, options, n_threads, point, best, err);
}

/* ---- all of them --------------------------------------------------------- */

typedef struct run {
    const fr_sweep_case *cases;
    fr_sweep_options options; /* of a point: its log is quiet */
    const fr_log *log;
    fr_sweep *sweep;
    int n_threads;
    size_t n_done;
    fr_err *errors; /* by point: the first does not depend on who ran first */
    fr_plan *best;  /* the same: of tuned points that are possible */
} run;

static void run_point(run *r, size_t i)
{
    const fr_sweep_case *at = &r->cases[i];
    fr_sweep_point *point = &r->sweep->points[i];
    bool is_alone = r->sweep->n_points == 1;
    fr_status status = FR_OK;
    point->goal = HUGE_VAL;
    point->gap = NAN;
    point->global_batch = at->job.global_batch;
    point->seq = at->job.seq;
    point->n_ranks = ranks_of(at, r->options.is_fixed);
    if (point->why[0] == '\0')
        status = r->options.is_fixed
                     ? simulate_point(at, &r->options, point, &r->errors[i])
                     : tune_point(at, &r->options, is_alone ? r->n_threads : 1,
                                  point, &r->best[i], &r->errors[i]);
    if (status != FR_OK)
        r->errors[i].status = status;
#pragma omp critical(fr_sweep_progress)
    {
        r->n_done++;
        fr_log_progress(r->log, (double)r->n_done / (double)r->sweep->n_points,
                        "%zu of %zu points", r->n_done, r->sweep->n_points);
    }
}

static fr_status fail_point(const fr_err *why, size_t i, fr_err *err)
{
    return fr_status_ends_all(why->status)
               ? fr_fail(err, why->status, "%s", why->text)
               : fr_fail(err, why->status, "point %zu: %s", i + 1, why->text);
}

/* ---- winners of neighbours ----------------------------------------------- */

/*
 * A search looks at a part of the plans, so that the winner of a point may be
 * better at the next one than the winner there: with a faster network, say, a
 * step would be predicted to be longer.  So each point tries the winners of the
 * points beside it, which differ in one key by one value, until none improves.
 */
typedef struct trial_round {
    const fr_plan *winners; /* of the round before, [n_points] */
    const bool *is_new;     /* which changed in it */
    bool *has_changed;
} trial_round;

/* The choices of a neighbour under what the case has fixed; false: its ranks do
 * not divide those of the case. */
static bool adapt(const fr_sweep_case *at, const fr_plan *winner, fr_plan *out)
{
    const uint64_t free = FR_PINS_ALL & ~at->pins;
    const fr_plan_space_request request = request_of(at, NULL);
    *out = at->plan;
    for (int i = 0; i < FR_PLAN_FIELDS_N; i++)
        if ((free >> i & 1) != 0)
            fr_field_copy(&fr_plan_fields[i].field, winner, out);
    if ((at->pins & FR_PIN(DP)) == 0 && request.world > 0) {
        const int64_t others = fr_plan_world(out) / out->dp;
        if (request.world % others != 0)
            return false;
        out->dp = (int32_t)(request.world / others);
        if (out->dp != winner->dp)
            out->n_shares = 0;
    }
    return true;
}

static fr_status try_winner(const run *r, size_t i, const fr_plan *plan,
                            bool *has_changed, fr_err *err)
{
    const fr_sweep_case *at = &r->cases[i];
    fr_sweep_point *point = &r->sweep->points[i];
    const fr_plan_space_request request = request_of(at, r->options.log);
    fr_evaluation found;
    fr_err why;
    if (fr_plan_is_same(plan, &r->best[i]) ||
        fr_plan_check_lowerable(plan, at->model, &at->job, &why) != FR_OK)
        return FR_OK;
    FR_TRY(fr_evaluate(&request, at->costs, plan, &found, err));
    point->n_simulated++;
    if (found.outcome != FR_OUTCOME_SIMULATED ||
        !(found.prediction.expected_step_s < point->step_s))
        return FR_OK;
    /* The bound of the search stays true. */
    const double bound_s = (1 - point->gap) * point->step_s;
    fill_point(at, plan, r->options.has_goal, &found.prediction, point,
               &r->best[i]);
    point->gap = fmax(0, 1 - bound_s / point->step_s);
    *has_changed = true;
    return FR_OK;
}

static fr_status try_neighbours(const run *r, const trial_round *round,
                                size_t i, fr_err *err)
{
    const fr_sweep *sweep = r->sweep;
    if (!sweep->points[i].is_feasible)
        return FR_OK;
    for (int k = 0; k < sweep->n_keys; k++) {
        const size_t stride = fr_sweep_stride(sweep, k);
        const size_t value = fr_sweep_value_of(sweep, i, k);
        for (int side = 0; side < 2; side++) {
            fr_plan plan;
            if (side == 0 ? value == 0 : value + 1 == sweep->keys[k].n_values)
                continue;
            const size_t beside = side == 0 ? i - stride : i + stride;
            if (sweep->points[beside].is_feasible && round->is_new[beside] &&
                adapt(&r->cases[i], &round->winners[beside], &plan))
                FR_TRY(try_winner(r, i, &plan, &round->has_changed[i], err));
        }
    }
    return FR_OK;
}

/* Ends: the steps of points only shrink, over finitely many plans. */
static fr_status share_winners(run *r, fr_err *err)
{
    const size_t n = r->sweep->n_points;
    bool *is_new, *has_changed;
    fr_plan *winners;
    FR_TRY_CALLOC(is_new, 2 * n + 1, err);
    has_changed = is_new + n;
    winners = malloc((n + 1) * sizeof *winners);
    bool is_over = false;
    fr_status status = winners != NULL ? FR_OK : fr_fail_no_memory(err);
    for (size_t i = 0; i < n; i++)
        is_new[i] = true;
    while (status == FR_OK && !is_over) {
        const trial_round round = {winners, is_new, has_changed};
        memcpy(winners, r->best, n * sizeof *winners);
#pragma omp parallel for schedule(dynamic, 1) num_threads(r->n_threads)
        for (size_t i = 0; i < n; i++) {
            fr_err *own = &r->errors[i];
            has_changed[i] = false;
            own->status = try_neighbours(r, &round, i, own);
        }
        is_over = true;
        for (size_t i = 0; i < n; i++) {
            is_over = is_over && !has_changed[i];
            is_new[i] = has_changed[i];
            if (status == FR_OK && r->errors[i].status != FR_OK)
                status = fail_point(&r->errors[i], i, err);
        }
    }
    free(winners);
    free(is_new);
    return status;
}

/* ---- the sweep ----------------------------------------------------------- */

fr_status fr_sweep_run(fr_sweep_case *cases, const fr_sweep_options *options,
                       fr_sweep *sweep, fr_err *err)
{
    double begin_s = fr_clock_s();
    size_t n = sweep->n_points;
    const fr_log quiet = fr_log_quiet(options->log);
    run r = {.cases = cases,
             .options = *options,
             .log = options->log,
             .sweep = sweep,
             .n_threads = options->n_threads > 0 ? options->n_threads
                                                 : omp_get_max_threads()};
    r.options.log = &quiet;
    r.errors = calloc(n + 1, sizeof *r.errors);
    r.best = calloc(n + 1, sizeof *r.best);
    if (r.errors == NULL || r.best == NULL) {
        free(r.errors);
        free(r.best);
        return fr_fail_no_memory(err);
    }
    prepare(cases, options, sweep);
#pragma omp parallel for schedule(dynamic, 1) num_threads(r.n_threads)
    for (size_t i = 0; i < n; i++)
        run_point(&r, i);
    fr_log_progress_end(options->log);
    fr_status status = FR_OK;
    for (size_t i = 0; i < n && status == FR_OK; i++)
        if (r.errors[i].status != FR_OK)
            status = fail_point(&r.errors[i], i, err);
    if (status == FR_OK && !options->is_fixed)
        status = share_winners(&r, err);
    free(r.errors);
    free(r.best);
    sweep->is_fixed = options->is_fixed;
    sweep->is_exact = options->is_exact;
    sweep->is_weak = options->is_weak;
    sweep->wall_s = fr_clock_s() - begin_s;
    return status != FR_OK ? status : fr_sweep_finish(sweep, err);
}
