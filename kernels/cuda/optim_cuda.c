/*
 * optim_cuda.c: see optim_cuda.h.  kernels_optim.c says what is counted.
 */
#include "kernels/cuda/optim_cuda.h"

#include <string.h>

int64_t fr_cuda_range_n(const fr_kernel_call *call)
{
    return call->instr->range.n;
}

/* The part of the tensor that lies in the range; n is 0 if there is none. */
static fr_cuda_run run_of(const fr_kernel_call *call, uint32_t i_tensor)
{
    const fr_tensor *tensor = &call->tensors[i_tensor];
    const int64_t first = fr_instr_range_first(call->instr, call->coordinate);
    const int64_t last = first + fr_cuda_range_n(call);
    int64_t begin = (int64_t)tensor->first, end = begin + (int64_t)tensor->n;
    begin = begin > first ? begin : first;
    end = end < last ? end : last;
    bool is_own = tensor->sharded_dim != 0 || call->tp_coordinate == 0;
    bool is_norm = call->instr->op == FR_OP_GRAD_SQSUM;
    return (fr_cuda_run){.first = begin - first,
                         .n = end > begin ? end - begin : 0,
                         .i_tensor = i_tensor,
                         .is_decayed = tensor->is_decayed,
                         .is_counted =
                             is_own && !(is_norm && tensor->is_tied_copy)};
}

/* May `next` be part of `last`?  Padding between them must stay apart. */
static bool is_joined(fr_cuda_run_kind kind, const fr_cuda_run *last,
                      const fr_cuda_run *next)
{
    if (last->first + last->n != next->first)
        return false;
    return kind == FR_CUDA_RUN_COUNTED ||
           (kind == FR_CUDA_RUN_DECAY && last->is_decayed == next->is_decayed);
}

static void count_blocks(fr_cuda_runs *runs)
{
    runs->first_block[0] = 0;
    for (uint32_t i = 0; i < runs->n; i++)
        runs->first_block[i + 1] =
            runs->first_block[i] +
            (uint32_t)((runs->at[i].n + FR_CUDA_BLOCK_ELEMENTS - 1) /
                       FR_CUDA_BLOCK_ELEMENTS);
}

bool fr_cuda_runs_next(const fr_kernel_call *call, fr_cuda_run_kind kind,
                       uint32_t *i_tensor, fr_cuda_runs *out)
{
    memset(out, 0, sizeof *out);
    for (; *i_tensor < call->n_tensors; ++*i_tensor) {
        const fr_cuda_run run = run_of(call, *i_tensor);
        fr_cuda_run *last = out->n > 0 ? &out->at[out->n - 1] : NULL;
        if (run.n == 0 || (kind == FR_CUDA_RUN_COUNTED && !run.is_counted))
            continue;
        if (last != NULL && is_joined(kind, last, &run))
            last->n += run.n;
        else if (out->n == FR_CUDA_RUNS)
            break;
        else
            out->at[out->n++] = run;
    }
    count_blocks(out);
    return out->n > 0;
}
