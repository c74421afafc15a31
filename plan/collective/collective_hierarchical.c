/*
 * collective_hierarchical.c: a ring inside each node, rings between the
 * members of equal place, and a ring inside again: a node's network carries
 * (nodes-1)/nodes of the payload per half however many members it has.
 *
 * Member (m, j) is the j-th of node m; it works for the slices of all (., j).
 */
#include "plan/collective/collective.h"

static int64_t local_size(int64_t n_group)
{
    for (int64_t k = 8; k > 1; k--)
        if (n_group % k == 0 && n_group > k)
            return k;
    return 1;
}

static bool fits(fr_op op, int64_t n_group)
{
    return (n_group == 1 || local_size(n_group) > 1) &&
           (op == FR_OP_ALL_REDUCE || op == FR_OP_REDUCE_SCATTER ||
            op == FR_OP_ALL_GATHER);
}

typedef struct shape {
    int64_t n_nodes, n_local;
    uint64_t n;
    bool is_reduce;
} shape;

static fr_status pass(const shape *s, int64_t slice, int64_t src, int64_t dst,
                      fr_transfer_list *list, fr_err *err)
{
    int64_t g = s->n_nodes * s->n_local;

    return fr_transfer_list_move(
        list, src, dst, fr_collective_slice(s->n, g, slice), s->is_reduce, err);
}

/* In step t member j passes the set of (j - t + shift) to the next one. */
static fr_status inside(const shape *s, fr_transfer_list *list, fr_err *err)
{
    const int64_t k = s->n_local, shift = s->is_reduce ? -1 : 0;

    for (int64_t t = 0; t < k - 1; t++, list->n_phases++)
        for (int64_t m = 0; m < s->n_nodes; m++)
            for (int64_t j = 0; j < k; j++) {
                int64_t set = (j - t + shift + 2 * k) % k;
                for (int64_t at = 0; at < s->n_nodes; at++)
                    FR_TRY(pass(s, at * k + set, m * k + j, m * k + (j + 1) % k,
                                list, err));
            }
    return FR_OK;
}

static fr_status between(const shape *s, fr_transfer_list *list, fr_err *err)
{
    const int64_t k = s->n_local, n_nodes = s->n_nodes;
    const int64_t shift = s->is_reduce ? -1 : 0;

    for (int64_t t = 0; t < n_nodes - 1; t++, list->n_phases++)
        for (int64_t m = 0; m < n_nodes; m++)
            for (int64_t j = 0; j < k; j++) {
                int64_t at = (m - t + shift + 2 * n_nodes) % n_nodes;
                FR_TRY(pass(s, at * k + j, m * k + j, (m + 1) % n_nodes * k + j,
                            list, err));
            }
    return FR_OK;
}

static fr_status emit(fr_op op, int64_t n_group, uint64_t n,
                      fr_transfer_list *list, fr_err *err)
{
    int64_t k = local_size(n_group);
    shape s = {n_group / k, k, n, true};

    if (op != FR_OP_ALL_GATHER) {
        FR_TRY(inside(&s, list, err));
        FR_TRY(between(&s, list, err));
    }
    s.is_reduce = false;
    if (op != FR_OP_REDUCE_SCATTER) {
        FR_TRY(between(&s, list, err));
        FR_TRY(inside(&s, list, err));
    }
    return FR_OK;
}

static double half_s(double n_steps, double bytes, bool is_reduce,
                     const fr_link_cost *link)
{
    double s_per_byte = link->s_per_byte;

    if (is_reduce)
        s_per_byte += link->reduce_s_per_byte;
    return n_steps * (link->latency_s + bytes * s_per_byte);
}

double fr_hierarchical_idle_s(fr_op op, int64_t n_nodes, int64_t n_local,
                              double n_bytes, const fr_link_cost *within,
                              const fr_link_cost *net)
{
    double slice = n_bytes / (double)(n_nodes * n_local), sum_s = 0;
    double set = slice * (double)n_nodes;

    for (int is_reduce = 0; is_reduce < 2; is_reduce++) {
        if (op == (is_reduce ? FR_OP_ALL_GATHER : FR_OP_REDUCE_SCATTER))
            continue;
        sum_s += half_s((double)(n_local - 1), set, is_reduce, within) +
                 half_s((double)(n_nodes - 1), slice, is_reduce, net);
    }
    return sum_s;
}

static double idle_s(fr_op op, int64_t n_group, uint64_t n,
                     uint64_t element_bytes, const fr_link_cost *link)
{
    int64_t k = local_size(n_group);

    uint64_t g = (uint64_t)n_group;
    uint64_t slice = (n + g - 1) / g; /* the largest one */

    return fr_hierarchical_idle_s(
        op, n_group / k, k, (double)(slice * g * element_bytes), link, link);
}

const fr_collective fr_collective_hierarchical = {
    .name = "hierarchical",
    .summary = "rings inside the nodes and between them",
    .nccl = FR_NCCL_HIERARCHY,
    .fits = fits,
    .emit = emit,
    .idle_s = idle_s,
};
