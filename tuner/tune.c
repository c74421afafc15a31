/* tune.c: walks the space in batches, then reads the answer from an array. */
#include "tuner/tune.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
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
    const fr_cost_model *costs;
    const fr_plan_space *space;
    fr_evaluation *evaluations;
    int n_threads;
} pass;

/* Errors are kept by position, so that the first one does not depend on who
 * ran first. */
static fr_status run_batch(const pass *p, const size_t *batch, size_t n,
                           fr_err *err)
{
    fr_err errors[FR_SEARCH_BATCH];
    fr_status statuses[FR_SEARCH_BATCH];
#pragma omp parallel for schedule(dynamic, 1) num_threads(p->n_threads)
    for (size_t i = 0; i < n; i++) {
        fr_plan plan;
        fr_plan_space_at(p->space, batch[i], &plan);
        statuses[i] = fr_evaluate(&p->space->request, p->costs, &plan,
                                  &p->evaluations[batch[i]], &errors[i]);
    }
    for (size_t i = 0; i < n; i++) {
        if (statuses[i] == FR_OK)
            continue;
        char name[FR_TUNED_NAME];
        fr_plan plan;
        fr_plan_space_at(p->space, batch[i], &plan);
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

static fr_status run_search(const pass *p, const fr_search *search, fr_err *err)
{
    size_t batch[FR_SEARCH_BATCH], n, n_done = 0;
    fr_status status = FR_OK;
    void *state = search->create(p->space, err);
    if (state == NULL)
        return err != NULL ? err->status : FR_FAILURE;
    while ((n = search->ask(state, FR_SEARCH_BATCH, batch)) > 0) {
        FR_TRY_GOTO(status, run_batch(p, batch, n, err), out_search);
        for (size_t i = 0; i < n; i++)
            search->tell(state, batch[i], cost_of(&p->evaluations[batch[i]]));
        n_done += n;
        fr_log_progress(p->options->log, (double)n_done / (double)p->space->n,
                        "simulated %zu of %zu plans", n_done, p->space->n);
    }
out_search:
    fr_log_progress_end(p->options->log);
    search->destroy(state);
    return status;
}

static fr_status find_search(const char *name, const fr_search **out,
                             fr_err *err)
{
    for (int i = 0; fr_searches[i] != NULL; i++)
        if (name == NULL || strcmp(fr_searches[i]->name, name) == 0) {
            *out = fr_searches[i];
            return FR_OK;
        }
    return fr_fail(err, FR_USAGE, "unknown search '%s'", name);
}

static void count_illegal(void *context, const char *reason)
{
    fr_tuning_count_reason(context, reason);
}

/* Evaluates a whole space; *evaluations is the caller's to free. */
static fr_status search_space(const fr_tune_options *options,
                              const fr_cost_model *costs,
                              const fr_plan_space *space,
                              fr_evaluation **evaluations, fr_err *err)
{
    const fr_search *search = NULL;
    FR_TRY(find_search(options->search, &search, err));
    fr_evaluation *at = calloc(space->n, sizeof *at);
    if (at == NULL)
        return fr_fail_no_memory(err);
    pass p = {options, costs, space, at,
              options->n_threads > 0 ? options->n_threads
                                     : omp_get_max_threads()};
    fr_status status = run_search(&p, search, err);
    if (status != FR_OK) {
        free(at);
        return status;
    }
    *evaluations = at;
    return FR_OK;
}

/*
 * The baseline: one process, same job.  Pins that one process can obey hold,
 * unless no plan is left with them.
 */
static fr_status baseline_space(const fr_tune_options *options,
                                fr_plan_space *out, fr_err *err)
{
    fr_plan_space_request alone = options->space;
    alone.world = 1;
    alone.base.dp = alone.base.tp = alone.base.pp = 1;
    alone.base.vpp = alone.base.cp = alone.base.ep = 1;
    alone.base.n_split = 0;
    alone.pins &= FR_PIN_RECOMPUTE | FR_PIN_PRECISION | FR_PIN_MICRO_BATCH |
                  FR_PIN_THREADS;
    FR_TRY(fr_plan_space_create(&alone, NULL, NULL, out, err));
    if (out->n > 0 || alone.pins == 0)
        return FR_OK;
    fr_plan_space_release(out);
    alone.pins = 0;
    return fr_plan_space_create(&alone, NULL, NULL, out, err);
}

/* Looked for on its own, because pins may keep it out of the space. */
static fr_status find_baseline(const fr_tune_options *options,
                               const fr_cost_model *costs, fr_tuning *tuning,
                               fr_err *err)
{
    fr_tune_options all = *options;
    fr_plan_space space;
    fr_evaluation *evaluations = NULL;
    all.search = NULL;
    FR_TRY(baseline_space(options, &space, err));
    fr_status status = FR_OK;
    if (space.n > 0)
        status = search_space(&all, costs, &space, &evaluations, err);
    if (status == FR_OK && space.n > 0)
        status = fr_rank_baseline(&space, evaluations, tuning, err);
    free(evaluations);
    fr_plan_space_release(&space);
    return status;
}

static fr_status tune_space(const fr_tune_options *options,
                            const fr_cost_model *costs,
                            const fr_plan_space *space, fr_tuning *tuning,
                            fr_err *err)
{
    fr_evaluation *evaluations = NULL;
    const fr_search *search = NULL;
    if (space->n == 0)
        return fr_fail(err, FR_INPUT, "no legal plan: %s",
                       tuning->n_reasons > 0
                           ? tuning->reasons[0].text
                           : "the pinned axes do not multiply to a number of "
                             "ranks that divides the cluster's slots; give "
                             "--ranks");
    FR_TRY(find_search(options->search, &search, err));
    FR_TRY(search_space(options, costs, space, &evaluations, err));
    fr_status status = fr_rank_plans(space, evaluations, search->is_exhaustive,
                                     options->n_alternatives, tuning, err);
    free(evaluations);
    return status;
}

fr_status fr_tune(const fr_tune_options *options, const fr_cost_model *costs,
                  fr_tuning *out, fr_err *err)
{
    double begin_s = fr_clock_s();
    fr_tuning tuning;
    fr_plan_space space;
    fr_tuning_init(&tuning);
    fr_status status = fr_plan_space_create(&options->space, count_illegal,
                                            &tuning, &space, err);
    if (status != FR_OK)
        return status;
    tuning.space.plans = space.n;
    tuning.space.illegal = space.n_illegal;
    FR_TRY_GOTO(status, tune_space(options, costs, &space, &tuning, err),
                out_space);
    FR_TRY_GOTO(status, find_baseline(options, costs, &tuning, err), out_space);
out_space:
    fr_plan_space_release(&space);
    if (status != FR_OK) {
        fr_tuning_release(&tuning);
        return status;
    }
    tuning.wall_s = fr_clock_s() - begin_s;
    *out = tuning;
    return FR_OK;
}
