/* cluster_path.c: what the network gives to two nodes, and to all at once. */
#include "core/base/minmax.h"
#include "spec/cluster/cluster.h"

#include <math.h>
#include <stdlib.h>

/* Level of the lowest common switch of two nodes. */
static int32_t common_level(const fr_fabric *fabric, int64_t a, int64_t b)
{
    int64_t below = 1;
    for (int32_t i = 0; i < fabric->n_levels; i++) {
        below *= fabric->levels[i].n_down;
        if (a / below == b / below)
            return i;
    }
    return fabric->n_levels - 1;
}

static void tree_path(const fr_cluster *cluster, int64_t from, int64_t to,
                      fr_path *path)
{
    const fr_fabric *fabric = &cluster->fabric;
    int32_t top = common_level(fabric, from, to);
    double below = 1.0, share = 1.0;
    for (int32_t i = 0; i <= top; i++)
        path->latency_s += fabric->levels[i].latency_s;
    /* The way up of a switch is n_down / oversubscription node links wide. */
    for (int32_t i = 0; i < top; i++) {
        share *= fabric->levels[i].oversubscription;
        below *= (double)fabric->levels[i].n_down;
        path->bandwidth_Bps =
            fr_min_double(path->bandwidth_Bps,
                          below / share * fr_cluster_nic_Bps(cluster, from));
    }
    path->one_nic_Bps = fr_min_double(path->one_nic_Bps, path->bandwidth_Bps);
    path->n_hops = 2 * (top + 1);
}

/* Without NICs a node is tied into the torus by its links alone. */
static void torus_path(const fr_fabric *fabric, int64_t from, int64_t to,
                       bool has_nic, fr_path *path)
{
    int64_t n_hops = 0, n_differ = 0;
    for (int32_t i = 0; i < fabric->n_dims; i++) {
        int64_t n = fabric->dims[i];
        int64_t distance = llabs(from % n - to % n);
        distance = distance < n - distance ? distance : n - distance;
        n_hops += distance;
        n_differ += distance > 0;
        from /= n;
        to /= n;
    }
    double all = fabric->link_Bps * (double)n_differ;
    path->bandwidth_Bps =
        has_nic ? fr_min_double(path->bandwidth_Bps, all) : all;
    path->one_nic_Bps = has_nic
                            ? fr_min_double(path->one_nic_Bps, fabric->link_Bps)
                            : fabric->link_Bps;
    path->latency_s += (double)n_hops * fabric->link_latency_s;
    path->n_hops = (int32_t)n_hops;
}

/* Minimal routing: at most local, global, local. */
static void dragonfly_path(const fr_fabric *fabric, int64_t from, int64_t to,
                           fr_path *path)
{
    int64_t router_a = from / fabric->n_per_router;
    int64_t router_b = to / fabric->n_per_router;
    bool is_same_group =
        router_a / fabric->n_routers == router_b / fabric->n_routers;
    int32_t n_local = 0, n_global = 0;
    if (router_a != router_b && is_same_group)
        n_local = 1;
    if (!is_same_group) {
        n_local = fabric->n_routers > 1 ? 2 : 0;
        n_global = 1;
    }
    if (n_local > 0)
        path->bandwidth_Bps =
            fr_min_double(path->bandwidth_Bps, fabric->link_Bps);
    if (n_global > 0)
        path->bandwidth_Bps =
            fr_min_double(path->bandwidth_Bps, fabric->global_Bps);
    path->one_nic_Bps = fr_min_double(path->one_nic_Bps, path->bandwidth_Bps);
    path->latency_s +=
        n_local * fabric->link_latency_s + n_global * fabric->global_latency_s;
    path->n_hops = 2 + n_local + n_global;
}

/* Slow links of the explicit list. */
static double link_frac(const fr_cluster *cluster, size_t i_link)
{
    double frac = 1.0;
    for (size_t i = 0; i < cluster->n_slow; i++)
        if (cluster->slow[i].link == (int64_t)i_link)
            frac *= cluster->slow[i].network_frac;
    return frac;
}

/*
 * Fewest links, found by relaxing every link until nothing changes: lists are
 * short.  via[v] is the link that reaches v.
 */
static bool find_route(const fr_fabric *fabric, int64_t from, int64_t to,
                       int64_t *hops, int64_t *via, int64_t n_vertices)
{
    for (int64_t v = 0; v < n_vertices; v++)
        hops[v] = INT64_MAX;
    hops[from] = 0;
    for (bool has_changed = true; has_changed;) {
        has_changed = false;
        for (size_t i = 0; i < fabric->n_links; i++) {
            int64_t a = fabric->links[i].from, b = fabric->links[i].to;
            if (hops[a] < INT64_MAX && hops[a] + 1 < hops[b]) {
                hops[b] = hops[a] + 1;
                via[b] = (int64_t)i;
                has_changed = true;
            }
            if (hops[b] < INT64_MAX && hops[b] + 1 < hops[a]) {
                hops[a] = hops[b] + 1;
                via[a] = (int64_t)i;
                has_changed = true;
            }
        }
    }
    return hops[to] < INT64_MAX;
}

static void links_path(const fr_cluster *cluster, int64_t from, int64_t to,
                       fr_path *path)
{
    const fr_fabric *fabric = &cluster->fabric;
    int64_t n = fr_cluster_n_nodes(cluster) + (int64_t)fabric->n_switches;
    int64_t *hops = calloc((size_t)n, sizeof *hops);
    int64_t *via = calloc((size_t)n, sizeof *via);
    double bandwidth_Bps = INFINITY;
    if (hops == NULL || via == NULL ||
        !find_route(fabric, from, to, hops, via, n)) {
        *path = (fr_path){0};
        goto out;
    }
    path->n_hops = (int32_t)hops[to];
    for (int64_t at = to; at != from;) {
        const fr_fabric_link *link = &fabric->links[via[at]];
        bandwidth_Bps = fr_min_double(bandwidth_Bps,
                                      link->bandwidth_Bps *
                                          link_frac(cluster, (size_t)via[at]));
        path->latency_s += link->latency_s;
        at = link->from == at ? link->to : link->from;
    }
    path->bandwidth_Bps =
        path->bandwidth_Bps > 0.0
            ? fr_min_double(path->bandwidth_Bps, bandwidth_Bps)
            : bandwidth_Bps;
    path->one_nic_Bps = path->one_nic_Bps > 0.0
                            ? fr_min_double(path->one_nic_Bps, bandwidth_Bps)
                            : bandwidth_Bps;
out:
    free(hops);
    free(via);
}

static fr_path inside_node(const fr_node_type *type)
{
    double pair_Bps =
        type->intra_p2p_Bps > 0.0 ? type->intra_p2p_Bps : type->intra_Bps;
    return (fr_path){.bandwidth_Bps = type->intra_Bps,
                     .one_nic_Bps = pair_Bps,
                     .latency_s = type->intra_latency_s,
                     .n_hops = 1};
}

fr_path fr_cluster_path(const fr_cluster *cluster, int64_t from, int64_t to)
{
    const fr_fabric *fabric = &cluster->fabric;
    const fr_node_type *a = fr_cluster_node_type(cluster, from);
    const fr_node_type *b = fr_cluster_node_type(cluster, to);
    if (from == to)
        return inside_node(a);
    double one_a = a->nic_Bps * fr_cluster_network_frac(cluster, from);
    double one_b = b->nic_Bps * fr_cluster_network_frac(cluster, to);
    fr_path path = {
        .bandwidth_Bps = fr_min_double(fr_cluster_nic_Bps(cluster, from),
                                       fr_cluster_nic_Bps(cluster, to)),
        .one_nic_Bps = fr_min_double(one_a, one_b),
        .latency_s = a->nic_latency_s > b->nic_latency_s ? a->nic_latency_s
                                                         : b->nic_latency_s,
        .n_hops = 2,
    };
    switch (fabric->kind) {
    case FR_FABRIC_FAT_TREE:
    case FR_FABRIC_RAIL:
        tree_path(cluster, from, to, &path);
        break;
    case FR_FABRIC_TORUS:
        torus_path(fabric, from, to, a->n_nics > 0 && b->n_nics > 0, &path);
        break;
    case FR_FABRIC_DRAGONFLY:
        dragonfly_path(fabric, from, to, &path);
        break;
    case FR_FABRIC_LINKS:
        links_path(cluster, from, to, &path);
        break;
    case FR_FABRIC_NONE:
    case FR_FABRIC_N:
        path = (fr_path){0};
        break;
    case FR_FABRIC_SWITCH:
        break;
    }
    return path;
}
