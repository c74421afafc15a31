/* doctor_node.c: this machine beside a node of a cluster. */
#include "calibrate/doctor/doctor_checks.h"
#include "core/base/units.h"
#include "spec/cluster/detect.h"

static void compare_devices(fr_examination *at, const fr_cluster *cluster,
                            const fr_machine *machine)
{
    const fr_node_type *node = fr_cluster_node_type(cluster, 0);
    const fr_device_type *device = &cluster->devices[node->i_device];
    if (device->kind == FR_DEVICE_GPU) {
        int n = fr_doctor_count_gpus(at);
        bool is_same = n == node->n_devices;
        fr_doctor_add(at, "cluster: GPUs",
                      is_same ? FR_FINDING_OK : FR_FINDING_MISSING,
                      "run --backend cuda",
                      is_same ? ""
                              : "run it on a node "
                                "of the cluster",
                      "%d here, %d x %s in '%s'", n, node->n_devices,
                      device->id, cluster->name);
        return;
    }
    bool has_cores = machine->n_cores >= device->n_cores;
    fr_doctor_add(at, "cluster: cores",
                  has_cores ? FR_FINDING_OK : FR_FINDING_ADVICE, "run",
                  has_cores ? ""
                            : "ranks share cores here; run it on a node "
                              "of the cluster",
                  "%d here, %lld in '%s'", machine->n_cores,
                  (long long)device->n_cores, cluster->name);
}

static void compare_memory(fr_examination *at, const fr_cluster *cluster,
                           const fr_machine *machine)
{
    const fr_node_type *node = fr_cluster_node_type(cluster, 0);
    const fr_device_type *device = &cluster->devices[node->i_device];
    char here[FR_FORMAT_MAX], there[FR_FORMAT_MAX];
    uint64_t wanted = device->kind == FR_DEVICE_GPU ? node->host_memory_bytes
                                                    : device->memory_bytes;
    if (wanted == 0)
        return;
    /* Kernels keep some of what is built in. */
    bool is_enough = (double)machine->memory_bytes >= 0.9 * (double)wanted;
    fr_doctor_add(
        at, "cluster: memory", is_enough ? FR_FINDING_OK : FR_FINDING_ADVICE,
        "run", is_enough ? "" : "a control group may hold it back",
        "%s here, %s in '%s'",
        fr_format_bytes(here, sizeof here, (double)machine->memory_bytes),
        fr_format_bytes(there, sizeof there, (double)wanted), cluster->name);
}

static void compare_network(fr_examination *at, const fr_cluster *cluster)
{
    const fr_node_type *node = fr_cluster_node_type(cluster, 0);
    double here = fr_doctor_network_Bps(at);
    /* Virtual interfaces do not say how fast they are. */
    if (here == 0 || node->n_nics == 0 || node->nic_Bps <= 0)
        return;
    bool is_enough = here >= 0.99 * node->nic_Bps;
    fr_doctor_add(at, "cluster: network",
                  is_enough ? FR_FINDING_OK : FR_FINDING_ADVICE, "run",
                  is_enough ? ""
                            : "look at the link (ethtool, ibstat), or "
                              "correct the cluster file",
                  "%.4g Gb/s at best here, %.4g Gb/s a NIC in '%s'",
                  here * 8e-9, node->nic_Bps * 8e-9, cluster->name);
}

fr_status fr_doctor_compare(const char *root, const fr_cluster *cluster,
                            fr_findings *out, fr_err *err)
{
    fr_examination at = {.root = root, .out = out};
    fr_machine machine;
    fr_machine_detect(&machine);
    compare_devices(&at, cluster, &machine);
    compare_memory(&at, cluster, &machine);
    compare_network(&at, cluster);
    return at.has_failed ? fr_fail_no_memory(err) : FR_OK;
}
