/*
 * collective.c: which collective algorithm to take, and what a plan says of it.
 */
#include "plan/collective/collective.h"

#include <stddef.h>

static const char *name_at(int i)
{
    if (i == FR_COLLECTIVE_AUTO)
        return "auto"; /* a choice of plans, no algorithm */
    return i < fr_n_collectives ? fr_collectives[i]->name : NULL;
}
const fr_names fr_collective_names = {.at = name_at,
                                      .n_rows = &fr_n_collectives};

/*
 * Up to here the fewer steps of halving and doubling count more than the
 * ring's even load on every link (the switch from short to long messages of
 * Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005, lies at 512 KiB too).
 */
static const uint64_t short_bytes = 512 * 1024;

static bool does(fr_collective_kind kind, fr_op op, int64_t n_group)
{
    return fr_collectives[kind] != NULL &&
           fr_collectives[kind]->fits(op, n_group);
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

fr_nccl_algorithm fr_collective_nccl(fr_collective_kind kind)
{
    const fr_collective *entry = fr_collectives[kind];
    return entry != NULL ? entry->nccl : FR_NCCL_NO_ALGORITHM;
}

fr_collective_kind fr_collective_of_simulation(void)
{
    for (int kind = 1; kind < fr_n_collectives; kind++)
        if (fr_collectives[kind]->not_executable != NULL &&
            fr_collectives[kind]->has_nccl)
            return (fr_collective_kind)kind;
    return FR_COLLECTIVE_AUTO;
}

bool fr_collective_is_by_servers(fr_collective_kind kind)
{
    const fr_collective *entry = fr_collectives[kind];
    return entry != NULL && entry->is_by_servers;
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
