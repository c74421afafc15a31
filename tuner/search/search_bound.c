/* search_bound.c: see search_bound.h. */
#include "tuner/search/search_bound.h"

#include "core/system/clock.h"
#include "sim/bound/estimate.h"
#include "sim/topology/rank_copies.h"
#include "tuner/bound/bound_walk.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/*
 * Work is counted in steps of simulations (and what each takes beside), so that
 * without a budget of the clock the same plans are looked at on every machine:
 * about a second of two threads, and in each batch about a fifth of that.
 */
static const int64_t most_work = 800000, batch_work = 160000, each_work = 4000;
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
    int64_t work;
    bool has_walked, has_seeds, has_nearest, has_fit;
    bool is_cut;         /* the time was over before all plans were bounded */
    bool has_no_proof;   /* it will be: seeds have all of it */
    int64_t best_layout; /* layout_of() the best; -1: there is none */
    size_t next_seed;    /* of seeds */
    fr_vec(uint64_t) too_large; /* memory_key_of() what was too large */
    fr_bounded_list seeds;
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

typedef struct family {
    int64_t layout;  /* the distribution of layers and of state over ranks */
    size_t n_before; /* of it, whose estimates are lower */
    size_t i;
} family;

static int64_t layout_of(const fr_plan_space_request *request,
                         const fr_candidate *candidate)
{
    fr_plan plan;
    fr_plan_space_plan(request, candidate, &plan);
    int64_t layout = plan.tp;
    layout = layout * 4096 + plan.pp;
    layout = layout * 4096 + plan.cp;
    layout = layout * 4096 + plan.ep;
    return layout * 4 + plan.zero_stage;
}

static int by_rank_in_family(const void *a, const void *b)
{
    const family *x = a, *y = b;
    if (x->n_before != y->n_before)
        return x->n_before < y->n_before ? -1 : 1;
    return x->i < y->i ? -1 : x->i > y->i;
}

/*
 * From the order of their estimates to the best of each family, then the second
 * of each, and so on: the first ones are often one plan with other buckets.
 */
static fr_status interleave_families(const fr_plan_space_request *request,
                                     fr_bounded_list *list, fr_err *err)
{
    size_t n = list->n;
    family *ranked = calloc(n + 1, sizeof *ranked);
    fr_bounded *sorted = malloc((n + 1) * sizeof *sorted);
    if (ranked == NULL || sorted == NULL) {
        free(ranked);
        free(sorted);
        return fr_fail_no_memory(err);
    }
    for (size_t i = 0; i < n; i++) {
        ranked[i].i = i;
        ranked[i].layout = layout_of(request, &list->items[i].candidate);
        for (size_t k = 0; k < i; k++)
            ranked[i].n_before += ranked[k].layout == ranked[i].layout;
    }
    qsort(ranked, n, sizeof *ranked, by_rank_in_family);
    for (size_t i = 0; i < n; i++)
        sorted[i] = list->items[ranked[i].i];
    if (n > 0)
        memcpy(list->items, sorted, n * sizeof *sorted);
    free(ranked);
    free(sorted);
    return FR_OK;
}

/*
 * If nodes or layers differ, the estimate is too optimistic for splits that
 * balance them, and these displace all other plans.  So every second seed has
 * an even split.
 */
static fr_status add_even_seeds(search *s, fr_err *err)
{
    const fr_walk_options options = {.is_best_only = true,
                                     .is_even = true,
                                     .limit = s->best,
                                     .until_s = end_of(s, 0.5)};
    fr_bounded_list any = s->seeds;
    fr_walk_result even;
    FR_TRY(fr_bound_walk_run(s->walk, &options, &even, err));
    fr_status status =
        interleave_families(s->in.request, &even.by_estimate, err);
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

/*
 * Some plans take all of the budget to simulate (collectives beside products,
 * many chunks), and others of next to the same time a tenth of it: by turns one
 * of these.
 */
static fr_status add_cheap_seeds(search *s, const fr_bounded_list *cheap,
                                 fr_err *err)
{
    fr_bounded_list all = s->seeds;
    fr_status status = FR_OK;
    memset(&s->seeds, 0, sizeof s->seeds);
    for (size_t i = 0; status == FR_OK && i < all.n; i++)
        if (fr_vec_push(&s->seeds, all.items[i]) != FR_OK ||
            (i < cheap->n && fr_vec_push(&s->seeds, cheap->items[i]) != FR_OK))
            status = fr_fail_no_memory(err);
    fr_vec_release(&all);
    return status;
}

/* Lists, in the order of their estimates, the seeds whose simulation takes at
 * most a quarter of the first one's time, or next to none. */
static fr_status list_cheap(const search *s, fr_bounded_list *out, fr_err *err)
{
    const int64_t first = s->seeds.n > 0 ? s->seeds.items[0].n_steps : 0;
    for (size_t i = 0; i < s->seeds.n; i++)
        if ((s->seeds.items[i].n_steps <= first / 4 ||
             s->seeds.items[i].n_steps <= batch_work / 4) &&
            fr_vec_push(out, s->seeds.items[i]) != FR_OK)
            return fr_fail_no_memory(err);
    return interleave_families(s->in.request, out, err);
}

static fr_status order_seeds(search *s, fr_err *err)
{
    fr_bounded_list cheap = {0};
    fr_status status = list_cheap(s, &cheap, err);
    if (status == FR_OK)
        status = interleave_families(s->in.request, &s->seeds, err);
    if (status == FR_OK && s->in.request->balance != NULL)
        status = add_even_seeds(s, err);
    if (status == FR_OK)
        status = add_cheap_seeds(s, &cheap, err);
    fr_vec_release(&cheap);
    return status;
}

static fr_status find_seeds(search *s, fr_err *err)
{
    const fr_walk_options options = {
        .is_best_only = true, .limit = s->best, .until_s = end_of(s, 0.4)};
    fr_log_progress(s->in.request->log, -1, "bounding plans");
    FR_TRY(fr_bound_walk_run(s->walk, &options, &s->found, err));
    s->n_plans = s->found.n_plans;
    s->n_too_large = s->found.n_too_large;
    s->has_no_proof = s->found.is_cut;
    s->found.is_all = false;
    s->nearest = s->found.nearest;
    memset(&s->found.nearest, 0, sizeof s->found.nearest);
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

/* One for a baseline, say. */
static bool is_side_search(const search *s)
{
    return s->in.work_frac > 0 && s->in.work_frac < 1;
}

/* As long as nothing fits, the main search may do more than its work, because
 * its caller has no answer yet; then its work begins. */
static bool is_work_done(const search *s, double share)
{
    const double longer = is_hopeless(s) && !is_side_search(s) ? 4 : 1;
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

/* Half of the budget goes to the best by estimate, the rest to the proof. */
static bool is_seed_time(const search *s)
{
    const double share = s->has_no_proof ? 1 : 0.5;
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
             layout_of(s->in.request, &seed->candidate) == s->best_layout))
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
    s->work += size.work;
    *n = size.n;
    return FR_OK;
}

/* A side search looks at a few. */
enum { MOST_NEAREST_BESIDE = 2 };

/* Nothing fits, as far as the walk can tell: what lacks least. */
static void ask_nearest(search *s, size_t n_max, fr_candidate *out, size_t *n)
{
    const fr_bounded_list *list = &s->nearest;
    if (is_side_search(s) && n_max > MOST_NEAREST_BESIDE)
        n_max = MOST_NEAREST_BESIDE;
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
    s->work += size.work;
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
        s->best_layout = layout_of(s->in.request, candidate);
    }
    if (fits_memory && !s->has_fit)
        s->work = 0;
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
