/*
 * cluster_fabric.h: the network between the nodes of a cluster: its kind, the
 * levels of a tree, the dimensions of a torus, or the links one by one.
 */
#ifndef FR_SPEC_CLUSTER_CLUSTER_FABRIC_H
#define FR_SPEC_CLUSTER_CLUSTER_FABRIC_H

#include "core/base/err.h"
#include "core/document/names.h"

#define FR_CLUSTER_ID 64
#define FR_CLUSTER_LEVELS 4
#define FR_CLUSTER_DIMS 6

typedef enum fr_fabric_kind {
    FR_FABRIC_NONE,      /* one node, or nodes that cannot reach each other */
    FR_FABRIC_SWITCH,    /* one non-blocking switch */
    FR_FABRIC_FAT_TREE,  /* `levels` of switches with oversubscription */
    FR_FABRIC_RAIL,      /* rail-optimized: rail r of all nodes on one tree */
    FR_FABRIC_TORUS,     /* nodes on a grid, links to the neighbours */
    FR_FABRIC_DRAGONFLY, /* groups of routers, all to all between groups */
    FR_FABRIC_LINKS,     /* the list in `links` */
    FR_FABRIC_N
} fr_fabric_kind;

/* One level of a tree, from the leaves up. */
typedef struct fr_fabric_level {
    int64_t n_down;          /* nodes (above: switches) below one switch */
    double oversubscription; /* bandwidth down / bandwidth up, >= 1 */
    double latency_s;        /* added by going up to this level and down */
    double power_w;          /* of all that one switch stands for; 0: unknown */
} fr_fabric_level;

/*
 * A link between two vertices.  Vertex v < n_nodes is a node, others are
 * switches (named, without ranks).  Full duplex unless is_half_duplex.
 */
typedef struct fr_fabric_link {
    char id[FR_CLUSTER_ID];
    int64_t from, to;
    double bandwidth_Bps, latency_s;
    bool is_half_duplex;
} fr_fabric_link;

typedef struct fr_fabric_switch {
    char id[FR_CLUSTER_ID];
    double power_w; /* 0: unknown */
} fr_fabric_switch;

typedef struct fr_fabric {
    fr_fabric_kind kind;
    bool has_sharp;   /* its switches add what is reduced (NVIDIA's SHARP) */
    int32_t n_levels; /* FAT_TREE, RAIL */
    fr_fabric_level levels[FR_CLUSTER_LEVELS];
    int32_t n_dims; /* TORUS */
    int64_t dims[FR_CLUSTER_DIMS];
    double link_Bps, link_latency_s; /* TORUS links, DRAGONFLY local links */
    int64_t n_groups, n_routers, n_per_router; /* DRAGONFLY */
    double global_Bps, global_latency_s; /* DRAGONFLY links between groups */
    fr_fabric_switch *switches;          /* LINKS; owned */
    size_t n_switches;
    fr_fabric_link *links; /* LINKS; owned */
    size_t n_links;
} fr_fabric;

/* Returns the power of the switches above the first n_nodes nodes, as far as
 * the file gives it; with rails, each counts n_rails times.  0: none is
 * known. */
double fr_fabric_power_w(const fr_fabric *fabric, int64_t n_nodes,
                         int32_t n_rails);

extern const fr_names fr_fabric_kinds;
#define fr_fabric_kind_name(kind) fr_name_of(&fr_fabric_kinds, kind)

#endif
