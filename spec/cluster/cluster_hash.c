/*
 * cluster_hash.c: a number that stands for everything about a cluster that a
 * prediction depends on.  Fields are hashed one by one: names and the padding
 * of structs do not count.
 */
#include "core/base/hash.h"
#include "spec/cluster/cluster.h"

static uint64_t hash_u64(uint64_t value, uint64_t seed)
{
    return fr_hash_bytes(&value, sizeof value, seed);
}

static uint64_t hash_i64(int64_t value, uint64_t seed)
{
    return hash_u64((uint64_t)value, seed);
}

static uint64_t hash_double(double value, uint64_t seed)
{
    double sum = value + 0.0; /* -0 and 0 are the same */
    return fr_hash_bytes(&sum, sizeof sum, seed);
}

static uint64_t hash_doubles(const double *values, size_t n, uint64_t seed)
{
    for (size_t i = 0; i < n; i++)
        seed = hash_double(values[i], seed);
    return seed;
}

static uint64_t hash_device(const fr_device_type *device, uint64_t h)
{
    const double rates[] = {device->memory_Bps, device->power_w, device->idle_w,
                            device->price_usd_per_h};
    h = hash_i64(device->kind, h);
    if (device->generation[0] != '\0')
        h = fr_hash_text(device->generation, h);
    h = hash_i64(device->n_cores, h);
    h = hash_u64(device->memory_bytes, h);
    h = hash_u64(device->cache_bytes, h);
    h = hash_doubles(rates, FR_LENGTH(rates), h);
    if (device->power_cap_w > 0)
        h = hash_double(device->power_cap_w, h);
    for (int32_t i = 0; i < device->n_peaks; i++) {
        h = fr_hash_text(device->peaks[i].dtype, h);
        h = hash_double(device->peaks[i].flops, h);
    }
    return h;
}

/* Adds optional values.  Defaults add nothing, so that older hashes stay
 * valid. */
static uint64_t hash_stated(const fr_node_type *type, uint64_t h)
{
    if (type->n_hosts > 1)
        h = hash_i64(type->n_hosts, hash_i64('h', h));
    if (type->n_pcie_switches > 0) {
        h = hash_i64(type->n_pcie_switches, hash_i64('p', h));
        h = hash_double(type->pcie_uplink_Bps, h);
    }
    if (type->nic_kind != FR_NIC_UNKNOWN)
        h = hash_i64(type->nic_kind, hash_i64('n', h));
    if (type->nic_efficiency_frac > 0.0)
        h = hash_double(type->nic_efficiency_frac, hash_i64('e', h));
    if (type->host_speed_frac > 0.0)
        h = hash_double(type->host_speed_frac, hash_i64('h', h));
    if (type->storage_latency_s > 0.0)
        h = hash_double(type->storage_latency_s, hash_i64('l', h));
    if (type->host_memory_Bps > 0.0)
        h = hash_double(type->host_memory_Bps, hash_i64('m', h));
    return h;
}

static uint64_t hash_node_type(const fr_node_type *type, uint64_t h)
{
    const int64_t counts[] = {type->i_device, type->n_devices, type->intra_kind,
                              type->n_nics,   type->n_rails,   type->n_sockets};
    const double rates[] = {type->intra_Bps,        type->intra_p2p_Bps,
                            type->intra_latency_s,  type->host_link_Bps,
                            type->nic_Bps,          type->nic_latency_s,
                            type->storage_read_Bps, type->storage_write_Bps,
                            type->price_usd_per_h,  type->spot_usd_per_h,
                            type->power_w};
    for (size_t i = 0; i < FR_LENGTH(counts); i++)
        h = hash_i64(counts[i], h);
    h = hash_u64(type->host_memory_bytes, h);
    h = hash_doubles(rates, FR_LENGTH(rates), h);
    return hash_stated(type, h);
}

static uint64_t hash_fabric(const fr_fabric *fabric, uint64_t h)
{
    const double rates[] = {fabric->link_Bps, fabric->link_latency_s,
                            fabric->global_Bps, fabric->global_latency_s};
    h = hash_i64(fabric->kind, h);
    if (fabric->has_sharp)
        h = hash_i64('s', h);
    for (int32_t i = 0; i < fabric->n_levels; i++) {
        h = hash_i64(fabric->levels[i].n_down, h);
        h = hash_double(fabric->levels[i].oversubscription, h);
        h = hash_double(fabric->levels[i].latency_s, h);
        if (fabric->levels[i].power_w > 0)
            h = hash_double(fabric->levels[i].power_w, hash_i64('p', h));
    }
    for (int32_t i = 0; i < fabric->n_dims; i++)
        h = hash_i64(fabric->dims[i], h);
    h = hash_i64(fabric->n_groups, h);
    h = hash_i64(fabric->n_routers, h);
    h = hash_i64(fabric->n_per_router, h);
    h = hash_doubles(rates, FR_LENGTH(rates), h);
    h = hash_u64(fabric->n_switches, h);
    for (size_t i = 0; i < fabric->n_switches; i++)
        if (fabric->switches[i].power_w > 0)
            h = hash_double(fabric->switches[i].power_w,
                            hash_i64((int64_t)i, hash_i64('p', h)));
    for (size_t i = 0; i < fabric->n_links; i++) {
        const fr_fabric_link *link = &fabric->links[i];
        h = hash_i64(link->from, h);
        h = hash_i64(link->to, h);
        h = hash_double(link->bandwidth_Bps, h);
        h = hash_double(link->latency_s, h);
        h = hash_i64(link->is_half_duplex, h);
    }
    return h;
}

uint64_t fr_cluster_hash(const fr_cluster *cluster)
{
    const double rates[] = {cluster->jitter_compute_frac,
                            cluster->jitter_network_frac,
                            cluster->device_mtbf_s,
                            cluster->node_mtbf_s,
                            cluster->restart_s,
                            cluster->spot_interruption_per_h,
                            cluster->pue,
                            cluster->carbon_g_per_kwh};
    uint64_t h = fr_hash_text("forerun.cluster/1", 0);
    h = hash_i64(cluster->is_this_machine, h);
    h = hash_i64(cluster->is_one_machine, h);
    for (size_t i = 0; i < cluster->n_devices; i++)
        h = hash_device(&cluster->devices[i], h);
    for (size_t i = 0; i < cluster->n_node_types; i++)
        h = hash_node_type(&cluster->node_types[i], h);
    for (size_t i = 0; i < cluster->n_groups; i++) {
        h = hash_i64(cluster->groups[i].i_node_type, h);
        h = hash_i64(cluster->groups[i].n_nodes, h);
    }
    h = hash_fabric(&cluster->fabric, h);
    for (size_t i = 0; i < cluster->n_slow; i++) {
        h = hash_i64(cluster->slow[i].node, h);
        h = hash_i64(cluster->slow[i].device, h);
        h = hash_i64(cluster->slow[i].link, h);
        h = hash_double(cluster->slow[i].compute_frac, h);
        h = hash_double(cluster->slow[i].network_frac, h);
    }
    return hash_doubles(rates, FR_LENGTH(rates), h);
}
