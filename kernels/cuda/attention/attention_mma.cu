/*
 * attention_mma.cu: attention by tensor cores, in bf16 and tf32, for heads of
 * up to 128 whose size is a multiple of 8; attention.cu says what is computed
 * and why backward is two kernels.
 *
 * A warp has 16 or 32 rows of scores, which stay in its registers.  Tiles of
 * the other side lie in shared memory, two of each, of which one is filled
 * (cp.async) while the other is read (ldmatrix).  What a warp reads there it
 * uses for all its rows.  Heads between the sizes of the templates are filled
 * up with zeros.
 *
 * Products per pair of query and key and element of the head: forward 2,
 * backward 7 (5 of them the model's).  Bytes moved: q, k, v, o (and their
 * gradients) once; k and v again per tile of queries from the second cache.
 * An SM reads 128 bytes of shared memory in a clock: with 16 rows a warp they
 * take longer than the tensor cores (mma.sync, which does not reach all of
 * Hopper's peak: wgmma does), with 32 these bound.
 */
#include "kernels/cuda/attention/attention_scores.cuh"
#include "kernels/cuda/attention/attention_tiles.cuh"

namespace
{

/* ---- how registers are shared out ---------------------------------------- */

/* A warp has 16 `m` rows of one side, and of the other side `n` at a time of
 * tiles of `tile` rows in shared memory. */
struct mma_tiling {
    int m, n, tile;
    bool is_kept; /* its rows stay in registers: else read for each product */

    __host__ __device__ constexpr int warp_rows() const
    {
        return m * ROWS;
    }

    __host__ __device__ constexpr int block_rows() const
    {
        return N_WARPS * m * ROWS;
    }
};

/* Lean ones take less shared memory, for devices that have 99 KiB a block.
 * GRAD_KV_FEW: GRAD_KV where its blocks would be too few to keep all SMs busy
 * until the last one ends: twice as many of half as many rows. */
enum mma_kernel {
    FORWARD,
    FORWARD_LEAN,
    GRAD_Q,
    GRAD_Q_LEAN,
    GRAD_KV,
    GRAD_KV_FEW
};

/* Returns a tiling that keeps a thread within its 255 registers.  For heads of
 * 64 in bf16, two row tiles take 64 registers for each result that is summed
 * up, 32 for each operand that is kept, and n for each matrix of scores.  So
 * with dk and dv, and for larger heads, operands are read again.  One row tile
 * is left where results are twice as wide (dk and dv of heads of 128), where
 * elements are words, and where attention is not plain, so that positions are
 * computed for each score.  For heads of 64 five such choices were timed on an
 * H200 (2026-11-27); the fastest of each kernel is here. */
template <mma_kernel KERNEL, class T, class S, int HD>
__host__ __device__ constexpr mma_tiling tiling_of()
{
    constexpr bool IS_SMALL = HD <= 64;
    if (sizeof(T) > 2)
        return {1, 32, 32, IS_SMALL && KERNEL != GRAD_KV};
    switch (KERNEL) {
    case FORWARD:
    case FORWARD_LEAN:
        return S::IS_PLAIN && KERNEL == FORWARD
                   ? mma_tiling{2, 64, 64, IS_SMALL}
                   : mma_tiling{1, 64, 64, true};
    case GRAD_Q:
    case GRAD_Q_LEAN:
        if (S::IS_PLAIN && KERNEL == GRAD_Q)
            return IS_SMALL ? mma_tiling{2, 32, 64, true}
                            : mma_tiling{2, 16, 32, false};
        return IS_SMALL ? mma_tiling{1, 64, 64, true}
                        : mma_tiling{1, 32, 32, true};
    default:
        if (!IS_SMALL)
            return {1, 32, 32, false};
        return S::IS_PLAIN && KERNEL == GRAD_KV ? mma_tiling{2, 32, 64, false}
                                                : mma_tiling{1, 64, 64, true};
    }
}

/* ---- forward ------------------------------------------------------------- */

/* Below all scores, and finite when it is scaled. */
constexpr float LOWEST = -1e30F;

/* Maximum and sum so far of a lane's two rows of a row tile. */
struct running {
    float max[2], sum[2];
};

/* A NaN among scores is found again in the sum. */
struct largest_of {
    FR_DEVICE float operator()(float a, float b) const
    {
        return fmaxf(a, b);
    }
};

/* s -> exp(s - max); the output so far is scaled to the maximum.  That is any
 * number not much below the largest score: it is only raised where a power of 2
 * would exceed MOST, so that the output is seldom scaled. */
template <int N, int HD, int M>
FR_DEVICE void softmax(row_tile<N> (&s)[M], row_tile<HD> (&o)[M],
                       running (&run)[M], float scale)
{
    constexpr float MOST = 8.0F;
    float factor[M][2];
    bool is_raised = false;
#pragma unroll
    for (int j = 0; j < 2 * M; j++) {
        const int m = j / 2, half = j % 2;
        const float before = run[m].max[half];
        float max = before;
#pragma unroll
        for (int n = 0; n < N / 8; n++)
            max = fmaxf(fmaxf(max, s[m].at[n][2 * half]),
                        s[m].at[n][2 * half + 1]);
        max = row_reduce(max, largest_of());
        if ((max - before) * scale <= MOST)
            max = before;
        else
            is_raised = true;
        factor[m][half] = fast_exp2((before - max) * scale);
        run[m].max[half] = max;
        run[m].sum[half] *= factor[m][half];
    }
    if (__ballot_sync(0xffffffffU, is_raised))
#pragma unroll
        for (int m = 0; m < M; m++)
#pragma unroll
            for (int i = 0; i < HD / 2; i++)
                o[m].at[i / 4][i % 4] *= factor[m][i % 4 / 2];
#pragma unroll
    for (int m = 0; m < M; m++) {
        const float max[2] = {run[m].max[0] * scale, run[m].max[1] * scale};
#pragma unroll
        for (int i = 0; i < N / 2; i++) {
            float &x = s[m].at[i / 4][i % 4];
            x = fast_exp2(x * scale - max[i % 4 / 2]);
            run[m].sum[i % 4 / 2] += x;
        }
    }
}

/* Blocks begin in the order of their numbers, heads first: those of the last
 * rows, which see most, before the others. */
FR_DEVICE int last_rows_first(int block_rows)
{
    return (int)(gridDim.y - 1 - blockIdx.y) * block_rows;
}

/* lse of the rows from row0 on; `factor` divides by their sums. */
template <int M, class S>
FR_DEVICE void end_softmax(const running (&run)[M], float (&factor)[M][2],
                           float *lse, int row0, const S &shape)
{
#pragma unroll
    for (int j = 0; j < 2 * M; j++) {
        const int m = j / 2, half = j % 2;
        const float sum = row_reduce(run[m].sum[half], sum_of());
        const int row = row0 + m * ROWS + row_of(2 * half);
        factor[m][half] = sum > 0.0F ? 1.0F / sum : 0.0F;
        if (threadIdx.x % 4 == 0 && row < shape.n_queries)
            lse[row] = run[m].max[half] * shape.scale + logf(sum);
    }
}

template <mma_kernel KERNEL, class T, class S, int HD>
__global__ __launch_bounds__(THREADS) void attend(attn_forward<T, S> at)
{
    constexpr mma_tiling BY = tiling_of<KERNEL, T, S, HD>();
    constexpr int M = BY.m, N = BY.n, BLOCK_ROWS = BY.block_rows();
    FR_SHARED(shared);
    const S &shape = at.shape;
    const int block0 = last_rows_first(BLOCK_ROWS);
    const int first = (int)threadIdx.x / 32 * BY.warp_rows();
    const int row0 = block0 + first;
    const int h = (int)blockIdx.x, b = (int)blockIdx.z;
    const int i_kv = h / shape.q_per_kv;
    T *q = (T *)shared;
    const attn_range range = keys_seen(shape, block0, BLOCK_ROWS);
    const attn_range mine = seen_by_warp<false>(shape, row0, BY.warp_rows());
    const kv_tiles<T, N, HD> tiles = {
        q + BLOCK_ROWS * stride_of<T, HD>, key_head(at.k, shape, i_kv),
        value_head(at.k, shape, i_kv), b, range.first};
    const int n_tiles = tiles_of<N>(range);
    const float scale = shape.scale * LOG2_E;
    left_rows<T, HD, M, BY.is_kept> q_rows;
    row_tile<HD> o[M];
    running run[M];
#pragma unroll
    for (int m = 0; m < M; m++)
        run[m] = {{LOWEST, LOWEST}, {0.0F, 0.0F}};
    fill_tile<false, BLOCK_ROWS, HD>(q, at.q + h * shape.head_dim,
                                     shape.q_stride, b, block0, shape);
    tiles.fill(0, shape);
    await_operands();
    q_rows.load(q, first);
    clear(o);
    for (int i = 0; i < n_tiles; i++) {
        const int key0 = tiles.key0(i);
        row_tile<N> s[M];
        step_tiles(tiles, i, n_tiles, shape);
        if (!has_rows(mine, key0, N))
            continue;
        clear(s);
        multiply_rows(s, q_rows, tiles.at(i, 0));
        if (is_masked(shape, row0, BY.warp_rows(), key0, N))
            mask<false>(s, shape, row0, key0);
        softmax(s, o, run, scale);
        if (is_dropped(shape)) /* the sums are those of all */
            drop<false>(s, shape, b, h, row0, key0);
        add_product(o, s, tiles.at(i, 1));
    }
    float factor[M][2];
    end_softmax(run, factor, at.lse + row_at(shape, b, h), row0, shape);
    store_rows<false>(at.o + h * shape.v_dim, o, shape.o_stride, b, row0,
                      factor, shape);
}

/* ---- gradient of q ------------------------------------------------------ */

/* lse (in powers of 2) and delta of the rows of a lane. */
template <int M, class T, class S>
FR_DEVICE void load_row_sums(float (&lse)[M][2], float (&delta)[M][2],
                             const attn_backward<T, S> &at, int64_t from,
                             int row0)
{
#pragma unroll
    for (int j = 0; j < 2 * M; j++) {
        const int row = row0 + j / 2 * ROWS + row_of(j % 2 * 2);
        const bool is_there = row < at.shape.n_queries;
        lse[j / 2][j % 2] = is_there ? at.lse[from + row] * LOG2_E : 0;
        delta[j / 2][j % 2] = is_there ? at.delta[from + row] : 0;
    }
}

/* ds: do v^T -> p (ds - delta), of the scores in `p`. */
template <int N, int M>
FR_DEVICE void q_score_grads(const row_tile<N> (&p)[M], row_tile<N> (&ds)[M],
                             const float (&lse)[M][2],
                             const float (&delta)[M][2], float scale)
{
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int i = 0; i < N / 2; i++) {
            float &x = ds[m].at[i / 4][i % 4];
            x = fast_exp2(p[m].at[i / 4][i % 4] * scale - lse[m][i % 4 / 2]) *
                (x - delta[m][i % 4 / 2]);
        }
}

template <int M> FR_DEVICE void fill_factor(float (&factor)[M][2], float x)
{
#pragma unroll
    for (int j = 0; j < 2 * M; j++)
        factor[j / 2][j % 2] = x;
}

template <mma_kernel KERNEL, class T, class S, int HD>
__global__ __launch_bounds__(THREADS) void attend_grad_q(attn_backward<T, S> at)
{
    constexpr mma_tiling BY = tiling_of<KERNEL, T, S, HD>();
    constexpr int M = BY.m, N = BY.n, BLOCK_ROWS = BY.block_rows();
    FR_SHARED(shared);
    const S &shape = at.shape;
    const int block0 = last_rows_first(BLOCK_ROWS);
    const int first = (int)threadIdx.x / 32 * BY.warp_rows();
    const int row0 = block0 + first;
    const int h = (int)blockIdx.x, b = (int)blockIdx.z;
    const int i_kv = h / shape.q_per_kv;
    T *q = (T *)shared, *d_o = q + BLOCK_ROWS * stride_of<T, HD>;
    const attn_range range = keys_seen(shape, block0, BLOCK_ROWS);
    const attn_range mine = seen_by_warp<false>(shape, row0, BY.warp_rows());
    const kv_tiles<T, BY.tile, HD> tiles = {
        d_o + BLOCK_ROWS * stride_of<T, HD>, key_head(at.k, shape, i_kv),
        value_head(at.k, shape, i_kv), b, range.first};
    const int n_tiles = tiles_of<BY.tile>(range);
    const float scale = shape.scale * LOG2_E;
    left_rows<T, HD, M, BY.is_kept> q_rows, d_o_rows;
    row_tile<HD> dq[M];
    float lse[M][2], delta[M][2], factor[M][2];
    load_row_sums(lse, delta, at, row_at(shape, b, h), row0);
    fill_tile<false, BLOCK_ROWS, HD>(q, at.q + h * shape.head_dim,
                                     shape.q_stride, b, block0, shape);
    fill_tile<false, BLOCK_ROWS, HD>(d_o, at.d_o + h * shape.head_dim,
                                     shape.o_stride, b, block0, shape);
    tiles.fill(0, shape);
    await_operands();
    q_rows.load(q, first);
    d_o_rows.load(d_o, first);
    clear(dq);
    for (int i = 0; i < n_tiles; i++) {
        step_tiles(tiles, i, n_tiles, shape);
#pragma unroll 1
        for (int from = 0; from < BY.tile; from += N) {
            const int key0 = tiles.key0(i) + from;
            const T *k = tiles.at(i, 0) + from * stride_of<T, HD>;
            row_tile<N> p[M], ds[M];
            if (!has_rows(mine, key0, N))
                continue;
            clear(p);
            multiply_rows(p, q_rows, k);
            clear(ds);
            multiply_rows(ds, d_o_rows,
                          tiles.at(i, 1) + from * stride_of<T, HD>);
            if (is_masked(shape, row0, BY.warp_rows(), key0, N))
                mask<false>(p, shape, row0, key0);
            if (is_dropped(shape))
                drop<false>(ds, shape, b, h, row0, key0);
            q_score_grads(p, ds, lse, delta, scale);
            add_product(dq, ds, k);
        }
    }
    fill_factor(factor, shape.scale);
    store_rows<false>(at.dq + h * shape.head_dim, dq, shape.q_stride, b, row0,
                      factor, shape);
}

/* ---- gradients of k and v ----------------------------------------------- */

/* Here rows of the scores are keys and columns queries: p and ds are the
 * transposed ones.  p: scores -> probabilities; ds: v do^T -> p (ds - delta).
 */
template <int N, int M>
FR_DEVICE void score_grads(row_tile<N> (&p)[M], row_tile<N> (&ds)[M],
                           const float *lse, const float *delta, float scale)
{
    struct alignas(8) two {
        float at[2];
    };
#pragma unroll
    for (int n = 0; n < N / 8; n++) {
        const two sums = *(const two *)(lse + col_of(n, 0));
        const two deltas = *(const two *)(delta + col_of(n, 0));
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const float sum = sums.at[i % 2] * LOG2_E;
#pragma unroll
            for (int m = 0; m < M; m++) {
                float &x = p[m].at[n][i], &dx = ds[m].at[n][i];
                x = fast_exp2(x * scale - sum);
                dx = x * (dx - deltas.at[i % 2]);
            }
        }
    }
}

template <mma_kernel KERNEL, class T, class S, int HD>
__global__
__launch_bounds__(THREADS) void attend_grad_kv(attn_backward<T, S> at)
{
    constexpr mma_tiling BY = tiling_of<KERNEL, T, S, HD>();
    constexpr int M = BY.m, N = BY.n, BLOCK_ROWS = BY.block_rows();
    FR_SHARED(shared);
    const S &shape = at.shape;
    /* The first keys are seen by most: they begin first. */
    const int block0 = (int)blockIdx.y * BLOCK_ROWS;
    const int first = (int)threadIdx.x / 32 * BY.warp_rows();
    const int key0 = block0 + first;
    const int i_kv = (int)blockIdx.x, b = (int)blockIdx.z;
    T *k = (T *)shared, *v = k + BLOCK_ROWS * stride_of<T, HD>;
    T *rest = v + BLOCK_ROWS * stride_of<T, HD>;
    const attn_range range = queries_seeing(shape, block0, BLOCK_ROWS);
    const attn_range mine = seen_by_warp<true>(shape, key0, BY.warp_rows());
    const query_tiles<T, S, BY.tile, HD> tiles = {
        rest, (float *)(rest + 4 * BY.tile * stride_of<T, HD>), at, b, range};
    const int n_tiles = tiles_of<BY.tile>(range) * shape.q_per_kv;
    query_place place = tiles.begin(i_kv * shape.q_per_kv);
    const float scale = shape.scale * LOG2_E;
    left_rows<T, HD, M, BY.is_kept> k_rows, v_rows;
    row_tile<HD> dk[M], dv[M];
    float factor[M][2];
    fill_tile<true, BLOCK_ROWS, HD>(k, key_head(at.k, shape, i_kv),
                                    shape.k_stride, b, block0, shape);
    fill_tile<true, BLOCK_ROWS, HD>(v, value_head(at.k, shape, i_kv),
                                    shape.k_stride, b, block0, shape);
    if (n_tiles > 0)
        tiles.fill(n_tiles, place, shape);
    await_operands();
    k_rows.load(k, first);
    v_rows.load(v, first);
    clear(dk);
    clear(dv);
    for (int i = n_tiles; i > 0; i--) {
        const query_place here = place;
        place = tiles.after(here);
        await_operands();
        if (i > 1)
            tiles.fill(i - 1, place, shape);
#pragma unroll 1
        for (int from = 0; from < BY.tile; from += N) {
            const int row0 = here.row0 + from;
            const T *q = tiles.at(i, 0) + from * stride_of<T, HD>;
            const T *d_o = tiles.at(i, 1) + from * stride_of<T, HD>;
            row_tile<N> p[M], ds[M];
            if (!has_rows(mine, row0, N))
                continue;
            /* Masked here, where no other scores take registers. */
            clear(p);
            multiply_rows(p, k_rows, q);
            if (is_masked(shape, row0, N, key0, BY.warp_rows()))
                mask<true>(p, shape, key0, row0);
            clear(ds);
            multiply_rows(ds, v_rows, d_o);
            if (is_dropped(shape))
                drop<true>(ds, shape, b, here.h, key0, row0);
            score_grads(p, ds, tiles.rows_at(i, 0) + from,
                        tiles.rows_at(i, 1) + from, scale);
            if (is_dropped(shape))
                drop<true>(p, shape, b, here.h, key0, row0);
            add_product(dv, p, d_o);
            add_product(dk, ds, q);
        }
    }
    fill_factor(factor, shape.scale);
    store_rows<true>(key_head(at.dk, shape, i_kv), dk, shape.k_stride, b, key0,
                     factor, shape);
    fill_factor(factor, 1.0F);
    store_rows<true>(value_head(at.dk, shape, i_kv), dv, shape.k_stride, b,
                     key0, factor, shape);
}

/* ---- host --------------------------------------------------------------- */

/* Four times what an H100 runs at once, two on each of its 132 SMs.  On an H200
 * backward took 11 % less with the smaller blocks where there were 512 of the
 * larger ones, 8 % more where there were 1600, 3072; between nothing was timed.
 */
constexpr uint64_t FEW_BLOCKS = 1056;

/* Blocks of heads, rows and sequences: heads come first, so that blocks that
 * run at the same time read the same few sequences' keys and are of like size.
 * `n_own` tiles of a block's rows and twice two of the other side's. */
template <class T, int HD>
launch_shape blocks_for(const mma_tiling &by, int n_rows, int n_heads,
                        int batch, int n_own, void *stream)
{
    const size_t n_tile_rows = (size_t)(n_own * by.block_rows() + 4 * by.tile);
    const size_t n_bytes = n_tile_rows * stride_of<T, HD> * sizeof(T) +
                           4 * (size_t)by.tile * sizeof(float);
    return {dim3((unsigned)n_heads, blocks_of(n_rows, by.block_rows()),
                 (unsigned)batch),
            (unsigned)THREADS, n_bytes, stream};
}

template <mma_kernel KERNEL, int HD, class T, class S>
launch_shape blocks_of_kernel(const attn_forward<T, S> &at, void *stream)
{
    const S &shape = at.shape;
    return blocks_for<T, HD>(tiling_of<KERNEL, T, S, HD>(), shape.n_queries,
                             shape.n_q, shape.batch, 1, stream);
}

template <mma_kernel KERNEL, int HD, class T, class S>
launch_shape blocks_of_kernel(const attn_backward<T, S> &at, void *stream)
{
    constexpr bool IS_KV = KERNEL == GRAD_KV || KERNEL == GRAD_KV_FEW;
    const S &shape = at.shape;
    return blocks_for<T, HD>(tiling_of<KERNEL, T, S, HD>(),
                             IS_KV ? shape.n_keys : shape.n_queries,
                             IS_KV ? shape.n_kv : shape.n_q, shape.batch, 2,
                             stream);
}

/* Is there a lean kernel that takes less? */
template <class T, class S, int HD>
constexpr bool HAS_LEAN = sizeof(T) == 2 && S::IS_PLAIN && HD > 64;

/* false: a block of this device has too little shared memory. */
template <int HD, class T, class S>
bool run(const attn_forward<T, S> &at, void *stream)
{
    const launch_shape blocks = blocks_of_kernel<FORWARD, HD>(at, stream);
    if (blocks.shared_bytes <= most_shared_bytes()) {
        start(blocks, attend<FORWARD, T, S, HD>, at);
        return true;
    }
    if constexpr (HAS_LEAN<T, S, HD>)
        start(blocks_of_kernel<FORWARD_LEAN, HD>(at, stream),
              attend<FORWARD_LEAN, T, S, HD>, at);
    return HAS_LEAN<T, S, HD>;
}

template <int HD, class T, class S>
void run_grad_kv(const attn_backward<T, S> &at, const launch_shape &many)
{
    constexpr mma_tiling BY = tiling_of<GRAD_KV, T, S, HD>();
    if constexpr (BY.m > 1) {
        const uint64_t n_blocks =
            (uint64_t)many.grid.x * many.grid.y * many.grid.z;
        if (n_blocks < FEW_BLOCKS)
            return start(blocks_of_kernel<GRAD_KV_FEW, HD>(at, many.stream),
                         attend_grad_kv<GRAD_KV_FEW, T, S, HD>, at);
    }
    start(many, attend_grad_kv<GRAD_KV, T, S, HD>, at);
}

template <int HD, class T, class S>
bool run(const attn_backward<T, S> &at, void *stream)
{
    const launch_shape q = blocks_of_kernel<GRAD_Q, HD>(at, stream);
    const launch_shape kv = blocks_of_kernel<GRAD_KV, HD>(at, stream);
    const bool has_room = q.shared_bytes <= most_shared_bytes();
    if (kv.shared_bytes > most_shared_bytes() ||
        (!has_room && !HAS_LEAN<T, S, HD>))
        return false;
    if (has_room)
        start(q, attend_grad_q<GRAD_Q, T, S, HD>, at);
    else if constexpr (HAS_LEAN<T, S, HD>)
        start(blocks_of_kernel<GRAD_Q_LEAN, HD>(at, stream),
              attend_grad_q<GRAD_Q_LEAN, T, S, HD>, at);
    run_grad_kv<HD>(at, kv);
    return true;
}

/* Rows of every head must begin on 16 bytes. */
template <class T, class S> bool fits(const attn_forward<T, S> &at)
{
    return is_aligned(at.q) && is_aligned(at.k) && is_aligned(at.o);
}

template <class T, class S> bool fits(const attn_backward<T, S> &at)
{
    return is_aligned(at.q) && is_aligned(at.k) && is_aligned(at.d_o) &&
           is_aligned(at.dq) && is_aligned(at.dk);
}

template <class A> bool run_if(const A &at, void *stream)
{
    const int head_dim = at.shape.head_dim;
    if (head_dim % 8 != 0 || head_dim > 128 || at.shape.v_dim != head_dim ||
        !fits(at))
        return false;
    if (head_dim <= 64)
        return run<64>(at, stream);
    if (head_dim <= 96 && A::IS_PLAIN)
        return run<A::IS_PLAIN ? 96 : 128>(at, stream);
    return run<128>(at, stream);
}

} // namespace

#define FR_ATTENTION_MMA(T, IS_PLAIN)                                          \
    bool attention_mma_forward(                                                \
        const attn_forward<T, attn_shape<IS_PLAIN>> &at, void *stream)         \
    {                                                                          \
        return run_if(at, stream);                                             \
    }                                                                          \
    bool attention_mma_backward(                                               \
        const attn_backward<T, attn_shape<IS_PLAIN>> &at, void *stream)        \
    {                                                                          \
        return run_if(at, stream);                                             \
    }
FR_ATTENTION_MMA(bf16, true)
FR_ATTENTION_MMA(bf16, false)
FR_ATTENTION_MMA(float, true)
FR_ATTENTION_MMA(float, false)
