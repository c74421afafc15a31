/* fabric_routes.c: link numbers of each kind of fabric, and ways over them. */
#include "sim/topology/fabric_routes.h"

#include <stdlib.h>
#include <string.h>

enum { UP, DOWN, N_WAYS };

static fr_status add_link(fr_fabric_path *out, int64_t link, fr_err *err)
{
    FR_TRY_PUSH(out, (int32_t)link, err);
    return FR_OK;
}

static fr_status alloc_links(fr_fabric_routes *r, int64_t n, fr_err *err)
{
    if (n > INT32_MAX / 4)
        return fr_fail(err, FR_INPUT,
                       "cluster %s: more than %d links of the fabric",
                       r->cluster->name, INT32_MAX / 4);
    r->n_links = (int32_t)n;
    r->link_Bps = calloc((size_t)n + 1, sizeof *r->link_Bps);
    return r->link_Bps != NULL ? FR_OK : fr_fail_no_memory(err);
}

/* ---- trees --------------------------------------------------------------- */

static int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* NICs of the nodes below a switch, healthy. */
static double nics_below(const fr_cluster *cluster, int64_t first, int64_t n)
{
    int64_t n_nodes = fr_cluster_n_nodes(cluster);
    double sum = 0;
    for (int64_t node = first; node < first + n && node < n_nodes; node++) {
        const fr_node_type *type = fr_cluster_node_type(cluster, node);
        sum += type->n_nics * type->nic_Bps;
    }
    /* Places that are not taken have their links too. */
    int64_t n_there = n_nodes - first < n ? n_nodes - first : n;
    return n_there > 0 ? sum * (double)n / (double)n_there : 0;
}

/* The highest level has no way up. */
static fr_status init_tree(fr_fabric_routes *r, fr_err *err)
{
    const fr_fabric *fabric = &r->cluster->fabric;
    int64_t n_nodes = fr_cluster_n_nodes(r->cluster), below = 1, n = 0;
    double over = 1.0;
    for (int32_t i = 0; i < fabric->n_levels; i++)
        r->first_of_level[i] = -1;
    for (int32_t i = 0; i + 1 < fabric->n_levels; i++) {
        below *= fabric->levels[i].n_down;
        over *= fabric->levels[i].oversubscription;
        if (over <= 1.0 || below >= n_nodes)
            continue;
        r->first_of_level[i] = (int32_t)n;
        n += ceil_div(n_nodes, below) * r->n_rails * N_WAYS;
    }
    FR_TRY(alloc_links(r, n, err));
    below = 1;
    over = 1.0;
    for (int32_t i = 0; i + 1 < fabric->n_levels; i++) {
        below *= fabric->levels[i].n_down;
        over *= fabric->levels[i].oversubscription;
        if (r->first_of_level[i] < 0)
            continue;
        for (int64_t s = 0; s < ceil_div(n_nodes, below); s++)
            for (int32_t k = 0; k < r->n_rails * N_WAYS; k++)
                r->link_Bps[r->first_of_level[i] + s * r->n_rails * N_WAYS +
                            k] = nics_below(r->cluster, s * below, below) /
                                 over / r->n_rails;
    }
    return FR_OK;
}

static fr_status list_tree(const fr_fabric_routes *r, int64_t from, int64_t to,
                           int32_t rail, fr_fabric_path *out, fr_err *err)
{
    const fr_fabric *fabric = &r->cluster->fabric;
    int64_t below = 1;
    for (int32_t i = 0; i + 1 < fabric->n_levels; i++) {
        below *= fabric->levels[i].n_down;
        if (from / below == to / below)
            break;
        int64_t first = r->first_of_level[i];
        if (first < 0)
            continue;
        FR_TRY(add_link(
            out, first + (from / below * r->n_rails + rail) * N_WAYS + UP,
            err));
        FR_TRY(add_link(
            out, first + (to / below * r->n_rails + rail) * N_WAYS + DOWN,
            err));
    }
    return FR_OK;
}

/* ---- torus --------------------------------------------------------------- */

static fr_status init_torus(fr_fabric_routes *r, fr_err *err)
{
    const fr_fabric *fabric = &r->cluster->fabric;
    int64_t n = fr_cluster_n_nodes(r->cluster) * fabric->n_dims * N_WAYS;
    FR_TRY(alloc_links(r, n, err));
    for (int64_t i = 0; i < n; i++)
        r->link_Bps[i] = fabric->link_Bps;
    return FR_OK;
}

static fr_status list_torus(const fr_fabric_routes *r, int64_t from, int64_t to,
                            fr_fabric_path *out, fr_err *err)
{
    const fr_fabric *fabric = &r->cluster->fabric;
    int64_t stride = 1, at = from;
    for (int32_t dim = 0; dim < fabric->n_dims; dim++) {
        int64_t n = fabric->dims[dim];
        int64_t ahead = (to / stride % n - from / stride % n + n) % n;
        bool is_back = 2 * ahead > n;
        for (int64_t k = 0; k < (is_back ? n - ahead : ahead); k++) {
            int64_t place = at / stride % n;
            FR_TRY(add_link(out, (at * fabric->n_dims + dim) * N_WAYS + is_back,
                            err));
            at += ((place + (is_back ? n - 1 : 1)) % n - place) * stride;
        }
        stride *= n;
    }
    return FR_OK;
}

/* ---- dragonfly ----------------------------------------------------------- */

static fr_status init_dragonfly(fr_fabric_routes *r, fr_err *err)
{
    const fr_fabric *fabric = &r->cluster->fabric;
    int64_t n_routers = fabric->n_groups * fabric->n_routers;
    int64_t n_local = n_routers * fabric->n_routers;
    int64_t n_global = fabric->n_groups * fabric->n_groups;
    FR_TRY(alloc_links(r, n_local + n_global, err));
    for (int64_t i = 0; i < n_local + n_global; i++)
        r->link_Bps[i] = i < n_local ? fabric->link_Bps : fabric->global_Bps;
    return FR_OK;
}

/* From one router to another of its group; the same: no link. */
static fr_status add_local(const fr_fabric *fabric, int64_t from, int64_t to,
                           fr_fabric_path *out, fr_err *err)
{
    if (from == to)
        return FR_OK;
    return add_link(out, from * fabric->n_routers + to % fabric->n_routers,
                    err);
}

/* The router of a group that holds its link to another one. */
static int64_t gateway(const fr_fabric *fabric, int64_t group, int64_t other)
{
    return group * fabric->n_routers + other % fabric->n_routers;
}

static fr_status list_dragonfly(const fr_fabric_routes *r, int64_t from,
                                int64_t to, fr_fabric_path *out, fr_err *err)
{
    const fr_fabric *fabric = &r->cluster->fabric;
    int64_t a = from / fabric->n_per_router, b = to / fabric->n_per_router;
    int64_t group_a = a / fabric->n_routers, group_b = b / fabric->n_routers;
    if (group_a == group_b)
        return add_local(fabric, a, b, out, err);
    int64_t n_local = fabric->n_groups * fabric->n_routers * fabric->n_routers;
    FR_TRY(add_local(fabric, a, gateway(fabric, group_a, group_b), out, err));
    FR_TRY(add_link(out, n_local + group_a * fabric->n_groups + group_b, err));
    return add_local(fabric, gateway(fabric, group_b, group_a), b, out, err);
}

/* ---- a list of links ----------------------------------------------------- */

static double slow_frac(const fr_cluster *cluster, int64_t link)
{
    double frac = 1.0;
    for (size_t i = 0; i < cluster->n_slow; i++)
        if (cluster->slow[i].link == link)
            frac *= cluster->slow[i].network_frac;
    return frac;
}

static fr_status init_links(fr_fabric_routes *r, fr_err *err)
{
    const fr_fabric *fabric = &r->cluster->fabric;
    size_t n_vertices =
        (size_t)fr_cluster_n_nodes(r->cluster) + fabric->n_switches;
    FR_TRY(alloc_links(r, (int64_t)fabric->n_links * N_WAYS, err));
    for (int32_t i = 0; i < r->n_links; i++)
        r->link_Bps[i] = fabric->links[i / N_WAYS].bandwidth_Bps *
                         slow_frac(r->cluster, i / N_WAYS);
    r->hops = calloc(n_vertices + 1, sizeof *r->hops);
    r->via = calloc(n_vertices + 1, sizeof *r->via);
    return r->hops != NULL && r->via != NULL ? FR_OK : fr_fail_no_memory(err);
}

/* Fewest links from a node to all vertices, all links relaxed until nothing
 * changes: lists are short. */
static void find_ways(fr_fabric_routes *r, int64_t from)
{
    const fr_fabric *fabric = &r->cluster->fabric;
    int64_t n = fr_cluster_n_nodes(r->cluster) + (int64_t)fabric->n_switches;
    for (int64_t v = 0; v < n; v++)
        r->hops[v] = INT64_MAX;
    r->hops[from] = 0;
    for (bool has_changed = true; has_changed;) {
        has_changed = false;
        for (int64_t i = 0; i < (int64_t)fabric->n_links * N_WAYS; i++) {
            const fr_fabric_link *link = &fabric->links[i / N_WAYS];
            int64_t a = i % N_WAYS == UP ? link->from : link->to;
            int64_t b = i % N_WAYS == UP ? link->to : link->from;
            if (r->hops[a] == INT64_MAX || r->hops[a] + 1 >= r->hops[b])
                continue;
            r->hops[b] = r->hops[a] + 1;
            r->via[b] = i;
            has_changed = true;
        }
    }
    r->from = from;
}

static fr_status list_links(fr_fabric_routes *r, int64_t from, int64_t to,
                            fr_fabric_path *out, fr_err *err)
{
    const fr_fabric *fabric = &r->cluster->fabric;
    if (r->from != from)
        find_ways(r, from);
    if (r->hops[to] == INT64_MAX)
        return fr_fail(err, FR_INPUT, "cluster %s: no way between two nodes",
                       r->cluster->name);
    for (int64_t at = to; at != from;) {
        const fr_fabric_link *link = &fabric->links[r->via[at] / N_WAYS];
        bool is_up = r->via[at] % N_WAYS == UP;
        /* Both ways of a half-duplex link are one. */
        FR_TRY(add_link(out,
                        link->is_half_duplex ? r->via[at] / N_WAYS * N_WAYS
                                             : r->via[at],
                        err));
        at = is_up ? link->from : link->to;
    }
    return FR_OK;
}

/* ---- PCIe ---------------------------------------------------------------- */

/* After the links of the fabric. */
static fr_status init_pcie(fr_fabric_routes *r, int64_t n_nodes, fr_err *err)
{
    const fr_cluster *cluster = r->cluster;
    for (size_t i = 0; i < cluster->n_node_types; i++)
        if (cluster->node_types[i].n_pcie_switches > r->n_pcie)
            r->n_pcie = cluster->node_types[i].n_pcie_switches;
    int64_t n = r->n_links + n_nodes * r->n_pcie * N_WAYS;
    if (n > INT32_MAX / 4)
        return fr_fail(err, FR_INPUT, "cluster %s: more than %d PCIe links",
                       cluster->name, INT32_MAX / 4);
    double *link_Bps = realloc(r->link_Bps, ((size_t)n + 1) * sizeof *link_Bps);
    if (link_Bps == NULL)
        return fr_fail_no_memory(err);
    r->link_Bps = link_Bps;
    r->first_pcie = r->n_links;
    r->n_links = (int32_t)n;
    for (int64_t node = 0; node < n_nodes; node++)
        for (int32_t k = 0; k < r->n_pcie * N_WAYS; k++)
            link_Bps[r->first_pcie + node * r->n_pcie * N_WAYS + k] =
                fr_cluster_node_type(cluster, node)->pcie_uplink_Bps;
    return FR_OK;
}

fr_status fr_fabric_routes_pcie(const fr_fabric_routes *r, int64_t node,
                                int32_t from, int32_t to, fr_fabric_path *out,
                                fr_err *err)
{
    int64_t first = r->first_pcie + node * r->n_pcie * N_WAYS;
    if (from == to)
        return FR_OK;
    FR_TRY(add_link(out, first + from * N_WAYS + UP, err));
    return to < 0 ? FR_OK : add_link(out, first + to * N_WAYS + DOWN, err);
}

/* ---- all kinds ----------------------------------------------------------- */

bool fr_fabric_has_links(const fr_cluster *cluster)
{
    const fr_fabric *fabric = &cluster->fabric;
    double over = 1.0;
    switch (fabric->kind) {
    case FR_FABRIC_RAIL:
    case FR_FABRIC_FAT_TREE:
        for (int32_t i = 0; i + 1 < fabric->n_levels && over <= 1.0; i++)
            over *= fabric->levels[i].oversubscription;
        return over > 1.0;
    case FR_FABRIC_TORUS:
    case FR_FABRIC_DRAGONFLY:
    case FR_FABRIC_LINKS:
        return true;
    case FR_FABRIC_SWITCH:
    case FR_FABRIC_NONE:
    case FR_FABRIC_N:
        break;
    }
    return false;
}

fr_status fr_fabric_routes_init(const fr_cluster *cluster, int64_t n_pcie_nodes,
                                fr_fabric_routes *out, fr_err *err)
{
    fr_fabric_routes routes = {.cluster = cluster, .n_rails = 1, .from = -1};
    fr_status status = FR_OK;
    switch (cluster->fabric.kind) {
    case FR_FABRIC_RAIL:
        routes.n_rails = fr_cluster_node_type(cluster, 0)->n_rails;
        routes.n_rails = routes.n_rails > 1 ? routes.n_rails : 1;
        status = init_tree(&routes, err);
        break;
    case FR_FABRIC_FAT_TREE:
        status = init_tree(&routes, err);
        break;
    case FR_FABRIC_TORUS:
        status = init_torus(&routes, err);
        break;
    case FR_FABRIC_DRAGONFLY:
        status = init_dragonfly(&routes, err);
        break;
    case FR_FABRIC_LINKS:
        status = init_links(&routes, err);
        break;
    case FR_FABRIC_SWITCH:
    case FR_FABRIC_NONE:
    case FR_FABRIC_N:
        break;
    }
    if (status == FR_OK && n_pcie_nodes > 0)
        status = init_pcie(&routes, n_pcie_nodes, err);
    if (status != FR_OK) {
        fr_fabric_routes_release(&routes);
        return status;
    }
    *out = routes;
    return FR_OK;
}

void fr_fabric_routes_release(fr_fabric_routes *routes)
{
    free(routes->link_Bps);
    free(routes->hops);
    free(routes->via);
    *routes = (fr_fabric_routes){0};
}

fr_status fr_fabric_routes_list(fr_fabric_routes *r, int64_t from, int64_t to,
                                int32_t rail, fr_fabric_path *out, fr_err *err)
{
    if (from == to)
        return FR_OK;
    switch (r->cluster->fabric.kind) {
    case FR_FABRIC_RAIL:
    case FR_FABRIC_FAT_TREE:
        return list_tree(r, from, to, rail % r->n_rails, out, err);
    case FR_FABRIC_TORUS:
        return list_torus(r, from, to, out, err);
    case FR_FABRIC_DRAGONFLY:
        return list_dragonfly(r, from, to, out, err);
    case FR_FABRIC_LINKS:
        return list_links(r, from, to, out, err);
    case FR_FABRIC_SWITCH:
    case FR_FABRIC_NONE:
    case FR_FABRIC_N:
        break;
    }
    return FR_OK;
}
