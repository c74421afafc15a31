/*
 * catalog_tables.h: the tables of the catalogue, known to its own files only:
 * catalog_devices.c (accelerators), catalog_nodes.c (servers that are bought),
 * catalog_clouds.c (instances that are rented, with prices).
 */
#ifndef FR_SPEC_CATALOG_CATALOG_TABLES_H
#define FR_SPEC_CATALOG_CATALOG_TABLES_H

#include "spec/catalog/catalog.h"

#define GIB (1024ull * 1024 * 1024)
#define MIB (1024ull * 1024)
#define GBPS 1e9
#define GBITPS 0.125e9
#define TFLOPS 1e12

#define PEAK(name, tflops)                                                     \
    {                                                                          \
        name, (tflops)*TFLOPS                                                  \
    }

/* 2 us inside a node, 5 us between nodes: NCCL's LL hop over NVLink is 0.6 to
 * 1.9 us, over the net 2.7 to 5 us (nccl).  Ethernet of clouds without a
 * switch of its own: 15 us more, as EFA needs (aws). */
#define NVLINK_LATENCY_S 2e-6
#define PCIE_LATENCY_S 4e-6
#define FABRIC_LATENCY_S 5e-6
#define CLOUD_LATENCY_S 20e-6

/* clang-format off */
/*
 * Parts of a node's row.  GB/s of one device into the fabric that joins them,
 * and between a pair where that is less.
 */
#define NVSWITCH(gbps)                                                         \
    .intra_kind = FR_INTRA_NVSWITCH, .intra_Bps = (gbps) * GBPS,               \
    .intra_p2p_Bps = (gbps) * GBPS, .intra_latency_s = NVLINK_LATENCY_S
#define NVLINK(gbps, pair_gbps)                                                \
    .intra_kind = FR_INTRA_NVLINK, .intra_Bps = (gbps) * GBPS,                 \
    .intra_p2p_Bps = (pair_gbps) * GBPS, .intra_latency_s = NVLINK_LATENCY_S
#define PCIE(gbps)                                                             \
    .intra_kind = FR_INTRA_PCIE, .intra_Bps = (gbps) * GBPS,                   \
    .intra_p2p_Bps = (gbps) * GBPS, .intra_latency_s = PCIE_LATENCY_S
/* PCIe switches, whose uplinks and links to devices have one rate. */
#define SWITCHES(n, gbps)                                                      \
    .host_link_Bps = (gbps) * GBPS, .n_pcie_switches = (n),                    \
    .pcie_uplink_Bps = (gbps) * GBPS
/* NICs of so many Gb/s, behind a fabric of their own or a cloud's network. */
#define NICS(n, gbitps, kind)                                                  \
    .n_nics = (n), .nic_Bps = (gbitps) * GBITPS, .nic_kind = (kind),           \
    .nic_latency_s = FABRIC_LATENCY_S
#define CLOUD_NICS(n, gbitps, kind)                                            \
    .n_nics = (n), .nic_Bps = (gbitps) * GBITPS, .nic_kind = (kind),           \
    .nic_latency_s = CLOUD_LATENCY_S
/*
 * The power of hosts, NICs, fans and switches inside a node at work: that of
 * the system, less its GPUs.  Power supplies are made for more: of 8 H100
 * whose system may draw 10.2 kW, 76 % were measured under heavy training
 * (Newkirk et al., arXiv 2506.14551, 2025), which is taken for all that are
 * cooled by air. The maxima: DGX-2: 10 kW (NVIDIA at GTC 2018, in
 * datacenterdynamics.com).  DGX A100: 6.5 kW (user guide, May 2020).  DGX H100
 * and H200: 10.2 kW (user guide).  DGX B200 14.3 kW, DGX B300 14.5 kW
 * (NVIDIA's deployment guides).  GB200 NVL72: 120 kW (NVIDIA, GTC 2024).
 * GB300 NVL72: 132 kW (Supermicro's rack: eight power shelves of 33 kW, 132 to
 * 140 kW in operation).  Clouds and others do not publish it: theirs is
 * that of NVIDIA's system of the same board.  No document about DGX-1 was
 * found: unknown, 0.
 */
#define AT_WORK(most_w) (0.76 * (most_w))
#define DGX_2_POWER (AT_WORK(10000) - 16 * 350)
#define DGX_A100_POWER (AT_WORK(6500) - 8 * 400)
#define DGX_H100_POWER (AT_WORK(10200) - 8 * 700)
#define DGX_B200_POWER (AT_WORK(14300) - 8 * 1000)
#define DGX_B300_POWER (AT_WORK(14500) - 8 * 1100)
#define GB200_NVL72_POWER (120000 - 72 * 1200)
#define GB300_NVL72_POWER (132000 - 72 * 1400)

/* Servers, their sockets and GiB of memory in all. */
#define HOSTS(n, sockets, memory_gib)                                          \
    .n_hosts = (n), .n_sockets = (sockets),                                    \
    .host_memory_bytes = (memory_gib) * GIB
/* clang-format on */

extern const fr_catalog_device fr_catalog_devices[];
extern const size_t fr_catalog_devices_n;
extern const fr_catalog_node fr_catalog_servers[];
extern const size_t fr_catalog_servers_n;
extern const fr_catalog_node fr_catalog_instances[];
extern const size_t fr_catalog_instances_n;

#endif
