/* slow_ranks.c: see slow_ranks.h. */
#include "cli/rebalance/slow_ranks.h"

#include <stdlib.h>
#include <string.h>

void fr_slow_ranks_add(fr_slow_ranks *slow, int64_t rank, double factor)
{
    if (slow->n < FR_MOST_SLOW_RANKS) {
        slow->items[slow->n].rank = rank;
        slow->items[slow->n++].factor = factor;
    }
}

static int64_t ranks_per_node(const fr_inputs *inputs, int64_t world)
{
    const fr_cluster *cluster = &inputs->cluster;

    if (inputs->ranks_per_node > 0)
        return inputs->ranks_per_node;
    return fr_cluster_n_nodes(cluster) == 1
               ? world
               : fr_cluster_node_type(cluster, 0)->n_devices;
}

fr_slow_ranks fr_slow_ranks_of(const fr_inputs *inputs, const fr_plan *plan)
{
    const int64_t world = fr_plan_world(plan);
    const int64_t per_node = ranks_per_node(inputs, world);
    const int64_t n_nodes = fr_cluster_n_nodes(&inputs->cluster);
    fr_slow_ranks slow = {0};

    for (int64_t rank = 0; rank < world && rank / per_node < n_nodes; rank++) {
        const double frac = fr_cluster_compute_frac(
            &inputs->cluster, rank / per_node, (int32_t)(rank % per_node));
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
    const int64_t per_node = ranks_per_node(inputs, fr_plan_world(&file->plan));
    fr_prediction prediction;
    fr_slow *all;

    FR_TRY_CALLOC(all, n_known + (size_t)slow->n + 1, err);
    if (n_known > 0)
        memcpy(all, inputs->cluster.slow, n_known * sizeof *all);
    for (int i = 0; i < slow->n; i++)
        all[n_known + (size_t)i] =
            (fr_slow){.node = slow->items[i].rank / per_node,
                      .device = (int32_t)(slow->items[i].rank % per_node),
                      .link = -1,
                      .compute_frac = 1 / slow->items[i].factor,
                      .network_frac = 1};
    slowed.cluster.slow = all;
    slowed.cluster.n_slow = n_known + (size_t)slow->n;
    fr_status status = fr_forecast_predict(&slowed, &file->model, &file->job,
                                           &file->plan, &prediction, err);
    free(all);
    if (status == FR_OK)
        *step_s = prediction.step_s;
    return status;
}
