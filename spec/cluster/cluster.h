/*
 * cluster.h: what it is trained on: device types, node types, groups of equal
 * nodes, the network between them, prices, reliability, jitter, slow parts.
 *
 * Everything is SI and one direction: 25 GB/s means 25e9 bytes per second
 * each way.  Nodes are numbered from 0 through the groups in file order,
 * devices and slots (places for one rank) through the nodes.  The network
 * between them stands in cluster_fabric.h.
 */
#ifndef FR_SPEC_CLUSTER_CLUSTER_H
#define FR_SPEC_CLUSTER_CLUSTER_H

#include "spec/cluster/cluster_fabric.h"

#define FR_CLUSTER_PEAKS 8

typedef enum fr_device_kind {
    FR_DEVICE_CPU, /* all cores of one node; one rank per core fits */
    FR_DEVICE_GPU  /* one rank per device */
} fr_device_kind;

/* Dense peak of one dtype: "fp64 fp32 tf32 fp16 bf16 fp8 int8 fp4". */
typedef struct fr_device_peak {
    char dtype[8];
    double flops;
} fr_device_peak;

typedef struct fr_device_type {
    char id[FR_CLUSTER_ID];
    char generation[16]; /* "hopper": what models of kernels are keyed by; ""
                            unknown */
    fr_device_kind kind;
    int64_t n_cores;       /* CPU: physical cores; GPU: multiprocessors or 0 */
    uint64_t memory_bytes; /* CPU: of the node */
    double memory_Bps;     /* 0: unknown */
    uint64_t cache_bytes;  /* last level, 0: unknown */
    fr_device_peak peaks[FR_CLUSTER_PEAKS];
    int32_t n_peaks;
    double power_w, idle_w, power_cap_w; /* 0: unknown; no cap */
    double price_usd_per_h;              /* of one device, 0: unknown */
} fr_device_type;

typedef enum fr_intra_kind {
    FR_INTRA_SHARED_MEMORY,
    FR_INTRA_PCIE,
    FR_INTRA_NVLINK,   /* direct links between pairs (V100, xGMI) */
    FR_INTRA_NVSWITCH, /* every device reaches all at full rate */
    FR_INTRA_N
} fr_intra_kind;

/* The kind of network of the NICs. */
typedef enum fr_nic_kind {
    FR_NIC_UNKNOWN,
    FR_NIC_INFINIBAND,
    FR_NIC_ROCE, /* RDMA over Ethernet */
    FR_NIC_ETHERNET,
    FR_NIC_EFA, /* AWS */
    FR_NIC_OMNI_PATH,
    FR_NIC_SLINGSHOT,
    FR_NIC_TCPX, /* Google's GPUDirect-TCPX and TCPXO */
    FR_NIC_N
} fr_nic_kind;

/*
 * A node is what one fast fabric joins: usually a server, for a rack with one
 * NVLink domain (NVL72) the rack: n_hosts counts its servers.  GPUs and NICs
 * are spread evenly over the PCIe switches: what goes between those of one
 * switch does not use its uplink.
 */
typedef struct fr_node_type {
    char id[FR_CLUSTER_ID];
    int32_t i_device;  /* in cluster->devices */
    int32_t n_devices; /* CPU: 1 */
    fr_intra_kind intra_kind;
    double intra_Bps;     /* of one device into the fabric; 0: unknown */
    double intra_p2p_Bps; /* between one pair of devices; <= intra_Bps */
    double intra_latency_s;
    double host_link_Bps;   /* PCIe or C2C of one device to the host, 0: none */
    double host_speed_frac; /* of one core in a framework's code, a Xeon
                               Platinum 8480C being 1; 0: as fast */
    int32_t n_nics;         /* 0: the node has no network */
    fr_nic_kind nic_kind;
    double nic_Bps;             /* of one NIC, on the wire */
    double nic_efficiency_frac; /* of it that transfers can reach, (0, 1]; 0:
                                   not stated, the cost model knows kinds */
    double nic_latency_s;       /* one message, end to end through one switch */
    int32_t n_rails;            /* NICs that go to switches of their own, 1: all
                                   to the same */
    int32_t n_sockets;
    int32_t n_hosts;         /* servers that the node consists of; 0: one */
    int32_t n_pcie_switches; /* 0: devices hang on the sockets, or unknown */
    double pcie_uplink_Bps;  /* of one PCIe switch to its socket */
    uint64_t host_memory_bytes;
    double host_memory_Bps; /* that all sockets' channels have; 0: unknown */
    double storage_read_Bps, storage_write_Bps, storage_latency_s; /* 0: - */
    double price_usd_per_h, spot_usd_per_h; /* of the node, 0: unknown */
    double power_w;                         /* without its devices */
} fr_node_type;

typedef struct fr_node_group {
    char id[FR_CLUSTER_ID]; /* its nodes are called id-0, id-1, ... */
    int32_t i_node_type;
    int64_t n_nodes;
    int64_t first_node; /* running total; see fr_cluster_count_nodes() */
} fr_node_group;

/* A part that is known to be slower than its type says. */
typedef struct fr_slow {
    int64_t node;        /* -1: a link */
    int32_t device;      /* local index, -1: all of the node */
    int64_t link;        /* index of fabric.links, -1: none */
    double compute_frac; /* of the normal rate, (0, 1] */
    double network_frac;
} fr_slow;

typedef struct fr_cluster {
    char name[FR_CLUSTER_ID];
    bool is_this_machine;    /* detected: what calibrate measures */
    bool is_one_machine;     /* its nodes are parts of one machine (namespaces,
                                containers): they share its memory channels */
    fr_device_type *devices; /* all arrays owned */
    size_t n_devices;
    fr_node_type *node_types;
    size_t n_node_types;
    fr_node_group *groups;
    size_t n_groups;
    fr_fabric fabric;
    fr_slow *slow;
    size_t n_slow;
    double jitter_compute_frac; /* standard deviation, relative; 0: none */
    double jitter_network_frac;
    double device_mtbf_s; /* mean time between failures, 0: never fails */
    double node_mtbf_s;
    double restart_s;               /* from a failure to training again */
    double spot_interruption_per_h; /* of one node */
    double pue; /* power usage effectiveness, 1: none known */
    double carbon_g_per_kwh;
} fr_cluster;

/* The compute jitter of a cluster that says none, from the catalogue, imported
 * or written by hand alike: 1.5 % where it has GPUs, else 0. */
double fr_cluster_default_jitter_frac(const fr_cluster *cluster);

/*
 * Loads a cluster: a path (".xml" or with a slash), a name under clusters/ of
 * `configs` (config_path.h), or a node type of the catalogue times a count
 * ("dgx-h100:16").  FR_INPUT: "path:line: ...".  fr_cluster_release() frees it.
 */
FR_CHECKED fr_status fr_cluster_load(const char *configs,
                                     const char *name_or_path, fr_cluster *out,
                                     fr_err *err);

/* The same from XML text; `name` stands in messages. */
FR_CHECKED fr_status fr_cluster_parse(const char *name, const char *text,
                                      size_t n_text, fr_cluster *out,
                                      fr_err *err);
void fr_cluster_release(fr_cluster *cluster);

/* Every broken invariant of a finished cluster, the first in err. */
FR_CHECKED fr_status fr_cluster_check(const fr_cluster *cluster, fr_err *err);

/* Returns a hash of all values that predictions depend on, on any machine. */
uint64_t fr_cluster_hash(const fr_cluster *cluster);

int64_t fr_cluster_n_nodes(const fr_cluster *cluster);
/* Sets first_node of every group from the numbers of nodes. */
void fr_cluster_count_nodes(fr_cluster *cluster);

/* No device is a CPU; some part is slow, or some nodes of another type. */
bool fr_cluster_is_all_gpu(const fr_cluster *cluster);
bool fr_cluster_is_unlike(const fr_cluster *cluster);

/* These return the group and the type of a node number in [0, n_nodes). */
const fr_node_group *fr_cluster_group_of(const fr_cluster *cluster,
                                         int64_t node);
const fr_node_type *fr_cluster_node_type(const fr_cluster *cluster,
                                         int64_t node);
const fr_device_type *fr_cluster_device(const fr_cluster *cluster,
                                        int64_t node);

/* "h100-3"; returns buf.  find: -1 when there is no such node. */
char *fr_cluster_node_name(const fr_cluster *cluster, int64_t node, char *buf,
                           size_t n_buf);
int64_t fr_cluster_node_find(const fr_cluster *cluster, const char *name);

/* Ranks of n_threads threads that one node holds (GPU: its devices), or the
 * first n_nodes, or of one thread all. */
int64_t fr_cluster_node_slots(const fr_cluster *cluster, int64_t node,
                              int n_threads);
int64_t fr_cluster_slots_of_nodes(const fr_cluster *cluster, int64_t n_nodes,
                                  int n_threads);
int64_t fr_cluster_slots(const fr_cluster *cluster);
/* Nodes that n_ranks take; all, where they do not fit. */
int64_t fr_cluster_nodes_of_ranks(const fr_cluster *cluster, int64_t n_ranks,
                                  int n_threads);

/*
 * Fills node_of_rank[n_ranks], node by node in order with `ranks_per_node`
 * ranks each (0: as many of n_threads threads as the node holds; more than
 * that oversubscribes a CPU node).  FR_INFEASIBLE when they do not fit.
 */
FR_CHECKED fr_status fr_cluster_place(const fr_cluster *cluster,
                                      int64_t n_ranks, int n_threads,
                                      int64_t ranks_per_node,
                                      int32_t *node_of_rank, fr_err *err);

/* Memory of one of `ranks_on_node` equal ranks on a node. */
uint64_t fr_cluster_rank_memory_bytes(const fr_cluster *cluster, int64_t node,
                                      int64_t ranks_on_node);

/* Dense peak of a dtype name (fp32 = f32 ...); 0: the device has none. */
double fr_device_peak_flops(const fr_device_type *device, const char *dtype);

/* Returns the compute speed of device `local` on `node`, or of the node's NICs,
 * relative to their type, (0, 1]. */
double fr_cluster_compute_frac(const fr_cluster *cluster, int64_t node,
                               int32_t local);
double fr_cluster_network_frac(const fr_cluster *cluster, int64_t node);
/* All NICs of a node together, one direction, slow nodes counted. */
double fr_cluster_nic_Bps(const fr_cluster *cluster, int64_t node);

/*
 * Between two nodes with the network otherwise idle; the same node: its
 * intra-node fabric.  Bandwidth of one pair of devices over one NIC and of
 * all NICs.  bandwidth 0: there is no path (or no memory to look for one).
 */
typedef struct fr_path {
    double bandwidth_Bps; /* all NICs of both nodes */
    double one_nic_Bps;   /* one NIC of each */
    double latency_s;
    int32_t n_hops; /* links on the way */
} fr_path;

fr_path fr_cluster_path(const fr_cluster *cluster, int64_t from, int64_t to);

/* Returns the price of the first n_nodes nodes; prices of devices count where
 * the node has no price.  0: no price is known. */
double fr_cluster_usd_per_h(const fr_cluster *cluster, int64_t n_nodes,
                            bool is_spot);

/* Returns the power of the first n_nodes nodes with all devices busy at
 * `load_frac`, including hosts, switches and the power usage effectiveness. */
double fr_cluster_power_w(const fr_cluster *cluster, int64_t n_nodes,
                          double load_frac);

extern const fr_names fr_device_kinds, fr_intra_kinds, fr_nic_kinds;
#define fr_intra_kind_name(kind) fr_name_of(&fr_intra_kinds, kind)
#define fr_nic_kind_name(kind) fr_name_of(&fr_nic_kinds, kind)

#endif
