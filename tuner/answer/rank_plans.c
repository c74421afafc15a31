/* rank_plans.c: order by value, step, name; then cut the lists from it. */
#include "tuner/answer/rank_plans.h"

#include "core/base/text.h"
#include "frameworks/framework.h"
#include "tuner/answer/tune.h"
#include "tuner/space/plan_space_lists.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct ranked {
    size_t i;
    double value, step_s;
    char name[FR_TUNED_NAME];
} ranked;

/* The data that all functions below rank by. */
typedef struct ranking {
    const fr_goal *goal;
    const fr_trial_list *trials;
    fr_goal_scale scale; /* of the first, where there is one */
    ranked *order; /* [n], best first: those that fit and break no limit */
    size_t n;
} ranking;

static int compare_ranked(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->value != y->value)
        return x->value < y->value ? -1 : 1;
    if (x->step_s != y->step_s)
        return x->step_s < y->step_s ? -1 : 1;
    return strcmp(x->name, y->name);
}

void fr_trial_plan(const fr_trial *trial, fr_plan *out)
{
    if (trial->plan != NULL)
        *out = *trial->plan;
    else
        fr_plan_space_plan(trial->request, &trial->candidate, out);
}

static fr_status rank(const fr_goal *goal, const fr_trial_list *trials,
                      ranking *out, fr_err *err)
{
    ranking all = {.goal = goal, .trials = trials};
    all.order = malloc((trials->n + 1) * sizeof *all.order);
    if (all.order == NULL)
        return fr_fail_no_memory(err);
    for (size_t i = 0; i < trials->n; i++) {
        const fr_trial *l = &trials->items[i];
        fr_plan plan;
        if (l->value == HUGE_VAL)
            continue;
        fr_trial_plan(l, &plan);
        ranked *r = &all.order[all.n++];
        r->i = i;
        r->value = l->value;
        r->step_s = l->evaluation.prediction.expected_step_s;
        fr_plan_describe(&plan, r->name, sizeof r->name);
    }
    qsort(all.order, all.n, sizeof *all.order, compare_ranked);
    *out = all;
    return FR_OK;
}

static const fr_trial *at(const ranking *of, size_t k)
{
    return &of->trials->items[of->order[k].i];
}

static fr_status make_scale(const fr_goal *goal, const fr_trial *trial,
                            fr_goal_scale *out, fr_err *err)
{
    fr_plan plan;
    const fr_plan_space_request *request = trial->request;
    fr_job job = fr_goal_job(request->model, request->job);
    const fr_goal_subject subject = {request->model, &job, request->cluster};
    fr_trial_plan(trial, &plan);
    return fr_goal_scale_make(goal, &plan, &subject, out, err);
}

static fr_status make_tuned(const fr_goal *goal, const fr_trial *trial,
                            fr_tuned *out, fr_err *err)
{
    fr_tuned tuned;
    memset(&tuned, 0, sizeof tuned);
    tuned.plan = malloc(sizeof *tuned.plan);
    if (tuned.plan == NULL)
        return fr_fail_no_memory(err);
    fr_trial_plan(trial, tuned.plan);
    fr_plan_describe(tuned.plan, tuned.name, sizeof tuned.name);
    const fr_plan_space_request *request = trial->request;
    fr_job job = fr_goal_job(request->model, request->job);
    const fr_goal_subject subject = {request->model, &job, request->cluster};
    const fr_weighed_step step =
        fr_weighed_step_of(&trial->evaluation.prediction);
    const fr_goal_run run = fr_goal_run_of(goal, &step, tuned.plan, &subject);
    tuned.prediction = trial->evaluation.prediction;
    tuned.global_batch = request->job->global_batch;
    tuned.n_ranks = run.n_devices;
    tuned.n_nodes = run.n_nodes;
    tuned.value = trial->value;
    tuned.run_by = fr_target_executors(fr_is_gpu_space(request), tuned.plan,
                                       request->model, request->job);
    if (!fr_goal_rows[goal->kind]->is_step || fr_goal_has_tokens(goal, &job))
        tuned.run = run.outlook;
    *out = tuned;
    return FR_OK;
}

fr_status fr_tuned_copy(const fr_tuned *from, fr_tuned *out, fr_err *err)
{
    fr_tuned copy = *from;
    copy.plan = malloc(sizeof *copy.plan);
    if (copy.plan == NULL)
        return fr_fail_no_memory(err);
    *copy.plan = *from->plan;
    *out = copy;
    return FR_OK;
}

static fr_status add_loser(const ranking *of, size_t k, const fr_tuning *tuning,
                           fr_tuned_list *list, fr_err *err)
{
    fr_tuned tuned;
    const fr_tuned *best = &tuning->best;
    FR_TRY(make_tuned(of->goal, at(of, k), &tuned, err));
    tuned.is_tie = fr_is_tie(of->goal, &of->scale, best, &tuned);
    fr_tune_why(&best->prediction, &tuned.prediction, tuned.why,
                sizeof tuned.why);
    return fr_tuned_list_add(list, tuned, err);
}

static bool has_layout(const fr_tuned_list *list, const fr_plan *plan)
{
    for (size_t i = 0; i < list->n; i++) {
        const fr_plan *p = list->at[i].plan;
        if (p->dp == plan->dp && p->tp == plan->tp && p->pp == plan->pp)
            return true;
    }
    return false;
}

/* Does one that is listed differ in the size of its buckets alone, by less than
 * the model can tell? */
static bool has_twin(const ranking *of, const fr_tuning *t, const fr_plan *plan,
                     double value)
{
    const fr_tuned one = {.value = value};
    for (size_t i = 0; i <= t->alternatives.n; i++) {
        const fr_tuned *listed = i == 0 ? &t->best : &t->alternatives.at[i - 1];
        fr_plan like = *plan;
        like.bucket_bytes = listed->plan->bucket_bytes;
        if (fr_plan_is_same(&like, listed->plan) &&
            fr_is_tie(of->goal, &of->scale, listed, &one))
            return true;
    }
    return false;
}

static fr_status fill_lists(const ranking *of, size_t n_alternatives,
                            fr_tuning *t, fr_err *err)
{
    uint64_t least_bytes = UINT64_MAX;
    for (size_t k = 0; k < of->n; k++) {
        const fr_prediction *p = &at(of, k)->evaluation.prediction;
        fr_plan plan;
        fr_trial_plan(at(of, k), &plan);
        if (k > 0 && t->alternatives.n < n_alternatives &&
            !has_twin(of, t, &plan, at(of, k)->value))
            FR_TRY(add_loser(of, k, t, &t->alternatives, err));
        if (!has_layout(&t->layouts, &plan))
            FR_TRY(add_loser(of, k, t, &t->layouts, err));
        if (p->memory.peak_bytes < least_bytes) {
            least_bytes = p->memory.peak_bytes;
            FR_TRY(add_loser(of, k, t, &t->pareto, err));
        }
    }
    return FR_OK;
}

static void note_fewest(const ranking *of, size_t k, fr_tuning *t)
{
    fr_plan plan;
    fr_trial_plan(at(of, k), &plan);
    int64_t n_ranks = fr_plan_world(&plan);
    int64_t least = t->fewest.n_ranks > 0 ? t->fewest.n_ranks : t->best.n_ranks;
    if (n_ranks >= least)
        return;
    fr_text_copy_cut(t->fewest.name, sizeof t->fewest.name, of->order[k].name);
    t->fewest.n_ranks = n_ranks;
    t->fewest.value = of->order[k].value;
}

/* Finds, among all plans that the model cannot distinguish from the best, the
 * most robust one and the one with the fewest ranks. */
static fr_status find_ties(const ranking *of, fr_tuning *t, fr_err *err)
{
    size_t found = 0;
    for (size_t k = 1; k < of->n; k++) {
        fr_tuned one = {.value = at(of, k)->value};
        if (!fr_is_tie(of->goal, &of->scale, &t->best, &one))
            break;
        note_fewest(of, k, t);
        if (fr_robustness_compare(&at(of, k)->evaluation.prediction,
                                  &at(of, found)->evaluation.prediction,
                                  t->best.prediction.step_s) < 0)
            found = k;
    }
    if (found == 0)
        return FR_OK;
    FR_TRY(make_tuned(of->goal, at(of, found), &t->robust, err));
    t->robust.is_tie = true;
    fr_robustness_why(&t->best.prediction, &t->robust.prediction, t->robust.why,
                      sizeof t->robust.why);
    return FR_OK;
}

/* Ties stand first; of equally robust ones the better. */
static void sort_ties(const fr_tuned *best, fr_tuned_list *list)
{
    const double step_s = best->prediction.step_s;
    for (size_t i = 1; i < list->n && list->at[i].is_tie; i++) {
        fr_tuned moved = list->at[i];
        size_t k = i;
        while (k > 0 &&
               fr_robustness_compare(&moved.prediction,
                                     &list->at[k - 1].prediction, step_s) < 0) {
            list->at[k] = list->at[k - 1];
            k--;
        }
        list->at[k] = moved;
    }
}

static fr_status fill_nearest(const fr_goal *goal, const fr_trial_list *trials,
                              fr_tuning *tuning, fr_err *err)
{
    const fr_trial *nearest = NULL;
    for (size_t i = 0; i < trials->n; i++) {
        const fr_trial *l = &trials->items[i];
        if (l->evaluation.outcome == FR_OUTCOME_TOO_LARGE &&
            (nearest == NULL ||
             l->evaluation.short_by_bytes < nearest->evaluation.short_by_bytes))
            nearest = l;
    }
    if (nearest == NULL)
        return FR_OK;
    tuning->short_by_bytes = nearest->evaluation.short_by_bytes;
    return make_tuned(goal, nearest, &tuning->nearest, err);
}

/* The plans that are not counted here are pruned. */
static void count_outcomes(const fr_trial_list *trials, fr_tuning *t)
{
    for (size_t i = 0; i < trials->n; i++) {
        const fr_evaluation *e = &trials->items[i].evaluation;
        switch (e->outcome) {
        case FR_OUTCOME_NONE:
            break;
        case FR_OUTCOME_SIMULATED:
            t->space.simulated++;
            break;
        case FR_OUTCOME_TOO_LARGE:
            t->space.infeasible_memory++;
            break;
        case FR_OUTCOME_UNPLACEABLE:
            t->space.illegal++;
            t->space.plans--;
            fr_tuning_count_reason(t, e->why);
            break;
        }
    }
    if (t->space.infeasible_memory > 0)
        fr_tuning_add_reason(t, "does not fit in memory",
                             t->space.infeasible_memory);
    t->space.pruned_by_bound =
        t->space.plans - t->space.simulated - t->space.infeasible_memory;
}

static void certify(fr_tuning *t)
{
    double best = t->best.value;
    /* Bounds know nothing of what measured steps taught. */
    t->certificate.optimal_in_space =
        t->certificate.bound >= best && t->best.prediction.learned.n_runs == 0;
    t->certificate.bound = fmin(t->certificate.bound, best);
    t->certificate.gap = best > 0 ? 1 - t->certificate.bound / best : 0;
}

fr_status fr_rank_plans(const fr_goal *goal, const fr_trial_list *trials,
                        int n_alternatives, fr_tuning *tuning, fr_err *err)
{
    ranking of;
    FR_TRY(rank(goal, trials, &of, err));
    fr_status status = FR_OK;
    count_outcomes(trials, tuning);
    if (of.n == 0) {
        status = fill_nearest(goal, trials, tuning, err);
        goto out_order;
    }
    FR_TRY_GOTO(status, make_scale(goal, at(&of, 0), &of.scale, err),
                out_order);
    FR_TRY_GOTO(status, make_tuned(goal, at(&of, 0), &tuning->best, err),
                out_order);
    FR_TRY_GOTO(status, fill_lists(&of, (size_t)n_alternatives, tuning, err),
                out_order);
    sort_ties(&tuning->best, &tuning->alternatives);
    FR_TRY_GOTO(status, find_ties(&of, tuning, err), out_order);
    certify(tuning);
out_order:
    fr_goal_scale_release(&of.scale);
    free(of.order);
    return status;
}

fr_status fr_rank_first(const fr_goal *goal, const fr_trial_list *trials,
                        fr_tuned *out, fr_err *err)
{
    ranking of;
    FR_TRY(rank(goal, trials, &of, err));
    fr_status status = FR_OK;
    if (of.n > 0)
        status = make_tuned(goal, at(&of, 0), out, err);
    else
        memset(out, 0, sizeof *out);
    free(of.order);
    return status;
}

char *fr_tune_why(const fr_prediction *best, const fr_prediction *other,
                  char *buf, size_t n_buf)
{
    enum { SHOWN = 3 };
    bool is_shown[FR_PART_N] = {false};
    size_t used = 0;
    if (n_buf > 0)
        buf[0] = '\0';
    for (int k = 0; k < SHOWN && best->step_s > 0; k++) {
        int most = -1;
        double most_s = 0.005 * best->step_s; /* half a percent is no reason */
        for (int i = 0; i < FR_PART_N; i++) {
            double more_s = other->breakdown_s[i] - best->breakdown_s[i];
            if (!is_shown[i] && more_s > most_s) {
                most = i;
                most_s = more_s;
            }
        }
        if (most < 0 || used >= n_buf)
            break;
        is_shown[most] = true;
        char part[32];
        snprintf(part, sizeof part, "%s", fr_part_name((fr_part)most));
        for (char *c = part; *c != '\0'; c++)
            *c = *c == '_' ? ' ' : *c;
        int n = snprintf(buf + used, n_buf - used, "%s+%.0f %% %s",
                         k > 0 ? ", " : "", 100 * most_s / best->step_s, part);
        used += n > 0 ? (size_t)n : 0;
    }
    return buf;
}
