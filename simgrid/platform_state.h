/*
 * platform_state.h: what the parts of the platform reader share.  A point is
 * what routes join: a host, a router or a zone seen from outside.
 */
#ifndef FR_SIMGRID_PLATFORM_STATE_H
#define FR_SIMGRID_PLATFORM_STATE_H

#include "core/base/arena.h"
#include "core/document/xml.h"
#include "simgrid/item_index.h"
#include "simgrid/platform.h"

typedef fr_vec(uint32_t) fr_u32_list;

typedef enum fr_point_kind {
    FR_POINT_HOST,
    FR_POINT_ROUTER,
    FR_POINT_ZONE
} fr_point_kind;

typedef struct fr_point {
    const char *id;
    fr_point_kind kind;
    uint32_t zone;   /* that it is in; FR_NO_INDEX: the root zone */
    uint32_t inside; /* ZONE: the zone itself */
    uint32_t rank;   /* among the points of its zone, in file order */
    uint32_t vertex; /* Dijkstra: order in which routes named it */
} fr_point;

/* A link as route elements name it. */
typedef struct fr_link_name {
    uint32_t up, down; /* the same unless it is split */
    bool is_split;
} fr_link_name;

/* A declared route; from or to FR_NO_INDEX: see star routes. */
typedef struct fr_route {
    uint32_t from, to;
    uint32_t gateway_from, gateway_to; /* zones: points inside, else
                                          FR_NO_INDEX */
    uint32_t *links;
    uint32_t n_links;
} fr_route;

typedef enum fr_zone_kind {
    FR_ZONE_FULL,
    FR_ZONE_FLOYD,
    FR_ZONE_DIJKSTRA,
    FR_ZONE_NONE,
    FR_ZONE_STAR,
    FR_ZONE_TORUS,
    FR_ZONE_FAT_TREE,
    FR_ZONE_DRAGONFLY
} fr_zone_kind;

/* Star zone: what leads from a point to the middle and back. */
typedef struct fr_spoke {
    uint32_t *up, *down, *loopback;
    uint32_t n_up, n_down, n_loopback;
} fr_spoke;

enum { FR_TOPOLOGY_LEVELS = 16 };

/* TORUS: n_levels dimensions in a; FAT_TREE: children a, parents b, parallel
 * cables c of each level; DRAGONFLY: groups, chassis, blades, nodes in a,
 * cables in b. */
typedef struct fr_topology {
    uint32_t n_levels;
    uint32_t a[FR_TOPOLOGY_LEVELS], b[FR_TOPOLOGY_LEVELS];
    uint32_t c[FR_TOPOLOGY_LEVELS];
    uint32_t n_hosts;
    uint32_t *loopback;       /* per host, or NULL */
    uint32_t *limiter;        /* per host, or NULL */
    uint32_t *switch_limiter; /* per switch or router, or NULL */
    fr_link_name *cables;     /* as platform_topology.c numbers them */
    uint32_t n_cables;
} fr_topology;

typedef struct fr_zone {
    fr_zone_kind kind;
    uint32_t parent; /* zone, FR_NO_INDEX: root */
    uint32_t point;
    int line;
    bool has_zones; /* holds other zones: no implied loopbacks */
    fr_u32_list points;
    fr_u32_list routes; /* in file order */
    uint32_t n_vertices;
    uint32_t *vertex_point; /* Dijkstra, [n_vertices] */
    uint32_t *previous;     /* shortest paths: [n][n], or NULL */
    bool *has_row;          /* Dijkstra: row of `previous` is known */
    fr_spoke *spokes;       /* STAR: by rank */
    fr_topology topology;
} fr_zone;

struct fr_platform {
    fr_arena arena;
    fr_vec(fr_platform_link) links;
    fr_vec(fr_link_name) names;
    fr_vec(const char *) name_ids;
    fr_vec(fr_point) points;
    fr_vec(fr_zone) zones;
    fr_vec(fr_route) routes;
    fr_item_index point_index, name_index, route_index;
    double loopback_Bps, loopback_s; /* the default of zones */
    uint32_t loopback_link;
};

/* platform.c; FR_NO_INDEX when absent. */
uint32_t fr_platform_point_find(const fr_platform *p, const char *id);
uint32_t fr_platform_name_find(const fr_platform *p, const char *id);
uint32_t fr_platform_route_find(const fr_platform *p, uint32_t from,
                                uint32_t to);

/* These report at `node`. */
FR_CHECKED fr_status fr_platform_add_point(fr_platform *p,
                                           const fr_xml_node *node,
                                           const char *id, fr_point_kind kind,
                                           uint32_t zone, uint32_t *out,
                                           fr_err *err);
FR_CHECKED fr_status fr_platform_add_link(fr_platform *p,
                                          const fr_xml_node *node,
                                          const fr_platform_link *link,
                                          bool is_split, fr_link_name *out,
                                          fr_err *err);
FR_CHECKED fr_status fr_platform_add_zone(fr_platform *p,
                                          const fr_xml_node *node,
                                          const char *id, fr_zone_kind kind,
                                          uint32_t parent, uint32_t *out,
                                          fr_err *err);
/* Refuses a second route between the same points. */
FR_CHECKED fr_status fr_platform_add_route(fr_platform *p,
                                           const fr_xml_node *node,
                                           uint32_t zone, const fr_route *route,
                                           fr_err *err);
/* Appends to a path. */
FR_CHECKED fr_status fr_platform_append(const fr_platform *p,
                                        fr_platform_path *path, uint32_t link,
                                        fr_err *err);

/* platform_cluster.c: <cluster>, and <zone routing="Cluster"> */
FR_CHECKED fr_status fr_platform_read_cluster(fr_platform *p,
                                              const fr_xml_node *node,
                                              uint32_t parent, fr_err *err);
FR_CHECKED fr_status fr_platform_read_spokes(fr_platform *p,
                                             const fr_xml_node *node,
                                             uint32_t zone, fr_err *err);
/* platform_topology.c */
FR_CHECKED fr_status fr_topology_parse(fr_zone_kind kind, const char *text,
                                       fr_topology *out, fr_err *err);
/* n_hosts and n_cables. */
FR_CHECKED fr_status fr_topology_count(fr_zone_kind kind, fr_topology *topology,
                                       fr_err *err);
uint32_t fr_topology_n_switches(fr_zone_kind kind, const fr_topology *topology);
/* Cables side by side that cable i stands for (DRAGONFLY), else 1. */
double fr_topology_cable_scale(fr_zone_kind kind, const fr_topology *topology,
                               uint32_t i_cable);
FR_CHECKED fr_status fr_topology_route(const fr_platform *p,
                                       const fr_zone *zone, uint32_t from,
                                       uint32_t to, fr_platform_path *path,
                                       fr_err *err);

#endif
