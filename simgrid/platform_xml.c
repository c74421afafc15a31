/*
 * platform_xml.c: the elements of a platform file.  Two passes: what there
 * is, then the routes, so that a route may name what stands further down.
 */
#include "core/base/text.h"
#include "simgrid/platform_state.h"

#include <string.h>

#define N_OF(array) (sizeof(array) / sizeof *(array))

/* Elements that carry no meaning for the network, in any zone. */
static bool is_ignored(const fr_xml_node *node)
{
    static const char *const names[] = {"prop", "config", "disk", "mount"};
    return fr_text_find(fr_xml_name(node), names, N_OF(names)) >= 0;
}

static fr_status refuse(const fr_xml_node *node, fr_err *err)
{
    return fr_xml_fail(node, err,
                       "<%s> is not supported here; read are zone, cluster, "
                       "host, router, link, backbone, host_link, route, "
                       "zoneRoute, config and prop",
                       fr_xml_name(node));
}

/* ---- first pass ---------------------------------------------------------- */

static fr_status read_speed(const fr_xml_node *node, fr_err *err)
{
    const char *text = NULL;
    char one[64];
    fr_err inner;
    double speed_flops;

    FR_TRY(fr_xml_get_string(node, "speed", &text, err));
    while (*text) { /* one for each state of power */
        size_t n = strcspn(text, ",");
        if (n >= sizeof one)
            return fr_xml_fail(node, err, "speed '%s' is too long", text);
        memcpy(one, text, n);
        one[n] = '\0';
        if (fr_parse_quantity(FR_QUANTITY_FLOPS, fr_text_trim(one),
                              FR_UNIT_SIMGRID, &speed_flops, &inner) != FR_OK)
            return fr_xml_fail(node, err, "speed: %s", inner.text);
        text += n + (text[n] == ',');
    }
    return FR_OK;
}

static fr_status read_host(fr_platform *p, const fr_xml_node *node,
                           uint32_t zone, fr_err *err)
{
    static const char *const known[] = {"id", "speed", "core", "pstate",
                                        "coordinates"};
    const char *id = NULL;
    uint32_t point;

    FR_TRY(fr_xml_check_attributes(node, known, N_OF(known), err));
    FR_TRY(fr_xml_get_string(node, "id", &id, err));
    FR_TRY(read_speed(node, err));
    for (const fr_xml_node *c = fr_xml_first(node); c; c = fr_xml_next(c))
        if (!is_ignored(c))
            return refuse(c, err);
    return fr_platform_add_point(p, node, id, FR_POINT_HOST, zone, &point, err);
}

static fr_status read_router(fr_platform *p, const fr_xml_node *node,
                             uint32_t zone, fr_err *err)
{
    static const char *const known[] = {"id", "coordinates"};
    const char *id = NULL;
    uint32_t point;

    FR_TRY(fr_xml_check_attributes(node, known, N_OF(known), err));
    FR_TRY(fr_xml_get_string(node, "id", &id, err));
    return fr_platform_add_point(p, node, id, FR_POINT_ROUTER, zone, &point,
                                 err);
}

static fr_status read_policy(const fr_xml_node *node, bool *is_fatpipe,
                             bool *is_split, fr_err *err)
{
    const char *policy = fr_xml_find(node, "sharing_policy");

    if (!policy || !strcmp(policy, "SHARED"))
        return FR_OK;
    if (!strcmp(policy, "FATPIPE"))
        *is_fatpipe = true;
    else if (!strcmp(policy, "SPLITDUPLEX"))
        *is_split = true;
    else
        return fr_xml_fail(node, err,
                           "sharing_policy '%s' is not SHARED, FATPIPE or "
                           "SPLITDUPLEX",
                           policy);
    return FR_OK;
}

/* <link>, <backbone> */
static fr_status read_link(fr_platform *p, const fr_xml_node *node, fr_err *err)
{
    static const char *const known[] = {"id", "bandwidth", "latency",
                                        "sharing_policy"};
    fr_platform_link link = {0};
    fr_link_name name;
    bool is_split = false;

    FR_TRY(fr_xml_check_attributes(node, known, N_OF(known), err));
    FR_TRY(fr_xml_get_string(node, "id", &link.id, err));
    FR_TRY(fr_xml_get_quantity(node, "bandwidth", FR_QUANTITY_BPS,
                               FR_UNIT_SIMGRID, &link.bandwidth_Bps, err));
    FR_TRY(fr_xml_maybe_quantity(node, "latency", FR_QUANTITY_S,
                                 FR_UNIT_SIMGRID, &link.latency_s, err));
    FR_TRY(read_policy(node, &link.is_fatpipe, &is_split, err));
    for (const fr_xml_node *c = fr_xml_first(node); c; c = fr_xml_next(c))
        if (!is_ignored(c))
            return refuse(c, err);
    return fr_platform_add_link(p, node, &link, is_split, &name, err);
}

static fr_status read_routing(const fr_xml_node *node, fr_zone_kind *out,
                              fr_err *err)
{
    static const char *const names[] = {"Full",          "Floyd", "Dijkstra",
                                        "DijkstraCache", "None",  "Cluster"};
    static const fr_zone_kind kinds[] = {FR_ZONE_FULL,     FR_ZONE_FLOYD,
                                         FR_ZONE_DIJKSTRA, FR_ZONE_DIJKSTRA,
                                         FR_ZONE_NONE,     FR_ZONE_STAR};
    const char *routing = NULL;

    FR_TRY(fr_xml_get_string(node, "routing", &routing, err));
    int i = fr_text_find(routing, names, N_OF(names));
    if (i < 0)
        return fr_xml_fail(node, err,
                           "routing '%s' is not one of Full, Floyd, Dijkstra, "
                           "DijkstraCache, None, Cluster",
                           routing);
    *out = kinds[i];
    return FR_OK;
}

static fr_status declare_zone(fr_platform *p, const fr_xml_node *node,
                              uint32_t parent, fr_err *err);

static fr_status declare(fr_platform *p, const fr_xml_node *node, uint32_t zone,
                         fr_err *err)
{
    if (fr_xml_is(node, "host"))
        return read_host(p, node, zone, err);
    if (fr_xml_is(node, "router"))
        return read_router(p, node, zone, err);
    if (fr_xml_is(node, "link") || fr_xml_is(node, "backbone"))
        return read_link(p, node, err);
    if (fr_xml_is(node, "zone"))
        return declare_zone(p, node, zone, err);
    if (fr_xml_is(node, "cluster"))
        return fr_platform_read_cluster(p, node, zone, err);
    if (is_ignored(node) || fr_xml_is(node, "route") ||
        fr_xml_is(node, "zoneRoute") || fr_xml_is(node, "host_link"))
        return FR_OK;
    return refuse(node, err);
}

static fr_status declare_zone(fr_platform *p, const fr_xml_node *node,
                              uint32_t parent, fr_err *err)
{
    static const char *const known[] = {"id", "routing"};
    const char *id = NULL;
    fr_zone_kind kind = FR_ZONE_NONE;
    uint32_t zone = 0;

    FR_TRY(fr_xml_check_attributes(node, known, N_OF(known), err));
    FR_TRY(fr_xml_get_string(node, "id", &id, err));
    FR_TRY(read_routing(node, &kind, err));
    FR_TRY(fr_platform_add_zone(p, node, id, kind, parent, &zone, err));
    for (const fr_xml_node *c = fr_xml_first(node); c; c = fr_xml_next(c))
        FR_TRY(declare(p, c, zone, err));
    return FR_OK;
}

/* ---- second pass --------------------------------------------------------- */

static fr_status read_link_ctn(const fr_platform *p, const fr_xml_node *node,
                               bool is_back, uint32_t *out, fr_err *err)
{
    static const char *const known[] = {"id", "direction"};
    const char *id = NULL, *direction = fr_xml_find(node, "direction");

    FR_TRY(fr_xml_check_attributes(node, known, N_OF(known), err));
    FR_TRY(fr_xml_get_string(node, "id", &id, err));
    uint32_t i = fr_platform_name_find(p, id);
    if (i == FR_NO_INDEX) {
        const char *near =
            fr_text_nearest(id, p->name_ids.items, p->name_ids.n);
        return fr_xml_fail(node, err, "there is no link '%s'%s%s%s", id,
                           near ? ": did you mean '" : "", near ? near : "",
                           near ? "'?" : "");
    }
    const fr_link_name *name = &p->names.items[i];
    bool is_up = direction && !strcmp(direction, "UP");
    bool is_down = direction && !strcmp(direction, "DOWN");
    if (direction && !is_up && !is_down && strcmp(direction, "NONE") != 0)
        return fr_xml_fail(node, err, "direction '%s' is not UP, DOWN or NONE",
                           direction);
    if (name->is_split && !is_up && !is_down)
        return fr_xml_fail(node, err,
                           "link '%s' is SPLITDUPLEX: it needs a direction, "
                           "UP or DOWN",
                           id);
    *out = is_up != is_back ? name->up : name->down;
    return FR_OK;
}

/* The links of a <route>; `is_back`: from its end, other directions. */
static fr_status read_links(fr_platform *p, const fr_xml_node *node,
                            bool is_back, fr_route *route, fr_err *err)
{
    uint32_t n = 0, i = 0;

    for (const fr_xml_node *c = fr_xml_first(node); c; c = fr_xml_next(c)) {
        if (fr_xml_is(c, "prop"))
            continue;
        if (!fr_xml_is(c, "link_ctn"))
            return fr_xml_fail(c, err, "a route consists of <link_ctn>");
        n++;
    }
    if (n == 0)
        return fr_xml_fail(node, err, "a route needs at least one <link_ctn>");
    route->links = fr_arena_array(&p->arena, n, sizeof *route->links);
    if (!route->links)
        return fr_fail_no_memory(err);
    route->n_links = n;
    for (const fr_xml_node *c = fr_xml_first(node); c; c = fr_xml_next(c)) {
        if (fr_xml_is(c, "prop"))
            continue;
        uint32_t position = is_back ? n - 1 - i : i;
        FR_TRY(read_link_ctn(p, c, is_back, &route->links[position], err));
        i++;
    }
    return FR_OK;
}

static fr_status find_end(const fr_platform *p, const fr_xml_node *node,
                          const char *attribute, uint32_t zone, bool is_zone,
                          uint32_t *out, fr_err *err)
{
    const char *id = NULL;

    FR_TRY(fr_xml_get_string(node, attribute, &id, err));
    uint32_t i = fr_platform_point_find(p, id);
    if (i == FR_NO_INDEX)
        return fr_xml_fail(node, err, "there is no %s '%s'",
                           is_zone ? "zone" : "host or router", id);
    if (p->points.items[i].zone != zone)
        return fr_xml_fail(node, err, "'%s' is not directly in this zone", id);
    if ((p->points.items[i].kind == FR_POINT_ZONE) != is_zone)
        return fr_xml_fail(node, err,
                           is_zone ? "'%s' is no zone: use <route>"
                                   : "'%s' is a zone: use <zoneRoute>",
                           id);
    *out = i;
    return FR_OK;
}

/* A host or router somewhere inside the zone that `point` stands for. */
static fr_status find_gateway(const fr_platform *p, const fr_xml_node *node,
                              const char *attribute, uint32_t point,
                              uint32_t *out, fr_err *err)
{
    const char *id = NULL;

    FR_TRY(fr_xml_get_string(node, attribute, &id, err));
    uint32_t i = fr_platform_point_find(p, id);
    if (i == FR_NO_INDEX || p->points.items[i].kind == FR_POINT_ZONE)
        return fr_xml_fail(node, err, "there is no host or router '%s'", id);
    uint32_t zone = p->points.items[i].zone;
    while (zone != FR_NO_INDEX && p->zones.items[zone].point != point)
        zone = p->zones.items[zone].parent;
    if (zone == FR_NO_INDEX)
        return fr_xml_fail(node, err, "gateway '%s' is not inside zone '%s'",
                           id, p->points.items[point].id);
    *out = i;
    return FR_OK;
}

/* "YES" or "NO"; SimGrid's files say so, older ones in small letters. */
static fr_status read_symmetrical(const fr_xml_node *node, bool *out,
                                  fr_err *err)
{
    const char *text = fr_xml_find(node, "symmetrical");

    *out = !text || !strcmp(text, "YES") || !strcmp(text, "yes");
    if (!*out && strcmp(text, "NO") != 0 && strcmp(text, "no") != 0)
        return fr_xml_fail(node, err, "symmetrical '%s' is not YES or NO",
                           text);
    return FR_OK;
}

static fr_status read_route(fr_platform *p, const fr_xml_node *node,
                            uint32_t zone, bool is_zone, fr_err *err)
{
    static const char *const known[] = {"src", "dst", "symmetrical", "gw_src",
                                        "gw_dst"};
    fr_route there = {.gateway_from = FR_NO_INDEX, .gateway_to = FR_NO_INDEX};
    bool is_symmetrical = true;

    FR_TRY(fr_xml_check_attributes(node, known, is_zone ? 5 : 3, err));
    FR_TRY(read_symmetrical(node, &is_symmetrical, err));
    FR_TRY(find_end(p, node, "src", zone, is_zone, &there.from, err));
    FR_TRY(find_end(p, node, "dst", zone, is_zone, &there.to, err));
    if (is_zone) {
        FR_TRY(find_gateway(p, node, "gw_src", there.from, &there.gateway_from,
                            err));
        FR_TRY(
            find_gateway(p, node, "gw_dst", there.to, &there.gateway_to, err));
    }
    FR_TRY(read_links(p, node, false, &there, err));
    FR_TRY(fr_platform_add_route(p, node, zone, &there, err));
    if (!is_symmetrical || there.from == there.to)
        return FR_OK;
    fr_route back = {.from = there.to,
                     .to = there.from,
                     .gateway_from = there.gateway_to,
                     .gateway_to = there.gateway_from};
    FR_TRY(read_links(p, node, true, &back, err));
    return fr_platform_add_route(p, node, zone, &back, err);
}

static fr_status connect_zone(fr_platform *p, const fr_xml_node *node,
                              fr_err *err)
{
    uint32_t point = fr_platform_point_find(p, fr_xml_find(node, "id"));
    uint32_t zone = p->points.items[point].inside;
    fr_zone_kind kind = p->zones.items[zone].kind;

    for (const fr_xml_node *c = fr_xml_first(node); c; c = fr_xml_next(c)) {
        bool is_zone = fr_xml_is(c, "zoneRoute");
        if (fr_xml_is(c, "zone"))
            FR_TRY(connect_zone(p, c, err));
        else if (kind == FR_ZONE_NONE && (is_zone || fr_xml_is(c, "route")))
            return fr_xml_fail(c, err, "a zone with routing None has none");
        else if (kind != FR_ZONE_STAR && (is_zone || fr_xml_is(c, "route")))
            FR_TRY(read_route(p, c, zone, is_zone, err));
        else if (is_zone || fr_xml_is(c, "route"))
            return refuse(c, err);
        else if (kind != FR_ZONE_STAR &&
                 (fr_xml_is(c, "host_link") || fr_xml_is(c, "backbone")))
            return fr_xml_fail(c, err,
                               "<%s> needs a zone with routing "
                               "Cluster",
                               fr_xml_name(c));
    }
    if (kind == FR_ZONE_STAR)
        return fr_platform_read_spokes(p, node, zone, err);
    return FR_OK;
}

/* ---- the file ------------------------------------------------------------ */

static fr_status read_config(fr_platform *p, const fr_xml_node *config,
                             fr_err *err)
{
    for (const fr_xml_node *c = fr_xml_first_named(config, "prop"); c;
         c = fr_xml_next_named(c, "prop")) {
        const char *id = NULL;
        FR_TRY(fr_xml_get_string(c, "id", &id, err));
        if (!strcmp(id, "network/loopback-bw"))
            FR_TRY(fr_xml_get_quantity(c, "value", FR_QUANTITY_BPS,
                                       FR_UNIT_SIMGRID, &p->loopback_Bps, err));
        else if (!strcmp(id, "network/loopback-lat"))
            FR_TRY(fr_xml_get_quantity(c, "value", FR_QUANTITY_S,
                                       FR_UNIT_SIMGRID, &p->loopback_s, err));
    }
    return FR_OK;
}

static fr_status add_loopback(fr_platform *p, const fr_xml_node *root,
                              fr_err *err)
{
    fr_platform_link link = {.id = "__loopback__",
                             .bandwidth_Bps = p->loopback_Bps,
                             .latency_s = p->loopback_s,
                             .is_fatpipe = true};
    fr_link_name name;

    FR_TRY(fr_platform_add_link(p, root, &link, false, &name, err));
    p->loopback_link = name.up;
    return FR_OK;
}

static fr_status read_platform(fr_platform *p, const fr_xml *xml, fr_err *err)
{
    const fr_xml_node *root = fr_xml_root(xml), *top = NULL;
    const char *version = NULL;

    if (!fr_xml_is(root, "platform"))
        return fr_xml_fail(root, err, "<%s> is no SimGrid <platform>",
                           fr_xml_name(root));
    FR_TRY(fr_xml_get_string(root, "version", &version, err));
    if (strcmp(version, "4") != 0 && strcmp(version, "4.0") != 0 &&
        strcmp(version, "4.1") != 0)
        return fr_xml_fail(root, err, "platform version '%s' is not 4 or 4.1",
                           version);
    for (const fr_xml_node *c = fr_xml_first(root); c; c = fr_xml_next(c)) {
        if (fr_xml_is(c, "config"))
            FR_TRY(read_config(p, c, err));
        else if (!fr_xml_is(c, "zone") && !fr_xml_is(c, "cluster"))
            FR_TRY(is_ignored(c) ? FR_OK : refuse(c, err));
        else if (top)
            return fr_xml_fail(c, err,
                               "a second outermost zone; put both "
                               "into one");
        else
            top = c;
    }
    if (!top)
        return fr_xml_fail(root, err, "the platform has no zone");
    FR_TRY(add_loopback(p, root, err));
    FR_TRY(declare(p, top, FR_NO_INDEX, err));
    return fr_xml_is(top, "zone") ? connect_zone(p, top, err) : FR_OK;
}

/* The platform that the document describes, which is destroyed. */
static fr_status take_xml(fr_xml *xml, fr_platform **out, fr_err *err)
{
    fr_platform *p = calloc(1, sizeof *p);
    fr_status status;

    if (p == NULL) {
        status = fr_fail_no_memory(err);
        goto out_xml;
    }
    fr_arena_init(&p->arena);
    p->loopback_Bps = 10e9; /* network/loopback-bw of SimGrid 3.32 */
    status = read_platform(p, xml, err);
    if (status == FR_OK)
        *out = p;
    else
        fr_platform_destroy(p);
out_xml:
    fr_xml_destroy(xml);
    return status;
}

fr_status fr_platform_load(const char *path, fr_platform **out, fr_err *err)
{
    fr_xml *xml = NULL;
    FR_TRY(fr_xml_load(path, &xml, err));
    return take_xml(xml, out, err);
}

fr_status fr_platform_parse(const char *name, const char *text, size_t n_text,
                            fr_platform **out, fr_err *err)
{
    fr_xml *xml = NULL;
    FR_TRY(fr_xml_parse(name, text, n_text, &xml, err));
    return take_xml(xml, out, err);
}
