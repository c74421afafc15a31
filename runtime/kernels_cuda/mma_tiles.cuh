/*
 * mma_tiles.cuh: tiles in shared memory and their products by tensor cores, in
 * bf16 and in tf32 (float32 in memory).  For .cu files in runtime/ only.
 *
 * A warp has 16 rows.  What a product leaves in its registers is the left
 * operand of the next: packed to 16 bits for bf16; as it is for tf32, where
 * the two neighbouring columns that a lane has are called columns t and t + 4
 * of the next product, whose right operand is read in the same order.
 */
#ifndef FR_RUNTIME_KERNELS_CUDA_MMA_TILES_CUH
#define FR_RUNTIME_KERNELS_CUDA_MMA_TILES_CUH

#include "runtime/kernels_cuda/ptx.cuh"

constexpr int ROWS = 16; /* of a warp */

/* Elements in 16 bytes, and columns that one product step takes. */
template <class T> constexpr int PACK = 16 / (int)sizeof(T);
template <class T> constexpr int STEP = 32 / (int)sizeof(T);

/* Elements from one row of a tile to the next: eight rows lie in eight
 * different banks of 16 bytes. */
template <class T, int HD> constexpr int stride_of = HD + PACK<T>;

/* What tensor cores read of a float32. */
template <class T> FR_DEVICE void round_operand(uint32_t (&at)[4])
{
    if constexpr (sizeof(T) == 4)
#pragma unroll
        for (int i = 0; i < 4; i++)
            at[i] = round_tf32(__uint_as_float(at[i]));
}

template <class T>
FR_DEVICE void multiply_add(float (&c)[4], const uint32_t (&a)[4],
                            const uint32_t *b)
{
    if constexpr (sizeof(T) == 4)
        mma_tf32(c, a, b);
    else
        mma_bf16(c, a, b);
}

/* 16 rows of a tile as the left operand of products. */
template <class T, int HD> struct left_rows {
    uint32_t at[HD / STEP<T>][4];

    FR_DEVICE void load(const T *tile, int first)
    {
        const int lane = threadIdx.x % 32;
        const T *row =
            tile + (first + lane % 16) * stride_of<T, HD> + lane / 16 * PACK<T>;
#pragma unroll
        for (int k = 0; k < HD / STEP<T>; k++) {
            load_matrices<false>(at[k], row + k * STEP<T>);
            round_operand<T>(at[k]);
        }
    }
};

template <int N> struct row_tile {
    float at[N / 8][4]; /* 16 x N, as a product leaves it */

    FR_DEVICE void clear()
    {
#pragma unroll
        for (int n = 0; n < N / 8; n++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                at[n][i] = 0.0F;
    }
};

/* out[16, N] += left[16, HD] tile[N, HD]^T */
template <int N, int HD, class T>
FR_DEVICE void multiply_rows(row_tile<N> &out, const left_rows<T, HD> &left,
                             const T *tile)
{
    const int lane = threadIdx.x % 32;
    const T *row = tile + (lane % 8 + lane / 16 * 8) * stride_of<T, HD> +
                   lane / 8 % 2 * PACK<T>;
#pragma unroll
    for (int k = 0; k < HD / STEP<T>; k++)
#pragma unroll
        for (int n = 0; n < N / 16; n++) {
            uint32_t right[4];
            load_matrices<false>(right,
                                 row + n * 16 * stride_of<T, HD> + k * STEP<T>);
            round_operand<T>(right);
            multiply_add<T>(out.at[2 * n], left.at[k], right);
            multiply_add<T>(out.at[2 * n + 1], left.at[k], right + 2);
        }
}

/* out[16, HD] += p[16, N] tile[N, HD] */
template <int N, int HD>
FR_DEVICE void add_product(row_tile<HD> &out, const row_tile<N> &p,
                           const bf16 *tile)
{
    const int lane = threadIdx.x % 32;
    const bf16 *row = tile + (lane % 16) * stride_of<bf16, HD> + lane / 16 * 8;
#pragma unroll
    for (int k = 0; k < N / 16; k++) {
        const float(&a)[4] = p.at[2 * k], (&b)[4] = p.at[2 * k + 1];
        const uint32_t left[4] = {pack_bf16(a[0], a[1]), pack_bf16(a[2], a[3]),
                                  pack_bf16(b[0], b[1]), pack_bf16(b[2], b[3])};
#pragma unroll
        for (int n = 0; n < HD / 16; n++) {
            uint32_t right[4];
            load_matrices<true>(right,
                                row + k * 16 * stride_of<bf16, HD> + n * 16);
            mma_bf16(out.at[2 * n], left, right);
            mma_bf16(out.at[2 * n + 1], left, right + 2);
        }
    }
}

template <int N, int HD>
FR_DEVICE void add_product(row_tile<HD> &out, const row_tile<N> &p,
                           const float *tile)
{
    const int lane = threadIdx.x % 32;
    const float *row = tile + lane % 4 * 2 * stride_of<float, HD> + lane / 4;
#pragma unroll
    for (int k = 0; k < N / 8; k++) {
        const float(&a)[4] = p.at[k];
        const uint32_t left[4] = {round_tf32(a[0]), round_tf32(a[2]),
                                  round_tf32(a[1]), round_tf32(a[3])};
#pragma unroll
        for (int n = 0; n < HD / 8; n++) {
            const float *at = row + k * 8 * stride_of<float, HD> + n * 8;
            const uint32_t right[2] = {round_tf32(at[0]),
                                       round_tf32(at[stride_of<float, HD>])};
            mma_tf32(out.at[n], left, right);
        }
    }
}

/* Over the four lanes that share a row. */
template <class F> FR_DEVICE float row_reduce(float x, F f)
{
    x = f(x, __shfl_xor_sync(0xffffffffU, x, 1));
    return f(x, __shfl_xor_sync(0xffffffffU, x, 2));
}

/* Row and column of element i of a lane in tile n of eight columns. */
FR_DEVICE int row_of(int i)
{
    return (int)(threadIdx.x % 32) / 4 + i / 2 * 8;
}

FR_DEVICE int col_of(int n, int i)
{
    return n * 8 + (int)(threadIdx.x % 4) * 2 + i % 2;
}

FR_DEVICE void store_two(bf16 *to, float a, float b)
{
    *(uint32_t *)to = pack_bf16(a, b);
}

FR_DEVICE void store_two(float *to, float a, float b)
{
    to[0] = a;
    to[1] = b;
}

#endif
