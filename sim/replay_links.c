#include "sim/replay_links.h"

#include <math.h>
#include <stdlib.h>

/* Quanta per picosecond of one core, and of a link that is used in full. */
static const int64_t full_rate = INT64_C(1) << 24;

/* A thread that needs less of a core than this is not worth a share. */
static const double least_cores = 1.0 / 64;

/*
 * Link numbers: the cores of each rank, its communication thread, the cores of
 * each node, its memory channels, its network out and in.
 */
enum { RANK_CORES, RANK_COMM, RANK_KINDS };
enum { NODE_CORES, NODE_MEMORY, NODE_OUT, NODE_IN, NODE_KINDS };

static uint32_t link_rank(const fr_replay_links *links, int kind, int64_t rank)
{
    return (uint32_t)(kind * links->n_ranks + rank);
}

static uint32_t link_node(const fr_replay_links *links, int kind, int64_t node)
{
    return (uint32_t)(RANK_KINDS * links->n_ranks + kind * links->n_nodes +
                      node);
}

static size_t count_links(const fr_replay_links *links)
{
    return (size_t)(RANK_KINDS * links->n_ranks + NODE_KINDS * links->n_nodes);
}

/* Parts of one machine share its memory channels. */
static int64_t memory_node(const fr_replay_links *links, int64_t node)
{
    return links->cluster->is_one_machine ? 0 : node;
}

/* The device of a GPU rank is its one core. */
static int64_t count_cores(const fr_replay_links *links, int64_t node)
{
    const fr_device_type *device = fr_cluster_device(links->cluster, node);
    int64_t n = device->kind == FR_DEVICE_CPU
                    ? device->n_cores
                    : fr_cluster_node_slots(links->cluster, node, 1);
    return n > 0 ? n : 1;
}

/*
 * A rank's communication thread has a core of its own where the node has one
 * left for every rank, as the runtime deals them (runtime/measure.h); else it
 * shares those of the compute threads.
 */
static void set_capacities(const fr_replay_links *links,
                           const int64_t *n_beside, int64_t *capacity)
{
    for (size_t i = 0; i < count_links(links); i++)
        capacity[i] = full_rate;
    for (int64_t r = 0; r < links->n_ranks; r++) {
        int64_t node = links->node_of_rank[r];
        bool has_spare =
            n_beside[node] * (links->n_threads + 1) <= count_cores(links, node);
        capacity[link_rank(links, RANK_CORES, r)] =
            full_rate * (links->n_threads + has_spare);
    }
    for (int64_t n = 0; n < links->n_nodes; n++)
        capacity[link_node(links, NODE_CORES, n)] =
            full_rate * count_cores(links, n);
}

static fr_status create_solver(fr_replay_links *links, fr_err *err)
{
    size_t n_links = count_links(links);
    int64_t *capacity = calloc(n_links + 1, sizeof *capacity);
    int64_t *n_beside = calloc((size_t)links->n_nodes + 1, sizeof *n_beside);
    fr_status status = FR_OK;
    if (capacity == NULL || n_beside == NULL) {
        status = fr_fail_no_memory(err);
        goto out;
    }
    for (int64_t r = 0; r < links->n_ranks; r++)
        n_beside[links->node_of_rank[r]]++;
    set_capacities(links, n_beside, capacity);
    status = fr_maxmin_create(n_links, capacity, &links->maxmin, err);
out:
    free(capacity);
    free(n_beside);
    return status;
}

fr_status fr_replay_links_init(const fr_cluster *cluster,
                               const int32_t *node_of_rank, int64_t n_ranks,
                               int n_threads, fr_replay_links *out, fr_err *err)
{
    fr_replay_links links = {.cluster = cluster,
                             .node_of_rank = node_of_rank,
                             .n_ranks = n_ranks,
                             .n_threads = n_threads > 0 ? n_threads : 1};
    for (int64_t r = 0; r < n_ranks; r++)
        if (node_of_rank[r] >= links.n_nodes)
            links.n_nodes = node_of_rank[r] + 1;
    links.nic_Bps = calloc((size_t)links.n_nodes + 1, sizeof *links.nic_Bps);
    links.uses = malloc(count_links(&links) * sizeof *links.uses);
    fr_status status = FR_OK;
    if (links.nic_Bps == NULL || links.uses == NULL)
        status = fr_fail_no_memory(err);
    for (int64_t n = 0; status == FR_OK && n < links.n_nodes; n++)
        links.nic_Bps[n] = fr_cluster_nic_Bps(cluster, n);
    if (status == FR_OK)
        status = create_solver(&links, err);
    if (status != FR_OK) {
        fr_replay_links_release(&links);
        return status;
    }
    *out = links;
    return FR_OK;
}

void fr_replay_links_release(fr_replay_links *links)
{
    fr_maxmin_destroy(links->maxmin);
    free(links->nic_Bps);
    free(links->uses);
    *links = (fr_replay_links){0};
}

/*
 * Adds to the use of a link.  Members come node by node, so that a link which
 * earlier members use too is among the last few.
 */
static size_t add_use(fr_maxmin_use *uses, size_t n, uint32_t link,
                      double amount)
{
    double most = 255.0 * FR_MAXMIN_ONE;
    double coefficient = fmin(amount * FR_MAXMIN_ONE, most);
    size_t first = n > NODE_KINDS ? n - NODE_KINDS : 0;
    if (!(coefficient >= 1))
        return n;
    for (size_t i = n; i-- > first;) {
        if (uses[i].link == link) {
            double sum = fmin(uses[i].coefficient + coefficient, most);
            uses[i].coefficient = (uint32_t)sum;
            return n;
        }
    }
    uses[n].link = link;
    uses[n].coefficient = (uint32_t)coefficient;
    return n + 1;
}

static size_t list_uses(fr_replay_links *links, const fr_cost *cost,
                        bool is_comm_thread, double unit_cores,
                        const int32_t *members, int64_t n)
{
    double cores = cost->cores / unit_cores;
    double memory = cost->memory_frac / unit_cores; /* of each member */
    fr_maxmin_use *uses = links->uses;
    size_t n_uses = 0;
    for (int64_t i = 0; i < n; i++) {
        n_uses = add_use(uses, n_uses, link_rank(links, RANK_CORES, members[i]),
                         cores);
        if (is_comm_thread)
            n_uses = add_use(uses, n_uses,
                             link_rank(links, RANK_COMM, members[i]), cores);
    }
    for (int64_t i = 0; i < n; i++) {
        int64_t node = links->node_of_rank[members[i]];
        n_uses =
            add_use(uses, n_uses, link_node(links, NODE_CORES, node), cores);
        n_uses = add_use(
            uses, n_uses,
            link_node(links, NODE_MEMORY, memory_node(links, node)), memory);
        if (cost->link_bytes > 0 && links->nic_Bps[node] > 0) {
            double share = cost->link_bytes / cost->work_s /
                           links->nic_Bps[node] / unit_cores;
            n_uses =
                add_use(uses, n_uses, link_node(links, NODE_OUT, node), share);
            n_uses =
                add_use(uses, n_uses, link_node(links, NODE_IN, node), share);
        }
    }
    return n_uses;
}

fr_status fr_replay_links_start(fr_replay_links *links, const fr_cost *cost,
                                bool is_comm_thread, const int32_t *members,
                                int64_t n, uint32_t tag, fr_err *err)
{
    double unit_cores = cost->cores > least_cores ? cost->cores : 1.0;
    size_t n_uses =
        list_uses(links, cost, is_comm_thread, unit_cores, members, n);
    double rate = unit_cores * (double)full_rate;
    int64_t cap = (int64_t)rate;
    fr_work work = (fr_work)(cost->work_s * 1e12 * (double)cap + 0.5);
    return fr_maxmin_add(links->maxmin, work, cap, links->uses, n_uses, tag,
                         NULL, err);
}
