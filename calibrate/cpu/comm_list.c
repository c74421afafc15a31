/* comm_list.c: which collectives and transfers to time at which sizes. */
#include "calibrate/cpu/bench_comm.h"

#include <stdio.h>
#include <string.h>

static fr_status add(fr_comm_list *list, const fr_comm_point *point,
                     fr_err *err)
{
    for (size_t i = 0; i < list->n; i++) {
        const fr_comm_point *known = &list->items[i];
        if (known->n_bytes == point->n_bytes &&
            known->is_async == point->is_async &&
            known->is_cold == point->is_cold &&
            strcmp(known->op, point->op) == 0 &&
            strcmp(known->algorithm, point->algorithm) == 0)
            return FR_OK;
    }
    FR_TRY_PUSH(list, *point, err);
    return FR_OK;
}

/* Adds one operation and algorithm at one size, on both lanes, warm and cold.
 * */
static fr_status add_size(fr_comm_list *list, const fr_comm_wanted *wanted,
                          fr_op op, fr_collective_kind algorithm,
                          uint64_t n_bytes, fr_err *err)
{
    uint64_t unit = 4 * (uint64_t)wanted->n_group;
    fr_comm_point point = {.n_group = (int32_t)wanted->n_group,
                           .n_bytes = (n_bytes + unit - 1) / unit * unit};

    snprintf(point.op, sizeof point.op, "%s", fr_op_name(op));
    if (op != FR_OP_SEND && op != FR_OP_BARRIER)
        snprintf(point.algorithm, sizeof point.algorithm, "%s",
                 fr_name_of(&fr_collective_names, algorithm));
    snprintf(point.scope, sizeof point.scope, "%s",
             wanted->is_net ? FR_PROFILE_SCOPE_NET : FR_PROFILE_SCOPE_SHM);
    if (op == FR_OP_SEND)
        point.n_group = 2;
    for (int async = op == FR_OP_SEND; async < 2; async++) {
        /* Messages are the communication thread's either way. */
        if (wanted->is_net && !async && n_bytes > (1 << 20))
            continue;
        point.is_async = async;
        point.is_cold = false;
        FR_TRY(add(list, &point, err));
        /* On a slow link it makes no difference where the payload was. */
        if (wanted->is_net || n_bytes < (1 << 20))
            continue;
        point.is_cold = true;
        FR_TRY(add(list, &point, err));
    }
    return FR_OK;
}

/*
 * Returns whether lowering chooses the algorithm at this size, or, for
 * gradients, a plan may name it.  Closed forms give the times of the other
 * algorithms.
 */
static bool is_wanted(const fr_comm_wanted *wanted, fr_op op,
                      fr_collective_kind algorithm, uint64_t n_bytes)
{
    const fr_collective *entry = fr_collectives[algorithm];

    if (entry == NULL || !entry->fits(op, wanted->n_group))
        return false;
    if (algorithm == fr_collective_choose(FR_COLLECTIVE_AUTO, op,
                                          wanted->n_group, n_bytes,
                                          !wanted->is_net))
        return true;
    return op == FR_OP_ALL_REDUCE && !wanted->is_quick &&
           (algorithm == FR_COLLECTIVE_RING ||
            (wanted->is_net && algorithm == FR_COLLECTIVE_HALVING_DOUBLING));
}

static fr_status add_op(fr_comm_list *list, const fr_comm_wanted *wanted,
                        fr_op op, uint64_t n_bytes, fr_err *err)
{
    if (n_bytes <= wanted->min_bytes || n_bytes > wanted->max_bytes)
        return FR_OK;
    if (wanted->is_quick && (op == FR_OP_ALL_TO_ALL || op == FR_OP_SHIFT))
        return FR_OK;
    if (op == FR_OP_SEND)
        return add_size(list, wanted, op, FR_COLLECTIVE_AUTO, n_bytes, err);
    for (int kind = 1; kind < fr_n_collectives; kind++)
        if (is_wanted(wanted, op, (fr_collective_kind)kind, n_bytes))
            FR_TRY(add_size(list, wanted, op, (fr_collective_kind)kind, n_bytes,
                            err));
    return FR_OK;
}

/* Held-out sizes lie between two powers of four, at 2.5 times the lower one. */
static fr_status add_held_out(fr_comm_list *list, const fr_comm_wanted *wanted,
                              fr_err *err)
{
    size_t n_known = list->n;
    uint64_t unit = 4 * (uint64_t)wanted->n_group;

    for (size_t i = 0; i < n_known; i++) {
        fr_comm_point point = list->items[i];
        uint64_t n = point.n_bytes * 5 / 2 / unit * unit;
        if (point.n_bytes < 4096 || n > wanted->max_bytes || point.is_cold ||
            i % 3 != 0)
            continue;
        point.n_bytes = n;
        point.is_held_out = true;
        FR_TRY(add(list, &point, err));
    }
    return FR_OK;
}

fr_status fr_comm_list_fill(fr_comm_list *list, const fr_comm_wanted *wanted,
                            fr_err *err)
{
    static const fr_op ops[] = {FR_OP_ALL_REDUCE, FR_OP_REDUCE_SCATTER,
                                FR_OP_ALL_GATHER, FR_OP_BROADCAST,
                                FR_OP_SEND,       FR_OP_ALL_TO_ALL,
                                FR_OP_SHIFT};

    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
        for (uint64_t n = 16; n <= wanted->max_bytes; n *= 4)
            FR_TRY(add_op(list, wanted, ops[i], n, err));
        for (size_t k = 0; k < wanted->n_sizes; k++)
            FR_TRY(add_op(list, wanted, ops[i], wanted->sizes[k], err));
    }
    if (wanted->min_bytes == 0)
        FR_TRY(add_size(list, wanted, FR_OP_BARRIER, FR_COLLECTIVE_DIRECT, 4,
                        err));
    return add_held_out(list, wanted, err);
}
