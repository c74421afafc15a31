/* tune.c: walks the space in batches, then reads the answer from an array. */
#include "tuner/tune.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "tuner/balance_layers.h"
#include "tuner/evaluate.h"
#include "tuner/rank_plans.h"

#ifdef _OPENMP
#include <omp.h>
#else
#define omp_get_max_threads() 1
#endif
#include "tuner/search.h"

typedef struct pass {
    const fr_tune_options *options;
    const fr_search_input *in;
    fr_looked_list looked;
} pass;

/* Errors are kept by position, so that the first one does not depend on who
 * ran first. */
static fr_status run_batch(pass *p, const fr_candidate *batch, size_t n,
                           fr_err *err)
{
    const fr_plan_space_request *request = p->in->request;
    fr_err errors[FR_SEARCH_BATCH];
    fr_status statuses[FR_SEARCH_BATCH];
    if (fr_vec_reserve(&p->looked, n) != FR_OK)
        return fr_fail_no_memory(err);
    fr_looked *looked = &p->looked.items[p->looked.n];
#pragma omp parallel for schedule(dynamic, 1) num_threads(p->in->n_threads)
    for (size_t i = 0; i < n; i++) {
        fr_plan plan;
        fr_plan_space_plan(request, &batch[i], &plan);
        looked[i].candidate = batch[i];
        statuses[i] = fr_evaluate(request, p->in->costs, &plan,
                                  &looked[i].evaluation, &errors[i]);
    }
    p->looked.n += n;
    for (size_t i = 0; i < n; i++) {
        if (statuses[i] == FR_OK)
            continue;
        char name[FR_TUNED_NAME];
        fr_plan plan;
        fr_plan_space_plan(request, &batch[i], &plan);
        fr_fail(err, statuses[i], "%s", errors[i].text);
        fr_err_prefix(err, "plan %s",
                      fr_plan_describe(&plan, name, sizeof name));
        return statuses[i];
    }
    return FR_OK;
}

static double cost_of(const fr_evaluation *evaluation)
{
    return evaluation->outcome == FR_OUTCOME_SIMULATED
               ? evaluation->prediction.step_s
               : HUGE_VAL;
}

static fr_status run_search(pass *p, const fr_search *search, fr_tuning *tuning,
                            fr_err *err)
{
    fr_candidate batch[FR_SEARCH_BATCH];
    size_t n = 0;
    void *state = NULL;
    FR_TRY(search->create(p->in, &state, err));
    fr_status status = FR_OK;
    do {
        size_t first = p->looked.n;
        FR_TRY_GOTO(status, search->ask(state, FR_SEARCH_BATCH, batch, &n, err),
                    out_search);
        FR_TRY_GOTO(status, run_batch(p, batch, n, err), out_search);
        for (size_t i = 0; i < n; i++)
            search->tell(state, &batch[i],
                         cost_of(&p->looked.items[first + i].evaluation));
        fr_log_progress(p->options->log, -1, "simulated %zu plans",
                        p->looked.n);
    } while (n > 0);
    search->report(state, tuning);
out_search:
    fr_log_progress_end(p->options->log);
    search->destroy(state);
    return status;
}

static bool is_default(const fr_search *search,
                       const fr_plan_space_request *request)
{
    return search->fits(request) &&
           (search->suits == NULL || search->suits(request));
}

/* By name, or the first that fits and suits. */
static fr_status find_search(const char *name,
                             const fr_plan_space_request *request,
                             const fr_search **out, fr_err *err)
{
    for (int i = 0; fr_searches[i] != NULL; i++)
        if (name == NULL ? is_default(fr_searches[i], request)
                         : strcmp(fr_searches[i]->name, name) == 0) {
            *out = fr_searches[i];
            break;
        }
    if (*out == NULL)
        return fr_fail(err, FR_USAGE, "unknown search '%s'", name);
    if (!(*out)->fits(request))
        return fr_fail(err, FR_USAGE,
                       "search '%s' is for GPU clusters; choose exhaustive",
                       name);
    return FR_OK;
}

static void count_illegal(void *context, const char *reason)
{
    fr_tuning_count_reason(context, reason);
}

static int threads_of(const fr_tune_options *options)
{
    return options->n_threads > 0 ? options->n_threads : omp_get_max_threads();
}

/* Looks at a whole space; counts go to *tuning; *looked is the caller's to
 * release. */
static fr_status search_space(const fr_tune_options *options,
                              const fr_plan_space_request *request,
                              const fr_cost_model *costs, fr_tuning *tuning,
                              fr_looked_list *looked, fr_err *err)
{
    const fr_search *search = NULL;
    fr_search_input in = {.request = request,
                          .costs = costs,
                          .n_threads = threads_of(options),
                          .budget_s = options->budget_s,
                          .is_exact = options->is_exact,
                          .on_illegal = count_illegal,
                          .context = tuning};
    FR_TRY(find_search(options->search, request, &search, err));
    pass p = {.options = options, .in = &in};
    fr_status status = run_search(&p, search, tuning, err);
    if (status != FR_OK) {
        fr_vec_release(&p.looked);
        return status;
    }
    *looked = p.looked;
    return FR_OK;
}

/*
 * The baseline: one process, same job.  Pins that one process can obey hold,
 * unless no plan is left with them.
 */
static fr_plan_space_request baseline_request(const fr_tune_options *options)
{
    fr_plan_space_request alone = options->space;
    alone.world = 1;
    alone.ranges = NULL;
    alone.base.dp = alone.base.tp = alone.base.pp = 1;
    alone.base.vpp = alone.base.cp = alone.base.ep = 1;
    alone.base.etp = 0;
    alone.base.n_split = 0;
    alone.pins &= FR_PIN_RECOMPUTE | FR_PIN_PRECISION | FR_PIN_MICRO_BATCH |
                  FR_PIN_THREADS;
    return alone;
}

/* Looked for on its own, because pins may keep it out of the space. */
static fr_status find_baseline(const fr_tune_options *options,
                               const fr_cost_model *costs, fr_tuning *tuning,
                               fr_err *err)
{
    fr_tune_options all = *options;
    fr_plan_space_request alone = baseline_request(options);
    fr_status status = FR_OK;
    all.search = NULL;
    for (;;) {
        fr_tuning counts;
        fr_looked_list looked = {0};
        fr_tuning_init(&counts);
        status = search_space(&all, &alone, costs, &counts, &looked, err);
        bool is_empty = counts.space.plans == 0;
        if (status == FR_OK)
            status = fr_rank_baseline(&alone, &looked, tuning, err);
        fr_vec_release(&looked);
        fr_tuning_release(&counts);
        if (status != FR_OK || !is_empty || alone.pins == 0)
            return status;
        alone.pins = 0;
    }
}

/* The answer for a space that knows its balanced splits. */
static fr_status tune(const fr_tune_options *options,
                      const fr_cost_model *costs, fr_tuning *tuning,
                      fr_err *err)
{
    fr_looked_list looked = {0};
    fr_status status =
        search_space(options, &options->space, costs, tuning, &looked, err);
    if (status == FR_OK && tuning->space.plans == 0)
        status = fr_fail(err, FR_INPUT, "no legal plan: %s",
                         tuning->n_reasons > 0
                             ? tuning->reasons[0].text
                             : "the pinned axes do not multiply to a number of "
                               "ranks that divides the cluster's slots; give "
                               "--ranks");
    if (status == FR_OK)
        status = fr_rank_plans(&options->space, &looked,
                               options->n_alternatives, tuning, err);
    if (status == FR_OK)
        status = find_baseline(options, costs, tuning, err);
    fr_vec_release(&looked);
    return status;
}

fr_status fr_tune(const fr_tune_options *options, const fr_cost_model *costs,
                  fr_tuning *out, fr_err *err)
{
    double begin_s = fr_clock_s();
    fr_tune_options with = *options;
    fr_tuning tuning;
    FR_TRY(fr_balance_create(costs, threads_of(options), &with.space.balance,
                             err));
    fr_tuning_init(&tuning);
    fr_status status = tune(&with, costs, &tuning, err);
    if (status == FR_OK)
        status = fr_balance_status(with.space.balance, err);
    fr_balance_destroy(with.space.balance);
    if (status != FR_OK) {
        fr_tuning_release(&tuning);
        return status;
    }
    tuning.wall_s = fr_clock_s() - begin_s;
    *out = tuning;
    return FR_OK;
}
