/* run_ways.c: see run_ways.h. */
#include "tuner/goal/run_ways.h"

#include <math.h>

/* Quarters of the nodes that are spot ones. */
enum { SPOT_SHARES = 5 };

/* Down to so many nodes: the first of the speeds that are known. */
static fr_run_elastic elastic_at(const fr_run_site *site, int64_t least_nodes)
{
    const fr_run_choices *choices = site->choices;
    fr_run_elastic found = {0};
    for (int i = 0; i < choices->n_elastic; i++)
        if (choices->elastic[i].n_devices == site->n_devices)
            found = choices->elastic[i].elastic;
    const int64_t n = site->n_nodes - least_nodes;
    if (n < (int64_t)found.n)
        found.n = n > 0 ? (size_t)n : 0;
    while (found.n > 0 && !(found.speed_frac[found.n - 1] > 0))
        found.n--;
    return found.n > 0 ? found : (fr_run_elastic){0};
}

static fr_run_way make_way(const fr_run_site *site, fr_run_hazards hazards,
                           double spot_frac, int64_t least_nodes)
{
    const fr_cluster *cluster = site->cluster;
    const int64_t n = site->n_nodes;
    const double spot_usd = fr_cluster_usd_per_h(cluster, n, true);
    const double usd = fr_cluster_usd_per_h(cluster, n, false);
    fr_run_way way = {.spot_frac = spot_frac, .kind = hazards.checkpoint_kind};
    hazards.is_spot = spot_frac > 0;
    hazards.spot_frac = spot_frac;
    way.conditions =
        fr_run_meet(&hazards, cluster, n, site->n_devices, site->state_bytes)
            .conditions;
    if (hazards.n_spares >= 0)
        way.conditions.elastic = elastic_at(site, least_nodes);
    if (way.conditions.elastic.n > 0)
        way.least_nodes = n - (int64_t)way.conditions.elastic.n;
    way.stretch = fr_run_expected_stretch(&way.conditions);
    /* Spares are paid, and idle. */
    const double idle_w = fr_cluster_power_w(cluster, n, 0);
    const double spares = fmax((double)hazards.n_spares, 0) / (double)n;
    way.usd_per_h =
        (spot_usd * spot_frac + usd * (1 - spot_frac)) * (1 + spares);
    way.training_kw = site->training_w / 1000;
    way.idle_kw = idle_w / 1000;
    way.spares_kw = idle_w * spares / 1000;
    return way;
}

double fr_run_stepping_frac(const fr_run_stretch *stretch)
{
    return 1 - stretch->waiting_frac - stretch->saving_frac;
}

/* ---- all of them --------------------------------------------------------- */

typedef struct visitor {
    const fr_run_site *site;
    fr_run_way_fn visit;
    void *context;
} visitor;

static void show(const visitor *to, const fr_run_hazards *hazards,
                 double spot_frac)
{
    const fr_run_choices *choices = to->site->choices;
    int64_t last = -1;
    for (int i = 0; i < choices->n_least_nodes || i < 1; i++) {
        const int64_t least = choices->n_least_nodes > 0
                                  ? choices->least_nodes[i]
                                  : to->site->n_nodes;
        const fr_run_way way = make_way(to->site, *hazards, spot_frac, least);
        if (way.least_nodes != last)
            to->visit(to->context, &way);
        last = way.least_nodes;
    }
}

/* Every share of spot nodes that is no share twice. */
static void show_shares(const visitor *to, const fr_run_hazards *hazards)
{
    const double n_nodes = (double)to->site->n_nodes;
    double last = -1;
    if (!to->site->choices->is_spot_free) {
        show(to, hazards, hazards->is_spot ? 1 : 0);
        return;
    }
    for (int i = 0; i < SPOT_SHARES; i++) {
        const double share = (double)i / (SPOT_SHARES - 1);
        const double frac = round(share * n_nodes) / n_nodes;
        if (frac <= last)
            continue;
        show(to, hazards, last = frac);
    }
}

static void show_spares(const visitor *to, fr_run_hazards hazards)
{
    const fr_run_choices *choices = to->site->choices;
    if (choices->n_spares == 0)
        show_shares(to, &hazards);
    for (int i = 0; i < choices->n_spares; i++) {
        hazards.n_spares = choices->spares[i];
        show_shares(to, &hazards);
    }
}

void fr_run_ways_visit(const fr_run_site *site, fr_run_way_fn visit,
                       void *context)
{
    const visitor to = {site, visit, context};
    const bool is_free = site->choices->is_kind_free;
    /* A copy on another node needs one. */
    const int n_kinds = !is_free            ? 1
                        : site->n_nodes > 1 ? FR_CHECKPOINT_KIND_N
                                            : FR_CHECKPOINT_MEMORY;
    for (int kind = 0; kind < n_kinds; kind++) {
        fr_run_hazards hazards = *site->hazards;
        if (is_free)
            hazards.checkpoint_kind = (fr_checkpoint_kind)kind;
        show_spares(&to, hazards);
    }
}

/* ---- the good ones ------------------------------------------------------- */

typedef struct listing {
    fr_run_way_list *list;
    fr_status status;
} listing;

/* Squares of the deviations of a run's length, dollars and energy. */
static double deviation2(const fr_run_way *way, double rate)
{
    return rate * rate * way->stretch.variance_s2_per_s * way->stretch.seconds;
}

/* Mean power of a run for computing, if it computed all of a step. */
static double more_kw(const fr_run_way *way)
{
    return (way->training_kw - way->idle_kw) *
           fr_run_stepping_frac(&way->stretch);
}

/*
 * No dearer, no slower, no less sure, whatever the goal.  What a run takes, and
 * 95 of 100 runs at most, is made of these, so that rounding keeps the order.
 */
static bool is_no_worse(const fr_run_way *a, const fr_run_way *b)
{
    const fr_run_stretch *x = &a->stretch, *y = &b->stretch;
    const double a_kw = a->idle_kw + a->spares_kw;
    const double b_kw = b->idle_kw + b->spares_kw;
    const double a_more_kw = more_kw(a), b_more_kw = more_kw(b);
    return a->conditions.every_steps == 0 &&
           a->usd_per_h * x->seconds <= b->usd_per_h * y->seconds &&
           a_kw * x->seconds <= b_kw * y->seconds &&
           a_more_kw * x->seconds <= b_more_kw * y->seconds &&
           x->seconds <= y->seconds && x->interruptions <= y->interruptions &&
           deviation2(a, 1) <= deviation2(b, 1) &&
           deviation2(a, a->usd_per_h) <= deviation2(b, b->usd_per_h) &&
           deviation2(a, a_kw) <= deviation2(b, b_kw) &&
           deviation2(a, a_more_kw) <= deviation2(b, b_more_kw);
}

static void add_way(void *context, const fr_run_way *way)
{
    listing *l = context;
    fr_run_way_list *list = l->list;
    size_t n_kept = 0;
    for (size_t i = 0; i < list->n; i++)
        if (is_no_worse(&list->items[i], way))
            return;
    for (size_t i = 0; i < list->n; i++)
        if (!is_no_worse(way, &list->items[i]))
            list->items[n_kept++] = list->items[i];
    list->n = n_kept;
    if (l->status == FR_OK)
        l->status = fr_vec_push(list, *way);
}

fr_status fr_run_ways_list(const fr_run_site *site, fr_run_way_list *out,
                           fr_err *err)
{
    listing l = {out, FR_OK};
    out->n = 0;
    fr_run_ways_visit(site, add_way, &l);
    return l.status == FR_OK ? FR_OK : fr_fail_no_memory(err);
}
