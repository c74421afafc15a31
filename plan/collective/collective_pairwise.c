/*
 * collective_pairwise.c: all-to-all, in step s everybody sends to the member
 * s places on (Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005, section 4.3).
 */
#include "plan/collective/collective.h"

static bool fits(fr_op op, int64_t n_group)
{
    return n_group >= 1 && op == FR_OP_ALL_TO_ALL;
}

static fr_status emit(fr_op op, int64_t n_group, uint64_t n,
                      fr_transfer_list *list, fr_err *err)
{
    (void)op;
    for (int64_t step = 1; step < n_group; step++, list->n_phases++) {
        for (int64_t i = 0; i < n_group; i++) {
            int64_t partner = (i + step) % n_group;
            fr_slice slice = fr_collective_slice(n, n_group, partner);
            fr_transfer transfer = {
                .phase = list->n_phases,
                .src = (uint32_t)i,
                .dst = (uint32_t)partner,
                .src_first = slice.first,
                .dst_first = fr_collective_part(n, n_group, i),
                .n = slice.end - slice.first,
            };
            FR_TRY(fr_transfer_list_add(list, transfer, err));
        }
    }
    return FR_OK;
}

static double idle_s(fr_op op, int64_t n_group, uint64_t n,
                     uint64_t element_bytes, const fr_link_cost *link)
{
    uint64_t g = (uint64_t)n_group;
    uint64_t slice = (n + g - 1) / g;

    (void)op;
    return (double)(n_group - 1) *
           (link->latency_s +
            (double)(slice * element_bytes) * link->s_per_byte);
}

const fr_collective fr_collective_pairwise = {
    .name = "pairwise",
    .summary = "all-to-all, one partner after the other",
    .nccl = FR_NCCL_PAIRS,
    .fits = fits,
    .emit = emit,
    .idle_s = idle_s,
};
