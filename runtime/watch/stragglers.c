/* stragglers.c: see stragglers.h. */
#include "runtime/watch/stragglers.h"

#include "core/numbers/stats.h"
#include "plan/decide/grid.h"
#include "plan/decide/plan_shares.h"

#include <math.h>
#include <string.h>

enum { WINDOW = 16, LEAST = 12, N_BASE = 8 };
#define SLOW_FACTOR 1.15   /* to become one, ... */
#define FINE_FACTOR 1.07   /* ... to be one no longer */
#define BASE_FACTOR 1.4    /* where the first steps are the yardstick */
#define LINK_FACTOR 2.0    /* transfers vary more than kernels */
#define CROWDED_FACTOR 1.5 /* the scheduler has a hand in what ranks take */
#define ODD_FACTOR 1.1     /* nearly every step of the window is above it */
#define SLOW_Z 6.0
#define LEAST_ERROR 0.02 /* of a quotient; measured times are no better */
/* Standard error of a median over that of a mean, of normal samples. */
#define MEDIAN_ERROR 1.2533
#define LEAST_SHARE 0.05 /* of a step that is lost */

/* The quotients of one rank, stage or group over the last steps. */
typedef struct series {
    fr_straggler who;  /* kind, index and part */
    double at[WINDOW]; /* as long as it should be times so much */
    double lost_s[WINDOW];
    int64_t step[WINDOW];
    int64_t n;           /* all there were */
    double base[N_BASE]; /* the yardstick, if it is the first steps */
    int n_base;
    double spread;   /* of the window, once it is judged */
    int64_t i_found; /* in `found`; -1: it is not slow */
} series;

/* A group whose transfers are watched. */
typedef struct link_group {
    const int64_t *ranks; /* in `members` */
    int64_t n_ranks;
} link_group;

struct fr_stragglers {
    const fr_plan *plan;
    int64_t world;
    bool is_crowded;
    /* Means over all of a kind: few quotients may lie close by chance. */
    double spread[FR_SLOW_N];
    int32_t *stage_of_rank;
    double *share_of_rank; /* micro-batches over the mean of all ranks */
    series *ranks;         /* [world] */
    series *stages;        /* [pp] */
    series *links;         /* [n_links] */
    link_group *groups;
    int64_t *members; /* of all groups */
    int64_t n_links;
    double *scratch; /* [world] */
    double *stage_s; /* [pp] */
    double *link_s;  /* [n_links] */
    fr_straggler_list found;
};

/* Along PP a wait is mostly the bubble, which is nobody's fault. */
static const struct {
    fr_axis axis;
    fr_part part;
} watched[] = {{FR_AXIS_TP, FR_PART_EXPOSED_TP},
               {FR_AXIS_CP, FR_PART_EXPOSED_CP},
               {FR_AXIS_DP, FR_PART_EXPOSED_DP}};

static void series_init(series *s, fr_straggler who)
{
    *s = (series){.who = who, .i_found = -1};
}

/* A rank is not slow because it has more micro-batches: its time is divided by
 * its share. */
static double share_of(const fr_plan *plan, int64_t rank)
{
    return plan->n_shares > 0
               ? plan->batch_shares[fr_plan_coord(plan, rank).dp] *
                     (double)plan->n_shares / (double)fr_plan_shares_sum(plan)
               : 1;
}

static void list_ranks(fr_stragglers *s)
{
    const int64_t n_of_stage = s->world / s->plan->pp;

    for (int64_t rank = s->world - 1; rank >= 0; rank--) {
        const int32_t stage = fr_plan_coord(s->plan, rank).pp;
        const fr_straggler who = {.index = rank, .rank = rank, .n_ranks = 1};
        s->stage_of_rank[rank] = stage;
        s->share_of_rank[rank] = share_of(s->plan, rank);
        series_init(&s->ranks[rank], who);
        series_init(&s->stages[stage], (fr_straggler){.kind = FR_SLOW_STAGE,
                                                      .index = stage,
                                                      .rank = rank,
                                                      .n_ranks = n_of_stage});
    }
}

static void list_links(fr_stragglers *s)
{
    int64_t *members = s->members;

    for (size_t i = 0; i < FR_LENGTH(watched); i++)
        for (int64_t rank = 0; rank < s->world; rank++) {
            int64_t position = 0;
            int64_t n = fr_plan_group(s->plan, rank, watched[i].axis, members,
                                      &position);
            if (n < 2 || position != 0)
                continue;
            series_init(&s->links[s->n_links],
                        (fr_straggler){.kind = FR_SLOW_LINK,
                                       .index = rank,
                                       .rank = rank,
                                       .n_ranks = n,
                                       .part = watched[i].part});
            s->groups[s->n_links++] = (link_group){members, n};
            members += n;
        }
}

fr_status fr_stragglers_create(const fr_plan *plan, bool is_crowded,
                               fr_stragglers **out, fr_err *err)
{
    const size_t world = (size_t)fr_plan_world(plan);
    const size_t n_links = FR_LENGTH(watched) * world;
    fr_stragglers *s = calloc(1, sizeof *s);

    if (s == NULL)
        return fr_fail_no_memory(err);
    s->plan = plan;
    s->is_crowded = is_crowded;
    s->world = (int64_t)world;
    s->stage_of_rank = calloc(world, sizeof *s->stage_of_rank);
    s->share_of_rank = calloc(world, sizeof *s->share_of_rank);
    s->ranks = calloc(world, sizeof *s->ranks);
    s->stages = calloc((size_t)plan->pp, sizeof *s->stages);
    s->links = calloc(n_links, sizeof *s->links);
    s->groups = calloc(n_links, sizeof *s->groups);
    /* A group is written with its first rank, one more is looked at. */
    s->members = calloc(n_links + world, sizeof *s->members);
    s->scratch = calloc(world + WINDOW, sizeof *s->scratch);
    s->stage_s = calloc((size_t)plan->pp, sizeof *s->stage_s);
    s->link_s = calloc(n_links, sizeof *s->link_s);
    if (s->stage_of_rank == NULL || s->share_of_rank == NULL ||
        s->ranks == NULL || s->stages == NULL || s->links == NULL ||
        s->groups == NULL || s->members == NULL || s->scratch == NULL ||
        s->stage_s == NULL || s->link_s == NULL) {
        fr_stragglers_destroy(s);
        return fr_fail_no_memory(err);
    }
    list_ranks(s);
    list_links(s);
    *out = s;
    return FR_OK;
}

void fr_stragglers_destroy(fr_stragglers *s)
{
    if (s == NULL)
        return;
    free(s->stage_of_rank);
    free(s->share_of_rank);
    free(s->ranks);
    free(s->stages);
    free(s->links);
    free(s->groups);
    free(s->members);
    free(s->scratch);
    free(s->stage_s);
    free(s->link_s);
    fr_vec_release(&s->found);
    free(s);
}

const fr_straggler_list *fr_stragglers_found(const fr_stragglers *s)
{
    return &s->found;
}

/* ---- verdicts ----------------------------------------------------------- */

/* The first step of the window from which on most were slow. */
static int64_t slow_since(const series *s, double factor)
{
    const int64_t n = s->n < WINDOW ? s->n : WINDOW;
    const double half = 0.5 * (1 + factor);

    for (int64_t i = s->n - n; i < s->n; i++)
        if (s->at[i % WINDOW] > half)
            return s->step[i % WINDOW];
    return s->step[(s->n - 1) % WINDOW];
}

static double least_factor(const fr_stragglers *all, const series *s)
{
    const double least = s->who.kind == FR_SLOW_LINK    ? LINK_FACTOR
                         : s->who.kind == FR_SLOW_STAGE ? BASE_FACTOR
                                                        : SLOW_FACTOR;

    return all->is_crowded ? fmax(least, CROWDED_FACTOR) : least;
}

static fr_status judge(fr_stragglers *all, series *s, double step_s,
                       fr_err *err)
{
    const size_t n = s->n < WINDOW ? (size_t)s->n : WINDOW;
    const int64_t i_step = s->step[(s->n - 1) % WINDOW];
    double *scratch = all->scratch;

    if (n < LEAST)
        return FR_OK;
    memcpy(scratch, s->at, n * sizeof *scratch);
    const double factor = fr_stats_median(scratch, n);
    s->spread = fr_stats_mad(scratch, n);
    const double spread = fmax(s->spread, all->spread[s->who.kind]);
    const double error =
        fmax(MEDIAN_ERROR * spread / sqrt((double)n), LEAST_ERROR);
    memcpy(scratch, s->lost_s, n * sizeof *scratch);
    const double lost_s = fr_stats_median(scratch, n);
    if (s->i_found >= 0) {
        fr_straggler *found = &all->found.items[s->i_found];
        if (factor > FINE_FACTOR) {
            found->factor = fmax(found->factor, factor);
            found->lost_s = fmax(found->lost_s, lost_s);
            return FR_OK;
        }
        found->last_step = i_step;
        for (int64_t i = s->n - (int64_t)n; i < s->n; i++)
            if (s->at[i % WINDOW] > 0.5 * (1 + found->factor))
                found->last_step = s->step[i % WINDOW];
        s->i_found = -1;
        return FR_OK;
    }
    size_t n_odd = 0;
    for (size_t i = 0; i < n; i++)
        n_odd += s->at[i] > ODD_FACTOR;
    if (factor < least_factor(all, s) || (factor - 1) / error < SLOW_Z ||
        n_odd < n - n / 8 || lost_s < LEAST_SHARE * step_s)
        return FR_OK;
    fr_straggler found = s->who;
    found.factor = factor;
    found.lost_s = lost_s;
    found.first_step = slow_since(s, factor);
    found.last_step = -1;
    FR_TRY_PUSH(&all->found, found, err);
    s->i_found = (int64_t)all->found.n - 1;
    return FR_OK;
}

/* Took time_s where others did the like in other_s. */
static fr_status add(fr_stragglers *all, series *s, int64_t i_step,
                     double step_s, double time_s, double other_s, fr_err *err)
{
    if (!(other_s > 0))
        return FR_OK;
    const int64_t at = s->n++ % WINDOW;
    s->at[at] = time_s / other_s;
    s->lost_s[at] = time_s - other_s;
    s->step[at] = i_step;
    return judge(all, s, step_s, err);
}

/* The same against what it was in the first steps, as a multiple of the
 * yardstick. */
static fr_status add_to_base(fr_stragglers *all, series *s, int64_t i_step,
                             double step_s, double time_s, double yardstick_s,
                             fr_err *err)
{
    if (!(yardstick_s > 0))
        return FR_OK;
    if (s->n_base < N_BASE) {
        s->base[s->n_base++] = time_s / yardstick_s;
        fr_stats_sort(s->base, (size_t)s->n_base);
        return FR_OK;
    }
    return add(all, s, i_step, step_s, time_s,
               fr_stats_quantile_sorted(s->base, N_BASE, 0.5) * yardstick_s,
               err);
}

/* ---- who is compared with whom ------------------------------------------ */

/* The median of all but one. */
static double median_of_others(const double *x, int64_t n, int64_t but,
                               double *scratch)
{
    size_t n_others = 0;

    for (int64_t i = 0; i < n; i++)
        if (i != but)
            scratch[n_others++] = x[i];
    return fr_stats_median(scratch, n_others);
}

/* As if it had as many micro-batches as the mean rank. */
static double compute_of(const fr_stragglers *s, const double *part_s,
                         int64_t rank)
{
    return part_s[rank * FR_PART_N + FR_PART_COMPUTE] / s->share_of_rank[rank];
}

static fr_status add_rank(fr_stragglers *s, int64_t rank, int64_t i_step,
                          double step_s, const double *part_s, fr_err *err)
{
    const int32_t stage = s->stage_of_rank[rank];
    size_t n = 0;

    for (int64_t i = 0; i < s->world; i++)
        if (i != rank && s->stage_of_rank[i] == stage)
            s->scratch[n++] = compute_of(s, part_s, i);
    if (n == 0)
        return FR_OK;
    return add(s, &s->ranks[rank], i_step, step_s, compute_of(s, part_s, rank),
               fr_stats_median(s->scratch, n), err);
}

/* A stage is as slow as its fastest rank: one slow rank is none. */
static fr_status add_stages(fr_stragglers *s, int64_t i_step, double step_s,
                            const double *part_s, fr_err *err)
{
    const int64_t n = s->plan->pp;

    if (n < 2)
        return FR_OK;
    for (int64_t i = 0; i < n; i++)
        s->stage_s[i] = INFINITY;
    for (int64_t rank = 0; rank < s->world; rank++) {
        double *stage_s = &s->stage_s[s->stage_of_rank[rank]];
        *stage_s = fmin(*stage_s, compute_of(s, part_s, rank));
    }
    for (int64_t i = 0; i < n; i++)
        FR_TRY(add_to_base(s, &s->stages[i], i_step, step_s, s->stage_s[i],
                           median_of_others(s->stage_s, n, i, s->scratch),
                           err));
    return FR_OK;
}

/* The last to come waits for the transfer alone. */
static fr_status add_links(fr_stragglers *s, int64_t i_step, double step_s,
                           const double *part_s, fr_err *err)
{
    enum { LEAST_GROUPS = 3 };

    for (int64_t i = 0; i < s->n_links; i++) {
        s->link_s[i] = INFINITY;
        for (int64_t k = 0; k < s->groups[i].n_ranks; k++)
            s->link_s[i] =
                fmin(s->link_s[i], part_s[s->groups[i].ranks[k] * FR_PART_N +
                                          (int64_t)s->links[i].who.part]);
    }
    for (int64_t first = 0, n; first < s->n_links; first += n) {
        const fr_part part = s->links[first].who.part;
        for (n = 1;
             first + n < s->n_links && s->links[first + n].who.part == part;)
            n++;
        for (int64_t i = 0; i < n; i++) {
            series *link = &s->links[first + i];
            const double time_s = s->link_s[first + i];
            FR_TRY(
                n >= LEAST_GROUPS
                    ? add(s, link, i_step, step_s, time_s,
                          median_of_others(s->link_s + first, n, i, s->scratch),
                          err)
                    : add_to_base(s, link, i_step, step_s, time_s, 1, err));
        }
    }
    return FR_OK;
}

static double mean_spread(const series *of, int64_t n)
{
    double sum = 0;

    for (int64_t i = 0; i < n; i++)
        sum += of[i].spread / (double)n;
    return sum;
}

fr_status fr_stragglers_add(fr_stragglers *s, int64_t i_step, double step_s,
                            const double *part_s, fr_err *err)
{
    for (int64_t rank = 0; rank < s->world; rank++)
        FR_TRY(add_rank(s, rank, i_step, step_s, part_s, err));
    FR_TRY(add_stages(s, i_step, step_s, part_s, err));
    FR_TRY(add_links(s, i_step, step_s, part_s, err));
    s->spread[FR_SLOW_RANK] = mean_spread(s->ranks, s->world);
    s->spread[FR_SLOW_STAGE] = mean_spread(s->stages, s->plan->pp);
    s->spread[FR_SLOW_LINK] = mean_spread(s->links, s->n_links);
    return FR_OK;
}
