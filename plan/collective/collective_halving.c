/*
 * collective_halving.c: recursive halving and doubling (Rabenseifner 2004;
 * Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005): the ring's bytes in
 * log2(g) steps each way, for groups of 2^k members.
 */
#include "plan/collective/collective.h"

static bool fits(fr_op op, int64_t n_group)
{
    return fr_collective_is_power_of_2(n_group) &&
           (op == FR_OP_ALL_REDUCE || op == FR_OP_REDUCE_SCATTER ||
            op == FR_OP_ALL_GATHER);
}

/*
 * Partners differ in bit `bit`.  Halving: the pair shares the slices of one
 * block of 2^(bit+1), each sends the half that the other one keeps; doubling
 * sends the half that one has.
 */
static fr_status exchange(int64_t g, uint64_t n, int bit, bool is_halving,
                          fr_transfer_list *list, fr_err *err)
{
    const int64_t half = (int64_t)1 << bit;
    for (int64_t i = 0; i < g; i++) {
        int64_t partner = i ^ half;
        int64_t owner = is_halving ? partner : i;
        int64_t first = owner / half * half;
        fr_slice slices = {fr_collective_part(n, g, first),
                           fr_collective_part(n, g, first + half)};
        FR_TRY(
            fr_transfer_list_move(list, i, partner, slices, is_halving, err));
    }
    list->n_phases++;
    return FR_OK;
}

static fr_status emit(fr_op op, int64_t n_group, uint64_t n,
                      fr_transfer_list *list, fr_err *err)
{
    const int bits = fr_collective_levels(n_group);
    for (int bit = bits; bit-- > 0 && op != FR_OP_ALL_GATHER;)
        FR_TRY(exchange(n_group, n, bit, true, list, err));
    for (int bit = 0; bit < bits && op != FR_OP_REDUCE_SCATTER; bit++)
        FR_TRY(exchange(n_group, n, bit, false, list, err));
    return FR_OK;
}

static double idle_s(fr_op op, int64_t n_group, uint64_t n,
                     uint64_t element_bytes, const fr_link_cost *link)
{
    const int bits = fr_collective_levels(n_group);
    double move_s = 0, reduce_s = 0;
    for (int bit = 0; bit < bits; bit++) {
        uint64_t slices = (uint64_t)1 << bit, g = (uint64_t)n_group;
        uint64_t largest = (n * slices + g - 1) / g;
        double bytes = (double)largest * (double)element_bytes;
        move_s += link->latency_s + bytes * link->s_per_byte;
        reduce_s += bytes * link->reduce_s_per_byte;
    }
    return fr_collective_halves_s(op, move_s, reduce_s);
}

const fr_collective fr_collective_halving_doubling = {
    .name = "halving-doubling",
    .summary = "pairs at distance 1, 2, 4 ...: few steps, groups of 2^k",
    .fits = fits,
    .emit = emit,
    .idle_s = idle_s,
};
