/*
 * platform_route.c: from host to host.  A route between points of one zone is
 * that of the zone's kind; between zones it goes to the gateway of the route
 * that joins them, over it, and on from the other gateway.  Where several
 * shortest paths exist, the one that SimGrid takes.
 */
#include "simgrid/platform_state.h"

#include <string.h>

enum { MAX_DEPTH = 64 }; /* of zones, and of gateways in gateways */

typedef struct walk {
    fr_platform *p;
    fr_platform_path *path;
    fr_err *err;
    int depth;
} walk;

static fr_status no_route(const walk *w, uint32_t from, uint32_t to)
{
    return fr_fail(w->err, FR_INPUT, "no route from '%s' to '%s'",
                   w->p->points.items[from].id, w->p->points.items[to].id);
}

static fr_status take_links(walk *w, const uint32_t *links, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        FR_TRY(fr_platform_append(w->p, w->path, links[i], w->err));
    return FR_OK;
}

/* ---- shortest paths ------------------------------------------------------ */

/* Floyd and Warshall over points by rank; a route costs its links. */
static fr_status find_all_paths(fr_platform *p, fr_zone *zone, fr_err *err)
{
    size_t n = zone->points.n;
    uint64_t *cost = fr_arena_array(&p->arena, n * n, sizeof *cost);
    uint32_t *previous = fr_arena_array(&p->arena, n * n, sizeof *previous);

    if (!cost || !previous)
        return fr_fail_no_memory(err);
    memset(cost, 0xff, n * n * sizeof *cost);
    memset(previous, 0xff, n * n * sizeof *previous);
    for (size_t i = 0; i < zone->routes.n; i++) {
        const fr_route *route = &p->routes.items[zone->routes.items[i]];
        size_t a = p->points.items[route->from].rank;
        size_t b = p->points.items[route->to].rank;
        cost[a * n + b] = route->n_links;
        previous[a * n + b] = (uint32_t)a;
    }
    for (size_t c = 0; c < n; c++)
        for (size_t a = 0; a < n; a++) {
            uint64_t first = cost[a * n + c];
            if (first == UINT64_MAX)
                continue;
            for (size_t b = 0; b < n; b++) {
                uint64_t second = cost[c * n + b];
                if (second == UINT64_MAX || first + second >= cost[a * n + b])
                    continue;
                cost[a * n + b] = first + second;
                previous[a * n + b] = previous[c * n + b];
            }
        }
    zone->previous = previous;
    return FR_OK;
}

static fr_status make_rows(fr_platform *p, fr_zone *zone, fr_err *err)
{
    size_t n = zone->n_vertices;

    zone->vertex_point = fr_arena_array(&p->arena, n, sizeof(uint32_t));
    zone->has_row = fr_arena_array(&p->arena, n, sizeof(bool));
    zone->previous = fr_arena_array(&p->arena, n * n, sizeof(uint32_t));
    if (!zone->vertex_point || !zone->has_row || !zone->previous)
        return fr_fail_no_memory(err);
    for (size_t i = 0; i < zone->points.n; i++) {
        uint32_t point = zone->points.items[i];
        uint32_t vertex = p->points.items[point].vertex;
        if (vertex != FR_NO_INDEX)
            zone->vertex_point[vertex] = point;
    }
    return FR_OK;
}

/*
 * Dijkstra from one vertex.  Of equally near vertices the one with the lowest
 * number comes first, and the first path that was found stays.
 */
static fr_status find_row(fr_platform *p, fr_zone *zone, uint32_t start,
                          fr_err *err)
{
    uint32_t n = zone->n_vertices;
    uint32_t *previous = zone->previous + (size_t)start * n;
    uint64_t *cost = fr_arena_array(&p->arena, n, sizeof *cost);
    bool *is_done = fr_arena_array(&p->arena, n, sizeof *is_done);

    if (!cost || !is_done)
        return fr_fail_no_memory(err);
    memset(cost, 0xff, n * sizeof *cost);
    memset(previous, 0xff, n * sizeof *previous);
    cost[start] = 0;
    for (;;) {
        uint32_t v = FR_NO_INDEX;
        for (uint32_t i = 0; i < n; i++)
            if (!is_done[i] && cost[i] != UINT64_MAX &&
                (v == FR_NO_INDEX || cost[i] < cost[v]))
                v = i;
        if (v == FR_NO_INDEX)
            break;
        is_done[v] = true;
        for (uint32_t u = 0; u < n; u++) {
            uint32_t i = fr_platform_route_find(p, zone->vertex_point[v],
                                                zone->vertex_point[u]);
            if (i == FR_NO_INDEX)
                continue;
            uint64_t sum = cost[v] + p->routes.items[i].n_links;
            if (sum >= cost[u])
                continue;
            cost[u] = sum;
            previous[u] = v;
        }
    }
    zone->has_row[start] = true;
    return FR_OK;
}

/* The point before `to` on the path from `from`; FR_NO_INDEX: there is none. */
static fr_status find_previous(fr_platform *p, fr_zone *zone, uint32_t from,
                               uint32_t to, uint32_t *out, fr_err *err)
{
    const fr_point *a = &p->points.items[from], *b = &p->points.items[to];
    uint32_t before = FR_NO_INDEX;

    if (zone->kind == FR_ZONE_FLOYD) {
        if (!zone->previous)
            FR_TRY(find_all_paths(p, zone, err));
        before = zone->previous[(size_t)a->rank * zone->points.n + b->rank];
        *out = before == FR_NO_INDEX ? before : zone->points.items[before];
        return FR_OK;
    }
    *out = FR_NO_INDEX;
    if (a->vertex == FR_NO_INDEX || b->vertex == FR_NO_INDEX)
        return FR_OK;
    if (!zone->previous)
        FR_TRY(make_rows(p, zone, err));
    if (!zone->has_row[a->vertex])
        FR_TRY(find_row(p, zone, a->vertex, err));
    before = zone->previous[(size_t)a->vertex * zone->n_vertices + b->vertex];
    *out = before == FR_NO_INDEX ? before : zone->vertex_point[before];
    return FR_OK;
}

/* ---- one zone ------------------------------------------------------------ */

typedef struct gateways {
    uint32_t from, to; /* FR_NO_INDEX: the points themselves */
} gateways;

static fr_status walk_between(walk *w, uint32_t from, uint32_t to);

/* The routes of a shortest path, joined inside zones where they do not meet. */
static fr_status walk_shortest(walk *w, fr_zone *zone, uint32_t from,
                               uint32_t to, gateways *gates)
{
    fr_u32_list stops = {0};
    uint32_t at = to, last_gate = FR_NO_INDEX;
    fr_status status = FR_OK;

    do {
        uint32_t before = FR_NO_INDEX;
        FR_TRY_GOTO(status,
                    find_previous(w->p, zone, from, at, &before, w->err), out);
        if (before == FR_NO_INDEX) {
            status = no_route(w, from, to);
            goto out;
        }
        if (fr_vec_push(&stops, at) != FR_OK) {
            status = fr_fail_no_memory(w->err);
            goto out;
        }
        at = before;
    } while (at != from);
    for (size_t i = stops.n; i > 0; i--) {
        uint32_t r = fr_platform_route_find(w->p, at, stops.items[i - 1]);
        fr_route route = w->p->routes.items[r];
        if (i == stops.n)
            gates->from = route.gateway_from;
        else if (last_gate != route.gateway_from)
            FR_TRY_GOTO(status, walk_between(w, last_gate, route.gateway_from),
                        out);
        FR_TRY_GOTO(status, take_links(w, route.links, route.n_links), out);
        gates->to = last_gate = route.gateway_to;
        at = stops.items[i - 1];
    }
out:
    fr_vec_release(&stops);
    return status;
}

/* Links up from one point to the middle and down to the other, none of them
 * twice. */
static fr_status walk_star(walk *w, const fr_zone *zone, uint32_t from,
                           uint32_t to)
{
    const fr_spoke *a = &zone->spokes[w->p->points.items[from].rank];
    const fr_spoke *b = &zone->spokes[w->p->points.items[to].rank];

    if (from == to && a->n_loopback)
        return take_links(w, a->loopback, a->n_loopback);
    size_t first = w->path->links.n;
    FR_TRY(take_links(w, a->up, a->n_up));
    for (uint32_t i = 0; i < b->n_down; i++) {
        bool is_there = false;
        for (size_t k = first; k < w->path->links.n; k++)
            is_there = is_there || w->path->links.items[k] == b->down[i];
        if (!is_there)
            FR_TRY(take_links(w, &b->down[i], 1));
    }
    return FR_OK;
}

static fr_status walk_in_zone(walk *w, uint32_t i_zone, uint32_t from,
                              uint32_t to, gateways *gates)
{
    fr_zone *zone = &w->p->zones.items[i_zone];
    uint32_t direct = fr_platform_route_find(w->p, from, to);

    *gates = (gateways){FR_NO_INDEX, FR_NO_INDEX};
    switch (zone->kind) {
    case FR_ZONE_FULL:
    case FR_ZONE_FLOYD:
    case FR_ZONE_DIJKSTRA:
        if (from == to && direct == FR_NO_INDEX) {
            if (zone->has_zones)
                return no_route(w, from, to);
            return take_links(w, &w->p->loopback_link, 1);
        }
        if (zone->kind != FR_ZONE_FULL && from != to)
            return walk_shortest(w, zone, from, to, gates);
        if (direct == FR_NO_INDEX)
            return no_route(w, from, to);
        const fr_route *route = &w->p->routes.items[direct];
        gates->from = route->gateway_from;
        gates->to = route->gateway_to;
        return take_links(w, route->links, route->n_links);
    case FR_ZONE_STAR:
        return walk_star(w, zone, from, to);
    case FR_ZONE_TORUS:
    case FR_ZONE_FAT_TREE:
    case FR_ZONE_DRAGONFLY:
        return fr_topology_route(w->p, zone, from, to, w->path, w->err);
    case FR_ZONE_NONE:
        break;
    }
    return no_route(w, from, to);
}

/* ---- across zones -------------------------------------------------------- */

static uint32_t depth_of(const fr_platform *p, uint32_t zone)
{
    uint32_t depth = 0;

    for (; p->zones.items[zone].parent != FR_NO_INDEX; depth++)
        zone = p->zones.items[zone].parent;
    return depth;
}

/*
 * The innermost zone that holds both, and the points in it that stand for
 * them: themselves, or the zones around them.
 */
static uint32_t find_common(const fr_platform *p, uint32_t *from, uint32_t *to)
{
    uint32_t a = p->points.items[*from].zone, b = p->points.items[*to].zone;
    uint32_t depth_a = depth_of(p, a), depth_b = depth_of(p, b);

    while (a != b) {
        if (depth_a >= depth_b) {
            *from = p->zones.items[a].point;
            a = p->zones.items[a].parent;
            depth_a--;
        } else {
            *to = p->zones.items[b].point;
            b = p->zones.items[b].parent;
            depth_b--;
        }
    }
    return a;
}

static fr_status walk_between(walk *w, uint32_t from, uint32_t to)
{
    uint32_t a = from, b = to;
    gateways gates;

    if (++w->depth > MAX_DEPTH)
        return fr_fail(w->err, FR_INPUT,
                       "the gateways between '%s' and '%s' lead in a circle",
                       w->p->points.items[from].id, w->p->points.items[to].id);
    uint32_t zone = find_common(w->p, &a, &b);
    if (a == from && b == to) {
        FR_TRY(walk_in_zone(w, zone, from, to, &gates));
        w->depth--;
        return FR_OK;
    }
    /* The gateways of a route are known only after it was found. */
    fr_platform_path inner = {0}, *outer = w->path;
    w->path = &inner;
    fr_status status = walk_in_zone(w, zone, a, b, &gates);
    w->path = outer;
    if (status == FR_OK &&
        (gates.from == FR_NO_INDEX || gates.to == FR_NO_INDEX))
        status = no_route(w, from, to);
    if (status == FR_OK && gates.from != from)
        status = walk_between(w, from, gates.from);
    if (status == FR_OK)
        status = take_links(w, inner.links.items, (uint32_t)inner.links.n);
    if (status == FR_OK && gates.to != to)
        status = walk_between(w, gates.to, to);
    fr_vec_release(&inner.links);
    w->depth--;
    return status;
}

fr_status fr_platform_route(fr_platform *p, int64_t src, int64_t dst,
                            fr_platform_path *path, fr_err *err)
{
    walk w = {.p = p, .path = path, .err = err};

    path->links.n = 0;
    path->latency_s = 0.0;
    FR_TRY(walk_between(&w, (uint32_t)src, (uint32_t)dst));
    if (path->links.n == 0)
        return no_route(&w, (uint32_t)src, (uint32_t)dst);
    return FR_OK;
}
