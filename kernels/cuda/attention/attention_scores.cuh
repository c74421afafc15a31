/*
 * attention_scores.cuh: scores in the registers of a warp of attention_mma.cu:
 * pairs that do not see each other, and those that are dropped.  For .cu files
 * in runtime/ only.
 */
#ifndef FR_KERNELS_CUDA_ATTENTION_ATTENTION_SCORES_CUH
#define FR_KERNELS_CUDA_ATTENTION_ATTENTION_SCORES_CUH

#include "kernels/cuda/attention/attention.cuh"
#include "kernels/cuda/mma_tiles.cuh"

/* f(element, row, column) of the scores of a warp whose first is (row0, col0).
 */
template <int N, int M, class F>
FR_DEVICE void each_score(row_tile<N> (&s)[M], int row0, int col0, const F &f)
{
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int n = 0; n < N / 8; n++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                f(s[m].at[n][i], row0 + m * ROWS + row_of(i),
                  col0 + col_of(n, i));
}

/* Scores of pairs that do not see each other become minus infinity; rows of
 * the tile at (row0, col0) are queries, or keys. */
template <bool IS_KEY, int N, int M, class S>
FR_DEVICE void mask(row_tile<N> (&s)[M], const S &shape, int row0, int col0)
{
    each_score(s, row0, col0, [&](float &x, int row, int col) {
        const int query = IS_KEY ? col : row, key = IS_KEY ? row : col;
        const bool is_there =
            IS_KEY ? query < shape.n_queries : key < shape.n_keys;
        if (!is_there || !is_open(shape, query_position(shape, query),
                                  key_position(shape, key)))
            x = -INFINITY;
    });
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

/* Rows of the other side that any row of a warp sees: those of a block are
 * more. */
template <bool IS_KEY, class S>
FR_DEVICE attn_range seen_by_warp(const S &shape, int row0, int n)
{
    if (!S::IS_PLAIN && row0 >= (IS_KEY ? shape.n_keys : shape.n_queries))
        return {0, 0}; /* rows beyond have no position */
    return IS_KEY ? queries_seeing(shape, row0, n) : keys_seen(shape, row0, n);
}

FR_DEVICE bool has_rows(attn_range range, int first, int n)
{
    return first < range.last && first + n > range.first;
}

/* s times the factors of its probabilities, or those factors; rows as above. */
template <bool IS_KEY, int N, int M, class S>
FR_DEVICE void drop(row_tile<N> (&s)[M], const S &shape, int b, int h, int row0,
                    int col0)
{
    drop_cursor cursor = {};
    each_score(s, row0, col0, [&](float &x, int row, int col) {
        x *= cursor.at(shape, b, h, query_position(shape, IS_KEY ? col : row),
                       key_position(shape, IS_KEY ? row : col));
    });
}

#endif
