/* export_hosts.c: the servers that a launcher starts a plan on. */
#include "frameworks/write/export.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Most GPU servers have so many; where no cluster is named. */
enum { USUAL_DEVICES = 8 };

/* Servers with ranks on them, as the plan is placed: `room` is how many ranks a
 * server holds, `n` how many it has. */
typedef struct spread {
    int64_t n_hosts;
    int64_t least_room, most_room, least, most;
    bool is_one_device, is_full;
} spread;

static void add_host(spread *it, int64_t room, int64_t n)
{
    bool is_first = it->n_hosts++ == 0;
    it->least_room = is_first || room < it->least_room ? room : it->least_room;
    it->most_room = is_first || room > it->most_room ? room : it->most_room;
    it->least = is_first || n < it->least ? n : it->least;
    it->most = is_first || n > it->most ? n : it->most;
    it->is_full &= n == room;
}

static int64_t hosts_of(const fr_node_type *type)
{
    return type->n_hosts > 1 ? type->n_hosts : 1;
}

/* Ranks of one server of a node that has n_here; CPUs may have more than there
 * are cores. */
static int64_t room_of(const fr_cluster *cluster, int64_t node, int n_threads,
                       int64_t n_here)
{
    int64_t n = fr_cluster_node_slots(cluster, node, n_threads);
    int64_t n_hosts = hosts_of(fr_cluster_node_type(cluster, node));
    n = n_here > n ? n_here : n;
    return (n + n_hosts - 1) / n_hosts;
}

/* Ranks on each node: as the plan file says for this very cluster, or filled
 * in order. */
static fr_status count_ranks(const fr_export_request *request, int64_t *n_on,
                             fr_err *err)
{
    const fr_plan_file *file = request->file;
    int64_t world = fr_plan_world(&file->plan);
    int32_t *node_of_rank;
    fr_status status = FR_OK;
    FR_TRY_CALLOC(node_of_rank, (size_t)world, err);
    if (file->node_of_rank != NULL &&
        file->cluster_hash == fr_cluster_hash(request->cluster))
        memcpy(node_of_rank, file->node_of_rank,
               (size_t)world * sizeof *node_of_rank);
    else
        status = fr_cluster_place(request->cluster, world, file->plan.n_threads,
                                  0, node_of_rank, err);
    for (int64_t r = 0; status == FR_OK && r < world; r++)
        n_on[node_of_rank[r]]++;
    free(node_of_rank);
    return status;
}

static spread spread_of(const fr_export_request *request, const int64_t *n_on)
{
    const fr_cluster *cluster = request->cluster;
    spread out = {.is_one_device = true, .is_full = true};
    int32_t i_device = -1;
    for (int64_t node = 0; node < fr_cluster_n_nodes(cluster); node++) {
        if (n_on[node] == 0)
            continue;
        int64_t room =
            room_of(cluster, node, request->file->plan.n_threads, n_on[node]);
        int32_t here = fr_cluster_node_type(cluster, node)->i_device;
        out.is_one_device &= i_device < 0 || here == i_device;
        i_device = here;
        for (int64_t left = n_on[node]; left > 0; left -= room)
            add_host(&out, room, left < room ? left : room);
    }
    return out;
}

/* Servers of the type that the first rank is on. */
static int64_t hosts_like_first(const fr_cluster *cluster, const int64_t *n_on)
{
    int64_t first = 0, n = 0;
    while (n_on[first] == 0)
        first++;
    const fr_node_type *type = fr_cluster_node_type(cluster, first);
    for (size_t i = 0; i < cluster->n_groups; i++)
        if (&cluster->node_types[cluster->groups[i].i_node_type] == type)
            n += cluster->groups[i].n_nodes * hosts_of(type);
    return n;
}

/* As many ranks on each server as leave none of them out: of servers of 8 for
 * 12 ranks two with 6. */
static void divide(fr_export_request *request, int64_t most)
{
    int64_t world = fr_plan_world(&request->file->plan);
    int64_t per_node = most < world ? most : world;
    while (world % per_node != 0)
        per_node--;
    request->n_ranks_per_node = per_node;
    request->n_nodes = world / per_node;
}

static void count(fr_export_request *request, const int64_t *n_on)
{
    const spread it = spread_of(request, n_on);
    request->least_ranks = it.least;
    request->most_ranks = it.most;
    request->is_one_device = it.is_one_device;
    request->fills_nodes = request->has_gpus && it.is_full;
    divide(request, it.most);
    if (it.least == it.most ||
        (it.least_room == it.most_room && it.is_one_device &&
         request->n_nodes <= hosts_like_first(request->cluster, n_on)))
        return;
    request->n_nodes = it.n_hosts;
    request->n_ranks_per_node = 0;
}

fr_status fr_export_count_hosts(fr_export_request *request, fr_err *err)
{
    const fr_cluster *cluster = request->cluster;
    int64_t *n_on;
    request->is_one_device = true;
    request->has_gpus = strcmp(request->file->backend, "cuda") == 0;
    if (cluster == NULL) {
        divide(request, USUAL_DEVICES);
        return FR_OK;
    }
    request->has_gpus = fr_cluster_device(cluster, 0)->kind == FR_DEVICE_GPU;
    FR_TRY_CALLOC(n_on, (size_t)fr_cluster_n_nodes(cluster), err);
    fr_status status = count_ranks(request, n_on, err);
    if (status == FR_OK)
        count(request, n_on);
    free(n_on);
    return status;
}

fr_status fr_export_check_even(const fr_export_request *request,
                               const char *who, fr_err *err)
{
    if (request->n_ranks_per_node > 0)
        return FR_OK;
    return fr_fail(err, FR_INFEASIBLE,
                   "%s starts as many ranks on each node, and here %lld nodes "
                   "of %.60s have %lld to %lld; take so many ranks as fill "
                   "nodes of one kind, or a program with a process for each "
                   "rank and --to mpirun, whose hostfile counts them",
                   who, (long long)request->n_nodes, request->cluster->name,
                   (long long)request->least_ranks,
                   (long long)request->most_ranks);
}

fr_status fr_export_check_torchrun(const fr_export_request *request,
                                   fr_err *err)
{
    return request->fills_nodes
               ? FR_OK
               : fr_export_check_even(request, "torchrun", err);
}

char *fr_export_ranks_word(const fr_export_request *request, char *buf,
                           size_t n_buf)
{
    if (request->n_ranks_per_node > 0)
        snprintf(buf, n_buf, "%lld", (long long)request->n_ranks_per_node);
    else
        snprintf(buf, n_buf, "gpu");
    return buf;
}
