/*
 * kernels_simd.c: loops that several kernel families use.  The clones are
 * static, as compilers do not agree on the symbol of others.
 */
#include "kernels/cpu/kernels_simd.h"

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

FR_SIMD static void floats_to_bf16(uint16_t *restrict out,
                                   const float *restrict x, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits = fr_bits_of_float(x[i]);
        uint32_t rounded = (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
        uint32_t quiet = (bits >> 16) | 0x40U;
        bool is_nan = (bits & 0x7fffffffU) > 0x7f800000U;
        out[i] = (uint16_t)(is_nan ? quiet : rounded);
    }
}

FR_SIMD static void floats_of_bf16(float *restrict out,
                                   const uint16_t *restrict x, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        out[i] = fr_float_of_bits((uint32_t)x[i] << 16);
}

FR_SIMD static void floats_multiply(float *restrict x,
                                    const float *restrict factor, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        x[i] *= factor[i];
}

void fr_floats_multiply(float *x, const float *factor, int64_t n)
{
    floats_multiply(x, factor, n);
}

FR_SIMD static float floats_exp(float *x, int64_t n, float shift)
{
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++) {
        float e = fr_fast_expf(x[i] - shift);
        x[i] = e;
        sum += e;
    }
    return sum;
}

FR_SIMD static float floats_dot(const float *restrict a,
                                const float *restrict b, int64_t n)
{
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

float fr_floats_exp(float *x, int64_t n, float shift)
{
    return floats_exp(x, n, shift);
}

float fr_floats_dot(const float *a, const float *b, int64_t n)
{
    return floats_dot(a, b, n);
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

void fr_floats_to_bf16(uint16_t *out, const float *x, int64_t n)
{
    floats_to_bf16(out, x, n);
}

void fr_floats_of_bf16(float *out, const uint16_t *x, int64_t n)
{
    floats_of_bf16(out, x, n);
}
