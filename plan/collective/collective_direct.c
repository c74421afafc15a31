/*
 * collective_direct.c: everybody pulls from everybody.  Inside a node memory
 * is the link: each byte is read where it lies, without stops on the way.
 *
 * A member reduces its own slice from all the others, then (ALL_REDUCE) pulls
 * the finished slices.  The sources of a slice come in the order of their
 * distance, so that not all read the same member at once.
 */
#include "plan/collective/collective.h"

static bool fits(fr_op op, int64_t n_group)
{
    return n_group >= 1 &&
           (op == FR_OP_ALL_REDUCE || op == FR_OP_REDUCE_SCATTER ||
            op == FR_OP_ALL_GATHER || op == FR_OP_BROADCAST);
}

/* dst pulls the slice of `owner` from src. */
static fr_status pull(int64_t g, uint64_t n, bool is_reduce,
                      fr_transfer_list *list, fr_err *err)
{
    for (int64_t distance = 1; distance < g; distance++) {
        for (int64_t dst = 0; dst < g; dst++) {
            int64_t src = (dst + distance) % g;
            fr_slice slice = fr_collective_slice(n, g, is_reduce ? dst : src);
            FR_TRY(
                fr_transfer_list_move(list, src, dst, slice, is_reduce, err));
        }
    }
    list->n_phases++;
    return FR_OK;
}

static fr_status emit(fr_op op, int64_t n_group, uint64_t n,
                      fr_transfer_list *list, fr_err *err)
{
    if (op == FR_OP_BROADCAST) {
        for (int64_t dst = 1; dst < n_group; dst++)
            FR_TRY(fr_transfer_list_move(list, 0, dst, (fr_slice){0, n}, false,
                                         err));
        list->n_phases = n_group > 1;
        return FR_OK;
    }
    if (n_group > 1 && op != FR_OP_ALL_GATHER)
        FR_TRY(pull(n_group, n, true, list, err));
    if (n_group > 1 && op != FR_OP_REDUCE_SCATTER)
        FR_TRY(pull(n_group, n, false, list, err));
    return FR_OK;
}

static double idle_s(fr_op op, int64_t n_group, uint64_t n,
                     uint64_t element_bytes, const fr_link_cost *link)
{
    uint64_t g = (uint64_t)n_group;
    double others = (double)(n_group - 1);
    uint64_t slice = (n + g - 1) / g; /* the largest one */
    double slice_bytes = (double)slice * (double)element_bytes;
    if (n_group == 1)
        return 0;
    if (op == FR_OP_BROADCAST)
        return link->latency_s +
               others * (double)(n * element_bytes) * link->s_per_byte;
    double move_s = link->latency_s + others * slice_bytes * link->s_per_byte;
    double reduce_s = others * slice_bytes * link->reduce_s_per_byte;
    return fr_collective_halves_s(op, move_s, reduce_s);
}

const fr_collective fr_collective_direct = {
    .name = "direct",
    .summary = "everybody pulls from everybody: shared memory",
    .is_direct = true,
    .fits = fits,
    .emit = emit,
    .idle_s = idle_s,
};
