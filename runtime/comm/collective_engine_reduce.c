/* collective_engine_reduce.c: sums of several members' buffers, at the speed
 * of memory: every element is read once and written once. */
#include "kernels/cpu/kernels_simd.h"
#include "runtime/comm/collective_engine.h"

#define TILE 2048 /* elements: the accumulators stay in the first cache */

/* dst = a (+|max) b over a range; dst may be a or b. */
#define DEFINE_PAIR(name, type, operation)                                     \
    FR_SIMD static void name(type *dst, const type *a, const type *b,          \
                             uint64_t n)                                       \
    {                                                                          \
        _Pragma("omp simd") for (uint64_t i = 0; i < n; i++)                   \
        {                                                                      \
            type x = a[i], y = b[i];                                           \
            dst[i] = operation;                                                \
        }                                                                      \
    }

DEFINE_PAIR(add_f32, float, x + y)
DEFINE_PAIR(max_f32, float, x > y ? x : y)
DEFINE_PAIR(add_f64, double, x + y)
DEFINE_PAIR(max_f64, double, x > y ? x : y)
DEFINE_PAIR(max_u8, uint8_t, x > y ? x : y)
DEFINE_PAIR(max_i32, int32_t, x > y ? x : y)
/* Wraps like the machine does: unsigned, where C says so. */
DEFINE_PAIR(add_i32, uint32_t, x + y)

#define DEFINE_TILES(name, type, pair)                                         \
    static void name(type *dst, const void *const *src, int64_t n_src,         \
                     uint64_t n)                                               \
    {                                                                          \
        type tile[TILE];                                                       \
        for (uint64_t at = 0; at < n; at += TILE) {                            \
            uint64_t m = n - at < TILE ? n - at : TILE;                        \
            const type *sum = (const type *)src[0] + at;                       \
            for (int64_t j = 1; j < n_src; j++) {                              \
                type *to = j == n_src - 1 ? dst + at : tile;                   \
                pair(to, sum, (const type *)src[j] + at, m);                   \
                sum = tile;                                                    \
            }                                                                  \
        }                                                                      \
    }

DEFINE_TILES(add_tiles_f32, float, add_f32)
DEFINE_TILES(max_tiles_f32, float, max_f32)
DEFINE_TILES(add_tiles_f64, double, add_f64)
DEFINE_TILES(max_tiles_f64, double, max_f64)
DEFINE_TILES(add_tiles_i32, uint32_t, add_i32)
DEFINE_TILES(max_tiles_i32, int32_t, max_i32)
DEFINE_TILES(max_tiles_u8, uint8_t, max_u8)

static void reduce_bf16(uint16_t *dst, const void *const *src, int64_t n_src,
                        uint64_t n, bool is_max)
{
    float sum[TILE], next[TILE];

    for (uint64_t at = 0; at < n; at += TILE) {
        uint64_t m = n - at < TILE ? n - at : TILE;
        fr_floats_of_bf16(sum, (const uint16_t *)src[0] + at, (int64_t)m);
        for (int64_t j = 1; j < n_src; j++) {
            fr_floats_of_bf16(next, (const uint16_t *)src[j] + at, (int64_t)m);
            if (is_max)
                max_f32(sum, sum, next, m);
            else
                add_f32(sum, sum, next, m);
        }
        fr_floats_to_bf16(dst + at, sum, (int64_t)m);
    }
}

void fr_reduce(void *dst, const void *const *src, int64_t n_src, uint64_t n,
               fr_dtype dtype, bool is_max)
{
    if (n_src == 1) {
        if (dst != src[0])
            memmove(dst, src[0], n * fr_dtype_bytes(dtype));
        return;
    }
    switch (dtype) {
    case FR_DTYPE_F64:
        (is_max ? max_tiles_f64 : add_tiles_f64)(dst, src, n_src, n);
        break;
    case FR_DTYPE_BF16:
        reduce_bf16(dst, src, n_src, n, is_max);
        break;
    case FR_DTYPE_I32:
        if (is_max)
            max_tiles_i32(dst, src, n_src, n);
        else
            add_tiles_i32(dst, src, n_src, n);
        break;
    case FR_DTYPE_U8:
        max_tiles_u8(dst, src, n_src, n);
        break;
    default:
        (is_max ? max_tiles_f32 : add_tiles_f32)(dst, src, n_src, n);
        break;
    }
}
