/*
 * kernels_init.c: the parameters that training starts from.
 *
 * Normal numbers by Box and Muller (1958) from one hashed word per element,
 * with our own logarithm and cosine: they vectorise, and since nothing in
 * them depends on the width or on libm, every machine makes the same model.
 */
#include "core/base/hash.h"
#include "core/numbers/rng.h"
#include "kernels/cpu/kernels_simd.h"
#include "kernels/kernels_list.h"

#include <math.h>

/* ln(x) for normal x > 0, absolute error about 1e-7: x = m 2^e with
 * m in [sqrt(1/2), sqrt(2)), ln m by atanh of s = (m-1)/(m+1). */
FR_INLINE float fast_logf(float x)
{
    uint32_t bits = fr_bits_of_float(x);
    /* sqrt(1/2) has the bits 3f3504f3 */
    int32_t e = (int32_t)(bits - 0x3f3504f3U) >> 23;
    float m = fr_float_of_bits(bits - ((uint32_t)e << 23));
    float s = (m - 1.0F) / (m + 1.0F), s2 = s * s;
    float p = 1.0F / 9.0F;
    p = p * s2 + 1.0F / 7.0F;
    p = p * s2 + 1.0F / 5.0F;
    p = p * s2 + 1.0F / 3.0F;
    p = p * s2 + 1.0F;
    return (float)e * 0.6931471806F + 2.0F * s * p;
}

/* sin(2 pi b) for |b| <= 1/4: the Taylor series to b^11 (error 6e-8). */
FR_INLINE float fast_sin_turns(float b)
{
    float t = 6.2831853072F * b, t2 = t * t;
    float p = -1.0F / 39916800.0F;
    p = p * t2 + 1.0F / 362880.0F;
    p = p * t2 - 1.0F / 5040.0F;
    p = p * t2 + 1.0F / 120.0F;
    p = p * t2 - 1.0F / 6.0F;
    return t + t * t2 * p;
}

/* w[i] = std * normal number `counter + i` of the key */
FR_SIMD static void fill_normal(float *restrict w, int64_t n, uint64_t key,
                                uint64_t counter, float std)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        uint64_t word =
            fr_hash_mix(key + (counter + (uint64_t)i) * 0x9e3779b97f4a7c15U);
        int32_t high = (int32_t)(uint32_t)(word >> 41);      /* 23 bits */
        int32_t low = (int32_t)(uint32_t)(word & 0xffffffU); /* 24 bits */
        float u = ((float)high + 0.5F) * 0x1p-23F; /* exact, in (0, 1) */
        float turn = (float)low * 0x1p-24F - 0.5F; /* in [-1/2, 1/2) */
        float away = turn < 0 ? -turn : turn;
        w[i] = std * __builtin_sqrtf(-2.0F * fast_logf(u)) *
               fast_sin_turns(0.25F - away);
    }
}

/* The rank's place and the tensor's key. */
typedef struct init_place {
    const fr_tensor *tensor;
    const fr_tensor_place *place;
    uint64_t key;
} init_place;

/* Columns [begin, end) of a row. */
static void init_columns(const init_place *at, float *w, int64_t row,
                         int64_t begin, int64_t end)
{
    const fr_tensor *tensor = at->tensor;
    /* Columns of one row follow each other, also where they are parts: biases
     * all begin with the same. */
    int64_t first = fr_tensor_global_col(tensor, 0, at->place);
    int64_t i_row = fr_tensor_global_row(tensor, row, at->place);
    int64_t n = i_row < tensor->global_rows ? tensor->global_cols - first : 0;
    n = n < begin ? begin : (n < end ? n : end);
    if (tensor->init == FR_TENSOR_INIT_NORMAL)
        fill_normal(w, n - begin, at->key,
                    (uint64_t)i_row * (uint64_t)tensor->global_cols +
                        (uint64_t)(first + begin),
                    (float)tensor->init_std);
    else
        for (int64_t i = 0; i < n - begin; i++)
            w[i] = tensor->init == FR_TENSOR_INIT_ONE ? 1.0F : 0.0F;
    memset(w + (n - begin), 0, (size_t)(end - n) * sizeof *w); /* padding */
}

void fr_kernels_cpu_init_weights(float *weights, int64_t first, int64_t n,
                                 const fr_tensor *tensors, uint32_t n_tensors,
                                 const fr_tensor_place *place, uint64_t seed,
                                 int n_threads)
{
    FR_FOR_TEAM(n_threads);
    for (uint32_t i = 0; i < n_tensors; i++) {
        const fr_tensor *tensor = &tensors[i];
        const int64_t cols = tensor->cols, start = (int64_t)tensor->first;
        init_place at = {tensor, place,
                         fr_hash_u64(seed, tensor->id, 0x77656967, 0)};
        /* These are the requested elements of the tensor, by their index in
         * it. */
        int64_t begin = first > start ? first - start : 0;
        int64_t end = first + n - start;
        end = end < (int64_t)tensor->n ? end : (int64_t)tensor->n;
        if (begin >= end)
            continue;
#pragma omp parallel for num_threads(n_threads) schedule(static)
        for (int64_t row = begin / cols; row <= (end - 1) / cols; row++) {
            int64_t from = row * cols > begin ? 0 : begin - row * cols;
            int64_t to = end - row * cols < cols ? end - row * cols : cols;
            init_columns(&at, weights + (start + row * cols + from - first),
                         row, from, to);
        }
    }
}
