/* tune_quick.c: layouts by their usual plan, then the best layouts in full. */
#include "tuner/search/tune_quick.h"

#include "core/base/text.h"
#include "plan/schedule/schedule.h"
#include "tuner/bound/bound_walk.h"
#include "tuner/search/evaluate.h"
#include "tuner/space/plan_space_lists.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#ifdef _OPENMP
#include <omp.h>
#else
#define omp_get_max_threads() 1
#endif

/* Layouts that are looked at in full, or that lack least memory: so many with
 * whole gradients on each rank and so many without, as one estimate of both is
 * less sure of which of them is faster than of which is within its kind. */
enum { OF_A_KIND = 3, MOST_LAYOUTS = 2 * OF_A_KIND };
enum { MOST_SIMULATED = 32 };
/* The work of all simulations in layers x micro-batches, about a fifth of a
 * second.  Another simulation begins as long as some of it is left. */
static const double most_work = 6000;
/* The estimate slows down nothing that shares links: a plan whose estimate is
 * no less than this share of a simulated step seldom takes less. */
static const double worth_a_look = 0.99;
/* A step of so many estimates is no proof of their order. */
static const double doubt = 1.5;

typedef struct quick {
    const fr_plan_space_request *request;
    const fr_cost_model *costs;
    int n_threads;
    fr_plan simulated[MOST_SIMULATED];
    fr_quick answer;
    double best_s;           /* HUGE_VAL: nothing fits so far */
    double work;             /* of all simulations */
    double least_estimate_s; /* of what was simulated */
    char reason[160];
} quick;

/* ---- two spaces ---------------------------------------------------------- */

/* Has the user named its values? */
static bool is_given(const fr_plan_space_request *request,
                     fr_plan_space_axis axis)
{
    return fr_is_pinned(request, fr_space_axis_fields[axis]) ||
           fr_is_ranged(request, axis);
}

/* A field that the user has left open keeps its value in the base plan. */
static void pin(fr_plan_space_request *request, fr_plan_space_axis axis)
{
    if (!is_given(request, axis))
        request->pins |= UINT64_C(1) << fr_space_axis_fields[axis];
}

/* A switch that the user has not set is on. */
static void pin_on(fr_plan_space_request *request, fr_plan_space_axis axis)
{
    if (is_given(request, axis))
        return;
    pin(request, axis);
    fr_field_set_i64(&fr_plan_fields[fr_space_axis_fields[axis]].field, true,
                     &request->base);
}

/* A copy to narrow, with what the user has named. */
static fr_plan_space_request copy_of(const fr_plan_space_request *request,
                                     fr_axis_range *ranges)
{
    fr_plan_space_request copy = *request;
    const size_t n_bytes = FR_SPACE_AXIS_N * sizeof *ranges;
    if (request->ranges != NULL)
        memcpy(ranges, request->ranges, n_bytes);
    else
        memset(ranges, 0, n_bytes);
    copy.ranges = ranges;
    return copy;
}

static void narrow(const fr_plan_space_request *request,
                   fr_plan_space_axis axis, fr_axis_range *ranges, int n,
                   const int64_t *values)
{
    if (is_given(request, axis))
        return;
    ranges[axis].n = n;
    memcpy(ranges[axis].at, values, (size_t)n * sizeof *values);
}

/* Divisors of the global batch up to FR_SPACE_MOST_TOKENS, the smallest in any
 * case. */
static void narrow_micro_batch(const fr_plan_space_request *request,
                               fr_axis_range *range)
{
    const fr_job *job = request->job;
    if (is_given(request, FR_SPACE_AXIS_MICRO_BATCH))
        return;
    range->n = 0;
    for (int64_t n = 1; n <= job->global_batch && range->n < FR_RANGE_VALUES;
         n++)
        if (job->global_batch % n == 0 &&
            (range->n == 0 || n * job->seq <= FR_SPACE_MOST_TOKENS))
            range->at[range->n++] = n;
}

/* Returns a request in which the open fields of a layout have their most
 * frequent values: the axes listed here are pinned, unless the user has set
 * them. */
static fr_plan_space_request coarse_of(const fr_plan_space_request *request,
                                       fr_axis_range *ranges)
{
    static const int64_t zero[] = {1, 2, 3}, order[] = {FR_RANK_ORDER_TP_DP_PP},
                         bucket[] = {25000000}, none[] = {0};
    const int64_t schedule[] = {(int64_t)fr_schedule_usual(1),
                                (int64_t)fr_schedule_usual(2)};
    fr_plan_space_request coarse = copy_of(request, ranges);
    narrow(request, FR_SPACE_AXIS_ZERO, ranges, 3, zero);
    narrow(request, FR_SPACE_AXIS_RANK_ORDER, ranges, 1, order);
    narrow(request, FR_SPACE_AXIS_SCHEDULE, ranges, 2, schedule);
    narrow(request, FR_SPACE_AXIS_RECOMPUTE_LAYERS, ranges, 1, none);
    narrow(request, FR_SPACE_AXIS_ZERO_GROUP, ranges, 1, none);
    narrow(request, FR_SPACE_AXIS_BUCKET, ranges, 1, bucket);
    narrow_micro_batch(request, &ranges[FR_SPACE_AXIS_MICRO_BATCH]);
    pin(&coarse, FR_SPACE_AXIS_CP_KIND);
    pin(&coarse, FR_SPACE_AXIS_TP_OVERLAP);
    pin_on(&coarse, FR_SPACE_AXIS_SEQUENCE_PARALLEL);
    pin_on(&coarse, FR_SPACE_AXIS_OVERLAP);
    pin_on(&coarse, FR_SPACE_AXIS_GATHER_OVERLAP);
    pin_on(&coarse, FR_SPACE_AXIS_ZERO_RESHARD);
    if (!is_given(request, FR_SPACE_AXIS_LAYER_SPLIT))
        coarse.base.n_split = 0;
    pin(&coarse, FR_SPACE_AXIS_LAYER_SPLIT);
    return coarse;
}

/* Does a rank have whole gradients (ZeRO 0, 1), or each only for a while? */
static bool is_whole(const fr_plan *plan)
{
    return plan->zero_stage < 2;
}

/* The fields that define a layout, in addition to is_whole(). */
static const fr_plan_field_id of_layout[] = {
    FR_PLAN_DP, FR_PLAN_TP,  FR_PLAN_PP,          FR_PLAN_CP,
    FR_PLAN_EP, FR_PLAN_ETP, FR_PLAN_MICRO_BATCH, FR_PLAN_RECOMPUTE};

/* All that is open under the layout of a plan. */
static fr_plan_space_request fine_of(const fr_plan_space_request *request,
                                     const fr_plan *plan, fr_axis_range *ranges)
{
    static const int64_t whole[] = {0, 1}, parts[] = {2, 3};
    fr_plan_space_request fine = copy_of(request, ranges);
    narrow(request, FR_SPACE_AXIS_ZERO, ranges, 2,
           is_whole(plan) ? whole : parts);
    fine.world = fr_plan_world(plan);
    for (size_t i = 0; i < FR_LENGTH(of_layout); i++) {
        const fr_field *field = &fr_plan_fields[of_layout[i]].field;
        fr_field_set_i64(field, fr_field_get_i64(field, plan), &fine.base);
        fine.pins |= UINT64_C(1) << of_layout[i];
    }
    for (int a = 0; a < FR_SPACE_AXIS_N; a++) /* a range goes before a pin */
        if (fr_is_pinned(&fine, fr_space_axis_fields[a]))
            ranges[a].n = 0;
    return fine;
}

static bool is_same_layout(const fr_plan *a, const fr_plan *b)
{
    for (size_t i = 0; i < FR_LENGTH(of_layout); i++)
        if (!fr_field_is_same(&fr_plan_fields[of_layout[i]].field, a, b))
            return false;
    return is_whole(a) == is_whole(b);
}

/* ---- simulations --------------------------------------------------------- */

static bool is_simulated(const quick *q, const fr_plan *plan)
{
    for (int64_t i = 0; i < q->answer.n_simulated; i++)
        if (fr_plan_is_same(&q->simulated[i], plan))
            return true;
    return false;
}

/* Is what was found better than the answer so far? */
static bool is_better(const quick *q, const fr_evaluation *found)
{
    if (found->outcome == FR_OUTCOME_SIMULATED)
        return found->prediction.step_s < q->best_s;
    return found->outcome == FR_OUTCOME_TOO_LARGE && !q->answer.fits &&
           (!q->answer.has_plan ||
            found->short_by_bytes < q->answer.short_by_bytes);
}

static fr_status simulate(quick *q, const fr_plan *plan, double estimate_s,
                          fr_err *err)
{
    fr_evaluation found;
    fr_quick *answer = &q->answer;
    bool is_over = q->answer.fits && q->work >= most_work;
    if (is_over || answer->n_simulated == MOST_SIMULATED ||
        (answer->fits && estimate_s > worth_a_look * q->best_s) ||
        is_simulated(q, plan))
        return FR_OK;
    q->least_estimate_s = fmin(q->least_estimate_s, estimate_s);
    q->work += (double)q->request->model->n_layers *
               (double)fr_plan_micro_batches(plan, q->request->job);
    FR_TRY(fr_evaluate(q->request, q->costs, plan, &found, err));
    q->simulated[answer->n_simulated++] = *plan;
    if (!is_better(q, &found))
        return FR_OK;
    answer->has_plan = true;
    answer->fits = found.outcome == FR_OUTCOME_SIMULATED;
    answer->plan = *plan;
    answer->prediction = found.prediction;
    answer->short_by_bytes = found.short_by_bytes;
    if (answer->fits)
        q->best_s = found.prediction.step_s;
    return FR_OK;
}

/* ---- walks --------------------------------------------------------------- */

static void keep_reason(void *context, const char *reason)
{
    quick *q = context;
    if (q->reason[0] == '\0')
        fr_text_copy_cut(q->reason, sizeof q->reason, reason);
}

static fr_status make_walk(quick *q, const fr_plan_space_request *request,
                           fr_bound_walk **out, fr_err *err)
{
    const fr_search_input in = {.request = request,
                                .costs = q->costs,
                                .n_threads = q->n_threads,
                                .on_illegal = keep_reason,
                                .context = q};
    return fr_bound_walk_create(&in, out, err);
}

/* The lowest bound of plans that were not simulated, if it is below the best
 * one. */
static fr_status lower_bound(quick *q, const fr_plan_space_request *request,
                             fr_bound_walk *walk, fr_err *err)
{
    const fr_walk_options options = {.limit = q->best_s};
    fr_walk_result found;
    FR_TRY(fr_bound_walk_run(walk, &options, &found, err));
    for (size_t i = 0; i < found.by_bound.n; i++) {
        fr_plan plan;
        fr_plan_space_plan(request, &found.by_bound.items[i].candidate, &plan);
        if (is_simulated(q, &plan))
            continue;
        q->answer.bound_s =
            fmin(q->answer.bound_s, found.by_bound.items[i].bound);
        break;
    }
    fr_walk_result_release(&found);
    return FR_OK;
}

/* Other choices than the usual ones are taken if their estimate is lower by
 * this share: smaller differences it cannot tell. */
static const double worth_a_change = 0.005;

/* Simulates one plan of a layout: the default one, or one with other choices.
 * Of plans that do not fit it simulates the nearest, once. */
static fr_status simulate_best(quick *q, const fr_plan_space_request *request,
                               const fr_walk_result *found,
                               const fr_plan *layout, double usual_s,
                               fr_err *err)
{
    const fr_bounded_list *list =
        found->by_estimate.n > 0 ? &found->by_estimate : &found->nearest;
    if (found->by_estimate.n == 0 && (q->answer.has_plan || usual_s < HUGE_VAL))
        return FR_OK;
    if (list->n > 0 &&
        list->items[0].estimate <= (1 - worth_a_change) * usual_s) {
        fr_plan plan;
        fr_plan_space_plan(request, &list->items[0].candidate, &plan);
        return simulate(q, &plan, list->items[0].estimate, err);
    }
    return usual_s < HUGE_VAL ? simulate(q, layout, usual_s, err) : FR_OK;
}

/* All that is open under a layout. */
static fr_status walk_layout(quick *q, const fr_plan *layout, double usual_s,
                             fr_err *err)
{
    fr_axis_range ranges[FR_SPACE_AXIS_N];
    const fr_plan_space_request fine = fine_of(q->request, layout, ranges);
    const fr_walk_options options = {.is_best_only = true, .limit = q->best_s};
    fr_walk_result found;
    fr_bound_walk *walk = NULL;
    FR_TRY(make_walk(q, &fine, &walk, err));
    fr_status status = fr_bound_walk_run(walk, &options, &found, err);
    if (status != FR_OK)
        goto out_walk;
    q->answer.n_plans += found.n_plans;
    status = simulate_best(q, &fine, &found, layout, usual_s, err);
    fr_walk_result_release(&found);
    if (status == FR_OK && q->answer.fits)
        status = lower_bound(q, &fine, walk, err);
out_walk:
    fr_bound_walk_destroy(walk);
    return status;
}

typedef struct layouts {
    fr_plan at[MOST_LAYOUTS];
    double estimates_s[MOST_LAYOUTS]; /* HUGE_VAL: it does not fit */
    int n;
} layouts;

/* The first of a list that is of the kind and not among them. */
static void add_layout(const fr_plan_space_request *request,
                       const fr_bounded_list *list, bool is_of_whole,
                       layouts *out)
{
    for (size_t i = 0; i < list->n; i++) {
        bool is_there = false;
        fr_plan plan;
        fr_plan_space_plan(request, &list->items[i].candidate, &plan);
        if (is_whole(&plan) != is_of_whole)
            continue;
        for (int k = 0; k < out->n; k++)
            is_there |= is_same_layout(&out->at[k], &plan);
        if (is_there)
            continue;
        out->estimates_s[out->n] = list->items[i].short_by_bytes > 0
                                       ? HUGE_VAL
                                       : list->items[i].estimate;
        out->at[out->n++] = plan;
        return;
    }
}

static fr_status walk_layouts(quick *q, const fr_plan_space_request *request,
                              fr_bound_walk *walk, fr_err *err)
{
    const fr_walk_options options = {.is_best_only = true, .limit = HUGE_VAL};
    fr_walk_result found;
    layouts best = {.n = 0};
    FR_TRY(fr_bound_walk_run(walk, &options, &found, err));
    q->answer.n_plans += found.n_plans;
    bool fits = found.by_estimate.n > 0;
    for (int i = 0; i < MOST_LAYOUTS; i++)
        add_layout(request, fits ? &found.by_estimate : &found.nearest,
                   i % 2 == 0, &best);
    q->answer.may_fit |= fits;
    fr_walk_result_release(&found);
    for (int i = 0; i < best.n; i++)
        FR_TRY(walk_layout(q, &best.at[i], best.estimates_s[i], err));
    return q->answer.fits ? lower_bound(q, request, walk, err) : FR_OK;
}

static fr_status walk_request(quick *q, const fr_plan_space_request *request,
                              fr_err *err)
{
    fr_bound_walk *walk = NULL;
    FR_TRY(make_walk(q, request, &walk, err));
    fr_status status = walk_layouts(q, request, walk, err);
    fr_bound_walk_destroy(walk);
    return status;
}

/*
 * If no default plan fits, walks the smallest micro-batches, which never take
 * more memory than larger ones, with all splits of the layers.
 */
static fr_status walk_least_memory(quick *q,
                                   const fr_plan_space_request *coarse,
                                   fr_axis_range *ranges, fr_err *err)
{
    fr_plan_space_request least = *coarse;
    if (!is_given(q->request, FR_SPACE_AXIS_MICRO_BATCH))
        ranges[FR_SPACE_AXIS_MICRO_BATCH].n = 1;
    if (!is_given(q->request, FR_SPACE_AXIS_LAYER_SPLIT))
        least.pins &= ~FR_PIN(LAYER_SPLIT);
    return walk_request(q, &least, err);
}

static fr_status walk_all(quick *q, fr_err *err)
{
    fr_axis_range ranges[FR_SPACE_AXIS_N];
    const fr_plan_space_request coarse = coarse_of(q->request, ranges);
    FR_TRY(walk_request(q, &coarse, err));
    if (!q->answer.fits)
        FR_TRY(walk_least_memory(q, &coarse, ranges, err));
    if (q->answer.n_plans > 0)
        return FR_OK;
    return fr_fail(err, FR_INPUT, "no legal plan: %s",
                   q->reason[0] != '\0'
                       ? q->reason
                       : "the pinned axes do not multiply to a number of "
                         "ranks that divides the cluster's slots; give "
                         "--ranks");
}

/* Tunes over plans whose simulation takes at most most_calls passes over
 * layers. */
static fr_status tune_within(const fr_plan_space_request *request,
                             const fr_cost_model *costs, int n_threads,
                             double most_calls, fr_quick *out, fr_err *err)
{
    fr_plan_space_request bounded = *request;
    bounded.most_calls = most_calls;
    quick *q = calloc(1, sizeof *q);
    if (q == NULL)
        return fr_fail_no_memory(err);
    q->request = &bounded;
    q->costs = costs;
    q->n_threads = n_threads > 0 ? n_threads : omp_get_max_threads();
    q->best_s = q->answer.bound_s = q->least_estimate_s = HUGE_VAL;
    fr_status status = walk_all(q, err);
    if (status == FR_OK) {
        *out = q->answer;
        out->is_proven = out->fits && !(out->bound_s < q->best_s);
        out->is_doubtful = out->fits && q->best_s > doubt * q->least_estimate_s;
        out->bound_s = fmin(out->bound_s, q->best_s);
        out->gap = out->fits ? 1 - out->bound_s / q->best_s : 0;
    }
    free(q);
    return status;
}

/* Passes over layers that some seconds are enough for. */
static const double some_calls = 1 << 18;

fr_status fr_tune_quick(const fr_plan_space_request *request,
                        const fr_cost_model *costs, int n_threads,
                        fr_quick *out, fr_err *err)
{
    const double asked = request->most_calls;
    fr_quick found;
    FR_TRY(tune_within(request, costs, n_threads,
                       asked > 0 ? asked : some_calls, &found, err));
    if (!found.fits && (found.may_fit || !found.has_plan) && asked < some_calls)
        FR_TRY(tune_within(request, costs, n_threads,
                           asked > 0 ? some_calls : 0, &found, err));
    *out = found;
    return FR_OK;
}
