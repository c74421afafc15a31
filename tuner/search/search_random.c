/*
 * search_random.c: restarts and local moves.
 *
 * A batch is half random plans and half neighbours of the best that were
 * simulated; the first is random alone.  On GPUs each of them goes downhill
 * under the estimate before it is simulated, on CPUs it is simulated as it is.
 * All is drawn before a batch begins, from GSL's generator under the job's
 * seed, so the answer does not depend on threads.
 *
 * Nothing is known of plans that were not looked at, but that no step is
 * shorter than the model's operations at the peak of all devices.
 */
#include "tuner/search/search_random.h"

#include "core/base/hash.h"
#include "core/numbers/rng.h"
#include "core/system/clock.h"
#include "plan/collective/collective.h"
#include "sim/bound/estimate.h"
#include "tuner/bound/ideal_bound.h"
#include "tuner/partition/balance_layers.h"
#include "tuner/space/decision_lists.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    BATCH = 16,
    N_ELITE = 8,
    N_DOWNHILL = 48, /* moves that are tried under the estimate */
    N_NEAR = 24,     /* LAYERS among which the nearest is a neighbour */
    N_DRAWS = 64,    /* of a batch's places, until one is new */
    MOST_LOOKS = 384
};

/* A plan: LAYERS, and the numbers of its choices below. */
typedef struct point {
    size_t layers, pipeline, gradients;
    double score_s; /* estimate; 0: there is none */
    double value;   /* of the goal, simulated */
} point;

typedef struct search {
    fr_search_input in;
    fr_plan_space_choices layers;
    uint64_t *n_before; /* [layers.n + 1] plans of the LAYERS before */
    fr_decision_lists *lists;
    fr_estimator *estimator; /* NULL: CPUs */
    fr_rng *rng;
    fr_vec(uint64_t) seen; /* keys, ascending */
    fr_vec(point) asked;   /* in the order in which values are told */
    size_t n_told, n_elite;
    point elite[N_ELITE]; /* ascending */
    uint64_t n_illegal;
    double begin_s;
} search;

static bool fits(const fr_plan_space_request *request)
{
    (void)request;
    return true;
}

/* ---- points -------------------------------------------------------------- */

typedef struct place {
    fr_plan plan; /* as far as it is decided */
    const fr_decision_list *pipelines, *gradients;
} place;

static fr_status find_place(search *s, size_t layers, place *out, fr_err *err)
{
    const fr_plan_space_request *request = s->in.request;
    out->plan = request->base;
    fr_plan_space_set(request, FR_DECISION_LAYERS, &s->layers.items[layers],
                      &out->plan);
    FR_TRY(fr_decision_lists_find(s->lists, FR_DECISION_PIPELINE, &out->plan,
                                  &out->pipelines, err));
    return fr_decision_lists_find(s->lists, FR_DECISION_GRADIENTS, &out->plan,
                                  &out->gradients, err);
}

static uint64_t key_of(const point *at)
{
    const uint64_t words[] = {at->layers, at->pipeline, at->gradients};
    return fr_hash_bytes(words, sizeof words, 11);
}

/* Returns the index of the key, or the index at which it would be inserted. */
static size_t find_key(const search *s, uint64_t key)
{
    size_t low = 0, high = s->seen.n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (s->seen.items[mid] < key)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static bool is_seen(const search *s, const point *at)
{
    const uint64_t key = key_of(at);
    size_t i = find_key(s, key);
    return i < s->seen.n && s->seen.items[i] == key;
}

static fr_status see(search *s, const point *at, fr_err *err)
{
    const uint64_t key = key_of(at);
    size_t i = find_key(s, key);
    if (fr_vec_push(&s->seen, key) != FR_OK ||
        fr_vec_push(&s->asked, *at) != FR_OK)
        return fr_fail_no_memory(err);
    memmove(&s->seen.items[i + 1], &s->seen.items[i],
            (s->seen.n - 1 - i) * sizeof *s->seen.items);
    s->seen.items[i] = key;
    return FR_OK;
}

/* Sets the estimate of a point: HUGE_VAL where the plan cannot fit, 0 where
 * there is none.  A plan with something that the estimate does not know has
 * that of the same plan without. */
static fr_status score(search *s, const place *where, point *at, fr_err *err)
{
    fr_estimate estimate;
    fr_plan plan = where->plan;
    at->score_s = 0;
    if (s->estimator == NULL)
        return FR_OK;
    fr_plan_space_set(s->in.request, FR_DECISION_PIPELINE,
                      &where->pipelines->choices.items[at->pipeline], &plan);
    fr_plan_space_set(s->in.request, FR_DECISION_GRADIENTS,
                      &where->gradients->choices.items[at->gradients], &plan);
    plan.activation_offload_frac = 0;
    plan.collective = fr_collective_is_by_servers(plan.collective)
                          ? FR_COLLECTIVE_AUTO
                          : plan.collective;
    plan.expert_dispatch = FR_DISPATCH_ALL_TO_ALL;
    FR_TRY(fr_estimate_legal_plan(s->estimator, &plan, &estimate, err));
    at->score_s = estimate.least_bytes > estimate.capacity_bytes
                      ? HUGE_VAL
                      : estimate.estimate_s;
    return FR_OK;
}

/* ---- moves --------------------------------------------------------------- */

/* Each plan of the space as likely as any. */
static fr_status draw(search *s, point *out, fr_err *err)
{
    place where;
    uint64_t i = fr_rng_below(s->rng, s->n_before[s->layers.n]);
    size_t low = 0, high = s->layers.n - 1;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (s->n_before[mid + 1] <= i)
            low = mid + 1;
        else
            high = mid;
    }
    *out = (point){.layers = low};
    FR_TRY(find_place(s, low, &where, err));
    out->pipeline = (i - s->n_before[low]) / where.gradients->choices.n;
    out->gradients = (i - s->n_before[low]) % where.gradients->choices.n;
    return score(s, &where, out, err);
}

/* Axes on which two choices of a decision level differ. */
static int distance(const fr_plan_space_choice *a,
                    const fr_plan_space_choice *b, fr_decision_level level)
{
    int n = 0;
    for (int i = 0; i < FR_SPACE_AXIS_N; i++)
        n += fr_plan_space_axes[i].level == level && a->value[i] != b->value[i];
    return n;
}

static size_t nearest_in(const fr_plan_space_choices *all,
                         const fr_plan_space_choice *wanted,
                         fr_decision_level level)
{
    size_t best = 0;
    for (size_t i = 1; i < all->n; i++)
        if (distance(&all->items[i], wanted, level) <
            distance(&all->items[best], wanted, level))
            best = i;
    return best;
}

/* A few of a level, at least one other, and of these the nearest. */
static size_t draw_near(search *s, const fr_plan_space_choices *all,
                        size_t from, fr_decision_level level)
{
    size_t best = from;
    int least = FR_SPACE_AXIS_N + 1;
    for (int k = 0; k < N_NEAR; k++) {
        size_t i = (size_t)fr_rng_below(s->rng, all->n);
        int n = distance(&all->items[i], &all->items[from], level);
        if (i == from || n >= least)
            continue;
        best = i;
        least = n;
    }
    return best;
}

/* Other layers, pipeline or gradients; below other layers what is most like
 * what was there. */
static fr_status move(search *s, const point *from, point *out, fr_err *err)
{
    place old, where;
    const uint64_t level = fr_rng_below(s->rng, 3);
    *out = *from;
    FR_TRY(find_place(s, from->layers, &old, err));
    if (level == 0)
        out->pipeline = draw_near(s, &old.pipelines->choices, from->pipeline,
                                  FR_DECISION_PIPELINE);
    if (level == 1)
        out->gradients = draw_near(s, &old.gradients->choices, from->gradients,
                                   FR_DECISION_GRADIENTS);
    if (level < 2)
        return score(s, &old, out, err);
    out->layers = draw_near(s, &s->layers, from->layers, FR_DECISION_LAYERS);
    FR_TRY(find_place(s, out->layers, &where, err));
    if (where.pipelines->choices.n == 0 || where.gradients->choices.n == 0) {
        *out = *from;
        return FR_OK;
    }
    out->pipeline = nearest_in(&where.pipelines->choices,
                               &old.pipelines->choices.items[from->pipeline],
                               FR_DECISION_PIPELINE);
    out->gradients = nearest_in(&where.gradients->choices,
                                &old.gradients->choices.items[from->gradients],
                                FR_DECISION_GRADIENTS);
    return score(s, &where, out, err);
}

static fr_status go_downhill(search *s, point *at, fr_err *err)
{
    for (int k = 0; s->estimator != NULL && k < N_DOWNHILL; k++) {
        point next;
        FR_TRY(move(s, at, &next, err));
        if (next.score_s < at->score_s && !is_seen(s, &next))
            *at = next;
    }
    return FR_OK;
}

/* ---- the search ---------------------------------------------------------- */

static bool is_over(const search *s)
{
    const double n_plans = (double)s->n_before[s->layers.n];
    if (s->n_before[s->layers.n] == 0 || (double)s->asked.n >= n_plans)
        return true;
    if (s->in.is_exact || s->asked.n < BATCH)
        return false;
    return s->in.budget_s > 0 ? fr_clock_s() - s->begin_s >= s->in.budget_s
                              : s->asked.n >= MOST_LOOKS;
}

/* The next that nobody has seen, in the order of the space. */
static fr_status find_unseen(search *s, point *out, bool *is_found, fr_err *err)
{
    for (size_t i = 0; i < s->layers.n; i++) {
        place where;
        FR_TRY(fr_log_check(s->in.request->log, err));
        FR_TRY(find_place(s, i, &where, err));
        for (size_t p = 0; p < where.pipelines->choices.n; p++)
            for (size_t g = 0; g < where.gradients->choices.n; g++) {
                *out = (point){.layers = i, .pipeline = p, .gradients = g};
                *is_found = !is_seen(s, out);
                if (*is_found)
                    return FR_OK;
            }
    }
    return FR_OK;
}

static fr_status propose(search *s, size_t i, point *out, bool *is_found,
                         fr_err *err)
{
    *is_found = false;
    for (int k = 0; k < N_DRAWS && !*is_found; k++) {
        bool is_near = s->n_elite > 0 && i % 2 == 1;
        FR_TRY(fr_log_check(s->in.request->log, err));
        size_t e = is_near ? (size_t)fr_rng_below(s->rng, s->n_elite) : 0;
        if (is_near)
            FR_TRY(move(s, &s->elite[e], out, err));
        else
            FR_TRY(draw(s, out, err));
        FR_TRY(go_downhill(s, out, err));
        *is_found = !is_seen(s, out) && out->score_s < HUGE_VAL;
    }
    return *is_found ? FR_OK : find_unseen(s, out, is_found, err);
}

static fr_status ask(void *state, size_t n_max, fr_candidate *candidates,
                     size_t *n, fr_err *err)
{
    search *s = state;
    const size_t n_most = n_max < BATCH ? n_max : BATCH;
    for (*n = 0; *n < n_most && !is_over(s); ++*n) {
        point at;
        place where;
        bool is_found;
        FR_TRY(propose(s, *n, &at, &is_found, err));
        if (!is_found)
            break;
        FR_TRY(see(s, &at, err));
        FR_TRY(find_place(s, at.layers, &where, err));
        fr_candidate_join(
            &s->layers.items[at.layers].candidate,
            &where.pipelines->choices.items[at.pipeline].candidate,
            &where.gradients->choices.items[at.gradients].candidate,
            &candidates[*n]);
    }
    return FR_OK;
}

static void tell(void *state, const fr_candidate *candidate, double value,
                 bool fits_memory)
{
    search *s = state;
    (void)candidate;
    (void)fits_memory;
    point at = s->asked.items[s->n_told++];
    size_t i = s->n_elite;
    at.value = value;
    if (!(value < HUGE_VAL))
        return;
    if (s->n_elite < N_ELITE)
        s->n_elite++;
    else if (!(value < s->elite[--i].value))
        return;
    for (; i > 0 && value < s->elite[i - 1].value; i--)
        s->elite[i] = s->elite[i - 1];
    s->elite[i] = at;
}

static void report(const void *state, fr_tuning *tuning)
{
    const search *s = state;
    const uint64_t n = s->n_before[s->layers.n];
    tuning->space.plans += n;
    tuning->space.illegal += s->n_illegal;
    if (s->asked.n < n)
        tuning->certificate.bound =
            fmin(tuning->certificate.bound, fr_ideal_bound(&s->in));
}

/* ---- life ---------------------------------------------------------------- */

static void destroy(void *state)
{
    search *s = state;
    if (s->estimator != NULL)
        fr_balance_lend(s->in.request->balance, 0, NULL);
    fr_estimator_destroy(s->estimator);
    fr_decision_lists_destroy(s->lists);
    fr_rng_destroy(s->rng);
    fr_vec_release(&s->layers);
    fr_vec_release(&s->seen);
    fr_vec_release(&s->asked);
    free(s->n_before);
    free(s);
}

static void count_illegal(void *context, const char *reason)
{
    search *s = context;
    s->n_illegal++;
    if (s->in.on_illegal != NULL)
        s->in.on_illegal(s->in.context, reason);
}

static fr_status count_plans(search *s, fr_err *err)
{
    s->n_before = calloc(s->layers.n + 1, sizeof *s->n_before);
    if (s->n_before == NULL)
        return fr_fail_no_memory(err);
    for (size_t i = 0; i < s->layers.n; i++) {
        place where;
        FR_TRY(fr_log_check(s->in.request->log, err));
        FR_TRY(find_place(s, i, &where, err));
        s->n_before[i + 1] = s->n_before[i] + where.pipelines->choices.n *
                                                  where.gradients->choices.n;
    }
    return FR_OK;
}

static fr_status init(search *s, fr_err *err)
{
    const fr_plan_space_request *request = s->in.request;
    FR_TRY(fr_rng_create(request->job->seed, &s->rng, err));
    FR_TRY(fr_decision_lists_create(request, &s->lists, err));
    if (fr_cluster_is_all_gpu(request->cluster)) {
        FR_TRY(fr_estimator_create(request->model, request->job,
                                   request->cluster, s->in.costs, &s->estimator,
                                   err));
        fr_balance_lend(request->balance, 0, s->estimator);
    }
    FR_TRY(fr_plan_space_list(request, FR_DECISION_LAYERS, &request->base,
                              count_illegal, s, &s->layers, err));
    return count_plans(s, err);
}

static fr_status create(const fr_search_input *in, void **out, fr_err *err)
{
    search *s = calloc(1, sizeof *s);
    if (s == NULL)
        return fr_fail_no_memory(err);
    s->in = *in;
    s->begin_s = fr_clock_s();
    fr_status status = init(s, err);
    if (status != FR_OK) {
        destroy(s);
        return status;
    }
    *out = s;
    return FR_OK;
}

const fr_search fr_search_random = {
    .name = "random",
    .summary = "simulate random plans and neighbours of the best",
    .fits = fits,
    .create = create,
    .ask = ask,
    .tell = tell,
    .report = report,
    .destroy = destroy,
};
