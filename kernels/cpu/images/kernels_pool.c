/*
 * kernels_pool.c: windows over images, channels last: means, and largest values
 * with their places.  Threads share the samples.
 */
#include "kernels/cpu/kernels_simd.h"
#include "kernels/kernels_list.h"
#include "spec/model/layer_ops.h"

#include <string.h>

/* One sample; made: pixels of a side of what comes out. */
typedef struct pooled {
    const fr_pool_dims *d;
    int64_t made;
    const float *x;
    float *y;
    uint8_t *index;
} pooled;

/* Returns the part of a window that begins at `first` inside the image. */
static fr_range inside(const fr_pool_dims *d, int64_t first)
{
    const int64_t last = first + d->kernel;
    return (fr_range){first > 0 ? first : 0, last < d->size ? last : d->size};
}

static int64_t first_of(const fr_pool_dims *d, int64_t i)
{
    return i * d->stride - d->padding;
}

FR_SIMD static void pool_largest(float *restrict best, uint8_t *restrict index,
                                 const float *restrict x, int64_t n,
                                 uint8_t place)
{
#pragma omp simd
    for (int64_t c = 0; c < n; c++) {
        const bool is_more = x[c] > best[c];
        best[c] = is_more ? x[c] : best[c];
        index[c] = is_more ? place : index[c];
    }
}

/* dx += dy where the place is the largest's */
FR_SIMD static void pool_spread(float *restrict dx, const float *restrict dy,
                                const uint8_t *restrict index, int64_t n,
                                uint8_t place)
{
#pragma omp simd
    for (int64_t c = 0; c < n; c++)
        dx[c] += index[c] == place ? dy[c] : 0.0F;
}

FR_SIMD static void pool_add_scaled(float *restrict y, const float *restrict x,
                                    int64_t n, float factor)
{
#pragma omp simd
    for (int64_t c = 0; c < n; c++)
        y[c] += factor * x[c];
}

/* ---- forward ------------------------------------------------------------ */

static void largest_forward(const pooled *p, int64_t i, int64_t k)
{
    const fr_pool_dims *d = p->d;
    const int64_t n = d->channels, top = first_of(d, i), left = first_of(d, k);
    const fr_range rows = inside(d, top), cols = inside(d, left);
    float *best = p->y + (i * p->made + k) * n;
    uint8_t *index = p->index + (i * p->made + k) * n;
    bool is_begun = false;
    for (int64_t row = rows.first; row < rows.last; row++)
        for (int64_t col = cols.first; col < cols.last; col++) {
            const float *x = p->x + (row * d->size + col) * n;
            const uint8_t place =
                (uint8_t)((row - top) * d->kernel + (col - left));
            if (is_begun) {
                pool_largest(best, index, x, n, place);
            } else {
                memcpy(best, x, (size_t)n * sizeof *best);
                memset(index, place, (size_t)n);
            }
            is_begun = true;
        }
}

static void mean_forward(const pooled *p, int64_t i, int64_t k)
{
    const fr_pool_dims *d = p->d;
    const int64_t n = d->channels;
    const fr_range rows = inside(d, first_of(d, i)),
                   cols = inside(d, first_of(d, k));
    const float share = 1.0F / (float)(d->kernel * d->kernel);
    float *y = p->y + (i * p->made + k) * n;
    memset(y, 0, (size_t)n * sizeof *y);
    for (int64_t row = rows.first; row < rows.last; row++)
        for (int64_t col = cols.first; col < cols.last; col++)
            pool_add_scaled(y, p->x + (row * d->size + col) * n, n, share);
}

static int64_t made_of(const fr_pool_dims *d)
{
    return fr_window_size(d->size, d->kernel, d->stride, d->padding);
}

void fr_kernel_pool_fwd(const fr_kernel_call *call)
{
    const fr_pool_dims *d = &call->instr->pool;
    const int64_t made = made_of(d), n_in = d->size * d->size * d->channels,
                  n_out = made * made * d->channels;
    const bool is_max = (call->instr->flags & FR_INSTR_MAX) != 0;
    const float *x = call->ptr[FR_POOL_FWD_X];
    float *y = call->ptr[FR_POOL_FWD_Y];
    uint8_t *index = call->ptr[FR_POOL_FWD_INDEX];
#pragma omp parallel for collapse(2) schedule(static)                          \
    num_threads(fr_team(call, d->batch *n_in))
    for (int64_t b = 0; b < d->batch; b++)
        for (int64_t i = 0; i < made; i++) {
            const pooled p = {d, made, x + b * n_in, y + b * n_out,
                              is_max ? index + b * n_out : NULL};
            for (int64_t k = 0; k < made; k++)
                if (is_max)
                    largest_forward(&p, i, k);
                else
                    mean_forward(&p, i, k);
        }
}

/* ---- backward ----------------------------------------------------------- */

/* From the gradient `dy` of one sample to dx, where each window adds. */
static void spread_sample(const fr_pool_dims *d, const float *dy,
                          const uint8_t *index, float *dx)
{
    const int64_t made = made_of(d), n = d->channels;
    const float share = 1.0F / (float)(d->kernel * d->kernel);
    memset(dx, 0, (size_t)(d->size * d->size * n) * sizeof *dx);
    for (int64_t at = 0; at < made * made; at++) {
        const int64_t top = first_of(d, at / made),
                      left = first_of(d, at % made);
        const fr_range rows = inside(d, top), cols = inside(d, left);
        for (int64_t row = rows.first; row < rows.last; row++)
            for (int64_t col = cols.first; col < cols.last; col++) {
                float *to = dx + (row * d->size + col) * n;
                if (index == NULL)
                    pool_add_scaled(to, dy + at * n, n, share);
                else
                    pool_spread(
                        to, dy + at * n, index + at * n, n,
                        (uint8_t)((row - top) * d->kernel + (col - left)));
            }
    }
}

void fr_kernel_pool_bwd(const fr_kernel_call *call)
{
    const fr_pool_dims *d = &call->instr->pool;
    const int64_t made = made_of(d), n_in = d->size * d->size * d->channels,
                  n_out = made * made * d->channels;
    const bool is_max = (call->instr->flags & FR_INSTR_MAX) != 0;
    const float *dy = call->ptr[FR_POOL_BWD_DY];
    const uint8_t *index = call->ptr[FR_POOL_BWD_INDEX];
    float *dx = call->ptr[FR_POOL_BWD_DX];
#pragma omp parallel for schedule(static)                                      \
    num_threads(fr_team(call, d->batch *n_in))
    for (int64_t b = 0; b < d->batch; b++)
        spread_sample(d, dy + b * n_out, is_max ? index + b * n_out : NULL,
                      dx + b * n_in);
}
