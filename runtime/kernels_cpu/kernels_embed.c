/*
 * kernels_embed.c: token and position embedding, and their gradients.
 */
#include "runtime/kernels_cpu/kernels_list.h"
#include "runtime/kernels_cpu/kernels_simd.h"

/* Row of the local shard that holds a token; -1: another shard's. */
static int64_t local_row(const fr_kernel_call *call, int32_t token)
{
    int64_t n_local = call->instr->dim[2];
    int64_t row = token - call->coordinate * n_local;
    return row >= 0 && row < n_local ? row : -1;
}

void fr_kernel_embed_fwd(const fr_kernel_call *call)
{
    const int64_t *dim = call->instr->dim;
    int64_t rows = dim[0], cols = dim[1], seq = dim[3];
    const int32_t *tokens = call->ptr[0];
    const float *wte = call->ptr[1];
    const float *wpe = call->coordinate == 0 ? call->ptr[2] : NULL;
    float *out = call->ptr[3];
    size_t row_bytes = (size_t)cols * sizeof *out;
#pragma omp parallel for num_threads(fr_team(call, rows *cols)) schedule(static)
    for (int64_t i = 0; i < rows; i++) {
        int64_t row = local_row(call, tokens[i]);
        if (row >= 0)
            memcpy(out + i * cols, wte + row * cols, row_bytes);
        else
            memset(out + i * cols, 0, row_bytes);
        if (wpe != NULL)
            fr_floats_add(out + i * cols, wpe + i % seq * cols, cols);
    }
}

/*
 * Tokens repeat, so the threads share the columns, not the rows: no two write
 * the same element and every sum runs in row order.
 */
void fr_kernel_embed_bwd(const fr_kernel_call *call)
{
    const int64_t *dim = call->instr->dim;
    int64_t rows = dim[0], cols = dim[1], seq = dim[3];
    const int32_t *tokens = call->ptr[0];
    const float *dout = call->ptr[1];
    float *dwte = call->ptr[2], *dwpe = call->ptr[3];
#pragma omp parallel num_threads(fr_team(call, rows *cols))
    {
        fr_range part = fr_range_mine(cols, 16);
        int64_t n = part.last - part.first;
        for (int64_t i = 0; i < rows && n > 0; i++) {
            const float *from = dout + i * cols + part.first;
            int64_t row = local_row(call, tokens[i]);
            if (row >= 0)
                fr_floats_add(dwte + row * cols + part.first, from, n);
            if (dwpe != NULL)
                fr_floats_add(dwpe + i % seq * cols + part.first, from, n);
        }
    }
}
