/*
 * parameter_server.h: seconds of an all-reduce by parameter servers on nodes
 * with GPUs (places: fr_server_place in plan.h).
 *
 * N nodes of k members, M of the nodes serve, S bytes.  On the HOSTS one after
 * the other, all bytes of a stage at once:
 *
 *   push     S over each member's PCIe, whose switch's uplink the members
 *            below it share
 *   add      the node's memory: k S read, S written
 *   net      out of a node S, less its own part where it serves; into a
 *            server (N-1) S / M, through its NICs
 *   serve    the server's memory: N S / M read, S / M written
 *   net      the same bytes back
 *   pull     S over each member's PCIe
 *
 * On one node net and serve are none.  By WORKERS nobody adds for a node:
 * push and pull as before, k S out of a node and into a server (n - k) S / M,
 * whose memory reads n S / M; on one node it is what HOST is.
 *
 * On the DEVICES: M of the n members serve, fr_server_idle_s() over the node's
 * fabric, or where they are on several nodes its NICs, which the members of a
 * node share.
 *
 * On CPUs nothing is copied to the host first, and ranks serve: what they move
 * is fr_servers_idle_s() (collective.h), over measured links where there are.
 */
#ifndef FR_COST_MODELS_LINK_PARAMETER_SERVER_H
#define FR_COST_MODELS_LINK_PARAMETER_SERVER_H

#include "cost_models/link/fabric_links.h"
#include "cost_models/link/nccl_model.h"
#include "plan/collective/collective.h"
#include "plan/decide/plan.h"

typedef struct fr_server_ask {
    fr_server_place place;
    int64_t n_servers; /* 0: all nodes (members) */
    double n_bytes;
} fr_server_ask;

/* Is it an all-reduce that the plan gave to parameter servers? */
bool fr_is_by_server(const fr_instr *instr);
fr_server_ask fr_server_ask_of(const fr_instr *instr);

/* Sets what serves the group of a collective on CPUs, counted; all zero where
 * no servers carry it out. */
FR_CHECKED fr_status fr_servers_of(const fr_instr *instr, int64_t n_group,
                                   int64_t n_nodes, fr_servers *out,
                                   fr_err *err);

/*
 * Finds the time for a group of 2 or more on nodes of this type whose links are
 * otherwise idle.  FR_INFEASIBLE when the devices cannot reach the host,
 * FR_INPUT when nodes have no network or fewer than n_servers serve.
 */
FR_CHECKED fr_status fr_server_time_of(const fr_node_type *node,
                                       const fr_group_links *links,
                                       const fr_server_ask *ask,
                                       fr_nccl_time *out, fr_err *err);

#endif
