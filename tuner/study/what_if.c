/* what_if.c: a resource changed: in the cluster, or in times of the model. */
#include "tuner/study/what_if.h"

#include "cost_models/compute/host_time.h"
#include "spec/cluster/cluster_knobs.h"

#include <stdio.h>
#include <string.h>

static void scale_network(fr_cluster *cluster, double factor)
{
    fr_fabric *net = &cluster->fabric;
    for (size_t i = 0; i < cluster->n_node_types; i++)
        cluster->node_types[i].nic_Bps *= factor;
    net->link_Bps *= factor;
    net->global_Bps *= factor;
    for (size_t i = 0; i < net->n_links; i++)
        net->links[i].bandwidth_Bps *= factor;
}

/* False: nothing behind the NICs is narrower than they are. */
static bool scale_switches(fr_cluster *cluster, double factor)
{
    fr_fabric *net = &cluster->fabric;
    bool is_narrow = net->kind == FR_FABRIC_DRAGONFLY;
    net->global_Bps *= factor;
    for (int32_t i = 0; i < net->n_levels; i++) {
        is_narrow |= net->levels[i].oversubscription > FR_WHAT_IF_NARROW;
        if (net->levels[i].oversubscription > FR_WHAT_IF_NARROW)
            net->levels[i].oversubscription /= factor;
    }
    return is_narrow;
}

static void scale_hosts(fr_cluster *cluster, double factor)
{
    for (size_t i = 0; i < cluster->n_node_types; i++) {
        fr_node_type *type = &cluster->node_types[i];
        /* If the file gives no rate, the assumed one is scaled. */
        const double Bps = fr_host_memory_Bps(type) * factor;
        if (type->host_memory_Bps <= 0)
            type->host_memory_Bps = Bps;
        type->host_memory_Bps *= Bps / fr_host_memory_Bps(type);
        type->host_link_Bps *= factor;
        type->pcie_uplink_Bps *= factor;
    }
}

static void scale_storage(fr_cluster *cluster, double factor)
{
    for (size_t i = 0; i < cluster->n_node_types; i++) {
        cluster->node_types[i].storage_read_Bps *= factor;
        cluster->node_types[i].storage_latency_s /= factor;
    }
}

static bool turn(fr_cluster *cluster, const char *knob, double factor)
{
    char text[40];
    fr_err why;
    snprintf(text, sizeof text, "x%.17g", factor);
    return fr_cluster_knob_turn(NULL,
                                fr_cluster_knob_at(fr_cluster_knob_find(knob)),
                                cluster, text, &why) == FR_OK;
}

/* Links of this scope were timed: the cluster's rates say nothing of them. */
static bool is_measured(const fr_profile *profile, bool is_net)
{
    for (size_t i = 0; profile != NULL && i < profile->n_comm; i++)
        if ((strcmp(profile->comm[i].scope, "net") == 0) == is_net)
            return true;
    return false;
}

static bool change_gpus(fr_cluster *cluster, const fr_profile *profile,
                        fr_resource resource, double factor,
                        fr_cost_scale *scale)
{
    bool is_net = resource == FR_RESOURCE_NETWORK;
    switch (resource) {
    case FR_RESOURCE_FLOPS:
        return turn(cluster, "flops", factor);
    case FR_RESOURCE_MEMORY_RATE:
        return turn(cluster, "memory-bandwidth", factor);
    case FR_RESOURCE_NODE_LINKS:
    case FR_RESOURCE_NETWORK:
        if (is_measured(profile, is_net))
            scale->transfer[is_net] = 1 / factor;
        else if (is_net)
            scale_network(cluster, factor);
        else
            return turn(cluster, "nvlink", factor);
        return true;
    case FR_RESOURCE_SWITCHES:
        return scale_switches(cluster, factor);
    case FR_RESOURCE_HOST:
        scale_hosts(cluster, factor);
        return true;
    case FR_RESOURCE_INPUT:
        scale_storage(cluster, factor);
        return true;
    case FR_RESOURCE_NODE_LATENCY:
    case FR_RESOURCE_NET_LATENCY:
        scale->latency[resource == FR_RESOURCE_NET_LATENCY] = factor;
        return true;
    case FR_RESOURCE_N:
        break;
    }
    return false;
}

/* A profile knows the times of a network; the NICs that messages share keep the
 * cluster's rates. */
static bool change_cpus(fr_cluster *cluster, const fr_profile *profile,
                        fr_resource resource, double factor,
                        fr_cost_scale *scale)
{
    switch (resource) {
    case FR_RESOURCE_FLOPS:
        scale->compute = 1 / factor;
        return true;
    case FR_RESOURCE_NODE_LINKS:
        scale->transfer[false] = 1 / factor;
        return true;
    case FR_RESOURCE_NETWORK:
        scale_network(cluster, factor);
        if (is_measured(profile, true))
            scale->transfer[true] = 1 / factor;
        return true;
    case FR_RESOURCE_INPUT:
        scale_storage(cluster, factor);
        return true;
    case FR_RESOURCE_NODE_LATENCY:
    case FR_RESOURCE_NET_LATENCY:
        scale->latency[resource == FR_RESOURCE_NET_LATENCY] = factor;
        return true;
    default:
        return false;
    }
}

fr_status fr_what_if_create(const fr_cluster *cluster,
                            const fr_profile *profile, fr_resource resource,
                            double factor, fr_what_if *out, bool *is_there,
                            fr_err *err)
{
    fr_cost_scale scale = fr_cost_scale_none;
    bool is_gpu = fr_cluster_device(cluster, 0)->kind == FR_DEVICE_GPU;
    memset(out, 0, sizeof *out);
    FR_TRY(fr_cluster_copy(cluster, &out->cluster, err));
    *is_there =
        is_gpu ? change_gpus(&out->cluster, profile, resource, factor, &scale)
               : change_cpus(&out->cluster, profile, resource, factor, &scale);
    fr_status status = FR_OK;
    if (*is_there)
        status = fr_cost_model_create(profile, &out->cluster, &out->costs, err);
    if (!*is_there || status != FR_OK) {
        fr_what_if_release(out);
        return status;
    }
    fr_cost_model_scale(out->costs, &scale);
    return FR_OK;
}

void fr_what_if_release(fr_what_if *what_if)
{
    fr_cost_model_destroy(what_if->costs);
    fr_cluster_release(&what_if->cluster);
    memset(what_if, 0, sizeof *what_if);
}

fr_status fr_what_if_unlimited(const fr_cluster *cluster, fr_cluster *out,
                               fr_err *err)
{
    FR_TRY(fr_cluster_copy(cluster, out, err));
    for (size_t i = 0; i < out->n_devices; i++)
        out->devices[i].memory_bytes = UINT64_MAX / 2;
    return FR_OK;
}
