/*
 * import_simgrid.c: a SimGrid platform as a list of links.  SimGrid knows
 * which links a route takes, not where they end; where one link of a route
 * ends the next one begins, so the routes of all pairs say what meets where.
 * First every link is taken as passed one way only (SHARED links often come in
 * pairs, up and down); where that cannot be, as passed both ways.  A link that
 * all share in the middle of a star has no two ends: refused.
 */
#include "core/base/text.h"
#include "interop/import/import_parts.h"
#include "simgrid/platform.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_HOSTS = 1024 };

/* A cable: one SHARED link, or the UP and DOWN of a split one. */
typedef struct cable {
    uint32_t link;
    bool is_split, is_fatpipe, is_used, is_paired;
    bool is_known[2]; /* which end something is joined to */
} cable;

typedef struct graph {
    const fr_import_text *in;
    fr_platform *platform;
    size_t n_hosts, n_cables, n_unreached;
    bool is_one_way; /* how SHARED links are passed */
    cable *cables;
    uint32_t *cable_of; /* of a link */
    bool *is_down;      /* of a link: passed from end 1 to end 0 */
    uint32_t *join;     /* union-find: hosts, then two ends of each cable */
    int64_t *hosts;     /* of the platform */
    int64_t *vertex;    /* of a class, -1: none yet */
} graph;

/* ---- what meets where --------------------------------------------------- */

static uint32_t find(graph *g, uint32_t at)
{
    while (g->join[at] != at)
        at = g->join[at] = g->join[g->join[at]];
    return at;
}

static void meet(graph *g, uint32_t a, uint32_t b)
{
    g->join[find(g, a)] = find(g, b);
}

static uint32_t end_of(const graph *g, uint32_t i_cable, int end)
{
    return (uint32_t)g->n_hosts + 2 * i_cable + (uint32_t)end;
}

/* Through which end a route enters; -1: cannot be told yet. */
static int entry_end(graph *g, uint32_t link, uint32_t at)
{
    uint32_t i = g->cable_of[link];
    const cable *c = &g->cables[i];
    if (c->is_split)
        return g->is_down[link] ? 1 : 0;
    if (g->is_one_way)
        return 0;
    for (int end = 0; end < 2; end++)
        if (find(g, end_of(g, i, end)) == find(g, at))
            return end;
    return c->is_known[0] || c->is_known[1] ? -1 : 0;
}

/* Walks a route as far as it can be told from one side; true: to its end. */
static bool walk(graph *g, const fr_platform_path *path, uint32_t from,
                 uint32_t to, bool is_back)
{
    uint32_t at = is_back ? to : from;
    for (size_t k = 0; k < path->links.n; k++) {
        uint32_t link = path->links.items[is_back ? path->links.n - 1 - k : k];
        uint32_t i = g->cable_of[link];
        if (g->cables[i].is_fatpipe) {
            g->cables[i].is_used = true;
            continue;
        }
        int end = entry_end(g, link, at);
        if (end < 0)
            return false;
        if (g->cables[i].is_split && is_back)
            end = 1 - end; /* a route backwards leaves where it entered */
        meet(g, at, end_of(g, i, end));
        g->cables[i].is_used = true;
        g->cables[i].is_known[0] = g->cables[i].is_known[1] = true;
        at = end_of(g, i, 1 - end);
    }
    meet(g, at, is_back ? from : to);
    return true;
}

/* Joins what the routes from one host say; counts those that say too little. */
static fr_status join_from(graph *g, size_t a, fr_platform_path *path,
                           size_t *n_open, fr_err *err)
{
    for (size_t b = 0; b < g->n_hosts; b++) {
        fr_err inner = {0};
        if (a == b)
            continue;
        fr_status status = fr_platform_route(g->platform, g->hosts[a],
                                             g->hosts[b], path, &inner);
        if (status == FR_INPUT) { /* there is none */
            g->n_unreached++;
            continue;
        }
        if (status != FR_OK)
            return fr_fail(err, status, "%s", inner.text);
        if (!walk(g, path, (uint32_t)a, (uint32_t)b, false))
            *n_open += !walk(g, path, (uint32_t)a, (uint32_t)b, true);
    }
    return FR_OK;
}

static fr_status join_all(graph *g, fr_err *err)
{
    fr_platform_path path = {0};
    fr_status status = FR_OK;
    size_t n_open = SIZE_MAX, n_before;
    for (size_t i = 0; i < g->n_hosts + 2 * g->n_cables; i++)
        g->join[i] = (uint32_t)i;
    for (size_t i = 0; i < g->n_cables; i++)
        g->cables[i].is_used = g->cables[i].is_known[0] =
            g->cables[i].is_known[1] = false;
    do { /* what is known from one route helps with another */
        n_before = n_open;
        n_open = g->n_unreached = 0;
        for (size_t a = 0; a < g->n_hosts && status == FR_OK; a++)
            status = join_from(g, a, &path, &n_open, err);
    } while (status == FR_OK && n_open > 0 && n_open < n_before);
    fr_vec_release(&path.links);
    if (status == FR_OK && n_open > 0)
        return fr_import_fail(g->in, 1, err,
                              "%zu routes do not say where their links end; "
                              "use links of sharing_policy SPLITDUPLEX",
                              n_open);
    return status;
}

/* ---- links and vertices ------------------------------------------------- */

static fr_status check_ends(graph *g, fr_err *err)
{
    for (uint32_t a = 0; a < g->n_hosts; a++)
        for (uint32_t b = 0; b < a; b++)
            if (find(g, a) == find(g, b))
                return fr_import_fail(
                    g->in, 1, err,
                    "hosts '%.60s' and '%.60s' would be one: a link in the "
                    "middle of a star that all share has no place in a list of "
                    "links; make the backbone FATPIPE",
                    fr_platform_host_id(g->platform, g->hosts[a]),
                    fr_platform_host_id(g->platform, g->hosts[b]));
    for (uint32_t i = 0; i < g->n_cables; i++)
        if (g->cables[i].is_used && !g->cables[i].is_fatpipe &&
            find(g, end_of(g, i, 0)) == find(g, end_of(g, i, 1)))
            return fr_import_fail(
                g->in, 1, err,
                "link '%.60s' begins and ends at the same place: a backbone "
                "that all share has no place in a list of links; make it "
                "FATPIPE",
                fr_platform_link_at(g->platform, g->cables[i].link)->id);
    return FR_OK;
}

static int64_t vertex_of(graph *g, uint32_t at, fr_fabric *fabric)
{
    uint32_t class = find(g, at);
    if (g->vertex[class] < 0) {
        snprintf(fabric->switches[fabric->n_switches].id, FR_CLUSTER_ID,
                 "switch_%zu", fabric->n_switches);
        g->vertex[class] = (int64_t)(g->n_hosts + fabric->n_switches++);
    }
    return g->vertex[class];
}

/* "l_UP" without its end. */
static void link_id(const graph *g, const cable *c, size_t i, char *out)
{
    char id[FR_CLUSTER_ID];
    fr_import_id(fr_platform_link_at(g->platform, c->link)->id, id);
    if (c->is_split && strlen(id) > 3)
        id[strlen(id) - 3] = '\0';
    snprintf(out, FR_CLUSTER_ID, "%.40s_%zu", id, i);
}

/* The way back of a link that is passed one way: as fast, between the same. */
static bool pair_up(graph *g, const cable *c, fr_fabric *fabric,
                    const fr_fabric_link *link)
{
    for (cable *other = g->cables; other < g->cables + g->n_cables; other++) {
        uint32_t i = (uint32_t)(other - g->cables);
        const fr_platform_link *at =
            fr_platform_link_at(g->platform, other->link);
        if (other == c || !other->is_used || other->is_paired ||
            other->is_fatpipe || other->is_split ||
            at->bandwidth_Bps != link->bandwidth_Bps ||
            at->latency_s != link->latency_s ||
            vertex_of(g, end_of(g, i, 0), fabric) != link->to ||
            vertex_of(g, end_of(g, i, 1), fabric) != link->from)
            continue;
        other->is_paired = true;
        return true;
    }
    return false;
}

static fr_status make_links(graph *g, fr_fabric *fabric, fr_err *err)
{
    size_t n_alone = 0;
    fabric->kind = FR_FABRIC_LINKS;
    fabric->links = calloc(g->n_cables + 1, sizeof *fabric->links);
    size_t n_ends = 2 * g->n_cables;
    fabric->switches =
        calloc(n_ends > 0 ? n_ends : 1, sizeof *fabric->switches);
    if (fabric->links == NULL || fabric->switches == NULL)
        return fr_fail_no_memory(err);
    for (size_t i = 0; i < g->n_hosts + 2 * g->n_cables; i++)
        g->vertex[i] = -1;
    for (size_t i = 0; i < g->n_hosts; i++)
        g->vertex[find(g, (uint32_t)i)] = (int64_t)i;
    for (size_t i = 0; i < g->n_cables; i++) {
        cable *c = &g->cables[i];
        const fr_platform_link *from =
            fr_platform_link_at(g->platform, c->link);
        if (!c->is_used || c->is_paired || c->is_fatpipe)
            continue;
        c->is_paired = true;
        fr_fabric_link *link = &fabric->links[fabric->n_links++];
        link_id(g, c, i, link->id);
        link->from = vertex_of(g, end_of(g, (uint32_t)i, 0), fabric);
        link->to = vertex_of(g, end_of(g, (uint32_t)i, 1), fabric);
        link->bandwidth_Bps = from->bandwidth_Bps;
        link->latency_s = from->latency_s;
        link->is_half_duplex = !c->is_split && !g->is_one_way;
        if (!c->is_split && g->is_one_way)
            n_alone += !pair_up(g, c, fabric, link);
    }
    if (n_alone > 0)
        fr_import_note(g->in,
                       "%zu links are passed one way only: they are "
                       "taken to go both ways",
                       n_alone);
    return FR_OK;
}

/* Checks that our paths differ from SimGrid's routes by rounding alone. */
static fr_status compare(graph *g, const fr_cluster *cluster, fr_err *err)
{
    fr_platform_path path = {0};
    double worst_rate = 0.0, worst_s = 0.0;
    fr_status status;
    size_t step = g->n_hosts / 16 + 1;
    for (size_t a = 0; a < g->n_hosts; a += step)
        for (size_t b = 0; b < g->n_hosts; b += step) {
            if (a == b)
                continue;
            status = fr_platform_route(g->platform, g->hosts[a], g->hosts[b],
                                       &path, NULL);
            if (status == FR_NO_MEMORY)
                goto out_path;
            if (status != FR_OK)
                continue;
            double rate_Bps = INFINITY;
            for (size_t k = 0; k < path.links.n; k++)
                rate_Bps =
                    fmin(rate_Bps,
                         fr_platform_link_at(g->platform, path.links.items[k])
                             ->bandwidth_Bps);
            fr_path ours = fr_cluster_path(cluster, (int64_t)a, (int64_t)b);
            if (ours.n_hops == 0) { /* there is a way: no memory for it */
                status = FR_NO_MEMORY;
                goto out_path;
            }
            worst_rate =
                fmax(worst_rate, fabs(ours.bandwidth_Bps / rate_Bps - 1.0));
            worst_s = fmax(worst_s, fabs(ours.latency_s - path.latency_s));
        }
    status = FR_OK;
out_path:
    fr_vec_release(&path.links);
    if (status != FR_OK)
        return fr_fail_no_memory(err);
    if (worst_rate > 0.01)
        return fr_import_fail(
            g->in, 1, err,
            "as a list of links the bandwidth between hosts would be off by "
            "%.0f %%: links that are faster one way than the other, or routes "
            "that are not the shortest, have no place in it",
            100.0 * worst_rate);
    fr_import_note(g->in,
                   "paths against SimGrid's routes: bandwidth within %.3g %%, "
                   "latency within %.3g us",
                   100.0 * worst_rate, worst_s * 1e6);
    return FR_OK;
}

/* ---- the cluster -------------------------------------------------------- */

/* Every host must be reachable; joins what was kept apart, so it is the last
 * thing to be asked. */
static fr_status check_connected(graph *g, fr_err *err)
{
    for (uint32_t i = 0; i < g->n_cables; i++)
        if (g->cables[i].is_used && !g->cables[i].is_fatpipe)
            meet(g, end_of(g, i, 0), end_of(g, i, 1));
    for (uint32_t h = 1; h < g->n_hosts; h++)
        if (find(g, h) != find(g, 0))
            return fr_import_fail(
                g->in, 1, err, "no way from '%.60s' to '%.60s'",
                fr_platform_host_id(g->platform, g->hosts[0]),
                fr_platform_host_id(g->platform, g->hosts[h]));
    return FR_OK;
}

/* ---- the cluster -------------------------------------------------------- */

/* All that leaves a host; its links are the limit, never its NICs. */
static double fastest_host(const graph *g, const fr_fabric *fabric)
{
    double most_Bps = 0.0;
    for (size_t h = 0; h < g->n_hosts; h++) {
        double sum_Bps = 0.0;
        for (size_t i = 0; i < fabric->n_links; i++)
            if (fabric->links[i].from == (int64_t)h ||
                fabric->links[i].to == (int64_t)h)
                sum_Bps += fabric->links[i].bandwidth_Bps;
        most_Bps = fmax(most_Bps, sum_Bps);
    }
    return most_Bps;
}

static fr_status make_cluster(graph *g, const fr_catalog_node *row,
                              fr_cluster *out, fr_err *err)
{
    fr_err one_way = {0};
    g->is_one_way = true;
    FR_TRY(join_all(g, err));
    if (check_ends(g, &one_way) != FR_OK) {
        g->is_one_way = false;
        FR_TRY(join_all(g, err));
        FR_TRY(check_ends(g, err));
    }
    if (g->n_unreached > 0)
        fr_import_note(g->in, "%zu pairs of hosts have no route",
                       g->n_unreached);
    FR_TRY(fr_catalog_cluster(row->type.id, (int64_t)g->n_hosts, out, err));
    memset(&out->fabric, 0, sizeof out->fabric);
    fr_text_copy_cut(out->name, sizeof out->name, "simgrid");
    fr_text_copy_cut(out->groups[0].id, sizeof out->groups[0].id, "host");
    FR_TRY(make_links(g, &out->fabric, err));
    FR_TRY(check_connected(g, err));
    fr_node_type *type = &out->node_types[0];
    type->n_nics = type->n_rails = 1;
    type->nic_kind = FR_NIC_UNKNOWN;
    type->nic_Bps = fastest_host(g, &out->fabric);
    if (g->n_hosts == 1) /* nothing to reach */
        type->n_nics = 0;
    type->nic_latency_s = 0.0;
    for (size_t i = 0; i < g->n_cables; i++)
        if (g->cables[i].is_fatpipe && g->cables[i].is_used)
            fr_import_note(
                g->in, "FATPIPE link '%s' is left out",
                fr_platform_link_at(g->platform, g->cables[i].link)->id);
    fr_import_note(g->in,
                   "%zu hosts as nodes of type %s, in file order: host-0 is "
                   "'%s'; their links are the network, not its NICs",
                   g->n_hosts, row->type.id,
                   fr_platform_host_id(g->platform, g->hosts[0]));
    return g->n_hosts > 1 ? compare(g, out, err) : FR_OK;
}

/* Links in file order; UP and DOWN of a split one follow each other. */
static void make_cables(graph *g, size_t n_links)
{
    for (uint32_t i = 0; i < n_links; i++) {
        const fr_platform_link *link = fr_platform_link_at(g->platform, i);
        const char *next =
            i + 1 < n_links ? fr_platform_link_at(g->platform, i + 1)->id : "";
        size_t n = strlen(link->id);
        bool is_split = n > 3 && fr_text_ends(link->id, "_UP") &&
                        strncmp(link->id, next, n - 2) == 0 &&
                        strcmp(next + n - 2, "DOWN") == 0;
        g->cables[g->n_cables] = (cable){
            .link = i, .is_split = is_split, .is_fatpipe = link->is_fatpipe};
        g->cable_of[i] = (uint32_t)g->n_cables;
        if (is_split) {
            g->cable_of[++i] = (uint32_t)g->n_cables;
            g->is_down[i] = true;
        }
        g->n_cables++;
    }
}

static fr_status make_graph(graph *g, fr_err *err)
{
    size_t n_links = fr_platform_n_links(g->platform);
    g->n_hosts = fr_platform_n_hosts(g->platform);
    if (g->n_hosts < 1 || g->n_hosts > MAX_HOSTS)
        return fr_import_fail(g->in, 1, err,
                              "%zu hosts; platforms of 1 to %d are imported",
                              g->n_hosts, MAX_HOSTS);
    size_t n_all = g->n_hosts + 2 * n_links;
    g->cables = calloc(n_links + 1, sizeof *g->cables);
    g->cable_of = calloc(n_links + 1, sizeof *g->cable_of);
    g->is_down = calloc(n_links + 1, sizeof *g->is_down);
    g->hosts = calloc(g->n_hosts, sizeof *g->hosts);
    g->join = calloc(n_all + 1, sizeof *g->join);
    g->vertex = calloc(n_all + 1, sizeof *g->vertex);
    if (g->cables == NULL || g->cable_of == NULL || g->is_down == NULL ||
        g->hosts == NULL || g->join == NULL || g->vertex == NULL)
        return fr_fail_no_memory(err);
    for (size_t i = 0; i < g->n_hosts; i++)
        g->hosts[i] = fr_platform_host_at(g->platform, i);
    make_cables(g, n_links);
    return FR_OK;
}

static fr_status read_simgrid(const fr_import_text *in, fr_import *out,
                              fr_err *err)
{
    graph g = {.in = in};
    const fr_catalog_node *row;
    FR_TRY(fr_platform_parse(in->name, in->text, in->n, &g.platform, err));
    fr_status status = fr_import_choose_node(in, &row, err);
    if (status == FR_OK && row == NULL)
        status = fr_import_fail(in, 1, err,
                                "SimGrid's hosts have neither GPUs nor memory; "
                                "give --node-type NAME ('forerun catalog "
                                "nodes' lists them)");
    if (status == FR_OK)
        status = make_graph(&g, err);
    if (status == FR_OK)
        status = make_cluster(&g, row, &out->cluster, err);
    free(g.cables);
    free(g.cable_of);
    free(g.is_down);
    free(g.hosts);
    free(g.join);
    free(g.vertex);
    fr_platform_destroy(g.platform);
    return status;
}

const fr_importer fr_import_simgrid = {.name = "simgrid",
                                       .subject = FR_IMPORT_OF_CLUSTER,
                                       .marks = {"<platform"},
                                       .read = read_simgrid};
