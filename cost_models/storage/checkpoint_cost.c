/* checkpoint_cost.c: see checkpoint_cost.h. */
#include "cost_models/storage/checkpoint_cost.h"

#include "plan/codec/optimizer.h"

static const char *const kinds[] = {
    [FR_CHECKPOINT_SYNC] = "sync",
    [FR_CHECKPOINT_ASYNC] = "async",
    [FR_CHECKPOINT_MEMORY] = "memory",
};

const fr_names fr_checkpoint_kind_names = FR_NAMES(kinds);

/*
 * The default rate of a node's storage is the geometric mean of three, each
 * less the half second below: BLOOM-176B wrote 2.3 TB in 40 s from 48 nodes to
 * GPFS over NVMe, 1.2 GB/s (BigScience, train/tr11-176B-ml/chronicles.md);
 * torchsnapshot 20 GB in 2.68 s from 4 nodes to FSx for Lustre, 2.3 GB/s
 * (pytorch/torchsnapshot, benchmarks/ddp/README.md); BigScience's models of 25
 * to 181 billion parameters, 14 bytes each, on V100, 2.1 GB/s, the median of
 * seven (experiments/gpt2.md).
 */
static const double usual_node_Bps = 1.80e9;
/*
 * The time that a framework takes for any checkpoint in addition to copying or
 * writing it: planning and waiting for all ranks.  Half a second of PyTorch's
 * DCP with 0.2 GB of a GPU (Llama 3 8B, 512 H100; pytorch.org forum, 2024-10)
 * and of DLRover's Flash Checkpoint with some
 * (docs/blogs/megatron_flash_checkpoint.md).
 */
static const double framework_s = 0.5;
/* PCIe 3.0 x 16, where the link to the host is not known. */
static const double usual_host_link_Bps = 12e9;

/* The given rate, that of the nodes, or the default one of each server: a rack
 * that is one node has several (HOSTS of the catalogue). */
static double rate_of(double given_Bps, double node_Bps, int64_t n_nodes,
                      int32_t n_hosts, bool *is_assumed)
{
    *is_assumed = !(given_Bps > 0) && !(node_Bps > 0);
    if (given_Bps > 0)
        return given_Bps;
    if (node_Bps > 0)
        return (double)n_nodes * node_Bps;
    return (double)n_nodes * (double)(n_hosts > 0 ? n_hosts : 1) *
           usual_node_Bps;
}

static double or_usual(double value, double usual)
{
    return value > 0 ? value : usual;
}

fr_checkpoint_cost fr_checkpoint_price(uint64_t state_bytes,
                                       const fr_cluster *cluster,
                                       int64_t n_nodes, fr_checkpoint_kind kind,
                                       const fr_storage_rates *rates)
{
    const fr_node_type *node = fr_cluster_node_type(cluster, 0);
    const bool is_gpu = fr_cluster_device(cluster, 0)->kind == FR_DEVICE_GPU;
    fr_checkpoint_cost cost = {.bytes = state_bytes};
    const double bytes = (double)cost.bytes;
    const double on_node = bytes / (double)n_nodes;
    const double copy_s = on_node / node->n_devices /
                          or_usual(node->host_link_Bps, usual_host_link_Bps);
    cost.write_Bps = rate_of(rates->write_Bps, node->storage_write_Bps, n_nodes,
                             node->n_hosts, &cost.is_write_assumed);
    cost.read_Bps = rate_of(rates->read_Bps, node->storage_read_Bps, n_nodes,
                            node->n_hosts, &cost.is_read_assumed);
    cost.load_s = bytes / cost.read_Bps;
    const double fixed_s = is_gpu && state_bytes > 0 ? framework_s : 0;
    switch (kind) {
    case FR_CHECKPOINT_ASYNC:
        cost.blocked_s = copy_s + fixed_s;
        cost.drain_s = bytes / cost.write_Bps;
        break;
    case FR_CHECKPOINT_MEMORY:
        cost.blocked_s = copy_s + fixed_s;
        if (n_nodes > 1)
            cost.drain_s = on_node / fr_cluster_nic_Bps(cluster, 0);
        cost.load_s = copy_s + cost.drain_s;
        break;
    default:
        cost.blocked_s = bytes / cost.write_Bps + fixed_s;
        break;
    }
    return cost;
}
