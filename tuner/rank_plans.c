/* rank_plans.c: order by time, ties by name; then cut the lists from it. */
#include "tuner/rank_plans.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tuner/tune.h"

typedef struct ranked {
    size_t i;
    double step_s;
    char name[FR_TUNED_NAME];
} ranked;

static int compare_ranked(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->step_s != y->step_s)
        return x->step_s < y->step_s ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* The candidates that fit, fastest first; NULL when out of memory. */
static ranked *sort_candidates(const fr_plan_space_request *request,
                               const fr_looked_list *looked, size_t *n)
{
    ranked *order = malloc((looked->n + 1) * sizeof *order);
    if (order == NULL)
        return NULL;
    *n = 0;
    for (size_t i = 0; i < looked->n; i++) {
        const fr_looked *l = &looked->items[i];
        if (l->evaluation.outcome != FR_OUTCOME_SIMULATED)
            continue;
        fr_plan plan;
        fr_plan_space_plan(request, &l->candidate, &plan);
        ranked *r = &order[(*n)++];
        r->i = i;
        r->step_s = l->evaluation.prediction.step_s;
        fr_plan_describe(&plan, r->name, sizeof r->name);
    }
    qsort(order, *n, sizeof *order, compare_ranked);
    return order;
}

static fr_status make_tuned(const fr_plan_space_request *request,
                            const fr_looked *looked, fr_tuned *out, fr_err *err)
{
    fr_tuned tuned;
    memset(&tuned, 0, sizeof tuned);
    tuned.plan = malloc(sizeof *tuned.plan);
    if (tuned.plan == NULL)
        return fr_fail_no_memory(err);
    fr_plan_space_plan(request, &looked->candidate, tuned.plan);
    fr_plan_describe(tuned.plan, tuned.name, sizeof tuned.name);
    tuned.prediction = looked->evaluation.prediction;
    *out = tuned;
    return FR_OK;
}

/*
 * Slower by less than half the interval of the best, or by 5 %: the model
 * cannot tell.  Two plans of one model on one cluster have most of their error
 * in common: of those that differ by more than 5 %, 98 % are ranked right, on
 * CPUs and on GPUs (docs/validation.md).
 */
static bool is_tie(const fr_prediction *best, const fr_prediction *other)
{
    double half_s = 0.5 * (best->step_s_p95 - best->step_s_p5);
    return other->step_s - best->step_s <= fmin(half_s, 0.05 * best->step_s);
}

static fr_status add_loser(const fr_plan_space_request *request,
                           const fr_looked *looked, const fr_tuning *tuning,
                           fr_tuned_list *list, fr_err *err)
{
    fr_tuned tuned;
    const fr_prediction *best = &tuning->best.prediction;
    FR_TRY(make_tuned(request, looked, &tuned, err));
    tuned.is_tie = is_tie(best, &tuned.prediction);
    fr_tune_why(best, &tuned.prediction, tuned.why, sizeof tuned.why);
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

static fr_status fill_lists(const fr_plan_space_request *request,
                            const fr_looked_list *looked, const ranked *order,
                            size_t n_order, size_t n_alternatives, fr_tuning *t,
                            fr_err *err)
{
    uint64_t least_bytes = UINT64_MAX;
    for (size_t k = 0; k < n_order; k++) {
        const fr_looked *l = &looked->items[order[k].i];
        const fr_evaluation *e = &l->evaluation;
        fr_plan plan;
        fr_plan_space_plan(request, &l->candidate, &plan);
        if (k > 0 && k <= n_alternatives)
            FR_TRY(add_loser(request, l, t, &t->alternatives, err));
        if (!has_layout(&t->layouts, &plan))
            FR_TRY(add_loser(request, l, t, &t->layouts, err));
        if (e->prediction.memory.peak_bytes < least_bytes) {
            least_bytes = e->prediction.memory.peak_bytes;
            FR_TRY(add_loser(request, l, t, &t->pareto, err));
        }
    }
    return FR_OK;
}

static fr_status fill_nearest(const fr_plan_space_request *request,
                              const fr_looked_list *looked, fr_tuning *tuning,
                              fr_err *err)
{
    const fr_looked *nearest = NULL;
    for (size_t i = 0; i < looked->n; i++) {
        const fr_looked *l = &looked->items[i];
        if (l->evaluation.outcome == FR_OUTCOME_TOO_LARGE &&
            (nearest == NULL ||
             l->evaluation.short_by_bytes < nearest->evaluation.short_by_bytes))
            nearest = l;
    }
    if (nearest == NULL)
        return FR_OK;
    tuning->short_by_bytes = nearest->evaluation.short_by_bytes;
    return make_tuned(request, nearest, &tuning->nearest, err);
}

/* What is left is pruned. */
static void count_outcomes(const fr_looked_list *looked, fr_tuning *t)
{
    for (size_t i = 0; i < looked->n; i++) {
        const fr_evaluation *e = &looked->items[i].evaluation;
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
    double best_s = t->best.prediction.step_s;
    t->certificate.optimal_in_space = t->certificate.bound_s >= best_s;
    t->certificate.bound_s = fmin(t->certificate.bound_s, best_s);
    t->certificate.gap = 1 - t->certificate.bound_s / best_s;
}

fr_status fr_rank_plans(const fr_plan_space_request *request,
                        const fr_looked_list *looked, int n_alternatives,
                        fr_tuning *tuning, fr_err *err)
{
    size_t n_order;
    ranked *order = sort_candidates(request, looked, &n_order);
    if (order == NULL)
        return fr_fail_no_memory(err);
    fr_status status = FR_OK;
    count_outcomes(looked, tuning);
    if (n_order == 0) {
        status = fill_nearest(request, looked, tuning, err);
        goto out_order;
    }
    FR_TRY_GOTO(
        status,
        make_tuned(request, &looked->items[order[0].i], &tuning->best, err),
        out_order);
    FR_TRY_GOTO(status,
                fill_lists(request, looked, order, n_order,
                           (size_t)n_alternatives, tuning, err),
                out_order);
    certify(tuning);
out_order:
    free(order);
    return status;
}

fr_status fr_rank_baseline(const fr_plan_space_request *request,
                           const fr_looked_list *looked, fr_tuning *tuning,
                           fr_err *err)
{
    size_t n_order;
    ranked *order = sort_candidates(request, looked, &n_order);
    if (order == NULL)
        return fr_fail_no_memory(err);
    fr_status status = FR_OK;
    if (n_order > 0)
        status = make_tuned(request, &looked->items[order[0].i],
                            &tuning->baseline, err);
    if (status == FR_OK && n_order > 0 && tuning->best.plan != NULL) {
        fr_tuned *b = &tuning->baseline;
        b->is_tie = is_tie(&tuning->best.prediction, &b->prediction);
        fr_tune_why(&tuning->best.prediction, &b->prediction, b->why,
                    sizeof b->why);
    }
    free(order);
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
