/*
 * collective.c: the list of collective algorithms, and which one to take.
 */
#include "plan/collective/collective.h"

#include <stdlib.h>

const fr_collective *const fr_collectives[FR_COLLECTIVE_N] = {
    [FR_COLLECTIVE_RING] = &fr_collective_ring,
    [FR_COLLECTIVE_HALVING_DOUBLING] = &fr_collective_halving_doubling,
    [FR_COLLECTIVE_TREE] = &fr_collective_tree,
    [FR_COLLECTIVE_DIRECT] = &fr_collective_direct,
    [FR_COLLECTIVE_SHIFT] = &fr_collective_shift,
    [FR_COLLECTIVE_DOUBLE_TREE] = &fr_collective_double_tree,
    [FR_COLLECTIVE_HIERARCHICAL] = &fr_collective_hierarchical,
    [FR_COLLECTIVE_NVLS] = &fr_collective_nvls,
    [FR_COLLECTIVE_PAIRWISE] = &fr_collective_pairwise,
    [FR_COLLECTIVE_PARAMETER_SERVER] = &fr_collective_server,
};

/*
 * Up to here the fewer steps of halving and doubling count more than the
 * ring's even load on every link (the switch from short to long messages of
 * Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005, lies at 512 KiB too).
 */
static const uint64_t short_bytes = 512 * 1024;

static bool does(fr_collective_kind kind, fr_op op, int64_t n_group)
{
    return fr_collectives[kind] && fr_collectives[kind]->fits(op, n_group);
}

fr_collective_kind fr_collective_choose(fr_collective_kind wanted, fr_op op,
                                        int64_t n_group, uint64_t n_bytes,
                                        bool is_on_one_node)
{
    if (does(wanted, op, n_group))
        return wanted;
    if (is_on_one_node && does(FR_COLLECTIVE_DIRECT, op, n_group))
        return FR_COLLECTIVE_DIRECT;
    if (n_bytes <= short_bytes &&
        does(FR_COLLECTIVE_HALVING_DOUBLING, op, n_group))
        return FR_COLLECTIVE_HALVING_DOUBLING;
    if (does(FR_COLLECTIVE_RING, op, n_group))
        return FR_COLLECTIVE_RING;
    if (does(FR_COLLECTIVE_TREE, op, n_group))
        return FR_COLLECTIVE_TREE;
    if (does(FR_COLLECTIVE_PAIRWISE, op, n_group))
        return FR_COLLECTIVE_PAIRWISE;
    if (does(FR_COLLECTIVE_SHIFT, op, n_group))
        return FR_COLLECTIVE_SHIFT;
    return FR_COLLECTIVE_DIRECT;
}

bool fr_collective_is_of_data(fr_axis axis)
{
    return axis == FR_AXIS_DP || axis == FR_AXIS_SHARD ||
           axis == FR_AXIS_REPLICA || axis == FR_AXIS_EDP;
}

void fr_collective_tell(const fr_plan *plan, fr_instr *instr)
{
    if (!fr_collective_is_of_data((fr_axis)instr->axis))
        return;
    instr->protocol = (uint8_t)plan->protocol;
    instr->n_channels = (uint8_t)plan->n_channels;
}

bool fr_collective_has_choice(const fr_plan *plan)
{
    return plan->collective != FR_COLLECTIVE_AUTO ||
           plan->protocol != FR_PROTOCOL_AUTO || plan->n_channels > 0;
}

void fr_transfer_list_release(fr_transfer_list *list)
{
    free(list->at);
    *list = (fr_transfer_list){0};
}

fr_status fr_transfer_list_add(fr_transfer_list *list, fr_transfer transfer,
                               fr_err *err)
{
    if (transfer.n == 0)
        return FR_OK;
    if (list->n == list->cap) {
        size_t cap = list->cap ? 2 * list->cap : 64;
        fr_transfer *at = realloc(list->at, cap * sizeof *at);
        if (!at)
            return fr_fail_no_memory(err);
        list->at = at;
        list->cap = cap;
    }
    list->at[list->n++] = transfer;
    return FR_OK;
}

uint64_t fr_collective_part(uint64_t n, int64_t n_group, int64_t i)
{
    uint64_t g = (uint64_t)n_group, k = (uint64_t)i;
    return n / g * k + n % g * k / g;
}
