/* square_blas.c: the matrix product of versions.h, and its library. */
#include "calibrate/versions.h"
#include "kernels/cpu/kernels_cpu.h"

#include <cblas.h>

const char *fr_version_blas(void)
{
    return openblas_get_config();
}

void fr_sgemm_square(int n, const float *a, const float *b, float *c,
                     int n_threads)
{
    fr_kernels_cpu_set_threads(n_threads);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1.0F, a, n,
                b, n, 0.0F, c, n);
}
