/*
 * collective_nvls.c: the switch adds (NVLink SHARP; Graham et al., SHARP,
 * COMHPC 2016).  Each member asks the switch for the sum of its slice and
 * sends the result back, which the switch gives to all: (1 + 1/g) payloads
 * through each port and direction, whatever the group's size.
 *
 * In chunks, so that going up and coming down overlap.
 */
#include "plan/collective/collective.h"

enum { N_CHUNKS = 16, N_STAGES = 4 };

static bool fits(fr_op op, int64_t n_group)
{
    return n_group >= 1 && op == FR_OP_ALL_REDUCE;
}

/* Stages of a chunk: up to the sum, sum to the owner, back, down to all. */
static fr_status stage_of(int stage, int64_t g, fr_slice chunk,
                          fr_transfer_list *list, fr_err *err)
{
    const uint64_t n = chunk.end - chunk.first;

    for (int64_t i = 0; i < g; i++) {
        bool is_whole = stage == 0 || stage == N_STAGES - 1;
        fr_slice own =
            is_whole ? (fr_slice){0, n} : fr_collective_slice(n, g, i);
        fr_slice slice = {chunk.first + own.first, chunk.first + own.end};
        bool is_up = stage % 2 == 0;
        FR_TRY(fr_transfer_list_move(list, is_up ? i : g, is_up ? g : i, slice,
                                     stage == 0, err));
    }
    return FR_OK;
}

static fr_status emit(fr_op op, int64_t n_group, uint64_t n,
                      fr_transfer_list *list, fr_err *err)
{
    (void)op;
    for (int phase = 0; n_group > 1 && phase < N_CHUNKS + N_STAGES - 1;
         phase++, list->n_phases++)
        for (int stage = 0; stage < N_STAGES; stage++) {
            int chunk = phase - stage;
            if (chunk < 0 || chunk >= N_CHUNKS)
                continue;
            FR_TRY(stage_of(stage, n_group,
                            fr_collective_slice(n, N_CHUNKS, chunk), list,
                            err));
        }
    return FR_OK;
}

/* Adding is the switch's work.  In the first three phases nothing whole comes
 * down, in the last three nothing whole goes up. */
static double idle_s(fr_op op, int64_t n_group, uint64_t n,
                     uint64_t element_bytes, const fr_link_cost *link)
{
    double g = (double)n_group;
    double chunk = (double)(n * element_bytes) / N_CHUNKS;
    double down = chunk, up = chunk + chunk / g; /* of phases 2 to the last */

    (void)op;
    if (n_group == 1)
        return 0;
    /* Phases 0 and 1: up alone; 2 to N-1: up and the result; then N_STAGES-1
     * phases of what is still to come down. */
    return (N_CHUNKS + N_STAGES - 1) * link->latency_s +
           link->s_per_byte *
               (2 * down + (N_CHUNKS - 2) * up + (down + chunk / g) + 2 * down);
}

const fr_collective fr_collective_nvls = {
    .name = "nvls",
    .summary = "the switch between the GPUs of a node adds",
    .not_executable = "adding in the switch",
    .has_nccl = true,
    .is_simple_only = true,
    .nccl = FR_NCCL_NVLS,
    .fits = fits,
    .emit = emit,
    .idle_s = idle_s,
};
