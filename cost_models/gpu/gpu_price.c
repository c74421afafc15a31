/* gpu_price.c: see gpu_price.h. */
#include "cost_models/gpu/gpu_price.h"

#include "cost_models/compute/host_time.h"
#include "cost_models/gpu/gpu_measured.h"

#include <math.h>
#include <stdlib.h>

struct fr_gpu_prices {
    const fr_profile *profile;
    const fr_cluster *cluster;
    fr_gpu_measured *measured; /* NULL: nothing */
    fr_gpu_model *models;      /* of each device type; CPUs: not filled */
    bool *is_measured;         /* likewise */
};

/* The time of a launch of a copy to or from the host (Zhang, Meng, Liu, IISWC
 * 2019: launches). */
static const double copy_launch_s = 5e-6;

fr_status fr_gpu_prices_create(const fr_profile *profile,
                               const fr_cluster *cluster, fr_gpu_prices **out,
                               fr_err *err)
{
    fr_gpu_prices *prices = calloc(1, sizeof *prices);
    size_t n = cluster->n_devices + 1;
    fr_status status = FR_OK;

    if (prices != NULL) {
        prices->models = calloc(n, sizeof *prices->models);
        prices->is_measured = calloc(n, sizeof *prices->is_measured);
    }
    if (prices == NULL || prices->models == NULL ||
        prices->is_measured == NULL) {
        fr_gpu_prices_destroy(prices);
        return fr_fail_no_memory(err);
    }
    prices->profile = profile;
    prices->cluster = cluster;
    if (profile != NULL && fr_profile_is_gpu(profile))
        status = fr_gpu_measured_create(profile, &prices->measured, err);
    for (size_t i = 0; i < cluster->n_devices; i++) {
        const fr_device_type *device = &cluster->devices[i];
        if (device->kind != FR_DEVICE_GPU)
            continue;
        fr_gpu_model_init(device, &prices->models[i]);
        prices->is_measured[i] =
            prices->measured != NULL &&
            fr_gpu_measured_is_of(prices->measured, device);
    }
    if (status != FR_OK) {
        fr_gpu_prices_destroy(prices);
        return status;
    }
    *out = prices;
    return FR_OK;
}

void fr_gpu_prices_destroy(fr_gpu_prices *prices)
{
    if (prices == NULL)
        return;
    fr_gpu_measured_destroy(prices->measured);
    free(prices->models);
    free(prices->is_measured);
    free(prices);
}

static int32_t device_of(const fr_gpu_prices *prices, int64_t node)
{
    return fr_cluster_node_type(prices->cluster, node)->i_device;
}

bool fr_gpu_prices_has_measured(const fr_gpu_prices *prices)
{
    for (size_t i = 0; i < prices->cluster->n_devices; i++)
        if (prices->is_measured[i])
            return true;
    return false;
}

bool fr_gpu_prices_is_measured(const fr_gpu_prices *prices, int64_t node)
{
    return prices->is_measured[device_of(prices, node)];
}

/* To or from the host over the device's link, whose figure is what copies
 * from pinned memory reach (catalog.h). */
static fr_status ask_host_link(const fr_gpu_prices *prices,
                               const fr_instr *instr, int64_t node,
                               fr_cost *out, fr_err *err)
{
    const fr_node_type *type = fr_cluster_node_type(prices->cluster, node);

    if (fr_gpu_prices_is_measured(prices, node) &&
        fr_gpu_measured_copy(prices->measured, (double)instr->copy.n_bytes,
                             instr->copy.is_to_host != 0, out))
        return FR_OK;
    if (type->host_link_Bps <= 0.0)
        return fr_fail(err, FR_INFEASIBLE,
                       "%s: how fast its devices reach the host is not known; "
                       "give host-link, or do not offload",
                       type->id);
    *out =
        (fr_cost){.latency_s = copy_launch_s,
                  .work_s = (double)instr->copy.n_bytes / type->host_link_Bps,
                  .rel_err = 0.15,
                  .source = FR_COST_DATASHEET};
    return FR_OK;
}

/*
 * The optimizer on the host reads and writes its memory.  A rank has the
 * threads of one socket; those of a node share its memory, and of a rack, whose
 * ranks fill one host after the other, those of a host.  For scale: DeepSpeed's
 * CPU-Adam took 8.2 s for 11.6e9 parameters by one process, which is 42 GB/s
 * (pull request 735, 2021); this gives 51.
 */
static void ask_host_memory(const fr_node_type *type, const fr_instr *instr,
                            fr_cost *out)
{
    double n_hosts = fmax(1.0, (double)type->n_hosts);
    double per_host =
        n_hosts > 1.0 ? ceil((double)type->n_devices / n_hosts) : 1.0;
    double sockets = fmax(1.0, (double)type->n_sockets / n_hosts);
    double part = n_hosts * fmax(sockets, per_host);

    *out = (fr_cost){.work_s = (double)fr_instr_moved_bytes(instr, 1) * part /
                               fr_host_memory_Bps(type),
                     .memory_frac = 1.0 / part,
                     .rel_err = 0.3,
                     .source = FR_COST_DATASHEET};
}

fr_status fr_gpu_prices_ask(const fr_gpu_prices *prices, const fr_instr *instr,
                            int64_t node, fr_cost *out, fr_err *err)
{
    fr_cost cost = {0};

    if (instr->op == FR_OP_HOST_COPY)
        return ask_host_link(prices, instr, node, out, err);
    if ((instr->flags & FR_INSTR_HOST) != 0) {
        ask_host_memory(fr_cluster_node_type(prices->cluster, node), instr,
                        out);
        return FR_OK;
    }
    if (!fr_gpu_prices_is_measured(prices, node) ||
        !fr_gpu_measured_ask(prices->measured, instr, &cost))
        FR_TRY(fr_gpu_cost_compute(&prices->models[device_of(prices, node)],
                                   instr, &cost, err));
    cost.memory_frac = 0.0;
    *out = cost;
    return FR_OK;
}

double fr_gpu_prices_issue_s(const fr_gpu_prices *prices, const fr_plan *plan,
                             const fr_instr *instr, int n_kernels, int64_t node)
{
    double speed = fr_cluster_node_type(prices->cluster, node)->host_speed_frac;

    if (plan->execution.kernels == FR_KERNELS_OWN &&
        fr_gpu_prices_is_measured(prices, node))
        return n_kernels * prices->profile->gpu.graph_node_s;
    return fr_host_issue_s(plan, instr, n_kernels) /
           (speed > 0.0 ? speed : 1.0);
}

bool fr_gpu_prices_own_memory(const fr_gpu_prices *prices, const fr_plan *plan,
                              int64_t node, fr_own_memory *out)
{
    if (plan->execution.kernels != FR_KERNELS_OWN ||
        !fr_gpu_prices_is_measured(prices, node) ||
        prices->profile->baseline_alone_bytes == 0)
        return false;
    const fr_gpu_costs *gpu = &prices->profile->gpu;
    *out = (fr_own_memory){.alone_bytes = prices->profile->baseline_alone_bytes,
                           .workspace_bytes = gpu->workspace_bytes,
                           .comm_world_bytes = gpu->comm_world_bytes,
                           .comm_pair_bytes = gpu->comm_pair_bytes,
                           .comm_group_bytes = gpu->comm_group_bytes};
    return true;
}
