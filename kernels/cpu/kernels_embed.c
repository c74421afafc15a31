/*
 * kernels_embed.c: token and position embedding, and their gradients.
 */
#include "kernels/cpu/kernels_simd.h"
#include "kernels/cpu/narrow/narrow.h"
#include "kernels/kernels_list.h"

/* Row of the local shard that holds a token; -1: another shard's.  A table
 * whose first row is that of all tokens is whole on each rank: one adds it to
 * the sum, all have its gradient. */
static int64_t local_row(const fr_kernel_call *call, int32_t token)
{
    int64_t n_local = call->instr->embed.n_local;
    if ((call->instr->flags & FR_INSTR_FIRST_ROW) != 0)
        return call->coordinate == 0 || call->instr->op == FR_OP_EMBED_BWD ? 0
                                                                           : -1;
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

/* Columns of a row that are widened at once. */
#define NARROW_COLS 512

/* The same of bfloat16: the sum is rounded once. */
static void narrow_fwd(const fr_kernel_call *call)
{
    const fr_embed_dims *dim = &call->instr->embed;
    const int64_t rows = dim->rows, cols = dim->cols;
    const int32_t *tokens = call->ptr[FR_EMBED_FWD_TOKENS];
    const void *wpe =
        call->coordinate == 0 ? call->ptr[FR_EMBED_FWD_WPE] : NULL;
    const float scale = (float)call->instr->scalar;
#pragma omp parallel for num_threads(fr_team(call, rows *cols)) schedule(static)
    for (int64_t i = 0; i < rows; i++) {
        const int64_t row = local_row(call, tokens[i]);
        float sum[NARROW_COLS], next[NARROW_COLS];
        for (int64_t at = 0; at < cols; at += NARROW_COLS) {
            const int64_t n = cols - at < NARROW_COLS ? cols - at : NARROW_COLS;
            memset(sum, 0, sizeof sum);
            if (row >= 0)
                fr_narrow_load(sum, call->ptr[FR_EMBED_FWD_WTE], FR_DTYPE_BF16,
                               row * cols + at, n);
            if (scale != 0.0F)
                fr_floats_scale(sum, n, scale);
            if (wpe != NULL) {
                fr_narrow_load(next, wpe, FR_DTYPE_BF16,
                               position_of(call, i) * cols + at, n);
                fr_floats_add(sum, next, n);
            }
            fr_narrow_store(call->ptr[FR_EMBED_FWD_OUT], FR_DTYPE_BF16,
                            i * cols + at, sum, n);
        }
    }
}

void fr_kernel_embed_fwd(const fr_kernel_call *call)
{
    if (call->instr->dtype == FR_DTYPE_BF16) {
        narrow_fwd(call);
        return;
    }
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

/* sums[first ...] += scale x */
static void add_to_sums(void *sums, fr_dtype dtype, int64_t first,
                        const float *x, int64_t n, float scale)
{
    float wide[NARROW_COLS];
    if (dtype == FR_DTYPE_F32) {
        add_scaled_row((float *)sums + first, x, n, scale);
        return;
    }
    fr_narrow_load(wide, sums, dtype, first, n);
    add_scaled_row(wide, x, n, scale);
    fr_narrow_store(sums, dtype, first, wide, n);
}

/* Columns [first, last) of all rows, in bfloat16. */
static void narrow_bwd(const fr_kernel_call *call, int64_t first, int64_t last)
{
    const fr_embed_dims *dim = &call->instr->embed;
    const int32_t *tokens = call->ptr[FR_EMBED_BWD_TOKENS];
    const fr_dtype grad = (fr_dtype)call->instr->grad_dtype;
    const float scale = (float)call->instr->scalar;
    void *dwte = call->ptr[FR_EMBED_BWD_DWTE],
         *dwpe = call->ptr[FR_EMBED_BWD_DWPE];
    float dout[NARROW_COLS];
    for (int64_t i = 0; i < dim->rows * (first < last); i++) {
        const int64_t row = local_row(call, tokens[i]);
        for (int64_t at = first; at < last; at += NARROW_COLS) {
            const int64_t n = last - at < NARROW_COLS ? last - at : NARROW_COLS;
            fr_narrow_load(dout, call->ptr[FR_EMBED_BWD_DOUT],
                           (fr_dtype)call->instr->dtype, i * dim->cols + at, n);
            if (row >= 0)
                add_to_sums(dwte, grad, row * dim->cols + at, dout, n,
                            scale != 0.0F ? scale : 1.0F);
            if (dwpe != NULL)
                add_to_sums(dwpe, grad, position_of(call, i) * dim->cols + at,
                            dout, n, 1.0F);
        }
    }
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
        if (fr_narrow_is_met(call->instr)) {
            narrow_bwd(call, part.first, part.last);
            n = 0;
        }
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
