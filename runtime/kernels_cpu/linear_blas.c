/*
 * linear_blas.c: the matrix products, by OpenBLAS (the OpenMP build, so that
 * it and the kernels share one team of threads).
 *
 * OpenBLAS keeps its team size in a global and resizes its buffers when a
 * caller's OpenMP thread count differs, so only one thread of a process may
 * run these kernels with more than one thread; others must have set 1.
 */
#include "runtime/kernels_cpu/kernels_list.h"
#include "runtime/kernels_cpu/kernels_simd.h"

#include <cblas.h>

void fr_kernels_cpu_set_threads(int n_threads)
{
    int n = n_threads < 1 ? 1 : n_threads;
    fr_team_set(n);
    openblas_set_num_threads(n);
}

/* The team of the next product: an OpenMP setting of the calling thread. */
static void use_threads(const fr_kernel_call *call)
{
    fr_team_set(call->n_threads < 1 ? 1 : call->n_threads);
}

/* y[rows, cols] = bias in every row: the product is then added to it, which
 * costs nothing, because OpenBLAS would clear y first otherwise. */
static void fill_rows(float *y, const float *bias, int64_t rows, int64_t cols,
                      int n_team)
{
    FR_FOR_TEAM(n_team);
#pragma omp parallel for num_threads(n_team) schedule(static)
    for (int64_t i = 0; i < rows; i++)
        memcpy(y + i * cols, bias, (size_t)cols * sizeof *y);
}

/* Columns of the result that are one matrix: where they begin, how many. */
typedef struct columns {
    int64_t first, n;
} columns;

/* One matrix, or two that lie one after the other. */
static int columns_of(const fr_linear_dims *dim, columns out[2])
{
    out[0] = (columns){0, dim->n_first > 0 ? dim->n_first : dim->n};
    out[1] = (columns){dim->n_first, dim->n - dim->n_first};
    return dim->n_first > 0 ? 2 : 1;
}

void fr_kernel_linear_fwd(const fr_kernel_call *call)
{
    const fr_linear_dims *dim = &call->instr->linear;
    blasint m = (blasint)dim->m, k = (blasint)dim->k;
    const float *x = call->ptr[FR_LINEAR_FWD_X],
                *bias = call->ptr[FR_LINEAR_FWD_BIAS];
    columns part[2];
    int n_parts = columns_of(dim, part);
    for (int i = 0; i < n_parts; i++) {
        blasint n = (blasint)part[i].n;
        const float *w =
            (const float *)call->ptr[FR_LINEAR_FWD_W] + part[i].first * k;
        float *y = (float *)call->ptr[FR_LINEAR_FWD_Y] + part[i].first * m;
        if (bias != NULL)
            fill_rows(y, bias + part[i].first, m, n,
                      fr_team(call, (int64_t)m * n));
        use_threads(call);
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, m, n, k, 1.0F, x,
                    k, w, k, bias != NULL ? 1.0F : 0.0F, y, n);
    }
}

void fr_kernel_linear_dgrad(const fr_kernel_call *call)
{
    const fr_linear_dims *dim = &call->instr->linear;
    blasint m = (blasint)dim->m, k = (blasint)dim->k;
    float *dx = call->ptr[FR_LINEAR_DGRAD_DX];
    bool is_added = call->instr->flags & FR_INSTR_ACCUMULATE;
    columns part[2];
    int n_parts = columns_of(dim, part);
    use_threads(call);
    for (int i = 0; i < n_parts; i++) {
        blasint n = (blasint)part[i].n;
        const float *dy =
            (const float *)call->ptr[FR_LINEAR_DGRAD_DY] + part[i].first * m;
        const float *w =
            (const float *)call->ptr[FR_LINEAR_DGRAD_W] + part[i].first * k;
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, k, n, 1.0F,
                    dy, n, w, k, is_added || i > 0 ? 1.0F : 0.0F, dx, k);
    }
}

void fr_kernel_linear_wgrad(const fr_kernel_call *call)
{
    const fr_linear_dims *dim = &call->instr->linear;
    blasint m = (blasint)dim->m, k = (blasint)dim->k;
    const float *x = call->ptr[FR_LINEAR_WGRAD_X];
    float *dbias = call->ptr[FR_LINEAR_WGRAD_DBIAS];
    columns part[2];
    int n_parts = columns_of(dim, part);
    for (int i = 0; i < n_parts; i++) {
        blasint n = (blasint)part[i].n;
        const float *dy =
            (const float *)call->ptr[FR_LINEAR_WGRAD_DY] + part[i].first * m;
        float *dw = (float *)call->ptr[FR_LINEAR_WGRAD_DW] + part[i].first * k;
        if (dbias != NULL)
            fr_kernel_add_column_sums(dy, dbias + part[i].first, m, n,
                                      fr_team(call, (int64_t)m * n));
        use_threads(call);
        cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, n, k, m, 1.0F, dy,
                    n, x, k, 1.0F, dw, k);
    }
}
