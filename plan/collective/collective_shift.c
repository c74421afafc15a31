/*
 * collective_shift.c: everybody sends all it has to the next member and gets
 * that of the one before: one step of a ring, as context parallel attention
 * and split products take them.
 */
#include "plan/collective/collective.h"

static bool fits(fr_op op, int64_t n_group)
{
    return n_group >= 1 && op == FR_OP_SHIFT;
}

static fr_status emit(fr_op op, int64_t n_group, uint64_t n,
                      fr_transfer_list *list, fr_err *err)
{
    (void)op;
    for (int64_t i = 0; n_group > 1 && i < n_group; i++)
        FR_TRY(fr_transfer_list_move(list, i, (i + 1) % n_group,
                                     (fr_slice){0, n}, false, err));
    list->n_phases = n_group > 1;
    return FR_OK;
}

static double idle_s(fr_op op, int64_t n_group, uint64_t n,
                     uint64_t element_bytes, const fr_link_cost *link)
{
    (void)op;
    return n_group == 1 ? 0
                        : link->latency_s +
                              (double)(n * element_bytes) * link->s_per_byte;
}

const fr_collective fr_collective_shift = {
    .name = "shift",
    .summary = "one step of a ring: all to the next member",
    .not_executable = "a step of a ring by itself",
    .is_internal = true,
    .fits = fits,
    .emit = emit,
    .idle_s = idle_s,
};
