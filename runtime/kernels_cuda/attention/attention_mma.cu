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

/* Tiles of k and v of one kv head, two of each. */
template <class T, int N, int HD, int THREADS> struct kv_tiles {
    T *tiles; /* [2][k, v][N, HD + 8] */
    const T *k, *v;

    FR_DEVICE T *at(int i, int i_kv) const
    {
        return tiles + (i % 2 * 2 + i_kv) * N * stride_of<T, HD>;
    }

    FR_DEVICE void fill(int i, const attn_shape &shape) const
    {
        fill_tile<N, HD, THREADS>(at(i, 0), k, shape.qkv_stride, i * N, shape);
        fill_tile<N, HD, THREADS>(at(i, 1), v, shape.qkv_stride, i * N, shape);
    }
};

/* The begin of a step: tile i is there, the next one is under way. */
template <class TILES>
FR_DEVICE void step_tiles(const TILES &tiles, int i, int n,
                          const attn_shape &shape)
{
    if (i + 1 < n)
        tiles.fill(i + 1, shape);
    copy_commit();
    copy_wait<1>();
    __syncthreads();
}

template <class T, int HD, int WARPS, int N>
__global__ __launch_bounds__(WARPS * 32) void attend(attn_forward<T> at)
{
    constexpr int THREADS = WARPS * 32, BLOCK_ROWS = WARPS * ROWS;
    FR_SHARED(shared);
    const attn_shape &shape = at.shape;
    /* The last rows see most: they begin first. */
    const int block0 = (int)(gridDim.x - 1 - blockIdx.x) * BLOCK_ROWS;
    const int first = (int)threadIdx.x / 32 * ROWS, row0 = block0 + first;
    const int h = (int)blockIdx.y, b = (int)blockIdx.z;
    const int kv = shape.n_q + h / shape.q_per_kv;
    T *q = (T *)shared;
    const kv_tiles<T, N, HD, THREADS> tiles = {
        q + BLOCK_ROWS * stride_of<T, HD>, head_at(at.qkv, shape, b, kv),
        head_at(at.qkv, shape, b, kv + shape.n_kv)};
    const int n_tiles = (columns_seen(shape, block0, BLOCK_ROWS) + N - 1) / N;
    const float scale = shape.scale * LOG2_E;
    left_rows<T, HD> q_rows;
    row_tile<HD> o;
    running run = {{-3e38F, -3e38F}, {0.0F, 0.0F}};
    fill_tile<BLOCK_ROWS, HD, THREADS>(q, head_at(at.qkv, shape, b, h),
                                       shape.qkv_stride, block0, shape);
    tiles.fill(0, shape);
    copy_commit();
    o.clear();
    for (int i = 0; i < n_tiles; i++) {
        row_tile<N> s;
        step_tiles(tiles, i, n_tiles, shape);
        if (i == 0 || sizeof(T) * HD > 256)
            q_rows.load(q, first);
        multiply_rows<N, HD>(s, q_rows, tiles.at(i, 0));
        if (is_masked(shape, row0, i * N, N))
            mask(s, shape, row0, i * N);
        softmax(s, o, run, scale);
        add_product<N, HD>(o, s, tiles.at(i, 1));
        __syncthreads();
    }
    float factor[2];
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const float sum = row_reduce(run.sum[half], sum_of());
        const int row = row0 + row_of(2 * half);
        factor[half] = 1.0F / sum;
        if (threadIdx.x % 4 == 0 && row < shape.seq)
            at.lse[row_at(shape, b, h) + row] =
                run.max[half] * shape.scale + logf(sum);
    }
    store_rows<HD>(output_at(at.o, shape, b, h), o, shape.o_stride, row0,
                   factor, shape);
}

/* ---- gradient of q ------------------------------------------------------ */

template <class T, int HD, int WARPS, int N>
__global__ __launch_bounds__(N_WARPS *
                             32) void attend_grad_q(attn_backward<T> at)
{
    constexpr int THREADS = WARPS * 32, BLOCK_ROWS = WARPS * ROWS;
    FR_SHARED(shared);
    const attn_shape &shape = at.shape;
    const int block0 = (int)(gridDim.x - 1 - blockIdx.x) * BLOCK_ROWS;
    const int first = (int)threadIdx.x / 32 * ROWS, row0 = block0 + first;
    const int h = (int)blockIdx.y, b = (int)blockIdx.z;
    const int kv = shape.n_q + h / shape.q_per_kv;
    T *q = (T *)shared, *d_o = q + BLOCK_ROWS * stride_of<T, HD>;
    const kv_tiles<T, N, HD, THREADS> tiles = {
        d_o + BLOCK_ROWS * stride_of<T, HD>, head_at(at.qkv, shape, b, kv),
        head_at(at.qkv, shape, b, kv + shape.n_kv)};
    const int n_tiles = (columns_seen(shape, block0, BLOCK_ROWS) + N - 1) / N;
    const float scale = shape.scale * LOG2_E;
    left_rows<T, HD> q_rows, d_o_rows;
    row_tile<HD> dq;
    float lse[2], delta[2];
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int row = row0 + row_of(2 * half);
        const bool is_there = row < shape.seq;
        lse[half] = is_there ? at.lse[row_at(shape, b, h) + row] * LOG2_E : 0;
        delta[half] = is_there ? at.delta[row_at(shape, b, h) + row] : 0;
    }
    fill_tile<BLOCK_ROWS, HD, THREADS>(q, head_at(at.qkv, shape, b, h),
                                       shape.qkv_stride, block0, shape);
    fill_tile<BLOCK_ROWS, HD, THREADS>(d_o, output_at(at.d_o, shape, b, h),
                                       shape.o_stride, block0, shape);
    tiles.fill(0, shape);
    copy_commit();
    dq.clear();
    for (int i = 0; i < n_tiles; i++) {
        row_tile<N> p, ds;
        step_tiles(tiles, i, n_tiles, shape);
        /* Large heads leave no registers to keep both. */
        if (i == 0 || sizeof(T) * HD > 256)
            q_rows.load(q, first);
        multiply_rows<N, HD>(p, q_rows, tiles.at(i, 0));
        if (is_masked(shape, row0, i * N, N))
            mask(p, shape, row0, i * N);
        if (i == 0 || sizeof(T) * HD > 256)
            d_o_rows.load(d_o, first);
        multiply_rows<N, HD>(ds, d_o_rows, tiles.at(i, 1));
#pragma unroll
        for (int n = 0; n < N / 8; n++)
#pragma unroll
            for (int j = 0; j < 4; j++)
                ds.at[n][j] = fast_exp2(p.at[n][j] * scale - lse[j / 2]) *
                              (ds.at[n][j] - delta[j / 2]);
        add_product<N, HD>(dq, ds, tiles.at(i, 0));
        __syncthreads();
    }
    const float factor[2] = {shape.scale, shape.scale};
    store_rows<HD>(head_at(at.dqkv, shape, b, h), dq, shape.qkv_stride, row0,
                   factor, shape);
}

/* ---- gradients of k and v ----------------------------------------------- */

/* Tiles of q and do of the query heads of a group, one after the other, with
 * lse and delta of their rows. */
template <class T, int N, int HD, int THREADS> struct query_tiles {
    T *tiles;    /* [2][q, do][N, HD + 8] */
    float *rows; /* [2][lse, delta][N] */
    const attn_backward<T> &of;
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

    FR_DEVICE void fill(int i, const attn_shape &shape) const
    {
        const int h = i_kv * shape.q_per_kv + i / n_per_head;
        fill_tile<N, HD, THREADS>(at(i, 0), head_at(of.qkv, shape, b, h),
                                  shape.qkv_stride, row0(i), shape);
        fill_tile<N, HD, THREADS>(at(i, 1), output_at(of.d_o, shape, b, h),
                                  shape.o_stride, row0(i), shape);
        for (int r = threadIdx.x; r < N; r += THREADS) {
            const int row = row0(i) + r;
            const bool is_there = row < shape.seq;
            const int64_t from = row_at(shape, b, h) + row;
            rows_at(i, 0)[r] = is_there ? of.lse[from] * LOG2_E : 0.0F;
            rows_at(i, 1)[r] = is_there ? of.delta[from] : 0.0F;
        }
    }
};

/* Here rows of the scores are keys and columns queries: p and ds are the
 * transposed ones.  Scores of queries that are none or do not see the key. */
template <int N>
FR_DEVICE void mask_queries(row_tile<N> &p, const attn_shape &shape, int key0,
                            int query0)
{
#pragma unroll
    for (int n = 0; n < N / 8; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int key = key0 + row_of(i), query = query0 + col_of(n, i);
            if (query >= shape.seq || (shape.is_causal && key > query))
                p.at[n][i] = -INFINITY;
        }
}

/* p: scores -> probabilities; ds: v do^T -> p (ds - delta). */
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

template <class T, int HD, int WARPS, int N>
__global__ __launch_bounds__(N_WARPS *
                             32) void attend_grad_kv(attn_backward<T> at)
{
    constexpr int THREADS = WARPS * 32, BLOCK_ROWS = WARPS * ROWS;
    FR_SHARED(shared);
    const attn_shape &shape = at.shape;
    const int block0 = (int)blockIdx.x * BLOCK_ROWS;
    const int first = (int)threadIdx.x / 32 * ROWS, key0 = block0 + first;
    const int i_kv = (int)blockIdx.y, b = (int)blockIdx.z;
    const int kv = shape.n_q + i_kv;
    T *k = (T *)shared, *v = k + BLOCK_ROWS * stride_of<T, HD>;
    T *rest = v + BLOCK_ROWS * stride_of<T, HD>;
    const int first_tile = shape.is_causal ? block0 / N : 0;
    const query_tiles<T, N, HD, THREADS> tiles = {
        rest,       (float *)(rest + 4 * N * stride_of<T, HD>), at, i_kv, b,
        first_tile, (shape.seq + N - 1) / N - first_tile};
    const int n_tiles = tiles.n_per_head * shape.q_per_kv;
    const float scale = shape.scale * LOG2_E;
    left_rows<T, HD> k_rows, v_rows;
    row_tile<HD> dk, dv;
    fill_tile<BLOCK_ROWS, HD, THREADS>(k, head_at(at.qkv, shape, b, kv),
                                       shape.qkv_stride, block0, shape);
    fill_tile<BLOCK_ROWS, HD, THREADS>(
        v, head_at(at.qkv, shape, b, kv + shape.n_kv), shape.qkv_stride, block0,
        shape);
    tiles.fill(0, shape);
    copy_commit();
    dk.clear();
    dv.clear();
    for (int i = 0; i < n_tiles; i++) {
        row_tile<N> p, ds;
        step_tiles(tiles, i, n_tiles, shape);
        if (i == 0 || sizeof(T) * HD > 128)
            k_rows.load(k, first);
        multiply_rows<N, HD>(p, k_rows, tiles.at(i, 0));
        if (tiles.row0(i) + N > shape.seq ||
            (shape.is_causal && tiles.row0(i) < key0 + ROWS))
            mask_queries(p, shape, key0, tiles.row0(i));
        if (i == 0 || sizeof(T) * HD > 128)
            v_rows.load(v, first);
        multiply_rows<N, HD>(ds, v_rows, tiles.at(i, 1));
        score_grads(p, ds, tiles.rows_at(i, 0), tiles.rows_at(i, 1), scale);
        add_product<N, HD>(dv, p, tiles.at(i, 1));
        add_product<N, HD>(dk, ds, tiles.at(i, 0));
        __syncthreads();
    }
    const float k_factor[2] = {shape.scale, shape.scale};
    const float v_factor[2] = {1.0F, 1.0F};
    store_rows<HD>(head_at(at.dqkv, shape, b, kv), dk, shape.qkv_stride, key0,
                   k_factor, shape);
    store_rows<HD>(head_at(at.dqkv, shape, b, kv + shape.n_kv), dv,
                   shape.qkv_stride, key0, v_factor, shape);
}

/* ---- host --------------------------------------------------------------- */

/* Blocks of rows, heads and sequences; tiles of `n_own` and twice two of
 * `n_other` rows. */
template <class T, int HD>
launch_shape blocks_for(const attn_shape &shape, int n_heads, int n_own,
                        int n_other, void *stream)
{
    size_t n_rows = (size_t)(n_own * N_WARPS * ROWS + 4 * n_other);
    size_t n_bytes = n_rows * stride_of<T, HD> * sizeof(T) +
                     4 * (size_t)n_other * sizeof(float);
    return {dim3(blocks_of(shape.seq, N_WARPS * ROWS), (unsigned)n_heads,
                 (unsigned)shape.batch),
            (unsigned)N_WARPS * 32, n_bytes, stream};
}

/* Rows of the other side's tiles: what registers and shared memory hold. */
template <class T, int HD>
constexpr int OTHER_ROWS = sizeof(T) * HD > 128 ? 32 : 64;

template <class T, int HD>
void run_forward(const attn_forward<T> &at, void *stream)
{
    constexpr int N = sizeof(T) > 2 ? 32 : 64;
    start(blocks_for<T, HD>(at.shape, at.shape.n_q, 1, N, stream),
          attend<T, HD, N_WARPS, N>, at);
}

template <class T, int HD>
void run_backward(const attn_backward<T> &at, void *stream)
{
    constexpr int N = OTHER_ROWS<T, HD>;
    start(blocks_for<T, HD>(at.shape, at.shape.n_q, 2, N, stream),
          attend_grad_q<T, HD, N_WARPS, N>, at);
    start(blocks_for<T, HD>(at.shape, at.shape.n_kv, 2, N, stream),
          attend_grad_kv<T, HD, N_WARPS, N>, at);
}

/* Rows of every head must begin on 16 bytes. */
bool fits(const attn_shape &shape, const void *qkv, const void *o)
{
    return shape.head_dim % 8 == 0 && shape.head_dim <= 128 &&
           is_aligned(qkv) && is_aligned(o);
}

template <class T> bool forward(const attn_forward<T> &at, void *stream)
{
    if (!fits(at.shape, at.qkv, at.o))
        return false;
    if (at.shape.head_dim <= 64)
        run_forward<T, 64>(at, stream);
    else if (at.shape.head_dim <= 96)
        run_forward<T, 96>(at, stream);
    else
        run_forward<T, 128>(at, stream);
    return true;
}

template <class T> bool backward(const attn_backward<T> &at, void *stream)
{
    if (!fits(at.shape, at.qkv, at.d_o) || !is_aligned(at.dqkv))
        return false;
    if (at.shape.head_dim <= 64)
        run_backward<T, 64>(at, stream);
    else if (at.shape.head_dim <= 96)
        run_backward<T, 96>(at, stream);
    else
        run_backward<T, 128>(at, stream);
    return true;
}

} // namespace

bool attention_mma_forward(const attn_forward<bf16> &at, void *stream)
{
    return forward(at, stream);
}

bool attention_mma_forward(const attn_forward<float> &at, void *stream)
{
    return forward(at, stream);
}

bool attention_mma_backward(const attn_backward<bf16> &at, void *stream)
{
    return backward(at, stream);
}

bool attention_mma_backward(const attn_backward<float> &at, void *stream)
{
    return backward(at, stream);
}
