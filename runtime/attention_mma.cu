/*
 * attention_mma.cu: attention in bf16 by tensor cores, for heads of up to 128
 * whose size is a multiple of 8; attention.cu says what is computed and why
 * backward is two kernels.
 *
 * A warp has 16 rows of scores.  They stay in its registers: what a product
 * leaves there is, packed to 16 bits, the left operand of the next.  Tiles of
 * the other side lie in shared memory, two of each, of which one is filled
 * (cp.async) while the other is read (ldmatrix; rows are 16 bytes longer than
 * their data, so eight rows lie in eight different banks of 16 bytes).  Heads
 * between the sizes of the templates are filled up with zeros.
 *
 * Products per pair of query and key and element of the head: forward 2,
 * backward 7 (5 of them the model's).  Bytes moved: q, k, v, o (and their
 * gradients) once; k and v again per tile of queries from the second cache.
 * Bound by the tensor cores (mma.sync reaches about 60 % of Hopper's peak).
 */
#include "runtime/attention.cuh"
#include "runtime/ptx.cuh"

namespace
{

constexpr int ROWS = 16; /* of a warp */
constexpr float LOG2_E = 1.4426950408889634F;

/* Elements from one row of a tile to the next. */
template <int HD> constexpr int stride_of = HD + 8;

/* Starts to fill tile[N, HD] with rows [first, first + N) of a head. */
template <int N, int HD, int THREADS>
FR_DEVICE void fill_tile(bf16 *tile, const bf16 *x, int64_t stride, int first,
                         const attn_shape &shape)
{
    constexpr int PACKS = HD / 8;
    static_assert(N * PACKS % THREADS == 0, "whole packs for each thread");
#pragma unroll
    for (int j = 0; j < N * PACKS / THREADS; j++) {
        const int i = j * THREADS + (int)threadIdx.x;
        const int r = i / PACKS, c = i % PACKS * 8;
        const bool is_there = first + r < shape.seq && c < shape.head_dim;
        copy_async(tile + r * stride_of<HD> + c,
                   is_there ? x + (first + r) * stride + c : x, !is_there);
    }
}

/* 16 rows of a tile as the left operand of products. */
template <int HD> struct left_rows {
    uint32_t at[HD / 16][4];

    FR_DEVICE void load(const bf16 *tile, int first)
    {
        const int lane = threadIdx.x % 32;
        const bf16 *row =
            tile + (first + lane % 16) * stride_of<HD> + lane / 16 * 8;
#pragma unroll
        for (int k = 0; k < HD / 16; k++)
            load_matrices<false>(at[k], row + k * 16);
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

/* out[16, N] = left[16, HD] tile[N, HD]^T */
template <int N, int HD>
FR_DEVICE void multiply_rows(row_tile<N> &out, const left_rows<HD> &left,
                             const bf16 *tile)
{
    const int lane = threadIdx.x % 32;
    const bf16 *row =
        tile + (lane % 8 + lane / 16 * 8) * stride_of<HD> + lane / 8 % 2 * 8;
    out.clear();
#pragma unroll
    for (int k = 0; k < HD / 16; k++)
#pragma unroll
        for (int n = 0; n < N / 16; n++) {
            uint32_t right[4];
            load_matrices<false>(right, row + n * 16 * stride_of<HD> + k * 16);
            mma_bf16(out.at[2 * n], left.at[k], right);
            mma_bf16(out.at[2 * n + 1], left.at[k], right + 2);
        }
}

/* out[16, HD] += p[16, N] tile[N, HD] */
template <int N, int HD>
FR_DEVICE void add_product(row_tile<HD> &out, const row_tile<N> &p,
                           const bf16 *tile)
{
    const int lane = threadIdx.x % 32;
    const bf16 *row = tile + (lane % 16) * stride_of<HD> + lane / 16 * 8;
#pragma unroll
    for (int k = 0; k < N / 16; k++) {
        const float(&a)[4] = p.at[2 * k], (&b)[4] = p.at[2 * k + 1];
        const uint32_t left[4] = {pack_bf16(a[0], a[1]), pack_bf16(a[2], a[3]),
                                  pack_bf16(b[0], b[1]), pack_bf16(b[2], b[3])};
#pragma unroll
        for (int n = 0; n < HD / 16; n++) {
            uint32_t right[4];
            load_matrices<true>(right, row + k * 16 * stride_of<HD> + n * 16);
            mma_bf16(out.at[2 * n], left, right);
            mma_bf16(out.at[2 * n + 1], left, right + 2);
        }
    }
}

/* Over the four lanes that share a row. */
template <class F> FR_DEVICE float row_reduce(float x, F f)
{
    x = f(x, __shfl_xor_sync(0xffffffffU, x, 1));
    return f(x, __shfl_xor_sync(0xffffffffU, x, 2));
}

/* Row (0 or 1: eight further down) and column of element i of tile n. */
FR_DEVICE int row_of(int i)
{
    return (int)(threadIdx.x % 32) / 4 + i / 2 * 8;
}

FR_DEVICE int col_of(int n, int i)
{
    return n * 8 + (int)(threadIdx.x % 4) * 2 + i % 2;
}

/* Writes 16 rows times `factor` of each half; what lies beyond stays out. */
template <int HD>
FR_DEVICE void store_rows(bf16 *x, const row_tile<HD> &from, int64_t stride,
                          int first, const float (&factor)[2],
                          const attn_shape &shape)
{
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int row = first + row_of(2 * half);
#pragma unroll
        for (int n = 0; n < HD / 8; n++) {
            const float *v = &from.at[n][2 * half];
            if (row < shape.seq && n * 8 < shape.head_dim)
                *(uint32_t *)(x + row * stride + col_of(n, 0)) =
                    pack_bf16(v[0] * factor[half], v[1] * factor[half]);
        }
    }
}

/* Columns that rows [first, first + n) see. */
FR_DEVICE int columns_seen(const attn_shape &shape, int first, int n)
{
    const int last = first + n < shape.seq ? first + n : shape.seq;
    return shape.is_causal ? last : shape.seq;
}

/* ---- forward ---------------------------------------------------------------
 */

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

/* Scores of pairs that do not see each other, in the tile at (row, col). */
template <int N>
FR_DEVICE void mask(row_tile<N> &s, const attn_shape &shape, int row0, int col0)
{
#pragma unroll
    for (int n = 0; n < N / 8; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int row = row0 + row_of(i), col = col0 + col_of(n, i);
            if (col >= shape.seq || (shape.is_causal && col > row))
                s.at[n][i] = -INFINITY;
        }
}

/* Does the tile have pairs that do not see each other? */
FR_DEVICE bool is_masked(const attn_shape &shape, int row0, int col0, int n)
{
    return col0 + n > shape.seq || (shape.is_causal && col0 + n > row0 + 1);
}

/* Tiles of k and v of one kv head, two of each. */
template <int N, int HD, int THREADS> struct kv_tiles {
    bf16 *tiles; /* [2][k, v][N, HD + 8] */
    const bf16 *k, *v;

    FR_DEVICE bf16 *at(int i, int i_kv) const
    {
        return tiles + (i % 2 * 2 + i_kv) * N * stride_of<HD>;
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

template <int HD, int N_WARPS, int N>
__global__ __launch_bounds__(N_WARPS * 32) void attend(attn_forward<bf16> at)
{
    constexpr int THREADS = N_WARPS * 32, BLOCK_ROWS = N_WARPS * ROWS;
    FR_SHARED(shared);
    const attn_shape &shape = at.shape;
    /* The last rows see most: they begin first. */
    const int block0 = (int)(gridDim.x - 1 - blockIdx.x) * BLOCK_ROWS;
    const int first = (int)threadIdx.x / 32 * ROWS, row0 = block0 + first;
    const int h = (int)blockIdx.y, b = (int)blockIdx.z;
    const int kv = shape.n_q + h / shape.q_per_kv;
    bf16 *q = (bf16 *)shared;
    const kv_tiles<N, HD, THREADS> tiles = {
        q + BLOCK_ROWS * stride_of<HD>, head_at(at.qkv, shape, b, kv),
        head_at(at.qkv, shape, b, kv + shape.n_kv)};
    const int n_tiles = (columns_seen(shape, block0, BLOCK_ROWS) + N - 1) / N;
    const float scale = shape.scale * LOG2_E;
    left_rows<HD> q_rows;
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
        if (i == 0)
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

/* ---- gradient of q ---------------------------------------------------------
 */

template <int HD, int N_WARPS, int N>
__global__ __launch_bounds__(N_WARPS *
                             32) void attend_grad_q(attn_backward<bf16> at)
{
    constexpr int THREADS = N_WARPS * 32, BLOCK_ROWS = N_WARPS * ROWS;
    FR_SHARED(shared);
    const attn_shape &shape = at.shape;
    const int block0 = (int)(gridDim.x - 1 - blockIdx.x) * BLOCK_ROWS;
    const int first = (int)threadIdx.x / 32 * ROWS, row0 = block0 + first;
    const int h = (int)blockIdx.y, b = (int)blockIdx.z;
    const int kv = shape.n_q + h / shape.q_per_kv;
    bf16 *q = (bf16 *)shared, *d_o = q + BLOCK_ROWS * stride_of<HD>;
    const kv_tiles<N, HD, THREADS> tiles = {
        d_o + BLOCK_ROWS * stride_of<HD>, head_at(at.qkv, shape, b, kv),
        head_at(at.qkv, shape, b, kv + shape.n_kv)};
    const int n_tiles = (columns_seen(shape, block0, BLOCK_ROWS) + N - 1) / N;
    const float scale = shape.scale * LOG2_E;
    left_rows<HD> q_rows, d_o_rows;
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
        if (i == 0) {
            q_rows.load(q, first);
            d_o_rows.load(d_o, first);
        }
        multiply_rows<N, HD>(p, q_rows, tiles.at(i, 0));
        if (is_masked(shape, row0, i * N, N))
            mask(p, shape, row0, i * N);
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

/* ---- gradients of k and v --------------------------------------------------
 */

/* Tiles of q and do of the query heads of a group, one after the other, with
 * lse and delta of their rows. */
template <int N, int HD, int THREADS> struct query_tiles {
    bf16 *tiles; /* [2][q, do][N, HD + 8] */
    float *rows; /* [2][lse, delta][N] */
    const attn_backward<bf16> &of;
    int i_kv, b;
    int first, n_per_head; /* tile; tiles of a head from there */

    FR_DEVICE bf16 *at(int i, int i_do) const
    {
        return tiles + (i % 2 * 2 + i_do) * N * stride_of<HD>;
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
 * transposed ones.  p: scores -> probabilities, ds: v do^T -> p (ds - delta);
 * a query that does not see the key, or is none, gives 0. */
template <int N>
FR_DEVICE void score_grads(row_tile<N> &p, row_tile<N> &ds, const float *lse,
                           const float *delta, float scale, int key0,
                           int query0, const attn_shape &shape)
{
#pragma unroll
    for (int n = 0; n < N / 8; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int col = col_of(n, i), query = query0 + col;
            const int key = key0 + row_of(i);
            const bool is_open = query < shape.seq && key < shape.seq &&
                                 (!shape.is_causal || key <= query);
            const float x = fast_exp2(p.at[n][i] * scale - lse[col]);
            p.at[n][i] = is_open ? x : 0.0F;
            ds.at[n][i] = p.at[n][i] * (ds.at[n][i] - delta[col]);
        }
}

template <int HD, int N_WARPS, int N>
__global__ __launch_bounds__(N_WARPS *
                             32) void attend_grad_kv(attn_backward<bf16> at)
{
    constexpr int THREADS = N_WARPS * 32, BLOCK_ROWS = N_WARPS * ROWS;
    FR_SHARED(shared);
    const attn_shape &shape = at.shape;
    const int block0 = (int)blockIdx.x * BLOCK_ROWS;
    const int first = (int)threadIdx.x / 32 * ROWS;
    const int i_kv = (int)blockIdx.y, b = (int)blockIdx.z;
    const int kv = shape.n_q + i_kv;
    bf16 *k = (bf16 *)shared, *v = k + BLOCK_ROWS * stride_of<HD>;
    bf16 *rest = v + BLOCK_ROWS * stride_of<HD>;
    const int first_tile = shape.is_causal ? block0 / N : 0;
    const query_tiles<N, HD, THREADS> tiles = {
        rest,       (float *)(rest + 4 * N * stride_of<HD>), at, i_kv, b,
        first_tile, (shape.seq + N - 1) / N - first_tile};
    const int n_tiles = tiles.n_per_head * shape.q_per_kv;
    const float scale = shape.scale * LOG2_E;
    left_rows<HD> k_rows, v_rows;
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
        /* Large heads leave no registers to keep both. */
        if (i == 0 || HD > 64)
            k_rows.load(k, first);
        multiply_rows<N, HD>(p, k_rows, tiles.at(i, 0));
        if (i == 0 || HD > 64)
            v_rows.load(v, first);
        multiply_rows<N, HD>(ds, v_rows, tiles.at(i, 1));
        score_grads(p, ds, tiles.rows_at(i, 0), tiles.rows_at(i, 1), scale,
                    block0 + first, tiles.row0(i), shape);
        add_product<N, HD>(dv, p, tiles.at(i, 1));
        add_product<N, HD>(dk, ds, tiles.at(i, 0));
        __syncthreads();
    }
    const float k_factor[2] = {shape.scale, shape.scale};
    const float v_factor[2] = {1.0F, 1.0F};
    store_rows<HD>(head_at(at.dqkv, shape, b, kv), dk, shape.qkv_stride,
                   block0 + first, k_factor, shape);
    store_rows<HD>(head_at(at.dqkv, shape, b, kv + shape.n_kv), dv,
                   shape.qkv_stride, block0 + first, v_factor, shape);
}

/* ---- host ------------------------------------------------------------------
 */

/* Blocks of rows, heads and sequences; tiles of `n_own` and twice two of
 * `n_other` rows. */
template <int HD>
launch_shape blocks_for(const attn_shape &shape, int n_warps, int n_heads,
                        int n_own, int n_other, void *stream)
{
    size_t n_rows = (size_t)(n_own * n_warps * ROWS + 4 * n_other);
    size_t n_bytes = n_rows * stride_of<HD> * sizeof(bf16) +
                     4 * (size_t)n_other * sizeof(float);
    return {dim3(blocks_of(shape.seq, n_warps * ROWS), (unsigned)n_heads,
                 (unsigned)shape.batch),
            (unsigned)n_warps * 32, n_bytes, stream};
}

template <int HD> void run_forward(const attn_forward<bf16> &at, void *stream)
{
    start(blocks_for<HD>(at.shape, 4, at.shape.n_q, 1, 64, stream),
          attend<HD, 4, 64>, at);
}

template <int HD> void run_backward(const attn_backward<bf16> &at, void *stream)
{
    constexpr int N = HD > 64 ? 32 : 64;
    start(blocks_for<HD>(at.shape, 4, at.shape.n_q, 2, N, stream),
          attend_grad_q<HD, 4, N>, at);
    start(blocks_for<HD>(at.shape, 4, at.shape.n_kv, 2, N, stream),
          attend_grad_kv<HD, 4, N>, at);
}

/* Rows of every head must begin on 16 bytes. */
bool fits(const attn_shape &shape, const void *qkv, const void *o)
{
    return shape.head_dim % 8 == 0 && shape.head_dim <= 128 &&
           is_aligned(qkv) && is_aligned(o);
}

} // namespace

bool attention_mma_forward(const attn_forward<bf16> &at, void *stream)
{
    if (!fits(at.shape, at.qkv, at.o))
        return false;
    if (at.shape.head_dim <= 64)
        run_forward<64>(at, stream);
    else if (at.shape.head_dim <= 96)
        run_forward<96>(at, stream);
    else
        run_forward<128>(at, stream);
    return true;
}

bool attention_mma_backward(const attn_backward<bf16> &at, void *stream)
{
    if (!fits(at.shape, at.qkv, at.d_o) || !is_aligned(at.dqkv))
        return false;
    if (at.shape.head_dim <= 64)
        run_backward<64>(at, stream);
    else if (at.shape.head_dim <= 96)
        run_backward<96>(at, stream);
    else
        run_backward<128>(at, stream);
    return true;
}
