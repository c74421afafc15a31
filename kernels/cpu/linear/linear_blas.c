/*
 * linear_blas.c: the products of linear layers (narrow/product_blas.c), by
 * OpenBLAS (the OpenMP build, so that it and the kernels share one team of
 * threads).
 *
 * OpenBLAS keeps its team size in a global and resizes its buffers when a
 * caller's OpenMP thread count differs, so only one thread of a process may
 * run these kernels with more than one thread; others must have set 1.
 */
#include "kernels/cpu/kernels_simd.h"
#include "kernels/cpu/narrow/narrow.h"
#include "kernels/kernels_list.h"

#include <cblas.h>

void fr_kernels_cpu_set_threads(int n_threads)
{
    int n = n_threads < 1 ? 1 : n_threads;
    fr_team_set(n);
    openblas_set_num_threads(n);
}

static fr_narrow_matrix transposed(fr_narrow_matrix matrix)
{
    matrix.is_transposed = true;
    return matrix;
}

void fr_kernel_linear_fwd(const fr_kernel_call *call)
{
    const fr_linear_dims *dim = &call->instr->linear;
    const int64_t m = dim->m, k = dim->k;
    const void *bias = call->ptr[FR_LINEAR_FWD_BIAS];
    fr_linear_columns part[2];
    int n_parts = fr_linear_columns_of(dim, part);
    for (int i = 0; i < n_parts; i++) {
        const int64_t n = part[i].n, first = part[i].first;
        fr_product product = {
            .m = m,
            .n = n,
            .k = k,
            .a = fr_narrow_operand(call, FR_LINEAR_FWD_X, 0, k),
            .b = transposed(
                fr_narrow_operand(call, FR_LINEAR_FWD_W, first * k, k)),
            .c = fr_narrow_operand(call, FR_LINEAR_FWD_Y, first * m, n)};
        if (bias != NULL)
            product.bias = fr_narrow_at(bias, product.c.dtype, first);
        fr_product_run(call, &product);
    }
}

void fr_kernel_linear_dgrad(const fr_kernel_call *call)
{
    const fr_linear_dims *dim = &call->instr->linear;
    const int64_t m = dim->m, k = dim->k;
    bool is_added = call->instr->flags & FR_INSTR_ACCUMULATE;
    fr_linear_columns part[2];
    int n_parts = fr_linear_columns_of(dim, part);
    for (int i = 0; i < n_parts; i++) {
        const int64_t n = part[i].n, first = part[i].first;
        const fr_product product = {
            .m = m,
            .n = k,
            .k = n,
            .a = fr_narrow_operand(call, FR_LINEAR_DGRAD_DY, first * m, n),
            .b = fr_narrow_operand(call, FR_LINEAR_DGRAD_W, first * k, k),
            .c = fr_narrow_operand(call, FR_LINEAR_DGRAD_DX, 0, k),
            .is_added = is_added || i > 0};
        fr_product_run(call, &product);
    }
}

fr_instr fr_linear_bias_gradient(const fr_instr *wgrad, int64_t n)
{
    fr_instr instr = *wgrad;
    memset(instr.dim, 0, sizeof instr.dim);
    instr.op = FR_OP_BIAS_GRAD;
    instr.matrix = (fr_matrix_dims){wgrad->linear.m, n};
    instr.ref[FR_BIAS_GRAD_DB] = instr.ref[FR_LINEAR_WGRAD_DBIAS];
    return instr;
}

/* dbias[n] += column sums of dy[m, n] */
static void add_bias_gradient(const fr_kernel_call *call,
                              const fr_narrow_matrix *dy,
                              fr_linear_columns part)
{
    const fr_instr instr = fr_linear_bias_gradient(call->instr, part.n);
    fr_kernel_call sum = *call;
    if (call->ptr[FR_LINEAR_WGRAD_DBIAS] == NULL)
        return;
    sum.instr = &instr;
    sum.ptr[FR_BIAS_GRAD_DY] = dy->at;
    sum.ptr[FR_BIAS_GRAD_DB] =
        fr_narrow_at(call->ptr[FR_LINEAR_WGRAD_DBIAS],
                     (fr_dtype)instr.grad_dtype, part.first);
    fr_kernels_cpu_run(&sum);
}

void fr_kernel_linear_wgrad(const fr_kernel_call *call)
{
    const fr_linear_dims *dim = &call->instr->linear;
    const int64_t m = dim->m, k = dim->k;
    fr_linear_columns part[2];
    int n_parts = fr_linear_columns_of(dim, part);
    for (int i = 0; i < n_parts; i++) {
        const int64_t n = part[i].n, first = part[i].first;
        const fr_product product = {
            .m = n,
            .n = k,
            .k = m,
            .a = transposed(
                fr_narrow_operand(call, FR_LINEAR_WGRAD_DY, first * m, n)),
            .b = fr_narrow_operand(call, FR_LINEAR_WGRAD_X, 0, k),
            .c = fr_narrow_operand(call, FR_LINEAR_WGRAD_DW, first * k, k),
            .is_added = true};
        add_bias_gradient(call, &product.a, part[i]);
        fr_product_run(call, &product);
    }
}
