/* backup_workers.c: see backup_workers.h. */
#include "reliability/backup_workers.h"

#include "plan/decide/grid.h"
#include "spec/cluster/cluster_knobs.h"

#include <math.h>

double fr_order_mean(int64_t n, int64_t k)
{
    enum { N_STEPS = 4000 };
    const double low = -9, high = 9, h = (high - low) / N_STEPS;
    const double below = (double)(k - 1), above = (double)(n - k);
    const double scale =
        lgamma((double)n + 1) - lgamma((double)k) - lgamma((double)(n - k) + 1);
    double mass = 0, mean = 0;

    for (int i = 0; i <= N_STEPS; i++) {
        const double x = low + i * h;
        const double left = 0.5 * erfc(-x / sqrt(2)),
                     right = 0.5 * erfc(x / sqrt(2));
        if (left <= 0 || right <= 0)
            continue;
        const double density =
            exp(scale - 0.5 * x * x + below * log(left) + above * log(right));
        mass += density;
        mean += density * x;
    }
    return mean / mass;
}

fr_status fr_backup_check(const fr_plan *plan, int64_t n_backups, fr_err *err)
{
    if (n_backups >= plan->dp)
        return fr_fail(err, FR_USAGE,
                       "--backup-workers %lld: the plan has %d replica%s; give "
                       "fewer, or more --dp",
                       (long long)n_backups, plan->dp,
                       plan->dp == 1 ? "" : "s");
    if (plan->zero_stage > 0 || plan->ep > 1)
        return fr_fail(err, FR_USAGE,
                       "--backup-workers: with %s each replica is needed; %s",
                       plan->zero_stage > 0 ? "ZeRO" : "expert parallelism",
                       plan->zero_stage > 0 ? "give --zero 0" : "give --ep 1");
    return FR_OK;
}

/* ---- who is not waited for ---------------------------------------------- */

/* Replicas with a rank on a node, as flags. */
static void note_replicas(const fr_cluster *cluster, const fr_plan *plan,
                          int64_t node, bool *is_on)
{
    const int64_t world = fr_plan_world(plan);
    const int64_t first =
        fr_cluster_slots_of_nodes(cluster, node, plan->n_threads);
    const int64_t end =
        first + fr_cluster_node_slots(cluster, node, plan->n_threads);
    for (int64_t rank = first; rank < end && rank < world; rank++)
        is_on[fr_plan_coord(plan, rank).dp] = true;
}

/* The slowest entry that stays; -1: there is none. */
static int64_t slowest(const fr_cluster *cluster, const bool *is_tried)
{
    int64_t found = -1;

    for (size_t i = 0; i < cluster->n_slow; i++) {
        const fr_slow *slow = &cluster->slow[i];
        if (is_tried[i] || slow->node < 0)
            continue;
        if (found < 0 || slow->compute_frac < cluster->slow[found].compute_frac)
            found = (int64_t)i;
    }
    return found;
}

/* From the slowest on, as long as their replicas may be dropped. */
static fr_status drop_slow(const fr_plan *plan, int64_t n_backups,
                           fr_cluster *cluster, int64_t *n_all, fr_err *err)
{
    bool *is_dropped, *is_on, *is_tried;
    int64_t n_dropped = 0;
    fr_status status = FR_OK;

    is_dropped = calloc((size_t)plan->dp, sizeof *is_dropped);
    is_on = calloc((size_t)plan->dp, sizeof *is_on);
    is_tried = calloc(cluster->n_slow + 1, sizeof *is_tried);
    if (is_dropped == NULL || is_on == NULL || is_tried == NULL)
        status = fr_fail_no_memory(err);
    for (int64_t i; status == FR_OK && (i = slowest(cluster, is_tried)) >= 0;) {
        int64_t n_new = 0;
        is_tried[i] = true;
        for (int32_t k = 0; k < plan->dp; k++)
            is_on[k] = false;
        note_replicas(cluster, plan, cluster->slow[i].node, is_on);
        for (int32_t k = 0; k < plan->dp; k++)
            n_new += is_on[k] && !is_dropped[k];
        if (n_dropped + n_new > n_backups)
            continue;
        n_dropped += n_new;
        for (int32_t k = 0; k < plan->dp; k++)
            is_dropped[k] = is_dropped[k] || is_on[k];
        cluster->slow[i].compute_frac = cluster->slow[i].network_frac = 1;
    }
    free(is_dropped);
    free(is_on);
    free(is_tried);
    *n_all = n_dropped;
    return status;
}

fr_status fr_backup_cluster(const fr_cluster *cluster, const fr_plan *plan,
                            int64_t n_backups, fr_cluster *out, fr_err *err)
{
    int64_t n_dropped = 0;

    FR_TRY(fr_cluster_copy(cluster, out, err));
    const fr_status status = drop_slow(plan, n_backups, out, &n_dropped, err);
    if (status != FR_OK) {
        fr_cluster_release(out);
        return status;
    }
    /* The remaining backups reduce the effect of jitter. */
    const int64_t n = plan->dp - n_dropped, n_first = plan->dp - n_backups;
    if (fr_plan_world(plan) == plan->dp && plan->dp > 1)
        out->jitter_compute_frac *= fmax(
            fr_order_mean(n, n_first) / fr_order_mean(plan->dp, plan->dp), 0);
    return FR_OK;
}
