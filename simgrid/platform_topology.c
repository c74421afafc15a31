/*
 * platform_topology.c: which cables a torus, a fat tree or a dragonfly has
 * and which of them a message takes; numbering and choices are SimGrid's
 * (its documentation, "Platform examples", and its behaviour).
 */
#include "core/base/text.h"
#include "simgrid/platform_state.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_HOSTS = 1 << 20, MAX_CABLES = 1 << 24 };
enum { GROUPS, CHASSIS, BLADES, NODES };
enum { BLUE, BLACK, GREEN };

/* ---- parameters ---------------------------------------------------------- */

/* Parses numbers like "4,4", all at least 1, into out[*n]. */
static fr_status parse_row(char *text, uint32_t *out, uint32_t *n, fr_err *err)
{
    char *fields[FR_TOPOLOGY_LEVELS];
    size_t n_fields = fr_text_split(text, ',', fields, FR_TOPOLOGY_LEVELS);

    if (n_fields > FR_TOPOLOGY_LEVELS)
        return fr_fail(err, FR_INPUT, "more than %d levels",
                       FR_TOPOLOGY_LEVELS);
    for (size_t i = 0; i < n_fields; i++) {
        int64_t value = 0;
        FR_TRY(fr_parse_i64(fr_text_trim(fields[i]), &value, err));
        if (value < 1 || value > MAX_HOSTS)
            return fr_fail(err, FR_INPUT, "'%s' is not between 1 and %d",
                           fields[i], MAX_HOSTS);
        out[i] = (uint32_t)value;
    }
    *n = (uint32_t)n_fields;
    return FR_OK;
}

static fr_status parse_fat_tree(char **parts, size_t n_parts, fr_topology *out,
                                fr_err *err)
{
    uint32_t n = 0, levels = 0, n_a = 0, n_b = 0, n_c = 0;

    if (n_parts != 4)
        return fr_fail(err, FR_INPUT,
                       "expected levels;children;parents;"
                       "cables such as 2;4,4;1,2;1,2");
    FR_TRY(parse_row(parts[0], &levels, &n, err));
    FR_TRY(parse_row(parts[1], out->a, &n_a, err));
    FR_TRY(parse_row(parts[2], out->b, &n_b, err));
    FR_TRY(parse_row(parts[3], out->c, &n_c, err));
    if (n != 1 || n_a != levels || n_b != levels || n_c != levels)
        return fr_fail(err, FR_INPUT,
                       "expected one number for each of the "
                       "levels in each list");
    out->n_levels = levels;
    return FR_OK;
}

static fr_status parse_dragonfly(char **parts, size_t n_parts, fr_topology *out,
                                 fr_err *err)
{
    uint32_t pair[FR_TOPOLOGY_LEVELS], n = 0;

    if (n_parts != 4)
        return fr_fail(err, FR_INPUT,
                       "expected groups,cables;chassis,cables;"
                       "blades,cables;nodes");
    for (int i = GROUPS; i <= BLADES; i++) {
        FR_TRY(parse_row(parts[i], pair, &n, err));
        if (n != 2)
            return fr_fail(err, FR_INPUT,
                           "expected groups,cables;chassis,"
                           "cables;blades,cables;nodes");
        out->a[i] = pair[0];
        out->b[i] = pair[1];
    }
    FR_TRY(parse_row(parts[3], pair, &n, err));
    if (n != 1)
        return fr_fail(err, FR_INPUT, "expected one number of nodes");
    out->a[NODES] = pair[0];
    /* Group n hangs on blade n of the first chassis of each other group. */
    if (out->a[GROUPS] > out->a[BLADES])
        return fr_fail(err, FR_INPUT, "more groups than blades in a chassis");
    return FR_OK;
}

fr_status fr_topology_parse(fr_zone_kind kind, const char *text,
                            fr_topology *out, fr_err *err)
{
    char copy[256], *parts[4];

    if (!fr_text_copy(copy, sizeof copy, text))
        return fr_fail(err, FR_INPUT, "too long");
    if (kind == FR_ZONE_TORUS)
        return parse_row(copy, out->a, &out->n_levels, err);
    size_t n_parts = fr_text_split(copy, ';', parts, 4);
    return kind == FR_ZONE_FAT_TREE ? parse_fat_tree(parts, n_parts, out, err)
                                    : parse_dragonfly(parts, n_parts, out, err);
}

/* ---- numbers of things --------------------------------------------------- */

/* Base of digit j of a position on a level of a fat tree. */
static uint64_t base_of(const fr_topology *t, uint32_t level, uint32_t j)
{
    return j < level ? t->b[j] : t->a[j];
}

static uint64_t n_on_level(const fr_topology *t, uint32_t level)
{
    uint64_t n = 1;

    for (uint32_t j = 0; j < t->n_levels && n <= MAX_CABLES; j++)
        n *= base_of(t, level, j);
    return n;
}

static uint64_t n_routers(const fr_topology *t)
{
    return (uint64_t)t->a[GROUPS] * t->a[CHASSIS] * t->a[BLADES];
}

uint32_t fr_topology_n_switches(fr_zone_kind kind, const fr_topology *t)
{
    uint64_t n = 0;

    if (kind == FR_ZONE_DRAGONFLY)
        return (uint32_t)n_routers(t);
    for (uint32_t l = 1; kind == FR_ZONE_FAT_TREE && l <= t->n_levels; l++)
        n += n_on_level(t, l);
    return (uint32_t)n;
}

static uint64_t n_green(const fr_topology *t)
{
    uint64_t b = t->a[BLADES];
    return (uint64_t)t->a[GROUPS] * t->a[CHASSIS] * (b * (b - 1) / 2);
}

static uint64_t n_black(const fr_topology *t)
{
    uint64_t c = t->a[CHASSIS];
    return (uint64_t)t->a[GROUPS] * t->a[BLADES] * (c * (c - 1) / 2);
}

static void count_dragonfly(const fr_topology *t, uint64_t *n_hosts,
                            uint64_t *n_cables)
{
    uint64_t g = t->a[GROUPS];

    *n_hosts = n_routers(t) <= MAX_CABLES ? n_routers(t) * t->a[NODES]
                                          : MAX_CABLES + 1;
    *n_cables = *n_hosts + g * (g - 1) / 2;
    if (*n_hosts <= MAX_HOSTS)
        *n_cables += n_green(t) + n_black(t);
}

fr_status fr_topology_count(fr_zone_kind kind, fr_topology *t, fr_err *err)
{
    uint64_t n_hosts = 1, n_cables = 0;

    if (kind == FR_ZONE_TORUS) {
        for (uint32_t j = 0; j < t->n_levels && n_hosts <= MAX_HOSTS; j++)
            n_hosts *= t->a[j];
        n_cables = n_hosts * t->n_levels;
    } else if (kind == FR_ZONE_FAT_TREE) {
        n_hosts = n_on_level(t, 0);
        for (uint32_t level = 0; level < t->n_levels; level++) {
            uint64_t n = n_on_level(t, level) * t->b[level];
            n_cables += n > MAX_CABLES ? MAX_CABLES + 1 : n * t->c[level];
        }
    } else {
        count_dragonfly(t, &n_hosts, &n_cables);
    }
    if (n_hosts > MAX_HOSTS || n_cables > MAX_CABLES)
        return fr_fail(err, FR_INPUT, "more than %d hosts or %d cables",
                       MAX_HOSTS, MAX_CABLES);
    t->n_hosts = (uint32_t)n_hosts;
    t->n_cables = (uint32_t)n_cables;
    return FR_OK;
}

double fr_topology_cable_scale(fr_zone_kind kind, const fr_topology *t,
                               uint32_t i)
{
    if (kind != FR_ZONE_DRAGONFLY || i < t->n_hosts)
        return 1.0;
    if (i < t->n_hosts + n_green(t))
        return t->b[GREEN];
    if (i < t->n_hosts + n_green(t) + n_black(t))
        return t->b[BLACK];
    return t->b[BLUE];
}

/* ---- routes -------------------------------------------------------------- */

typedef struct trip {
    const fr_platform *p;
    const fr_topology *t;
    fr_platform_path *path;
    fr_err *err;
} trip;

static fr_status take(const trip *r, uint64_t cable, bool is_up)
{
    const fr_link_name *name = &r->t->cables[cable];
    return fr_platform_append(r->p, r->path, is_up ? name->up : name->down,
                              r->err);
}

static fr_status limit(const trip *r, uint32_t host)
{
    if (!r->t->limiter)
        return FR_OK;
    return fr_platform_append(r->p, r->path, r->t->limiter[host], r->err);
}

/* Goes dimension after dimension, in each the shorter direction. */
static fr_status walk_torus(const trip *r, uint32_t from, uint32_t to)
{
    const fr_topology *t = r->t;
    uint32_t at = from, product = 1;

    for (uint32_t j = 0; j < t->n_levels; product *= t->a[j], j++) {
        uint32_t size = t->a[j], mine = from / product % size;
        uint32_t target = to / product % size;
        bool is_up = (target > mine && target <= mine + size / 2) ||
                     (mine > size / 2 && (mine + size / 2) % size >= target);
        while (at / product % size != target) {
            uint32_t x = at / product % size;
            uint32_t next_x = is_up ? (x + 1) % size : (x + size - 1) % size;
            uint32_t next = at - x * product + next_x * product;
            FR_TRY(limit(r, at));
            FR_TRY(take(r, (uint64_t)(is_up ? at : next) * t->n_levels + j,
                        is_up));
            at = next;
        }
    }
    return limit(r, to);
}

typedef struct tree_node {
    uint32_t level, digit[FR_TOPOLOGY_LEVELS];
} tree_node;

static uint64_t position_of(const fr_topology *t, const tree_node *node)
{
    uint64_t position = 0;

    for (uint32_t j = t->n_levels; j-- > 0;)
        position = position * base_of(t, node->level, j) + node->digit[j];
    return position;
}

/* Cable `parallel` from a node to the parent with that digit. */
static uint64_t tree_cable(const fr_topology *t, const tree_node *child,
                           uint32_t parent_digit, uint32_t parallel)
{
    uint64_t first = 0, l = child->level;

    for (uint32_t level = 0; level < l; level++)
        first += n_on_level(t, level) * t->b[level] * t->c[level];
    return first + (position_of(t, child) * t->b[l] + parent_digit) * t->c[l] +
           parallel;
}

static fr_status limit_node(const trip *r, const tree_node *node)
{
    uint64_t i = position_of(r->t, node);

    if (node->level == 0)
        return limit(r, (uint32_t)i);
    if (!r->t->switch_limiter)
        return FR_OK;
    for (uint32_t level = 1; level < node->level; level++)
        i += n_on_level(r->t, level);
    return fr_platform_append(r->p, r->path, r->t->switch_limiter[i], r->err);
}

static bool is_above(const fr_topology *t, const tree_node *node,
                     const tree_node *host)
{
    for (uint32_t j = node->level; j < t->n_levels; j++)
        if (node->digit[j] != host->digit[j])
            return false;
    return node->level > 0;
}

/* Up by d-mod-k (Zahavi et al., 2010): the destination picks the port.  As
 * SimGrid 3.32 does; later versions divide by the parallel cables too. */
static fr_status climb(const trip *r, tree_node *at, const tree_node *host,
                       uint32_t to)
{
    const fr_topology *t = r->t;

    while (!is_above(t, at, host)) {
        uint32_t l = at->level, d = to;
        for (uint32_t i = 0; i < l; i++)
            d /= t->b[i];
        d %= t->b[l] * t->c[l];
        FR_TRY(limit_node(r, at));
        FR_TRY(take(r, tree_cable(t, at, d % t->b[l], d / t->b[l]), true));
        at->digit[l] = d % t->b[l];
        at->level++;
    }
    return FR_OK;
}

/*
 * Goes down; among parallel cables the source picks.  Ports are numbered child
 * digit + parallel * children, and SimGrid goes on looking at the port after
 * the last one taken before it starts at the first.
 */
static fr_status descend(const trip *r, tree_node *at, const tree_node *host,
                         uint32_t from)
{
    const fr_topology *t = r->t;
    uint32_t port = 0;
    bool is_fresh = true;

    while (at->level > 0) {
        uint32_t l = at->level - 1, n = t->a[l];
        if (is_fresh)
            port = from % t->c[l] * n;
        while (port < n * t->c[l] && port % n != host->digit[l])
            port++;
        is_fresh = port >= n * t->c[l];
        if (is_fresh)
            continue;
        tree_node child = *at;
        uint32_t parent_digit = at->digit[l];
        child.level = l;
        child.digit[l] = host->digit[l];
        FR_TRY(take(r, tree_cable(t, &child, parent_digit, port / n), false));
        FR_TRY(limit_node(r, at));
        *at = child;
        port++;
    }
    return limit_node(r, at);
}

static fr_status walk_fat_tree(const trip *r, uint32_t from, uint32_t to)
{
    tree_node at = {0}, host = {0};
    uint32_t a = from, b = to;

    for (uint32_t j = 0; j < r->t->n_levels; j++) {
        at.digit[j] = a % r->t->a[j];
        host.digit[j] = b % r->t->a[j];
        a /= r->t->a[j];
        b /= r->t->a[j];
    }
    FR_TRY(climb(r, &at, &host, to));
    return descend(r, &at, &host, from);
}

/* Returns the number of pair (i, j), i < j, among the pairs of n things in the
 * order (0,1), (0,2) .. (1,2) ... */
static uint64_t pair_number(uint64_t n, uint64_t i, uint64_t j)
{
    return i * n - i * (i + 1) / 2 + j - i - 1;
}

typedef struct router {
    uint32_t group, chassis, blade;
} router;

/* One of the cables that join each two of n things; `first` is that of the
 * things 0 and 1. */
static fr_status hop(const trip *r, uint64_t first, uint64_t n, uint32_t *at,
                     uint32_t to)
{
    bool is_up = *at < to;
    uint64_t pair = is_up ? pair_number(n, *at, to) : pair_number(n, to, *at);

    *at = to;
    return take(r, first + pair, is_up);
}

static fr_status hop_green(const trip *r, router *at, uint32_t blade)
{
    const fr_topology *t = r->t;
    uint64_t n = t->a[BLADES];
    uint64_t in = (uint64_t)at->group * t->a[CHASSIS] + at->chassis;

    return hop(r, t->n_hosts + in * (n * (n - 1) / 2), n, &at->blade, blade);
}

static fr_status hop_black(const trip *r, router *at, uint32_t chassis)
{
    const fr_topology *t = r->t;
    uint64_t n = t->a[CHASSIS];
    uint64_t in = (uint64_t)at->group * t->a[BLADES] + at->blade;

    return hop(r, t->n_hosts + n_green(t) + in * (n * (n - 1) / 2), n,
               &at->chassis, chassis);
}

/* The way to another group begins at the blade that the group's number names
 * here. */
static fr_status hop_blue(const trip *r, router *at, uint32_t group)
{
    const fr_topology *t = r->t;
    uint32_t from = at->group;

    FR_TRY(hop(r, t->n_hosts + n_green(t) + n_black(t), t->a[GROUPS],
               &at->group, group));
    *at = (router){group, 0, from};
    return FR_OK;
}

static fr_status limit_router(const trip *r, const router *at)
{
    const fr_topology *t = r->t;

    if (!t->switch_limiter)
        return FR_OK;
    uint32_t i =
        (at->group * t->a[CHASSIS] + at->chassis) * t->a[BLADES] + at->blade;
    return fr_platform_append(r->p, r->path, t->switch_limiter[i], r->err);
}

/* Between the routers: green in a chassis, black in a group, blue between. */
static fr_status walk_routers(const trip *r, router at, const router *target)
{
    FR_TRY(limit_router(r, &at));
    if (at.group != target->group) {
        if (at.blade != target->group) {
            FR_TRY(hop_green(r, &at, target->group));
            FR_TRY(limit_router(r, &at));
        }
        if (at.chassis != 0) {
            FR_TRY(hop_black(r, &at, 0));
            FR_TRY(limit_router(r, &at));
        }
        FR_TRY(hop_blue(r, &at, target->group));
        FR_TRY(limit_router(r, &at));
    }
    if (at.blade != target->blade) {
        FR_TRY(hop_green(r, &at, target->blade));
        at.chassis = 0; /* SimGrid goes on as if from the first chassis */
        FR_TRY(limit_router(r, &at));
    }
    if (at.chassis == target->chassis)
        return FR_OK;
    FR_TRY(hop_black(r, &at, target->chassis));
    return limit_router(r, &at);
}

static fr_status walk_dragonfly(const trip *r, uint32_t from, uint32_t to)
{
    const fr_topology *t = r->t;
    uint32_t n = t->a[NODES], a = from / n, b = to / n, blades = t->a[BLADES];
    router at = {a / blades / t->a[CHASSIS], a / blades % t->a[CHASSIS],
                 a % blades};
    router target = {b / blades / t->a[CHASSIS], b / blades % t->a[CHASSIS],
                     b % blades};

    FR_TRY(take(r, from, true));
    FR_TRY(limit(r, from));
    FR_TRY(walk_routers(r, at, &target));
    FR_TRY(limit(r, to));
    return take(r, to, false);
}

fr_status fr_topology_route(const fr_platform *p, const fr_zone *zone,
                            uint32_t from, uint32_t to, fr_platform_path *path,
                            fr_err *err)
{
    const fr_topology *t = &zone->topology;
    trip r = {p, t, path, err};
    uint32_t a = p->points.items[from].rank, b = p->points.items[to].rank;

    if (a == b && t->loopback)
        return fr_platform_append(p, path, t->loopback[a], err);
    if (zone->kind == FR_ZONE_TORUS)
        return walk_torus(&r, a, b);
    return zone->kind == FR_ZONE_FAT_TREE ? walk_fat_tree(&r, a, b)
                                          : walk_dragonfly(&r, a, b);
}
