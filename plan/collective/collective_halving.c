/*
 * collective_halving.c: recursive halving and doubling (Rabenseifner 2004;
 * Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005): the ring's bytes in
 * log2(g) steps each way, for groups of 2^k members.
 */
#include "plan/collective/collective.h"

static int log2_of(int64_t n)
{
    int bits = 0;
    while (((int64_t)1 << bits) < n)
        bits++;
    return bits;
}

static bool fits(fr_op op, int64_t n_group)
{
    return n_group >= 1 && ((int64_t)1 << log2_of(n_group)) == n_group &&
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
        int64_t slice = owner / half * half;
        uint64_t first = fr_collective_part(n, g, slice);
        fr_transfer transfer = {
            .phase = list->n_phases,
            .src = (uint32_t)i,
            .dst = (uint32_t)partner,
            .src_first = first,
            .dst_first = first,
            .n = fr_collective_part(n, g, slice + half) - first,
            .is_reduce = is_halving,
        };
        FR_TRY(fr_transfer_list_add(list, transfer, err));
    }
    list->n_phases++;
    return FR_OK;
}

static fr_status emit(fr_op op, int64_t n_group, uint64_t n,
                      fr_transfer_list *list, fr_err *err)
{
    const int bits = log2_of(n_group);
    list->n = 0;
    list->n_phases = 0;
    for (int bit = bits; bit-- > 0 && op != FR_OP_ALL_GATHER;)
        FR_TRY(exchange(n_group, n, bit, true, list, err));
    for (int bit = 0; bit < bits && op != FR_OP_REDUCE_SCATTER; bit++)
        FR_TRY(exchange(n_group, n, bit, false, list, err));
    return FR_OK;
}

static double idle_s(fr_op op, int64_t n_group, uint64_t n,
                     uint64_t element_bytes, const fr_link_cost *link)
{
    const int bits = log2_of(n_group);
    double move_s = 0, reduce_s = 0;
    for (int bit = 0; bit < bits; bit++) {
        uint64_t slices = (uint64_t)1 << bit, g = (uint64_t)n_group;
        uint64_t largest = (n * slices + g - 1) / g;
        double bytes = (double)largest * (double)element_bytes;
        move_s += link->latency_s + bytes * link->s_per_byte;
        reduce_s += bytes * link->reduce_s_per_byte;
    }
    return op == FR_OP_ALL_REDUCE       ? 2 * move_s + reduce_s
           : op == FR_OP_REDUCE_SCATTER ? move_s + reduce_s
                                        : move_s;
}

const fr_collective fr_collective_halving_doubling = {
    .name = "halving-doubling",
    .summary = "pairs at distance 1, 2, 4 ...: few steps, groups of 2^k",
    .fits = fits,
    .emit = emit,
    .idle_s = idle_s,
};
