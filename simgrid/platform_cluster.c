/*
 * platform_cluster.c: <cluster> and <zone routing="Cluster">: hosts around a
 * middle, each with its own link, perhaps a backbone in the middle; or, with
 * a topology, the hosts of a torus, a fat tree or a dragonfly.
 */
#include "core/base/text.h"
#include "simgrid/platform_state.h"

#include <stdlib.h>
#include <string.h>

#define N_OF(array) (sizeof(array) / sizeof *(array))

enum { MAX_HOSTS = 1 << 20 };

typedef struct cluster_text {
    const char *id, *prefix, *suffix;
    double bw_Bps, lat_s, bb_Bps, bb_s, loopback_Bps, loopback_s, limiter_Bps;
    bool is_split, is_fatpipe, is_bb_fatpipe;
    fr_zone_kind kind;
} cluster_text;

/* Parses a list of numbers like "0-15,20,30-31", which keeps its order. */
static fr_status read_radical(const fr_xml_node *node, fr_u32_list *out,
                              fr_err *err)
{
    const char *text = NULL;

    FR_TRY(fr_xml_get_string(node, "radical", &text, err));
    for (const char *s = text;; s++) {
        char *end;
        unsigned long long first, last;
        if (*s < '0' || *s > '9')
            return fr_xml_fail(node, err,
                               "radical '%s' is not like 0-15,20,30-31", text);
        first = last = strtoull(s, &end, 10);
        if (*end == '-' && end[1] >= '0' && end[1] <= '9')
            last = strtoull(end + 1, &end, 10);
        if ((*end != ',' && *end != '\0') || last < first)
            return fr_xml_fail(node, err,
                               "radical '%s' is not like 0-15,20,30-31", text);
        if (last > INT32_MAX || last - first + out->n >= MAX_HOSTS)
            return fr_xml_fail(node, err, "radical '%s': more than %d hosts",
                               text, MAX_HOSTS);
        for (unsigned long long i = first; i <= last; i++)
            FR_TRY_PUSH(out, (uint32_t)i, err);
        if (*end == '\0')
            return FR_OK;
        s = end;
    }
}

static fr_status read_cluster_policies(const fr_xml_node *node, cluster_text *t,
                                       fr_err *err)
{
    static const char *const policies[] = {"SPLITDUPLEX", "SHARED", "FATPIPE",
                                           "FULLDUPLEX"};
    const char *policy = fr_xml_find(node, "sharing_policy");
    int i = policy ? fr_text_find(policy, policies, N_OF(policies)) : 0;

    if (i < 0)
        return fr_xml_fail(node, err,
                           "sharing_policy '%s' is not SHARED, "
                           "SPLITDUPLEX or FATPIPE",
                           policy);
    t->is_split = i == 0 || i == 3;
    t->is_fatpipe = i == 2;
    policy = fr_xml_find(node, "bb_sharing_policy");
    i = policy ? fr_text_find(policy, policies + 1, 2) : 0;
    if (i < 0)
        return fr_xml_fail(node, err,
                           "bb_sharing_policy '%s' is not SHARED or FATPIPE",
                           policy);
    t->is_bb_fatpipe = i == 1;
    return FR_OK;
}

static fr_status read_numbers(const fr_xml_node *node, cluster_text *t,
                              fr_err *err)
{
    const unsigned zero = FR_UNIT_SIMGRID | FR_ZERO_IS_FINE;

    FR_TRY(fr_xml_get_quantity(node, "bw", FR_QUANTITY_BPS, FR_UNIT_SIMGRID,
                               &t->bw_Bps, err));
    FR_TRY(fr_xml_get_quantity(node, "lat", FR_QUANTITY_S, FR_UNIT_SIMGRID,
                               &t->lat_s, err));
    FR_TRY(fr_xml_maybe_quantity(node, "bb_bw", FR_QUANTITY_BPS, zero,
                                 &t->bb_Bps, err));
    FR_TRY(fr_xml_maybe_quantity(node, "bb_lat", FR_QUANTITY_S, zero, &t->bb_s,
                                 err));
    FR_TRY(fr_xml_maybe_quantity(node, "loopback_bw", FR_QUANTITY_BPS, zero,
                                 &t->loopback_Bps, err));
    FR_TRY(fr_xml_maybe_quantity(node, "loopback_lat", FR_QUANTITY_S, zero,
                                 &t->loopback_s, err));
    FR_TRY(fr_xml_maybe_quantity(node, "limiter_link", FR_QUANTITY_BPS, zero,
                                 &t->limiter_Bps, err));
    if (t->bb_s > 0.0 && t->bb_Bps <= 0.0)
        return fr_xml_fail(node, err, "bb_lat needs a bb_bw");
    if (t->loopback_s > 0.0 && t->loopback_Bps <= 0.0)
        return fr_xml_fail(node, err, "loopback_lat needs a loopback_bw");
    return FR_OK;
}

static fr_status read_text(const fr_xml_node *node, cluster_text *t,
                           fr_err *err)
{
    static const char *const known[] = {"id",           "prefix",
                                        "suffix",       "radical",
                                        "speed",        "core",
                                        "bw",           "lat",
                                        "bb_bw",        "bb_lat",
                                        "router_id",    "sharing_policy",
                                        "topology",     "topo_parameters",
                                        "loopback_bw",  "loopback_lat",
                                        "limiter_link", "bb_sharing_policy"};
    static const char *const topologies[] = {"FLAT", "TORUS", "FAT_TREE",
                                             "DRAGONFLY"};
    static const fr_zone_kind kinds[] = {FR_ZONE_STAR, FR_ZONE_TORUS,
                                         FR_ZONE_FAT_TREE, FR_ZONE_DRAGONFLY};
    const char *topology = fr_xml_find(node, "topology");
    int i = topology ? fr_text_find(topology, topologies, N_OF(topologies)) : 0;

    FR_TRY(fr_xml_check_attributes(node, known, N_OF(known), err));
    if (i < 0)
        return fr_xml_fail(node, err,
                           "topology '%s' is not FLAT, TORUS, "
                           "FAT_TREE or DRAGONFLY",
                           topology);
    t->kind = kinds[i];
    FR_TRY(fr_xml_get_string(node, "id", &t->id, err));
    FR_TRY(fr_xml_get_string(node, "prefix", &t->prefix, err));
    FR_TRY(fr_xml_get_string(node, "suffix", &t->suffix, err));
    FR_TRY(read_numbers(node, t, err));
    return read_cluster_policies(node, t, err);
}

/* ---- making -------------------------------------------------------------- */

typedef struct cluster_maker {
    fr_platform *p;
    const fr_xml_node *node;
    const cluster_text *t;
    uint32_t zone;
    fr_err *err;
} cluster_maker;

static fr_status make_link(const cluster_maker *c, const char *id,
                           double bandwidth_Bps, double latency_s,
                           bool is_fatpipe, bool is_split, fr_link_name *out)
{
    fr_platform_link link = {.id = id,
                             .bandwidth_Bps = bandwidth_Bps,
                             .latency_s = latency_s,
                             .is_fatpipe = is_fatpipe};
    return fr_platform_add_link(c->p, c->node, &link, is_split, out, c->err);
}

static fr_status name_it(const cluster_maker *c, char **out, const char *format,
                         uint32_t number)
{
    *out = fr_arena_printf(&c->p->arena, format, c->t->id, number);
    return *out ? FR_OK : fr_fail_no_memory(c->err);
}

static bool has_loopback(const cluster_text *t)
{
    return t->loopback_Bps > 0.0;
}

static fr_status make_loopback(const cluster_maker *c, uint32_t number,
                               uint32_t *out)
{
    char *id = NULL;
    fr_link_name name;

    FR_TRY(name_it(c, &id, "%s_link_%u_loopback", number));
    FR_TRY(make_link(c, id, c->t->loopback_Bps, c->t->loopback_s, true, false,
                     &name));
    *out = name.up;
    return FR_OK;
}

static fr_status make_limiter(const cluster_maker *c, uint32_t number,
                              uint32_t *out)
{
    char *id = NULL;
    fr_link_name name;

    FR_TRY(name_it(c, &id, "%s_link_%u_limiter", number));
    FR_TRY(make_link(c, id, c->t->limiter_Bps, 0.0, false, false, &name));
    *out = name.up;
    return FR_OK;
}

static fr_status make_spoke(const cluster_maker *c, uint32_t number,
                            const fr_link_name *backbone, fr_spoke *spoke)
{
    fr_link_name own = {0};
    char *id = NULL;
    uint32_t up[3] = {0}, n = 0;

    spoke->up = fr_arena_array(&c->p->arena, 3, sizeof *spoke->up);
    spoke->down = fr_arena_array(&c->p->arena, 3, sizeof *spoke->down);
    spoke->loopback = fr_arena_array(&c->p->arena, 1, sizeof *spoke->loopback);
    if (!spoke->up || !spoke->down || !spoke->loopback)
        return fr_fail_no_memory(c->err);
    if (has_loopback(c->t)) {
        FR_TRY(make_loopback(c, number, spoke->loopback));
        spoke->n_loopback = 1;
    }
    if (c->t->limiter_Bps > 0.0)
        FR_TRY(make_limiter(c, number, &up[n++]));
    FR_TRY(name_it(c, &id, "%s_link_%u", number));
    /* SimGrid makes a shared link of FATPIPE here too. */
    FR_TRY(make_link(c, id, c->t->bw_Bps, c->t->lat_s, false, c->t->is_split,
                     &own));
    up[n++] = own.up;
    if (backbone)
        up[n++] = backbone->up;
    spoke->n_up = spoke->n_down = n;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t link = up[n - 1 - i];
        spoke->up[i] = up[i];
        spoke->down[i] = link == own.up ? own.down : link;
    }
    return FR_OK;
}

static fr_status make_hosts(const cluster_maker *c, const fr_u32_list *radical)
{
    for (size_t i = 0; i < radical->n; i++) {
        uint32_t point;
        char *id = fr_arena_printf(&c->p->arena, "%s%u%s", c->t->prefix,
                                   radical->items[i], c->t->suffix);
        if (!id)
            return fr_fail_no_memory(c->err);
        FR_TRY(fr_platform_add_point(c->p, c->node, id, FR_POINT_HOST, c->zone,
                                     &point, c->err));
    }
    return FR_OK;
}

static fr_status make_flat(const cluster_maker *c, const fr_u32_list *radical)
{
    const cluster_text *t = c->t;
    const char *router = fr_xml_find(c->node, "router_id");
    fr_link_name backbone = {0};
    uint32_t point;

    if (!router || !*router)
        router = fr_arena_printf(&c->p->arena, "%s%s_router%s", t->prefix,
                                 t->id, t->suffix);
    /* There is one point more than hosts: the router, without a link of its
     * own. */
    fr_spoke *spokes =
        fr_arena_array(&c->p->arena, radical->n + 1, sizeof *spokes);
    char *id = fr_arena_printf(&c->p->arena, "%s_backbone", t->id);
    if (!router || !spokes || !id)
        return fr_fail_no_memory(c->err);
    if (t->bb_Bps > 0.0)
        FR_TRY(make_link(c, id, t->bb_Bps, t->bb_s, t->is_bb_fatpipe, false,
                         &backbone));
    FR_TRY(make_hosts(c, radical));
    for (size_t i = 0; i < radical->n; i++)
        FR_TRY(make_spoke(c, radical->items[i],
                          t->bb_Bps > 0.0 ? &backbone : NULL, &spokes[i]));
    c->p->zones.items[c->zone].spokes = spokes;
    return fr_platform_add_point(c->p, c->node, router, FR_POINT_ROUTER,
                                 c->zone, &point, c->err);
}

static fr_status make_private_links(const cluster_maker *c,
                                    const fr_u32_list *radical,
                                    fr_topology *topology)
{
    fr_arena *arena = &c->p->arena;
    size_t n_switches = fr_topology_n_switches(c->t->kind, topology);

    if (has_loopback(c->t)) {
        topology->loopback = fr_arena_array(arena, radical->n, 4);
        if (!topology->loopback)
            return fr_fail_no_memory(c->err);
        for (size_t i = 0; i < radical->n; i++)
            FR_TRY(make_loopback(c, radical->items[i], &topology->loopback[i]));
    }
    if (c->t->limiter_Bps <= 0.0)
        return FR_OK;
    topology->limiter = fr_arena_array(arena, radical->n + n_switches, 4);
    if (!topology->limiter)
        return fr_fail_no_memory(c->err);
    topology->switch_limiter = topology->limiter + radical->n;
    for (size_t i = 0; i < radical->n + n_switches; i++)
        FR_TRY(make_limiter(c, (uint32_t)i, &topology->limiter[i]));
    return FR_OK;
}

static fr_status make_topology(const cluster_maker *c,
                               const fr_u32_list *radical)
{
    const cluster_text *t = c->t;
    const char *parameters = NULL;
    fr_topology topology = {0};
    fr_err inner = {0};

    FR_TRY(fr_xml_get_string(c->node, "topo_parameters", &parameters, c->err));
    if (fr_topology_parse(t->kind, parameters, &topology, &inner) != FR_OK ||
        fr_topology_count(t->kind, &topology, &inner) != FR_OK)
        return fr_xml_fail(c->node, c->err, "topo_parameters '%s': %s",
                           parameters, inner.text);
    if (topology.n_hosts != radical->n)
        return fr_xml_fail(c->node, c->err,
                           "topo_parameters '%s' ask for %u hosts, radical "
                           "names %zu",
                           parameters, topology.n_hosts, radical->n);
    topology.cables = fr_arena_array(&c->p->arena, topology.n_cables,
                                     sizeof *topology.cables);
    if (!topology.cables)
        return fr_fail_no_memory(c->err);
    FR_TRY(make_hosts(c, radical));
    FR_TRY(make_private_links(c, radical, &topology));
    for (uint32_t i = 0; i < topology.n_cables; i++) {
        char *id = NULL;
        FR_TRY(name_it(c, &id, "%s_cable_%u", i));
        FR_TRY(make_link(
            c, id, t->bw_Bps * fr_topology_cable_scale(t->kind, &topology, i),
            t->lat_s, false, t->is_split, &topology.cables[i]));
    }
    c->p->zones.items[c->zone].topology = topology;
    return FR_OK;
}

fr_status fr_platform_read_cluster(fr_platform *p, const fr_xml_node *node,
                                   uint32_t parent, fr_err *err)
{
    cluster_text t = {0};
    fr_u32_list radical = {0};
    cluster_maker c = {.p = p, .node = node, .t = &t, .err = err};
    fr_status status;

    FR_TRY(read_text(node, &t, err));
    FR_TRY(fr_platform_add_zone(p, node, t.id, t.kind, parent, &c.zone, err));
    FR_TRY_GOTO(status, read_radical(node, &radical, err), out);
    status = t.kind == FR_ZONE_STAR ? make_flat(&c, &radical)
                                    : make_topology(&c, &radical);
out:
    fr_vec_release(&radical);
    return status;
}

/* ---- zone routing="Cluster" ---------------------------------------------- */

static fr_status find_link(const fr_platform *p, const fr_xml_node *node,
                           const char *attribute, bool is_up, uint32_t *out,
                           fr_err *err)
{
    const char *id = NULL;

    FR_TRY(fr_xml_get_string(node, attribute, &id, err));
    uint32_t i = fr_platform_name_find(p, id);
    if (i == FR_NO_INDEX)
        return fr_xml_fail(node, err, "there is no link '%s'", id);
    *out = is_up ? p->names.items[i].up : p->names.items[i].down;
    return FR_OK;
}

static fr_status read_host_link(fr_platform *p, const fr_xml_node *node,
                                uint32_t zone, uint32_t backbone, fr_err *err)
{
    static const char *const known[] = {"id", "up", "down"};
    const char *id = NULL;
    uint32_t n = backbone == FR_NO_INDEX ? 1 : 2;

    FR_TRY(fr_xml_check_attributes(node, known, N_OF(known), err));
    FR_TRY(fr_xml_get_string(node, "id", &id, err));
    uint32_t i = fr_platform_point_find(p, id);
    if (i == FR_NO_INDEX || p->points.items[i].zone != zone)
        return fr_xml_fail(node, err, "there is no host '%s' in this zone", id);
    fr_spoke *spoke = &p->zones.items[zone].spokes[p->points.items[i].rank];
    if (spoke->n_up)
        return fr_xml_fail(node, err, "a second <host_link> of '%s'", id);
    spoke->up = fr_arena_array(&p->arena, n, sizeof *spoke->up);
    spoke->down = fr_arena_array(&p->arena, n, sizeof *spoke->down);
    if (!spoke->up || !spoke->down)
        return fr_fail_no_memory(err);
    spoke->n_up = spoke->n_down = n;
    FR_TRY(find_link(p, node, "up", true, &spoke->up[0], err));
    FR_TRY(find_link(p, node, "down", false, &spoke->down[n - 1], err));
    if (n == 2)
        spoke->up[1] = spoke->down[0] = backbone;
    return FR_OK;
}

fr_status fr_platform_read_spokes(fr_platform *p, const fr_xml_node *node,
                                  uint32_t zone, fr_err *err)
{
    const fr_xml_node *backbone = fr_xml_first_named(node, "backbone");
    uint32_t link = FR_NO_INDEX;

    if (backbone && fr_xml_next_named(backbone, "backbone"))
        return fr_xml_fail(fr_xml_next_named(backbone, "backbone"), err,
                           "a second <backbone>");
    if (backbone)
        FR_TRY(find_link(p, backbone, "id", true, &link, err));
    fr_zone *z = &p->zones.items[zone];
    z->spokes = fr_arena_array(&p->arena, z->points.n, sizeof *z->spokes);
    if (!z->spokes)
        return fr_fail_no_memory(err);
    for (const fr_xml_node *c = fr_xml_first_named(node, "host_link"); c;
         c = fr_xml_next_named(c, "host_link"))
        FR_TRY(read_host_link(p, c, zone, link, err));
    return FR_OK;
}
