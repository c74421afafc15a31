/*
 * fabric_links.h: what the GPUs of a group get from the wires: achieved bytes
 * per second into the node's fabric and through its NICs, and what the
 * generation of the GPU says about protocols.
 *
 * Shares of the line rate that NCCL reaches are measured ones; each constant
 * of fabric_links.c says where.  No step time of any training run is in them.
 */
#ifndef FR_COST_MODELS_LINK_FABRIC_LINKS_H
#define FR_COST_MODELS_LINK_FABRIC_LINKS_H

#include "cost_models/base/cost.h"
#include "cost_models/base/gpu_generation.h"
#include "spec/cluster/cluster.h"

/*
 * Constants fitted by least squares to measured collectives: the rows of one
 * node (and of four B200 nodes) of tests/validate/collectives.csv.
 * test_nccl_fit.c repeats the fit.
 */
typedef struct fr_link_fit {
    double link_share;  /* of a port's rate that rings and NVLS reach */
    double pair_share;  /* that one pair of a switch's ports reaches */
    double peers_share; /* three peers and more together */
    double launch_s;    /* from the stream's turn to the kernel's first step */
    /* Up to Ampere, and from Hopper on, [0] and [1]: SIMPLE's step inside a
     * node (fences and counters of two slices); LL128's share of a ring. */
    double step_s[2], ll128_share[2];
    double nvls_fill; /* how much longer the first loop of NVLS takes, whose
                         halves do not overlap yet */
} fr_link_fit;

extern const fr_link_fit fr_link_fit_known;

/* One node type, or the worst of several. */
typedef struct fr_gpu_fabric {
    const fr_link_fit *fit;         /* borrowed: fr_link_fit_known */
    const fr_gpu_link_rates *links; /* borrowed: of the generation */
    fr_intra_kind kind;
    bool has_switch_sum; /* NVLink SHARP: the switch adds */
    bool has_net_sum;    /* SHARP: the switches of the network add */
    bool is_known;       /* collectives on this kind of link were measured */
    bool is_known_net;   /* and on this kind of network */
    bool is_ordered_net; /* the network keeps the order of 128-byte writes, as
                            protocols with flags in the data need (LL, LL128) */
    double line_Bps;     /* of one device into the fabric, on the wire after
                            its own headers */
    double pair_Bps;     /* towards one other device */
    int64_t n_devices, n_nics;
    double nic_Bps;      /* achieved by one NIC; 0: there is none */
    double net_node_Bps; /* limit of the network behind the NICs, per node */
    double net_extra_s;  /* latency of a message above InfiniBand's */
    double n_processors; /* multiprocessors of the device */
} fr_gpu_fabric;

/* Share of a NIC's line rate that collectives reach: the cluster's word, else
 * by its kind. */
double fr_nic_share(const fr_node_type *node);

/* Returns the fabric of a node type of a cluster. */
fr_gpu_fabric fr_gpu_fabric_of(const fr_cluster *cluster, size_t i_node_type);

/* Whichever is slower, field by field. */
fr_gpu_fabric fr_gpu_fabric_worse(const fr_gpu_fabric *a,
                                  const fr_gpu_fabric *b);

/* The links and rates that a group of `scope` can use. */
typedef struct fr_group_links {
    int64_t n, n_nodes;
    double per_node;   /* members on a node, >= 1 */
    double line_Bps;   /* of a member into the fabric */
    double port_Bps;   /* the part of it that a collective reaches */
    double pair_Bps;   /* reached by one pair of members */
    double net_Bps;    /* of all members of one node; 0: inside one node */
    double n_channels; /* that NCCL opens: multiprocessors it takes */
} fr_group_links;

fr_group_links fr_group_links_of(const fr_gpu_fabric *fabric,
                                 const fr_comm_scope *scope);

#endif
