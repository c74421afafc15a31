/*
 * catalog.c: the built-in devices and node types.
 *
 * Sources, all read in August 2026 (short name: what):
 *   nvidia   datasheets of the products at nvidia.com; tensor peaks halved
 *            where the sheet counts sparsity
 *   amd      datasheets at amd.com
 *   google   cloud.google.com/tpu/docs, system architecture
 *   mlbook   Stas Bekman, Machine Learning Engineering, compute/accelerator
 *            (a table of the vendors' pages)
 *   nccl     NVLink and PCIe classes, latencies: NCCL 2.30 src/graph/tuning.cc
 *   aws      instance pages of aws.amazon.com/ec2
 *   prices   SkyPilot catalog v8, vms.csv of aws and lambda (2025-26), us
 *            regions, USD per node and hour
 * Prices change: a cluster file may override every number.
 */
#include "spec/catalog.h"

#include "core/text.h"

#include <stdlib.h>
#include <string.h>

#define GIB (1024ull * 1024 * 1024)
#define MIB (1024ull * 1024)
#define GBPS 1e9
#define GBITPS 0.125e9
#define TFLOPS 1e12

#define PEAK(name, tflops)                                                     \
    {                                                                          \
        name, (tflops)*TFLOPS                                                  \
    }

/* clang-format off */
static const fr_catalog_device devices[] = {
    {{.id = "v100-sxm2-16g", .kind = FR_DEVICE_GPU, .n_cores = 80,
      .memory_bytes = 16 * GIB, .memory_Bps = 900 * GBPS,
      .cache_bytes = 6 * MIB, .n_peaks = 3, .power_w = 300,
      .peaks = {PEAK("fp64", 7.8), PEAK("fp32", 15.7), PEAK("fp16", 125)}},
     "NVIDIA V100 SXM2 16 GB", "nvidia"},
    {{.id = "v100-sxm2-32g", .kind = FR_DEVICE_GPU, .n_cores = 80,
      .memory_bytes = 32 * GIB, .memory_Bps = 900 * GBPS,
      .cache_bytes = 6 * MIB, .n_peaks = 3, .power_w = 300,
      .peaks = {PEAK("fp64", 7.8), PEAK("fp32", 15.7), PEAK("fp16", 125)}},
     "NVIDIA V100 SXM2 32 GB", "nvidia"},
    {{.id = "a100-sxm-40g", .kind = FR_DEVICE_GPU, .n_cores = 108,
      .memory_bytes = 40 * GIB, .memory_Bps = 1555 * GBPS,
      .cache_bytes = 40 * MIB, .n_peaks = 6, .power_w = 400,
      .peaks = {PEAK("fp64", 9.7), PEAK("fp32", 19.5), PEAK("tf32", 156),
                PEAK("fp16", 312), PEAK("bf16", 312), PEAK("int8", 624)}},
     "NVIDIA A100 SXM4 40 GB", "nvidia, mlbook"},
    {{.id = "a100-sxm-80g", .kind = FR_DEVICE_GPU, .n_cores = 108,
      .memory_bytes = 80 * GIB, .memory_Bps = 2039 * GBPS,
      .cache_bytes = 40 * MIB, .n_peaks = 6, .power_w = 400,
      .peaks = {PEAK("fp64", 9.7), PEAK("fp32", 19.5), PEAK("tf32", 156),
                PEAK("fp16", 312), PEAK("bf16", 312), PEAK("int8", 624)}},
     "NVIDIA A100 SXM4 80 GB", "nvidia, mlbook"},
    {{.id = "a100-pcie-80g", .kind = FR_DEVICE_GPU, .n_cores = 108,
      .memory_bytes = 80 * GIB, .memory_Bps = 1935 * GBPS,
      .cache_bytes = 40 * MIB, .n_peaks = 6, .power_w = 300,
      .peaks = {PEAK("fp64", 9.7), PEAK("fp32", 19.5), PEAK("tf32", 156),
                PEAK("fp16", 312), PEAK("bf16", 312), PEAK("int8", 624)}},
     "NVIDIA A100 PCIe 80 GB", "nvidia, mlbook"},
    {{.id = "h100-sxm", .kind = FR_DEVICE_GPU, .n_cores = 132,
      .memory_bytes = 80 * GIB, .memory_Bps = 3350 * GBPS,
      .cache_bytes = 50 * MIB, .n_peaks = 7, .power_w = 700,
      .peaks = {PEAK("fp64", 34), PEAK("fp32", 67), PEAK("tf32", 494.5),
                PEAK("fp16", 989), PEAK("bf16", 989), PEAK("fp8", 1979),
                PEAK("int8", 1979)}},
     "NVIDIA H100 SXM5 80 GB", "nvidia, mlbook"},
    {{.id = "h100-pcie", .kind = FR_DEVICE_GPU, .n_cores = 114,
      .memory_bytes = 80 * GIB, .memory_Bps = 2000 * GBPS,
      .cache_bytes = 50 * MIB, .n_peaks = 7, .power_w = 350,
      .peaks = {PEAK("fp64", 26), PEAK("fp32", 51), PEAK("tf32", 378),
                PEAK("fp16", 756), PEAK("bf16", 756), PEAK("fp8", 1513),
                PEAK("int8", 1513)}},
     "NVIDIA H100 PCIe 80 GB", "nvidia, mlbook"},
    {{.id = "h200-sxm", .kind = FR_DEVICE_GPU, .n_cores = 132,
      .memory_bytes = 141 * 1000000000ull, .memory_Bps = 4800 * GBPS,
      .cache_bytes = 50 * MIB, .n_peaks = 7, .power_w = 700,
      .peaks = {PEAK("fp64", 34), PEAK("fp32", 67), PEAK("tf32", 494.5),
                PEAK("fp16", 989), PEAK("bf16", 989), PEAK("fp8", 1979),
                PEAK("int8", 1979)}},
     "NVIDIA H200 SXM 141 GB", "nvidia, mlbook"},
    {{.id = "b200-sxm", .kind = FR_DEVICE_GPU, .n_cores = 148,
      .memory_bytes = 180 * 1000000000ull, .memory_Bps = 8000 * GBPS,
      .n_peaks = 7, .power_w = 1000,
      .peaks = {PEAK("fp32", 80), PEAK("tf32", 1125), PEAK("fp16", 2250),
                PEAK("bf16", 2250), PEAK("fp8", 4500), PEAK("int8", 4500),
                PEAK("fp4", 9000)}},
     "NVIDIA B200 SXM 180 GB", "nvidia, mlbook"},
    {{.id = "gb200", .kind = FR_DEVICE_GPU, .n_cores = 148,
      .memory_bytes = 186 * 1000000000ull, .memory_Bps = 8000 * GBPS,
      .n_peaks = 7, .power_w = 1200,
      .peaks = {PEAK("fp32", 80), PEAK("tf32", 1250), PEAK("fp16", 2500),
                PEAK("bf16", 2500), PEAK("fp8", 5000), PEAK("int8", 5000),
                PEAK("fp4", 10000)}},
     "NVIDIA GB200, one of its GPUs", "nvidia, mlbook"},
    {{.id = "l40s", .kind = FR_DEVICE_GPU, .n_cores = 142,
      .memory_bytes = 48 * GIB, .memory_Bps = 860 * GBPS,
      .cache_bytes = 96 * MIB, .n_peaks = 6, .power_w = 350,
      .peaks = {PEAK("fp32", 91.6), PEAK("tf32", 183), PEAK("fp16", 362),
                PEAK("bf16", 362), PEAK("fp8", 733), PEAK("int8", 733)}},
     "NVIDIA L40S 48 GB", "nvidia, mlbook"},
    {{.id = "rtx-4090", .kind = FR_DEVICE_GPU, .n_cores = 128,
      .memory_bytes = 24 * GIB, .memory_Bps = 1008 * GBPS,
      .cache_bytes = 72 * MIB, .n_peaks = 6, .power_w = 450,
      .peaks = {PEAK("fp32", 82.6), PEAK("tf32", 82.6), PEAK("fp16", 165.2),
                PEAK("bf16", 165.2), PEAK("fp8", 330), PEAK("int8", 661)}},
     "NVIDIA GeForce RTX 4090 24 GB", "nvidia (Ada whitepaper), mlbook"},
    {{.id = "mi250x-gcd", .kind = FR_DEVICE_GPU, .n_cores = 110,
      .memory_bytes = 64 * GIB, .memory_Bps = 1640 * GBPS,
      .cache_bytes = 8 * MIB, .n_peaks = 5, .power_w = 280,
      .peaks = {PEAK("fp64", 23.95), PEAK("fp32", 23.95),
                PEAK("fp16", 191.5), PEAK("bf16", 191.5),
                PEAK("int8", 191.5)}},
     "AMD MI250X, one of its two dies", "amd, mlbook"},
    {{.id = "mi300x", .kind = FR_DEVICE_GPU, .n_cores = 304,
      .memory_bytes = 192 * GIB, .memory_Bps = 5300 * GBPS,
      .cache_bytes = 256 * MIB, .n_peaks = 6, .power_w = 750,
      .peaks = {PEAK("fp32", 163.4), PEAK("tf32", 653.7), PEAK("fp16", 1300),
                PEAK("bf16", 1300), PEAK("fp8", 2610), PEAK("int8", 2600)}},
     "AMD MI300X 192 GB", "amd, mlbook"},
    {{.id = "tpu-v4", .kind = FR_DEVICE_GPU,
      .memory_bytes = 32 * GIB, .memory_Bps = 1200 * GBPS, .n_peaks = 2,
      .peaks = {PEAK("bf16", 275), PEAK("int8", 275)}},
     "Google TPU v4 chip", "google, mlbook"},
};

/* 2 us inside a node, 5 us between nodes: NCCL's LL hop over NVLink is 0.6 to
 * 1.9 us, over the net 2.7 to 5 us (nccl). */
static const fr_catalog_node nodes[] = {
    {{.id = "dgx-1-v100", .n_devices = 8, .intra_kind = FR_INTRA_NVLINK,
      .intra_Bps = 150 * GBPS, .intra_p2p_Bps = 50 * GBPS,
      .intra_latency_s = 2e-6, .host_link_Bps = 12 * GBPS,
      .n_nics = 4, .nic_Bps = 100 * GBITPS, .nic_latency_s = 5e-6,
      .n_rails = 1, .n_sockets = 2, .host_memory_bytes = 512 * GIB},
     "v100-sxm2-32g", FR_FABRIC_SWITCH, "NVIDIA DGX-1 with V100, 4 x EDR",
     "nvidia (DGX-1 user guide)"},
    {{.id = "dgx-a100", .n_devices = 8, .intra_kind = FR_INTRA_NVSWITCH,
      .intra_Bps = 300 * GBPS, .intra_p2p_Bps = 300 * GBPS,
      .intra_latency_s = 2e-6, .host_link_Bps = 24 * GBPS,
      .n_nics = 8, .nic_Bps = 200 * GBITPS, .nic_latency_s = 5e-6,
      .n_rails = 8, .n_sockets = 2, .host_memory_bytes = 2048 * GIB},
     "a100-sxm-80g", FR_FABRIC_RAIL, "NVIDIA DGX A100 640 GB, 8 x HDR",
     "nvidia (DGX A100 datasheet)"},
    {{.id = "dgx-h100", .n_devices = 8, .intra_kind = FR_INTRA_NVSWITCH,
      .intra_Bps = 450 * GBPS, .intra_p2p_Bps = 450 * GBPS,
      .intra_latency_s = 2e-6, .host_link_Bps = 48 * GBPS,
      .n_nics = 8, .nic_Bps = 400 * GBITPS, .nic_latency_s = 5e-6,
      .n_rails = 8, .n_sockets = 2, .host_memory_bytes = 2048 * GIB},
     "h100-sxm", FR_FABRIC_RAIL, "NVIDIA DGX H100, 8 x NDR",
     "nvidia (DGX H100 datasheet)"},
    {{.id = "dgx-h200", .n_devices = 8, .intra_kind = FR_INTRA_NVSWITCH,
      .intra_Bps = 450 * GBPS, .intra_p2p_Bps = 450 * GBPS,
      .intra_latency_s = 2e-6, .host_link_Bps = 48 * GBPS,
      .n_nics = 8, .nic_Bps = 400 * GBITPS, .nic_latency_s = 5e-6,
      .n_rails = 8, .n_sockets = 2, .host_memory_bytes = 2048 * GIB},
     "h200-sxm", FR_FABRIC_RAIL, "NVIDIA DGX H200, 8 x NDR",
     "nvidia (DGX H200 datasheet)"},
    {{.id = "dgx-b200", .n_devices = 8, .intra_kind = FR_INTRA_NVSWITCH,
      .intra_Bps = 900 * GBPS, .intra_p2p_Bps = 900 * GBPS,
      .intra_latency_s = 2e-6, .host_link_Bps = 48 * GBPS,
      .n_nics = 8, .nic_Bps = 400 * GBITPS, .nic_latency_s = 5e-6,
      .n_rails = 8, .n_sockets = 2, .host_memory_bytes = 2048 * GIB},
     "b200-sxm", FR_FABRIC_RAIL, "NVIDIA DGX B200, 8 x NDR",
     "nvidia (DGX B200 datasheet)"},
    {{.id = "gb200-nvl72", .n_devices = 72, .intra_kind = FR_INTRA_NVSWITCH,
      .intra_Bps = 900 * GBPS, .intra_p2p_Bps = 900 * GBPS,
      .intra_latency_s = 2e-6, .host_link_Bps = 225 * GBPS,
      .n_nics = 72, .nic_Bps = 400 * GBITPS, .nic_latency_s = 5e-6,
      .n_rails = 4, .n_sockets = 36, .host_memory_bytes = 17280 * GIB},
     "gb200", FR_FABRIC_RAIL,
     "NVIDIA GB200 NVL72, one NVLink domain of 18 trays",
     "nvidia (GB200 NVL72 page)"},
    {{.id = "mi300x-8", .n_devices = 8, .intra_kind = FR_INTRA_NVLINK,
      .intra_Bps = 448 * GBPS, .intra_p2p_Bps = 64 * GBPS,
      .intra_latency_s = 2e-6, .host_link_Bps = 48 * GBPS,
      .n_nics = 8, .nic_Bps = 400 * GBITPS, .nic_latency_s = 5e-6,
      .n_rails = 8, .n_sockets = 2, .host_memory_bytes = 2048 * GIB},
     "mi300x", FR_FABRIC_RAIL, "AMD MI300X platform, 8 x 400G",
     "amd (MI300X platform datasheet)"},
    {{.id = "p3dn.24xlarge", .n_devices = 8, .intra_kind = FR_INTRA_NVLINK,
      .intra_Bps = 150 * GBPS, .intra_p2p_Bps = 50 * GBPS,
      .intra_latency_s = 2e-6, .host_link_Bps = 12 * GBPS,
      .n_nics = 1, .nic_Bps = 100 * GBITPS, .nic_latency_s = 20e-6,
      .n_rails = 1, .n_sockets = 2, .host_memory_bytes = 768 * GIB,
      .price_usd_per_h = 31.21, .spot_usd_per_h = 7.5},
     "v100-sxm2-32g", FR_FABRIC_SWITCH, "AWS p3dn.24xlarge", "aws, prices"},
    {{.id = "p4d.24xlarge", .n_devices = 8, .intra_kind = FR_INTRA_NVSWITCH,
      .intra_Bps = 300 * GBPS, .intra_p2p_Bps = 300 * GBPS,
      .intra_latency_s = 2e-6, .host_link_Bps = 24 * GBPS,
      .n_nics = 4, .nic_Bps = 100 * GBITPS, .nic_latency_s = 20e-6,
      .n_rails = 1, .n_sockets = 2, .host_memory_bytes = 1152 * GIB,
      .price_usd_per_h = 21.96, .spot_usd_per_h = 8.8},
     "a100-sxm-40g", FR_FABRIC_SWITCH, "AWS p4d.24xlarge, 4 x 100G EFA",
     "aws, prices"},
    {{.id = "p4de.24xlarge", .n_devices = 8, .intra_kind = FR_INTRA_NVSWITCH,
      .intra_Bps = 300 * GBPS, .intra_p2p_Bps = 300 * GBPS,
      .intra_latency_s = 2e-6, .host_link_Bps = 24 * GBPS,
      .n_nics = 4, .nic_Bps = 100 * GBITPS, .nic_latency_s = 20e-6,
      .n_rails = 1, .n_sockets = 2, .host_memory_bytes = 1152 * GIB,
      .price_usd_per_h = 27.45, .spot_usd_per_h = 9.85},
     "a100-sxm-80g", FR_FABRIC_SWITCH, "AWS p4de.24xlarge, 4 x 100G EFA",
     "aws, prices"},
    {{.id = "p5.48xlarge", .n_devices = 8, .intra_kind = FR_INTRA_NVSWITCH,
      .intra_Bps = 450 * GBPS, .intra_p2p_Bps = 450 * GBPS,
      .intra_latency_s = 2e-6, .host_link_Bps = 48 * GBPS,
      .n_nics = 32, .nic_Bps = 100 * GBITPS, .nic_latency_s = 20e-6,
      .n_rails = 1, .n_sockets = 2, .host_memory_bytes = 2048 * GIB,
      .price_usd_per_h = 55.04, .spot_usd_per_h = 18.0},
     "h100-sxm", FR_FABRIC_SWITCH, "AWS p5.48xlarge, 32 x 100G EFA",
     "aws, prices"},
    {{.id = "p5en.48xlarge", .n_devices = 8, .intra_kind = FR_INTRA_NVSWITCH,
      .intra_Bps = 450 * GBPS, .intra_p2p_Bps = 450 * GBPS,
      .intra_latency_s = 2e-6, .host_link_Bps = 48 * GBPS,
      .n_nics = 16, .nic_Bps = 200 * GBITPS, .nic_latency_s = 20e-6,
      .n_rails = 1, .n_sockets = 2, .host_memory_bytes = 2048 * GIB,
      .price_usd_per_h = 63.30, .spot_usd_per_h = 19.85},
     "h200-sxm", FR_FABRIC_SWITCH, "AWS p5en.48xlarge, 16 x 200G EFA",
     "aws, prices"},
    {{.id = "l40s-8", .n_devices = 8, .intra_kind = FR_INTRA_PCIE,
      .intra_Bps = 24 * GBPS, .intra_p2p_Bps = 24 * GBPS,
      .intra_latency_s = 4e-6, .host_link_Bps = 24 * GBPS,
      .n_nics = 1, .nic_Bps = 100 * GBITPS, .nic_latency_s = 20e-6,
      .n_rails = 1, .n_sockets = 2, .host_memory_bytes = 768 * GIB},
     "l40s", FR_FABRIC_SWITCH, "server with 8 L40S on PCIe 4",
     "nvidia (L40S datasheet), nccl"},
    {{.id = "rtx-4090-4", .n_devices = 4, .intra_kind = FR_INTRA_PCIE,
      .intra_Bps = 12 * GBPS, .intra_p2p_Bps = 12 * GBPS,
      .intra_latency_s = 8e-6, .host_link_Bps = 24 * GBPS,
      .n_nics = 1, .nic_Bps = 10 * GBITPS, .nic_latency_s = 30e-6,
      .n_rails = 1, .n_sockets = 1, .host_memory_bytes = 256 * GIB},
     "rtx-4090", FR_FABRIC_SWITCH,
     "workstation with 4 RTX 4090: no peer access, copies cross the host",
     "nvidia, mlbook"},
};
/* clang-format on */

enum {
    N_DEVICES = sizeof devices / sizeof devices[0],
    N_NODES = sizeof nodes / sizeof nodes[0]
};

size_t fr_catalog_n_devices(void)
{
    return N_DEVICES;
}

size_t fr_catalog_n_nodes(void)
{
    return N_NODES;
}

const fr_catalog_device *fr_catalog_device_at(size_t i)
{
    return i < N_DEVICES ? &devices[i] : NULL;
}

const fr_catalog_node *fr_catalog_node_at(size_t i)
{
    return i < N_NODES ? &nodes[i] : NULL;
}

const fr_catalog_device *fr_catalog_device_find(const char *id)
{
    for (size_t i = 0; i < N_DEVICES; i++)
        if (strcmp(devices[i].type.id, id) == 0)
            return &devices[i];
    return NULL;
}

const fr_catalog_node *fr_catalog_node_find(const char *id)
{
    for (size_t i = 0; i < N_NODES; i++)
        if (strcmp(nodes[i].type.id, id) == 0)
            return &nodes[i];
    return NULL;
}

const char *fr_catalog_device_nearest(const char *id)
{
    const char *ids[N_DEVICES];
    for (size_t i = 0; i < N_DEVICES; i++)
        ids[i] = devices[i].type.id;
    return fr_text_nearest(id, ids, N_DEVICES);
}

const char *fr_catalog_node_nearest(const char *id)
{
    const char *ids[N_NODES];
    for (size_t i = 0; i < N_NODES; i++)
        ids[i] = nodes[i].type.id;
    return fr_text_nearest(id, ids, N_NODES);
}

/* One of each of the three arrays. */
static fr_status make_arrays(fr_cluster *cluster, fr_err *err)
{
    cluster->devices = calloc(1, sizeof *cluster->devices);
    cluster->node_types = calloc(1, sizeof *cluster->node_types);
    cluster->groups = calloc(1, sizeof *cluster->groups);
    if (!cluster->devices || !cluster->node_types || !cluster->groups)
        return fr_fail_no_memory(err);
    cluster->n_devices = cluster->n_node_types = cluster->n_groups = 1;
    return FR_OK;
}

fr_status fr_catalog_cluster(const char *node_id, int64_t n_nodes,
                             fr_cluster *out, fr_err *err)
{
    const fr_catalog_node *node = fr_catalog_node_find(node_id);
    if (!node) {
        const char *nearest = fr_catalog_node_nearest(node_id);
        return fr_fail(err, FR_INPUT,
                       "no node type '%s' in the catalogue%s%s%s; 'forerun "
                       "catalog' lists them",
                       node_id, nearest ? ": did you mean '" : "",
                       nearest ? nearest : "", nearest ? "'?" : "");
    }
    if (n_nodes < 1 || n_nodes > 1000000)
        return fr_fail(err, FR_INPUT, "%s:%lld: give 1 to 1000000 nodes",
                       node_id, (long long)n_nodes);
    const fr_catalog_device *device = fr_catalog_device_find(node->device);
    fr_cluster cluster = {.pue = 1.0};
    fr_status status = make_arrays(&cluster, err);
    if (status != FR_OK) {
        fr_cluster_release(&cluster);
        return status;
    }
    cluster.devices[0] = device->type;
    cluster.node_types[0] = node->type;
    fr_node_group *group = &cluster.groups[0];
    fr_text_copy_cut(group->id, sizeof group->id, node_id);
    fr_text_copy_cut(cluster.name, sizeof cluster.name, node_id);
    group->n_nodes = n_nodes;
    cluster.fabric.kind = n_nodes > 1 ? node->fabric : FR_FABRIC_NONE;
    if (cluster.fabric.kind == FR_FABRIC_RAIL) {
        cluster.fabric.n_levels = 1;
        cluster.fabric.levels[0] =
            (fr_fabric_level){.n_down = n_nodes, .oversubscription = 1.0};
    }
    *out = cluster;
    return FR_OK;
}
