/*
 * kernels_embed.c: token and position embedding, and their gradients.
 */
#include "runtime/kernels_cpu/kernels_list.h"
#include "runtime/kernels_cpu/kernels_simd.h"

/* Row of the local shard that holds a token; -1: another shard's. */
static int64_t local_row(const fr_kernel_call *call, int32_t token)
{
    int64_t n_local = call->instr->embed.n_local;
    int64_t row = token - call->coordinate * n_local;
    return row >= 0 && row < n_local ? row : -1;
}

/* The place in its sequence of row i of the rank's share. */
static int64_t position_of(const fr_kernel_call *call, int64_t i)
{
    const int64_t len =
        fr_sequence_share_len(call->share, call->instr->embed.seq);
    return fr_sequence_position(call->share, len, i % len);
}

void fr_kernel_embed_fwd(const fr_kernel_call *call)
{
    const fr_embed_dims *dim = &call->instr->embed;
    int64_t rows = dim->rows, cols = dim->cols;
    const int32_t *tokens = call->ptr[FR_EMBED_FWD_TOKENS];
    const float *wte = call->ptr[FR_EMBED_FWD_WTE];
    const float *wpe =
        call->coordinate == 0 ? call->ptr[FR_EMBED_FWD_WPE] : NULL;
    float *out = call->ptr[FR_EMBED_FWD_OUT];
    const float scale = (float)call->instr->scalar;
    size_t row_bytes = (size_t)cols * sizeof *out;
#pragma omp parallel for num_threads(fr_team(call, rows *cols)) schedule(static)
    for (int64_t i = 0; i < rows; i++) {
        int64_t row = local_row(call, tokens[i]);
        if (row >= 0)
            memcpy(out + i * cols, wte + row * cols, row_bytes);
        else
            memset(out + i * cols, 0, row_bytes);
        if (scale != 0.0F)
            fr_floats_scale(out + i * cols, cols, scale);
        if (wpe != NULL)
            fr_floats_add(out + i * cols, wpe + position_of(call, i) * cols,
                          cols);
    }
}

FR_SIMD static void add_scaled_row(float *restrict sum, const float *restrict x,
                                   int64_t n, float scale)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        sum[i] += scale * x[i];
}

/*
 * Tokens repeat, so the threads share the columns, not the rows: no two write
 * the same element and every sum runs in row order.
 */
void fr_kernel_embed_bwd(const fr_kernel_call *call)
{
    const fr_embed_dims *dim = &call->instr->embed;
    int64_t rows = dim->rows, cols = dim->cols;
    const int32_t *tokens = call->ptr[FR_EMBED_BWD_TOKENS];
    const float *dout = call->ptr[FR_EMBED_BWD_DOUT];
    float *dwte = call->ptr[FR_EMBED_BWD_DWTE],
          *dwpe = call->ptr[FR_EMBED_BWD_DWPE];
    const float scale = (float)call->instr->scalar;
#pragma omp parallel num_threads(fr_team(call, rows *cols))
    {
        fr_range part = fr_range_mine(cols, 16);
        int64_t n = part.last - part.first;
        for (int64_t i = 0; i < rows && n > 0; i++) {
            const float *from = dout + i * cols + part.first;
            int64_t row = local_row(call, tokens[i]);
            if (row >= 0 && scale == 0.0F)
                fr_floats_add(dwte + row * cols + part.first, from, n);
            else if (row >= 0)
                add_scaled_row(dwte + row * cols + part.first, from, n, scale);
            if (dwpe != NULL)
                fr_floats_add(dwpe + position_of(call, i) * cols + part.first,
                              from, n);
        }
    }
}
