/* search_bound.c: see search_bound.h. */
#include "tuner/search/search_bound.h"

#include "core/base/minmax.h"
#include "core/system/clock.h"
#include "sim/bound/estimate.h"
#include "sim/topology/rank_copies.h"
#include "tuner/bound/bound_walk.h"
#include "tuner/search/bound_scope.h"
#include "tuner/search/bound_seeds.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/*
 * Work is counted in steps of simulations (and what each takes beside), so that
 * without a budget of the clock the same plans are looked at on every machine:
 * about two seconds of two threads, and in each batch about a fifth of that.
 */
static const int64_t most_work = 1500000, batch_work = 300000, each_work = 4000;
enum { LEAST_BATCH = 2 };

typedef struct search {
    fr_search_input in;
    fr_bound_walk *walk;
    fr_walk_result found; /* of the last walk */
    fr_bounded_list
        nearest; /* of the first, which sees all that is too large */
    size_t next; /* of found.by_bound */
    uint64_t n_plans, n_too_large;
    fr_vec(fr_candidate) asked; /* before those of by_bound: the seeds */
    double begin_s, best;
    int64_t work, last_work; /* of all batches, of the last one */
    bool has_walked, has_seeds, has_nearest, has_fit;
    bool is_cut;         /* the time was over before all plans were bounded */
    bool has_no_proof;   /* it will be: seeds have all of it */
    int64_t best_layout; /* fr_seeds_layout() of the best; -1: there is none */
    size_t next_seed;    /* of seeds */
    fr_vec(uint64_t) too_large; /* memory_key_of() what was too large */
    fr_bounded_list seeds;
    bool is_scoped; /* the space is vast: only LAYERS of the scope are seen */
    fr_bound_scope scope;
} search;

static bool fits(const fr_plan_space_request *request)
{
    return fr_cluster_is_all_gpu(request->cluster);
}

/* Plans without a closed form would all be bounded by 0 s. */
static bool suits(const fr_search_input *in)
{
    return fr_estimate_knows(&in->request->base);
}

static void destroy(void *state)
{
    search *s = state;
    fr_bound_walk_destroy(s->walk);
    fr_walk_result_release(&s->found);
    fr_vec_release(&s->asked);
    fr_vec_release(&s->nearest);
    fr_vec_release(&s->seeds);
    fr_vec_release(&s->too_large);
    free(s);
}

/* One for a baseline, say. */
static bool is_side_search(const search *s)
{
    return s->in.work_frac > 0 && s->in.work_frac < 1;
}

/* Returns the time at which this share of the budget is spent, but at least a
 * tenth of the budget from now; 0: no end. */
static double end_of(const search *s, double share)
{
    if (s->in.budget_s <= 0 || s->in.is_exact)
        return 0;
    return fmax(s->begin_s + share * s->in.budget_s,
                fr_clock_s() + 0.1 * s->in.budget_s);
}

/* The share of a budget for the list of LAYERS. */
static const double list_frac = 0.2;

static fr_status create(const fr_search_input *in, void **out, fr_err *err)
{
    search *s = calloc(1, sizeof *s);
    if (s == NULL)
        return fr_fail_no_memory(err);
    s->in = *in;
    s->begin_s = fr_clock_s();
    s->best = in->known;
    s->best_layout = -1;
    s->in.list_until_s = end_of(s, list_frac);
    fr_log_progress(in->request->log, -1, "listing plans");
    fr_status status = fr_bound_walk_create(&s->in, &s->walk, err);
    if (status != FR_OK) {
        destroy(s);
        return status;
    }
    *out = s;
    return FR_OK;
}

/* ---- what was asked ------------------------------------------------ */

static bool is_asked(const search *s, const fr_candidate *candidate)
{
    for (size_t i = 0; i < s->asked.n; i++)
        if (fr_candidate_compare(&s->asked.items[i], candidate) == 0)
            return true;
    return false;
}

/* ---- what is too large --------------------------------------------------- */

/* The same for plans that differ only in what takes next to no memory. */
static uint64_t memory_key_of(const search *s, const fr_candidate *candidate)
{
    fr_plan plan;
    fr_plan_space_plan(s->in.request, candidate, &plan);
    plan.bucket_bytes = 0;
    plan.is_overlap = plan.is_gather_overlap = plan.is_tp_overlap = false;
    plan.rank_order = FR_RANK_ORDER_TP_DP_PP;
    return fr_plan_hash(&plan);
}

/* One of its like was too large: as a seed it is not worth a simulation.  The
 * proof comes back to it. */
static bool is_known_too_large(const search *s, const fr_candidate *candidate)
{
    uint64_t key = s->too_large.n > 0 ? memory_key_of(s, candidate) : 0;
    for (size_t i = 0; i < s->too_large.n; i++)
        if (s->too_large.items[i] == key)
            return true;
    return false;
}

/* ---- seeds: many families, not one plan and its twins -------------------- */

/* The options of a walk that finds the best plans by estimate. */
static fr_walk_options seed_options(const search *s, double share)
{
    return (fr_walk_options){.is_best_only = true,
                             .limit = s->best,
                             .is_in_scope =
                                 s->is_scoped ? fr_bound_scope_has : NULL,
                             .scope = &s->scope,
                             .until_s = end_of(s, share)};
}

/*
 * If nodes or layers differ, the estimate is too optimistic for splits that
 * balance them, and these displace all other plans.  So every second seed has
 * an even split.
 */
static fr_status add_even_seeds(search *s, fr_err *err)
{
    fr_walk_options options = seed_options(s, 0.5);
    options.is_even = true;
    fr_bounded_list any = s->seeds;
    fr_walk_result even;
    FR_TRY(fr_bound_walk_run(s->walk, &options, &even, err));
    fr_status status =
        fr_seeds_interleave(s->in.request, &even.by_estimate, err);
    memset(&s->seeds, 0, sizeof s->seeds);
    for (size_t i = 0; status == FR_OK && i < 2 * (any.n + even.by_estimate.n);
         i++) {
        const fr_bounded_list *from = i % 2 == 0 ? &even.by_estimate : &any;
        if (i / 2 < from->n &&
            fr_vec_push(&s->seeds, from->items[i / 2]) != FR_OK)
            status = fr_fail_no_memory(err);
    }
    fr_vec_release(&any);
    fr_walk_result_release(&even);
    return status;
}

/* By turns a plan and one whose simulation takes little time; those that fit by
 * their estimates before the others. */
static fr_status order_seeds(search *s, fr_err *err)
{
    fr_bounded_list cheap = {0};
    fr_status status = fr_seeds_list_cheap(s->in.request, &s->seeds,
                                           batch_work / 4, &cheap, err);
    if (status == FR_OK)
        status = fr_seeds_interleave(s->in.request, &s->seeds, err);
    if (status == FR_OK && s->in.request->balance != NULL)
        status = add_even_seeds(s, err);
    if (status == FR_OK)
        status = fr_seeds_alternate(&cheap, &s->seeds, err);
    if (status == FR_OK)
        fr_seeds_likely_first(&s->seeds);
    fr_vec_release(&cheap);
    return status;
}

/* Narrows the scope of a vast space to the best layouts; the rest of the space
 * is not looked at. */
static fr_status find_layouts(search *s, fr_err *err)
{
    fr_walk_options options = seed_options(s, 0.3);
    options.is_unbalanced = true;
    const int n_max =
        is_side_search(s) ? FR_SCOPE_ON_THE_SIDE : FR_SCOPE_LAYOUTS;
    fr_walk_result found;
    FR_TRY(fr_bound_walk_run(s->walk, &options, &found, err));
    fr_bound_scope_add(&found.by_estimate, n_max, &s->scope);
    fr_bound_scope_add(&found.nearest, n_max, &s->scope);
    s->n_plans += found.n_plans;
    s->n_too_large += found.n_too_large;
    s->is_cut = s->has_no_proof = true;
    fr_walk_result_release(&found);
    return FR_OK;
}

static fr_status find_seeds(search *s, fr_err *err)
{
    const fr_plan_space_choices *layers = fr_bound_walk_layers(s->walk);
    fr_log_progress(s->in.request->log, -1, "bounding plans");
    s->is_scoped =
        !s->in.is_exact &&
        fr_bound_scope_is_vast(s->in.request, layers, is_side_search(s));
    if (s->is_scoped) {
        fr_bound_scope_coarse(s->in.request, layers, &s->scope);
        FR_TRY(find_layouts(s, err));
    }
    const fr_walk_options options = seed_options(s, 0.4);
    FR_TRY(fr_bound_walk_run(s->walk, &options, &s->found, err));
    s->n_plans += s->found.n_plans;
    s->n_too_large += s->found.n_too_large;
    s->has_no_proof |= s->found.is_cut;
    s->found.is_all = false;
    s->nearest = s->found.nearest;
    memset(&s->found.nearest, 0, sizeof s->found.nearest);
    FR_TRY(fr_seeds_interleave(s->in.request, &s->nearest, err));
    s->seeds = s->found.by_estimate;
    memset(&s->found.by_estimate, 0, sizeof s->found.by_estimate);
    return order_seeds(s, err);
}

/* The plans after the last one that is known, or all. */
static fr_status walk_on(search *s, fr_err *err)
{
    fr_walk_result found;
    const fr_bounded *last =
        s->found.by_bound.n > 0
            ? &s->found.by_bound.items[s->found.by_bound.n - 1]
            : NULL;
    const fr_walk_options options = {
        .limit = s->best, .after = last, .until_s = end_of(s, 0.9)};
    if (s->best < HUGE_VAL && options.until_s > 0 &&
        fr_clock_s() >= s->begin_s + 0.9 * s->in.budget_s) {
        s->is_cut = true;
        return FR_OK;
    }
    FR_TRY(fr_bound_walk_run(s->walk, &options, &found, err));
    fr_walk_result_release(&s->found);
    s->found = found;
    s->is_cut = found.is_cut;
    s->next = 0;
    s->has_walked = true;
    return FR_OK;
}

/* The lowest bound of all that was not asked for; HUGE_VAL: there is none. */
static double bound_left(const search *s)
{
    const fr_bounded_list *list = &s->found.by_bound;
    if (s->is_cut)
        return 0;
    if (s->next < list->n)
        return list->items[s->next].bound;
    if (!s->found.is_all && list->n > 0)
        return list->items[list->n - 1].bound;
    return HUGE_VAL;
}

static double work_limit(const search *s)
{
    return (s->in.work_frac > 0 ? s->in.work_frac : 1) * (double)most_work;
}

/* Nothing fits, as far as is known. */
static bool is_hopeless(const search *s)
{
    return s->best == HUGE_VAL && !s->has_fit;
}

/* As long as nothing fits, the main search may do more than its work, because
 * its caller has no answer yet; then its work begins, with the batch that fits.
 */
static bool is_work_done(const search *s, double share)
{
    const double longer = is_hopeless(s) && !is_side_search(s) ? 3 : 1;
    return (double)s->work >= share * longer * work_limit(s);
}

static bool is_over(const search *s)
{
    if (!(bound_left(s) < s->best))
        return true;
    if (s->in.is_exact)
        return false;
    if (s->in.budget_s > 0)
        return fr_clock_s() - s->begin_s >= s->in.budget_s;
    return is_work_done(s, 1);
}

/* A batch that is being made. */
typedef struct batch_size {
    size_t n, n_max;
    int64_t work, most; /* of all, of the longest */
    int64_t usual;      /* that it is made for */
} batch_size;

/* Is there space for one more?  Beside a long one there is as much of others.
 */
static bool has_space(const batch_size *b)
{
    const int64_t least = b->most > b->usual ? b->most : b->usual;
    return b->n < b->n_max && (b->n < LEAST_BATCH || b->work - b->most < least);
}

/* A batch is not stopped: it is a tenth of a budget at most. */
static batch_size empty_batch(const search *s, size_t n_max)
{
    double share = 0.1 * s->in.budget_s * (double)most_work;
    bool is_short = s->in.budget_s > 0 && share < (double)batch_work;
    return (batch_size){.n_max = n_max,
                        .usual = is_short ? (int64_t)share : batch_work};
}

/* Returns the work of a simulation.  If very many ranks do not repeat, most of
 * the work is to find their places. */
static int64_t work_of(const search *s, const fr_bounded *entry)
{
    enum { MANY_RANKS = 1 << 16, RANKS_OF_A_STEP = 6 };
    fr_plan plan;
    fr_plan_space_plan(s->in.request, &entry->candidate, &plan);
    const int64_t n_ranks =
        fr_cluster_is_even(s->in.request->cluster) ? 0 : fr_plan_world(&plan);
    return entry->n_steps + each_work +
           (n_ranks > MANY_RANKS ? n_ranks / RANKS_OF_A_STEP : 0);
}

static void take_space(const search *s, batch_size *b, const fr_bounded *entry)
{
    const int64_t work = work_of(s, entry);
    b->n++;
    b->work += work;
    b->most = work > b->most ? work : b->most;
}

/* Half of the work goes to the best plans by estimate, the rest to the proof.
 * Without a proof the seeds may have twice the work of a search. */
static bool is_seed_time(const search *s)
{
    const double share = s->has_no_proof ? 2 : 0.5;
    if (s->next_seed == 0 || s->in.is_exact)
        return s->next_seed == 0;
    return s->in.budget_s > 0
               ? fr_clock_s() - s->begin_s < share * s->in.budget_s
               : !is_work_done(s, share);
}

static bool is_worth(const search *s, const fr_bounded *seed)
{
    return seed->bound < s->best && !is_asked(s, &seed->candidate) &&
           !is_known_too_large(s, &seed->candidate);
}

/* The next seed of all, or of the best plan's family; NULL: there is none. */
static const fr_bounded *next_seed(search *s, bool is_near_best)
{
    for (size_t i = s->next_seed; i < s->seeds.n; i++) {
        const fr_bounded *seed = &s->seeds.items[i];
        if (!is_near_best)
            s->next_seed = i + 1;
        if (is_worth(s, seed) &&
            (!is_near_best ||
             fr_seeds_layout(s->in.request, &seed->candidate) ==
                 s->best_layout))
            return seed;
    }
    return NULL;
}

/* By turns what is new and what is like the best so far. */
static fr_status ask_seeds(search *s, size_t n_max, fr_candidate *out,
                           size_t *n, fr_err *err)
{
    batch_size size = empty_batch(s, n_max);
    while (has_space(&size)) {
        bool is_near_best = s->best_layout >= 0 && size.n % 2 == 0;
        const fr_bounded *seed = is_near_best ? next_seed(s, true) : NULL;
        if (seed == NULL)
            seed = next_seed(s, false);
        if (seed == NULL)
            break;
        out[size.n] = seed->candidate;
        take_space(s, &size, seed);
        if (fr_vec_push(&s->asked, seed->candidate) != FR_OK)
            return fr_fail_no_memory(err);
    }
    s->work += s->last_work = size.work;
    *n = size.n;
    return FR_OK;
}

/* Each is simulated; a side search looks at fewer. */
enum { MOST_NEAREST = 8, MOST_NEAREST_BESIDE = 2 };

/* Nothing fits, as far as the walk can tell: what lacks least. */
static void ask_nearest(search *s, size_t n_max, fr_candidate *out, size_t *n)
{
    const fr_bounded_list *list = &s->nearest;
    n_max = fr_min_u64(n_max,
                       is_side_search(s) ? MOST_NEAREST_BESIDE : MOST_NEAREST);
    if (s->in.budget_s > 0 && !s->in.is_exact)
        n_max = LEAST_BATCH; /* the walk has had its time */
    for (size_t i = 0; i < list->n && *n < n_max; i++)
        out[(*n)++] = list->items[i].candidate;
    s->n_too_large -= *n; /* the caller counts them */
    s->has_nearest = true;
}

static fr_status ask_in_order(search *s, size_t n_max, fr_candidate *out,
                              size_t *n, fr_err *err)
{
    batch_size size = empty_batch(s, n_max);
    while (has_space(&size) && !s->is_cut && bound_left(s) < s->best) {
        const fr_bounded_list *list = &s->found.by_bound;
        if (s->next == list->n) {
            if (size.n > 0)
                break;
            FR_TRY(walk_on(s, err));
            continue;
        }
        const fr_bounded *entry = &list->items[s->next++];
        if (is_asked(s, &entry->candidate))
            continue;
        out[size.n] = entry->candidate;
        take_space(s, &size, entry);
    }
    s->work += s->last_work = size.work;
    *n = size.n;
    return FR_OK;
}

static fr_status ask(void *state, size_t n_max, fr_candidate *candidates,
                     size_t *n, fr_err *err)
{
    search *s = state;
    *n = 0;
    if (!s->has_seeds) {
        s->has_seeds = true;
        FR_TRY(find_seeds(s, err));
    }
    if (is_seed_time(s))
        FR_TRY(ask_seeds(s, n_max, candidates, n, err));
    if (*n > 0)
        return FR_OK;
    if (!s->has_walked && !s->is_cut)
        FR_TRY(walk_on(s, err));
    if (!is_over(s))
        FR_TRY(ask_in_order(s, n_max, candidates, n, err));
    if (*n == 0 && is_hopeless(s) && !s->has_nearest)
        ask_nearest(s, n_max, candidates, n);
    return FR_OK;
}

static void tell(void *state, const fr_candidate *candidate, double value,
                 bool fits_memory)
{
    search *s = state;
    if (value < s->best) {
        s->best = value;
        s->best_layout = fr_seeds_layout(s->in.request, candidate);
    }
    if (fits_memory && !s->has_fit)
        s->work = s->last_work;
    s->has_fit = s->has_fit || fits_memory;
    /* Without memory for the list, seeds are only asked for in vain. */
    if (!fits_memory &&
        fr_vec_push(&s->too_large, memory_key_of(s, candidate)) != FR_OK)
        s->too_large.n = 0;
}

static void report(const void *state, fr_tuning *tuning)
{
    const search *s = state;
    tuning->space.plans += s->n_plans;
    tuning->space.illegal += fr_bound_walk_n_illegal(s->walk);
    tuning->space.infeasible_memory += s->n_too_large;
    tuning->certificate.bound = fmin(tuning->certificate.bound, bound_left(s));
    if (is_hopeless(s) && s->nearest.n > 0)
        tuning->least_short_bytes = s->nearest.items[0].short_by_bytes;
}

const fr_search fr_search_bound = {
    .name = "bound",
    .summary = "simulate in the order of lower bounds until none is left",
    .fits = fits,
    .suits = suits,
    .create = create,
    .ask = ask,
    .tell = tell,
    .report = report,
    .destroy = destroy,
};
