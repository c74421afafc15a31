/* nccl_ranges.c: see nccl_ranges.h. */
#include "cost_models/link/nccl_ranges.h"

#include <string.h>

enum { LAST_POWER = 40 };

/* The range of one size alone. */
static fr_status at(const fr_gpu_comm_model *comm, const fr_instr *collective,
                    const fr_comm_scope *scope, uint64_t n_bytes,
                    fr_nccl_range *out, fr_err *err)
{
    fr_instr instr = *collective;
    fr_nccl_time time;

    instr.dtype = FR_DTYPE_U8;
    instr.comm.n = (int64_t)n_bytes;
    FR_TRY(fr_gpu_comm_choice(comm, &instr, scope, &time, err));
    *out = (fr_nccl_range){n_bytes, n_bytes, time.algorithm, time.protocol};
    return FR_OK;
}

static bool is_alike(const fr_nccl_range *a, const fr_nccl_range *b)
{
    return strcmp(a->algorithm, b->algorithm) == 0 &&
           strcmp(a->protocol, b->protocol) == 0;
}

/* Between a size with `low`'s choice and `next`: the ranges that begin there.
 * Halving finds one of several changes; what is left is looked at again. */
static fr_status between(const fr_gpu_comm_model *comm,
                         const fr_instr *collective, const fr_comm_scope *scope,
                         const fr_nccl_range *next, fr_nccl_range *out, int *n,
                         fr_err *err)
{
    while (*n < FR_NCCL_MAX_RANGES && !is_alike(&out[*n - 1], next)) {
        fr_nccl_range high = *next;
        uint64_t low_bytes = out[*n - 1].max_bytes;
        while (high.min_bytes - low_bytes > 1) {
            uint64_t half = low_bytes + (high.min_bytes - low_bytes) / 2;
            fr_nccl_range middle;
            FR_TRY(at(comm, collective, scope, half, &middle, err));
            if (is_alike(&middle, &out[*n - 1]))
                low_bytes = half;
            else
                high = middle;
        }
        out[*n - 1].max_bytes = high.min_bytes - 1;
        out[(*n)++] = high;
    }
    out[*n - 1].max_bytes = next->max_bytes;
    return FR_OK;
}

fr_status fr_nccl_ranges_of(const fr_gpu_comm_model *comm,
                            const fr_instr *collective,
                            const fr_comm_scope *scope,
                            fr_nccl_range out[FR_NCCL_MAX_RANGES], int *n,
                            fr_err *err)
{
    FR_TRY(at(comm, collective, scope, 1, &out[0], err));
    *n = 1;
    for (int power = 1; power <= LAST_POWER; power++) {
        fr_nccl_range next;
        FR_TRY(at(comm, collective, scope, (uint64_t)1 << power, &next, err));
        FR_TRY(between(comm, collective, scope, &next, out, n, err));
    }
    out[0].min_bytes = 0;
    out[*n - 1].max_bytes = UINT64_MAX;
    return FR_OK;
}
