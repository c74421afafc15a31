/*
 * attention.cu: attention without its scores in memory (Dao et al. 2022,
 * arXiv 2205.14135; Dao 2023, arXiv 2307.08691): here the kernels for float32
 * and for any head size; attention_mma.cu has bf16 and tf32 by tensor cores.
 *
 * Backward makes the probabilities again from each row's lse, in one kernel
 * for dq and one for dk and dv: seven products instead of five, but no sum
 * whose order depends on which block comes first.
 *
 * Tiles of 32 rows by 32 columns in shared memory, products by fp32 units: a
 * thread makes 2 x 2 elements of a product.  Bytes moved: q, k, v and o once
 * (k and v again per tile of 32 rows, from the second cache); bound by
 * shared memory, four words read per eight flop.
 */
#include "runtime/kernels_cuda/attention/attention.cuh"

enum { THREADS = 256, N_WARPS = THREADS / 32, TILE = 32, S_STRIDE = TILE + 1 };

/* ---- tiles in shared memory --------------------------------------------- */

/* Columns of a tile with its padding: an even number, then one more. */
FR_DEVICE int tile_cols(const attn_shape &shape)
{
    return (shape.head_dim + 1) / 2 * 2;
}

FR_DEVICE int tile_stride(const attn_shape &shape)
{
    return tile_cols(shape) + 1;
}

static size_t tile_floats(const attn_shape &shape)
{
    return (size_t)TILE * (size_t)((shape.head_dim + 1) / 2 * 2 + 1);
}

/* Rows [first, first + TILE) of a head; zeros beyond. */
template <class T>
FR_DEVICE void load_tile(float *tile, const T *x, int64_t stride, int first,
                         const attn_shape &shape)
{
    const int cols = tile_cols(shape);
    for (int i = threadIdx.x; i < TILE * cols; i += THREADS) {
        const int r = i / cols, c = i % cols;
        const bool is_there = first + r < shape.seq && c < shape.head_dim;
        tile[r * (cols + 1) + c] =
            is_there ? to_float(x[(first + r) * stride + c]) : 0.0F;
    }
}

template <class T>
FR_DEVICE void store_tile(T *x, const float *tile, int64_t stride, int first,
                          const attn_shape &shape)
{
    const int cols = tile_cols(shape);
    for (int i = threadIdx.x; i < TILE * cols; i += THREADS) {
        const int r = i / cols, c = i % cols;
        if (first + r < shape.seq && c < shape.head_dim)
            store(&x[(first + r) * stride + c], tile[r * (cols + 1) + c]);
    }
}

FR_DEVICE void clear_tile(float *tile, const attn_shape &shape)
{
    for (int i = threadIdx.x; i < TILE * tile_stride(shape); i += THREADS)
        tile[i] = 0.0F;
}

/* An operand of a product: element (i, j) at [i * row + j * col]. */
struct mat {
    const float *at;
    int row, col;
};

/* Where a product goes: [TILE, n] rows `stride` apart, n even. */
struct product_out {
    float *at;
    int stride, n;
    float alpha;
    bool is_added;
};

/* out (+)= alpha a[TILE, k] b[k, n] */
FR_DEVICE void product(mat a, mat b, int k, product_out out)
{
    const int half = out.n / 2;
    for (int i = threadIdx.x; i < TILE / 2 * half; i += THREADS) {
        const int r = i / half * 2, col = i % half * 2;
        const float *a0 = a.at + r * a.row, *b0 = b.at + col * b.col;
        float *to = out.at + r * out.stride + col;
        float sum[2][2] = {};
        for (int j = 0; j < k; j++) {
            const float x0 = a0[j * a.col], x1 = a0[a.row + j * a.col];
            const float y0 = b0[j * b.row], y1 = b0[b.col + j * b.row];
            sum[0][0] += x0 * y0;
            sum[0][1] += x0 * y1;
            sum[1][0] += x1 * y0;
            sum[1][1] += x1 * y1;
        }
        for (int j = 0; j < 4; j++) {
            float *one = to + j / 2 * out.stride + j % 2;
            *one = out.alpha * sum[j / 2][j % 2] + (out.is_added ? *one : 0.0F);
        }
    }
}

/* s[row, col] = scale q k^T of two tiles. */
FR_DEVICE void scores(const attn_shape &shape, const float *q, const float *k,
                      float *s, float scale)
{
    const int stride = tile_stride(shape);
    product({q, stride, 1}, {k, 1, stride}, shape.head_dim,
            {s, S_STRIDE, TILE, scale, false});
}

FR_DEVICE bool is_seen(const attn_shape &shape, int row, int col)
{
    return row < shape.seq && col < shape.seq &&
           (!shape.is_causal || col <= row);
}

/* Tiles of columns that the rows from `first` on see. */
FR_DEVICE int last_column(const attn_shape &shape, int first)
{
    const int last = first + TILE < shape.seq ? first + TILE : shape.seq;
    return shape.is_causal ? last : shape.seq;
}

/* ---- forward ------------------------------------------------------------ */

/* A warp has rows w, w + 8, ...: maximum, exponentials and sum of each; what
 * the row's output has so far is scaled down. */
FR_DEVICE void softmax_rows(const attn_shape &shape, int row0, int col0,
                            float *s, float *o, float *max, float *sum)
{
    const int lane = threadIdx.x % 32, stride = tile_stride(shape);
    for (int r = threadIdx.x / 32; r < TILE; r += N_WARPS) {
        const bool is_open = is_seen(shape, row0 + r, col0 + lane);
        float x = is_open ? s[r * S_STRIDE + lane] : -INFINITY;
        const float before = max[r];
        float now = warp_reduce(x, max_of());
        now = now > before ? now : before;
        x = is_open ? expf(x - now) : 0.0F;
        const float factor = now == before ? 1.0F : expf(before - now);
        s[r * S_STRIDE + lane] = x;
        const float total = warp_sum(x);
        for (int c = lane; c < shape.head_dim; c += 32)
            o[r * stride + c] *= factor;
        __syncwarp();
        if (lane == 0) {
            max[r] = now;
            sum[r] = sum[r] * factor + total;
        }
    }
}

template <class T> __global__ void attend(attn_forward<T> at)
{
    FR_SHARED(shared);
    const attn_shape &shape = at.shape;
    const int stride = tile_stride(shape), row0 = (int)blockIdx.x * TILE;
    const int h = (int)blockIdx.y, b = (int)blockIdx.z;
    const int kv = shape.n_q + h / shape.q_per_kv;
    float *q = (float *)shared, *k = q + TILE * stride, *v = k + TILE * stride;
    float *o = v + TILE * stride, *s = o + TILE * stride;
    float *max = s + TILE * S_STRIDE, *sum = max + TILE;
    load_tile(q, head_at(at.qkv, shape, b, h), shape.qkv_stride, row0, shape);
    clear_tile(o, shape);
    if (threadIdx.x < TILE) {
        max[threadIdx.x] = -INFINITY;
        sum[threadIdx.x] = 0;
    }
    for (int col0 = 0; col0 < last_column(shape, row0); col0 += TILE) {
        __syncthreads();
        load_tile(k, head_at(at.qkv, shape, b, kv), shape.qkv_stride, col0,
                  shape);
        load_tile(v, head_at(at.qkv, shape, b, kv + shape.n_kv),
                  shape.qkv_stride, col0, shape);
        __syncthreads();
        scores(shape, q, k, s, shape.scale);
        __syncthreads();
        softmax_rows(shape, row0, col0, s, o, max, sum);
        __syncthreads();
        product({s, S_STRIDE, 1}, {v, stride, 1}, TILE,
                {o, stride, tile_cols(shape), 1.0F, true});
    }
    __syncthreads();
    for (int i = threadIdx.x; i < TILE * tile_cols(shape); i += THREADS) {
        const int r = i / tile_cols(shape);
        o[r * stride + i % tile_cols(shape)] /= sum[r];
    }
    /* A thread stores what it has divided. */
    store_tile(output_at(at.o, shape, b, h), o, shape.o_stride, row0, shape);
    if (threadIdx.x < TILE && row0 + (int)threadIdx.x < shape.seq)
        at.lse[row_at(shape, b, h) + row0 + threadIdx.x] =
            max[threadIdx.x] + logf(sum[threadIdx.x]);
}

/* ---- backward ----------------------------------------------------------- */

/* delta[b, h, t] = sum of do * o; a warp has one. */
template <class T>
__global__ void find_delta(attn_shape shape, const T *d_o, const T *o,
                           float *delta)
{
    const int64_t i = (int64_t)blockIdx.x * N_WARPS + threadIdx.x / 32;
    if (i >= (int64_t)shape.batch * shape.seq * shape.n_q)
        return;
    const int h = (int)(i % shape.n_q), t = (int)(i / shape.n_q % shape.seq);
    const int b = (int)(i / shape.n_q / shape.seq);
    float sum = 0;
    for (int c = threadIdx.x % 32; c < shape.head_dim; c += 32)
        sum += to_float(d_o[i * shape.head_dim + c]) *
               to_float(o[i * shape.head_dim + c]);
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0)
        delta[row_at(shape, b, h) + t] = sum;
}

/* p: scores -> probabilities; ds: do v^T -> p (ds - delta). */
FR_DEVICE void score_grads(const attn_shape &shape, int row0, int col0,
                           const float *lse, const float *delta, float *p,
                           float *ds)
{
    for (int i = threadIdx.x; i < TILE * TILE; i += THREADS) {
        const int r = i / TILE, c = i % TILE, j = r * S_STRIDE + c;
        const bool is_open = is_seen(shape, row0 + r, col0 + c);
        p[j] = is_open ? expf(p[j] - lse[row0 + r]) : 0.0F;
        ds[j] = is_open ? p[j] * (ds[j] - delta[row0 + r]) : 0.0F;
    }
}

template <class T> __global__ void attend_grad_q(attn_backward<T> at)
{
    FR_SHARED(shared);
    const attn_shape &shape = at.shape;
    const int stride = tile_stride(shape), row0 = (int)blockIdx.x * TILE;
    const int h = (int)blockIdx.y, b = (int)blockIdx.z;
    const int kv = shape.n_q + h / shape.q_per_kv;
    const float *lse = at.lse + row_at(shape, b, h);
    const float *delta = at.delta + row_at(shape, b, h);
    float *q = (float *)shared, *d_o = q + TILE * stride;
    float *k = d_o + TILE * stride, *v = k + TILE * stride;
    float *dq = v + TILE * stride, *p = dq + TILE * stride;
    float *ds = p + TILE * S_STRIDE;
    load_tile(q, head_at(at.qkv, shape, b, h), shape.qkv_stride, row0, shape);
    load_tile(d_o, output_at(at.d_o, shape, b, h), shape.o_stride, row0, shape);
    clear_tile(dq, shape);
    for (int col0 = 0; col0 < last_column(shape, row0); col0 += TILE) {
        __syncthreads();
        load_tile(k, head_at(at.qkv, shape, b, kv), shape.qkv_stride, col0,
                  shape);
        load_tile(v, head_at(at.qkv, shape, b, kv + shape.n_kv),
                  shape.qkv_stride, col0, shape);
        __syncthreads();
        scores(shape, q, k, p, shape.scale);
        scores(shape, d_o, v, ds, 1.0F);
        __syncthreads();
        score_grads(shape, row0, col0, lse, delta, p, ds);
        __syncthreads();
        product({ds, S_STRIDE, 1}, {k, stride, 1}, TILE,
                {dq, stride, tile_cols(shape), shape.scale, true});
    }
    __syncthreads();
    store_tile(head_at(at.dqkv, shape, b, h), dq, shape.qkv_stride, row0,
               shape);
}

/* The query heads of a group one after the other: they add to the same. */
template <class T> __global__ void attend_grad_kv(attn_backward<T> at)
{
    FR_SHARED(shared);
    const attn_shape &shape = at.shape;
    const int stride = tile_stride(shape), col0 = (int)blockIdx.x * TILE;
    const int i_kv = (int)blockIdx.y, b = (int)blockIdx.z;
    const int kv = shape.n_q + i_kv;
    float *k = (float *)shared, *v = k + TILE * stride;
    float *dk = v + TILE * stride, *dv = dk + TILE * stride;
    float *q = dv + TILE * stride, *d_o = q + TILE * stride;
    float *p = d_o + TILE * stride, *ds = p + TILE * S_STRIDE;
    load_tile(k, head_at(at.qkv, shape, b, kv), shape.qkv_stride, col0, shape);
    load_tile(v, head_at(at.qkv, shape, b, kv + shape.n_kv), shape.qkv_stride,
              col0, shape);
    clear_tile(dk, shape);
    clear_tile(dv, shape);
    const int first = shape.is_causal ? col0 : 0;
    for (int i = 0; i < shape.q_per_kv; i++) {
        const int h = i_kv * shape.q_per_kv + i;
        for (int row0 = first; row0 < shape.seq; row0 += TILE) {
            __syncthreads();
            load_tile(q, head_at(at.qkv, shape, b, h), shape.qkv_stride, row0,
                      shape);
            load_tile(d_o, output_at(at.d_o, shape, b, h), shape.o_stride, row0,
                      shape);
            __syncthreads();
            scores(shape, q, k, p, shape.scale);
            scores(shape, d_o, v, ds, 1.0F);
            __syncthreads();
            score_grads(shape, row0, col0, at.lse + row_at(shape, b, h),
                        at.delta + row_at(shape, b, h), p, ds);
            __syncthreads();
            product({p, 1, S_STRIDE}, {d_o, stride, 1}, TILE,
                    {dv, stride, tile_cols(shape), 1.0F, true});
            product({ds, 1, S_STRIDE}, {q, stride, 1}, TILE,
                    {dk, stride, tile_cols(shape), shape.scale, true});
        }
    }
    __syncthreads();
    store_tile(head_at(at.dqkv, shape, b, kv), dk, shape.qkv_stride, col0,
               shape);
    store_tile(head_at(at.dqkv, shape, b, kv + shape.n_kv), dv,
               shape.qkv_stride, col0, shape);
}

/* ---- host --------------------------------------------------------------- */

static attn_shape shape_of(const fr_instr *instr)
{
    const fr_attention_dims *dim = &instr->attention;
    return {(int)dim->batch,
            (int)dim->seq,
            (int)dim->q_heads,
            (int)dim->kv_heads,
            (int)dim->head_dim,
            (int)(dim->q_heads / dim->kv_heads),
            (dim->q_heads + 2 * dim->kv_heads) * dim->head_dim,
            dim->q_heads * dim->head_dim,
            (float)(1.0 / sqrt((double)dim->head_dim)),
            !(instr->flags & FR_INSTR_NONCAUSAL)};
}

/* What the kernels do not know. */
static fr_status check(const fr_instr *instr, fr_err *err)
{
    const fr_attention_dims *dim = &instr->attention;
    if (instr->flags & FR_INSTR_SAVE_PROBS)
        return fr_fail(err, FR_INPUT,
                       "attention that keeps its probabilities has no CUDA "
                       "kernel: choose fused attention");
    if (instr->flags & FR_INSTR_DROPOUT || dim->window > 0 ||
        (dim->v_dim > 0 && dim->v_dim != dim->head_dim) ||
        (dim->key_rows > 0 && dim->key_rows != dim->seq))
        return fr_fail(err, FR_INPUT,
                       "attention with dropout, a window, heads of two sizes "
                       "or keys of other ranks has no CUDA kernel");
    if (dim->head_dim > 256)
        return fr_fail(err, FR_INPUT,
                       "attention heads of %lld have no CUDA kernel, 256 is "
                       "the most",
                       (long long)dim->head_dim);
    return FR_OK;
}

/* float32 is multiplied as it is unless the plan wants tf32. */
static bool is_by_tensor_cores(const fr_kernel_call *call)
{
    return call->instr->dtype == FR_DTYPE_BF16 ||
           (call->plan && call->plan->precision == FR_DTYPE_TF32);
}

static launch_shape blocks_for(const attn_shape &shape, int n_heads,
                               int n_tiles, int n_scores, void *stream)
{
    size_t n_floats = n_tiles * tile_floats(shape) +
                      (size_t)(n_scores * TILE * S_STRIDE) + 2 * TILE;
    return {dim3(blocks_of(shape.seq, TILE), (unsigned)n_heads,
                 (unsigned)shape.batch),
            THREADS, n_floats * sizeof(float), stream};
}

template <class T>
static void run_forward(const fr_cuda_launch *launch, const attn_shape &shape)
{
    void *const *ptr = launch->call.ptr;
    attn_forward<T> at = {shape, (const T *)ptr[0], (T *)ptr[1],
                          (float *)ptr[2]};
    if (is_by_tensor_cores(&launch->call) &&
        attention_mma_forward(at, launch->stream))
        return;
    start(blocks_for(shape, shape.n_q, 4, 1, launch->stream), attend<T>, at);
}

extern "C" fr_status fr_cuda_attn_fwd(const fr_cuda_launch *launch, fr_err *err)
{
    const fr_instr *instr = launch->call.instr;
    FR_TRY(check(instr, err));
    bool is_known = with_type(instr->dtype, [&](auto t) {
        run_forward<decltype(t)>(launch, shape_of(instr));
    });
    return is_known ? launched(launch, err) : refuse_dtype(launch, err);
}

template <class T>
static void run_backward(const fr_cuda_launch *launch, const attn_shape &shape,
                         float *delta)
{
    void *const *ptr = launch->call.ptr;
    attn_backward<T> at = {shape,
                           (const T *)ptr[0],
                           (const T *)ptr[1],
                           (const T *)ptr[2],
                           (const float *)ptr[3],
                           delta,
                           (T *)ptr[4]};
    const int64_t n = (int64_t)shape.batch * shape.seq * shape.n_q;
    start({dim3(blocks_of(n, N_WARPS)), THREADS, 0, launch->stream},
          find_delta<T>, shape, at.d_o, at.o, delta);
    if (is_by_tensor_cores(&launch->call) &&
        attention_mma_backward(at, launch->stream))
        return;
    start(blocks_for(shape, shape.n_q, 5, 2, launch->stream), attend_grad_q<T>,
          at);
    start(blocks_for(shape, shape.n_kv, 6, 2, launch->stream),
          attend_grad_kv<T>, at);
}

extern "C" fr_status fr_cuda_attn_bwd(const fr_cuda_launch *launch, fr_err *err)
{
    const fr_instr *instr = launch->call.instr;
    const uint64_t n =
        (uint64_t)(instr->attention.batch * instr->attention.seq *
                   instr->attention.q_heads);
    void *delta = nullptr;
    FR_TRY(check(instr, err));
    FR_TRY(take_workspace(launch, n * sizeof(float), &delta, err));
    bool is_known = with_type(instr->dtype, [&](auto t) {
        run_backward<decltype(t)>(launch, shape_of(instr), (float *)delta);
    });
    return is_known ? launched(launch, err) : refuse_dtype(launch, err);
}
