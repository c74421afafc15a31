/*
 * mma_tiles.cuh: tiles in shared memory and their products by tensor cores, in
 * bf16 and in tf32 (float32 in memory).  For .cu files in runtime/ only.
 *
 * A warp has M tiles of 16 rows.  What it reads of a right operand it uses for
 * all of them: the more there are, the fewer bytes leave shared memory for a
 * product, and the more registers the results take.
 *
 * What a product leaves in registers is the left operand of the next: packed to
 * 16 bits for bf16; as it is for tf32, where the two neighbouring columns that
 * a lane has are called columns t and t + 4 of the next product, whose right
 * operand is read in the same order.
 */
#ifndef FR_KERNELS_CUDA_MMA_TILES_CUH
#define FR_KERNELS_CUDA_MMA_TILES_CUH

#include "kernels/cuda/ptx.cuh"

constexpr int ROWS = 16; /* of one instruction */

/* Elements in 16 bytes, and columns that one product step takes. */
template <class T> constexpr int PACK = 16 / (int)sizeof(T);
template <class T> constexpr int STEP = 32 / (int)sizeof(T);

/* Elements from one row of a tile to the next: eight rows lie in eight
 * different banks of 16 bytes. */
template <class T, int HD> constexpr int stride_of = HD + PACK<T>;

/* Rounds float32 operands to the bits that tensor cores read. */
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

/* M times 16 rows of a tile as the left operand of products: kept in registers,
 * or read again for each product. */
template <class T, int HD, int M, bool IS_KEPT> struct left_rows {
    const T *row; /* the first that this lane reads */
    uint32_t at[M][IS_KEPT ? HD / STEP<T> : 1][4];

    FR_DEVICE void load(const T *tile, int first)
    {
        const int lane = threadIdx.x % 32;
        row =
            tile + (first + lane % 16) * stride_of<T, HD> + lane / 16 * PACK<T>;
        if constexpr (IS_KEPT)
#pragma unroll
            for (int k = 0; k < HD / STEP<T>; k++)
#pragma unroll
                for (int m = 0; m < M; m++)
                    read(at[m][k], m, k);
    }

    /* Columns of step k of row tile m. */
    FR_DEVICE void take(uint32_t (&out)[4], int m, int k) const
    {
        if constexpr (IS_KEPT)
#pragma unroll
            for (int i = 0; i < 4; i++)
                out[i] = at[m][k][i];
        else
            read(out, m, k);
    }

  private:
    FR_DEVICE void read(uint32_t (&out)[4], int m, int k) const
    {
        load_matrices<false>(out,
                             row + m * ROWS * stride_of<T, HD> + k * STEP<T>);
        round_operand<T>(out);
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

/* out[16 M, N] += left[16 M, HD] tile[N, HD]^T */
template <int N, int HD, int M, bool IS_KEPT, class T>
FR_DEVICE void multiply_rows(row_tile<N> (&out)[M],
                             const left_rows<T, HD, M, IS_KEPT> &left,
                             const T *tile)
{
    const int lane = threadIdx.x % 32;
    const T *row = tile + (lane % 8 + lane / 16 * 8) * stride_of<T, HD> +
                   lane / 8 % 2 * PACK<T>;
#pragma unroll
    for (int k = 0; k < HD / STEP<T>; k++) {
        uint32_t rows[M][4];
#pragma unroll
        for (int m = 0; m < M; m++)
            left.take(rows[m], m, k);
#pragma unroll
        for (int n = 0; n < N / 16; n++) {
            uint32_t right[4];
            load_matrices<false>(right,
                                 row + n * 16 * stride_of<T, HD> + k * STEP<T>);
            round_operand<T>(right);
#pragma unroll
            for (int m = 0; m < M; m++) {
                multiply_add<T>(out[m].at[2 * n], rows[m], right);
                multiply_add<T>(out[m].at[2 * n + 1], rows[m], right + 2);
            }
        }
    }
}

/* out[16 M, HD] += p[16 M, N] tile[N, HD] */
template <int N, int HD, int M>
FR_DEVICE void add_product(row_tile<HD> (&out)[M], const row_tile<N> (&p)[M],
                           const bf16 *tile)
{
    const int lane = threadIdx.x % 32;
    const bf16 *row = tile + (lane % 16) * stride_of<bf16, HD> + lane / 16 * 8;
#pragma unroll
    for (int k = 0; k < N / 16; k++) {
        uint32_t left[M][4];
#pragma unroll
        for (int m = 0; m < M; m++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                left[m][i] = pack_bf16(p[m].at[2 * k + i / 2][i % 2 * 2],
                                       p[m].at[2 * k + i / 2][i % 2 * 2 + 1]);
#pragma unroll
        for (int n = 0; n < HD / 16; n++) {
            uint32_t right[4];
            load_matrices<true>(right,
                                row + k * 16 * stride_of<bf16, HD> + n * 16);
#pragma unroll
            for (int m = 0; m < M; m++) {
                mma_bf16(out[m].at[2 * n], left[m], right);
                mma_bf16(out[m].at[2 * n + 1], left[m], right + 2);
            }
        }
    }
}

template <int N, int HD, int M>
FR_DEVICE void add_product(row_tile<HD> (&out)[M], const row_tile<N> (&p)[M],
                           const float *tile)
{
    const int lane = threadIdx.x % 32;
    const float *row = tile + lane % 4 * 2 * stride_of<float, HD> + lane / 4;
#pragma unroll
    for (int k = 0; k < N / 8; k++) {
        uint32_t left[M][4];
#pragma unroll
        for (int m = 0; m < M; m++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                left[m][i] = round_tf32(p[m].at[k][i % 2 * 2 + i / 2]);
#pragma unroll
        for (int n = 0; n < HD / 8; n++) {
            const float *at = row + k * 8 * stride_of<float, HD> + n * 8;
            const uint32_t right[2] = {round_tf32(at[0]),
                                       round_tf32(at[stride_of<float, HD>])};
#pragma unroll
            for (int m = 0; m < M; m++)
                mma_tf32(out[m].at[n], left[m], right);
        }
    }
}

/* All row tiles of a warp. */
template <int N, int M> FR_DEVICE void clear(row_tile<N> (&tiles)[M])
{
#pragma unroll
    for (int m = 0; m < M; m++)
        tiles[m].clear();
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
