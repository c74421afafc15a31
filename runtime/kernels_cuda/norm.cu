/*
 * norm.cu: LayerNorm and RMSNorm with gradients (kernels_norm.c), of rows and
 * of heads, and column sums.
 *
 * A team of threads (a warp, or a block where rows are long) has a row at a
 * time and reads it again from the first cache.  In backward a thread keeps
 * the sums of its own columns in shared memory over all rows of its team;
 * these go to the workspace, whose parts are added in order.
 *
 * Bytes moved per element of w bytes: forward 2 w, backward 3 w (4 w with
 * ACCUMULATE), column sums w.
 */
#include "runtime/kernels_cuda/kernel_launch.cuh"

enum { THREADS = 256, N_WARPS = THREADS / 32, ADD_WARPS = 32 };

static const int64_t LONG_ROW = 1024;    /* columns that a block has alone */
static const uint64_t GRAD_BLOCKS = 512; /* at most: parts of the sums */

/* Row i of an operand that lies among others: head i % n_heads of the heads of
 * one row of q, k and v. */
struct row_places {
    int64_t n_heads, row_heads, first_head;
    FR_DEVICE int64_t operator()(int64_t i) const
    {
        return i / n_heads * row_heads + first_head + i % n_heads;
    }
};

static const row_places every_row = {1, 1, 0};

/* x, w, b, y of a launch; the same for all rows. */
template <class T> struct norm_operands {
    const T *x, *w, *b;
    T *y;
    row_places places; /* of x and y */
    T *raw;            /* a copy of x, row after row; null: none */
    float *stats;
    int64_t rows, cols;
    double eps;
    bool is_rms;
};

template <int N, int TEAM, class T> __global__ void norm(norm_operands<T> at)
{
    __shared__ float room[N_WARPS];
    const int64_t row =
        (int64_t)blockIdx.x * (THREADS / TEAM) + threadIdx.x / TEAM;
    const int64_t first = (int64_t)(threadIdx.x % TEAM) * N;
    float v[N], w[N], b[N] = {}, mean = 0, sum = 0;
    if (row >= at.rows)
        return; /* a whole team: a block has one team, or teams are warps */
    const T *x = at.x + at.places(row) * at.cols;
    T *y = at.y + at.places(row) * at.cols;
    if (!at.is_rms) {
        for (int64_t c = first; c < at.cols; c += TEAM * N) {
            load<N>(v, x + c);
            for (int j = 0; j < N; j++)
                sum += v[j];
        }
        mean = team_sum<TEAM>(sum, room) / (float)at.cols;
    }
    sum = 0;
    for (int64_t c = first; c < at.cols; c += TEAM * N) {
        load<N>(v, x + c);
        for (int j = 0; j < N; j++)
            sum += (v[j] - mean) * (v[j] - mean);
    }
    double variance = (double)team_sum<TEAM>(sum, room) / (double)at.cols;
    float rstd = (float)(1.0 / sqrt(variance + at.eps));
    for (int64_t c = first; c < at.cols; c += TEAM * N) {
        load<N>(v, x + c);
        load<N>(w, at.w + c);
        if (at.b)
            load<N>(b, at.b + c);
        if (at.raw)
            store<N>(at.raw + row * at.cols + c, v);
        for (int j = 0; j < N; j++)
            v[j] = (v[j] - mean) * rstd * w[j] + b[j];
        store<N>(y + c, v);
    }
    if (threadIdx.x % TEAM == 0) {
        at.stats[row] = mean;
        at.stats[at.rows + row] = rstd;
    }
}

template <class T> struct norm_grad_operands {
    const T *dy, *x, *w;
    const float *stats;
    T *dx;
    row_places places; /* of dy and dx */
    float *parts;      /* [blocks][2][cols] */
    int64_t rows, cols;
    bool is_rms, is_added;
};

/* Means of dy*w and dy*w*xhat over the row. */
struct norm_means {
    float g, gx;
};

/* Sums of a team's columns in shared memory: those that its threads touch at
 * the same time lie side by side, in different banks. */
template <int N, int TEAM> FR_DEVICE int64_t place_of(int64_t c)
{
    const int64_t in = c % (TEAM * N);
    return c - in + in % N * TEAM + in / N;
}

/* Places for `cols` columns. */
template <int N, int TEAM> __host__ FR_DEVICE int64_t places_for(int64_t cols)
{
    return (cols + TEAM * N - 1) / (TEAM * N) * (TEAM * N);
}

/* First look at a row: its means, and its share of dw and db. */
template <int N, int TEAM, class T>
FR_DEVICE norm_means look_at_row(const norm_grad_operands<T> &at, int64_t row,
                                 float *sums, float *room)
{
    const int64_t first = (int64_t)(threadIdx.x % TEAM) * N;
    const float mean = at.stats[row], rstd = at.stats[at.rows + row];
    const T *dy_row = at.dy + at.places(row) * at.cols;
    float *db = sums + places_for<N, TEAM>(at.cols);
    float dy[N], x[N], w[N], sum_g = 0, sum_gx = 0;
    for (int64_t c = first; c < at.cols; c += TEAM * N) {
        load<N>(dy, dy_row + c);
        load<N>(x, at.x + row * at.cols + c);
        load<N>(w, at.w + c);
        for (int j = 0; j < N; j++) {
            float xhat = (x[j] - mean) * rstd, g = dy[j] * w[j];
            sum_g += g;
            sum_gx += g * xhat;
            sums[c - first + j * TEAM + first / N] += dy[j] * xhat;
            db[c - first + j * TEAM + first / N] += dy[j];
        }
    }
    sum_g = team_sum<TEAM>(sum_g, room);
    sum_gx = team_sum<TEAM>(sum_gx, room);
    return {at.is_rms ? 0.0F : sum_g / (float)at.cols, sum_gx / (float)at.cols};
}

/* Second look: dx, which may be dy itself (own columns only). */
template <int N, int TEAM, class T>
FR_DEVICE void finish_row(const norm_grad_operands<T> &at, int64_t row,
                          norm_means means)
{
    const int64_t first = (int64_t)(threadIdx.x % TEAM) * N;
    const float mean = at.stats[row], rstd = at.stats[at.rows + row];
    const int64_t place = at.places(row) * at.cols;
    float dy[N], x[N], w[N], dx[N] = {};
    for (int64_t c = first; c < at.cols; c += TEAM * N) {
        load<N>(dy, at.dy + place + c);
        load<N>(x, at.x + row * at.cols + c);
        load<N>(w, at.w + c);
        if (at.is_added)
            load<N>(dx, at.dx + place + c);
        for (int j = 0; j < N; j++)
            dx[j] += rstd *
                     (dy[j] * w[j] - means.g - (x[j] - mean) * rstd * means.gx);
        store<N>(at.dx + place + c, dx);
        for (int j = 0; j < N; j++)
            dx[j] = 0;
    }
}

template <int N, int TEAM, class T>
__global__ void norm_grad(norm_grad_operands<T> at)
{
    FR_SHARED(shared);
    __shared__ float room[N_WARPS];
    constexpr int N_TEAMS = THREADS / TEAM;
    const int team = (int)threadIdx.x / TEAM;
    const int64_t n = places_for<N, TEAM>(at.cols);
    float *all = (float *)shared, *sums = all + team * 2 * n;
    for (int64_t c = threadIdx.x; c < N_TEAMS * 2 * n; c += THREADS)
        all[c] = 0;
    __syncthreads();
    for (int64_t row = (int64_t)blockIdx.x * N_TEAMS + team; row < at.rows;
         row += (int64_t)gridDim.x * N_TEAMS) {
        norm_means means = look_at_row<N, TEAM>(at, row, sums, room);
        finish_row<N, TEAM>(at, row, means);
    }
    __syncthreads();
    for (int64_t i = threadIdx.x; i < 2 * at.cols; i += THREADS) {
        const int64_t is_db = i >= at.cols, c = i - is_db * at.cols;
        float sum = 0;
        for (int j = 0; j < N_TEAMS; j++)
            sum += all[(2 * j + is_db) * n + place_of<N, TEAM>(c)];
        at.parts[(int64_t)blockIdx.x * 2 * at.cols + i] = sum;
    }
}

/* sums[c] += parts[0][c] + parts[1][c] + ...; `stride` between the parts.  A
 * block has 32 columns, its warps the parts in turn. */
template <class G>
__global__ __launch_bounds__(ADD_WARPS * 32) void add_parts(
    const float *parts, int64_t stride, int n_parts, G *sums, int64_t cols)
{
    __shared__ float room[ADD_WARPS][32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int64_t c = (int64_t)blockIdx.x * 32 + lane;
    float sum = 0;
#pragma unroll 4
    for (int i = warp; i < n_parts; i += ADD_WARPS)
        sum += c < cols ? parts[i * stride + c] : 0.0F;
    room[warp][lane] = sum;
    __syncthreads();
    if (warp > 0 || c >= cols)
        return;
    for (int i = 1; i < ADD_WARPS; i++)
        sum += room[i][lane];
    store(&sums[c], to_float(sums[c]) + sum);
}

template <class G>
static void run_add_parts(const fr_cuda_launch *launch, const float *parts,
                          int64_t stride, int64_t n_parts, void *sums,
                          int64_t cols)
{
    start({dim3(blocks_of(cols, 32)), ADD_WARPS * 32, 0, launch->stream},
          add_parts<G>, parts, stride, (int)n_parts, (G *)sums, cols);
}

static bool is_packed(const fr_kernel_call *call, int64_t cols, int n_pack)
{
    for (int i = 0; i < 5; i++)
        if (!is_aligned(call->ptr[i]))
            return false;
    return cols % n_pack == 0;
}

template <int N, class T>
static void run_norm(const fr_cuda_launch *launch, const norm_operands<T> &at)
{
    launch_shape shape = {dim3(1), THREADS, 0, launch->stream};
    if (at.cols < LONG_ROW) {
        shape.grid = dim3(blocks_of(at.rows, N_WARPS));
        start(shape, norm<N, 32, T>, at);
    } else {
        shape.grid = dim3((unsigned)at.rows);
        start(shape, norm<N, THREADS, T>, at);
    }
}

template <class T>
static norm_operands<T> operands_of(const fr_kernel_call *call, T)
{
    void *const *ptr = call->ptr;
    return {(const T *)ptr[FR_NORM_FWD_X],
            (const T *)ptr[FR_NORM_FWD_W],
            (const T *)ptr[FR_NORM_FWD_B],
            (T *)ptr[FR_NORM_FWD_Y],
            every_row,
            nullptr,
            (float *)ptr[FR_NORM_FWD_STATS],
            call->instr->matrix.rows,
            call->instr->matrix.cols,
            call->instr->scalar,
            (call->instr->flags & FR_INSTR_RMS) != 0};
}

static row_places heads_of(const fr_instr *instr)
{
    const fr_head_norm_dims *dim = &instr->head_norm;
    return {dim->n_heads, dim->row_heads, dim->first_head};
}

/* In place, each head a row. */
template <class T>
static norm_operands<T> head_operands_of(const fr_kernel_call *call, T)
{
    void *const *ptr = call->ptr;
    const fr_head_norm_dims *dim = &call->instr->head_norm;
    return {(const T *)ptr[FR_HEAD_NORM_FWD_QKV],
            (const T *)ptr[FR_HEAD_NORM_FWD_W],
            nullptr,
            (T *)ptr[FR_HEAD_NORM_FWD_QKV],
            heads_of(call->instr),
            (T *)ptr[FR_HEAD_NORM_FWD_RAW],
            (float *)ptr[FR_HEAD_NORM_FWD_STATS],
            dim->rows * dim->n_heads,
            dim->head_dim,
            call->instr->scalar,
            true};
}

extern "C" fr_status fr_cuda_norm_fwd(const fr_cuda_launch *launch, fr_err *err)
{
    const fr_kernel_call *call = &launch->call;
    bool is_known = with_type(call->instr->dtype, [&](auto t) {
        using T = decltype(t);
        const auto at = operands_of(call, t);
        if (is_packed(call, at.cols, pack_of<T>()))
            run_norm<pack_of<T>(), T>(launch, at);
        else
            run_norm<1, T>(launch, at);
    });
    return is_known ? launched(launch, err) : refuse_dtype(launch, err);
}

extern "C" fr_status fr_cuda_head_norm_fwd(const fr_cuda_launch *launch,
                                           fr_err *err)
{
    const fr_kernel_call *call = &launch->call;
    bool is_known = with_type(call->instr->dtype, [&](auto t) {
        using T = decltype(t);
        const auto at = head_operands_of(call, t);
        if (is_packed(call, at.cols, pack_of<T>()))
            run_norm<pack_of<T>(), T>(launch, at);
        else
            run_norm<1, T>(launch, at);
    });
    return is_known ? launched(launch, err) : refuse_dtype(launch, err);
}

/* dw and db (null: none) are added to. */
template <int N, class T, class G>
static void run_norm_grad(const fr_cuda_launch *launch,
                          const norm_grad_operands<T> &at, uint64_t n_parts,
                          G *dw, G *db)
{
    const bool is_long = at.cols >= LONG_ROW;
    const int64_t n_teams = is_long ? 1 : N_WARPS;
    const uint64_t needed = blocks_of(at.rows, n_teams);
    const uint64_t n_blocks = needed < n_parts ? needed : n_parts;
    const int64_t n_places =
        is_long ? places_for<N, THREADS>(at.cols) : places_for<N, 32>(at.cols);
    launch_shape shape = {dim3((unsigned)n_blocks), THREADS,
                          (size_t)(n_teams * 2 * n_places) * sizeof(float),
                          launch->stream};
    if (is_long)
        start(shape, norm_grad<N, THREADS, T>, at);
    else
        start(shape, norm_grad<N, 32, T>, at);
    G *const sums[2] = {dw, db};
    for (int i = 0; i < 2; i++)
        if (sums[i])
            run_add_parts<G>(launch, at.parts + i * at.cols, 2 * at.cols,
                             (int64_t)n_blocks, sums[i], at.cols);
}

/* Runs `of(t, parts)`, the operands in a type, with parts of the sums of
 * columns in the workspace. */
template <class F>
static fr_status norm_grads(const fr_cuda_launch *launch, int64_t cols,
                            const F &of, void *dw, void *db, fr_err *err)
{
    const fr_kernel_call *call = &launch->call;
    const uint64_t part_bytes = 2 * (uint64_t)cols * sizeof(float);
    const uint64_t most = FR_CUDA_WORKSPACE_BYTES / part_bytes;
    const uint64_t n_parts = most < GRAD_BLOCKS ? most : GRAD_BLOCKS;
    void *workspace = nullptr;
    FR_TRY(take_workspace(launch, (n_parts + !n_parts) * part_bytes, &workspace,
                          err));
    bool is_known = with_types(call->instr, [&](auto t, auto g) {
        using T = decltype(t);
        using G = decltype(g);
        const auto at = of(t, (float *)workspace);
        if (is_packed(call, cols, pack_of<T>()))
            run_norm_grad<pack_of<T>(), T, G>(launch, at, n_parts, (G *)dw,
                                              (G *)db);
        else
            run_norm_grad<1, T, G>(launch, at, n_parts, (G *)dw, (G *)db);
    });
    return is_known ? launched(launch, err) : refuse_dtype(launch, err);
}

extern "C" fr_status fr_cuda_norm_bwd(const fr_cuda_launch *launch, fr_err *err)
{
    void *const *ptr = launch->call.ptr;
    const fr_instr *instr = launch->call.instr;
    auto of = [&](auto t, float *parts) {
        using T = decltype(t);
        return norm_grad_operands<T>{(const T *)ptr[FR_NORM_BWD_DY],
                                     (const T *)ptr[FR_NORM_BWD_X],
                                     (const T *)ptr[FR_NORM_BWD_W],
                                     (const float *)ptr[FR_NORM_BWD_STATS],
                                     (T *)ptr[FR_NORM_BWD_DX],
                                     every_row,
                                     parts,
                                     instr->matrix.rows,
                                     instr->matrix.cols,
                                     (instr->flags & FR_INSTR_RMS) != 0,
                                     (instr->flags & FR_INSTR_ACCUMULATE) != 0};
    };
    return norm_grads(launch, instr->matrix.cols, of, ptr[FR_NORM_BWD_DW],
                      ptr[FR_NORM_BWD_DB], err);
}

extern "C" fr_status fr_cuda_head_norm_bwd(const fr_cuda_launch *launch,
                                           fr_err *err)
{
    void *const *ptr = launch->call.ptr;
    const fr_instr *instr = launch->call.instr;
    const fr_head_norm_dims *dim = &instr->head_norm;
    auto of = [&](auto t, float *parts) {
        using T = decltype(t);
        return norm_grad_operands<T>{(const T *)ptr[FR_HEAD_NORM_BWD_DQKV],
                                     (const T *)ptr[FR_HEAD_NORM_BWD_RAW],
                                     (const T *)ptr[FR_HEAD_NORM_BWD_W],
                                     (const float *)ptr[FR_HEAD_NORM_BWD_STATS],
                                     (T *)ptr[FR_HEAD_NORM_BWD_DQKV],
                                     heads_of(instr),
                                     parts,
                                     dim->rows * dim->n_heads,
                                     dim->head_dim,
                                     true,
                                     false};
    };
    return norm_grads(launch, dim->head_dim, of, ptr[FR_HEAD_NORM_BWD_DW],
                      nullptr, err);
}

/* ---- column sums -------------------------------------------------------- */

enum { SUM_PARTS = 64 }; /* pieces of the rows */

/* parts[piece][c]: a block has 32 N columns, its warps rows in turn. */
template <int N, class T>
__global__ void sum_columns(const T *x, float *parts, int64_t rows,
                            int64_t cols)
{
    __shared__ float room[N_WARPS][32 * N];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int64_t c = ((int64_t)blockIdx.x * 32 + lane) * N;
    const int64_t n = (rows + SUM_PARTS - 1) / SUM_PARTS;
    const int64_t first = blockIdx.y * n;
    const int64_t last = first + n < rows ? first + n : rows;
    float v[N], sum[N] = {};
    for (int64_t row = first + warp; row < last && c < cols; row += N_WARPS) {
        load<N>(v, x + row * cols + c);
        for (int j = 0; j < N; j++)
            sum[j] += v[j];
    }
    for (int j = 0; j < N; j++)
        room[warp][lane * N + j] = sum[j];
    __syncthreads();
    for (int i = threadIdx.x; i < 32 * N; i += THREADS) {
        const int64_t column = (int64_t)blockIdx.x * 32 * N + i;
        float total = 0;
        for (int w = 0; w < N_WARPS; w++)
            total += room[w][i];
        if (column < cols)
            parts[blockIdx.y * cols + column] = total;
    }
}

template <int N, class T>
static void run_sum_columns(const fr_cuda_launch *launch, const void *x,
                            void *parts, int64_t rows, int64_t cols)
{
    launch_shape shape = {dim3(blocks_of(cols, 32 * N), SUM_PARTS), THREADS, 0,
                          launch->stream};
    start(shape, sum_columns<N, T>, (const T *)x, (float *)parts, rows, cols);
}

extern "C" fr_status fr_cuda_add_column_sums(const fr_cuda_launch *launch,
                                             const void *x, void *sums,
                                             int64_t rows, int64_t cols,
                                             fr_err *err)
{
    void *parts = nullptr;
    FR_TRY(take_workspace(launch, SUM_PARTS * (uint64_t)cols * sizeof(float),
                          &parts, err));
    bool is_known = with_types(launch->call.instr, [&](auto t, auto g) {
        using T = decltype(t);
        using G = decltype(g);
        constexpr int N = pack_of<T>();
        if (is_aligned(x) && cols % N == 0)
            run_sum_columns<N, T>(launch, x, parts, rows, cols);
        else
            run_sum_columns<1, T>(launch, x, parts, rows, cols);
        run_add_parts<G>(launch, (const float *)parts, cols, SUM_PARTS, sums,
                         cols);
    });
    return is_known ? launched(launch, err) : refuse_dtype(launch, err);
}

extern "C" fr_status fr_cuda_bias_grad(const fr_cuda_launch *launch,
                                       fr_err *err)
{
    const fr_kernel_call *call = &launch->call;
    return fr_cuda_add_column_sums(
        launch, call->ptr[FR_BIAS_GRAD_DY], call->ptr[FR_BIAS_GRAD_DB],
        call->instr->matrix.rows, call->instr->matrix.cols, err);
}
