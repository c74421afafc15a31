/* cluster.c: what a cluster consists of: names, counts, places, prices. */
#include "spec/cluster/cluster.h"

#include "spec/cluster/cluster_power.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const device_kinds[] = {
    [FR_DEVICE_CPU] = "cpu",
    [FR_DEVICE_GPU] = "gpu",
};
static const char *const intra_kinds[FR_INTRA_N] = {
    [FR_INTRA_SHARED_MEMORY] = "shared-memory",
    [FR_INTRA_PCIE] = "pcie",
    [FR_INTRA_NVLINK] = "nvlink",
    [FR_INTRA_NVSWITCH] = "nvswitch",
};
static const char *const fabric_kinds[FR_FABRIC_N] = {
    [FR_FABRIC_NONE] = "none",         [FR_FABRIC_SWITCH] = "switch",
    [FR_FABRIC_FAT_TREE] = "fat-tree", [FR_FABRIC_RAIL] = "rail",
    [FR_FABRIC_TORUS] = "torus",       [FR_FABRIC_DRAGONFLY] = "dragonfly",
    [FR_FABRIC_LINKS] = "links",
};
static const char *const nic_kinds[FR_NIC_N] = {
    [FR_NIC_UNKNOWN] = "unknown",
    [FR_NIC_INFINIBAND] = "infiniband",
    [FR_NIC_ROCE] = "roce",
    [FR_NIC_ETHERNET] = "ethernet",
    [FR_NIC_EFA] = "efa",
    [FR_NIC_OMNI_PATH] = "omni-path",
    [FR_NIC_SLINGSHOT] = "slingshot",
    [FR_NIC_TCPX] = "tcpx",
};
const fr_names fr_device_kinds = FR_NAMES(device_kinds);
const fr_names fr_intra_kinds = FR_NAMES(intra_kinds);
const fr_names fr_fabric_kinds = FR_NAMES(fabric_kinds);
const fr_names fr_nic_kinds = FR_NAMES(nic_kinds);

void fr_cluster_release(fr_cluster *cluster)
{
    if (cluster == NULL)
        return;
    free(cluster->devices);
    free(cluster->node_types);
    free(cluster->groups);
    free(cluster->fabric.switches);
    free(cluster->fabric.links);
    free(cluster->slow);
    memset(cluster, 0, sizeof *cluster);
}

double fr_cluster_default_jitter_frac(const fr_cluster *cluster)
{
    /*
     * Standard deviation of the speed of GPUs of one type under the same
     * software: boxes and whiskers of five clusters span 8 % of the median
     * (Sinha et al., "Not All GPUs Are Created Equal", SC 2022, arXiv
     * 2208.11035), which are 5.4 standard deviations of a normal distribution.
     */
    static const double of_gpus = 0.015; /* 0.08 / 5.4 */
    for (size_t i = 0; i < cluster->n_devices; i++)
        if (cluster->devices[i].kind == FR_DEVICE_GPU)
            return of_gpus;
    return 0.0;
}

int64_t fr_cluster_n_nodes(const fr_cluster *cluster)
{
    int64_t n = 0;
    for (size_t i = 0; i < cluster->n_groups; i++)
        n += cluster->groups[i].n_nodes;
    return n;
}

static const fr_node_type *type_of(const fr_cluster *cluster,
                                   const fr_node_group *group)
{
    return &cluster->node_types[group->i_node_type];
}

void fr_cluster_count_nodes(fr_cluster *cluster)
{
    int64_t n_nodes = 0;
    for (size_t i = 0; i < cluster->n_groups; i++) {
        cluster->groups[i].first_node = n_nodes;
        n_nodes += cluster->groups[i].n_nodes;
    }
}

/* Ranks of n_threads threads on a node of this type. */
static int64_t slots_of(const fr_cluster *cluster, const fr_node_type *type,
                        int n_threads)
{
    const fr_device_type *device = &cluster->devices[type->i_device];
    if (device->kind == FR_DEVICE_GPU)
        return type->n_devices;
    int64_t n_cores = device->n_cores * type->n_devices;
    return n_threads > 0 ? n_cores / n_threads : n_cores;
}

bool fr_cluster_is_all_gpu(const fr_cluster *cluster)
{
    for (size_t i = 0; i < cluster->n_devices; i++)
        if (cluster->devices[i].kind != FR_DEVICE_GPU)
            return false;
    return true;
}

int64_t fr_cluster_slots(const fr_cluster *cluster)
{
    return fr_cluster_slots_of_nodes(cluster, fr_cluster_n_nodes(cluster), 1);
}

int64_t fr_cluster_slots_of_nodes(const fr_cluster *cluster, int64_t n_nodes,
                                  int n_threads)
{
    int64_t n = 0;
    for (size_t i = 0; i < cluster->n_groups && n_nodes > 0; i++) {
        const fr_node_group *group = &cluster->groups[i];
        int64_t n_here = n_nodes < group->n_nodes ? n_nodes : group->n_nodes;
        n += n_here * slots_of(cluster, type_of(cluster, group), n_threads);
        n_nodes -= n_here;
    }
    return n;
}

int64_t fr_cluster_nodes_of_ranks(const fr_cluster *cluster, int64_t n_ranks,
                                  int n_threads)
{
    int64_t n = 0;
    for (size_t i = 0; i < cluster->n_groups && n_ranks > 0; i++) {
        const fr_node_group *group = &cluster->groups[i];
        int64_t slots = slots_of(cluster, type_of(cluster, group), n_threads);
        int64_t n_here = slots > 0 ? (n_ranks - 1) / slots + 1 : INT64_MAX;
        n_here = n_here < group->n_nodes ? n_here : group->n_nodes;
        n += n_here;
        n_ranks -= n_here * slots;
    }
    return n;
}

bool fr_cluster_is_unlike(const fr_cluster *cluster)
{
    for (size_t i = 1; i < cluster->n_groups; i++)
        if (cluster->groups[i].i_node_type != cluster->groups[0].i_node_type)
            return true;
    return cluster->n_slow > 0;
}

const fr_node_group *fr_cluster_group_of(const fr_cluster *cluster,
                                         int64_t node)
{
    size_t low = 0, high = cluster->n_groups;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (cluster->groups[middle].first_node <= node)
            low = middle;
        else
            high = middle;
    }
    return &cluster->groups[low];
}

const fr_node_type *fr_cluster_node_type(const fr_cluster *cluster,
                                         int64_t node)
{
    return type_of(cluster, fr_cluster_group_of(cluster, node));
}

const fr_device_type *fr_cluster_device(const fr_cluster *cluster, int64_t node)
{
    return &cluster->devices[fr_cluster_node_type(cluster, node)->i_device];
}

char *fr_cluster_node_name(const fr_cluster *cluster, int64_t node, char *buf,
                           size_t n_buf)
{
    const fr_node_group *group = fr_cluster_group_of(cluster, node);
    snprintf(buf, n_buf, "%s-%lld", group->id,
             (long long)(node - group->first_node));
    return buf;
}

/* "12" of "rack-12" when the group is "rack"; -1 when it is not. */
static int64_t index_in_group(const fr_node_group *group, const char *name)
{
    size_t n = strlen(group->id);
    if (strncmp(group->id, name, n) != 0)
        return -1;
    if (name[n] != '-')
        return -1;
    const char *digits = name + n + 1;
    if (digits[0] == '\0' || strlen(digits) > 9 ||
        strspn(digits, "0123456789") != strlen(digits) ||
        (digits[0] == '0' && digits[1] != '\0'))
        return -1;
    int64_t i = strtoll(digits, NULL, 10);
    return i < group->n_nodes ? i : -1;
}

int64_t fr_cluster_node_find(const fr_cluster *cluster, const char *name)
{
    for (size_t i = 0; i < cluster->n_groups; i++) {
        int64_t at = index_in_group(&cluster->groups[i], name);
        if (at >= 0)
            return cluster->groups[i].first_node + at;
    }
    return -1;
}

int64_t fr_cluster_node_slots(const fr_cluster *cluster, int64_t node,
                              int n_threads)
{
    return slots_of(cluster, fr_cluster_node_type(cluster, node), n_threads);
}

/* Ranks that fr_cluster_place() puts on a node. */
static int64_t ranks_on(const fr_cluster *cluster, int64_t node, int n_threads,
                        int64_t ranks_per_node)
{
    int64_t room = fr_cluster_node_slots(cluster, node, n_threads);
    bool is_gpu = fr_cluster_device(cluster, node)->kind == FR_DEVICE_GPU;
    bool is_asked = ranks_per_node > 0 && (!is_gpu || ranks_per_node < room);
    return is_asked ? ranks_per_node : room;
}

fr_status fr_cluster_place(const fr_cluster *cluster, int64_t n_ranks,
                           int n_threads, int64_t ranks_per_node,
                           int32_t *node_of_rank, fr_err *err)
{
    int64_t n_nodes = fr_cluster_n_nodes(cluster), n_fit = 0;
    for (int64_t node = 0; node < n_nodes && n_fit < n_ranks; node++)
        n_fit += ranks_on(cluster, node, n_threads, ranks_per_node);
    char threads[32] = "";
    if (!fr_cluster_is_all_gpu(cluster))
        snprintf(threads, sizeof threads, " of %d threads", n_threads);
    if (n_fit < n_ranks)
        return fr_fail(err, FR_INFEASIBLE,
                       "%lld ranks%s do not fit: cluster '%s' has room for "
                       "%lld",
                       (long long)n_ranks, threads, cluster->name,
                       (long long)n_fit);
    int64_t rank = 0;
    for (int64_t node = 0; rank < n_ranks; node++) {
        int64_t room = ranks_on(cluster, node, n_threads, ranks_per_node);
        for (int64_t i = 0; i < room && rank < n_ranks; i++)
            node_of_rank[rank++] = (int32_t)node;
    }
    return FR_OK;
}

uint64_t fr_cluster_rank_memory_bytes(const fr_cluster *cluster, int64_t node,
                                      int64_t ranks_on_node)
{
    const fr_device_type *device = fr_cluster_device(cluster, node);
    if (device->kind == FR_DEVICE_GPU || ranks_on_node < 1)
        return device->memory_bytes;
    return device->memory_bytes / (uint64_t)ranks_on_node;
}

double fr_device_peak_flops(const fr_device_type *device, const char *dtype)
{
    static const char *const same[][2] = {
        {"f64", "fp64"}, {"f32", "fp32"}, {"f16", "fp16"}, {"f8", "fp8"}};
    for (size_t i = 0; i < FR_LENGTH(same); i++)
        if (strcmp(same[i][0], dtype) == 0)
            dtype = same[i][1];
    for (int32_t i = 0; i < device->n_peaks; i++)
        if (strcmp(device->peaks[i].dtype, dtype) == 0)
            return device->peaks[i].flops;
    return 0.0;
}

double fr_cluster_compute_frac(const fr_cluster *cluster, int64_t node,
                               int32_t local)
{
    double frac = 1.0;
    for (size_t i = 0; i < cluster->n_slow; i++) {
        const fr_slow *slow = &cluster->slow[i];
        if (slow->node == node && (slow->device < 0 || slow->device == local))
            frac *= slow->compute_frac;
    }
    return frac;
}

double fr_cluster_network_frac(const fr_cluster *cluster, int64_t node)
{
    double frac = 1.0;
    for (size_t i = 0; i < cluster->n_slow; i++)
        if (cluster->slow[i].node == node && cluster->slow[i].device < 0)
            frac *= cluster->slow[i].network_frac;
    return frac;
}

double fr_cluster_nic_Bps(const fr_cluster *cluster, int64_t node)
{
    const fr_node_type *type = fr_cluster_node_type(cluster, node);
    return type->n_nics * type->nic_Bps *
           fr_cluster_network_frac(cluster, node);
}

/* Returns how many of the first n_nodes nodes are in a group. */
static int64_t nodes_in(const fr_node_group *group, int64_t n_nodes)
{
    int64_t n = n_nodes - group->first_node;
    if (n < 0)
        return 0;
    return n < group->n_nodes ? n : group->n_nodes;
}

double fr_cluster_usd_per_h(const fr_cluster *cluster, int64_t n_nodes,
                            bool is_spot)
{
    double sum = 0.0;
    for (size_t i = 0; i < cluster->n_groups; i++) {
        const fr_node_type *type = type_of(cluster, &cluster->groups[i]);
        double price = is_spot && type->spot_usd_per_h > 0.0
                           ? type->spot_usd_per_h
                           : type->price_usd_per_h;
        if (price <= 0.0)
            price = type->n_devices *
                    cluster->devices[type->i_device].price_usd_per_h;
        sum += (double)nodes_in(&cluster->groups[i], n_nodes) * price;
    }
    return sum;
}

double fr_fabric_power_w(const fr_fabric *fabric, int64_t n_nodes,
                         int32_t n_rails)
{
    double sum = 0.0, n_below = 1;
    for (int32_t i = 0; i < fabric->n_levels; i++) {
        n_below *= (double)fabric->levels[i].n_down;
        sum += ceil((double)n_nodes / n_below) * fabric->levels[i].power_w;
    }
    if (fabric->kind == FR_FABRIC_RAIL)
        sum *= n_rails;
    for (size_t i = 0; i < fabric->n_switches; i++)
        sum += fabric->switches[i].power_w;
    return sum;
}

double fr_cluster_power_w(const fr_cluster *cluster, int64_t n_nodes,
                          double load_frac)
{
    /* One node alone sends nothing through them. */
    double sum =
        n_nodes > 1
            ? fr_fabric_power_w(&cluster->fabric, n_nodes,
                                fr_cluster_node_type(cluster, 0)->n_rails)
            : 0;
    for (size_t i = 0; i < cluster->n_groups; i++) {
        const fr_node_type *type = type_of(cluster, &cluster->groups[i]);
        const fr_device_type *device = &cluster->devices[type->i_device];
        double each =
            fr_device_idle_w(device) +
            (fr_device_power_w(device) - fr_device_idle_w(device)) * load_frac;
        sum += (double)nodes_in(&cluster->groups[i], n_nodes) *
               (type->power_w + type->n_devices * each);
    }
    return sum * (cluster->pue > 1 ? cluster->pue : 1);
}
