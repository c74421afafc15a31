/* cluster_power.c: see cluster_power.h. */
#include "spec/cluster/cluster_power.h"

#include <math.h>

/*
 * A GPU of which nobody says it: 140 to 145 W of 700, of eight H100 whose
 * processes hold memory and compute nothing (github.com/wilicc/gpu-burn, issue
 * 114).
 */
double fr_device_idle_w(const fr_device_type *device)
{
    const double usual_gpu_frac = 0.2;

    return device->idle_w > 0 || device->kind != FR_DEVICE_GPU
               ? device->idle_w
               : usual_gpu_frac * device->power_w;
}

double fr_device_power_w(const fr_device_type *device)
{
    return device->power_cap_w > 0 ? fmin(device->power_cap_w, device->power_w)
                                   : device->power_w;
}

fr_status fr_cluster_cap_power(fr_cluster *cluster, double cap_w, fr_err *err)
{
    for (size_t i = 0; i < cluster->n_devices; i++) {
        const fr_device_type *device = &cluster->devices[i];
        if (cap_w != 0 &&
            !(cap_w > fr_device_idle_w(device) && device->power_w > 0))
            return fr_fail(err, FR_INPUT,
                           "a power cap of %g W: '%s' draws %g W while it "
                           "waits, and %g W at most",
                           cap_w, device->id, fr_device_idle_w(device),
                           device->power_w);
    }
    for (size_t i = 0; i < cluster->n_devices; i++)
        cluster->devices[i].power_cap_w =
            cap_w < cluster->devices[i].power_w ? cap_w : 0;
    return FR_OK;
}

double fr_cluster_training_w(const fr_cluster *cluster, int64_t n_nodes,
                             int64_t n_ranks, int n_threads, double load_frac)
{
    const fr_device_type *device = fr_cluster_device(cluster, 0);
    if (device->kind != FR_DEVICE_GPU || !(device->idle_w > 0))
        return fr_cluster_power_w(cluster, n_nodes, load_frac);
    const double n_slots =
        (double)fr_cluster_slots_of_nodes(cluster, n_nodes, n_threads);
    return fr_cluster_power_w(cluster, n_nodes,
                              load_frac * fmin(1, (double)n_ranks / n_slots));
}
