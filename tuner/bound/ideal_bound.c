/* ideal_bound.c: one pass over the nodes. */
#include "tuner/bound/ideal_bound.h"

#include "sim/predict/learned_step.h"

#include <math.h>

static double most_flops(const fr_device_type *device)
{
    static const char *const dtypes[] = {"fp64", "fp32", "tf32", "fp16",
                                         "bf16", "fp8",  "fp4"};
    double most = 0;
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++)
        most = fmax(most, fr_device_peak_flops(device, dtypes[i]));
    return most;
}

double fr_ideal_bound(const fr_search_input *in)
{
    const fr_plan_space_request *request = in->request;
    const fr_cluster *cluster = request->cluster;
    const fr_job *job = request->job;
    const double step_factor = fr_expected_step_factor(
        in->costs, cluster, request->base.execution.kernels);
    double all_flops = 0;
    if ((in->goal != NULL && !fr_goal_rows[in->goal->kind]->is_step) ||
        !fr_cluster_is_all_gpu(cluster))
        return 0;
    for (int64_t i = 0; i < fr_cluster_n_nodes(cluster); i++)
        all_flops += most_flops(fr_cluster_device(cluster, i)) *
                     (double)fr_cluster_node_type(cluster, i)->n_devices;
    return all_flops > 0
               ? fr_model_flop_per_token(request->model, job->seq, true) *
                     (double)job->global_batch * (double)job->seq / all_flops *
                     step_factor
               : 0;
}
