/*
 * attention_tiles.cuh: tiles of attention_mma.cu: rows to shared memory and
 * back, pairs that do not see each other or are dropped.  For .cu files in
 * runtime/ only.
 */
#ifndef FR_RUNTIME_KERNELS_CUDA_ATTENTION_ATTENTION_TILES_CUH
#define FR_RUNTIME_KERNELS_CUDA_ATTENTION_ATTENTION_TILES_CUH

#include "runtime/kernels_cuda/attention/attention.cuh"
#include "runtime/kernels_cuda/mma_tiles.cuh"

constexpr float LOG2_E = 1.4426950408889634F;

/* Starts to fill tile[N, HD] with rows [first, first + N) of a head of queries
 * or of keys. */
template <bool IS_KEY, int N, int HD, int THREADS, class S, class T>
FR_DEVICE void fill_tile(T *tile, const T *x, int64_t stride, int b, int first,
                         const S &shape)
{
    constexpr int PACKS = HD / PACK<T>;
    static_assert(N * PACKS % THREADS == 0, "whole packs for each thread");
    const int n = IS_KEY ? shape.n_keys : shape.n_queries;
#pragma unroll
    for (int j = 0; j < N * PACKS / THREADS; j++) {
        const int i = j * THREADS + (int)threadIdx.x;
        const int r = i / PACKS, c = i % PACKS * PACK<T>;
        const bool is_there = first + r < n && c < shape.head_dim;
        const T *from = x;
        if (is_there)
            from += (IS_KEY ? key_row(shape, b, first + r)
                            : query_row(shape, b, first + r)) *
                        stride +
                    c;
        copy_async(tile + r * stride_of<T, HD> + c, from, !is_there);
    }
}

/* Writes 16 rows times `factor` of each half; what lies beyond stays out. */
template <bool IS_KEY, int HD, class S, class T>
FR_DEVICE void store_rows(T *x, const row_tile<HD> &from, int64_t stride, int b,
                          int first, const float (&factor)[2], const S &shape)
{
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int row = first + row_of(2 * half);
        if (row >= (IS_KEY ? shape.n_keys : shape.n_queries))
            continue;
        T *to =
            x + (IS_KEY ? key_row(shape, b, row) : query_row(shape, b, row)) *
                    stride;
#pragma unroll
        for (int n = 0; n < HD / 8; n++) {
            const float *v = &from.at[n][2 * half];
            if (n * 8 < shape.head_dim)
                store_two(to + col_of(n, 0), v[0] * factor[half],
                          v[1] * factor[half]);
        }
    }
}

/* Scores of pairs that do not see each other become minus infinity; rows of
 * the tile at (row0, col0) are queries, or keys. */
template <bool IS_KEY, int N, class S>
FR_DEVICE void mask(row_tile<N> &s, const S &shape, int row0, int col0)
{
#pragma unroll
    for (int n = 0; n < N / 8; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int row = row0 + row_of(i), col = col0 + col_of(n, i);
            const int query = IS_KEY ? col : row, key = IS_KEY ? row : col;
            const bool is_there =
                IS_KEY ? query < shape.n_queries : key < shape.n_keys;
            if (!is_there || !is_open(shape, query_position(shape, query),
                                      key_position(shape, key)))
                s.at[n][i] = -INFINITY;
        }
}

/* May the tile of `n_q` queries by `n_k` keys have pairs that do not see each
 * other?  Of what is seen, the first query sees the last key and the last query
 * the first key only where all see all. */
template <class S>
FR_DEVICE bool is_masked(const S &shape, int query0, int n_q, int key0, int n_k)
{
    if (query0 + n_q > shape.n_queries || key0 + n_k > shape.n_keys)
        return true;
    return !is_open(shape, query_position(shape, query0),
                    key_position(shape, key0 + n_k - 1)) ||
           !is_open(shape, query_position(shape, query0 + n_q - 1),
                    key_position(shape, key0));
}

/* s times the factors of its probabilities, or those factors; rows as above. */
template <bool IS_KEY, int N, class S>
FR_DEVICE void drop(row_tile<N> &s, const S &shape, int b, int h, int row0,
                    int col0)
{
    drop_cursor cursor = {};
#pragma unroll
    for (int n = 0; n < N / 8; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int row = row0 + row_of(i), col = col0 + col_of(n, i);
            s.at[n][i] *= cursor.at(shape, b, h,
                                    query_position(shape, IS_KEY ? col : row),
                                    key_position(shape, IS_KEY ? row : col));
        }
}

#endif
