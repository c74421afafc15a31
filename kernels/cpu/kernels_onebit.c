/*
 * kernels_onebit.c: signs with a scale per block, and elements at random places
 * (compressor_onebit.c, compressor_randomk.c); error feedback as in
 * kernels_compress.c.
 */
#include "core/numbers/rng.h"
#include "kernels/cpu/kernels_simd.h"
#include "kernels/kernels_list.h"
#include "plan/codec/compressor.h"

#include <math.h>

/* ---- onebit ------------------------------------------------------------- */

/* The sum of magnitudes in lanes of 32, which the GPU's kernel adds alike. */
FR_SIMD static float sum_of_magnitudes(const float *x, int64_t n)
{
    float lane[32] = {0};
    float sum = 0;
    for (int64_t i = 0; i < n; i++)
        lane[i % 32] += fabsf(x[i]);
    for (int i = 0; i < 32; i++)
        sum += lane[i];
    return sum;
}

static void onebit_encode_block(const fr_kernel_call *call, int64_t block)
{
    const int64_t n = call->instr->compress.n;
    const int64_t first = block * FR_ONEBIT_BLOCK;
    const int64_t n_here =
        n - first < FR_ONEBIT_BLOCK ? n - first : FR_ONEBIT_BLOCK;
    float *error = fr_compressor_has_error(call->plan) ? call->ptr[1] : NULL;
    float *x = (error != NULL ? error : (float *)call->ptr[0]) + first;
    float *scales = call->ptr[2];
    uint32_t *words =
        (uint32_t *)(void *)(scales + fr_onebit_blocks((uint64_t)n)) +
        first / 32;
    if (error != NULL)
        fr_floats_add(x, (const float *)call->ptr[0] + first, n_here);
    /* Values that are not finite are not hidden: the block decodes to NaN. */
    const float mean = sum_of_magnitudes(x, n_here) / (float)n_here;
    const float scale = scales[block] = isfinite(mean) ? mean : NAN;
    for (int64_t i = 0; i < n_here; i += 32) {
        const int64_t n_bits = n_here - i < 32 ? n_here - i : 32;
        uint32_t word = 0;
        for (int64_t j = 0; j < n_bits; j++) {
            const bool is_negative = x[i + j] < 0.0F;
            word |= (uint32_t)is_negative << j;
            if (error != NULL)
                x[i + j] -= is_negative ? -scale : scale;
        }
        words[i / 32] = word;
    }
}

void fr_kernel_onebit_compress(const fr_kernel_call *call)
{
    const int64_t n = call->instr->compress.n;
    const int64_t n_blocks = (int64_t)fr_onebit_blocks((uint64_t)n);
#pragma omp parallel for num_threads(fr_team(call, n)) schedule(static)
    for (int64_t block = 0; block < n_blocks; block++)
        onebit_encode_block(call, block);
}

FR_SIMD static void onebit_decode(float *restrict y,
                                  const uint32_t *restrict words, int64_t n,
                                  float scale, bool is_added)
{
    for (int64_t i = 0; i < n; i++) {
        const float x = words[i / 32] >> (i % 32) & 1U ? -scale : scale;
        y[i] = is_added ? y[i] + x : x;
    }
}

void fr_kernel_onebit_decompress(const fr_kernel_call *call)
{
    const fr_compress_dims *dim = &call->instr->compress;
    const int64_t n = dim->n;
    const int64_t n_blocks = (int64_t)fr_onebit_blocks((uint64_t)n);
    const char *payloads = call->ptr[0];
    float *g = call->ptr[2];
#pragma omp parallel for num_threads(fr_team(call, n)) schedule(static)
    for (int64_t block = 0; block < n_blocks; block++) {
        const int64_t first = block * FR_ONEBIT_BLOCK;
        const int64_t n_here =
            n - first < FR_ONEBIT_BLOCK ? n - first : FR_ONEBIT_BLOCK;
        for (int64_t i = 0; i < dim->n_payloads; i++) {
            const void *at = payloads + i * dim->payload_bytes;
            const float *scales = at;
            const void *bits = scales + n_blocks;
            onebit_decode(g + first, (const uint32_t *)bits + first / 32,
                          n_here, scales[block], i > 0);
        }
    }
}

/* ---- random-k ----------------------------------------------------------- */

/* The same on all ranks of the group. */
static uint64_t randomk_key(const fr_kernel_call *call)
{
    return fr_hash_u64(call->job->seed, (uint64_t)call->i_step,
                       (uint64_t)call->instr->compress.first,
                       (uint64_t)call->tp_coordinate);
}

void fr_kernel_randomk_compress(const fr_kernel_call *call)
{
    const int64_t n = call->instr->compress.n;
    const uint64_t key = randomk_key(call);
    const int64_t k =
        (int64_t)fr_topk_kept(call->plan->compressor_density, (uint64_t)n);
    float *error = fr_compressor_has_error(call->plan) ? call->ptr[1] : NULL;
    float *x = error != NULL ? error : call->ptr[0];
    float *values = call->ptr[2];
#pragma omp parallel num_threads(fr_team(call, n))
    {
        if (error != NULL) {
            fr_range part = fr_range_mine(n, 16);
            fr_floats_add(error + part.first,
                          (const float *)call->ptr[0] + part.first,
                          part.last - part.first);
#pragma omp barrier
        }
#pragma omp for schedule(static)
        for (int64_t i = 0; i < k; i++) {
            const uint64_t at =
                fr_randomk_index(key, (uint64_t)n, (uint64_t)k, (uint64_t)i);
            values[i] = x[at];
            if (error != NULL)
                x[at] = 0.0F;
        }
    }
}

void fr_kernel_randomk_decompress(const fr_kernel_call *call)
{
    const int64_t n = call->instr->compress.n;
    const uint64_t key = randomk_key(call);
    const int64_t k =
        (int64_t)fr_topk_kept(call->plan->compressor_density, (uint64_t)n);
    const float *values = call->ptr[0];
    float *g = call->ptr[2];
#pragma omp parallel num_threads(fr_team(call, n))
    {
        fr_range part = fr_range_mine(n, 16);
        memset(g + part.first, 0, (size_t)(part.last - part.first) * sizeof *g);
#pragma omp barrier
#pragma omp for schedule(static)
        for (int64_t i = 0; i < k; i++)
            g[fr_randomk_index(key, (uint64_t)n, (uint64_t)k, (uint64_t)i)] =
                values[i];
    }
}
