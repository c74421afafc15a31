/* platform.c: what a platform consists of, by name. */
#include "sim/flows/platform_state.h"

#include "core/base/hash.h"
#include "core/base/text.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_ITEMS = 1 << 26 };

/* ---- index --------------------------------------------------------------- */

static fr_status index_grow(fr_index *index,
                            uint64_t (*hash)(const void *, uint32_t),
                            const void *context, fr_err *err)
{
    size_t n_slots = index->n_slots ? 2 * index->n_slots : 64;

    if (2 * (index->n + 1) <= index->n_slots)
        return FR_OK;
    uint32_t *slots = malloc(n_slots * sizeof *slots);
    if (!slots)
        return fr_fail_no_memory(err);
    memset(slots, 0xff, n_slots * sizeof *slots);
    for (size_t i = 0; i < index->n_slots; i++) {
        uint32_t item = index->slots[i];
        if (item == FR_NO_INDEX)
            continue;
        size_t slot = hash(context, item) & (n_slots - 1);
        while (slots[slot] != FR_NO_INDEX)
            slot = (slot + 1) & (n_slots - 1);
        slots[slot] = item;
    }
    free(index->slots);
    index->slots = slots;
    index->n_slots = n_slots;
    return FR_OK;
}

/* There is room. */
static void index_put(fr_index *index, uint64_t hash, uint32_t item)
{
    size_t slot = hash & (index->n_slots - 1);

    while (index->slots[slot] != FR_NO_INDEX)
        slot = (slot + 1) & (index->n_slots - 1);
    index->slots[slot] = item;
    index->n++;
}

static uint64_t point_hash(const void *context, uint32_t item)
{
    const fr_platform *p = context;
    return fr_hash_text(p->points.items[item].id, 0);
}

static uint64_t name_hash(const void *context, uint32_t item)
{
    const fr_platform *p = context;
    return fr_hash_text(p->name_ids.items[item], 0);
}

static uint64_t pair_hash(uint32_t from, uint32_t to)
{
    return fr_hash_mix((uint64_t)from << 32 | to);
}

static uint64_t route_hash(const void *context, uint32_t item)
{
    const fr_route *route = &((const fr_platform *)context)->routes.items[item];
    return pair_hash(route->from, route->to);
}

uint32_t fr_platform_point_find(const fr_platform *p, const char *id)
{
    const fr_index *index = &p->point_index;
    size_t slot = fr_hash_text(id, 0);

    if (!index->n)
        return FR_NO_INDEX;
    for (;; slot++) {
        uint32_t item = index->slots[slot & (index->n_slots - 1)];
        if (item == FR_NO_INDEX || !strcmp(p->points.items[item].id, id))
            return item;
    }
}

uint32_t fr_platform_name_find(const fr_platform *p, const char *id)
{
    const fr_index *index = &p->name_index;
    size_t slot = fr_hash_text(id, 0);

    if (!index->n)
        return FR_NO_INDEX;
    for (;; slot++) {
        uint32_t item = index->slots[slot & (index->n_slots - 1)];
        if (item == FR_NO_INDEX || !strcmp(p->name_ids.items[item], id))
            return item;
    }
}

uint32_t fr_platform_route_find(const fr_platform *p, uint32_t from,
                                uint32_t to)
{
    const fr_index *index = &p->route_index;
    size_t slot = pair_hash(from, to);

    if (!index->n)
        return FR_NO_INDEX;
    for (;; slot++) {
        uint32_t item = index->slots[slot & (index->n_slots - 1)];
        if (item == FR_NO_INDEX || (p->routes.items[item].from == from &&
                                    p->routes.items[item].to == to))
            return item;
    }
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
    FR_TRY(index_grow(&p->point_index, point_hash, p, err));
    point.id = fr_arena_strdup(&p->arena, id);
    if (!point.id)
        return fr_fail_no_memory(err);
    uint32_t i = (uint32_t)p->points.n;
    if (zone != FR_NO_INDEX) {
        point.rank = (uint32_t)p->zones.items[zone].points.n;
        if (fr_vec_push(&p->zones.items[zone].points, i) != FR_OK)
            return fr_fail_no_memory(err);
    }
    if (fr_vec_push(&p->points, point) != FR_OK)
        return fr_fail_no_memory(err);
    index_put(&p->point_index, point_hash(p, i), i);
    *out = i;
    return FR_OK;
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
    FR_TRY(index_grow(&p->name_index, name_hash, p, err));
    FR_TRY(push_link(p, link, is_split ? "_UP" : "", &name.up, err));
    name.down = name.up;
    if (is_split)
        FR_TRY(push_link(p, link, "_DOWN", &name.down, err));
    const char *id = fr_arena_strdup(&p->arena, link->id);
    if (!id || fr_vec_push(&p->names, name) != FR_OK ||
        fr_vec_push(&p->name_ids, id) != FR_OK)
        return fr_fail_no_memory(err);
    uint32_t i = (uint32_t)(p->names.n - 1);
    index_put(&p->name_index, name_hash(p, i), i);
    *out = name;
    return FR_OK;
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
    if (fr_vec_push(&p->zones, zone) != FR_OK)
        return fr_fail_no_memory(err);
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
    FR_TRY(index_grow(&p->route_index, route_hash, p, err));
    uint32_t i = (uint32_t)p->routes.n;
    fr_zone *in = &p->zones.items[zone];
    if (fr_vec_push(&p->routes, *route) != FR_OK ||
        fr_vec_push(&in->routes, i) != FR_OK)
        return fr_fail_no_memory(err);
    name_vertex(p, in, route->from);
    name_vertex(p, in, route->to);
    index_put(&p->route_index, route_hash(p, i), i);
    return FR_OK;
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
    if (path->n == path->capacity) {
        size_t capacity = path->capacity ? 2 * path->capacity : 16;
        uint32_t *links = realloc(path->links, capacity * sizeof *links);
        if (!links)
            return fr_fail_no_memory(err);
        path->links = links;
        path->capacity = capacity;
    }
    path->links[path->n++] = link;
    path->latency_s += p->links.items[link].latency_s;
    return FR_OK;
}

void fr_platform_path_release(fr_platform_path *path)
{
    free(path->links);
    memset(path, 0, sizeof *path);
}

/* ---- life ---------------------------------------------------------------- */

static fr_status read_xml(const fr_xml *xml, fr_platform **out, fr_err *err)
{
    fr_platform *p = calloc(1, sizeof *p);
    fr_status status;

    if (!p)
        return fr_fail_no_memory(err);
    fr_arena_init(&p->arena);
    /* network/loopback-bw and network/loopback-lat of SimGrid 3.32. */
    p->loopback_Bps = 10e9;
    p->loopback_s = 0.0;
    p->loopback_link = FR_NO_INDEX;
    status = fr_platform_read(p, xml, err);
    if (status != FR_OK) {
        fr_platform_destroy(p);
        return status;
    }
    *out = p;
    return FR_OK;
}

fr_status fr_platform_load(const char *path, fr_platform **out, fr_err *err)
{
    fr_xml *xml = NULL;
    FR_TRY(fr_xml_load(path, &xml, err));
    fr_status status = read_xml(xml, out, err);
    fr_xml_destroy(xml);
    return status;
}

fr_status fr_platform_parse(const char *name, const char *text, size_t n_text,
                            fr_platform **out, fr_err *err)
{
    fr_xml *xml = NULL;
    FR_TRY(fr_xml_parse(name, text, n_text, &xml, err));
    fr_status status = read_xml(xml, out, err);
    fr_xml_destroy(xml);
    return status;
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
    free(p->point_index.slots);
    free(p->name_index.slots);
    free(p->route_index.slots);
    fr_arena_release(&p->arena);
    free(p);
}
