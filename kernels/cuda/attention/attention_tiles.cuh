/*
 * attention_tiles.cuh: tiles of attention_mma.cu: rows to shared memory and
 * back, tiles of the other side in turn.  For .cu files in runtime/ only.
 */
#ifndef FR_KERNELS_CUDA_ATTENTION_ATTENTION_TILES_CUH
#define FR_KERNELS_CUDA_ATTENTION_ATTENTION_TILES_CUH

#include "kernels/cuda/attention/attention.cuh"
#include "kernels/cuda/mma_tiles.cuh"

constexpr int N_WARPS = 4, THREADS = N_WARPS * 32; /* of a block */

template <bool IS_KEY, class S>
FR_DEVICE int64_t row_of_side(const S &shape, int b, int i)
{
    return IS_KEY ? key_row(shape, b, i) : query_row(shape, b, i);
}

/* Starts to fill tile[N, HD] with rows [first, first + N) of a head of queries
 * or of keys. */
template <bool IS_KEY, int N, int HD, class S, class T>
FR_DEVICE void fill_tile(T *tile, const T *x, int64_t stride, int b, int first,
                         const S &shape)
{
    constexpr int PACKS = HD / PACK<T>;
    static_assert(N * PACKS % THREADS == 0, "whole packs for each thread");
    const int n = (IS_KEY ? shape.n_keys : shape.n_queries) - first;
    if constexpr (S::IS_PLAIN && THREADS % PACKS == 0) {
        /* A thread has one column of packs: its addresses are one step apart
         * in rows that follow each other. */
        constexpr int RUN = THREADS / PACKS;
        const int r = (int)threadIdx.x / PACKS;
        const int c = (int)threadIdx.x % PACKS * PACK<T>;
        const int n_there = c < shape.head_dim ? n - r : 0;
        const T *from = x + row_of_side<IS_KEY>(shape, b, first + r) * stride;
        T *to = tile + r * stride_of<T, HD> + c;
        from += c;
#pragma unroll
        for (int j = 0; j < N / RUN; j++, from += RUN * stride)
            copy_async(to + j * RUN * stride_of<T, HD>, from,
                       j * RUN >= n_there);
    } else {
#pragma unroll
        for (int j = 0; j < N * PACKS / THREADS; j++) {
            const int i = j * THREADS + (int)threadIdx.x;
            const int r = i / PACKS, c = i % PACKS * PACK<T>;
            const bool is_there = r < n && c < shape.head_dim;
            const T *from = x;
            if (is_there)
                from += row_of_side<IS_KEY>(shape, b, first + r) * stride + c;
            copy_async(tile + r * stride_of<T, HD> + c, from, !is_there);
        }
    }
}

/* ---- tiles of the other side, one filled while the other is read --------- */

/* Tiles of k and v of one kv head, two of each, from the tile that has key
 * `first0` on. */
template <class T, int N, int HD> struct kv_tiles {
    T *tiles; /* [2][k, v][N, HD + 8] */
    const T *k, *v;
    int b, first0;

    FR_DEVICE int key0(int i) const
    {
        return first0 / N * N + i * N;
    }

    FR_DEVICE T *at(int i, int i_kv) const
    {
        return tiles + (i % 2 * 2 + i_kv) * N * stride_of<T, HD>;
    }

    template <class S> FR_DEVICE void fill(int i, const S &shape) const
    {
        fill_tile<true, N, HD>(at(i, 0), k, shape.k_stride, b, key0(i), shape);
        fill_tile<true, N, HD>(at(i, 1), v, shape.k_stride, b, key0(i), shape);
    }
};

/* Tiles of N that have rows of a range. */
template <int N> FR_DEVICE int tiles_of(attn_range range)
{
    return range.last > range.first ? (range.last + N - 1) / N - range.first / N
                                    : 0;
}

/* Heads of a row of keys: those of keys, then those of values. */
template <class S, class T>
FR_DEVICE T *key_head(T *k, const S &shape, int i_kv)
{
    return k + (int64_t)i_kv * shape.head_dim;
}

template <class S, class T>
FR_DEVICE T *value_head(T *k, const S &shape, int i_kv)
{
    return key_head(k, shape, shape.n_kv + i_kv);
}

/* Waits until all operands that were requested so far have arrived for all
 * threads. */
FR_DEVICE void await_operands()
{
    copy_commit();
    copy_wait<0>();
    __syncthreads();
}

/* The begin of a step: tile i is there.  All have left the tile before, whose
 * place the next one is read into. */
template <class TILES, class S>
FR_DEVICE void step_tiles(const TILES &tiles, int i, int n, const S &shape)
{
    await_operands();
    if (i + 1 < n)
        tiles.fill(i + 1, shape);
}

/* The place at which a tile of queries begins. */
struct query_place {
    int h, row0;
};

/* Tiles of q and do, two of each, with lse and delta of their rows. */
template <class T, class S, int N, int HD> struct query_tiles {
    T *tiles;    /* [2][q, do][N, HD + 8] */
    float *rows; /* [2][lse, delta][N] */
    const attn_backward<T, S> &of;
    int b;
    attn_range range; /* of each head of a group, one after the other */

    FR_DEVICE T *at(int i, int i_do) const
    {
        return tiles + (i % 2 * 2 + i_do) * N * stride_of<T, HD>;
    }

    FR_DEVICE float *rows_at(int i, int i_delta) const
    {
        return rows + (i % 2 * 2 + i_delta) * N;
    }

    FR_DEVICE query_place begin(int h) const
    {
        return {h, range.first / N * N};
    }

    FR_DEVICE query_place after(query_place at) const
    {
        at.row0 += N;
        return at.row0 < range.last ? at : begin(at.h + 1);
    }

    FR_DEVICE void fill(int i, query_place to, const S &shape) const
    {
        fill_tile<false, N, HD>(at(i, 0), of.q + to.h * shape.head_dim,
                                shape.q_stride, b, to.row0, shape);
        fill_tile<false, N, HD>(at(i, 1), of.d_o + to.h * shape.head_dim,
                                shape.o_stride, b, to.row0, shape);
        const int r = (int)threadIdx.x;
        static_assert(N <= THREADS, "a thread has one row");
        if (r < N) {
            const bool is_there = to.row0 + r < shape.n_queries;
            const int64_t from = row_at(shape, b, to.h) + to.row0 + r;
            copy_async<4>(rows_at(i, 0) + r, of.lse + from, !is_there);
            copy_async<4>(rows_at(i, 1) + r, of.delta + from, !is_there);
        }
    }
};

/* ---- what a warp has in registers ---------------------------------------- */

/* Writes the rows of a warp times `factor` of each half; what lies beyond stays
 * out. */
template <bool IS_KEY, int HD, int M, class S, class T>
FR_DEVICE void store_rows(T *x, const row_tile<HD> (&from)[M], int64_t stride,
                          int b, int first, const float (&factor)[M][2],
                          const S &shape)
{
#pragma unroll
    for (int j = 0; j < 2 * M; j++) {
        const int half = j % 2, row = first + j / 2 * ROWS + row_of(2 * half);
        if (row >= (IS_KEY ? shape.n_keys : shape.n_queries))
            continue;
        T *to = x + row_of_side<IS_KEY>(shape, b, row) * stride;
#pragma unroll
        for (int n = 0; n < HD / 8; n++) {
            const float *v = &from[j / 2].at[n][2 * half];
            if (n * 8 < shape.head_dim)
                store_two(to + col_of(n, 0), v[0] * factor[j / 2][half],
                          v[1] * factor[j / 2][half]);
        }
    }
}

#endif
