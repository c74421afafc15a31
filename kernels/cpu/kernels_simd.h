/*
 * kernels_simd.h: what the CPU kernels share: clones of a function per vector
 * width, teams of threads, a vectorisable exp.  Inside runtime/ only.
 *
 * The clones of an elementwise loop give the same bits at any width (nothing
 * is contracted to fused multiply-add); sums along a row depend on the width.
 */
#ifndef FR_KERNELS_CPU_KERNELS_SIMD_H
#define FR_KERNELS_CPU_KERNELS_SIMD_H

#include "kernels/cpu/kernels_cpu.h"
#include "kernels/cpu/team.h"

#include <stdint.h>
#include <string.h>

/*
 * Put before a function that is one loop over a range; a loop inside an
 * OpenMP parallel region would not be cloned, so the region calls it.
 * Sanitizers instrument the resolvers, which run before they are set up.
 */
#if !defined(__x86_64__) || defined(__SANITIZE_ADDRESS__) ||                   \
    defined(__SANITIZE_THREAD__)
#define FR_SIMD
#elif defined(__clang__)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||     \
    __has_feature(memory_sanitizer)
#define FR_SIMD
#else
#define FR_SIMD __attribute__((target_clones("avx512f", "avx2", "default")))
#endif
#else
#define FR_SIMD                                                                \
    __attribute__((                                                            \
        target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#endif

#define FR_INLINE static inline __attribute__((always_inline))

#define FR_KERNEL_MAX_THREADS 256

/* Below this much work (elements touched) a team costs more than it gives. */
#define FR_KERNEL_MIN_WORK 8192

/* Threads of a team for `n_work` elements. */
FR_INLINE int fr_team(const fr_kernel_call *call, int64_t n_work)
{
    if (n_work < FR_KERNEL_MIN_WORK || call->n_threads < 1)
        return 1;
    return call->n_threads < FR_KERNEL_MAX_THREADS ? call->n_threads
                                                   : FR_KERNEL_MAX_THREADS;
}

typedef struct fr_range {
    int64_t first, last; /* one past */
} fr_range;

/* Part i of n_parts of [0, n), cut at multiples of `grain`. */
FR_INLINE fr_range fr_range_part(int64_t n, int64_t grain, int64_t i,
                                 int64_t n_parts)
{
    int64_t n_grains = (n + grain - 1) / grain;
    fr_range part = {n_grains * i / n_parts * grain,
                     n_grains * (i + 1) / n_parts * grain};
    part.first = part.first < n ? part.first : n;
    part.last = part.last < n ? part.last : n;
    return part;
}

/* The calling thread's part, inside a parallel region. */
FR_INLINE fr_range fr_range_mine(int64_t n, int64_t grain)
{
    return fr_range_part(n, grain, fr_team_member(), fr_team_size());
}

/*
 * Sums are made over this many fixed pieces and the pieces added in order:
 * the same bits for any number of threads.
 */
#define FR_SUM_PIECES 64

FR_INLINE float fr_float_of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

FR_INLINE uint32_t fr_bits_of_float(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/*
 * x within [low, high], low < 0 < high; a NaN stays one.  By integer minima:
 * signed, large positive floats come after `high`; unsigned, large negative
 * ones after `low`.  (Float comparisons would not become single instructions,
 * as their order of NaNs has to be kept.)
 */
FR_INLINE float fr_clampf(float x, float low, float high)
{
    int32_t top = (int32_t)fr_bits_of_float(high);
    uint32_t bottom = fr_bits_of_float(low);
    int32_t bits = (int32_t)fr_bits_of_float(x);
    bits = bits < top ? bits : top;
    uint32_t ubits = (uint32_t)bits;
    ubits = ubits < bottom ? ubits : bottom;
    return x != x ? x : fr_float_of_bits(ubits);
}

/*
 * exp(x), relative error <= 2e-7 for -87.3 <= x <= 88.7; saturates outside
 * (1.2e-38 and 3.3e38), NaN stays NaN.  Cody-Waite reduction by ln 2 in two
 * parts, then the degree-6 polynomial of exp on [-ln2/2, ln2/2].
 */
FR_INLINE float fr_fast_expf(float x)
{
    const float magic = 12582912.0F; /* 1.5 * 2^23: rounds to an integer */
    x = fr_clampf(x, -87.3F, 88.7F);
    float shifted = x * 1.44269504F + magic;
    float n = shifted - magic;
    float r = x - n * 0.693359375F;
    r = r - n * -2.12194440e-4F;
    float p = 1.9875691500e-4F;
    p = p * r + 1.3981999507e-3F;
    p = p * r + 8.3334519073e-3F;
    p = p * r + 4.1665795894e-2F;
    p = p * r + 1.6666665459e-1F;
    p = p * r + 5.0000001201e-1F;
    p = p * (r * r) + r + 1.0F;
    p = fr_float_of_bits(fr_bits_of_float(p) +
                         (fr_bits_of_float(shifted) << 23));
    return p + (x - x); /* a NaN's payload may have upset the exponent */
}

/* 1 / (1 + exp(-x)); tanh(x) = 2 sigmoid(2x) - 1. */
FR_INLINE float fr_fast_sigmoidf(float x)
{
    return 1.0F / (1.0F + fr_fast_expf(-x));
}

/* y += x;  x *= factor;  the largest of `max` and x[0..n);  x *= factor, one
 * by one (kernels_simd.c).
 * Static clones need names of their own in all files: clang lets the
 * resolvers of static functions clash. */
void fr_floats_add(float *y, const float *x, int64_t n);
void fr_floats_scale(float *x, int64_t n, float factor);
float fr_floats_max(const float *x, int64_t n, float max);
void fr_floats_multiply(float *x, const float *factor, int64_t n);
/* x = exp(x - shift), of which it returns the sum; the sum of a b. */
float fr_floats_exp(float *x, int64_t n, float shift);
float fr_floats_dot(const float *a, const float *b, int64_t n);
/* Between float32 and bfloat16: rounded to nearest, ties to even; a NaN stays
 * a (quiet) NaN. */
void fr_floats_to_bf16(uint16_t *out, const float *x, int64_t n);
void fr_floats_of_bf16(float *out, const uint16_t *x, int64_t n);

#endif
