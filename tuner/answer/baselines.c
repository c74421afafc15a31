/* baselines.c: smaller searches than the one that was asked for. */
#include "tuner/answer/baselines.h"

#include "core/base/units.h"
#include "core/system/clock.h"
#include "spec/cluster/cluster_knobs.h"
#include "tuner/answer/advice.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* The share of the work of a search without a budget.  A side search, which
 * nobody asked for, may take less time than the answer. */
static const double side_search_frac = 0.25;

/* Sets the budget to one of n_parts equal parts of the time that is left, and
 * at least to a hundredth of the budget. */
static void share_budget(fr_tune_options *options, int n_parts)
{
    if (options->budget_s > 0)
        options->budget_s = fmax((options->until_s - fr_clock_s()) / n_parts,
                                 0.01 * options->budget_s);
}

static char *why_not(const fr_goal *goal, const fr_plan_space_request *space,
                     const fr_tuned *tuned, char *buf, size_t n_buf)
{
    fr_job job = fr_goal_job(space->model, space->job);
    job.global_batch = tuned->global_batch;
    const fr_goal_subject subject = {space->model, &job, space->cluster};
    return fr_goal_why_not(goal, &tuned->prediction, tuned->plan, &subject, buf,
                           n_buf);
}

/* ---- where every plan breaks a limit ------------------------------------- */

/* The first of the trials by how far they exceed the limits. */
static fr_status first_of_trials(const fr_goal *goal, const fr_search_run *run,
                                 fr_tuned *out, fr_err *err)
{
    fr_trial_list anew = {0};
    fr_status status = FR_OK;
    for (size_t i = 0; i < run->trials.n && status == FR_OK; i++) {
        fr_trial one = run->trials.items[i];
        fr_plan plan;
        if (one.evaluation.outcome != FR_OUTCOME_SIMULATED)
            continue;
        fr_job job = fr_goal_job(one.request->model, one.request->job);
        fr_trial_plan(&one, &plan);
        const fr_goal_subject subject = {one.request->model, &job,
                                         one.request->cluster};
        one.value =
            fr_goal_value(goal, &one.evaluation.prediction, &plan, &subject);
        status = fr_vec_push(&anew, one);
    }
    if (status != FR_OK)
        status = fr_fail_no_memory(err);
    else
        status = fr_rank_first(goal, &anew, out, err);
    fr_vec_release(&anew);
    return status;
}

/* The plan that exceeds the limits least. */
static fr_status find_nearest(const fr_tune_options *options,
                              const fr_plan_space_request *space,
                              const fr_goal *goal, const fr_search_run *run,
                              const fr_cost_model *costs, fr_tuned *out,
                              fr_err *err)
{
    fr_search_run *other = NULL;
    fr_tuning counts;
    fr_goal nearest = *goal;
    nearest.is_nearest = true;
    fr_tune_options side = *options;
    if (run->is_complete)
        return first_of_trials(&nearest, run, out, err);
    share_budget(&side, 3);
    fr_tuning_init(&counts);
    fr_status status = fr_search_run_create(
        &side, space, &nearest, side_search_frac, costs, &other, &counts, err);
    if (status == FR_OK)
        status = fr_rank_first(&nearest, &other->trials, out, err);
    fr_search_run_destroy(other);
    fr_tuning_release(&counts);
    return status;
}

fr_status fr_tune_nearest(const fr_tune_options *options,
                          const fr_plan_space_request *space,
                          const fr_goal *goal, const fr_search_run *run,
                          const fr_cost_model *costs, fr_tuning *tuning,
                          fr_err *err)
{
    fr_tuned nearest = {0};
    FR_TRY(find_nearest(options, space, goal, run, costs, &nearest, err));
    if (nearest.plan == NULL)
        return FR_OK;
    free(tuning->nearest.plan);
    tuning->nearest = nearest;
    tuning->short_by_bytes = 0;
    why_not(goal, space, &nearest, tuning->broken, sizeof tuning->broken);
    return FR_OK;
}

/* ---- one device, one node ------------------------------------------------ */

static const uint64_t pins_of_one = FR_PIN(RECOMPUTE) | FR_PIN(PRECISION) |
                                    FR_PIN(MICRO_BATCH) | FR_PIN(THREADS);

static fr_plan_space_request one_device(const fr_plan_space_request *space)
{
    fr_plan_space_request alone = *space;
    alone.world = 1;
    alone.ranges = NULL;
    alone.base.dp = alone.base.tp = alone.base.pp = 1;
    alone.base.vpp = alone.base.cp = alone.base.ep = 1;
    alone.base.etp = 0;
    alone.base.n_split = 0;
    alone.base.n_shares = 0;
    alone.pins &= pins_of_one;
    return alone;
}

static fr_plan_space_request one_node(const fr_plan_space_request *space)
{
    fr_plan_space_request node = *space;
    node.world = 0;
    node.most_nodes = 1;
    return node;
}

/* Drops pins; false: there are none left. */
static bool loosen(fr_plan_space_request *space)
{
    fr_plan_space_request plain = one_device(space);
    uint64_t pins = space->pins;
    plain.world = space->world;
    plain.pins = pins & ~pins_of_one ? pins & pins_of_one : 0;
    bool is_looser = pins != 0 || space->ranges != NULL;
    *space = plain;
    return is_looser;
}

/* Prints how many bytes the nearest simulated plan lacks, and how many any plan
 * lacks at least.  The second number is a lower bound, which may be far below
 * the first. */
static void say_shortage(const fr_tuning *counts, char *buf, size_t n_buf)
{
    /* The search may have ended before it had looked at all plans. */
    const char *verdict = counts->certificate.bound < HUGE_VAL
                              ? "none was found that fits"
                              : "does not fit";
    char bytes[FR_FORMAT_MAX], least[FR_FORMAT_MAX];
    fr_format_bytes(bytes, sizeof bytes, (double)counts->short_by_bytes);
    fr_format_bytes(least, sizeof least, (double)counts->least_short_bytes);
    if (counts->nearest.plan == NULL)
        snprintf(buf, n_buf, "%s: any plan lacks %s or more (a lower bound)",
                 verdict, least);
    else if (counts->least_short_bytes == 0)
        snprintf(buf, n_buf, "%s: %.110s lacks %s", verdict,
                 counts->nearest.name, bytes);
    else
        snprintf(buf, n_buf,
                 "%s: lacks %s with %.90s, the nearest that was simulated; "
                 "lower bound of any plan: %.20s",
                 verdict, bytes, counts->nearest.name, least);
}

/* As the search found it, or why there is none. */
static fr_status take(const fr_tune_options *options,
                      const fr_plan_space_request *space, const fr_goal *goal,
                      const fr_search_run *run, const fr_cost_model *costs,
                      const fr_tuning *counts, fr_tuning_baseline *out,
                      fr_err *err)
{
    fr_tuning_baseline found = {0};
    FR_TRY(fr_rank_first(goal, &run->trials, &found.tuned, err));
    if (found.tuned.plan == NULL && fr_goal_has_limits(goal))
        FR_TRY(
            find_nearest(options, space, goal, run, costs, &found.tuned, err));
    if (found.tuned.plan != NULL) {
        why_not(goal, space, &found.tuned, found.why_not, sizeof found.why_not);
        if (found.why_not[0] != '\0')
            found.tuned.value = HUGE_VAL;
    } else if (counts->nearest.plan != NULL || counts->least_short_bytes > 0) {
        say_shortage(counts, found.why_not, sizeof found.why_not);
    } else {
        snprintf(found.why_not, sizeof found.why_not, "no plan: %s",
                 counts->n_reasons > 0 ? counts->reasons[0].text
                                       : "none is legal");
    }
    *out = found;
    return FR_OK;
}

static fr_status search_baseline(const fr_tune_options *options,
                                 const fr_plan_space_request *space,
                                 const fr_goal *goal,
                                 const fr_cost_model *costs,
                                 fr_tuning_baseline *out, bool *is_empty,
                                 fr_err *err)
{
    fr_search_run *run = NULL;
    fr_tuning counts;
    fr_tune_options side = *options;
    side.search = NULL;
    side.is_exact = false;
    share_budget(&side, 2);
    fr_tuning_init(&counts);
    fr_status status = fr_search_run_create(
        &side, space, goal, side_search_frac, costs, &run, &counts, err);
    if (status == FR_OK)
        status = fr_rank_plans(goal, &run->trials, 0, &counts, err);
    *is_empty = counts.space.plans == 0;
    if (status == FR_OK)
        status = take(&side, space, goal, run, costs, &counts, out, err);
    fr_search_run_destroy(run);
    fr_tuning_release(&counts);
    return status;
}

static fr_status find(const fr_tune_options *options,
                      fr_plan_space_request space, const fr_goal *goal,
                      const fr_cost_model *costs, fr_tuning_baseline *out,
                      fr_err *err)
{
    for (;;) {
        bool is_empty;
        FR_TRY(
            search_baseline(options, &space, goal, costs, out, &is_empty, err));
        if (!is_empty || !loosen(&space))
            return FR_OK;
        free(out->tuned.plan);
        out->tuned.plan = NULL;
    }
}

static bool has_ranges(const fr_plan_space_request *space)
{
    for (int i = 0; space->ranges != NULL && i < FR_SPACE_AXIS_N; i++)
        if (space->ranges[i].n > 0)
            return true;
    return false;
}

/* Is the best of all a plan of the baseline, and are all of those plans of the
 * space?  Then it is the best of them. */
static bool has_best(const fr_plan_space_request *space, fr_baseline baseline,
                     const fr_tuned *best)
{
    if (best->plan == NULL || space->world != 0 || has_ranges(space))
        return false;
    return baseline == FR_BASELINE_NODE
               ? best->n_nodes == 1
               : best->n_ranks == 1 && (space->pins & ~pins_of_one) == 0;
}

/* Bit of forerun itself among those that can execute a plan. */
enum { RUN_BY_FORERUN = 1 };

/* Finds the first of the next best plans that forerun can run.  If all of them
 * are for other frameworks, it searches for one. */
static fr_status find_runnable(const fr_tune_options *options,
                               fr_plan_space_request space, const fr_goal *goal,
                               const fr_cost_model *costs, fr_tuning *t,
                               fr_err *err)
{
    fr_tuning_baseline *out = &t->baselines[FR_BASELINE_RUNTIME];
    bool is_empty;
    if (space.target != NULL || t->best.plan == NULL ||
        (t->best.run_by & RUN_BY_FORERUN) != 0)
        return FR_OK;
    for (size_t i = 0; i < t->alternatives.n; i++)
        if ((t->alternatives.at[i].run_by & RUN_BY_FORERUN) != 0)
            return fr_tuned_copy(&t->alternatives.at[i], &out->tuned, err);
    const fr_device_type *device = fr_cluster_device(space.cluster, 0);
    space.target = fr_target_runtime(device->kind == FR_DEVICE_GPU);
    space.target_version = 0;
    return search_baseline(options, &space, goal, costs, out, &is_empty, err);
}

/* Nodes that are slow, dropped: what the others do alone. */
static fr_status find_healthy(const fr_tune_options *options,
                              fr_plan_space_request space, const fr_goal *goal,
                              const fr_cost_model *costs,
                              fr_tuning_baseline *out, fr_err *err)
{
    fr_cluster cluster;
    fr_cost_model *healthy = NULL;
    int64_t n_dropped;
    bool is_empty = true;
    FR_TRY(fr_cluster_drop_slow(space.cluster, &cluster, &n_dropped, err));
    if (n_dropped == 0)
        return FR_OK;
    fr_status status =
        fr_cost_model_create(fr_cost_profile(costs), &cluster, &healthy, err);
    space.cluster = &cluster;
    if (status == FR_OK && space.world <= fr_cluster_slots(&cluster))
        status = search_baseline(options, &space, goal, healthy, out, &is_empty,
                                 err);
    /* Pins that only all nodes together can obey ask for the slow ones. */
    if (is_empty) {
        free(out->tuned.plan);
        *out = (fr_tuning_baseline){0};
    }
    fr_cost_model_destroy(healthy);
    fr_cluster_release(&cluster);
    return status;
}

/* The best plan on one node of a group; nothing where no node can be left
 * out. */
static fr_status find_on_group(const fr_tune_options *options,
                               fr_plan_space_request space, const fr_goal *goal,
                               const fr_cost_model *costs, size_t i_group,
                               fr_tuning_baseline *out, fr_err *err)
{
    fr_cluster cluster;
    fr_cost_model *of_node = NULL;
    fr_err why;
    fr_status status =
        fr_cluster_one_node(space.cluster, i_group, &cluster, &why);
    if (status == FR_INFEASIBLE)
        return FR_OK;
    if (status != FR_OK)
        return fr_fail(err, status, "%s", why.text);
    status =
        fr_cost_model_create(fr_cost_profile(costs), &cluster, &of_node, &why);
    space.cluster = &cluster;
    space.balance = NULL; /* it is of the whole cluster */
    if (status == FR_OK)
        status = find(options, space, goal, of_node, out, &why);
    /* These nodes may lack what the first ones have, such as a precision. */
    status = fr_status_ends_all(status) ? fr_fail(err, status, "%s", why.text)
                                        : FR_OK;
    fr_cost_model_destroy(of_node);
    fr_cluster_release(&cluster);
    return status;
}

static bool is_first_of_type(const fr_cluster *cluster, size_t i_group)
{
    for (size_t i = 0; i < i_group; i++)
        if (cluster->groups[i].i_node_type ==
            cluster->groups[i_group].i_node_type)
            return false;
    return true;
}

/* If the nodes differ, the best of them is the baseline. */
static fr_status improve_node(const fr_tune_options *options,
                              const fr_plan_space_request *space,
                              const fr_goal *goal, const fr_cost_model *costs,
                              fr_tuning_baseline *node, fr_err *err)
{
    for (size_t i = 1; i < space->cluster->n_groups; i++) {
        fr_tuning_baseline other = {0};
        if (!is_first_of_type(space->cluster, i))
            continue;
        FR_TRY(find_on_group(options, *space, goal, costs, i, &other, err));
        const bool is_better =
            other.tuned.plan != NULL &&
            (node->tuned.plan == NULL || other.tuned.value < node->tuned.value);
        if (is_better) {
            free(node->tuned.plan);
            *node = other;
        } else {
            free(other.tuned.plan);
        }
    }
    return FR_OK;
}

fr_status fr_tune_baselines(const fr_tune_options *options,
                            const fr_plan_space_request *space,
                            const fr_goal *goal, const fr_cost_model *costs,
                            fr_tuning *t, fr_err *err)
{
    enum { N_SMALLER = FR_BASELINE_NODE + 1 };
    const fr_plan_space_request of[N_SMALLER] = {
        [FR_BASELINE_DEVICE] = one_device(space),
        [FR_BASELINE_NODE] = one_node(space),
    };
    for (int i = 0; i < N_SMALLER; i++) {
        fr_tuning_baseline *b = &t->baselines[i];
        if (has_best(space, (fr_baseline)i, &t->best))
            FR_TRY(fr_tuned_copy(&t->best, &b->tuned, err));
        else
            FR_TRY(find(options, of[i], goal, costs, b, err));
    }
    FR_TRY(improve_node(options, &of[FR_BASELINE_NODE], goal, costs,
                        &t->baselines[FR_BASELINE_NODE], err));
    FR_TRY(find_runnable(options, *space, goal, costs, t, err));
    FR_TRY(find_healthy(options, *space, goal, costs,
                        &t->baselines[FR_BASELINE_HEALTHY], err));
    return fr_advise(space, goal, t, err);
}
