/*
 * embed.cu: token and position embedding with gradients, rotary positions
 * (kernels_embed.c, kernels_activation.c).
 *
 * Tokens repeat, and their rows' gradients have to be added in row order.  So
 * the rows are sorted by token first: counts per token, their running sum,
 * places (in any order), then each row's rank among those of its token.  All
 * of that is whole numbers and the result the same in every run.
 *
 * Bytes moved per element of w bytes: EMBED_FWD 3 w, EMBED_BWD w for each look
 * (one at dwte, one at dwpe) and what is added to, ROPE 2 w.
 */
#include "runtime/kernels_cuda/kernel_launch.cuh"

enum { THREADS = 256, N_WARPS = THREADS / 32, SCAN_THREADS = 1024 };

struct embed_shape {
    int64_t rows, cols, n_local, seq;
    int64_t first; /* token of the local row 0 */
    float scale;   /* of the rows of tokens */
    const int32_t *tokens;
};

static embed_shape shape_of(const fr_kernel_call *call)
{
    const fr_embed_dims *dim = &call->instr->embed;
    return {dim->rows,
            dim->cols,
            dim->n_local,
            dim->seq,
            call->coordinate * dim->n_local,
            call->instr->scalar != 0 ? (float)call->instr->scalar : 1.0F,
            (const int32_t *)call->ptr[0]};
}

/* Row of the local shard that holds the token of row i; -1: another's. */
FR_DEVICE int64_t local_row(const embed_shape &at, int64_t i)
{
    int64_t row = at.tokens[i] - at.first;
    return row >= 0 && row < at.n_local ? row : -1;
}

template <int N, class T>
__global__ void embed(embed_shape at, const T *wte, const T *wpe, T *out)
{
    int64_t i = ((int64_t)blockIdx.x * THREADS + threadIdx.x) * N;
    if (i >= at.rows * at.cols)
        return;
    const int64_t row = i / at.cols, c = i % at.cols;
    const int64_t from = local_row(at, row);
    float x[N] = {}, y[N] = {};
    if (from >= 0)
        load<N>(x, wte + from * at.cols + c);
    if (wpe)
        load<N>(y, wpe + row % at.seq * at.cols + c);
#pragma unroll
    for (int j = 0; j < N; j++)
        x[j] = x[j] * at.scale + y[j];
    store<N>(out + i, x);
}

template <int N, class T> static void run_embed(const fr_cuda_launch *launch)
{
    const fr_kernel_call *call = &launch->call;
    embed_shape at = shape_of(call);
    launch_shape shape = {dim3(blocks_of(at.rows * at.cols, THREADS * N)),
                          THREADS, 0, launch->stream};
    start(shape, embed<N, T>, at, (const T *)call->ptr[1],
          call->coordinate == 0 ? (const T *)call->ptr[2] : nullptr,
          (T *)call->ptr[3]);
}

/* Whether rows of `cols` elements begin on 16 bytes in operands 1 to 3. */
static bool is_packed(const fr_kernel_call *call, int64_t cols, int n_pack)
{
    for (int i = 1; i < 4; i++)
        if (!is_aligned(call->ptr[i]))
            return false;
    return cols % n_pack == 0;
}

extern "C" fr_status fr_cuda_embed_fwd(const fr_cuda_launch *launch,
                                       fr_err *err)
{
    const fr_kernel_call *call = &launch->call;
    bool is_known = with_type(call->instr->dtype, [&](auto t) {
        using T = decltype(t);
        if (is_packed(call, call->instr->embed.cols, pack_of<T>()))
            run_embed<pack_of<T>(), T>(launch);
        else
            run_embed<1, T>(launch);
    });
    return is_known ? launched(launch, err) : refuse_dtype(launch, err);
}

/* ---- gradients ---------------------------------------------------------- */

/* Where the rows of each token are; all in the workspace. */
struct token_lists {
    int32_t *begin;  /* [n_local + 1] first place of a token */
    int32_t *cursor; /* [n_local] its count, then its next free place */
    int32_t *placed; /* [rows] rows by token, in any order */
    int32_t *sorted; /* [rows] in row order */
};

__global__ void count_tokens(embed_shape at, token_lists lists)
{
    int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    int64_t row = i < at.rows ? local_row(at, i) : -1;
    if (row >= 0)
        atomicAdd(&lists.cursor[row], 1);
}

/* begin = running sum of the counts, by one block; cursor = begin. */
__global__ __launch_bounds__(SCAN_THREADS) void scan_tokens(int64_t n,
                                                            token_lists lists)
{
    __shared__ int32_t totals[SCAN_THREADS];
    const int64_t each = (n + SCAN_THREADS - 1) / SCAN_THREADS;
    const int64_t first = threadIdx.x * each;
    const int64_t last = first + each < n ? first + each : n;
    int32_t sum = 0;
    for (int64_t i = first; i < last; i++)
        sum += lists.cursor[i];
    totals[threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        int32_t before = 0;
        for (int i = 0; i < SCAN_THREADS; i++) {
            int32_t mine = totals[i];
            totals[i] = before;
            before += mine;
        }
        lists.begin[n] = before;
    }
    __syncthreads();
    sum = totals[threadIdx.x];
    for (int64_t i = first; i < last; i++) {
        int32_t mine = lists.cursor[i];
        lists.begin[i] = sum;
        lists.cursor[i] = sum;
        sum += mine;
    }
}

__global__ void place_rows(embed_shape at, token_lists lists)
{
    int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    int64_t row = i < at.rows ? local_row(at, i) : -1;
    if (row >= 0)
        lists.placed[atomicAdd(&lists.cursor[row], 1)] = (int32_t)i;
}

__global__ void rank_rows(embed_shape at, token_lists lists)
{
    int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    int64_t row = i < at.rows ? local_row(at, i) : -1;
    if (row < 0)
        return;
    const int32_t first = lists.begin[row], last = lists.begin[row + 1];
    int32_t rank = 0;
    for (int32_t j = first; j < last; j++)
        rank += lists.placed[j] < i;
    lists.sorted[first + rank] = (int32_t)i;
}

/* The block of a token's first place adds all its rows: warp w those of
 * ranks w, w + 8, ..., then the warps' sums in order. */
template <int N, class T, class G>
__global__ void add_rows(embed_shape at, token_lists lists, const T *dout,
                         G *dwte)
{
    __shared__ float room[N_WARPS][32 * N];
    const int32_t place = (int32_t)blockIdx.x;
    if (place >= lists.begin[at.n_local])
        return;
    const int64_t row = local_row(at, lists.sorted[place]);
    if (place != lists.begin[row])
        return;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int64_t c = ((int64_t)blockIdx.y * 32 + lane) * N;
    float v[N], sum[N] = {};
    for (int32_t j = place + warp; j < lists.begin[row + 1] && c < at.cols;
         j += N_WARPS) {
        load<N>(v, dout + lists.sorted[j] * at.cols + c);
        for (int k = 0; k < N; k++)
            sum[k] += v[k];
    }
    for (int k = 0; k < N; k++)
        room[warp][lane * N + k] = sum[k];
    __syncthreads();
    for (int i = threadIdx.x; i < 32 * N; i += THREADS) {
        const int64_t column = (int64_t)blockIdx.y * 32 * N + i;
        float total = 0;
        for (int w = 0; w < N_WARPS; w++)
            total += room[w][i];
        if (column < at.cols) {
            G *to = &dwte[row * at.cols + column];
            store(to, to_float(*to) + at.scale * total);
        }
    }
}

/* dwpe[t] += the rows at position t of all sequences. */
template <int N, class T, class G>
__global__ void add_positions(embed_shape at, const T *dout, G *dwpe)
{
    int64_t i = ((int64_t)blockIdx.x * THREADS + threadIdx.x) * N;
    if (i >= at.seq * at.cols)
        return;
    float v[N], sum[N] = {};
    for (int64_t from = i; from < at.rows * at.cols; from += at.seq * at.cols) {
        load<N>(v, dout + from);
#pragma unroll
        for (int j = 0; j < N; j++)
            sum[j] += v[j];
    }
    for (int j = 0; j < N; j++)
        store(&dwpe[i + j], to_float(dwpe[i + j]) + sum[j]);
}

static void sort_rows(const fr_cuda_launch *launch, const embed_shape &at,
                      const token_lists &lists)
{
    launch_shape shape = {dim3(blocks_of(at.rows, THREADS)), THREADS, 0,
                          launch->stream};
    cudaMemsetAsync(lists.cursor, 0, (size_t)at.n_local * sizeof(int32_t),
                    (cudaStream_t)launch->stream);
    start(shape, count_tokens, at, lists);
    start({dim3(1), SCAN_THREADS, 0, launch->stream}, scan_tokens, at.n_local,
          lists);
    start(shape, place_rows, at, lists);
    start(shape, rank_rows, at, lists);
}

template <int N, class T, class G>
static void run_embed_grad(const fr_cuda_launch *launch, int32_t *workspace)
{
    const fr_kernel_call *call = &launch->call;
    const embed_shape at = shape_of(call);
    const T *dout = (const T *)call->ptr[1];
    token_lists lists = {workspace, workspace + at.n_local + 1,
                         workspace + 2 * at.n_local + 1,
                         workspace + 2 * at.n_local + 1 + at.rows};
    launch_shape shape = {dim3((unsigned)at.rows, blocks_of(at.cols, 32 * N)),
                          THREADS, 0, launch->stream};
    sort_rows(launch, at, lists);
    start(shape, add_rows<N, T, G>, at, lists, dout, (G *)call->ptr[2]);
    shape.grid = dim3(blocks_of(at.seq * at.cols, THREADS * N));
    if (call->ptr[3])
        start(shape, add_positions<N, T, G>, at, dout, (G *)call->ptr[3]);
}

extern "C" fr_status fr_cuda_embed_bwd(const fr_cuda_launch *launch,
                                       fr_err *err)
{
    const fr_kernel_call *call = &launch->call;
    const fr_embed_dims *dim = &call->instr->embed;
    void *workspace = nullptr;
    FR_TRY(take_workspace(launch,
                          (uint64_t)(2 * dim->rows + 2 * dim->n_local + 1) *
                              sizeof(int32_t),
                          &workspace, err));
    bool is_known = with_types(call->instr, [&](auto t, auto g) {
        using T = decltype(t);
        using G = decltype(g);
        if (is_aligned(call->ptr[FR_EMBED_BWD_DOUT]) &&
            dim->cols % pack_of<T>() == 0)
            run_embed_grad<pack_of<T>(), T, G>(launch, (int32_t *)workspace);
        else
            run_embed_grad<1, T, G>(launch, (int32_t *)workspace);
    });
    return is_known ? launched(launch, err) : refuse_dtype(launch, err);
}

/* ---- rotary positions --------------------------------------------------- */

/* Frequencies below `low` waves in the original length become slower by
 * `factor`, those above `high` stay (kernels_rope.c); factor 0: all stay. */
struct rope_scaling {
    double original_seq, low, high, factor;
};

struct rope_shape {
    int64_t rows, seq, n_heads, half, width, stride;
    double theta;
    rope_scaling scaling;
    float sign;
};

FR_DEVICE double frequency_of(const rope_shape &at, int64_t pair)
{
    const rope_scaling &s = at.scaling;
    const double frequency = pow(at.theta, -(double)pair / (double)at.half);
    if (s.factor == 0)
        return frequency;
    const double ratio = s.original_seq * frequency / 6.283185307179586;
    double kept = (ratio - s.low) / (s.high - s.low);
    kept = kept < 0 ? 0 : kept > 1 ? 1 : kept;
    return frequency * (kept + (1 - kept) / s.factor);
}

/* A thread turns N neighbouring pairs of a row in all heads; the angles are
 * found in double, as positions times frequencies have many digits. */
template <int N, class T> __global__ void rope(rope_shape at, T *qkv)
{
    const int64_t packs = at.half / N;
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= at.rows * packs)
        return;
    const int64_t row = i / packs, first = i % packs * N;
    float c[N], s[N], low[N], high[N];
    for (int j = 0; j < N; j++) {
        double angle = (double)(row % at.seq) * frequency_of(at, first + j);
        c[j] = (float)cos(angle);
        s[j] = at.sign * (float)sin(angle);
    }
    T *x = qkv + row * at.stride + first;
    for (int64_t head = 0; head < at.n_heads; head++, x += at.width) {
        load<N>(low, x);
        load<N>(high, x + at.half);
        for (int j = 0; j < N; j++) {
            float a = low[j], b = high[j];
            low[j] = a * c[j] - b * s[j];
            high[j] = b * c[j] + a * s[j];
        }
        store<N>(x, low);
        store<N>(x + at.half, high);
    }
}

static rope_scaling scaling_of(const fr_kernel_call *call)
{
    const fr_model *model = call->model;
    if (call->instr->rope.is_scaled == 0 || model == nullptr)
        return {};
    return {(double)model->rope_original_seq, model->rope_low_factor,
            model->rope_high_factor, model->rope_factor};
}

static fr_status run_rope(const fr_cuda_launch *launch, float sign, fr_err *err)
{
    const fr_kernel_call *call = &launch->call;
    const fr_rope_dims *dim = &call->instr->rope;
    rope_shape at = {dim->rows,
                     dim->seq,
                     dim->q_heads + dim->kv_heads,
                     (dim->rotated > 0 ? dim->rotated : dim->head_dim) / 2,
                     dim->head_dim,
                     (dim->q_heads + 2 * dim->kv_heads) * dim->head_dim,
                     call->instr->scalar,
                     scaling_of(call),
                     sign};
    launch_shape shape = {dim3(1), THREADS, 0, launch->stream};
    bool is_known = with_type(call->instr->dtype, [&](auto t) {
        using T = decltype(t);
        constexpr int N = pack_of<T>();
        T *qkv = (T *)call->ptr[0];
        bool is_pack = is_aligned(qkv) && at.half % N == 0 && at.width % N == 0;
        shape.grid = dim3(
            blocks_of(at.rows * (is_pack ? at.half / N : at.half), THREADS));
        if (is_pack)
            start(shape, rope<N, T>, at, qkv);
        else
            start(shape, rope<1, T>, at, qkv);
    });
    return is_known ? launched(launch, err) : refuse_dtype(launch, err);
}

extern "C" fr_status fr_cuda_rope_fwd(const fr_cuda_launch *launch, fr_err *err)
{
    return run_rope(launch, 1.0F, err);
}

extern "C" fr_status fr_cuda_rope_bwd(const fr_cuda_launch *launch, fr_err *err)
{
    return run_rope(launch, -1.0F, err);
}
