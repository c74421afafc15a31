/* replay_links.c: which links there are, and what a flow takes of them. */
#include "sim/replay/replay_links.h"

#include "sim/engine/virtual_time.h"
#include "sim/replay/fabric_load.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Quanta per picosecond that one core, or a link used in full, works off. */
static const int64_t full_rate = INT64_C(1) << 24;

/* A thread that needs less of a core than this is not worth a share. */
static const double least_cores = 1.0 / 64;

/*
 * Link numbers: the cores of each actor, its communication thread, its port
 * into the node's fabric; of each place the cores, the memory channels, the
 * network out and in; each rail out and in; the fabric.
 */
enum { RANK_CORES, RANK_COMM, RANK_PORT, RANK_KINDS };
enum { NODE_CORES, NODE_MEMORY, NODE_OUT, NODE_IN, NODE_KINDS };
enum { RAIL_OUT, RAIL_IN, RAIL_KINDS };

static uint32_t link_rank(const fr_replay_links *links, int kind, int32_t actor)
{
    return (uint32_t)(kind * links->actors->n + actor);
}

static uint32_t link_node(const fr_replay_links *links, int kind, int32_t place)
{
    return (uint32_t)(RANK_KINDS * links->actors->n + kind * links->n_places +
                      place);
}

static uint32_t link_rail(const fr_replay_links *links, int kind, int32_t rail)
{
    return (uint32_t)(RANK_KINDS * links->actors->n +
                      NODE_KINDS * links->n_places + kind * links->n_rails +
                      rail);
}

static uint32_t link_fabric(const fr_replay_links *links, int32_t link)
{
    return link_rail(links, RAIL_KINDS, 0) + (uint32_t)link;
}

static bool is_one_machine(const fr_replay_links *links)
{
    return links->actors->layout->cluster->is_one_machine;
}

/* ---- places and rails ---------------------------------------------------- */

/* Counts the ranks of the actor's colour among the members of its group. */
static int32_t count_alike(const fr_actors *actors, int32_t actor,
                           const fr_rank_groups *p)
{
    const fr_fold *fold = actors->fold;
    int32_t group = p->group_of_rank[actors->rank[actor]], n = 0;
    if (!actors->is_folded)
        return 1;
    for (int32_t i = p->first[group]; i < p->first[group + 1]; i++)
        n += fold->color_of_rank[p->members[i]] == actor;
    return n;
}

/* Numbers the groups of a partition in which actors lie; false: there is no
 * memory. */
static bool number_groups(const fr_actors *actors, const fr_rank_groups *p,
                          const uint64_t *keys, int32_t *number, int32_t *n)
{
    uint64_t *key = malloc(((size_t)actors->n + 1) * sizeof *key);
    if (key == NULL)
        return false;
    for (int32_t i = 0; i < actors->n; i++) {
        int32_t group = p->group_of_rank[actors->rank[i]];
        key[i] = actors->is_folded ? keys[group] : (uint64_t)group;
    }
    *n = fr_number_keys(key, actors->n, number);
    free(key);
    return *n >= 0;
}

static fr_status number_places(fr_replay_links *links, fr_err *err)
{
    const fr_actors *actors = links->actors;
    const fr_rank_layout *layout = actors->layout;
    size_t n = (size_t)actors->n + 1;
    FR_TRY_CALLOC(links->place, n, err);
    FR_TRY_CALLOC(links->rail, n, err);
    FR_TRY_CALLOC(links->on_place, n, err);
    FR_TRY_CALLOC(links->on_rail, n, err);
    if (!number_groups(actors, &layout->node, actors->fold->node_key,
                       links->place, &links->n_places) ||
        !number_groups(actors, &layout->rail, actors->fold->rail_key,
                       links->rail, &links->n_rails))
        return fr_fail_no_memory(err);
    for (int32_t i = 0; i < actors->n; i++) {
        links->on_place[i] = count_alike(actors, i, &layout->node);
        links->on_rail[i] = count_alike(actors, i, &layout->rail);
    }
    return FR_OK;
}

/* A GPU rank has one core, its device. */
static int64_t count_cores(const fr_cluster *cluster, int64_t node)
{
    const fr_device_type *device = fr_cluster_device(cluster, node);
    int64_t n = device->kind == FR_DEVICE_CPU
                    ? device->n_cores
                    : fr_cluster_node_slots(cluster, node, 1);
    return n > 0 ? n : 1;
}

/*
 * A rank's communication thread has a core of its own where the node has one
 * left for every rank, as the runtime deals them (measure.h); else it
 * shares those of the compute threads.
 */
static void describe_actor(fr_replay_links *links, int32_t actor)
{
    const fr_rank_layout *layout = links->actors->layout;
    int32_t rank = links->actors->rank[actor], place = links->place[actor];
    int32_t node = fr_rank_layout_node(layout, rank);
    int64_t n_cores = count_cores(layout->cluster, node);
    int64_t n_beside =
        fr_rank_groups_size(&layout->node, layout->node.group_of_rank[rank]);
    bool is_gpu = fr_rank_layout_is_gpu(layout, rank);
    bool has_spare = n_beside * (links->n_threads + 1) <= n_cores;
    links->is_gpu[place] = is_gpu;
    links->rail_Bps[links->rail[actor]] = fr_rank_layout_rail_Bps(layout, rank);
    links->nic_Bps[place] = links->rail_Bps[links->rail[actor]] > 0
                                ? 0.0
                                : fr_cluster_nic_Bps(layout->cluster, node);
    if (is_gpu)
        links->port_Bps[place] =
            fr_cluster_node_type(layout->cluster, node)->intra_Bps;
    links->capacity[link_rank(links, RANK_CORES, actor)] =
        full_rate * (is_gpu ? 1 : links->n_threads + has_spare);
    links->capacity[link_node(links, NODE_CORES, place)] = full_rate * n_cores;
}

static fr_status describe_links(fr_replay_links *links, fr_err *err)
{
    links->n_links = link_fabric(links, links->n_fabric);
    size_t n = links->n_links + 1;
    FR_TRY_CALLOC(links->is_gpu, (size_t)links->n_places + 1, err);
    FR_TRY_CALLOC(links->nic_Bps, (size_t)links->n_places + 1, err);
    FR_TRY_CALLOC(links->port_Bps, (size_t)links->n_places + 1, err);
    FR_TRY_CALLOC(links->rail_Bps, (size_t)links->n_rails + 1, err);
    FR_TRY_CALLOC(links->capacity, n, err);
    FR_TRY_CALLOC(links->uses, n, err);
    FR_TRY_CALLOC(links->place_in_uses, n, err);
    memset(links->place_in_uses, 0xff, n * sizeof *links->place_in_uses);
    for (size_t i = 0; i < links->n_links; i++)
        links->capacity[i] = full_rate;
    for (int32_t i = 0; i < links->actors->n; i++)
        describe_actor(links, i);
    return FR_OK;
}

fr_status fr_replay_links_init(const fr_actors *actors,
                               const fr_fabric_uses *fabric, int n_threads,
                               bool has_solver, fr_replay_links *out,
                               fr_err *err)
{
    fr_replay_links links = {.actors = actors,
                             .fabric = fabric,
                             .n_threads = n_threads > 0 ? n_threads : 1};
    fr_status status;
    FR_TRY_GOTO(status, number_places(&links, err), out_release);
    FR_TRY_GOTO(status,
                fr_fabric_load_create(actors, fabric, &links.fabric_link,
                                      &links.n_fabric, &links.load, err),
                out_release);
    FR_TRY_GOTO(status, describe_links(&links, err), out_release);
    if (has_solver)
        FR_TRY_GOTO(
            status,
            fr_maxmin_create(links.n_links, links.capacity, &links.maxmin, err),
            out_release);
    *out = links;
    return FR_OK;
out_release:
    fr_replay_links_release(&links);
    return status;
}

void fr_replay_links_release(fr_replay_links *links)
{
    fr_maxmin_destroy(links->maxmin);
    fr_fabric_load_destroy(links->load);
    free(links->fabric_link);
    free(links->place);
    free(links->rail);
    free(links->on_place);
    free(links->on_rail);
    free(links->is_gpu);
    free(links->nic_Bps);
    free(links->rail_Bps);
    free(links->port_Bps);
    free(links->capacity);
    free(links->uses);
    free(links->place_in_uses);
    *links = (fr_replay_links){0};
}

/* ---- flows --------------------------------------------------------------- */

fr_demand fr_demand_of(const fr_cost *cost, bool is_comm_thread,
                       bool is_transfer, const fr_fabric_flow *traffic)
{
    double unit_cores = cost->cores > least_cores ? cost->cores : 1.0;
    fr_demand demand = {.cap = (int64_t)(unit_cores * (double)full_rate),
                        .unit_cores = unit_cores,
                        .cores = cost->cores / unit_cores,
                        .memory = cost->memory_frac / unit_cores,
                        .is_comm_thread = is_comm_thread,
                        .is_transfer = is_transfer};
    /* Work beyond the clock's end is endless; it must fit 128 bits. */
    const double work_s = fmin(cost->work_s, 2e-12 * (double)FR_PS_END);
    demand.work = (fr_work)(work_s * 1e12 * (double)demand.cap + 0.5);
    if (cost->work_s > 0)
        demand.port_Bps = cost->port_bytes / cost->work_s;
    if (cost->link_bytes > 0 && cost->work_s > 0) {
        demand.nets[0].Bps = cost->link_bytes / cost->work_s;
        demand.nets[0].fabric = traffic;
        demand.n_nets = 1;
    }
    return demand;
}

void fr_demand_add_local(fr_demand *demand, double Bps,
                         const fr_fabric_flow *traffic)
{
    if (traffic == NULL || !(Bps > 0) || demand->n_nets == FR_DEMAND_NETS)
        return;
    demand->nets[demand->n_nets].Bps = Bps;
    demand->nets[demand->n_nets].fabric = traffic;
    demand->nets[demand->n_nets++].is_local = true;
}

/* Adds n times the amount that one rank takes of a link. */
static size_t add_use(fr_replay_links *links, size_t n_uses, uint32_t link,
                      double amount, uint32_t n)
{
    const double most = (double)FR_MAXMIN_MAX_COEFFICIENT;
    double coefficient = fmin(amount * FR_MAXMIN_ONE, most);
    if (!(coefficient >= 1) || n == 0)
        return n_uses;
    uint32_t at = links->place_in_uses[link];
    double sum = (double)n * floor(coefficient);
    if (at != UINT32_MAX)
        sum += (double)links->uses[at].coefficient;
    if (sum > most && links->actors->is_folded)
        links->is_exceeded = true;
    if (at == UINT32_MAX) {
        at = (uint32_t)n_uses++;
        links->place_in_uses[link] = at;
        links->uses[at].link = link;
    }
    links->uses[at].coefficient = (uint64_t)fmin(sum, most);
    return n_uses;
}

/* Adds what member i of the flow takes of the network. */
static size_t add_network(fr_replay_links *links, size_t n_uses,
                          const fr_demand *d, int32_t actor, int64_t i)
{
    int32_t place = links->place[actor], rail = links->rail[actor];
    uint32_t on_place = (uint32_t)links->on_place[actor];
    uint32_t on_rail = (uint32_t)links->on_rail[actor];
    for (int k = 0; k < d->n_nets; k++) {
        double Bps = d->nets[k].Bps;
        bool is_out = !d->is_transfer || i == 0;
        if (d->nets[k].is_local) {
            /* no NIC */
        } else if (links->nic_Bps[place] > 0) {
            double share = Bps / links->nic_Bps[place] / d->unit_cores;
            n_uses = add_use(links, n_uses, link_node(links, NODE_OUT, place),
                             share, on_place);
            n_uses = add_use(links, n_uses, link_node(links, NODE_IN, place),
                             share, on_place);
        } else if (links->rail_Bps[rail] > 0) {
            double share = Bps / links->rail_Bps[rail] / d->unit_cores;
            if (is_out)
                n_uses =
                    add_use(links, n_uses, link_rail(links, RAIL_OUT, rail),
                            share, on_rail);
            if (!d->is_transfer || i > 0)
                n_uses = add_use(links, n_uses, link_rail(links, RAIL_IN, rail),
                                 share, on_rail);
        }
        fr_fabric_crossing at = {.flow = d->nets[k].fabric, .actor = actor};
        while (is_out && fr_fabric_load_next(links->load, &at))
            n_uses =
                add_use(links, n_uses, link_fabric(links, at.link),
                        Bps * at.weight / at.link_Bps / d->unit_cores, at.n);
    }
    return n_uses;
}

static size_t add_node(fr_replay_links *links, size_t n_uses,
                       const fr_demand *d, int32_t actor)
{
    int32_t place = links->place[actor];
    uint32_t n = (uint32_t)links->on_place[actor];
    /* A device's cores and memory are its own; the host's are the node's. */
    if (links->is_gpu[place] && !(d->memory > 0))
        return n_uses;
    if (!links->is_gpu[place])
        n_uses = add_use(links, n_uses, link_node(links, NODE_CORES, place),
                         d->cores, n);
    /* Parts of one machine share its memory channels. */
    if (is_one_machine(links) && links->actors->is_folded)
        n = (uint32_t)links->actors->fold->n_alike[actor];
    return add_use(
        links, n_uses,
        link_node(links, NODE_MEMORY, is_one_machine(links) ? 0 : place),
        d->memory, n);
}

static size_t list_uses(fr_replay_links *links, const fr_demand *d,
                        const int32_t *members, int64_t n)
{
    size_t n_uses = 0;
    for (int64_t i = 0; i < n; i++) {
        int32_t actor = members[i], place = links->place[actor];
        n_uses = add_use(links, n_uses, link_rank(links, RANK_CORES, actor),
                         d->cores, 1);
        if (d->is_comm_thread && !links->is_gpu[place])
            n_uses = add_use(links, n_uses, link_rank(links, RANK_COMM, actor),
                             d->cores, 1);
        if (links->port_Bps[place] > 0 && d->port_Bps > 0)
            n_uses = add_use(
                links, n_uses, link_rank(links, RANK_PORT, actor),
                d->port_Bps / links->port_Bps[place] / d->unit_cores, 1);
    }
    for (int64_t i = 0; i < n; i++) {
        n_uses = add_node(links, n_uses, d, members[i]);
        n_uses = add_network(links, n_uses, d, members[i], i);
    }
    for (size_t i = 0; i < n_uses; i++)
        links->place_in_uses[links->uses[i].link] = UINT32_MAX;
    return n_uses;
}

fr_status fr_replay_links_start(fr_replay_links *links, const fr_demand *demand,
                                const int32_t *members, int64_t n, uint32_t tag,
                                uint32_t *flow, fr_err *err)
{
    size_t n_uses = list_uses(links, demand, members, n);
    return fr_maxmin_add(links->maxmin, demand->work, demand->cap, links->uses,
                         n_uses, tag, flow, err);
}

int64_t fr_replay_links_solo_ps(fr_replay_links *links, const fr_demand *demand,
                                const int32_t *members, int64_t n)
{
    int64_t rate = demand->cap;
    size_t n_uses = list_uses(links, demand, members, n);
    for (size_t i = 0; i < n_uses; i++) {
        fr_work capacity =
            (fr_work)links->capacity[links->uses[i].link] * FR_MAXMIN_ONE;
        fr_work level = capacity / links->uses[i].coefficient;
        if (level < (fr_work)rate)
            rate = (int64_t)level;
    }
    return fr_ps_of_work(demand->work, rate);
}
