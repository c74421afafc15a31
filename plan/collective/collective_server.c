/*
 * collective_server.c: parameter servers (Li et al., Scaling Distributed
 * Machine Learning with the Parameter Server, OSDI 2014).  Every member sends
 * (pushes) its payload to the servers, which add, and takes (pulls) the sums
 * back.
 *
 * The payload is divided over the servers: through a server's link goes all
 * that the others push to it, (g-1) n / s with s servers, where a ring has
 * 2 n (g-1) / g.  The table's entry has one server, the textbook's bottleneck;
 * with all members as servers the transfers are those of DIRECT.
 */
#include "plan/collective/collective.h"

#include <stdlib.h>

static bool fits(fr_op op, int64_t n_group)
{
    return n_group >= 1 && op == FR_OP_ALL_REDUCE;
}

fr_servers fr_servers_asked(const fr_instr *instr, int64_t n_group,
                            int64_t n_nodes)
{
    return (fr_servers){.place = (fr_server_place)instr->comm.server_place,
                        .n_servers = instr->comm.n_servers,
                        .n_group = n_group,
                        .n_nodes = n_nodes};
}

fr_status fr_servers_count(const fr_servers *servers, int64_t *out, fr_err *err)
{
    const bool is_host = servers->place != FR_SERVER_DEVICE;
    const int64_t most = is_host ? servers->n_nodes : servers->n_group;

    if (servers->n_servers > most)
        return fr_fail(err, FR_INPUT,
                       "%lld parameter servers, but only %lld %s; give fewer, "
                       "or 0 for one on each",
                       (long long)servers->n_servers, (long long)most,
                       is_host ? "nodes" : "members");
    *out = servers->n_servers > 0 ? servers->n_servers : most;
    return FR_OK;
}

/* Members of the group that talk to servers, and which of them serve. */
typedef struct team {
    const int64_t *member; /* [n] positions in the group */
    int64_t n;
    const int64_t *server; /* [n_servers], places in `member` */
    int64_t n_servers;
} team;

/* Between each member and each server: up, or down again. */
static fr_status exchange(const team *t, uint64_t n, bool is_up,
                          fr_transfer_list *list, fr_err *err)
{
    const size_t n_before = list->n;

    for (int64_t k = 0; k < t->n_servers; k++) {
        fr_slice slice = fr_collective_slice(n, t->n_servers, k);
        int64_t server = t->member[t->server[k]];
        for (int64_t distance = 1; distance < t->n; distance++) {
            int64_t member = t->member[(t->server[k] + distance) % t->n];
            FR_TRY(fr_transfer_list_move(list, is_up ? member : server,
                                         is_up ? server : member, slice, is_up,
                                         err));
        }
    }
    list->n_phases += list->n > n_before;
    return FR_OK;
}

/* Between the members of each node and the first of them. */
static fr_status inside(const int64_t *head_of, int64_t n_group, uint64_t n,
                        bool is_up, fr_transfer_list *list, fr_err *err)
{
    const size_t n_before = list->n;

    for (int64_t i = 0; i < n_group; i++) {
        if (head_of[i] == i)
            continue;
        FR_TRY(fr_transfer_list_move(list, is_up ? i : head_of[i],
                                     is_up ? head_of[i] : i, (fr_slice){0, n},
                                     is_up, err));
    }
    list->n_phases += list->n > n_before;
    return FR_OK;
}

fr_status fr_servers_emit(const fr_servers *servers,
                          const int32_t *node_of_member, uint64_t n,
                          fr_transfer_list *list, fr_err *err)
{
    const int64_t g = servers->n_group;
    int64_t *each, n_heads = 0;
    team t = {0};

    FR_TRY(fr_servers_count(servers, &t.n_servers, err));
    FR_TRY_CALLOC(each, 3 * (size_t)g, err);
    int64_t *head_of = each + g, *head = head_of + g;
    for (int64_t i = 0; i < g; i++) {
        int64_t first = 0;
        while (node_of_member != NULL &&
               node_of_member[first] != node_of_member[i])
            first++;
        each[i] = i;
        head_of[i] = first;
        if (first == i)
            head[n_heads++] = i;
    }
    /* By themselves all talk to the servers; else the sums of nodes do. */
    const bool is_by_node = servers->place == FR_SERVER_HOST;
    t.member = is_by_node ? head : each;
    t.n = is_by_node ? n_heads : g;
    t.server = servers->place == FR_SERVER_WORKER ? head : each;
    fr_status status = FR_OK;
    if (is_by_node)
        FR_TRY_GOTO(status, inside(head_of, g, n, true, list, err), out_each);
    FR_TRY_GOTO(status, exchange(&t, n, true, list, err), out_each);
    FR_TRY_GOTO(status, exchange(&t, n, false, list, err), out_each);
    if (is_by_node)
        FR_TRY_GOTO(status, inside(head_of, g, n, false, list, err), out_each);
out_each:
    free(each);
    return status;
}

double fr_server_idle_s(int64_t n_group, int64_t n_servers, double n_bytes,
                        const fr_link_cost *link)
{
    double g = (double)n_group, s = (double)n_servers;
    double into_server = (g - 1.0) * n_bytes / s;
    /* A member beside no server sends all, one beside a server the rest. */
    double from_member = n_servers < n_group ? n_bytes : n_bytes * (1 - 1 / s);
    double most = into_server > from_member ? into_server : from_member;

    if (n_group == 1)
        return 0.0;
    return 2 * (link->latency_s + most * link->s_per_byte) +
           into_server * link->reduce_s_per_byte;
}

double fr_servers_idle_s(const fr_servers *servers, double n_bytes,
                         const fr_link_cost *inside_link,
                         const fr_link_cost *between)
{
    const int64_t g = servers->n_group, n_nodes = servers->n_nodes;

    if (servers->place != FR_SERVER_HOST)
        return fr_server_idle_s(g, servers->n_servers, n_bytes,
                                n_nodes > 1 ? between : inside_link);
    return fr_server_idle_s((g + n_nodes - 1) / n_nodes, 1, n_bytes,
                            inside_link) +
           fr_server_idle_s(n_nodes, servers->n_servers, n_bytes, between);
}

static const fr_servers textbook = {.place = FR_SERVER_DEVICE, .n_servers = 1};

static fr_status emit(fr_op op, int64_t n_group, uint64_t n,
                      fr_transfer_list *list, fr_err *err)
{
    fr_servers one = textbook;

    (void)op;
    one.n_group = n_group;
    return fr_servers_emit(&one, NULL, n, list, err);
}

static double idle_s(fr_op op, int64_t n_group, uint64_t n,
                     uint64_t element_bytes, const fr_link_cost *link)
{
    (void)op;
    return fr_server_idle_s(n_group, 1, (double)n * (double)element_bytes,
                            link);
}

const fr_collective fr_collective_server = {
    .name = "parameter-server",
    .summary = "servers add what all push to them, and all pull the sums",
    .is_by_servers = true,
    .is_direct = true,
    .fits = fits,
    .emit = emit,
    .idle_s = idle_s,
};
