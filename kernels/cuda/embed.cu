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
#include "kernels/cuda/kernel_launch.cuh"

enum {
    THREADS = 256,
    N_WARPS = THREADS / 32,
    SCAN_THREADS = 1024,
    SCAN_WARPS = SCAN_THREADS / 32,
    SCAN_BATCH = 8, /* tokens of a thread that are loaded at once */
    FEW_ROWS = 8    /* of a token: a warp adds them */
};

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
static bool has_packed_rows(const fr_kernel_call *call, int64_t cols,
                            int n_pack)
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
        if (has_packed_rows(call, call->instr->embed.cols, pack_of<T>()))
            run_embed<pack_of<T>(), T>(launch);
        else
            run_embed<1, T>(launch);
    });
    return is_known ? launched(launch, err) : refuse_dtype(launch, err);
}

/* ---- gradients ---------------------------------------------------------- */

/* The lists of the rows of each token; all are in the workspace. */
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

/* The sum of x over the threads before this one, and over all of the block. */
FR_DEVICE int32_t block_sum_before(int32_t x, int32_t *room, int32_t *all)
{
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    int32_t sum = x, before = 0, total = 0;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
        int32_t other = __shfl_sync(0xffffffffU, sum, (lane - step) & 31);
        sum += lane >= step ? other : 0;
    }
    if (lane == 31)
        room[warp] = sum;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < SCAN_WARPS; i++) {
        before += i < warp ? room[i] : 0;
        total += room[i];
    }
    __syncthreads();
    *all = total;
    return before + sum - x;
}

/* begin = running sum of the counts, by one block; cursor = begin. */
__global__ __launch_bounds__(SCAN_THREADS) void scan_tokens(int64_t n,
                                                            token_lists lists)
{
    __shared__ int32_t room[SCAN_WARPS];
    int32_t before = 0, counts[SCAN_BATCH];
    for (int64_t first = 0; first < n; first += SCAN_BATCH * SCAN_THREADS) {
#pragma unroll
        for (int j = 0; j < SCAN_BATCH; j++) {
            const int64_t i = first + j * SCAN_THREADS + threadIdx.x;
            counts[j] = i < n ? lists.cursor[i] : 0;
        }
#pragma unroll
        for (int j = 0; j < SCAN_BATCH; j++) {
            const int64_t i = first + j * SCAN_THREADS + threadIdx.x;
            int32_t all = 0;
            const int32_t sum = block_sum_before(counts[j], room, &all);
            if (i < n) {
                lists.begin[i] = before + sum;
                lists.cursor[i] = before + sum;
            }
            before += all;
        }
    }
    if (threadIdx.x == 0)
        lists.begin[n] = before;
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
#pragma unroll 8
    for (int32_t j = first; j < last; j++)
        rank += lists.placed[j] < i;
    lists.sorted[first + rank] = (int32_t)i;
}

/* The rows of one token: its places [first, last) in the sorted list. */
struct token_rows {
    int64_t row; /* of dwte */
    int32_t first, last;
};

/* Returns the rows of the token at a place, if it is the token's first place;
 * else none. */
FR_DEVICE token_rows rows_from(const embed_shape &at, const token_lists &lists,
                               int64_t place)
{
    if (place >= lists.begin[at.n_local])
        return {0, 0, 0};
    const int64_t row = local_row(at, lists.sorted[place]);
    if (place != lists.begin[row])
        return {0, 0, 0};
    return {row, (int32_t)place, lists.begin[row + 1]};
}

/* sum += columns [c, c + N) of every n_apart-th of the token's rows, from
 * `first` on. */
template <int N, class T>
FR_DEVICE void sum_rows(const embed_shape &at, const token_lists &lists,
                        const T *dout, int32_t first, int32_t last, int n_apart,
                        int64_t c, float (&sum)[N])
{
#pragma unroll 4
    for (int32_t j = first; j < last; j += n_apart) {
        float v[N];
        load<N>(v, dout + lists.sorted[j] * at.cols + c);
        for (int k = 0; k < N; k++)
            sum[k] += v[k];
    }
}

/* Warp w of a block has the token of its w-th place and adds the few rows of it
 * in order.  Tokens of many rows are left to add_many_rows(). */
template <int N, class T, class G>
__global__ void add_few_rows(embed_shape at, token_lists lists, const T *dout,
                             G *dwte)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const token_rows token =
        rows_from(at, lists, (int64_t)blockIdx.x * N_WARPS + warp);
    if (token.last - token.first > FEW_ROWS || token.last == token.first)
        return;
    for (int64_t c = (int64_t)lane * N; c < at.cols; c += 32 * N) {
        G *to = &dwte[token.row * at.cols + c];
        float sum[N] = {}, old[N];
        load<N>(old, to);
        sum_rows<N>(at, lists, dout, token.first, token.last, 1, c, sum);
        for (int k = 0; k < N; k++)
            old[k] += at.scale * sum[k];
        store<N>(to, old);
    }
}

/* A block has the tokens of N_WARPS places, one after the other: warp w adds
 * the rows of ranks w, w + 8, ..., then come the warps' sums in order. */
template <int N, class T, class G>
__global__ void add_many_rows(embed_shape at, token_lists lists, const T *dout,
                              G *dwte)
{
    __shared__ float room[N_WARPS][32 * N];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int64_t c = ((int64_t)blockIdx.y * 32 + lane) * N;
    for (int p = 0; p < N_WARPS; p++) {
        const token_rows token =
            rows_from(at, lists, (int64_t)blockIdx.x * N_WARPS + p);
        float sum[N] = {};
        if (token.last - token.first <= FEW_ROWS)
            continue;
        if (c < at.cols)
            sum_rows<N>(at, lists, dout, token.first + warp, token.last,
                        N_WARPS, c, sum);
        for (int k = 0; k < N; k++)
            room[warp][lane * N + k] = sum[k];
        __syncthreads();
        for (int i = threadIdx.x; i < 32 * N; i += THREADS) {
            const int64_t column = (int64_t)blockIdx.y * 32 * N + i;
            float total = 0;
            for (int w = 0; w < N_WARPS; w++)
                total += room[w][i];
            if (column < at.cols) {
                G *to = &dwte[token.row * at.cols + column];
                store(to, to_float(*to) + at.scale * total);
            }
        }
        __syncthreads();
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
    const unsigned n_blocks = blocks_of(at.rows, N_WARPS);
    launch_shape shape = {dim3(n_blocks), THREADS, 0, launch->stream};
    sort_rows(launch, at, lists);
    start(shape, add_few_rows<N, T, G>, at, lists, dout, (G *)call->ptr[2]);
    shape.grid = dim3(n_blocks, blocks_of(at.cols, 32 * N));
    start(shape, add_many_rows<N, T, G>, at, lists, dout, (G *)call->ptr[2]);
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
            is_aligned(call->ptr[FR_EMBED_BWD_DWTE]) &&
            dim->cols % pack_of<T>() == 0)
            run_embed_grad<pack_of<T>(), T, G>(launch, (int32_t *)workspace);
        else
            run_embed_grad<1, T, G>(launch, (int32_t *)workspace);
    });
    return is_known ? launched(launch, err) : refuse_dtype(launch, err);
}
