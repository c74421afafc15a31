/*
 * grouped_blas.c: products of rows with the matrices of their experts, one
 * expert after the other, by OpenBLAS.
 */
#include "runtime/kernels_cpu/kernels_list.h"
#include "runtime/kernels_cpu/kernels_simd.h"

#include <cblas.h>

/* The rows of one expert in one run. */
typedef struct piece {
    int64_t group, first;
    blasint m;
} piece;

/* Goes through all that have rows; false: there is no further one. */
typedef struct piece_walk {
    int64_t i;
    piece at;
} piece_walk;

static bool next_piece(const fr_grouped_dims *d, const int32_t *counts,
                       piece_walk *walk)
{
    walk->at.first += walk->at.m;
    walk->at.m = 0;
    while (walk->i < d->n_runs * d->n_groups) {
        int64_t i = walk->i++;
        if (i % d->n_groups == 0)
            walk->at.first = i / d->n_groups * d->run_rows;
        if (counts[i] == 0)
            continue;
        walk->at.group = i % d->n_groups;
        walk->at.m = (blasint)counts[i];
        return true;
    }
    return false;
}

static void use_threads(const fr_kernel_call *call)
{
    fr_team_set(call->n_threads < 1 ? 1 : call->n_threads);
}

void fr_kernel_grouped_fwd(const fr_kernel_call *call)
{
    const fr_grouped_dims *d = &call->instr->grouped;
    const blasint n = (blasint)d->n, k = (blasint)d->k;
    const float *x = call->ptr[FR_GROUPED_FWD_X],
                *w = call->ptr[FR_GROUPED_FWD_W];
    float *y = call->ptr[FR_GROUPED_FWD_Y];
    piece_walk walk = {0};
    use_threads(call);
    while (next_piece(d, call->ptr[FR_GROUPED_FWD_COUNTS], &walk))
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, walk.at.m, n, k,
                    1.0F, x + walk.at.first * k, k, w + walk.at.group * n * k,
                    k, 0.0F, y + walk.at.first * n, n);
}

void fr_kernel_grouped_dgrad(const fr_kernel_call *call)
{
    const fr_grouped_dims *d = &call->instr->grouped;
    const blasint n = (blasint)d->n, k = (blasint)d->k;
    const float *dy = call->ptr[FR_GROUPED_DGRAD_DY],
                *w = call->ptr[FR_GROUPED_DGRAD_W];
    float *dx = call->ptr[FR_GROUPED_DGRAD_DX];
    piece_walk walk = {0};
    use_threads(call);
    while (next_piece(d, call->ptr[FR_GROUPED_DGRAD_COUNTS], &walk))
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, walk.at.m, k, n,
                    1.0F, dy + walk.at.first * n, n, w + walk.at.group * n * k,
                    k, 0.0F, dx + walk.at.first * k, k);
}

void fr_kernel_grouped_wgrad(const fr_kernel_call *call)
{
    const fr_grouped_dims *d = &call->instr->grouped;
    const blasint n = (blasint)d->n, k = (blasint)d->k;
    const float *dy = call->ptr[FR_GROUPED_WGRAD_DY],
                *x = call->ptr[FR_GROUPED_WGRAD_X];
    float *dw = call->ptr[FR_GROUPED_WGRAD_DW];
    piece_walk walk = {0};
    use_threads(call);
    while (next_piece(d, call->ptr[FR_GROUPED_WGRAD_COUNTS], &walk))
        cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, n, k, walk.at.m,
                    1.0F, dy + walk.at.first * n, n, x + walk.at.first * k, k,
                    1.0F, dw + walk.at.group * n * k, k);
}
