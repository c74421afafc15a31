/*
 * collective_tree.c: binomial tree to member 0 and back: the fewest steps for
 * tiny payloads of groups of any size; also BROADCAST from member 0.
 */
#include "plan/collective/collective.h"

static bool fits(fr_op op, int64_t n_group)
{
    return n_group >= 1 && (op == FR_OP_ALL_REDUCE || op == FR_OP_BROADCAST);
}

/* Members i = distance (mod 2 distance) and i - distance exchange. */
static fr_status level(int64_t g, uint64_t n, int bit, bool is_up,
                       fr_transfer_list *list, fr_err *err)
{
    const int64_t distance = (int64_t)1 << bit;
    for (int64_t i = distance; i < g; i += 2 * distance) {
        int64_t parent = i - distance;
        FR_TRY(fr_transfer_list_move(list, is_up ? i : parent,
                                     is_up ? parent : i, (fr_slice){0, n},
                                     is_up, err));
    }
    list->n_phases++;
    return FR_OK;
}

static fr_status emit(fr_op op, int64_t n_group, uint64_t n,
                      fr_transfer_list *list, fr_err *err)
{
    const int levels = fr_collective_levels(n_group);
    for (int bit = 0; bit < levels && op == FR_OP_ALL_REDUCE; bit++)
        FR_TRY(level(n_group, n, bit, true, list, err));
    for (int bit = levels; bit-- > 0;)
        FR_TRY(level(n_group, n, bit, false, list, err));
    return FR_OK;
}

static double idle_s(fr_op op, int64_t n_group, uint64_t n,
                     uint64_t element_bytes, const fr_link_cost *link)
{
    double bytes = (double)(n * element_bytes);
    double levels = (double)fr_collective_levels(n_group);
    double down_s = levels * (link->latency_s + bytes * link->s_per_byte);
    double up_s = down_s + levels * bytes * link->reduce_s_per_byte;
    return op == FR_OP_ALL_REDUCE ? up_s + down_s : down_s;
}

const fr_collective fr_collective_tree = {
    .name = "tree",
    .summary = "binomial tree up and down: for tiny payloads",
    .is_whole = true,
    .nccl = FR_NCCL_TREE,
    .fits = fits,
    .emit = emit,
    .idle_s = idle_s,
};
