/*
 * fabric_routes.h: the links between the nodes of a cluster that can be
 * narrower than the NICs below them, and the ways over them.
 *
 *   tree       the way up of a switch and the way down to it, where what lies
 *              below is oversubscribed; rail-optimized: one of each per rail
 *   torus      to the neighbours, dimension by dimension, the shorter way
 *   dragonfly  minimal routing: local, global, local
 *   links      fewest links
 *
 * And inside nodes, where asked for, the way up of each PCIe switch to its
 * socket and the way down.
 *
 * Every direction is a link of its own.
 */
#ifndef FR_SIM_TOPOLOGY_FABRIC_ROUTES_H
#define FR_SIM_TOPOLOGY_FABRIC_ROUTES_H

#include "core/base/vec.h"
#include "spec/cluster/cluster.h"

typedef fr_vec(int32_t) fr_fabric_path;

typedef struct fr_fabric_routes {
    const fr_cluster *cluster;
    int32_t n_rails; /* RAIL: of the nodes; else 1 */
    int32_t n_links;
    double *link_Bps;
    int32_t first_of_level[FR_CLUSTER_LEVELS]; /* trees; -1: never narrow */
    int32_t first_pcie, n_pcie; /* n_pcie switches for every node; 0: none */
    /* LINKS: the ways from one node, found last */
    int64_t from;
    int64_t *hops, *via;
} fr_fabric_routes;

/* Can anything between the nodes be narrower than their NICs? */
bool fr_fabric_has_links(const fr_cluster *cluster);

/* n_links is 0 where nothing is narrower than the NICs.  The first n_pcie_nodes
 * have the links of their PCIe switches. */
FR_CHECKED fr_status fr_fabric_routes_init(const fr_cluster *cluster,
                                           int64_t n_pcie_nodes,
                                           fr_fabric_routes *out, fr_err *err);
void fr_fabric_routes_release(fr_fabric_routes *routes);

/* Appends the links on the way between two nodes of the cluster to *out;
 * rail: of the NIC that sends. */
FR_CHECKED fr_status fr_fabric_routes_list(fr_fabric_routes *routes,
                                           int64_t from, int64_t to,
                                           int32_t rail, fr_fabric_path *out,
                                           fr_err *err);

/* From one PCIe switch of a node to another; to -1: to the socket. */
FR_CHECKED fr_status fr_fabric_routes_pcie(const fr_fabric_routes *routes,
                                           int64_t node, int32_t from,
                                           int32_t to, fr_fabric_path *out,
                                           fr_err *err);

#endif
