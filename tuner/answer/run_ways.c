/* run_ways.c: see run_ways.h. */
#include "tuner/answer/run_ways.h"

#include <math.h>

/* Quarters of the nodes that are spot ones. */
enum { SPOT_SHARES = 5 };

static fr_run_way make_way(const fr_run_site *site, fr_run_hazards hazards,
                           double spot_frac)
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
    way.stretch = fr_run_expected_stretch(&way.conditions);
    /* Spares are paid, and idle. */
    const double waits = way.stretch.waiting_frac;
    const double idle_w = fr_cluster_power_w(cluster, n, 0);
    const double spares = fmax((double)hazards.n_spares, 0) / (double)n;
    way.usd_per_h =
        (spot_usd * spot_frac + usd * (1 - spot_frac)) * (1 + spares);
    way.kw =
        (site->busy_w * (1 - waits) + idle_w * waits + idle_w * spares) / 1000;
    return way;
}

/* No dearer, no slower, no less sure, whatever the goal. */
static bool is_no_worse(const fr_run_way *a, const fr_run_way *b)
{
    const fr_run_stretch *x = &a->stretch, *y = &b->stretch;
    return a->conditions.every_steps == 0 &&
           a->usd_per_h * x->seconds <= b->usd_per_h * y->seconds &&
           a->kw * x->seconds <= b->kw * y->seconds &&
           x->seconds <= y->seconds &&
           x->variance_s2_per_s * x->seconds <=
               y->variance_s2_per_s * y->seconds;
}

static int add_way(const fr_run_way *way, fr_run_way *out, int n)
{
    int n_kept = 0;
    for (int i = 0; i < n; i++)
        if (is_no_worse(&out[i], way))
            return n;
    for (int i = 0; i < n; i++)
        if (!is_no_worse(way, &out[i]))
            out[n_kept++] = out[i];
    if (n_kept < FR_RUN_WAYS)
        out[n_kept++] = *way;
    return n_kept;
}

/* Every share of spot nodes that is no share twice. */
static int add_shares(const fr_run_site *site, const fr_run_hazards *hazards,
                      fr_run_way *out, int n)
{
    const double all = hazards->is_spot ? 1 : 0;
    double last = -1;
    if (!site->choices->is_spot_free) {
        const fr_run_way way = make_way(site, *hazards, all);
        return add_way(&way, out, n);
    }
    for (int i = 0; i < SPOT_SHARES; i++) {
        const double share = (double)i / (SPOT_SHARES - 1);
        const double frac =
            round(share * (double)site->n_nodes) / (double)site->n_nodes;
        if (frac <= last)
            continue;
        const fr_run_way way = make_way(site, *hazards, last = frac);
        n = add_way(&way, out, n);
    }
    return n;
}

int fr_run_ways_list(const fr_run_site *site, fr_run_way *out)
{
    const fr_run_choices *choices = site->choices;
    /* A copy on another node needs one. */
    const int n_kinds = !choices->is_kind_free ? 1
                        : site->n_nodes > 1    ? FR_CHECKPOINT_KIND_N
                                               : FR_CHECKPOINT_MEMORY;
    int n = 0;
    for (int kind = 0; kind < n_kinds; kind++) {
        fr_run_hazards hazards = *site->hazards;
        if (choices->is_kind_free)
            hazards.checkpoint_kind = (fr_checkpoint_kind)kind;
        if (choices->n_spares == 0)
            n = add_shares(site, &hazards, out, n);
        for (int i = 0; i < choices->n_spares; i++) {
            hazards.n_spares = choices->spares[i];
            n = add_shares(site, &hazards, out, n);
        }
    }
    return n;
}
