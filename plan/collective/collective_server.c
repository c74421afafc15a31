/*
 * collective_server.c: parameter servers (Li et al., Scaling Distributed
 * Machine Learning with the Parameter Server, OSDI 2014).  Every member sends
 * (pushes) its payload to the servers, which add, and takes (pulls) the sums
 * back.
 *
 * The payload is divided over the servers, which sit beside the first members:
 * through a server's link goes all that the others push to it, (g-1) n / s
 * with s servers, where a ring has 2 n (g-1) / g.  The table's entry has one
 * server, the textbook's bottleneck.
 */
#include "plan/collective/collective.h"

static bool fits(fr_op op, int64_t n_group)
{
    return n_group >= 1 && op == FR_OP_ALL_REDUCE;
}

/* Between each member and each server: up, or down again. */
static fr_status exchange(int64_t g, int64_t n_servers, uint64_t n, bool is_up,
                          fr_transfer_list *list, fr_err *err)
{
    for (int64_t server = 0; server < n_servers; server++) {
        fr_slice slice = fr_collective_slice(n, n_servers, server);
        for (int64_t distance = 1; distance < g; distance++) {
            int64_t member = (server + distance) % g;
            FR_TRY(fr_transfer_list_move(list, is_up ? member : server,
                                         is_up ? server : member, slice, is_up,
                                         err));
        }
    }
    list->n_phases++;
    return FR_OK;
}

fr_status fr_server_emit(int64_t n_group, int64_t n_servers, uint64_t n,
                         fr_transfer_list *list, fr_err *err)
{
    if (n_group == 1)
        return FR_OK;
    FR_TRY(exchange(n_group, n_servers, n, true, list, err));
    return exchange(n_group, n_servers, n, false, list, err);
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

static fr_status emit(fr_op op, int64_t n_group, uint64_t n,
                      fr_transfer_list *list, fr_err *err)
{
    (void)op;
    return fr_server_emit(n_group, 1, n, list, err);
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
    .not_executable = "a parameter server",
    .is_by_servers = true,
    .fits = fits,
    .emit = emit,
    .idle_s = idle_s,
};
