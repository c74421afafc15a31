/*
 * attention_mma.cu: attention by tensor cores, in bf16 and tf32, for heads of
 * up to 128 whose size is a multiple of 8; attention.cu says what is computed
 * and why backward is two kernels.
 *
 * A warp has 16 rows of scores, which stay in its registers.  Tiles of the
 * other side lie in shared memory, two of each, of which one is filled
 * (cp.async) while the other is read (ldmatrix).  Heads between the sizes of
 * the templates are filled up with zeros.
 *
 * Products per pair of query and key and element of the head: forward 2,
 * backward 7 (5 of them the model's).  Bytes moved: q, k, v, o (and their
 * gradients) once; k and v again per tile of queries from the second cache.
 * Bound by the tensor cores (mma.sync, which does not reach all of Hopper's
 * peak: wgmma does).
 */
#include "runtime/kernels_cuda/attention/attention_tiles.cuh"

namespace
{

constexpr int N_WARPS = 4; /* of a block */

/* ---- forward ------------------------------------------------------------ */

/* Maximum and sum so far of a lane's two rows, in powers of 2. */
struct running {
    float max[2], sum[2];
};

/* s -> exp(s - max); the output so far is scaled to the new maximum. */
template <int N, int HD>
FR_DEVICE void softmax(row_tile<N> &s, row_tile<HD> &o, running &run,
                       float scale)
{
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float max = run.max[half];
#pragma unroll
        for (int n = 0; n < N / 8; n++)
            max = max_of()(max_of()(max, s.at[n][2 * half]),
                           s.at[n][2 * half + 1]);
        max = row_reduce(max, max_of());
        const float factor = fast_exp2((run.max[half] - max) * scale);
        float sum = 0;
#pragma unroll
        for (int n = 0; n < N / 8; n++)
#pragma unroll
            for (int i = 2 * half; i < 2 * half + 2; i++) {
                s.at[n][i] = fast_exp2(s.at[n][i] * scale - max * scale);
                sum += s.at[n][i];
            }
        run.max[half] = max;
        run.sum[half] = run.sum[half] * factor + sum;
#pragma unroll
        for (int n = 0; n < HD / 8; n++) {
            o.at[n][2 * half] *= factor;
            o.at[n][2 * half + 1] *= factor;
        }
    }
}

/* Tiles of k and v of one kv head, two of each, from the tile that has key
 * `first0` on. */
template <class T, int N, int HD, int THREADS> struct kv_tiles {
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
        fill_tile<true, N, HD, THREADS>(at(i, 0), k, shape.k_stride, b, key0(i),
                                        shape);
        fill_tile<true, N, HD, THREADS>(at(i, 1), v, shape.k_stride, b, key0(i),
                                        shape);
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

/* The begin of a step: tile i is there, the next one is under way. */
template <class TILES, class S>
FR_DEVICE void step_tiles(const TILES &tiles, int i, int n, const S &shape)
{
    if (i + 1 < n)
        tiles.fill(i + 1, shape);
    copy_commit();
    copy_wait<1>();
    __syncthreads();
}

template <class T, class S, int HD, int WARPS, int N>
__global__ __launch_bounds__(WARPS * 32) void attend(attn_forward<T, S> at)
{
    constexpr int THREADS = WARPS * 32, BLOCK_ROWS = WARPS * ROWS;
    FR_SHARED(shared);
    const S &shape = at.shape;
    /* The last rows see most: they begin first. */
    const int block0 = (int)(gridDim.x - 1 - blockIdx.x) * BLOCK_ROWS;
    const int first = (int)threadIdx.x / 32 * ROWS, row0 = block0 + first;
    const int h = (int)blockIdx.y, b = (int)blockIdx.z;
    const int i_kv = h / shape.q_per_kv;
    T *q = (T *)shared;
    const attn_range range = keys_seen(shape, block0, BLOCK_ROWS);
    const kv_tiles<T, N, HD, THREADS> tiles = {
        q + BLOCK_ROWS * stride_of<T, HD>, key_head(at.k, shape, i_kv),
        value_head(at.k, shape, i_kv), b, range.first};
    const int n_tiles = tiles_of<N>(range);
    const float scale = shape.scale * LOG2_E;
    left_rows<T, HD> q_rows;
    row_tile<HD> o;
    running run = {{-3e38F, -3e38F}, {0.0F, 0.0F}};
    fill_tile<false, BLOCK_ROWS, HD, THREADS>(q, at.q + h * shape.head_dim,
                                              shape.q_stride, b, block0, shape);
    tiles.fill(0, shape);
    copy_commit();
    o.clear();
    for (int i = 0; i < n_tiles; i++) {
        row_tile<N> s;
        step_tiles(tiles, i, n_tiles, shape);
        if (i == 0 || sizeof(T) * HD > 256)
            q_rows.load(q, first);
        s.clear();
        multiply_rows<N, HD>(s, q_rows, tiles.at(i, 0));
        if (is_masked(shape, row0, ROWS, tiles.key0(i), N))
            mask<false>(s, shape, row0, tiles.key0(i));
        softmax(s, o, run, scale);
        if (is_dropped(shape)) /* the sums are those of all */
            drop<false>(s, shape, b, h, row0, tiles.key0(i));
        add_product<N, HD>(o, s, tiles.at(i, 1));
        __syncthreads();
    }
    copy_wait<0>(); /* of a block that sees none */
    float factor[2];
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const float sum = row_reduce(run.sum[half], sum_of());
        const int row = row0 + row_of(2 * half);
        factor[half] = sum > 0.0F ? 1.0F / sum : 0.0F;
        if (threadIdx.x % 4 == 0 && row < shape.n_queries)
            at.lse[row_at(shape, b, h) + row] =
                run.max[half] * shape.scale + logf(sum);
    }
    store_rows<false, HD>(at.o + h * shape.v_dim, o, shape.o_stride, b, row0,
                          factor, shape);
}

/* ---- gradient of q ------------------------------------------------------ */

template <class T, class S, int HD, int WARPS, int N>
__global__ __launch_bounds__(N_WARPS *
                             32) void attend_grad_q(attn_backward<T, S> at)
{
    constexpr int THREADS = WARPS * 32, BLOCK_ROWS = WARPS * ROWS;
    FR_SHARED(shared);
    const S &shape = at.shape;
    const int block0 = (int)(gridDim.x - 1 - blockIdx.x) * BLOCK_ROWS;
    const int first = (int)threadIdx.x / 32 * ROWS, row0 = block0 + first;
    const int h = (int)blockIdx.y, b = (int)blockIdx.z;
    const int i_kv = h / shape.q_per_kv;
    T *q = (T *)shared, *d_o = q + BLOCK_ROWS * stride_of<T, HD>;
    const attn_range range = keys_seen(shape, block0, BLOCK_ROWS);
    const kv_tiles<T, N, HD, THREADS> tiles = {
        d_o + BLOCK_ROWS * stride_of<T, HD>, key_head(at.k, shape, i_kv),
        value_head(at.k, shape, i_kv), b, range.first};
    const int n_tiles = tiles_of<N>(range);
    const float scale = shape.scale * LOG2_E;
    left_rows<T, HD> q_rows, d_o_rows;
    row_tile<HD> dq;
    float lse[2], delta[2];
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int row = row0 + row_of(2 * half);
        const bool is_there = row < shape.n_queries;
        lse[half] = is_there ? at.lse[row_at(shape, b, h) + row] * LOG2_E : 0;
        delta[half] = is_there ? at.delta[row_at(shape, b, h) + row] : 0;
    }
    fill_tile<false, BLOCK_ROWS, HD, THREADS>(q, at.q + h * shape.head_dim,
                                              shape.q_stride, b, block0, shape);
    fill_tile<false, BLOCK_ROWS, HD, THREADS>(d_o, at.d_o + h * shape.head_dim,
                                              shape.o_stride, b, block0, shape);
    tiles.fill(0, shape);
    copy_commit();
    dq.clear();
    for (int i = 0; i < n_tiles; i++) {
        row_tile<N> p, ds;
        step_tiles(tiles, i, n_tiles, shape);
        /* Large heads leave no registers to keep both. */
        if (i == 0 || sizeof(T) * HD > 256)
            q_rows.load(q, first);
        p.clear();
        multiply_rows<N, HD>(p, q_rows, tiles.at(i, 0));
        if (is_masked(shape, row0, ROWS, tiles.key0(i), N))
            mask<false>(p, shape, row0, tiles.key0(i));
        if (i == 0 || sizeof(T) * HD > 256)
            d_o_rows.load(d_o, first);
        ds.clear();
        multiply_rows<N, HD>(ds, d_o_rows, tiles.at(i, 1));
        if (is_dropped(shape))
            drop<false>(ds, shape, b, h, row0, tiles.key0(i));
#pragma unroll
        for (int n = 0; n < N / 8; n++)
#pragma unroll
            for (int j = 0; j < 4; j++)
                ds.at[n][j] = fast_exp2(p.at[n][j] * scale - lse[j / 2]) *
                              (ds.at[n][j] - delta[j / 2]);
        add_product<N, HD>(dq, ds, tiles.at(i, 0));
        __syncthreads();
    }
    copy_wait<0>();
    const float factor[2] = {shape.scale, shape.scale};
    store_rows<false, HD>(at.dq + h * shape.head_dim, dq, shape.q_stride, b,
                          row0, factor, shape);
}

/* ---- gradients of k and v ----------------------------------------------- */

/* Tiles of q and do of the query heads of a group, one after the other, with
 * lse and delta of their rows. */
template <class T, class S, int N, int HD, int THREADS> struct query_tiles {
    T *tiles;    /* [2][q, do][N, HD + 8] */
    float *rows; /* [2][lse, delta][N] */
    const attn_backward<T, S> &of;
    int i_kv, b;
    int first, n_per_head; /* tile; tiles of a head from there */

    FR_DEVICE T *at(int i, int i_do) const
    {
        return tiles + (i % 2 * 2 + i_do) * N * stride_of<T, HD>;
    }

    FR_DEVICE float *rows_at(int i, int i_delta) const
    {
        return rows + (i % 2 * 2 + i_delta) * N;
    }

    FR_DEVICE int row0(int i) const
    {
        return (first + i % n_per_head) * N;
    }

    FR_DEVICE int head(int i) const
    {
        return i_kv * of.shape.q_per_kv + i / n_per_head;
    }

    FR_DEVICE void fill(int i, const S &shape) const
    {
        const int h = head(i);
        fill_tile<false, N, HD, THREADS>(at(i, 0), of.q + h * shape.head_dim,
                                         shape.q_stride, b, row0(i), shape);
        fill_tile<false, N, HD, THREADS>(at(i, 1), of.d_o + h * shape.head_dim,
                                         shape.o_stride, b, row0(i), shape);
        for (int r = threadIdx.x; r < N; r += THREADS) {
            const int row = row0(i) + r;
            const bool is_there = row < shape.n_queries;
            const int64_t from = row_at(shape, b, h) + row;
            rows_at(i, 0)[r] = is_there ? of.lse[from] * LOG2_E : 0.0F;
            rows_at(i, 1)[r] = is_there ? of.delta[from] : 0.0F;
        }
    }
};

/* Here rows of the scores are keys and columns queries: p and ds are the
 * transposed ones.  p: scores -> probabilities; ds: v do^T -> p (ds - delta).
 */
template <int N>
FR_DEVICE void score_grads(row_tile<N> &p, row_tile<N> &ds, const float *lse,
                           const float *delta, float scale)
{
#pragma unroll
    for (int n = 0; n < N / 8; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int col = col_of(n, i);
            p.at[n][i] = fast_exp2(p.at[n][i] * scale - lse[col]);
            ds.at[n][i] = p.at[n][i] * (ds.at[n][i] - delta[col]);
        }
}

template <class T, class S, int HD, int WARPS, int N>
__global__ __launch_bounds__(N_WARPS *
                             32) void attend_grad_kv(attn_backward<T, S> at)
{
    constexpr int THREADS = WARPS * 32, BLOCK_ROWS = WARPS * ROWS;
    FR_SHARED(shared);
    const S &shape = at.shape;
    const int block0 = (int)blockIdx.x * BLOCK_ROWS;
    const int first = (int)threadIdx.x / 32 * ROWS, key0 = block0 + first;
    const int i_kv = (int)blockIdx.y, b = (int)blockIdx.z;
    T *k = (T *)shared, *v = k + BLOCK_ROWS * stride_of<T, HD>;
    T *rest = v + BLOCK_ROWS * stride_of<T, HD>;
    const attn_range range = queries_seeing(shape, block0, BLOCK_ROWS);
    const query_tiles<T, S, N, HD, THREADS> tiles = {
        rest,
        (float *)(rest + 4 * N * stride_of<T, HD>),
        at,
        i_kv,
        b,
        range.first / N,
        tiles_of<N>(range)};
    const int n_tiles = tiles.n_per_head * shape.q_per_kv;
    const float scale = shape.scale * LOG2_E;
    left_rows<T, HD> k_rows, v_rows;
    row_tile<HD> dk, dv;
    fill_tile<true, BLOCK_ROWS, HD, THREADS>(k, key_head(at.k, shape, i_kv),
                                             shape.k_stride, b, block0, shape);
    fill_tile<true, BLOCK_ROWS, HD, THREADS>(v, value_head(at.k, shape, i_kv),
                                             shape.k_stride, b, block0, shape);
    if (n_tiles > 0)
        tiles.fill(0, shape);
    copy_commit();
    dk.clear();
    dv.clear();
    for (int i = 0; i < n_tiles; i++) {
        row_tile<N> p, ds;
        step_tiles(tiles, i, n_tiles, shape);
        if (i == 0 || sizeof(T) * HD > 128)
            k_rows.load(k, first);
        p.clear();
        multiply_rows<N, HD>(p, k_rows, tiles.at(i, 0));
        if (is_masked(shape, tiles.row0(i), N, key0, ROWS))
            mask<true>(p, shape, key0, tiles.row0(i));
        if (i == 0 || sizeof(T) * HD > 128)
            v_rows.load(v, first);
        ds.clear();
        multiply_rows<N, HD>(ds, v_rows, tiles.at(i, 1));
        if (is_dropped(shape))
            drop<true>(ds, shape, b, tiles.head(i), key0, tiles.row0(i));
        score_grads(p, ds, tiles.rows_at(i, 0), tiles.rows_at(i, 1), scale);
        if (is_dropped(shape))
            drop<true>(p, shape, b, tiles.head(i), key0, tiles.row0(i));
        add_product<N, HD>(dv, p, tiles.at(i, 1));
        add_product<N, HD>(dk, ds, tiles.at(i, 0));
        __syncthreads();
    }
    copy_wait<0>();
    const float k_factor[2] = {shape.scale, shape.scale};
    const float v_factor[2] = {1.0F, 1.0F};
    store_rows<true, HD>(key_head(at.dk, shape, i_kv), dk, shape.k_stride, b,
                         key0, k_factor, shape);
    store_rows<true, HD>(value_head(at.dk, shape, i_kv), dv, shape.k_stride, b,
                         key0, v_factor, shape);
}

/* ---- host --------------------------------------------------------------- */

/* Blocks of rows, heads and sequences; tiles of `n_own` and twice two of
 * `n_other` rows. */
template <class T, int HD>
launch_shape blocks_for(int n_rows, int n_heads, int batch, int n_own,
                        int n_other)
{
    size_t n_tile_rows = (size_t)(n_own * N_WARPS * ROWS + 4 * n_other);
    size_t n_bytes = n_tile_rows * stride_of<T, HD> * sizeof(T) +
                     4 * (size_t)n_other * sizeof(float);
    return {dim3(blocks_of(n_rows, N_WARPS * ROWS), (unsigned)n_heads,
                 (unsigned)batch),
            (unsigned)N_WARPS * 32, n_bytes, nullptr};
}

/* Rows of the other side's tiles: what registers and shared memory hold. */
template <class T, int HD>
constexpr int OTHER_ROWS = sizeof(T) * HD > 128 ? 32 : 64;

template <int HD, class T, class S>
void run(const attn_forward<T, S> &at, void *stream)
{
    constexpr int N = sizeof(T) > 2 ? 32 : 64;
    const S &shape = at.shape;
    launch_shape blocks =
        blocks_for<T, HD>(shape.n_queries, shape.n_q, shape.batch, 1, N);
    blocks.stream = stream;
    start(blocks, attend<T, S, HD, N_WARPS, N>, at);
}

template <int HD, class T, class S>
void run(const attn_backward<T, S> &at, void *stream)
{
    constexpr int N = OTHER_ROWS<T, HD>;
    const S &shape = at.shape;
    launch_shape blocks =
        blocks_for<T, HD>(shape.n_queries, shape.n_q, shape.batch, 2, N);
    blocks.stream = stream;
    start(blocks, attend_grad_q<T, S, HD, N_WARPS, N>, at);
    blocks = blocks_for<T, HD>(shape.n_keys, shape.n_kv, shape.batch, 2, N);
    blocks.stream = stream;
    start(blocks, attend_grad_kv<T, S, HD, N_WARPS, N>, at);
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
        run<64>(at, stream);
    else if (head_dim <= 96 && A::IS_PLAIN)
        run<A::IS_PLAIN ? 96 : 128>(at, stream);
    else
        run<128>(at, stream);
    return true;
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
