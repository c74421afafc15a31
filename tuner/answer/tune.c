/* tune.c: the search, what stands in for it where nothing is good, and the
 * baselines beside it. */
#include "tuner/answer/tune.h"

#include "core/base/text.h"
#include "core/system/clock.h"
#include "tuner/answer/baselines.h"
#include "tuner/partition/balance_layers.h"
#include "tuner/search/search_run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef _OPENMP
#include <omp.h>
#else
#define omp_get_max_threads() 1
#endif

static void name_goal(const fr_tune_options *options, const fr_goal *goal,
                      fr_tuning_goal *out)
{
    const fr_goal_row *row = fr_goal_row_of(goal->kind);
    fr_text_copy_cut(out->name, sizeof out->name, row->name);
    fr_text_copy_cut(out->unit, sizeof out->unit, row->unit);
    fr_text_copy_cut(out->summary, sizeof out->summary, row->summary);
    out->is_step = row->is_step;
    out->is_whole = row->is_whole;
    if (goal->critical_batch > 0)
        fr_goal_lr_rule(options->space.job, out->lr_rule, sizeof out->lr_rule);
}

static fr_status check_legal(const fr_tuning *t, fr_err *err)
{
    if (t->space.plans > 0)
        return FR_OK;
    return fr_fail(err, FR_INPUT, "no legal plan: %s",
                   t->n_reasons > 0
                       ? t->reasons[0].text
                       : "the pinned axes do not multiply to a number of "
                         "ranks that divides the cluster's slots; give "
                         "--ranks");
}

/* The share of a budget for the main search, if baselines are searched for
 * too. */
static const double main_search_frac = 0.7;

static fr_status tune(const fr_tune_options *options, const fr_goal *goal,
                      const fr_cost_model *costs, fr_tuning *out, fr_err *err)
{
    fr_search_run *run = NULL;
    fr_plan_space_request space = options->space;
    fr_tune_options first = *options;
    if (!options->is_best_only)
        first.budget_s *= main_search_frac;
    space.is_any_nodes = space.is_any_nodes || fr_goal_weighs_devices(goal);
    FR_TRY(
        fr_search_run_create(&first, &space, goal, 1, costs, &run, out, err));
    fr_status status = check_legal(out, err);
    if (status == FR_OK)
        status = fr_rank_plans(goal, &run->trials, options->n_alternatives, out,
                               err);
    if (status == FR_OK && out->best.plan == NULL && fr_goal_has_limits(goal))
        status = fr_tune_nearest(options, &space, goal, run, costs, out, err);
    fr_search_run_destroy(run);
    if (status == FR_OK && !options->is_best_only)
        status = fr_tune_baselines(options, &space, goal, costs, out, err);
    return status;
}

/* The answer for a space that knows its balanced splits. */
static fr_status tune_balanced(fr_tune_options *options, const fr_goal *goal,
                               const fr_cost_model *costs, fr_tuning *out,
                               fr_err *err)
{
    if (!fr_balance_is_wanted(&options->space))
        return tune(options, goal, costs, out, err);
    FR_TRY(fr_balance_create(costs, options->n_threads, &options->space.balance,
                             err));
    fr_status status = tune(options, goal, costs, out, err);
    if (status == FR_OK)
        status = fr_balance_status(options->space.balance, err);
    fr_balance_destroy(options->space.balance);
    return status;
}

fr_status fr_tune(const fr_tune_options *options, const fr_cost_model *costs,
                  fr_tuning *out, fr_err *err)
{
    double begin_s = fr_clock_s();
    fr_tune_options with = *options;
    fr_tuning tuning;
    fr_goal goal;
    fr_goal_init(&goal);
    if (options->goal != NULL)
        goal = *options->goal;
    if (with.budget_s > 0)
        with.until_s = begin_s + with.budget_s;
    if (with.n_threads <= 0)
        with.n_threads = omp_get_max_threads();
    FR_TRY(fr_goal_check(&goal, err));
    FR_TRY(fr_goal_check_cluster(&goal, options->space.cluster, err));
    fr_tuning_init(&tuning);
    name_goal(options, &goal, &tuning.goal);
    tuning.is_for_any = options->space.target == NULL;
    tuning.fit_confidence = options->space.fit_confidence;
    fr_status status = tune_balanced(&with, &goal, costs, &tuning, err);
    if (status != FR_OK) {
        fr_tuning_release(&tuning);
        return status;
    }
    tuning.wall_s = fr_clock_s() - begin_s;
    *out = tuning;
    return FR_OK;
}
