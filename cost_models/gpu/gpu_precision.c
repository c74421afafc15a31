/* gpu_precision.c: see gpu_precision.h. */
#include "cost_models/gpu/gpu_precision.h"

static bool has_precision(const fr_device_type *device, fr_dtype precision)
{
    return device->kind != FR_DEVICE_GPU || fr_dtype_bytes(precision) > 2 ||
           fr_device_peak_flops(device, fr_dtype_name(precision)) > 0;
}

int64_t fr_nodes_with_precision(const fr_cluster *cluster, fr_dtype precision)
{
    const int64_t n_nodes = fr_cluster_n_nodes(cluster);
    int64_t n = 0;

    if (cluster->n_node_types == 1)
        return has_precision(fr_cluster_device(cluster, 0), precision) ? n_nodes
                                                                       : 0;
    while (n < n_nodes &&
           has_precision(fr_cluster_device(cluster, n), precision))
        n++;
    return n;
}

fr_status fr_fail_precision(const char *device_id, fr_dtype precision,
                            fr_err *err)
{
    return fr_fail(err, FR_INFEASIBLE,
                   "%s: no peak of %s is known for it; choose a --precision "
                   "that its peaks list",
                   device_id, fr_dtype_name(precision));
}
