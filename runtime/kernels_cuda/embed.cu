/*
 * embed.cu: token and position embedding with gradients (kernels_embed.c).
 *
 * Tokens repeat, and their rows' gradients have to be added in row order.  So
 * the rows are sorted by token first: counts per token, their running sum,
 * places (in any order), then each row's rank among those of its token.  All
 * of that is whole numbers and the result the same in every run.
 *
 * Bytes moved per element of w bytes: EMBED_FWD 3 w, EMBED_BWD w for each look
 * (one at dwte, one at dwpe) and what is added to.
 */
#include "runtime/kernels_cuda/kernel_launch.cuh"

enum { THREADS = 256, N_WARPS = THREADS / 32, SCAN_THREADS = 1024 };

struct embed_shape {
    int64_t rows, cols, n_local, seq;
    int64_t first; /* token of the local row 0 */
    float scale;   /* of the rows of tokens */
    const int32_t *tokens;
    bool is_first_row; /* the table's first row is that of all tokens */
    fr_sequence_share share;
    int64_t len; /* rows of a sequence that are there */
};

static embed_shape shape_of(const fr_kernel_call *call)
{
    const fr_embed_dims *dim = &call->instr->embed;
    const bool is_first_row = call->instr->flags & FR_INSTR_FIRST_ROW;
    const bool is_backward = call->instr->op == FR_OP_EMBED_BWD;
    return {dim->rows, dim->cols,
            /* One rank adds such a row to the sum, all have its gradient. */
            is_first_row ? is_backward || call->coordinate == 0 : dim->n_local,
            dim->seq, is_first_row ? 0 : call->coordinate * dim->n_local,
            call->instr->scalar != 0 ? (float)call->instr->scalar : 1.0F,
            (const int32_t *)call->ptr[0], is_first_row, call->share,
            fr_sequence_share_len(call->share, dim->seq)};
}

/* Row of the local shard that holds the token of row i; -1: another's. */
FR_DEVICE int64_t local_row(const embed_shape &at, int64_t i)
{
    int64_t row = at.is_first_row ? 0 : at.tokens[i] - at.first;
    return row >= 0 && row < at.n_local ? row : -1;
}

/* The place in its sequence of row i of the rank's share. */
FR_DEVICE int64_t position_of(const embed_shape &at, int64_t i)
{
    return fr_sequence_position(at.share, at.len, i % at.len);
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
        load<N>(y, wpe + position_of(at, row) * at.cols + c);
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

/* dwpe[t] += the rows at position t of all sequences, of those that are
 * there. */
template <int N, class T, class G>
__global__ void add_positions(embed_shape at, const T *dout, G *dwpe)
{
    int64_t i = ((int64_t)blockIdx.x * THREADS + threadIdx.x) * N;
    if (i >= at.len * at.cols)
        return;
    const int64_t to = position_of(at, i / at.cols) * at.cols + i % at.cols;
    float v[N], sum[N] = {};
    for (int64_t from = i; from < at.rows * at.cols; from += at.len * at.cols) {
        load<N>(v, dout + from);
#pragma unroll
        for (int j = 0; j < N; j++)
            sum[j] += v[j];
    }
    for (int j = 0; j < N; j++)
        store(&dwpe[to + j], to_float(dwpe[to + j]) + sum[j]);
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
    shape.grid = dim3(blocks_of(at.len * at.cols, THREADS * N));
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
