/*
 * kernels_simd.c: loops that several kernel families use.  The clones are
 * static, as compilers do not agree on the symbol of others.
 */
#include "runtime/kernels_cpu/kernels_simd.h"

FR_SIMD static void floats_add(float *restrict y, const float *restrict x,
                               int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        y[i] += x[i];
}

FR_SIMD static void floats_scale(float *x, int64_t n, float factor)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        x[i] *= factor;
}

/* Lanes by hand: compilers will not vectorise a maximum that must keep the
 * order of NaNs. */
FR_SIMD static float floats_max(const float *x, int64_t n, float max)
{
    float lane[16];
    int64_t i = 0;
    for (int j = 0; j < 16; j++)
        lane[j] = max;
    for (; i + 16 <= n; i += 16)
        for (int j = 0; j < 16; j++)
            lane[j] = x[i + j] > lane[j] ? x[i + j] : lane[j];
    for (int j = 0; j < 16; j++)
        max = lane[j] > max ? lane[j] : max;
    for (; i < n; i++)
        max = x[i] > max ? x[i] : max;
    return max;
}

void fr_floats_add(float *y, const float *x, int64_t n)
{
    floats_add(y, x, n);
}

void fr_floats_scale(float *x, int64_t n, float factor)
{
    floats_scale(x, n, factor);
}

float fr_floats_max(const float *x, int64_t n, float max)
{
    return floats_max(x, n, max);
}
