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

fr_status fr_slow_ranks_predict(fr_inputs *inputs, const fr_plan_file *file,
                                const fr_slow_ranks *slow, double *step_s,
                                fr_err *err)
{
    fr_cluster *cluster = &inputs->cluster;
    fr_slow *const known = cluster->slow;
    const size_t n_known = cluster->n_slow;
    const int64_t per_node = ranks_per_node(inputs, fr_plan_world(&file->plan));
    fr_prediction prediction;
    fr_slow *all;

    FR_TRY_CALLOC(all, n_known + (size_t)slow->n + 1, err);
    if (n_known > 0)
        memcpy(all, known, n_known * sizeof *all);
    for (int i = 0; i < slow->n; i++)
        all[n_known + (size_t)i] =
            (fr_slow){.node = slow->items[i].rank / per_node,
                      .device = (int32_t)(slow->items[i].rank % per_node),
                      .link = -1,
                      .compute_frac = 1 / slow->items[i].factor,
                      .network_frac = 1};
    cluster->slow = all;
    cluster->n_slow = n_known + (size_t)slow->n;
    fr_status status = fr_forecast_predict(inputs, &file->model, &file->job,
                                           &file->plan, &prediction, err);
    cluster->slow = known;
    cluster->n_slow = n_known;
    free(all);
    if (status == FR_OK)
        *step_s = prediction.step_s;
    return status;
}
