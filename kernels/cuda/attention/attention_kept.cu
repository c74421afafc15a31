/*
 * attention_kept.cu: attention that keeps its probabilities, as frameworks do
 * it without a fused kernel: batched products of cuBLASLt, and kernels for what
 * is between them.
 *
 * A launch goes through the sequences, through as many of their key heads at a
 * time as there is room for, and through pieces of their queries; a batch is
 * the key heads with one query head each.  Scores, and the gradients of
 * probabilities, are float32 in the workspace, which a GPU's second cache
 * holds; so are sums that several products add to.  All pairs are multiplied,
 * also those that do not see each other, whose probabilities are 0.
 *
 * KEPT is probs[batch, n_q, n_queries, n_keys], rows and columns in the order
 * of memory (fr_sequence_rows); a mask is drawn again in backward.  Bytes moved
 * per probability of w: 2 w forward, 3 w backward, w more where some drop.
 */
#include "kernels/cuda/attention/attention_shape.cuh"

extern "C" {
#include "kernels/cuda/product_cuda.h"
}

enum {
    THREADS = 256,
    N_WARPS = THREADS / 32, /* a warp has a row */
    NEIGHBOURS = 4, /* columns of a thread: they share the words of a mask */
    GOOD_ROWS = 256 /* of queries at a time, where heads leave the room */
};

/* The part of the workspace for it.  The emulation has little, so that small
 * shapes are cut too. */
#ifdef FR_EMULATED
static const int64_t ROOM_BYTES = 128 << 10;
#else
static const int64_t ROOM_BYTES =
    FR_CUDA_WORKSPACE_BYTES - FR_CUDA_PRODUCT_WORKSPACE_BYTES;
#endif

typedef attn_shape<false> kept_shape;

/* Some key heads of a sequence, one query head of each, some of its queries. */
struct kept_part {
    int b, first_kv, n_kv;
    int i_group; /* which of the query heads of a key head */
    int row, n_rows;
};

/* The query head of the i-th key head of a part. */
__host__ __device__ static int query_head(const kept_shape &shape,
                                          const kept_part &part, int i)
{
    return (part.first_kv + i) * shape.q_per_kv + part.i_group;
}

/* Element 0 of a query's probabilities. */
__host__ __device__ static int64_t probs_at(const kept_shape &shape,
                                            const kept_part &part, int h)
{
    const int64_t i_head = (int64_t)part.b * shape.n_q + h;
    return (i_head * shape.n_queries + part.row) * shape.n_keys;
}

/* ---- on the device ------------------------------------------------------- */

/* Returns a row's position in its sequence; rows are in memory order. */
FR_DEVICE int place_of(const fr_sequence_rows &rows, int i)
{
    fr_sequence_share share = rows.share;
    int64_t row = i;
    if (rows.has_all && share.n > 1) {
        share.i = (int)(row / rows.len);
        row %= rows.len;
    }
    return (int)fr_sequence_position(share, rows.len, row);
}

/* A row of the part, for a warp: its head, its query, its places. */
struct kept_row {
    bool is_there;
    int b, h, query;
    int64_t probs, matrix;
};

FR_DEVICE kept_row row_of_warp(const kept_shape &shape, const kept_part &part)
{
    const int i = (int)(blockIdx.x * N_WARPS + threadIdx.x / 32);
    const int h = query_head(shape, part, (int)blockIdx.y);
    return {i < part.n_rows,
            part.b,
            h,
            place_of(shape.queries, part.row + i),
            probs_at(shape, part, h) + (int64_t)i * shape.n_keys,
            ((int64_t)blockIdx.y * part.n_rows + i) * shape.n_keys};
}

/* f(column, position) of all keys. */
template <class F> FR_DEVICE void for_keys(const kept_shape &shape, F f)
{
    for (int first = (int)threadIdx.x % 32 * NEIGHBOURS; first < shape.n_keys;
         first += 32 * NEIGHBOURS)
        for (int c = first; c < first + NEIGHBOURS && c < shape.n_keys; c++)
            f(c, place_of(shape.keys, c));
}

/* The factors of probabilities, one after the other. */
struct kept_factor {
    drop_cursor cursor;

    FR_DEVICE float at(const kept_shape &shape, const kept_row &row, int key)
    {
        return is_dropped(shape)
                   ? cursor.at(shape, row.b, row.h, row.query, key)
                   : 1.0F;
    }
};

/* Probabilities of a row of scores; `dropped`: null, none is. */
template <class T>
__global__ void softmax_kept(kept_shape shape, kept_part part,
                             const float *scores, T *probs, T *dropped)
{
    const kept_row row = row_of_warp(shape, part);
    if (!row.is_there)
        return;
    const float *x = scores + row.matrix;
    float max = -INFINITY, sum = 0;
    for_keys(shape, [&](int c, int key) {
        if (is_open(shape, row.query, key))
            max = max_of()(max, x[c]);
    });
    max = warp_reduce(max, max_of());
    for_keys(shape, [&](int c, int key) {
        if (is_open(shape, row.query, key))
            sum += expf(x[c] - max);
    });
    sum = warp_sum(sum);
    kept_factor factor = {};
    for_keys(shape, [&](int c, int key) {
        const float p =
            is_open(shape, row.query, key) ? expf(x[c] - max) / sum : 0.0F;
        store(&probs[row.probs + c], p);
        if (dropped)
            store(&dropped[row.matrix + c], p * factor.at(shape, row, key));
    });
}

/* The probabilities of forward with some dropped. */
template <class T>
__global__ void drop_kept(kept_shape shape, kept_part part, const T *probs,
                          T *dropped)
{
    const kept_row row = row_of_warp(shape, part);
    if (!row.is_there)
        return;
    kept_factor factor = {};
    for_keys(shape, [&](int c, int key) {
        store(&dropped[row.matrix + c],
              to_float(probs[row.probs + c]) * factor.at(shape, row, key));
    });
}

/* From the gradients of a row of probabilities to those of its scores, less
 * the scale. */
template <class T>
__global__ void softmax_grad_kept(kept_shape shape, kept_part part,
                                  const T *probs, const float *dp, T *ds)
{
    const kept_row row = row_of_warp(shape, part);
    if (!row.is_there)
        return;
    kept_factor factor = {};
    float delta = 0;
    for_keys(shape, [&](int c, int key) {
        delta += to_float(probs[row.probs + c]) * dp[row.matrix + c] *
                 factor.at(shape, row, key);
    });
    delta = warp_sum(delta);
    for_keys(shape, [&](int c, int key) {
        const float d = dp[row.matrix + c] * factor.at(shape, row, key);
        store(&ds[row.matrix + c],
              to_float(probs[row.probs + c]) * (d - delta));
    });
}

/* The destination of sums[n_heads, n_rows, n_cols]. */
template <class T> struct kept_target {
    T *at;
    int64_t stride, step;
    int n_rows, n_cols;
};

template <class T>
__global__ void store_kept(const float *sums, kept_target<T> to)
{
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    const int64_t n = (int64_t)to.n_rows * to.n_cols;
    if (i < n)
        store(&to.at[blockIdx.y * to.step + i / to.n_cols * to.stride +
                     i % to.n_cols],
              sums[blockIdx.y * n + i]);
}

/* ---- the launch ---------------------------------------------------------- */

/* A launch, with its room cut into what a part needs. */
template <class T> struct kept_work {
    const fr_cuda_launch *launch;
    kept_shape shape;
    int most_kv, most_rows; /* of a part */
    const T *q, *k, *d_o;
    T *probs, *o, *dq, *dk;
    float *matrix;     /* [n_kv, n_rows, n_keys]: scores, gradients of probs */
    T *narrow;         /* the same shape: operands of products */
    float *sums;       /* [n_kv, n_rows, head_dim or v_dim] */
    float *key_sums;   /* [n_kv, n_keys, head_dim] */
    float *value_sums; /* [n_kv, n_keys, v_dim] */
};

/* Cuts the room; FR_INPUT where there is not enough. */
template <class T>
static fr_status cut_room(kept_work<T> *work, bool is_backward, fr_err *err)
{
    const kept_shape &shape = work->shape;
    const int64_t most =
        shape.head_dim > shape.v_dim ? shape.head_dim : shape.v_dim;
    const int64_t n_key_sums =
        is_backward ? (int64_t)shape.n_keys * (shape.head_dim + shape.v_dim)
                    : 0;
    const int64_t head_bytes = n_key_sums * (int64_t)sizeof(float);
    const int64_t row_bytes =
        shape.n_keys * (int64_t)(sizeof(float) + sizeof(T)) +
        most * (int64_t)sizeof(float);
    const int64_t n_good =
        shape.n_queries < GOOD_ROWS ? shape.n_queries : GOOD_ROWS;
    int64_t n_kv = ROOM_BYTES / (head_bytes + n_good * row_bytes);
    n_kv = n_kv < 1 ? 1 : n_kv < shape.n_kv ? n_kv : shape.n_kv;
    int64_t n_rows = (ROOM_BYTES / n_kv - head_bytes) / row_bytes;
    if (n_rows < 1)
        return fr_fail(err, FR_INPUT,
                       "attention that keeps its probabilities has no room for "
                       "sequences of %d keys: choose flash attention",
                       shape.n_keys);
    n_rows = n_rows < shape.n_queries ? n_rows : shape.n_queries;
    work->most_kv = (int)n_kv;
    work->most_rows = (int)n_rows;
    work->matrix = (float *)((char *)work->launch->kernels->workspace +
                             FR_CUDA_PRODUCT_WORKSPACE_BYTES);
    work->sums = work->matrix + n_kv * n_rows * shape.n_keys;
    work->key_sums = work->sums + n_kv * n_rows * most;
    work->value_sums = work->key_sums + n_kv * shape.n_keys * shape.head_dim;
    work->narrow = (T *)(work->key_sums + n_kv * n_key_sums);
    return FR_OK;
}

/* An operand of the products of a part: what its first head has, where the
 * others are. */
template <class T> struct kept_operand {
    T *at;
    fr_cuda_matrix lies;
};

/* Row `row` of the rows of a sequence, among all rows in memory. */
static int64_t row_in(const fr_sequence_rows &rows, int batch, int b, int row)
{
    return (row / rows.len * batch + b) * rows.len + row % rows.len;
}

/* Rows of a sequence that follow each other in memory. */
static int piece_of(const fr_sequence_rows &rows, int n_rows)
{
    return rows.has_all && rows.share.n > 1 ? (int)rows.len : n_rows;
}

/* Queries, or their gradients. */
template <class T>
static kept_operand<T> queries_of(const kept_shape &shape,
                                  const kept_part &part, T *q)
{
    const int64_t row = row_in(shape.queries, shape.batch, part.b, part.row);
    return {q + row * shape.q_stride +
                (int64_t)query_head(shape, part, 0) * shape.head_dim,
            {shape.q_stride, (int64_t)shape.q_per_kv * shape.head_dim}};
}

/* The output, or its gradient. */
template <class T>
static kept_operand<T> outputs_of(const kept_shape &shape,
                                  const kept_part &part, T *o)
{
    const int64_t row = row_in(shape.queries, shape.batch, part.b, part.row);
    return {o + row * shape.o_stride +
                (int64_t)query_head(shape, part, 0) * shape.v_dim,
            {shape.o_stride, (int64_t)shape.q_per_kv * shape.v_dim}};
}

/* Keys from `col` on. */
template <class T>
static kept_operand<T> keys_of(const kept_shape &shape, const kept_part &part,
                               T *k, int col)
{
    const int64_t row = row_in(shape.keys, shape.batch, part.b, col);
    return {k + row * shape.k_stride + (int64_t)part.first_kv * shape.head_dim,
            {shape.k_stride, shape.head_dim}};
}

/* Values from `col` on. */
template <class T>
static kept_operand<T> values_of(const kept_shape &shape, const kept_part &part,
                                 T *k, int col)
{
    const int64_t row = row_in(shape.keys, shape.batch, part.b, col);
    return {k + row * shape.k_stride + (int64_t)shape.n_kv * shape.head_dim +
                (int64_t)part.first_kv * shape.v_dim,
            {shape.k_stride, shape.v_dim}};
}

/* Columns of the kept probabilities from `col` on. */
template <class T>
static kept_operand<T> probs_of(const kept_shape &shape, const kept_part &part,
                                T *probs, int col)
{
    return {probs + probs_at(shape, part, query_head(shape, part, 0)) + col,
            {shape.n_keys,
             (int64_t)shape.q_per_kv * shape.n_queries * shape.n_keys}};
}

/* Rows of `n_cols` of each head from element `first` on, in the room. */
template <class T>
static kept_operand<T> room_of(T *room, int64_t n_rows, int64_t n_cols,
                               int64_t first)
{
    return {room + first, {n_cols, n_rows * n_cols}};
}

/* The shape of a product of a part. */
struct kept_product {
    int64_t m, n, k;
    bool is_a_transposed, is_b_transposed, is_added;
    float alpha;
};

/* c[m,n] (+)= alpha op(a) op(b) of each head; c is float32. */
template <class T>
static fr_status multiply(const kept_work<T> &work, const kept_part &part,
                          const kept_product &what,
                          const kept_operand<const T> &a,
                          const kept_operand<const T> &b,
                          const kept_operand<float> &c, fr_err *err)
{
    fr_cuda_product product = {};
    product.m = what.m;
    product.n = what.n;
    product.k = what.k;
    product.is_a_transposed = what.is_a_transposed;
    product.is_b_transposed = what.is_b_transposed;
    product.is_added = what.is_added;
    product.dtype = fr_cuda_product_dtype(&work.launch->call);
    product.out_dtype = FR_DTYPE_F32;
    product.alpha = what.alpha;
    product.a = a.at;
    product.b = b.at;
    product.c = c.at;
    product.n_batch = part.n_kv;
    product.a_lies = a.lies;
    product.b_lies = b.lies;
    product.c_lies = c.lies;
    return fr_cuda_product_start(work.launch->kernels, &product,
                                 work.launch->stream, err);
}

template <class T>
static launch_shape blocks_of_rows(const kept_work<T> &work,
                                   const kept_part &part)
{
    return {dim3(blocks_of(part.n_rows, N_WARPS), (unsigned)part.n_kv), THREADS,
            0, work.launch->stream};
}

/* sums[n_kv, n_rows, n_cols] to where they belong. */
template <class T>
static void store_sums(const kept_work<T> &work, const kept_part &part,
                       const float *sums, const kept_operand<T> &to, int n_rows,
                       int n_cols)
{
    const kept_target<T> target = {to.at, to.lies.stride, to.lies.step, n_rows,
                                   n_cols};
    start({dim3(blocks_of((int64_t)n_rows * n_cols, THREADS),
                (unsigned)part.n_kv),
           THREADS, 0, work.launch->stream},
          store_kept<T>, sums, target);
}

/* f(part) of the queries of its heads, and of the heads of their groups. */
template <class T, class F>
static fr_status each_rows(const kept_work<T> &work, kept_part part, const F &f)
{
    const int piece = piece_of(work.shape.queries, work.shape.n_queries);
    for (part.i_group = 0; part.i_group < work.shape.q_per_kv; part.i_group++)
        for (part.row = 0; part.row < work.shape.n_queries;
             part.row += part.n_rows) {
            const int left = piece - part.row % piece;
            part.n_rows = left < work.most_rows ? left : work.most_rows;
            FR_TRY(f(part));
        }
    return FR_OK;
}

/* f(part) of some heads of a sequence after the other. */
template <class T, class F>
static fr_status each_heads(const kept_work<T> &work, const F &f)
{
    for (int b = 0; b < work.shape.batch; b++)
        for (int i = 0; i < work.shape.n_kv; i += work.most_kv) {
            const int left = work.shape.n_kv - i;
            FR_TRY(
                f({b, i, left < work.most_kv ? left : work.most_kv, 0, 0, 0}));
        }
    return FR_OK;
}

/* f(column) of the first key of each piece. */
template <class T, class F>
static fr_status each_keys(const kept_work<T> &work, const F &f)
{
    const int piece = piece_of(work.shape.keys, work.shape.n_keys);
    for (int col = 0; col < work.shape.n_keys; col += piece)
        FR_TRY(f(col, piece));
    return FR_OK;
}

template <class T>
static fr_status forward(const kept_work<T> &work, const kept_part &part,
                         fr_err *err)
{
    const kept_shape &shape = work.shape;
    const int n = part.n_rows, n_keys = shape.n_keys, v_dim = shape.v_dim;
    T *dropped = shape.dropped.is_some ? work.narrow : nullptr;
    const auto scores = [&](int col, int n_cols) {
        const kept_product what = {n,    n_cols, shape.head_dim, false,
                                   true, false,  shape.scale};
        return multiply<T>(work, part, what, queries_of(shape, part, work.q),
                           keys_of(shape, part, work.k, col),
                           room_of(work.matrix, n, n_keys, col), err);
    };
    const auto output = [&](int col, int n_cols) {
        const kept_product what = {n,     v_dim,   n_cols, false,
                                   false, col > 0, 1.0F};
        return multiply<T>(
            work, part, what,
            dropped ? room_of<const T>(dropped, n, n_keys, col)
                    : probs_of<const T>(shape, part, work.probs, col),
            values_of(shape, part, work.k, col),
            room_of(work.sums, n, v_dim, 0), err);
    };
    FR_TRY(each_keys(work, scores));
    start(blocks_of_rows(work, part), softmax_kept<T>, shape, part, work.matrix,
          work.probs, dropped);
    FR_TRY(each_keys(work, output));
    store_sums(work, part, work.sums, outputs_of(shape, part, work.o), n,
               v_dim);
    return FR_OK;
}

/* The gradients of values and of probabilities. */
template <class T>
static fr_status backward_output(const kept_work<T> &work,
                                 const kept_part &part, fr_err *err)
{
    const kept_shape &shape = work.shape;
    const int n = part.n_rows, n_keys = shape.n_keys, v_dim = shape.v_dim;
    const bool is_added = part.i_group > 0 || part.row > 0;
    const kept_operand<const T> d_o = outputs_of(shape, part, work.d_o);
    T *dropped = shape.dropped.is_some ? work.narrow : nullptr;
    if (dropped)
        start(blocks_of_rows(work, part), drop_kept<T>, shape, part, work.probs,
              dropped);
    return each_keys(work, [&](int col, int n_cols) {
        const kept_product of_values = {n_cols, v_dim,    n,   true,
                                        false,  is_added, 1.0F};
        const kept_product of_probs = {n,    n_cols, v_dim, false,
                                       true, false,  1.0F};
        FR_TRY(multiply<T>(
            work, part, of_values,
            dropped ? room_of<const T>(dropped, n, n_keys, col)
                    : probs_of<const T>(shape, part, work.probs, col),
            d_o, room_of(work.value_sums, n_keys, v_dim, (int64_t)col * v_dim),
            err));
        return multiply<T>(work, part, of_probs, d_o,
                           values_of(shape, part, work.k, col),
                           room_of(work.matrix, n, n_keys, col), err);
    });
}

/* The gradients of queries and of keys. */
template <class T>
static fr_status backward_scores(const kept_work<T> &work,
                                 const kept_part &part, fr_err *err)
{
    const kept_shape &shape = work.shape;
    const int n = part.n_rows, n_keys = shape.n_keys, hd = shape.head_dim;
    const bool is_added = part.i_group > 0 || part.row > 0;
    const auto gradients = [&](int col, int n_cols) {
        const kept_operand<const T> ds =
            room_of<const T>(work.narrow, n, n_keys, col);
        const kept_product of_queries = {n,     hd,      n_cols,     false,
                                         false, col > 0, shape.scale};
        const kept_product of_keys = {n_cols, hd,       n,          true,
                                      false,  is_added, shape.scale};
        FR_TRY(multiply<T>(work, part, of_queries, ds,
                           keys_of(shape, part, work.k, col),
                           room_of(work.sums, n, hd, 0), err));
        return multiply<T>(
            work, part, of_keys, ds, queries_of(shape, part, work.q),
            room_of(work.key_sums, n_keys, hd, (int64_t)col * hd), err);
    };
    start(blocks_of_rows(work, part), softmax_grad_kept<T>, shape, part,
          work.probs, work.matrix, work.narrow);
    FR_TRY(each_keys(work, gradients));
    store_sums(work, part, work.sums, queries_of(shape, part, work.dq), n, hd);
    return FR_OK;
}

/* The gradients of the keys and values of a part's heads, when all queries
 * have added to them. */
template <class T>
static void store_keys(const kept_work<T> &work, const kept_part &part)
{
    const kept_shape &shape = work.shape;
    const int hd = shape.head_dim, v_dim = shape.v_dim;
    const int piece = piece_of(shape.keys, shape.n_keys);
    kept_part one = part;
    one.n_kv = 1;
    for (int i = 0; i < part.n_kv; i++)
        for (int col = 0; col < shape.n_keys; col += piece) {
            const int64_t row = (int64_t)i * shape.n_keys + col;
            one.first_kv = part.first_kv + i;
            store_sums(work, one, work.key_sums + row * hd,
                       keys_of(shape, one, work.dk, col), piece, hd);
            store_sums(work, one, work.value_sums + row * v_dim,
                       values_of(shape, one, work.dk, col), piece, v_dim);
        }
}

template <class T>
static fr_status run_forward(const fr_cuda_launch *launch, fr_err *err)
{
    void *const *ptr = launch->call.ptr;
    kept_work<T> work = {};
    work.launch = launch;
    work.shape = shape_of<false>(launch);
    work.q = (const T *)ptr[FR_ATTN_FWD_QKV];
    work.k = work.q + first_key(launch->call.instr);
    work.o = (T *)ptr[FR_ATTN_FWD_O];
    work.probs = (T *)ptr[FR_ATTN_FWD_KEPT];
    FR_TRY(cut_room(&work, false, err));
    return each_heads(work, [&](const kept_part &heads) {
        return each_rows(work, heads, [&](const kept_part &part) {
            return forward(work, part, err);
        });
    });
}

template <class T>
static fr_status run_backward(const fr_cuda_launch *launch, fr_err *err)
{
    void *const *ptr = launch->call.ptr;
    kept_work<T> work = {};
    work.launch = launch;
    work.shape = shape_of<false>(launch);
    work.d_o = (const T *)ptr[FR_ATTN_BWD_DO];
    work.q = (const T *)ptr[FR_ATTN_BWD_QKV];
    work.k = work.q + first_key(launch->call.instr);
    work.probs = (T *)ptr[FR_ATTN_BWD_KEPT];
    work.dq = (T *)ptr[FR_ATTN_BWD_DQKV];
    work.dk = work.dq + first_key(launch->call.instr);
    FR_TRY(cut_room(&work, true, err));
    const auto backward = [&](const kept_part &part) {
        FR_TRY(backward_output(work, part, err));
        return backward_scores(work, part, err);
    };
    return each_heads(work, [&](const kept_part &heads) {
        FR_TRY(each_rows(work, heads, backward));
        store_keys(work, heads);
        return FR_OK;
    });
}

fr_status attention_kept(const fr_cuda_launch *launch, fr_err *err)
{
    const fr_instr *instr = launch->call.instr;
    fr_status status = FR_OK;
    const bool is_known = with_type(instr->dtype, [&](auto t) {
        using T = decltype(t);
        status = instr->op == FR_OP_ATTN_FWD ? run_forward<T>(launch, err)
                                             : run_backward<T>(launch, err);
    });
    if (!is_known)
        return refuse_dtype(launch, err);
    return status == FR_OK ? launched(launch, err) : status;
}
