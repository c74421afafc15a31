/* cluster_check.c: the invariants of a finished cluster, however made. */
#include "spec/cluster/cluster.h"

#include <math.h>

static bool is_rate(double value)
{
    return value >= 0.0 && isfinite(value);
}

static fr_status check_device(const fr_device_type *device, fr_err *err)
{
    if (device->memory_bytes == 0)
        return fr_fail(err, FR_INPUT, "device '%s' has no memory", device->id);
    if (device->kind == FR_DEVICE_CPU && device->n_cores < 1)
        return fr_fail(err, FR_INPUT, "device '%s' has no cores", device->id);
    if (!is_rate(device->memory_Bps) || !is_rate(device->power_w) ||
        !is_rate(device->idle_w) || !is_rate(device->price_usd_per_h))
        return fr_fail(err, FR_INPUT,
                       "device '%s' has a rate that is negative or not finite",
                       device->id);
    for (int32_t i = 0; i < device->n_peaks; i++)
        if (!(device->peaks[i].flops > 0.0 && isfinite(device->peaks[i].flops)))
            return fr_fail(err, FR_INPUT, "device '%s': peak of %s is %g",
                           device->id, device->peaks[i].dtype,
                           device->peaks[i].flops);
    return FR_OK;
}

static fr_status check_node_type(const fr_cluster *cluster,
                                 const fr_node_type *type, fr_err *err)
{
    const double rates[] = {
        type->intra_Bps,        type->intra_p2p_Bps,     type->intra_latency_s,
        type->host_link_Bps,    type->nic_Bps,           type->nic_latency_s,
        type->storage_read_Bps, type->storage_write_Bps, type->price_usd_per_h,
        type->spot_usd_per_h,   type->power_w,           type->pcie_uplink_Bps,
        type->storage_latency_s};
    if (type->i_device < 0 || (size_t)type->i_device >= cluster->n_devices)
        return fr_fail(err, FR_INPUT, "node-type '%s' has no device", type->id);
    if (type->n_devices < 1 || type->n_nics < 0 || type->n_rails < 1)
        return fr_fail(err, FR_INPUT,
                       "node-type '%s' has %d devices, %d NICs, %d rails",
                       type->id, type->n_devices, type->n_nics, type->n_rails);
    for (size_t i = 0; i < FR_LENGTH(rates); i++)
        if (!is_rate(rates[i]))
            return fr_fail(err, FR_INPUT,
                           "node-type '%s' has a rate that is negative or not "
                           "finite",
                           type->id);
    if (type->n_hosts < 0 || type->n_pcie_switches < 0)
        return fr_fail(err, FR_INPUT,
                       "node-type '%s' has %d hosts, %d PCIe switches",
                       type->id, type->n_hosts, type->n_pcie_switches);
    if (!(type->nic_efficiency_frac >= 0.0 && type->nic_efficiency_frac <= 1.0))
        return fr_fail(err, FR_INPUT,
                       "node-type '%s' has NICs of efficiency "
                       "%g",
                       type->id, type->nic_efficiency_frac);
    if (type->n_nics > 0 && type->nic_Bps <= 0.0)
        return fr_fail(err, FR_INPUT, "node-type '%s' has NICs of 0 B/s",
                       type->id);
    return FR_OK;
}

static fr_status check_groups(const fr_cluster *cluster, fr_err *err)
{
    int64_t n_nodes = 0;
    if (cluster->n_groups == 0)
        return fr_fail(err, FR_INPUT, "cluster '%s' has no nodes",
                       cluster->name);
    for (size_t i = 0; i < cluster->n_groups; i++) {
        const fr_node_group *group = &cluster->groups[i];
        if (group->i_node_type < 0 ||
            (size_t)group->i_node_type >= cluster->n_node_types ||
            group->n_nodes < 1)
            return fr_fail(err, FR_INPUT, "group '%s' has no nodes", group->id);
        if (group->first_node != n_nodes)
            return fr_fail(
                err, FR_INPUT, "group '%s' starts at node %lld, not %lld",
                group->id, (long long)group->first_node, (long long)n_nodes);
        n_nodes += group->n_nodes;
    }
    return FR_OK;
}

static fr_status check_links(const fr_cluster *cluster, fr_err *err)
{
    const fr_fabric *fabric = &cluster->fabric;
    int64_t n_vertices =
        fr_cluster_n_nodes(cluster) + (int64_t)fabric->n_switches;
    for (size_t i = 0; i < fabric->n_links; i++) {
        const fr_fabric_link *link = &fabric->links[i];
        if (link->from < 0 || link->from >= n_vertices || link->to < 0 ||
            link->to >= n_vertices || link->from == link->to)
            return fr_fail(err, FR_INPUT, "link '%s' joins %lld and %lld",
                           link->id, (long long)link->from,
                           (long long)link->to);
        if (!(link->bandwidth_Bps > 0.0) || !is_rate(link->latency_s))
            return fr_fail(err, FR_INPUT, "link '%s' has %g B/s, %g s",
                           link->id, link->bandwidth_Bps, link->latency_s);
    }
    return FR_OK;
}

fr_status fr_cluster_check(const fr_cluster *cluster, fr_err *err)
{
    for (size_t i = 0; i < cluster->n_devices; i++)
        FR_TRY(check_device(&cluster->devices[i], err));
    for (size_t i = 0; i < cluster->n_node_types; i++)
        FR_TRY(check_node_type(cluster, &cluster->node_types[i], err));
    FR_TRY(check_groups(cluster, err));
    return check_links(cluster, err);
}
