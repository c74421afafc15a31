/*
 * norm_grad.cu: gradients of LayerNorm and RMSNorm (kernels_norm.c), of rows
 * and of heads.
 *
 * A team of threads (a warp, or a block) goes through rows and keeps the sums
 * of their columns; these go to the workspace, whose parts are added in order.
 * Rows of whole packs, of one pack a thread, stay in registers: 3 w bytes are
 * moved per element of w bytes (4 w with ACCUMULATE).  Others are read again
 * from the caches.
 */
#include "kernels/cuda/norm/column_parts.cuh"
#include "kernels/cuda/norm/norm_rows.cuh"

enum { THREADS = 256, N_WARPS = THREADS / 32 };

/* Teams of rows that are kept: a warp, or a block whose threads have registers
 * for a second row. */
enum { WARP_TEAM = 32, BLOCK_TEAM = 768, WARP_BLOCKS_OF_SM = 3 };

/* For rows that are not kept: the number of columns from which a row is long,
 * and the most blocks. */
static const int64_t LONG_ROW = 1024;
static const uint64_t GRAD_BLOCKS = 512;

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

/* A thread's pack of a row. */
struct grad_pack {
    uint4 dy, x, dx;
    float mean, rstd;
};

/* Columns from c on of a row; `place`: theirs in dy and dx. */
template <class T>
FR_DEVICE void load_pack(const norm_grad_operands<T> &at, int64_t row,
                         int64_t place, int c, grad_pack *out)
{
    const uint4 nothing = {0, 0, 0, 0};
    const bool is_here = c < (int)at.cols;
    out->dy = is_here ? load_words(at.dy + place) : nothing;
    out->x = is_here ? load_words(at.x + row * at.cols + c) : nothing;
    out->dx = is_here && at.is_added ? load_words(at.dx + place) : nothing;
    out->mean = at.stats[row];
    out->rstd = at.stats[at.rows + row];
}

/* The sums of dw and db of a thread: of its own columns, over all its rows. */
template <int N> struct own_sums {
    float dw[N], db[N];
};

/* The pack's share of the row's means, not divided yet, and of dw and db. */
template <class T, int N>
FR_DEVICE norm_means add_pack(const grad_pack &pack, uint4 w_words,
                              own_sums<N> *own)
{
    float dy[N], x[N], w[N];
    norm_means sum = {0, 0};
    widen<T>(dy, pack.dy);
    widen<T>(x, pack.x);
    widen<T>(w, w_words);
#pragma unroll
    for (int j = 0; j < N; j++) {
        const float xhat = (x[j] - pack.mean) * pack.rstd, g = dy[j] * w[j];
        sum.g += g;
        sum.gx += g * xhat;
        own->dw[j] += dy[j] * xhat;
        own->db[j] += dy[j];
    }
    return sum;
}

/* dx, which may be dy itself (own columns only). */
template <class T>
FR_DEVICE void finish_pack(const norm_grad_operands<T> &at, int64_t place,
                           const grad_pack &pack, uint4 w_words,
                           norm_means means)
{
    constexpr int N = pack_of<T>();
    float dy[N], x[N], w[N], dx[N];
    widen<T>(dy, pack.dy);
    widen<T>(x, pack.x);
    widen<T>(w, w_words);
    widen<T>(dx, pack.dx);
#pragma unroll
    for (int j = 0; j < N; j++)
        dx[j] += pack.rstd * (dy[j] * w[j] - means.g -
                              (x[j] - pack.mean) * pack.rstd * means.gx);
    store<N>(at.dx + place, dx);
}

/* Over all warps of the block.  One barrier is enough where calls in turn take
 * one `room` and the other. */
FR_DEVICE norm_means block_sum(norm_means x, norm_means *room)
{
    x = {warp_sum(x.g), warp_sum(x.gx)};
    if (threadIdx.x % 32 == 0)
        room[threadIdx.x / 32] = x;
    __syncthreads();
    x = room[0];
    for (int i = 1; i < (int)blockDim.x / 32; i++) {
        x.g += room[i].g;
        x.gx += room[i].gx;
    }
    return x;
}

/* part[0..N) and part[cols..cols + N). */
template <int N>
FR_DEVICE void write_own(const own_sums<N> &own, float *part, int64_t cols)
{
    store<N>(part, own.dw);
    store<N>(part + cols, own.db);
}

/* The sums of a block's warps, which have the same columns, in order. */
template <int N>
FR_DEVICE void write_teams(const own_sums<N> &own, float *part, int64_t cols)
{
    alignas(16) __shared__ float all[N_WARPS][2][32 * N];
    const int thread = (int)threadIdx.x;
    store<N>(&all[thread / 32][0][thread % 32 * N], own.dw);
    store<N>(&all[thread / 32][1][thread % 32 * N], own.db);
    __syncthreads();
    for (int i = thread; i < 2 * (int)cols; i += THREADS) {
        const int is_db = i >= (int)cols, c = i - is_db * (int)cols;
        float sum = 0;
        for (int j = 0; j < N_WARPS; j++)
            sum += all[j][is_db][c];
        part[i] = sum;
    }
}

/* A team of up to TEAM threads has one pack a thread of each of its rows, and
 * keeps in registers what it adds up of their columns.  While a block works on
 * a row the next one is on its way; of warps there are enough for that without.
 */
template <int TEAM, class T>
__global__
__launch_bounds__(TEAM == WARP_TEAM ? THREADS : TEAM,
                  TEAM == WARP_TEAM
                      ? WARP_BLOCKS_OF_SM
                      : 1) void norm_grad_kept(norm_grad_operands<T> at)
{
    constexpr bool IS_WARP = TEAM == WARP_TEAM;
    constexpr int N = pack_of<T>(), N_TEAMS = IS_WARP ? N_WARPS : 1;
    __shared__ norm_means room[2][TEAM / 32];
    const int thread = (int)threadIdx.x,
              c = (IS_WARP ? thread % 32 : thread) * N;
    const bool is_here = c < (int)at.cols;
    const uint4 w = is_here ? load_words(at.w + c) : uint4{0, 0, 0, 0};
    const int64_t stride = (int64_t)gridDim.x * N_TEAMS;
    int64_t row = (int64_t)blockIdx.x * N_TEAMS + (IS_WARP ? thread / 32 : 0);
    own_sums<N> own = {};
    grad_pack now, next = {};
    auto place_at = [&](int64_t i) {
        return (IS_WARP ? at.places(i) : i) * at.cols + c;
    };
    if (!IS_WARP && row < at.rows)
        load_pack(at, row, place_at(row), c, &next);
    for (int i = 0; row < at.rows; row += stride, i++) {
        now = next;
        if (IS_WARP)
            load_pack(at, row, place_at(row), c, &now);
        else if (row + stride < at.rows)
            load_pack(at, row + stride, place_at(row + stride), c, &next);
        norm_means sum = add_pack<T>(now, w, &own);
        if constexpr (IS_WARP)
            sum = {warp_sum(sum.g), warp_sum(sum.gx)};
        else
            sum = block_sum(sum, room[i % 2]);
        forget_floats(&now.dy);
        forget_floats(&now.x);
        const float n = (float)at.cols;
        if (is_here)
            finish_pack(at, place_at(row), now, w,
                        {at.is_rms ? 0.0F : sum.g / n, sum.gx / n});
    }
    float *part = at.parts + (int64_t)blockIdx.x * 2 * at.cols;
    if constexpr (IS_WARP)
        write_teams(own, part, at.cols);
    else if (is_here)
        write_own(own, part + c, at.cols);
}

/* ---- rows of any length: read twice, the sums in shared memory ----------- */

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

/* ---- launches ------------------------------------------------------------
 */

/* Rows that are kept: at least so many for each part, or writing the parts and
 * adding them is as much work as the rows. */
static const uint64_t ROWS_OF_PART = 8;

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Returns how many parts there are; 0: such rows are not kept.  Blocks have
 * rows that follow each other; heads, whose rows do not, fit into warps. */
template <class T>
static uint64_t run_kept(const fr_cuda_launch *launch,
                         const norm_grad_operands<T> &at, uint64_t most)
{
    const unsigned team = 32 * blocks_of(at.cols, 32 * pack_of<T>());
    const bool is_warp = team == WARP_TEAM;
    const unsigned n_threads = is_warp ? (unsigned)THREADS : team;
    if (team > BLOCK_TEAM || (!is_warp && at.places.row_heads != 1))
        return 0;
    const uint64_t needed = blocks_of(at.rows, n_threads / team);
    const uint64_t sms = PART_SMS, worth = needed / ROWS_OF_PART;
    const uint64_t n_resident =
        sms * (is_warp ? (unsigned)WARP_BLOCKS_OF_SM : BLOCK_TEAM / n_threads);
    const uint64_t n = smaller(smaller(n_resident, worth > sms ? worth : sms),
                               smaller(needed, most));
    start({dim3((unsigned)n), n_threads, 0, launch->stream},
          is_warp ? norm_grad_kept<WARP_TEAM, T>
                  : norm_grad_kept<BLOCK_TEAM, T>,
          at);
    return n;
}

template <int N, int TEAM, class T>
static uint64_t run_any(const fr_cuda_launch *launch,
                        const norm_grad_operands<T> &at, uint64_t most)
{
    const int64_t n_teams = THREADS / TEAM;
    const uint64_t n =
        smaller(smaller(blocks_of(at.rows, n_teams), GRAD_BLOCKS), most);
    start({dim3((unsigned)n), THREADS,
           (size_t)(n_teams * 2 * places_for<N, TEAM>(at.cols)) * sizeof(float),
           launch->stream},
          norm_grad<N, TEAM, T>, at);
    return n;
}

/* At most `most` parts; dw and db (null: none) are added to. */
template <class T, class G>
static void run_norm_grad(const fr_cuda_launch *launch,
                          const norm_grad_operands<T> &at, uint64_t most,
                          const column_sums<G> &to)
{
    const bool has_packs = is_packed(&launch->call, at.cols, pack_of<T>());
    uint64_t n_parts = has_packs ? run_kept(launch, at, most) : 0;
    if (n_parts == 0)
        n_parts = has_packs ? run_any<pack_of<T>(), THREADS>(launch, at, most)
                  : at.cols < LONG_ROW ? run_any<1, 32>(launch, at, most)
                                       : run_any<1, THREADS>(launch, at, most);
    run_add_parts(launch, at.parts, 2 * at.cols, (int64_t)n_parts, to);
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
    void *workspace = nullptr;
    FR_TRY(
        take_workspace(launch, (most + !most) * part_bytes, &workspace, err));
    bool is_known = with_types(call->instr, [&](auto t, auto g) {
        using T = decltype(t);
        using G = decltype(g);
        run_norm_grad<T, G>(launch, of(t, (float *)workspace), most,
                            {(G *)dw, (G *)db, cols, db ? 2 * cols : cols});
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
