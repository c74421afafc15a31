/*
 * collective_ring.c: the ring (Patarasuk and Yuan, JPDC 69(2), 2009): every
 * link carries (g-1)/g of the bytes per half, in g-1 steps each.
 */
#include "plan/collective/collective.h"

double fr_collective_halves_s(fr_op op, double move_s, double reduce_s)
{
    return op == FR_OP_ALL_REDUCE       ? 2 * move_s + reduce_s
           : op == FR_OP_REDUCE_SCATTER ? move_s + reduce_s
                                        : move_s;
}

static bool fits(fr_op op, int64_t n_group)
{
    return n_group >= 1 &&
           (op == FR_OP_ALL_REDUCE || op == FR_OP_REDUCE_SCATTER ||
            op == FR_OP_ALL_GATHER);
}

/* In step s member i passes slice (i - s + shift) to i + 1. */
static fr_status rotate(int64_t g, uint64_t n, int64_t shift, bool is_reduce,
                        fr_transfer_list *list, fr_err *err)
{
    for (int64_t step = 0; step < g - 1; step++) {
        for (int64_t i = 0; i < g; i++) {
            fr_slice slice =
                fr_collective_slice(n, g, (i - step + shift + 2 * g) % g);
            FR_TRY(fr_transfer_list_move(list, i, (i + 1) % g, slice, is_reduce,
                                         err));
        }
        list->n_phases++;
    }
    return FR_OK;
}

static fr_status emit(fr_op op, int64_t n_group, uint64_t n,
                      fr_transfer_list *list, fr_err *err)
{
    /* After the first half member i holds slice i, as REDUCE_SCATTER asks. */
    if (op != FR_OP_ALL_GATHER)
        FR_TRY(rotate(n_group, n, -1, true, list, err));
    if (op != FR_OP_REDUCE_SCATTER)
        FR_TRY(rotate(n_group, n, 0, false, list, err));
    return FR_OK;
}

static double idle_s(fr_op op, int64_t n_group, uint64_t n,
                     uint64_t element_bytes, const fr_link_cost *link)
{
    double steps = (double)(n_group - 1);
    uint64_t g = (uint64_t)n_group;
    uint64_t slice = (n + g - 1) / g; /* the largest one */
    double slice_bytes = (double)slice * (double)element_bytes;
    double move_s = steps * (link->latency_s + slice_bytes * link->s_per_byte);
    double reduce_s = steps * slice_bytes * link->reduce_s_per_byte;
    return fr_collective_halves_s(op, move_s, reduce_s);
}

const fr_collective fr_collective_ring = {
    .name = "ring",
    .summary = "slices go round a ring: full bandwidth, many steps",
    .has_nccl = true,
    .nccl = FR_NCCL_RING,
    .fits = fits,
    .emit = emit,
    .idle_s = idle_s,
};
