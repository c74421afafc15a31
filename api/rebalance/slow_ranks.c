/* slow_ranks.c: see slow_ranks.h. */
#include "api/rebalance/slow_ranks.h"

#include <stdlib.h>
#include <string.h>

void fr_slow_ranks_add(fr_slow_ranks *slow, int64_t rank, double factor)
{
    if (slow->n < FR_MOST_SLOW_RANKS) {
        slow->items[slow->n].rank = rank;
        slow->items[slow->n++].factor = factor;
    }
}

static int64_t ranks_on(const fr_inputs *inputs, const fr_plan *plan,
                        int64_t node)
{
    const fr_cluster *cluster = &inputs->cluster;

    if (inputs->ranks_per_node > 0)
        return inputs->ranks_per_node;
    return fr_cluster_n_nodes(cluster) == 1
               ? fr_plan_world(plan)
               : fr_cluster_node_slots(cluster, node, plan->n_threads);
}

/* Returns the node of a rank; ranks beyond the last node are on it. */
static fr_slow place_of(const fr_inputs *inputs, const fr_plan *plan,
                        int64_t rank)
{
    const int64_t n_nodes = fr_cluster_n_nodes(&inputs->cluster);
    fr_slow place = {.link = -1, .compute_frac = 1, .network_frac = 1};

    while (place.node + 1 < n_nodes &&
           rank >= ranks_on(inputs, plan, place.node))
        rank -= ranks_on(inputs, plan, place.node++);
    place.device = (int32_t)rank;
    return place;
}

fr_slow_ranks fr_slow_ranks_of(const fr_inputs *inputs, const fr_plan *plan)
{
    const int64_t world = fr_plan_world(plan);
    fr_slow_ranks slow = {0};

    for (int64_t rank = 0; rank < world; rank++) {
        const fr_slow place = place_of(inputs, plan, rank);
        const double frac =
            fr_cluster_compute_frac(&inputs->cluster, place.node, place.device);
        if (frac < 1)
            fr_slow_ranks_add(&slow, rank, 1 / frac);
    }
    return slow;
}

fr_status fr_slow_ranks_predict(const fr_inputs *inputs,
                                const fr_plan_file *file,
                                const fr_slow_ranks *slow, double *step_s,
                                fr_err *err)
{
    fr_inputs slowed = *inputs; /* but for the list, borrowed */
    const size_t n_known = inputs->cluster.n_slow;
    fr_prediction prediction;
    fr_slow *all;

    FR_TRY_CALLOC(all, n_known + (size_t)slow->n + 1, err);
    if (n_known > 0)
        memcpy(all, inputs->cluster.slow, n_known * sizeof *all);
    for (int i = 0; i < slow->n; i++) {
        fr_slow *part = &all[n_known + (size_t)i];
        *part = place_of(inputs, &file->plan, slow->items[i].rank);
        part->compute_frac = 1 / slow->items[i].factor;
    }
    slowed.cluster.slow = all;
    slowed.cluster.n_slow = n_known + (size_t)slow->n;
    fr_status status = fr_forecast_predict(&slowed, &file->model, &file->job,
                                           &file->plan, &prediction, err);
    free(all);
    if (status == FR_OK)
        *step_s = prediction.expected_step_s;
    return status;
}
