/*
 * kernels_compress.c: gradient compressors that are gathered: bf16, int8 and
 * top-k (compressor.h).  PowerSGD has a file of its own.
 *
 * With error feedback (Seide et al., Interspeech 2014; Karimireddy et al.
 * 2019, arXiv 1901.09847) the encoder sees gradient + error and leaves what
 * it did not send in the error: sent + error == gradient + old error.
 */
#include "core/numbers/rng.h"
#include "kernels/cpu/kernels_simd.h"
#include "kernels/kernels_list.h"
#include "plan/codec/compressor.h"

#include <math.h>

/* ---- bf16 --------------------------------------------------------------- */

FR_SIMD static void bf16_decode(float *restrict y,
                                const uint16_t *restrict code, int64_t n,
                                bool is_added)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        float x = fr_float_of_bits((uint32_t)code[i] << 16);
        y[i] = is_added ? y[i] + x : x;
    }
}

void fr_kernel_bf16_compress(const fr_kernel_call *call)
{
    int64_t n = call->instr->compress.n;
    const float *g = call->ptr[0];
    uint16_t *payload = call->ptr[2];
#pragma omp parallel num_threads(fr_team(call, n))
    {
        fr_range part = fr_range_mine(n, 32);
        fr_floats_to_bf16(payload + part.first, g + part.first,
                          part.last - part.first);
    }
    if (n % 2)
        payload[n] = 0; /* the payload ends at a multiple of 4 bytes */
}

void fr_kernel_bf16_decompress(const fr_kernel_call *call)
{
    const fr_compress_dims *dim = &call->instr->compress;
    int64_t n = dim->n;
    const char *payloads = call->ptr[0];
    float *g = call->ptr[2];
#pragma omp parallel num_threads(fr_team(call, n))
    {
        fr_range part = fr_range_mine(n, 16);
        for (int64_t i = 0; i < dim->n_payloads; i++) {
            const void *at = payloads + i * dim->payload_bytes;
            const uint16_t *code = at;
            bf16_decode(g + part.first, code + part.first,
                        part.last - part.first, i > 0);
        }
    }
}

/* ---- int8 --------------------------------------------------------------- */

/* One block of at most FR_INT8_BLOCK elements. */
typedef struct int8_block {
    float *x; /* gradient + error if kept, else the gradient */
    int8_t *code;
    int64_t n;
    float scale, inverse;
    uint32_t key; /* of the random rounding */
} int8_block;

FR_SIMD static float largest(const float *x, int64_t n)
{
    uint32_t lane[16] = {0};
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) {
        for (int j = 0; j < 16; j++) {
            uint32_t bits = fr_bits_of_float(x[i + j]) & 0x7fffffffU;
            lane[j] = bits > lane[j] ? bits : lane[j];
        }
    }
    for (; i < n; i++) {
        uint32_t bits = fr_bits_of_float(x[i]) & 0x7fffffffU;
        lane[0] = bits > lane[0] ? bits : lane[0];
    }
    for (int j = 1; j < 16; j++)
        lane[0] = lane[j] > lane[0] ? lane[j] : lane[0];
    return fr_float_of_bits(lane[0]);
}

/* Rounds to the nearest code and leaves the error in x. */
FR_SIMD static void int8_nearest(const int8_block *at)
{
    const float magic = 12582912.0F; /* rounds to an integer, ties to even */
    float *restrict x = at->x;
    int8_t *restrict code = at->code;
    float scale = at->scale, inverse = at->inverse;
    int64_t n = at->n;
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        float q = x[i] * inverse + magic - magic;
        q = q > 127.0F ? 127.0F : q;
        q = q < -127.0F ? -127.0F : q;
        code[i] = (int8_t)(int32_t)q;
        x[i] -= q * scale;
    }
}

/* Well-mixed 32 bits of a counter (Ellis's "lowbias32" constants). */
FR_INLINE uint32_t mix32(uint32_t x)
{
    x ^= x >> 16;
    x *= 0x7feb352dU;
    x ^= x >> 15;
    x *= 0x846ca68bU;
    x ^= x >> 16;
    return x;
}

/* Rounds up or down at random so that the mean is right; x stays as it is. */
FR_SIMD static void int8_random(const int8_block *at)
{
    const float *restrict x = at->x;
    int8_t *restrict code = at->code;
    float inverse = at->inverse;
    uint32_t key = at->key;
    int32_t n = (int32_t)at->n;
#pragma omp simd
    for (int32_t i = 0; i < n; i++) {
        uint32_t draw = mix32((uint32_t)i + key) >> 8;
        float u = (float)(int32_t)draw * 0x1p-24F;
        /* + 128 makes truncation a floor */
        int32_t q = (int32_t)(x[i] * inverse + u + 128.0F) - 128;
        q = q > 127 ? 127 : q;
        code[i] = (int8_t)(q < -127 ? -127 : q);
    }
}

FR_SIMD static void int8_decode(const int8_block *at, bool is_added)
{
    float *restrict y = at->x;
    const int8_t *restrict code = at->code;
    float scale = at->scale;
    int64_t n = at->n;
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        float x = (float)code[i] * scale;
        y[i] = is_added ? y[i] + x : x;
    }
}

static int64_t n_int8_blocks(int64_t n)
{
    return (n + FR_INT8_BLOCK - 1) / FR_INT8_BLOCK;
}

/* Block i of n elements at x with its code in the payload. */
static int8_block block_at(float *x, void *payload, int64_t n, int64_t i)
{
    int64_t first = i * FR_INT8_BLOCK;
    float *scales = payload;
    int8_t *codes = (int8_t *)(scales + n_int8_blocks(n));
    int64_t left = n - first;
    return (int8_block){.x = x + first,
                        .code = codes + first,
                        .n = left < FR_INT8_BLOCK ? left : FR_INT8_BLOCK,
                        .scale = scales[i]};
}

static void int8_encode_block(const fr_kernel_call *call, int64_t i,
                              uint64_t key)
{
    int64_t n = call->instr->compress.n;
    float *error = fr_compressor_has_error(call->plan) ? call->ptr[1] : NULL;
    float *g = call->ptr[0], *scales = call->ptr[2];
    int8_block at = block_at(error != NULL ? error : g, call->ptr[2], n, i);
    if (error != NULL)
        fr_floats_add(at.x, g + i * FR_INT8_BLOCK, at.n);
    float max = largest(at.x, at.n);
    /* Below this the inverse would overflow: all codes are 0. */
    bool is_tiny = max < 1e-35F;
    at.scale = scales[i] = is_tiny ? 0.0F : max / 127.0F;
    at.inverse = is_tiny ? 0.0F : 127.0F / max;
    at.key = (uint32_t)fr_hash_u64(key, (uint64_t)i, 0, 0);
    if (!isfinite(max)) {
        /* Not to be hidden: every element of the block decodes to NaN. */
        scales[i] = NAN;
        memset(at.code, 1, (size_t)at.n);
    } else if (error != NULL) {
        int8_nearest(&at);
    } else {
        int8_random(&at);
    }
}

void fr_kernel_int8_compress(const fr_kernel_call *call)
{
    const fr_compress_dims *dim = &call->instr->compress;
    int64_t n = dim->n, n_blocks = n_int8_blocks(n);
    uint64_t key = fr_hash_u64(
        call->job->seed, (uint64_t)call->i_step, (uint64_t)call->coordinate,
        (uint64_t)dim->first + ((uint64_t)call->tp_coordinate << 48));
#pragma omp parallel for num_threads(fr_team(call, n)) schedule(static)
    for (int64_t i = 0; i < n_blocks; i++)
        int8_encode_block(call, i, key);
    int8_t *codes = (int8_t *)((float *)call->ptr[2] + n_blocks);
    for (int64_t i = n; i % 4; i++)
        codes[i] = 0;
}

void fr_kernel_int8_decompress(const fr_kernel_call *call)
{
    const fr_compress_dims *dim = &call->instr->compress;
    int64_t n = dim->n;
    char *payloads = call->ptr[0];
#pragma omp parallel for num_threads(fr_team(call, n)) schedule(static)
    for (int64_t i = 0; i < n_int8_blocks(n); i++) {
        for (int64_t j = 0; j < dim->n_payloads; j++) {
            void *payload = payloads + j * dim->payload_bytes;
            int8_block at = block_at(call->ptr[2], payload, n, i);
            int8_decode(&at, j > 0);
        }
    }
}

/* ---- top-k -------------------------------------------------------------- */

/*
 * The k-th largest magnitude by radix selection on the bits without sign,
 * whose order as integers is the order of magnitudes: three histograms of
 * 11 + 10 + 10 bits.  Counts are integers: exact for any number of threads.
 */
#define RADIX_MAX_BINS 2048

typedef struct radix {
    uint32_t prefix, mask; /* bits of the threshold that are known */
    int shift, n_bins;
    uint64_t n_wanted; /* still to be found among those with the prefix */
    uint64_t bins[RADIX_MAX_BINS];
} radix;

/* Two histograms in turn: neighbours tend to fall into the same bin, and an
 * increment that waits for the one before is slow. */
static void radix_count(radix *at, const float *x, fr_range part)
{
    uint32_t bins[2][RADIX_MAX_BINS] = {{0}};
    uint32_t last = (uint32_t)at->n_bins - 1;
    uint32_t prefix = at->prefix, mask = at->mask;
    int shift = at->shift;
    for (int64_t i = part.first; i < part.last; i++) {
        uint32_t bits = fr_bits_of_float(x[i]) & 0x7fffffffU;
        if ((bits & mask) == prefix)
            bins[i & 1][(bits >> shift) & last]++;
    }
#pragma omp critical(fr_radix_count)
    for (int i = 0; i < at->n_bins; i++)
        at->bins[i] += bins[0][i] + (uint64_t)bins[1][i];
}

/* Fixes the next bits of the threshold. */
static void radix_narrow(radix *at)
{
    int bin = at->n_bins - 1;
    while (bin > 0 && at->bins[bin] < at->n_wanted)
        at->n_wanted -= at->bins[bin--];
    at->prefix |= (uint32_t)bin << at->shift;
    at->mask |= (uint32_t)(at->n_bins - 1) << at->shift;
}

/* The threshold in at->prefix; at->n_wanted of those equal to it count. */
static void radix_select(radix *at, const float *x, int64_t n, uint64_t k,
                         int n_team)
{
    static const int shifts[] = {20, 10, 0}, bins[] = {2048, 1024, 1024};
    FR_FOR_TEAM(n_team);
    at->prefix = at->mask = 0;
    at->n_wanted = k;
    for (int pass = 0; pass < 3; pass++) {
        at->shift = shifts[pass];
        at->n_bins = bins[pass];
        memset(at->bins, 0, sizeof at->bins);
#pragma omp parallel num_threads(n_team)
        radix_count(at, x, fr_range_mine(n, 16));
        radix_narrow(at);
    }
}

/* Elements of a part above and equal to the threshold. */
typedef struct topk_count {
    uint64_t n_above, n_equal;
} topk_count;

static topk_count count_part(const float *x, fr_range part, uint32_t threshold)
{
    topk_count count = {0, 0};
    for (int64_t i = part.first; i < part.last; i++) {
        uint32_t bits = fr_bits_of_float(x[i]) & 0x7fffffffU;
        count.n_above += bits > threshold;
        count.n_equal += bits == threshold;
    }
    return count;
}

/* The place where a part writes, and the number of ties that it may take. */
typedef struct topk_out {
    uint32_t *indices;
    float *values;
    uint64_t at, n_ties;
} topk_out;

static void take_part(float *x, fr_range part, uint32_t threshold, topk_out out,
                      bool is_cleared)
{
    for (int64_t i = part.first; i < part.last; i++) {
        uint32_t bits = fr_bits_of_float(x[i]) & 0x7fffffffU;
        if (bits < threshold || (bits == threshold && out.n_ties == 0))
            continue;
        out.n_ties -= bits == threshold;
        out.indices[out.at] = (uint32_t)i;
        out.values[out.at++] = x[i];
        if (is_cleared)
            x[i] = 0.0F;
    }
}

/* Fixed pieces: which ties are taken depends on the index alone. */
static void topk_take(float *x, const fr_kernel_call *call, const radix *at,
                      uint64_t k, bool is_cleared)
{
    int64_t n = call->instr->compress.n;
    topk_count count[FR_SUM_PIECES];
    topk_out out[FR_SUM_PIECES];
    uint32_t *indices = call->ptr[2];
    uint64_t n_before = 0, n_ties = at->n_wanted;
    int n_team = fr_team(call, n);
    FR_FOR_TEAM(n_team);
#pragma omp parallel for num_threads(n_team) schedule(static)
    for (int i = 0; i < FR_SUM_PIECES; i++)
        count[i] =
            count_part(x, fr_range_part(n, 16, i, FR_SUM_PIECES), at->prefix);
    for (int i = 0; i < FR_SUM_PIECES; i++) {
        uint64_t mine = count[i].n_equal < n_ties ? count[i].n_equal : n_ties;
        out[i] = (topk_out){indices, (float *)(indices + k), n_before, mine};
        n_before += count[i].n_above + mine;
        n_ties -= mine;
    }
#pragma omp parallel for num_threads(n_team) schedule(static)
    for (int i = 0; i < FR_SUM_PIECES; i++)
        take_part(x, fr_range_part(n, 16, i, FR_SUM_PIECES), at->prefix, out[i],
                  is_cleared);
}

void fr_kernel_topk_compress(const fr_kernel_call *call)
{
    int64_t n = call->instr->compress.n;
    uint64_t k = fr_topk_kept(call->plan->compressor_density, (uint64_t)n);
    float *error = fr_compressor_has_error(call->plan) ? call->ptr[1] : NULL;
    float *g = call->ptr[0];
    radix at;
    if (error != NULL) {
#pragma omp parallel num_threads(fr_team(call, n))
        {
            fr_range part = fr_range_mine(n, 16);
            fr_floats_add(error + part.first, g + part.first,
                          part.last - part.first);
        }
    }
    radix_select(&at, error != NULL ? error : g, n, k, fr_team(call, n));
    topk_take(error != NULL ? error : g, call, &at, k, error != NULL);
}

void fr_kernel_topk_decompress(const fr_kernel_call *call)
{
    const fr_compress_dims *dim = &call->instr->compress;
    int64_t n = dim->n;
    int64_t k =
        (int64_t)fr_topk_kept(call->plan->compressor_density, (uint64_t)n);
    const char *payloads = call->ptr[0];
    float *g = call->ptr[2];
#pragma omp parallel num_threads(fr_team(call, n))
    {
        fr_range part = fr_range_mine(n, 16);
        memset(g + part.first, 0, (size_t)(part.last - part.first) * sizeof *g);
#pragma omp barrier
        for (int64_t i = 0; i < dim->n_payloads; i++) {
            const void *at = payloads + i * dim->payload_bytes;
            const uint32_t *indices = at;
            const float *values = (const float *)(indices + k);
            /* The indices of one payload differ; the loop's end is a
             * barrier, so the payloads are added in order. */
#pragma omp for schedule(static)
            for (int64_t j = 0; j < k; j++)
                g[indices[j]] += values[j];
        }
    }
}

/* ---- the two instructions ----------------------------------------------- */

void fr_kernel_none_compress(const fr_kernel_call *call)
{
    memcpy(call->ptr[2], call->ptr[0],
           (size_t)call->instr->compress.n * sizeof(float));
}

void fr_kernel_none_decompress(const fr_kernel_call *call)
{
    memcpy(call->ptr[2], call->ptr[0],
           (size_t)call->instr->compress.n * sizeof(float));
}

void fr_kernel_compress(const fr_kernel_call *call)
{
    fr_codecs_cpu[call->plan->compressor].compress(call);
}

void fr_kernel_decompress(const fr_kernel_call *call)
{
    fr_codecs_cpu[call->plan->compressor].decompress(call);
}
