/* search_run.c: asks the search for batches of plans, and simulates them. */
#include "tuner/search/search_run.h"

#include "core/system/clock.h"
#include "tuner/search/evaluate.h"
#include "tuner/search/search.h"
#include "tuner/search/search_exhaustive.h"
#include "tuner/search/tune_quick.h"
#include "tuner/space/plan_space_lists.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* One space, of one batch. */
typedef struct pass {
    const fr_log *log;
    const fr_search_input *in;
    double until_s; /* of fr_clock_s(): the end of the budget; 0: none */
    fr_job counted; /* as the goal counts it */
    fr_search_run *run;
} pass;

static double value_of(const pass *p, const fr_plan *plan,
                       const fr_evaluation *evaluation)
{
    const fr_goal_subject subject = {p->in->request->model, &p->counted,
                                     p->in->request->cluster};
    return evaluation->outcome == FR_OUTCOME_SIMULATED
               ? fr_goal_value(&p->run->goal, &evaluation->prediction, plan,
                               &subject)
               : HUGE_VAL;
}

static bool is_late(const pass *p)
{
    return p->until_s > 0 && fr_clock_s() >= p->until_s;
}

/* Drops what the budget has left no time for; nothing is known of that. */
static void add_trials(pass *p, const bool *is_left, size_t n,
                       fr_tuning *counts)
{
    fr_trial_list *all = &p->run->trials;
    const fr_trial *trial = &all->items[all->n];
    for (size_t i = 0; i < n; i++)
        if (is_left[i])
            counts->certificate.bound = 0;
        else
            all->items[all->n++] = trial[i];
}

/* Errors are kept by position, so that the first one does not depend on who
 * ran first. */
static fr_status run_batch(pass *p, const fr_candidate *batch, size_t n,
                           fr_tuning *counts, fr_err *err)
{
    const fr_plan_space_request *request = p->in->request;
    fr_trial_list *all = &p->run->trials;
    fr_err errors[FR_SEARCH_BATCH];
    fr_status statuses[FR_SEARCH_BATCH] = {FR_OK};
    bool is_left[FR_SEARCH_BATCH];
    if (fr_vec_reserve(all, n) != FR_OK)
        return fr_fail_no_memory(err);
    fr_trial *trial = &all->items[all->n];
#pragma omp parallel for schedule(dynamic, 1) num_threads(p->in->n_threads)
    for (size_t i = 0; i < n; i++) {
        fr_plan plan;
        is_left[i] = i > 0 && is_late(p);
        if (is_left[i])
            continue;
        fr_plan_space_plan(request, &batch[i], &plan);
        trial[i] = (fr_trial){.request = request, .candidate = batch[i]};
        statuses[i] = fr_evaluate(request, p->in->costs, &plan,
                                  &trial[i].evaluation, &errors[i]);
        if (statuses[i] == FR_OK)
            trial[i].value = value_of(p, &plan, &trial[i].evaluation);
    }
    add_trials(p, is_left, n, counts);
    for (size_t i = 0; i < n; i++) {
        if (statuses[i] == FR_OK)
            continue;
        char name[FR_TUNED_NAME];
        fr_plan plan;
        fr_plan_space_plan(request, &batch[i], &plan);
        fr_fail(err, statuses[i], "%s", errors[i].text);
        if (fr_status_ends_all(statuses[i]))
            return statuses[i];
        fr_err_prefix(err, "plan %s",
                      fr_plan_describe(&plan, name, sizeof name));
        return statuses[i];
    }
    return FR_OK;
}

static void tell_all(pass *p, const fr_search *search, void *state,
                     size_t first)
{
    fr_search_run *run = p->run;
    for (size_t i = first; i < run->trials.n; i++) {
        const fr_trial *l = &run->trials.items[i];
        bool fits = l->evaluation.outcome == FR_OUTCOME_SIMULATED;
        run->has_fit = run->has_fit || fits;
        search->tell(state, &l->candidate, l->value, fits);
    }
}

static fr_status run_search(pass *p, const fr_search *search, fr_tuning *counts,
                            fr_err *err)
{
    fr_candidate batch[FR_SEARCH_BATCH];
    size_t n = 0;
    void *state = NULL;
    fr_status status = search->create(p->in, &state, err);
    if (status != FR_OK) {
        fr_log_progress_end(p->log);
        return status;
    }
    do {
        size_t first = p->run->trials.n;
        FR_TRY_GOTO(status, fr_log_check(p->log, err), out_search);
        FR_TRY_GOTO(status, search->ask(state, FR_SEARCH_BATCH, batch, &n, err),
                    out_search);
        FR_TRY_GOTO(status, run_batch(p, batch, n, counts, err), out_search);
        tell_all(p, search, state, first);
        fr_log_progress(p->log, -1, "simulated %zu plans", p->run->trials.n);
    } while (n > 0);
    search->report(state, counts);
out_search:
    fr_log_progress_end(p->log);
    search->destroy(state);
    return status;
}

static bool is_default(const fr_search *search, const fr_search_input *in)
{
    return search->fits(in->request) &&
           (search->suits == NULL || search->suits(in));
}

/* By name, or the first that fits and suits. */
static fr_status find_search(const char *name, const fr_search_input *in,
                             const fr_search **out, fr_err *err)
{
    for (int i = 0; fr_searches[i] != NULL; i++)
        if (name == NULL ? is_default(fr_searches[i], in)
                         : strcmp(fr_searches[i]->name, name) == 0) {
            *out = fr_searches[i];
            break;
        }
    if (*out == NULL)
        return fr_fail(err, FR_USAGE, "unknown search '%s'", name);
    if (!(*out)->fits(in->request))
        return fr_fail(err, FR_USAGE,
                       "search '%s' is for GPU clusters; choose exhaustive",
                       name);
    return FR_OK;
}

static void count_illegal(void *context, const char *reason)
{
    fr_tuning_count_reason(context, reason);
}

/* ---- batches ------------------------------------------------------------- */

/* Returns the logarithm of the factor between a batch and the critical
 * batch. */
static double distance(double critical, int64_t batch)
{
    return fabs(log((double)batch / critical));
}

size_t fr_search_run_batches(const fr_goal *goal, const fr_job *job,
                             int64_t out[FR_SEARCH_RUN_BATCHES])
{
    const double critical = goal->critical_batch / (double)job->seq;
    size_t n = 0;
    out[n++] = job->global_batch;
    for (int64_t batch = 1; n < FR_SEARCH_RUN_BATCHES; batch *= 2) {
        if (batch != job->global_batch)
            out[n++] = batch;
        if ((double)batch >= 8 * critical)
            break;
    }
    for (size_t i = 1; i < n; i++)
        for (size_t k = i; k > 0 && distance(critical, out[k]) <
                                        distance(critical, out[k - 1]);
             k--) {
            int64_t nearer = out[k];
            out[k] = out[k - 1];
            out[k - 1] = nearer;
        }
    return n;
}

/*
 * Passes over layers that one simulation may have: about what half of a budget
 * takes, and in a search beside the one that was asked for some seconds.  Those
 * of an eighth of a second are simulated in any case.
 */
static double most_calls(const fr_tune_options *options, double work_frac)
{
    const double a_second = 1 << 17, beside = 1 << 18;
    if (options->budget_s > 0 && !options->is_exact)
        return a_second * fmax(0.5 * options->budget_s, 0.125);
    return work_frac < 1 ? beside : 0;
}

static void list_requests(const fr_tune_options *options,
                          const fr_plan_space_request *space,
                          const fr_goal *goal, double work_frac,
                          fr_search_run *out)
{
    const fr_job counted = fr_goal_job(space->model, space->job);
    int64_t batches[FR_SEARCH_RUN_BATCHES] = {space->job->global_batch};
    out->n = options->is_batch_free
                 ? fr_search_run_batches(goal, &counted, batches)
                 : 1;
    for (size_t i = 0; i < out->n; i++) {
        out->jobs[i] = *space->job;
        out->jobs[i].global_batch = batches[i];
        fr_job_count_steps(&out->jobs[i], space->model);
        out->requests[i] = *space;
        out->requests[i].job = &out->jobs[i];
        out->requests[i].most_calls = most_calls(options, work_frac);
    }
}

static double best_of(const fr_trial_list *trials)
{
    double best = HUGE_VAL;
    for (size_t i = 0; i < trials->n; i++)
        best = fmin(best, trials->items[i].value);
    return best;
}

static fr_status search_request(const fr_tune_options *options, size_t i,
                                double work_frac, const fr_cost_model *costs,
                                fr_search_run *run, fr_tuning *counts,
                                fr_err *err)
{
    const fr_search *search = NULL;
    const fr_plan_space_request *request = &run->requests[i];
    fr_search_input in = {.request = request,
                          .costs = costs,
                          .goal = &run->goal,
                          .n_threads = options->n_threads,
                          .known = best_of(&run->trials),
                          .budget_s = options->budget_s / (double)run->n,
                          .work_frac = work_frac,
                          .is_exact = options->is_exact,
                          .on_illegal = count_illegal,
                          .context = counts};
    pass p = {.log = request->log,
              .in = &in,
              .until_s = in.budget_s > 0 && !in.is_exact
                             ? fr_clock_s() + in.budget_s
                             : 0,
              .counted = fr_goal_job(request->model, request->job),
              .run = run};
    FR_TRY(find_search(options->search, &in, &search, err));
    FR_TRY(run_search(&p, search, counts, err));
    run->is_complete =
        search == &fr_search_exhaustive && (in.budget_s == 0 || in.is_exact);
    return FR_OK;
}

/* ---- what a budget leaves no time for ------------------------------------ */

/*
 * A search that was ended before it found anything: of the usual plans one that
 * fits, so that there is always a plan that can be launched.
 */
static fr_status add_usual(const fr_tune_options *options,
                           const fr_cost_model *costs, fr_search_run *run,
                           fr_tuning *counts, fr_err *err)
{
    const fr_plan_space_request *request = &run->requests[0];
    const fr_job counted = fr_goal_job(request->model, request->job);
    const fr_goal_subject subject = {request->model, &counted,
                                     request->cluster};
    fr_trial trial = {.request = request, .plan = &run->usual};
    fr_quick found;
    fr_err why;
    fr_status status =
        fr_tune_quick(request, costs, options->n_threads, &found, &why);
    if (status == FR_INPUT || (status == FR_OK && !found.fits))
        return FR_OK; /* no plan is legal, or none of the usual ones fits */
    if (status != FR_OK)
        return fr_fail(err, status, "%s", why.text);
    run->usual = found.plan;
    run->has_fit = true;
    trial.evaluation = (fr_evaluation){.outcome = FR_OUTCOME_SIMULATED,
                                       .prediction = found.prediction};
    trial.value =
        fr_goal_value(&run->goal, &found.prediction, &found.plan, &subject);
    if (counts->space.plans == 0)
        counts->space.plans = 1;
    return fr_vec_push(&run->trials, trial) == FR_OK ? FR_OK
                                                     : fr_fail_no_memory(err);
}

/* Did the budget or the amount of work end it, and was nothing found? */
static bool is_ended_early(const fr_tune_options *options,
                           const fr_search_run *run, const fr_tuning *counts)
{
    return !options->is_exact && fr_is_gpu_space(&run->requests[0]) &&
           counts->certificate.bound < HUGE_VAL &&
           best_of(&run->trials) == HUGE_VAL;
}

fr_status fr_search_run_create(const fr_tune_options *options,
                               const fr_plan_space_request *space,
                               const fr_goal *goal, double work_frac,
                               const fr_cost_model *costs, fr_search_run **out,
                               fr_tuning *counts, fr_err *err)
{
    fr_search_run *run = calloc(1, sizeof *run);
    if (run == NULL)
        return fr_fail_no_memory(err);
    run->goal = *goal;
    list_requests(options, space, goal, work_frac, run);
    fr_status status = FR_OK;
    for (size_t i = 0; i < run->n && status == FR_OK; i++)
        status = search_request(options, i, work_frac, costs, run, counts, err);
    if (status == FR_OK && !(work_frac < 1) &&
        is_ended_early(options, run, counts))
        status = add_usual(options, costs, run, counts, err);
    if (status != FR_OK) {
        fr_search_run_destroy(run);
        return status;
    }
    *out = run;
    return FR_OK;
}

void fr_search_run_destroy(fr_search_run *run)
{
    if (run == NULL)
        return;
    fr_vec_release(&run->trials);
    free(run);
}
