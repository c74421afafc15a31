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
#include "kernels/cuda/attention/attention_shape.cuh"

enum { THREADS = 256, N_WARPS = THREADS / 32, TILE = 32, S_STRIDE = TILE + 1 };

/* ---- tiles in shared memory --------------------------------------------- */

/* Columns with their padding: an even number. */
FR_DEVICE int even(int n)
{
    return (n + 1) / 2 * 2;
}

/* Floats from one row of a tile to the next: an odd number. */
template <class S> FR_DEVICE int tile_stride(const S &shape)
{
    return even(shape.head_dim > shape.v_dim ? shape.head_dim : shape.v_dim) +
           1;
}

/* Rows [first, first + TILE) of a head of queries or of keys; zeros beyond. */
template <bool IS_KEY, class S, class T>
FR_DEVICE void load_tile(float *tile, const T *x, int64_t stride, int b,
                         int first, int n_cols, const S &shape)
{
    const int cols = even(n_cols), n = IS_KEY ? shape.n_keys : shape.n_queries;
    for (int i = threadIdx.x; i < TILE * cols; i += THREADS) {
        const int r = i / cols, c = i % cols;
        float value = 0.0F;
        if (first + r < n && c < n_cols)
            value = to_float(x[(IS_KEY ? key_row(shape, b, first + r)
                                       : query_row(shape, b, first + r)) *
                                   stride +
                               c]);
        tile[r * tile_stride(shape) + c] = value;
    }
}

template <bool IS_KEY, class S, class T>
FR_DEVICE void store_tile(T *x, const float *tile, int64_t stride, int b,
                          int first, int n_cols, const S &shape)
{
    const int cols = even(n_cols), n = IS_KEY ? shape.n_keys : shape.n_queries;
    for (int i = threadIdx.x; i < TILE * cols; i += THREADS) {
        const int r = i / cols, c = i % cols;
        if (first + r < n && c < n_cols)
            store(&x[(IS_KEY ? key_row(shape, b, first + r)
                             : query_row(shape, b, first + r)) *
                         stride +
                     c],
                  tile[r * tile_stride(shape) + c]);
    }
}

template <class S> FR_DEVICE void clear_tile(float *tile, const S &shape)
{
    for (int i = threadIdx.x; i < TILE * tile_stride(shape); i += THREADS)
        tile[i] = 0.0F;
}

/* An operand of a product: element (i, j) at [i * row + j * col]. */
struct mat {
    const float *at;
    int row, col;
};

/* The destination of a product: [TILE, n] rows `stride` apart, n even. */
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

/* s[row, col] = scale a b^T of two tiles with n columns. */
template <class S>
FR_DEVICE void scores(const S &shape, const float *a, const float *b, int n,
                      float *s, float scale)
{
    const int stride = tile_stride(shape);
    product({a, stride, 1}, {b, 1, stride}, n,
            {s, S_STRIDE, TILE, scale, false});
}

template <class S> FR_DEVICE bool is_seen(const S &shape, int row, int col)
{
    return row < shape.n_queries && col < shape.n_keys &&
           is_open(shape, query_position(shape, row), key_position(shape, col));
}

/* ---- forward ------------------------------------------------------------ */

/* A block's place: rows of a head of a sequence. */
struct tile_place {
    int row0, b, h, i_kv;
};

template <class S> FR_DEVICE tile_place query_place(const S &shape)
{
    const int h = (int)blockIdx.y;
    return {(int)blockIdx.x * TILE, (int)blockIdx.z, h, h / shape.q_per_kv};
}

/* Element 0 of a head in the first row. */
template <class S, class T>
FR_DEVICE T *values_of(T *k, const S &shape, int i_kv)
{
    return k + (int64_t)shape.n_kv * shape.head_dim +
           (int64_t)i_kv * shape.v_dim;
}

/* The tiles of keys and of values from col0 on. */
template <class S, class T>
FR_DEVICE void load_keys(float *k, float *v, const T *from,
                         const tile_place &at, int col0, const S &shape)
{
    load_tile<true>(k, from + (int64_t)at.i_kv * shape.head_dim, shape.k_stride,
                    at.b, col0, shape.head_dim, shape);
    load_tile<true>(v, values_of(from, shape, at.i_kv), shape.k_stride, at.b,
                    col0, shape.v_dim, shape);
}

/* A warp has rows w, w + 8, ...: maximum, exponentials and sum of each; what
 * the row's output has so far is scaled down.  The sum is that of all, those
 * that are dropped too. */
template <class S>
FR_DEVICE void softmax_rows(const S &shape, const tile_place &at, int col0,
                            float *s, float *o, float *max, float *sum)
{
    const int lane = threadIdx.x % 32, stride = tile_stride(shape);
    for (int r = threadIdx.x / 32; r < TILE; r += N_WARPS) {
        const bool is_there = is_seen(shape, at.row0 + r, col0 + lane);
        float x = is_there ? s[r * S_STRIDE + lane] : -INFINITY;
        const float before = max[r];
        float now = warp_reduce(x, max_of());
        now = now > before ? now : before;
        x = is_there ? expf(x - now) : 0.0F;
        const float factor = now == before ? 1.0F : expf(before - now);
        const float total = warp_sum(x);
        if (is_dropped(shape) && is_there) {
            drop_cursor cursor = {};
            x *=
                cursor.at(shape, at.b, at.h, query_position(shape, at.row0 + r),
                          key_position(shape, col0 + lane));
        }
        s[r * S_STRIDE + lane] = x;
        for (int c = lane; c < shape.v_dim; c += 32)
            o[r * stride + c] *= factor;
        __syncwarp();
        if (lane == 0) {
            max[r] = now;
            sum[r] = sum[r] * factor + total;
        }
    }
}

/* A row that sees none of these keys has an output of 0 and an lse of minus
 * infinity. */
template <class T, class S> __global__ void attend(attn_forward<T, S> at)
{
    FR_SHARED(shared);
    const S &shape = at.shape;
    const int stride = tile_stride(shape), v_cols = even(shape.v_dim);
    const tile_place place = query_place(shape);
    const attn_range range = keys_seen(shape, place.row0, TILE);
    float *q = (float *)shared, *k = q + TILE * stride, *v = k + TILE * stride;
    float *o = v + TILE * stride, *s = o + TILE * stride;
    float *max = s + TILE * S_STRIDE, *sum = max + TILE;
    load_tile<false>(q, at.q + (int64_t)place.h * shape.head_dim,
                     shape.q_stride, place.b, place.row0, shape.head_dim,
                     shape);
    clear_tile(o, shape);
    if (threadIdx.x < TILE) {
        max[threadIdx.x] = -INFINITY;
        sum[threadIdx.x] = 0;
    }
    for (int col0 = range.first; col0 < range.last; col0 += TILE) {
        __syncthreads();
        load_keys(k, v, at.k, place, col0, shape);
        __syncthreads();
        scores(shape, q, k, shape.head_dim, s, shape.scale);
        __syncthreads();
        softmax_rows(shape, place, col0, s, o, max, sum);
        __syncthreads();
        product({s, S_STRIDE, 1}, {v, stride, 1}, TILE,
                {o, stride, v_cols, 1.0F, true});
    }
    __syncthreads();
    for (int i = threadIdx.x; i < TILE * v_cols; i += THREADS) {
        const int r = i / v_cols;
        if (sum[r] > 0.0F)
            o[r * stride + i % v_cols] /= sum[r];
    }
    /* A thread stores what it has divided. */
    store_tile<false>(at.o + (int64_t)place.h * shape.v_dim, o, shape.o_stride,
                      place.b, place.row0, shape.v_dim, shape);
    const int r = (int)threadIdx.x;
    if (r < TILE && place.row0 + r < shape.n_queries)
        at.lse[row_at(shape, place.b, place.h) + place.row0 + r] =
            max[r] + logf(sum[r]);
}

/* ---- backward ----------------------------------------------------------- */

/* delta[b, h, t] = sum of do * o; a warp has one. */
template <class T, class S>
__global__ void find_delta(attn_backward<T, S> at, float *delta)
{
    const S &shape = at.shape;
    const int64_t i = (int64_t)blockIdx.x * N_WARPS + threadIdx.x / 32;
    if (i >= (int64_t)shape.batch * shape.n_queries * shape.n_q)
        return;
    const int h = (int)(i % shape.n_q);
    const int t = (int)(i / shape.n_q % shape.n_queries);
    const int b = (int)(i / shape.n_q / shape.n_queries);
    const int64_t from =
        query_row(shape, b, t) * shape.o_stride + (int64_t)h * shape.v_dim;
    float sum = 0;
    for (int c = threadIdx.x % 32; c < shape.v_dim; c += 32)
        sum += to_float(at.d_o[from + c]) * to_float(at.o[from + c]);
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0)
        delta[row_at(shape, b, h) + t] = sum;
}

/* p: scores -> probabilities, of which some are dropped; ds: do v^T -> p (ds -
 * delta). */
template <class T, class S>
FR_DEVICE void score_grads(const attn_backward<T, S> &at,
                           const tile_place &place, int col0, float *p,
                           float *ds)
{
    const S &shape = at.shape;
    const int64_t first = row_at(shape, place.b, place.h) + place.row0;
    const float *lse = at.lse + first, *delta = at.delta + first;
    drop_cursor cursor = {};
    for (int i = threadIdx.x; i < TILE * TILE; i += THREADS) {
        const int r = i / TILE, c = i % TILE, j = r * S_STRIDE + c;
        const int row = place.row0 + r, col = col0 + c;
        if (!is_seen(shape, row, col)) {
            p[j] = ds[j] = 0.0F;
            continue;
        }
        const float factor =
            is_dropped(shape)
                ? cursor.at(shape, place.b, place.h, query_position(shape, row),
                            key_position(shape, col))
                : 1.0F;
        const float x = expf(p[j] - lse[r]);
        p[j] = x * factor;
        ds[j] = x * (factor * ds[j] - delta[r]);
    }
}

/* The tiles of queries and of their outputs' gradients. */
template <class T, class S>
FR_DEVICE void load_queries(float *q, float *d_o, const attn_backward<T, S> &at,
                            const tile_place &place)
{
    const S &shape = at.shape;
    load_tile<false>(q, at.q + (int64_t)place.h * shape.head_dim,
                     shape.q_stride, place.b, place.row0, shape.head_dim,
                     shape);
    load_tile<false>(d_o, at.d_o + (int64_t)place.h * shape.v_dim,
                     shape.o_stride, place.b, place.row0, shape.v_dim, shape);
}

template <class T, class S>
__global__ void attend_grad_q(attn_backward<T, S> at)
{
    FR_SHARED(shared);
    const S &shape = at.shape;
    const int stride = tile_stride(shape);
    const tile_place place = query_place(shape);
    const attn_range range = keys_seen(shape, place.row0, TILE);
    float *q = (float *)shared, *d_o = q + TILE * stride;
    float *k = d_o + TILE * stride, *v = k + TILE * stride;
    float *dq = v + TILE * stride, *p = dq + TILE * stride;
    float *ds = p + TILE * S_STRIDE;
    load_queries(q, d_o, at, place);
    clear_tile(dq, shape);
    for (int col0 = range.first; col0 < range.last; col0 += TILE) {
        __syncthreads();
        load_keys(k, v, at.k, place, col0, shape);
        __syncthreads();
        scores(shape, q, k, shape.head_dim, p, shape.scale);
        scores(shape, d_o, v, shape.v_dim, ds, 1.0F);
        __syncthreads();
        score_grads(at, place, col0, p, ds);
        __syncthreads();
        product({ds, S_STRIDE, 1}, {k, stride, 1}, TILE,
                {dq, stride, even(shape.head_dim), shape.scale, true});
    }
    __syncthreads();
    store_tile<false>(at.dq + (int64_t)place.h * shape.head_dim, dq,
                      shape.q_stride, place.b, place.row0, shape.head_dim,
                      shape);
}

/* The query heads of a group one after the other: they add to the same. */
template <class T, class S>
__global__ void attend_grad_kv(attn_backward<T, S> at)
{
    FR_SHARED(shared);
    const S &shape = at.shape;
    const int stride = tile_stride(shape), col0 = (int)blockIdx.x * TILE;
    tile_place place = {0, (int)blockIdx.z, 0, (int)blockIdx.y};
    const attn_range range = queries_seeing(shape, col0, TILE);
    float *k = (float *)shared, *v = k + TILE * stride;
    float *dk = v + TILE * stride, *dv = dk + TILE * stride;
    float *q = dv + TILE * stride, *d_o = q + TILE * stride;
    float *p = d_o + TILE * stride, *ds = p + TILE * S_STRIDE;
    load_keys(k, v, at.k, place, col0, shape);
    clear_tile(dk, shape);
    clear_tile(dv, shape);
    for (int i = 0; i < shape.q_per_kv; i++) {
        place.h = place.i_kv * shape.q_per_kv + i;
        for (int row0 = range.first; row0 < range.last; row0 += TILE) {
            place.row0 = row0;
            __syncthreads();
            load_queries(q, d_o, at, place);
            __syncthreads();
            scores(shape, q, k, shape.head_dim, p, shape.scale);
            scores(shape, d_o, v, shape.v_dim, ds, 1.0F);
            __syncthreads();
            score_grads(at, place, col0, p, ds);
            __syncthreads();
            product({p, 1, S_STRIDE}, {d_o, stride, 1}, TILE,
                    {dv, stride, even(shape.v_dim), 1.0F, true});
            product({ds, 1, S_STRIDE}, {q, stride, 1}, TILE,
                    {dk, stride, even(shape.head_dim), shape.scale, true});
        }
    }
    __syncthreads();
    store_tile<true>(at.dk + (int64_t)place.i_kv * shape.head_dim, dk,
                     shape.k_stride, place.b, col0, shape.head_dim, shape);
    store_tile<true>(values_of(at.dk, shape, place.i_kv), dv, shape.k_stride,
                     place.b, col0, shape.v_dim, shape);
}

/* ---- host --------------------------------------------------------------- */

/* Refuses instructions that the kernels do not support. */
static fr_status check(const fr_instr *instr, fr_err *err)
{
    const fr_attention_dims *dim = &instr->attention;
    const int64_t most =
        dim->head_dim > dim->v_dim ? dim->head_dim : dim->v_dim;
    if (most > 256)
        return fr_fail(err, FR_INPUT,
                       "attention heads of %lld have no CUDA kernel, 256 is "
                       "the most",
                       (long long)most);
    return FR_OK;
}

/* float32 is multiplied as it is unless the plan wants tf32. */
static bool is_by_tensor_cores(const fr_kernel_call *call)
{
    return call->instr->dtype == FR_DTYPE_BF16 ||
           (call->plan && call->plan->precision == FR_DTYPE_TF32);
}

template <class S>
static launch_shape blocks_for(const S &shape, int n_rows, int n_heads,
                               int n_tiles, int n_scores, void *stream)
{
    const int most =
        shape.head_dim > shape.v_dim ? shape.head_dim : shape.v_dim;
    const size_t tile_floats = (size_t)TILE * (size_t)((most + 1) / 2 * 2 + 1);
    size_t n_floats =
        n_tiles * tile_floats + (size_t)(n_scores * TILE * S_STRIDE) + 2 * TILE;
    return {
        dim3(blocks_of(n_rows, TILE), (unsigned)n_heads, (unsigned)shape.batch),
        THREADS, n_floats * sizeof(float), stream};
}

/* Calls f(T(), shape) with the element type and the shape of a launch. */
template <class F>
static fr_status with_shape(const fr_cuda_launch *launch, const F &f,
                            fr_err *err)
{
    const fr_kernel_call *call = &launch->call;
    FR_TRY(check(call->instr, err));
    bool is_known = with_type(call->instr->dtype, [&](auto t) {
        if (is_plain(call))
            f(t, shape_of<true>(launch));
        else
            f(t, shape_of<false>(launch));
    });
    return is_known ? launched(launch, err) : refuse_dtype(launch, err);
}

template <class T, class S>
static void run_forward(const fr_cuda_launch *launch, const S &shape)
{
    void *const *ptr = launch->call.ptr;
    const T *q = (const T *)ptr[FR_ATTN_FWD_QKV];
    const T *keys = (const T *)ptr[FR_ATTN_FWD_KEYS];
    const attn_forward<T, S> at = {
        shape, q, keys ? keys : q + first_key(launch->call.instr),
        (T *)ptr[FR_ATTN_FWD_O], (float *)ptr[FR_ATTN_FWD_KEPT]};
    if (is_by_tensor_cores(&launch->call) &&
        attention_mma_forward(at, launch->stream))
        return;
    start(blocks_for(shape, shape.n_queries, shape.n_q, 4, 1, launch->stream),
          attend<T, S>, at);
}

extern "C" fr_status fr_cuda_attn_fwd(const fr_cuda_launch *launch, fr_err *err)
{
    if (launch->call.instr->flags & FR_INSTR_SAVE_PROBS)
        return attention_kept(launch, err);
    return with_shape(
        launch,
        [&](auto t, const auto &shape) {
            run_forward<decltype(t)>(launch, shape);
        },
        err);
}

template <class T, class S>
static void run_backward(const fr_cuda_launch *launch, const S &shape,
                         float *delta)
{
    void *const *ptr = launch->call.ptr;
    const int64_t first = first_key(launch->call.instr);
    const T *q = (const T *)ptr[FR_ATTN_BWD_QKV];
    const T *keys = (const T *)ptr[FR_ATTN_BWD_KEYS];
    T *dq = (T *)ptr[FR_ATTN_BWD_DQKV], *dkeys = (T *)ptr[FR_ATTN_BWD_DKEYS];
    const attn_backward<T, S> at = {shape,
                                    (const T *)ptr[FR_ATTN_BWD_DO],
                                    q,
                                    keys ? keys : q + first,
                                    (const T *)ptr[FR_ATTN_BWD_O],
                                    (const float *)ptr[FR_ATTN_BWD_KEPT],
                                    delta,
                                    dq,
                                    dkeys ? dkeys : dq + first};
    const int64_t n = (int64_t)shape.batch * shape.n_queries * shape.n_q;
    start({dim3(blocks_of(n, N_WARPS)), THREADS, 0, launch->stream},
          find_delta<T, S>, at, delta);
    if (is_by_tensor_cores(&launch->call) &&
        attention_mma_backward(at, launch->stream))
        return;
    start(blocks_for(shape, shape.n_queries, shape.n_q, 5, 2, launch->stream),
          attend_grad_q<T, S>, at);
    start(blocks_for(shape, shape.n_keys, shape.n_kv, 6, 2, launch->stream),
          attend_grad_kv<T, S>, at);
}

extern "C" fr_status fr_cuda_attn_bwd(const fr_cuda_launch *launch, fr_err *err)
{
    const fr_instr *instr = launch->call.instr;
    const uint64_t n =
        (uint64_t)(instr->attention.batch * instr->attention.seq *
                   instr->attention.q_heads);
    void *delta = nullptr;
    if (instr->flags & FR_INSTR_SAVE_PROBS)
        return attention_kept(launch, err);
    FR_TRY(take_workspace(launch, n * sizeof(float), &delta, err));
    return with_shape(
        launch,
        [&](auto t, const auto &shape) {
            run_backward<decltype(t)>(launch, shape, (float *)delta);
        },
        err);
}
