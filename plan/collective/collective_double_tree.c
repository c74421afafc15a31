/*
 * collective_double_tree.c: two binary trees, each with half of the payload,
 * so that who is inside one is a leaf of the other and no link idles (Sanders,
 * Speck, Traeff, Parallel Computing 35(12), 2009; NCCL's trees).  One chunk;
 * groups of 2^k.
 *
 * First tree: a member's level is that of its lowest set bit; leaves are odd,
 * member 0 is the root above the middle one.  The second is its mirror image.
 */
#include "plan/collective/collective.h"

static bool fits(fr_op op, int64_t n_group)
{
    return fr_collective_is_power_of_2(n_group) && op == FR_OP_ALL_REDUCE;
}

/* All of one level to their parents, or from them. */
static fr_status level(int64_t g, uint64_t n, int bit, bool is_up,
                       fr_transfer_list *list, fr_err *err)
{
    const int64_t lowest = (int64_t)1 << bit;
    const uint64_t half = n / 2;

    for (int64_t i = lowest; i < g; i += 2 * lowest) {
        int64_t above = (i ^ lowest) | (lowest << 1);
        int64_t parent = above < g ? above : i ^ lowest;
        for (int mirror = 0; mirror < 2; mirror++) {
            int64_t child = mirror ? g - 1 - i : i;
            int64_t upper = mirror ? g - 1 - parent : parent;
            fr_slice slice = {mirror ? half : 0, mirror ? n : half};
            FR_TRY(fr_transfer_list_move(list, is_up ? child : upper,
                                         is_up ? upper : child, slice, is_up,
                                         err));
        }
    }
    list->n_phases++;
    return FR_OK;
}

static fr_status emit(fr_op op, int64_t n_group, uint64_t n,
                      fr_transfer_list *list, fr_err *err)
{
    const int bits = fr_collective_levels(n_group);

    (void)op;
    for (int bit = 0; bit < bits; bit++)
        FR_TRY(level(n_group, n, bit, true, list, err));
    for (int bit = bits; bit-- > 0;)
        FR_TRY(level(n_group, n, bit, false, list, err));
    return FR_OK;
}

/* A parent has two children but for the root, which has one. */
static double idle_s(fr_op op, int64_t n_group, uint64_t n,
                     uint64_t element_bytes, const fr_link_cost *link)
{
    const int bits = fr_collective_levels(n_group);
    double half = (double)((n + 1) / 2 * element_bytes);
    double n_halves = 2.0 * (double)(bits - 1) + 1.0;

    (void)op;
    if (bits == 0)
        return 0;
    return 2.0 * ((double)bits * link->latency_s +
                  n_halves * half * link->s_per_byte) +
           n_halves * half * link->reduce_s_per_byte;
}

const fr_collective fr_collective_double_tree = {
    .name = "double-tree",
    .summary = "two trees with half of the payload each, groups of 2^k",
    .has_nccl = true,
    .nccl = FR_NCCL_TREE,
    .fits = fits,
    .emit = emit,
    .idle_s = idle_s,
};
