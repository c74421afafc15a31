/*
 * nccl_constants.h: the numbers in NCCL's own tuner, latencies in seconds,
 * rates in bytes per second.  The few that are fitted to measurements instead,
 * as the tuner leaves them out or is far off: fr_link_fit (fabric_links.h).
 */
#ifndef FR_COST_MODELS_LINK_NCCL_CONSTANTS_H
#define FR_COST_MODELS_LINK_NCCL_CONSTANTS_H

#include "cost_models/link/fabric_links.h"

/* LL: a flag beside every 4 bytes of data; LL128: beside every 120; SIMPLE:
 * a fence and a counter for each slice. */
typedef enum fr_nccl_protocol {
    FR_NCCL_LL,
    FR_NCCL_LL128,
    FR_NCCL_SIMPLE,
    FR_NCCL_PROTOCOL_N
} fr_nccl_protocol;

typedef enum fr_nccl_wire {
    FR_NCCL_NVLINK,
    FR_NCCL_PCI,
    FR_NCCL_NET,
    FR_NCCL_WIRE_N
} fr_nccl_wire;

/* NCCL 2.30, src/graph/tuning.cc (in microseconds there). */
extern const double fr_nccl_ring_base_s[FR_NCCL_PROTOCOL_N];
extern const double fr_nccl_tree_base_s[FR_NCCL_PROTOCOL_N];
extern const double fr_nccl_ring_hop_s[FR_NCCL_WIRE_N][FR_NCCL_PROTOCOL_N];
extern const double fr_nccl_tree_hop_s[FR_NCCL_WIRE_N][FR_NCCL_PROTOCOL_N];
extern const double fr_nccl_nvls_s;          /* one node */
extern const double fr_nccl_nvls_tree_hop_s; /* per level between nodes */
extern const double fr_nccl_nvls_net_s; /* up to SHARP's switches and down */
/* CollNet: a step inside the node, one more member there, the network. */
extern const double fr_nccl_collnet_hop_s, fr_nccl_collnet_member_s,
    fr_nccl_collnet_net_s;
extern const double fr_nccl_pat_base_s, fr_nccl_pat_hop_s, fr_nccl_pat_rank_s;
extern const double fr_nccl_tree_share; /* of the ring's rate */
extern const double fr_nccl_pat_share;
/* A tree's LL and LL128 (one node, several). */
extern const double fr_nccl_tree_ll_share;
extern const double fr_nccl_tree_ll128_share[2];
/* Trees fall behind their model between 1 KB and 64 MB: the share by the
 * logarithm of bytes / 64. */
enum { FR_NCCL_TREE_SIZES = 22 };
extern const double fr_nccl_tree_size_share[FR_NCCL_PROTOCOL_N]
                                           [FR_NCCL_TREE_SIZES];
/* The proxy thread's time for one more message. */
extern const double fr_nccl_proxy_s;

/* Bytes of a loop of NVLS per member: NCCL's 24 channels times chunks. */
extern const double fr_nccl_nvls_loop_bytes;
/* A slice of all channels: must arrive before the first one is passed on. */
extern const double fr_nccl_slice_bytes;

#endif
