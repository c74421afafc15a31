/*
 * fabric_links.c: rates of NVLink, xGMI, PCIe and NICs as NCCL sees them.
 */
#include "cost_models/link/fabric_links.h"

#include <math.h>
#include <string.h>

/*
 * link_share: A100 0.979 and H200 0.991 at 16 GiB, B200 0.945 at 8 GiB
 * (nccl-tests in Stas Bekman, Machine Learning Engineering,
 * network/README.md).  pair_share, peers_share: all-to-all over 2, 4, 8 A100
 * (Hetu-Galvatron, sp_time_1nodes_8gpus_per_node.json).  launch_s: 8 H20, one
 * process each, 18.7 us for 32 KB where NCCL's tuner counts 15 (nccl-tests
 * with NCCL 2.30, kvcache-ai/Mooncake pull request 3484).  step_s,
 * ll128_share: the tuner has 3.4 us and 0.92 for all; so do 8 H20 (same
 * place), while 8, 4 and 2 A100 need three times as long a step.  nvls_fill:
 * H200 from 2 to 32 MB.
 */
const fr_link_fit fr_link_fit_known = {
    .link_share = 0.965,
    .pair_share = 0.62,
    .peers_share = 0.80,
    .launch_s = 4e-6,
    .step_s = {10.5e-6, 3.4e-6},
    .ll128_share = {0.60, 0.92},
    .nvls_fill = 0.65,
};

/* xGMI: MI300X 47.7 of 64 GB/s between two, 312.9 of 448 GB/s among eight
 * (same book, accelerator and network chapters). */
static const double xgmi_share = 0.72;

/* A switch of PCIe delivers 0.8 of what NCCL counts for its lanes: transfers
 * both ways at once with 256-byte payloads. */
static const double pcie_share = 0.8;

/*
 * Share of a NIC's line rate that a collective reaches, latency of a message
 * as NCCL's plugin for it says (0: that of the cluster file), and whether LL
 * and LL128 run over it.
 *   EFA         0.955 to 0.985 of 8 x 50 GB/s (same book, 4 x 8 B200, ring or
 *               tree); 35 us and SIMPLE alone where writes may overtake each
 *               other (aws-ofi-nccl 1.17, src/platform-aws.cpp, p5en and p6)
 *   InfiniBand  NVIDIA expects 46 to 48 of 50 GB/s of an NDR port (nccl-tests
 *               issue 290); four HDR ports of 25 GB/s reach 96 (issue 119)
 *   others      no measurement: headers of RoCE v2 and of Omni-Path are those
 *               of InfiniBand give or take a percent; a socket needs a core
 *               for each 5 GB/s or so
 */
static const struct {
    double share, latency_s;
    bool is_ordered;
} nics[FR_NIC_N] = {
    [FR_NIC_UNKNOWN] = {0.95, 0.0, true},
    [FR_NIC_INFINIBAND] = {0.95, 0.0, true},
    [FR_NIC_ROCE] = {0.95, 0.0, true},
    [FR_NIC_ETHERNET] = {0.80, 0.0, true},
    [FR_NIC_EFA] = {0.95, 35e-6, false},
    [FR_NIC_OMNI_PATH] = {0.90, 0.0, true},
    [FR_NIC_SLINGSHOT] = {0.90, 0.0, true},
    [FR_NIC_TCPX] = {0.85, 0.0, false},
};

/* A cluster file that says nothing: PCIe 3 with 16 lanes, as NCCL counts. */
static const double unknown_Bps = 12e9;

/* NCCL's latencies of the network are those of InfiniBand: one message takes
 * 5 us (catalog.c). */
static const double infiniband_s = 5e-6;
/* Slower ones are no RDMA that keeps order: NCCL runs SIMPLE. */
static const double ordered_s = 15e-6;

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* AMD's; without a name: links between pairs and fp8, which is no NVLink. */
static bool is_xgmi(const fr_node_type *node, const fr_device_type *device)
{
    if (node->intra_kind != FR_INTRA_NVLINK)
        return false;
    return device->generation[0] != '\0' ? begins(device->generation, "cdna")
                                         : fr_gpu_link_rates_of(device)->is_new;
}

double fr_nic_share(const fr_node_type *node)
{
    return node->nic_efficiency_frac > 0.0 ? node->nic_efficiency_frac
                                           : nics[node->nic_kind].share;
}

static double line_share(const fr_node_type *node, const fr_device_type *device)
{
    if (is_xgmi(node, device))
        return xgmi_share;
    if (node->intra_kind == FR_INTRA_NVLINK ||
        node->intra_kind == FR_INTRA_NVSWITCH)
        return fr_gpu_link_rates_of(device)->nvlink_share;
    return pcie_share;
}

static void set_network(const fr_cluster *cluster, const fr_node_type *node,
                        fr_gpu_fabric *out)
{
    const fr_fabric *net = &cluster->fabric;
    double latency_s =
        fmax(node->nic_latency_s, nics[node->nic_kind].latency_s);
    double nic_share = fr_nic_share(node);
    fr_path path = {0};

    out->n_nics = node->n_nics;
    out->nic_Bps = node->nic_Bps * nic_share;
    out->net_node_Bps = INFINITY;
    if (fr_cluster_n_nodes(cluster) > 1)
        path = fr_cluster_path(cluster, 0, 1);
    if (path.latency_s > latency_s)
        latency_s = path.latency_s;
    /* Behind the NICs of a tree there is at least their own rate. */
    if (path.bandwidth_Bps > 0.0 &&
        (net->kind == FR_FABRIC_LINKS || net->kind == FR_FABRIC_DRAGONFLY))
        out->net_node_Bps = path.bandwidth_Bps * nic_share;
    if (net->kind == FR_FABRIC_TORUS) {
        /* A ring in each dimension at once (arXiv 2304.01433, section 2). */
        double n_rings = 0.0;
        for (int32_t i = 0; i < net->n_dims; i++)
            n_rings += net->dims[i] > 1 ? 1.0 : 0.0;
        out->net_node_Bps = net->link_Bps * n_rings * nic_share;
        if (out->n_nics == 0) {
            out->n_nics = 1;
            out->nic_Bps = out->net_node_Bps;
        }
    }
    out->has_net_sum = cluster->fabric.has_sharp;
    out->net_extra_s = fmax(0.0, latency_s - infiniband_s);
    out->is_ordered_net =
        nics[node->nic_kind].is_ordered && latency_s < ordered_s;
    out->is_known_net = node->nic_kind == FR_NIC_EFA;
}

fr_gpu_fabric fr_gpu_fabric_of(const fr_cluster *cluster, size_t i_node_type)
{
    const fr_node_type *node = &cluster->node_types[i_node_type];
    const fr_device_type *device = &cluster->devices[node->i_device];
    const fr_gpu_link_rates *links = fr_gpu_link_rates_of(device);
    bool is_switched = node->intra_kind == FR_INTRA_NVSWITCH;
    double share = line_share(node, device);
    double intra_Bps = node->intra_Bps > 0.0 ? node->intra_Bps : unknown_Bps;
    double pair_Bps =
        node->intra_p2p_Bps > 0.0 ? node->intra_p2p_Bps : intra_Bps;
    fr_gpu_fabric out = {
        .fit = &fr_link_fit_known,
        .links = is_xgmi(node, device) ? fr_gpu_generations[FR_GPU_AMPERE].links
                                       : links,
        .kind = node->intra_kind,
        .has_switch_sum = is_switched && links->nvls_share > 0.0,
        .is_known = is_switched && links->is_known,
        .line_Bps = intra_Bps * share,
        .pair_Bps = pair_Bps * share,
        .n_devices = node->n_devices > 0 ? node->n_devices : 1,
        .n_processors = device->n_cores > 0 ? (double)device->n_cores : 100.0,
    };

    set_network(cluster, node, &out);
    return out;
}

fr_gpu_fabric fr_gpu_fabric_worse(const fr_gpu_fabric *a,
                                  const fr_gpu_fabric *b)
{
    fr_gpu_fabric out = *a;

    if (b->links->capability < out.links->capability)
        out.links = b->links;
    if (b->kind < out.kind) /* from shared memory up to a switch */
        out.kind = b->kind;
    out.has_switch_sum = a->has_switch_sum && b->has_switch_sum;
    out.has_net_sum = a->has_net_sum && b->has_net_sum;
    out.is_known = a->is_known && b->is_known;
    out.is_known_net = a->is_known_net && b->is_known_net;
    out.is_ordered_net = a->is_ordered_net && b->is_ordered_net;
    out.line_Bps = fmin(a->line_Bps, b->line_Bps);
    out.pair_Bps = fmin(a->pair_Bps, b->pair_Bps);
    if (b->n_devices < out.n_devices)
        out.n_devices = b->n_devices;
    if ((double)b->n_nics * b->nic_Bps < (double)a->n_nics * a->nic_Bps) {
        out.n_nics = b->n_nics;
        out.nic_Bps = b->nic_Bps;
    }
    out.net_node_Bps = fmin(a->net_node_Bps, b->net_node_Bps);
    out.net_extra_s = fmax(a->net_extra_s, b->net_extra_s);
    out.n_processors = fmin(a->n_processors, b->n_processors);
    return out;
}

/*
 * Channels, each a thread block on a multiprocessor of its own: two per
 * NVLink of an A100 ("24 coll channels"), at most 16 in a switch that adds,
 * two per NIC between nodes, two over PCIe (NCCL's log of its graphs).
 */
static double count_channels(const fr_gpu_fabric *fabric, int64_t n_nodes,
                             double n_nics)
{
    if (n_nodes > 1)
        return fmax(2.0, fmin(2.0 * n_nics, 32.0));
    if (fabric->kind == FR_INTRA_PCIE || fabric->kind == FR_INTRA_SHARED_MEMORY)
        return 2.0;
    return fabric->has_switch_sum ? 16.0 : (double)fabric->links->n_channels;
}

fr_group_links fr_group_links_of(const fr_gpu_fabric *fabric,
                                 const fr_comm_scope *scope)
{
    double n = (double)scope->n_group, n_nodes = (double)scope->n_nodes;
    double k = fmax(n / fmax(n_nodes, 1.0), 1.0);
    double near = ceil(k);
    double per_device =
        floor((double)fabric->n_nics / (double)fabric->n_devices);
    double n_nics = fmin((double)fabric->n_nics, near * fmax(per_device, 1.0));
    bool is_direct = fabric->kind == FR_INTRA_NVLINK;
    fr_group_links out = {.n = scope->n_group,
                          .n_nodes = scope->n_nodes,
                          .per_node = k,
                          .line_Bps = fabric->line_Bps};

    /* Links between pairs: those to members alone can be used. */
    if (is_direct)
        out.line_Bps =
            fmin(fabric->line_Bps, fmax(near - 1.0, 1.0) * fabric->pair_Bps);
    out.port_Bps = out.line_Bps * (is_direct ? 1.0 : fabric->fit->link_share);
    out.pair_Bps = is_direct ? fabric->pair_Bps
                             : fabric->pair_Bps * fabric->fit->pair_share;
    if (scope->n_nodes > 1)
        out.net_Bps = fmin(n_nics * fabric->nic_Bps, fabric->net_node_Bps);
    out.n_channels = count_channels(fabric, scope->n_nodes, n_nics);
    return out;
}
