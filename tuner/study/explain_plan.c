/* explain_plan.c: a list of simulations in parallel, then what they say. */
#include "tuner/study/explain_plan.h"

#include "core/base/text.h"
#include "cost_models/stack/stack_features.h"
#include "plan/decide/plan_fields.h"
#include "spec/cluster/cluster_knobs.h"
#include "tuner/partition/balance_shares.h"
#include "tuner/search/evaluate.h"
#include "tuner/study/break_even.h"
#include "tuner/study/next_measurement.h"
#include "tuner/study/plan_changes.h"
#include "tuner/study/slow_parts.h"
#include "tuner/study/what_if.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef _OPENMP
#include <omp.h>
#else
#define omp_get_max_threads() 1
#endif

/* Small enough for a slope, large against a picosecond. */
static const double changed_by = FR_WHAT_IF_NARROW;

/* ---- one simulation ------------------------------------------------------ */

static fr_status evaluate_on(const fr_explain_request *r,
                             const fr_cluster *cluster,
                             const fr_cost_model *costs, const fr_plan *plan,
                             fr_evaluation *out, fr_err *err)
{
    fr_plan_space_request request = {.model = r->model,
                                     .job = r->job,
                                     .cluster = cluster,
                                     .base = *plan,
                                     .log = r->log};
    return fr_evaluate(&request, costs, plan, out, err);
}

/* Nothing of a step that has no such part follows what it waits for there. */
static bool is_used(const fr_explain_request *r, fr_resource resource)
{
    switch (resource) {
    case FR_RESOURCE_HOST:
        return r->plan->is_optimizer_offloaded ||
               r->plan->activation_offload_frac > 0;
    case FR_RESOURCE_INPUT:
        return r->prediction->breakdown_s[FR_PART_DATA] > 0;
    default:
        return true;
    }
}

/* The step with a resource changed; 0: there is none of it. */
static fr_status simulate_changed(const fr_explain_request *r,
                                  const fr_cluster *unlimited,
                                  fr_resource resource, double factor,
                                  double *step_s, fr_err *err)
{
    fr_what_if changed;
    fr_evaluation found;
    bool is_there;
    fr_job job = *r->job;
    fr_explain_request on = *r;
    on.job = &job;
    *step_s = 0;
    if (!is_used(r, resource))
        return FR_OK;
    if (resource == FR_RESOURCE_INPUT)
        job.decode_s /= factor;
    FR_TRY(fr_what_if_create(unlimited, r->profile, resource, factor, &changed,
                             &is_there, err));
    if (!is_there)
        return FR_OK;
    fr_status status =
        evaluate_on(&on, &changed.cluster, changed.costs, r->plan, &found, err);
    fr_what_if_release(&changed);
    if (status != FR_OK)
        return status;
    *step_s = found.prediction.expected_step_s;
    return FR_OK;
}

/* ---- all simulations ----------------------------------------------------- */

enum { N_SLOPES = 2 * FR_RESOURCE_N };

typedef struct work {
    const fr_explain_request *request;
    fr_explanation *out;
    fr_cluster unlimited;     /* the cluster with memory for anything */
    fr_changed_plan *changed; /* [n_changed] */
    size_t n_changed, n_done;
    fr_evaluation *found; /* of them */
    bool *is_legal;
    double steps_s[N_SLOPES];
    fr_err *errors; /* [N_SLOPES + n_changed] */
} work;

/* A plan that is too large for its cluster is simulated with free memory, for
 * its time. */
static fr_status evaluate_change(const work *w, const fr_plan *plan,
                                 fr_evaluation *out, fr_err *err)
{
    const fr_explain_request *r = w->request;
    fr_evaluation timed;
    FR_TRY(evaluate_on(r, r->cluster, r->costs, plan, out, err));
    if (out->outcome != FR_OUTCOME_TOO_LARGE ||
        out->prediction.expected_step_s > 0)
        return FR_OK;
    uint64_t capacity_bytes = out->prediction.memory.capacity_bytes;
    FR_TRY(evaluate_on(r, &w->unlimited, r->costs, plan, &timed, err));
    if (timed.outcome != FR_OUTCOME_SIMULATED)
        return FR_OK;
    out->prediction = timed.prediction;
    out->short_by_bytes = timed.prediction.memory.peak_bytes - capacity_bytes;
    return FR_OK;
}

/* A change that is illegal, or has no program, is none. */
static fr_status try_change(work *w, size_t i, fr_err *err)
{
    const fr_plan *plan = &w->changed[i].plan;
    fr_evaluation *found = &w->found[i];
    fr_err why;
    fr_status status =
        fr_plan_check(plan, w->request->model, w->request->job, &why);
    if (status == FR_OK)
        status = evaluate_change(w, plan, found, &why);
    w->is_legal[i] =
        status == FR_OK && found->outcome != FR_OUTCOME_UNPLACEABLE;
    if (status == FR_OK || status == FR_INPUT || status == FR_INFEASIBLE)
        return FR_OK;
    return fr_fail(err, status, "%s", why.text);
}

static fr_status run_one(work *w, size_t i, fr_err *err)
{
    const fr_explain_request *r = w->request;
    if (i < N_SLOPES)
        return simulate_changed(r, &w->unlimited, (fr_resource)(i / 2),
                                i % 2 ? changed_by : 1 / changed_by,
                                &w->steps_s[i], err);
    return try_change(w, i - N_SLOPES, err);
}

static void run_and_report(work *w, size_t i, size_t n)
{
    fr_status status = run_one(w, i, &w->errors[i]);
    if (status != FR_OK)
        w->errors[i].status = status;
#pragma omp critical(fr_explain_progress)
    {
        w->n_done++;
        fr_log_progress(w->request->log, (double)w->n_done / (double)n,
                        "%zu of %zu simulations", w->n_done, n);
    }
}

static fr_status run_all(work *w, fr_err *err)
{
    size_t n = N_SLOPES + w->n_changed;
    int n_threads = w->request->n_threads > 0 ? w->request->n_threads
                                              : omp_get_max_threads();
    (void)n_threads;
#pragma omp parallel for schedule(dynamic, 1) num_threads(n_threads)
    for (size_t i = 0; i < n; i++)
        run_and_report(w, i, n);
    fr_log_progress_end(w->request->log);
    for (size_t i = 0; i < n; i++)
        if (w->errors[i].status != FR_OK)
            return fr_fail(err, w->errors[i].status, "%s", w->errors[i].text);
    return FR_OK;
}

/* ---- what they say ------------------------------------------------------- */

static bool is_rate(int resource)
{
    return resource < FR_RESOURCE_NODE_LATENCY;
}

/*
 * Twice of every rate and half of every latency, and of the fixed times, make
 * half of the step: minus the elasticities of rates, those of latencies and
 * the share of what is fixed add up to one.
 */
static void fill_shares(const work *w, fr_explanation *out)
{
    double sum = 0, most;
    const char *binds = "fixed";
    double bubble_s = out->prediction.breakdown_s[FR_PART_BUBBLE];
    for (int i = 0; i < FR_RESOURCE_N; i++) {
        fr_sensitivity *at = &out->of[i];
        at->less_s = w->steps_s[2 * i];
        at->more_s = w->steps_s[2 * i + 1];
        at->is_known = at->less_s > 0 && at->more_s > 0;
        if (!at->is_known)
            continue;
        at->elasticity = log(at->more_s / at->less_s) / (2 * log(changed_by));
        out->share[i] = fmax(0, is_rate(i) ? -at->elasticity : at->elasticity);
    }
    out->share[FR_RESOURCE_NETWORK] = fmax(
        0, out->share[FR_RESOURCE_NETWORK] - out->share[FR_RESOURCE_SWITCHES]);
    for (int i = 0; i < FR_RESOURCE_N; i++)
        sum += out->share[i];
    /* A step may jump from one bottleneck to another within the change that was
     * tried: the elasticities are of both then. */
    for (int i = 0; i < FR_RESOURCE_N && sum > 1; i++)
        out->share[i] /= sum;
    out->bubble_share = bubble_s / out->prediction.step_s;
    out->fixed_share = most = fmax(0, 1 - sum) * (1 - out->bubble_share);
    if (out->bubble_share > most) {
        most = out->bubble_share;
        binds = "bubble";
    }
    for (int i = 0; i < FR_RESOURCE_N; i++) {
        out->share[i] *= 1 - out->bubble_share;
        if (out->share[i] <= most)
            continue;
        most = out->share[i];
        binds = fr_resource_name((fr_resource)i);
    }
    if (!out->prediction.memory.fits)
        binds = "memory";
    fr_text_copy_cut(out->bound_by, sizeof out->bound_by, binds);
}

/* "-12 % exposed tp, +2 % bubble": the three parts that change most. */
static void say_why(const fr_prediction *from, const fr_prediction *to,
                    char *buf, size_t n_buf)
{
    bool is_told[FR_PART_N] = {false};
    size_t used = 0;
    buf[0] = '\0';
    for (int k = 0; k < 3; k++) {
        int most = -1;
        double largest = 0.005;
        for (int i = 0; i < FR_PART_N; i++) {
            double change =
                fabs(to->breakdown_s[i] - from->breakdown_s[i]) / from->step_s;
            if (is_told[i] || change < largest)
                continue;
            most = i;
            largest = change;
        }
        if (most < 0 || used >= n_buf)
            return;
        is_told[most] = true;
        double change =
            (to->breakdown_s[most] - from->breakdown_s[most]) / from->step_s;
        used += (size_t)snprintf(buf + used, n_buf - used, "%s%+.0f %% %s",
                                 used > 0 ? ", " : "", 100 * change,
                                 fr_part_name((fr_part)most));
    }
}

/* A plan that does not fit was simulated with free memory: the probability is
 * for the real capacity. */
static double p_fits_of(const fr_evaluation *found, uint64_t capacity_bytes)
{
    const double sigma = found->prediction.memory.error_bytes;
    const double headroom =
        (double)capacity_bytes - (double)found->prediction.memory.peak_bytes;
    if (found->outcome == FR_OUTCOME_SIMULATED)
        return found->prediction.memory.p_fits;
    return sigma > 0 ? 0.5 * erfc(-headroom / sigma / sqrt(2)) : 0;
}

static void fill_change(const work *w, size_t i, fr_plan_change *out)
{
    const fr_evaluation *found = &w->found[i];
    const fr_prediction *from = &w->out->prediction;
    memset(out, 0, sizeof *out);
    fr_text_copy_cut(out->what, sizeof out->what, w->changed[i].what);
    fr_plan_describe(&w->changed[i].plan, out->plan, sizeof out->plan);
    out->fits = found->outcome == FR_OUTCOME_SIMULATED;
    out->step_s = found->prediction.expected_step_s;
    out->diff = out->step_s > 0 ? out->step_s / from->expected_step_s - 1 : 0;
    out->peak_bytes = found->prediction.memory.peak_bytes;
    out->short_by_bytes = found->short_by_bytes;
    out->p_fits = p_fits_of(found, from->memory.capacity_bytes);
    fr_run_point run;
    fr_stack_run_of(w->request->model, w->request->job, &w->changed[i].plan,
                    fr_cluster_device(w->request->cluster, 0),
                    &found->prediction, out->step_s, &run);
    out->features = run.features;
    if (out->step_s > 0)
        say_why(from, &found->prediction, out->why, sizeof out->why);
    for (char *c = out->why; *c != '\0'; c++)
        if (*c == '_')
            *c = ' ';
}

/* Orders changes: first those that fit, then those with a known step, then the
 * rest. */
static int class_of(const fr_plan_change *change)
{
    return change->fits ? 0 : change->step_s > 0 ? 1 : 2;
}

static bool is_better(const fr_plan_change *a, const fr_plan_change *b)
{
    if (class_of(a) != class_of(b))
        return class_of(a) < class_of(b);
    return a->step_s < b->step_s;
}

/* Faster by a percent than the plan and all changes that fit; of several the
 * one that is short by least. */
static int find_worth_memory(const fr_explanation *e)
{
    int found = -1;
    double best_s = e->prediction.expected_step_s;
    if (!e->prediction.memory.fits) /* it lacks memory itself */
        return found;
    if (e->n_fitting > 0)
        best_s = fmin(best_s, e->changes[0].step_s);
    for (int i = e->n_fitting; i < e->n_changes; i++) {
        const fr_plan_change *at = &e->changes[i];
        if (at->step_s > 0 && at->step_s < 0.99 * best_s &&
            (found < 0 ||
             at->short_by_bytes < e->changes[found].short_by_bytes))
            found = i;
    }
    return found;
}

static void fill_changes(const work *w, fr_explanation *out)
{
    for (size_t i = 0; i < w->n_changed; i++) {
        fr_plan_change change;
        int at = out->n_changes;
        if (!w->is_legal[i]) {
            out->n_illegal++;
            continue;
        }
        fill_change(w, i, &change);
        for (; at > 0 && is_better(&change, &out->changes[at - 1]); at--)
            out->changes[at] = out->changes[at - 1];
        out->changes[at] = change;
        out->n_changes++;
        out->n_fitting += change.fits;
    }
    out->i_more_memory = find_worth_memory(out);
}

/* If devices differ, adds the change to shares of the batch that match the
 * speeds of the replicas, or from such shares to even ones.  A plan without a
 * price has no such change. */
static void add_shares(const fr_explain_request *request, work *w)
{
    fr_err ignored;
    const fr_plan *from = request->plan;
    fr_plan plan = *from;
    if (plan.dp == 1 || plan.ep > 1 || w->n_changed == FR_PLAN_CHANGES ||
        !fr_cluster_is_unlike(request->cluster))
        return;
    if (fr_balance_shares_on(request->model, request->job, request->cluster,
                             request->costs, NULL, &plan, &ignored) != FR_OK)
        plan.n_shares = 0;
    if (fr_plan_is_same(&plan, from))
        plan.n_shares = 0;
    if (fr_plan_is_same(&plan, from))
        return;
    fr_changed_plan *changed = &w->changed[w->n_changed++];
    snprintf(changed->what, sizeof changed->what, "batch-shares %s",
             plan.n_shares > 0 ? "auto" : "even");
    changed->plan = plan;
}

fr_status fr_explain_plan(const fr_explain_request *request,
                          fr_explanation *out, fr_err *err)
{
    fr_explanation *answer = calloc(1, sizeof *answer);
    work w = {.request = request, .out = answer};
    fr_status status = FR_OK;
    w.changed = calloc(FR_PLAN_CHANGES, sizeof *w.changed);
    w.found = calloc(FR_PLAN_CHANGES, sizeof *w.found);
    w.is_legal = calloc(FR_PLAN_CHANGES, sizeof *w.is_legal);
    w.errors = calloc(N_SLOPES + FR_PLAN_CHANGES, sizeof *w.errors);
    if (answer == NULL || w.changed == NULL || w.found == NULL ||
        w.is_legal == NULL || w.errors == NULL) {
        status = fr_fail_no_memory(err);
        goto out_work;
    }
    FR_TRY_GOTO(status,
                fr_what_if_unlimited(request->cluster, &w.unlimited, err),
                out_work);
    answer->prediction = *request->prediction;
    w.n_changed =
        fr_plan_changes(request->plan, request->model, request->cluster,
                        request->allow_lossy, w.changed, FR_PLAN_CHANGES);
    add_shares(request, &w);
    FR_TRY_GOTO(status, run_all(&w, err), out_work);
    FR_TRY_GOTO(status, fr_break_even_find(request, &answer->compression, err),
                out_work);
    FR_TRY_GOTO(status, fr_slow_parts_find(request, answer, err), out_work);
    answer->changed_by = changed_by;
    answer->fit_confidence = request->fit_confidence;
    fill_shares(&w, answer);
    fill_changes(&w, answer);
    FR_TRY_GOTO(status, fr_next_measurement(request, answer, err), out_work);
    *out = *answer;
out_work:
    fr_cluster_release(&w.unlimited);
    free(w.changed);
    free(w.found);
    free(w.is_legal);
    free(w.errors);
    free(answer);
    return status;
}
