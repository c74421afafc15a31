/* input_cost.c: see input_cost.h. */
#include "cost_models/storage/input_cost.h"

#include <math.h>

/* Tokens are stored in 16 bits, or 32 where the vocabulary needs them; samples
 * of lists of layers have the size that the job says, or none. */
static double sample_bytes(const fr_model *model, const fr_job *job)
{
    if (job->sample_bytes > 0)
        return job->sample_bytes;
    if (model->kind == FR_MODEL_LAYERS)
        return 0;
    return (model->vocab > 1 << 16 ? 4 : 2) * (double)(job->seq + 1);
}

/* Returns the share of the samples that are not in the host's memory. */
static double read_frac(const fr_job *job, const fr_node_type *node,
                        uint64_t taken_bytes)
{
    const double cache_bytes =
        fmax((double)node->host_memory_bytes - (double)taken_bytes, 0);
    if (!(job->dataset_bytes > 0))
        return 1;
    return fmax(1 - cache_bytes / job->dataset_bytes, 0);
}

fr_input_cost fr_input_cost_of(const fr_model *model, const fr_job *job,
                               const fr_cluster *cluster, uint64_t taken_bytes)
{
    const fr_node_type *node = fr_cluster_node_type(cluster, 0);
    const double read = read_frac(job, node, taken_bytes);
    fr_input_cost cost = {.loader_s =
                              (job->decode_s + read * node->storage_latency_s) /
                              fmax((double)job->n_loaders, 1)};
    if (node->storage_read_Bps > 0)
        cost.node_s = read * sample_bytes(model, job) / node->storage_read_Bps;
    return cost;
}

/* Returns the number of samples of the data-parallel rank with the most. */
static double most_samples(const fr_job *job, const fr_plan *plan)
{
    int32_t most = 0;
    for (int32_t i = 0; i < plan->n_shares; i++)
        if (plan->batch_shares[i] > most)
            most = plan->batch_shares[i];
    return most > 0 ? (double)most * (double)plan->micro_batch
                    : (double)job->global_batch / (double)plan->dp;
}

double fr_input_s(const fr_input_cost *cost, const fr_job *job,
                  const fr_plan *plan, int64_t n_nodes)
{
    if (!(cost->node_s > 0 || cost->loader_s > 0))
        return 0;
    return fmax((double)job->global_batch * cost->node_s / (double)n_nodes,
                most_samples(job, plan) * cost->loader_s);
}
