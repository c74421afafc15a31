/* platform.c: what a platform consists of, by name. */
#include "core/base/hash.h"
#include "core/base/text.h"
#include "simgrid/platform_state.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_ITEMS = 1 << 26 };

/* ---- by name ------------------------------------------------------------- */

static bool is_point(const void *owner, uint32_t i, const void *id)
{
    const fr_platform *p = owner;
    return strcmp(p->points.items[i].id, id) == 0;
}

static bool is_name(const void *owner, uint32_t i, const void *id)
{
    const fr_platform *p = owner;
    return strcmp(p->name_ids.items[i], id) == 0;
}

static bool is_route(const void *owner, uint32_t i, const void *key)
{
    const fr_route *a = &((const fr_platform *)owner)->routes.items[i],
                   *b = key;
    return a->from == b->from && a->to == b->to;
}

static uint64_t pair_hash(uint32_t from, uint32_t to)
{
    return fr_hash_mix((uint64_t)from << 32 | to);
}

uint32_t fr_platform_point_find(const fr_platform *p, const char *id)
{
    return fr_item_index_find(&p->point_index, fr_hash_text(id, 0), is_point, p,
                              id);
}

uint32_t fr_platform_name_find(const fr_platform *p, const char *id)
{
    return fr_item_index_find(&p->name_index, fr_hash_text(id, 0), is_name, p,
                              id);
}

uint32_t fr_platform_route_find(const fr_platform *p, uint32_t from,
                                uint32_t to)
{
    const fr_route key = {.from = from, .to = to};
    return fr_item_index_find(&p->route_index, pair_hash(from, to), is_route, p,
                              &key);
}

/* ---- adding -------------------------------------------------------------- */

fr_status fr_platform_add_point(fr_platform *p, const fr_xml_node *node,
                                const char *id, fr_point_kind kind,
                                uint32_t zone, uint32_t *out, fr_err *err)
{
    fr_point point = {.kind = kind,
                      .zone = zone,
                      .inside = FR_NO_INDEX,
                      .vertex = FR_NO_INDEX};

    if (fr_platform_point_find(p, id) != FR_NO_INDEX)
        return fr_xml_fail(node, err, "'%s' is there already", id);
    if (p->points.n >= MAX_ITEMS)
        return fr_xml_fail(node, err, "more than %d hosts", MAX_ITEMS);
    point.id = fr_arena_strdup(&p->arena, id);
    if (!point.id)
        return fr_fail_no_memory(err);
    uint32_t i = (uint32_t)p->points.n;
    if (zone != FR_NO_INDEX) {
        point.rank = (uint32_t)p->zones.items[zone].points.n;
        FR_TRY_PUSH(&p->zones.items[zone].points, i, err);
    }
    FR_TRY_PUSH(&p->points, point, err);
    *out = i;
    return fr_item_index_add(&p->point_index, fr_hash_text(id, 0), i, err);
}

static fr_status push_link(fr_platform *p, const fr_platform_link *link,
                           const char *suffix, uint32_t *out, fr_err *err)
{
    fr_platform_link copy = *link;

    copy.id = fr_arena_printf(&p->arena, "%s%s", link->id, suffix);
    if (!copy.id || fr_vec_push(&p->links, copy) != FR_OK)
        return fr_fail_no_memory(err);
    *out = (uint32_t)(p->links.n - 1);
    return FR_OK;
}

fr_status fr_platform_add_link(fr_platform *p, const fr_xml_node *node,
                               const fr_platform_link *link, bool is_split,
                               fr_link_name *out, fr_err *err)
{
    fr_link_name name = {.is_split = is_split};

    if (fr_platform_name_find(p, link->id) != FR_NO_INDEX)
        return fr_xml_fail(node, err, "link '%s' is there already", link->id);
    if (p->links.n >= MAX_ITEMS)
        return fr_xml_fail(node, err, "more than %d links", MAX_ITEMS);
    FR_TRY(push_link(p, link, is_split ? "_UP" : "", &name.up, err));
    name.down = name.up;
    if (is_split)
        FR_TRY(push_link(p, link, "_DOWN", &name.down, err));
    const char *id = fr_arena_strdup(&p->arena, link->id);
    if (!id || fr_vec_push(&p->names, name) != FR_OK ||
        fr_vec_push(&p->name_ids, id) != FR_OK)
        return fr_fail_no_memory(err);
    *out = name;
    return fr_item_index_add(&p->name_index, fr_hash_text(id, 0),
                             (uint32_t)(p->names.n - 1), err);
}

fr_status fr_platform_add_zone(fr_platform *p, const fr_xml_node *node,
                               const char *id, fr_zone_kind kind,
                               uint32_t parent, uint32_t *out, fr_err *err)
{
    fr_zone zone = {.kind = kind, .parent = parent, .line = fr_xml_line(node)};
    uint32_t i = (uint32_t)p->zones.n;

    FR_TRY(fr_platform_add_point(p, node, id, FR_POINT_ZONE, parent,
                                 &zone.point, err));
    p->points.items[zone.point].inside = i;
    if (parent != FR_NO_INDEX)
        p->zones.items[parent].has_zones = true;
    FR_TRY_PUSH(&p->zones, zone, err);
    *out = i;
    return FR_OK;
}

static void name_vertex(fr_platform *p, fr_zone *zone, uint32_t point)
{
    if (p->points.items[point].vertex == FR_NO_INDEX)
        p->points.items[point].vertex = zone->n_vertices++;
}

fr_status fr_platform_add_route(fr_platform *p, const fr_xml_node *node,
                                uint32_t zone, const fr_route *route,
                                fr_err *err)
{
    if (fr_platform_route_find(p, route->from, route->to) != FR_NO_INDEX)
        return fr_xml_fail(node, err,
                           "a second route from '%s' to '%s' (routes go both "
                           "ways unless symmetrical=\"NO\")",
                           p->points.items[route->from].id,
                           p->points.items[route->to].id);
    uint32_t i = (uint32_t)p->routes.n;
    fr_zone *in = &p->zones.items[zone];
    FR_TRY_PUSH(&p->routes, *route, err);
    FR_TRY_PUSH(&in->routes, i, err);
    name_vertex(p, in, route->from);
    name_vertex(p, in, route->to);
    return fr_item_index_add(&p->route_index, pair_hash(route->from, route->to),
                             i, err);
}

/* ---- looking ------------------------------------------------------------- */

size_t fr_platform_n_links(const fr_platform *p)
{
    return p->links.n;
}

const fr_platform_link *fr_platform_link_at(const fr_platform *p,
                                            uint32_t i_link)
{
    return &p->links.items[i_link];
}

size_t fr_platform_n_hosts(const fr_platform *platform)
{
    size_t n = 0;
    for (size_t i = 0; i < platform->points.n; i++)
        n += platform->points.items[i].kind == FR_POINT_HOST;
    return n;
}

int64_t fr_platform_host_at(const fr_platform *platform, size_t i)
{
    for (size_t k = 0; k < platform->points.n; k++)
        if (platform->points.items[k].kind == FR_POINT_HOST && i-- == 0)
            return (int64_t)k;
    return -1;
}

const char *fr_platform_host_id(const fr_platform *platform, int64_t host)
{
    return platform->points.items[host].id;
}

int64_t fr_platform_host_find(const fr_platform *p, const char *id)
{
    uint32_t i = fr_platform_point_find(p, id);

    if (i == FR_NO_INDEX || p->points.items[i].kind != FR_POINT_HOST)
        return -1;
    return i;
}

const char *fr_platform_host_nearest(const fr_platform *p, const char *id)
{
    fr_vec(const char *) hosts = {0};
    const char *nearest = NULL;

    for (size_t i = 0; i < p->points.n; i++)
        if (p->points.items[i].kind == FR_POINT_HOST &&
            fr_vec_push(&hosts, p->points.items[i].id) != FR_OK)
            break;
    if (hosts.n)
        nearest = fr_text_nearest(id, hosts.items, hosts.n);
    fr_vec_release(&hosts);
    return nearest;
}

fr_status fr_platform_append(const fr_platform *p, fr_platform_path *path,
                             uint32_t link, fr_err *err)
{
    FR_TRY_PUSH(&path->links, link, err);
    path->latency_s += p->links.items[link].latency_s;
    return FR_OK;
}

void fr_platform_destroy(fr_platform *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->zones.n; i++) {
        fr_vec_release(&p->zones.items[i].points);
        fr_vec_release(&p->zones.items[i].routes);
    }
    fr_vec_release(&p->links);
    fr_vec_release(&p->names);
    fr_vec_release(&p->name_ids);
    fr_vec_release(&p->points);
    fr_vec_release(&p->zones);
    fr_vec_release(&p->routes);
    fr_item_index_release(&p->point_index);
    fr_item_index_release(&p->name_index);
    fr_item_index_release(&p->route_index);
    fr_arena_release(&p->arena);
    free(p);
}
