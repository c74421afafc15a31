/*
 * norm.cu: LayerNorm and RMSNorm (kernels_norm.c), of rows and of heads;
 * norm_grad.cu has the gradients.
 *
 * A team of threads has a row: a warp, or a block where rows are long.  It
 * keeps the row in registers, so 2 w bytes are moved per element of w bytes.
 * Rows that do not fill packs of 16 bytes, or are too long for the registers
 * of a block, are read again from the caches.
 */
#include "kernels/cuda/norm/norm_rows.cuh"

enum { THREADS = 256, N_WARPS = THREADS / 32 };

/* Columns that a block has alone, of rows that are not kept. */
static const int64_t LONG_ROW = 1024;

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

/* The value of a norm at N columns of a row, written to y. */
template <int N, class T>
FR_DEVICE void write_normed(const norm_operands<T> &at, int64_t row, int64_t c,
                            float (&v)[N], float mean, float rstd)
{
    float w[N], b[N] = {};
    load<N>(w, at.w + c);
    if (at.b)
        load<N>(b, at.b + c);
    if (at.raw)
        store<N>(at.raw + row * at.cols + c, v);
#pragma unroll
    for (int j = 0; j < N; j++)
        v[j] = (v[j] - mean) * rstd * w[j] + b[j];
    store<N>(at.y + at.places(row) * at.cols + c, v);
}

/* Memory is read once: a thread keeps its PACKS packs of the row, all of which
 * are on their way before the first is used. */
template <int TEAM, int PACKS, class T>
__global__ __launch_bounds__(THREADS,
                             PACKS <= 4 ? 4
                                        : 2) void norm_kept(norm_operands<T> at)
{
    constexpr int N = pack_of<T>();
    __shared__ float room[N_WARPS];
    const int64_t row =
        (int64_t)blockIdx.x * (THREADS / TEAM) + threadIdx.x / TEAM;
    const int first = (int)threadIdx.x % TEAM * N, cols = (int)at.cols;
    float v[N], mean = 0, sum = 0;
    uint4 kept[PACKS];
    if (row >= at.rows)
        return; /* a whole team: a block has one team, or teams are warps */
    const T *x = at.x + at.places(row) * at.cols;
#pragma unroll
    for (int p = 0; p < PACKS; p++)
        kept[p] = first + p * TEAM * N < cols
                      ? load_words(x + first + p * TEAM * N)
                      : uint4{0, 0, 0, 0};
    if (!at.is_rms) {
#pragma unroll
        for (int p = 0; p < PACKS; p++) {
            widen<T>(v, kept[p]);
            for (int j = 0; j < N; j++)
                sum += v[j];
        }
        mean = team_sum<TEAM>(sum, room) / (float)cols;
    }
    sum = 0;
#pragma unroll
    for (int p = 0; p < PACKS; p++) {
        const bool is_here = first + p * TEAM * N < cols;
        forget_floats(&kept[p]);
        widen<T>(v, kept[p]);
        for (int j = 0; j < N; j++)
            sum += is_here ? (v[j] - mean) * (v[j] - mean) : 0.0F;
    }
    float variance = team_sum<TEAM>(sum, room) / (float)cols;
    float rstd = 1.0F / sqrtf(variance + (float)at.eps);
#pragma unroll
    for (int p = 0; p < PACKS; p++) {
        forget_floats(&kept[p]);
        widen<T>(v, kept[p]);
        if (first + p * TEAM * N < cols)
            write_normed<N>(at, row, first + p * TEAM * N, v, mean, rstd);
    }
    if (threadIdx.x % TEAM == 0) {
        at.stats[row] = mean;
        at.stats[at.rows + row] = rstd;
    }
}

/* Rows of any length, one column or pack at a time, read three times. */
template <int N, int TEAM, class T> __global__ void norm(norm_operands<T> at)
{
    __shared__ float room[N_WARPS];
    const int64_t row =
        (int64_t)blockIdx.x * (THREADS / TEAM) + threadIdx.x / TEAM;
    const int64_t first = (int64_t)(threadIdx.x % TEAM) * N;
    float v[N], mean = 0, sum = 0;
    if (row >= at.rows)
        return; /* a whole team: a block has one team, or teams are warps */
    const T *x = at.x + at.places(row) * at.cols;
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
    float variance = team_sum<TEAM>(sum, room) / (float)at.cols;
    float rstd = 1.0F / sqrtf(variance + (float)at.eps);
    for (int64_t c = first; c < at.cols; c += TEAM * N) {
        load<N>(v, x + c);
        write_normed<N>(at, row, c, v, mean, rstd);
    }
    if (threadIdx.x % TEAM == 0) {
        at.stats[row] = mean;
        at.stats[at.rows + row] = rstd;
    }
}

template <int TEAM, int PACKS, class T>
static bool start_kept(const fr_cuda_launch *launch, const norm_operands<T> &at)
{
    start(
        {dim3(blocks_of(at.rows, THREADS / TEAM)), THREADS, 0, launch->stream},
        norm_kept<TEAM, PACKS, T>, at);
    return true;
}

/* Rows of whole packs that the registers of a warp, or of a block, have room
 * for; false: too long. */
template <class T>
static bool run_kept(const fr_cuda_launch *launch, const norm_operands<T> &at)
{
    const unsigned n_warp = blocks_of(at.cols, 32 * pack_of<T>());
    const unsigned n_block = blocks_of(at.cols, THREADS * pack_of<T>());
    return n_warp <= 1    ? start_kept<32, 1>(launch, at)
           : n_warp <= 2  ? start_kept<32, 2>(launch, at)
           : n_warp <= 3  ? start_kept<32, 3>(launch, at)
           : n_warp <= 4  ? start_kept<32, 4>(launch, at)
           : n_warp <= 6  ? start_kept<32, 6>(launch, at)
           : n_warp <= 7  ? start_kept<32, 7>(launch, at)
           : n_warp <= 8  ? start_kept<32, 8>(launch, at)
           : n_block <= 2 ? start_kept<THREADS, 2>(launch, at)
           : n_block <= 4 ? start_kept<THREADS, 4>(launch, at)
           : n_block <= 8 ? start_kept<THREADS, 8>(launch, at)
                          : false;
}

template <class T>
static void run_norm(const fr_cuda_launch *launch, const norm_operands<T> &at)
{
    const bool has_packs = is_packed(&launch->call, at.cols, pack_of<T>());
    launch_shape shape = {dim3((unsigned)at.rows), THREADS, 0, launch->stream};
    if (has_packs && run_kept(launch, at))
        return;
    if (has_packs) {
        start(shape, norm<pack_of<T>(), THREADS, T>, at);
    } else if (at.cols < LONG_ROW) {
        shape.grid = dim3(blocks_of(at.rows, N_WARPS));
        start(shape, norm<1, 32, T>, at);
    } else {
        start(shape, norm<1, THREADS, T>, at);
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
        run_norm(launch, operands_of(call, t));
    });
    return is_known ? launched(launch, err) : refuse_dtype(launch, err);
}

extern "C" fr_status fr_cuda_head_norm_fwd(const fr_cuda_launch *launch,
                                           fr_err *err)
{
    const fr_kernel_call *call = &launch->call;
    bool is_known = with_type(call->instr->dtype, [&](auto t) {
        run_norm(launch, head_operands_of(call, t));
    });
    return is_known ? launched(launch, err) : refuse_dtype(launch, err);
}
