/*
 * kernels_misc.c: bias gradients, residual sums, clearing, copying, casts.
 */
#include "kernels/cpu/kernels_simd.h"
#include "kernels/cpu/narrow/narrow.h"
#include "kernels/kernels_list.h"

/* sums += four rows (n_rows == 4) or one row of x */
FR_SIMD static void add_rows(float *restrict sums, const float *restrict x,
                             int64_t stride, int64_t n, int n_rows)
{
    if (n_rows == 4) {
        const float *x1 = x + stride, *x2 = x1 + stride, *x3 = x2 + stride;
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            sums[i] += (x[i] + x1[i]) + (x2[i] + x3[i]);
    } else {
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            sums[i] += x[i];
    }
}

/* The threads share the columns; each column is summed in row order. */
void fr_kernel_add_column_sums(const float *x, float *sums, int64_t rows,
                               int64_t cols, int n_threads)
{
    FR_FOR_TEAM(n_threads);
#pragma omp parallel num_threads(n_threads)
    {
        fr_range part = fr_range_mine(cols, 16);
        int64_t n = part.last - part.first;
        for (int64_t i = 0; i < rows && n > 0;) {
            int n_rows = rows - i >= 4 ? 4 : 1;
            add_rows(sums + part.first, x + i * cols + part.first, cols, n,
                     n_rows);
            i += n_rows;
        }
    }
}

void fr_kernel_bias_grad(const fr_kernel_call *call)
{
    int64_t rows = call->instr->matrix.rows, cols = call->instr->matrix.cols;
    fr_kernel_add_column_sums(call->ptr[FR_BIAS_GRAD_DY],
                              call->ptr[FR_BIAS_GRAD_DB], rows, cols,
                              fr_team(call, rows * cols));
}

/* The output may be one of the inputs. */
FR_SIMD static void sum_row(float *out, const float *a, const float *b,
                            const float *bias, const float *bias2, int64_t n)
{
    if (bias != NULL && bias2 != NULL) {
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            out[i] = a[i] + b[i] + (bias[i] + bias2[i]);
    } else if (bias != NULL) {
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            out[i] = a[i] + b[i] + bias[i];
    } else {
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            out[i] = a[i] + b[i];
    }
}

void fr_kernel_residual_add(const fr_kernel_call *call)
{
    int64_t rows = call->instr->matrix.rows, cols = call->instr->matrix.cols;
    const float *a = call->ptr[FR_RESIDUAL_ADD_A],
                *b = call->ptr[FR_RESIDUAL_ADD_B],
                *bias = call->ptr[FR_RESIDUAL_ADD_BIAS],
                *bias2 = call->ptr[FR_RESIDUAL_ADD_BIAS2];
    float *out = call->ptr[FR_RESIDUAL_ADD_OUT];
#pragma omp parallel for num_threads(fr_team(call, rows *cols)) schedule(static)
    for (int64_t i = 0; i < rows; i++)
        sum_row(out + i * cols, a + i * cols, b + i * cols, bias, bias2, cols);
}

void fr_kernel_zero(const fr_kernel_call *call)
{
    int64_t n_bytes = call->instr->copy.n_bytes;
    char *dst = call->ptr[FR_ZERO_DST];
#pragma omp parallel num_threads(fr_team(call, n_bytes / 4))
    {
        fr_range part = fr_range_mine(n_bytes, 64);
        memset(dst + part.first, 0, (size_t)(part.last - part.first));
    }
}

static void copy_bytes(const fr_kernel_call *call, void *to, const void *from)
{
    int64_t n_bytes = call->instr->copy.n_bytes;
    const char *src = from;
    char *dst = to;
#pragma omp parallel num_threads(fr_team(call, n_bytes / 4))
    {
        fr_range part = fr_range_mine(n_bytes, 64);
        memcpy(dst + part.first, src + part.first,
               (size_t)(part.last - part.first));
    }
}

void fr_kernel_copy(const fr_kernel_call *call)
{
    copy_bytes(call, call->ptr[FR_COPY_DST], call->ptr[FR_COPY_SRC]);
}

/* Here both lie in the memory of the one host. */
void fr_kernel_host_copy(const fr_kernel_call *call)
{
    void *buffer = call->ptr[FR_HOST_COPY_BUFFER],
         *host = call->ptr[FR_HOST_COPY_HOST];
    if (call->instr->copy.is_to_host)
        copy_bytes(call, host, buffer);
    else
        copy_bytes(call, buffer, host);
}

void fr_kernel_add(const fr_kernel_call *call)
{
    int64_t n = call->instr->vector.n;
    const float *src = call->ptr[FR_ADD_SRC];
    float *dst = call->ptr[FR_ADD_DST];
#pragma omp parallel num_threads(fr_team(call, n))
    {
        fr_range part = fr_range_mine(n, 16);
        sum_row(dst + part.first, dst + part.first, src + part.first, NULL,
                NULL, part.last - part.first);
    }
}

void fr_kernel_cast(const fr_kernel_call *call)
{
    const int64_t n = call->instr->vector.n;
    const fr_dtype from = fr_instr_ref_dtype(call->instr, FR_CAST_SRC),
                   to = fr_instr_ref_dtype(call->instr, FR_CAST_DST);
    void *src = call->ptr[FR_CAST_SRC], *dst = call->ptr[FR_CAST_DST];
#pragma omp parallel num_threads(fr_team(call, n))
    {
        fr_range part = fr_range_mine(n, 32);
        int64_t n_mine = part.last - part.first;
        if (to == FR_DTYPE_F32)
            fr_narrow_load(fr_narrow_at(dst, to, part.first), src, from,
                           part.first, n_mine);
        else
            fr_narrow_store(dst, to, part.first,
                            fr_narrow_at(src, from, part.first), n_mine);
    }
}
