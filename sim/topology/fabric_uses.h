/*
 * fabric_uses.h: which links between nodes the traffic of a rank crosses.
 *
 * Links of the cluster's fabric that can be narrower than the NICs below them:
 * ways up of an oversubscribed tree (per rail where it is rail-optimized), the
 * links of a torus, of a dragonfly, of an explicit list, each direction by
 * itself.  What a member of a group sends goes, for the algorithms that move
 * data in rings, to the next node of the group; for all-to-all a share of it
 * goes to every other node.  A transfer goes to its peer.
 *
 * Inside nodes the uplinks of PCIe switches: for a GPU whose NIC hangs on
 * another switch, for GPUs that talk over PCIe (to the next member on their
 * node), and for copies to the host.
 */
#ifndef FR_SIM_TOPOLOGY_FABRIC_USES_H
#define FR_SIM_TOPOLOGY_FABRIC_USES_H

#include "sim/topology/rank_layout.h"

/* The distribution of a group's traffic over its nodes. */
typedef enum fr_traffic {
    FR_TRAFFIC_RING,   /* to the next node in the order of members */
    FR_TRAFFIC_SPREAD, /* evenly to all other nodes */
    FR_TRAFFIC_PORT,   /* inside the node, over PCIe */
    FR_TRAFFIC_HOST    /* to the host's memory */
} fr_traffic;

/* weight / FR_FABRIC_ONE of the bytes that a rank sends into the network goes
 * over the link. */
typedef struct fr_fabric_use {
    int32_t link;
    uint32_t weight;
} fr_fabric_use;

enum { FR_FABRIC_ONE = 1 << 16 };

/* One kind of traffic of all ranks. */
typedef struct fr_fabric_flow {
    uint8_t axis;
    int16_t coordinate; /* of the peer; -1: a collective */
    uint8_t traffic;
    uint32_t *first; /* [n_ranks + 1] in uses */
    fr_fabric_use *uses;
} fr_fabric_flow;

typedef struct fr_fabric_uses {
    int32_t n_links;
    double *link_Bps; /* [n_links] */
    fr_vec(fr_fabric_flow) flows;
} fr_fabric_uses;

FR_CHECKED fr_status fr_fabric_uses_init(const fr_rank_layout *layout,
                                         fr_fabric_uses *out, fr_err *err);
void fr_fabric_uses_release(fr_fabric_uses *uses);

/* Returns the links that an instruction's bytes inside the node cross; NULL:
 * none. */
const fr_fabric_flow *fr_fabric_uses_local(const fr_fabric_uses *uses,
                                           const fr_instr *instr);

/* The traffic of a communicating instruction; NULL: it crosses no link. */
const fr_fabric_flow *fr_fabric_uses_find(const fr_fabric_uses *uses,
                                          const fr_instr *instr);

#endif
