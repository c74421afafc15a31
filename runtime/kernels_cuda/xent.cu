/*
 * xent.cu: fused softmax cross entropy (kernels_xent.c), whole or over a
 * vocabulary that tensor parallelism has cut.
 *
 * A block has a row of logits, finds maximum and sum in one look and writes
 * the gradients over the logits in a second: 3 w bytes moved per logit of w
 * bytes (read, read, written; the rows that are in work, about 100 KB each,
 * fit into the second cache, so memory sees 2 w).  No other copy of them.
 */
#include "runtime/kernels_cuda/kernel_launch.cuh"

enum { THREADS = 512, N_WARPS = THREADS / 32 };

template <class T> struct xent_operands {
    T *logits;
    const int32_t *targets;
    int64_t rows, cols;
    int64_t vocab, first; /* global; that of the local column 0 */
    int64_t n_valid;      /* local columns in the vocabulary */
    const float *max, *sums;
    float scale;
};

/* Local column of the row's target; -1: in another shard, or ignored. */
template <class T>
FR_DEVICE int64_t target_column(const xent_operands<T> &at, int64_t row)
{
    int64_t target = at.targets[row], column = target - at.first;
    bool is_here =
        target >= 0 && target < at.vocab && column >= 0 && column < at.n_valid;
    return is_here ? column : -1;
}

template <class T>
FR_DEVICE bool is_ignored(const xent_operands<T> &at, int64_t row)
{
    return at.targets[row] < 0 || at.targets[row] >= at.vocab;
}

/* A running maximum and the sum of exp(x - max). */
struct softmax_state {
    float max, sum;
};

template <int N>
FR_DEVICE void softmax_add(softmax_state *state, const float (&x)[N])
{
    float max = state->max, sum = 0;
    for (int j = 0; j < N; j++)
        max = max_of()(max, x[j]);
    for (int j = 0; j < N; j++)
        sum += expf(x[j] - max);
    if (max != state->max)
        sum += state->sum * expf(state->max - max);
    else
        sum += state->sum;
    *state = {max, sum};
}

/* f(x[N]) of all; columns that are in no whole pack one by one, f(x[1]). */
template <int N, class T, class F>
FR_DEVICE void for_row(const T *x, int64_t n, F f)
{
    const int64_t n_packed = n / N * N;
    float v[N];
    for (int64_t c = (int64_t)threadIdx.x * N; c < n_packed; c += THREADS * N) {
        load<N>(v, x + c);
        f(v);
    }
    for (int64_t c = n_packed + threadIdx.x; c < n; c += THREADS) {
        const float one[1] = {to_float(x[c])};
        f(one);
    }
}

/* Of the valid columns of a row, over the block. */
template <int N, class T>
FR_DEVICE softmax_state softmax_of_row(const T *x, int64_t n, float *room)
{
    softmax_state mine = {-3.4e38F, 0.0F};
    for_row<N>(x, n, [&](const auto &v) { softmax_add(&mine, v); });
    float max = team_reduce<THREADS>(mine.max, room, max_of());
    float sum = team_sum<THREADS>(mine.sum * expf(mine.max - max), room);
    return {max, sum};
}

/* exp(x - max) * factor over x; the target less `scale`; padding 0. */
template <int N, class T>
FR_DEVICE void write_grad(const xent_operands<T> &at, int64_t row, float max,
                          float sum)
{
    T *x = at.logits + row * at.cols;
    const int64_t target = target_column(at, row);
    const int64_t n_packed = at.n_valid / N * N;
    const float factor = is_ignored(at, row) ? 0.0F : at.scale / sum;
    const bool is_kept = !is_ignored(at, row);
    float v[N];
    for (int64_t c = (int64_t)threadIdx.x * N; c < n_packed; c += THREADS * N) {
        load<N>(v, x + c);
        for (int j = 0; j < N; j++) {
            v[j] = is_kept ? expf(v[j] - max) * factor : 0.0F;
            v[j] -= c + j == target ? at.scale : 0.0F;
        }
        store<N>(x + c, v);
    }
    for (int64_t c = n_packed + threadIdx.x; c < at.cols; c += THREADS) {
        float y = c < at.n_valid && is_kept
                      ? expf(to_float(x[c]) - max) * factor
                      : 0.0F;
        store(&x[c], y - (c == target ? at.scale : 0.0F));
    }
}

template <int N, class T>
__global__ void xent(xent_operands<T> at, double *losses)
{
    __shared__ float room[N_WARPS];
    const int64_t row = blockIdx.x;
    const T *x = at.logits + row * at.cols;
    const int64_t target = target_column(at, row);
    const float logit = target >= 0 ? to_float(x[target]) : 0.0F;
    softmax_state all = softmax_of_row<N>(x, at.n_valid, room);
    write_grad<N>(at, row, all.max, all.sum);
    if (threadIdx.x == 0)
        losses[row] =
            target >= 0 ? log((double)all.sum) + (double)all.max - (double)logit
                        : 0.0;
}

template <int N, class T>
__global__ void xent_max(xent_operands<T> at, float *out)
{
    __shared__ float room[N_WARPS];
    const int64_t row = blockIdx.x;
    float max = -INFINITY;
    for_row<N>((const T *)at.logits + row * at.cols, at.n_valid,
               [&](const auto &v) {
                   for (float one : v)
                       max = max_of()(max, one);
               });
    max = team_reduce<THREADS>(max, room, max_of());
    if (threadIdx.x == 0)
        out[row] = max;
}

template <int N, class T>
__global__ void xent_sum(xent_operands<T> at, float *out)
{
    __shared__ float room[N_WARPS];
    const int64_t row = blockIdx.x;
    const T *x = at.logits + row * at.cols;
    const float max = at.max[row];
    float sum = 0;
    for_row<N>(x, at.n_valid, [&](const auto &v) {
        for (float one : v)
            sum += expf(one - max);
    });
    sum = team_sum<THREADS>(sum, room);
    if (threadIdx.x == 0) {
        const int64_t target = target_column(at, row);
        out[row] = sum;
        out[at.rows + row] = target >= 0 ? to_float(x[target]) : 0.0F;
    }
}

template <int N, class T>
__global__ void xent_grad(xent_operands<T> at, double *losses)
{
    const int64_t row = blockIdx.x;
    const float max = at.max[row], sum = at.sums[row];
    write_grad<N>(at, row, max, sum);
    if (threadIdx.x == 0)
        losses[row] = is_ignored(at, row) ? 0.0
                                          : log((double)sum) + (double)max -
                                                (double)at.sums[at.rows + row];
}

/* loss_sum += scale * the rows' losses, in a fixed order. */
__global__ void sum_losses(const double *losses, int64_t rows, double scale,
                           fr_step_scalars *step)
{
    __shared__ double room[N_WARPS];
    double sum = 0;
    for (int64_t row = threadIdx.x; row < rows; row += THREADS)
        sum += losses[row];
    sum = team_sum<THREADS>(sum, room);
    if (threadIdx.x == 0)
        step->loss_sum += scale * sum;
}

template <class T>
static xent_operands<T> operands_of(const fr_kernel_call *call)
{
    const fr_loss_dims *dim = &call->instr->loss;
    const bool is_whole = call->instr->op == FR_OP_XENT;
    const int64_t first = is_whole ? 0 : call->coordinate * dim->n_local,
                  left = dim->vocab - first;
    const bool has_max =
        call->instr->op == FR_OP_XENT_SUM || call->instr->op == FR_OP_XENT_GRAD;
    return {(T *)call->ptr[0],
            (const int32_t *)call->ptr[1] + dim->rows,
            dim->rows,
            dim->n_local,
            dim->vocab,
            first,
            left < 0              ? 0
            : left < dim->n_local ? left
                                  : dim->n_local,
            has_max ? (const float *)call->ptr[2] : nullptr,
            (const float *)call->ptr[3],
            (float)call->instr->scalar};
}

/* Gradients over the logits, then the loss; `step`: NULL, not counted here. */
static void add_losses(const fr_cuda_launch *launch, const double *losses,
                       void *step)
{
    launch_shape shape = {dim3(1), THREADS, 0, launch->stream};
    if (step && !(launch->call.instr->flags & FR_INSTR_UNTOLD))
        start(shape, sum_losses, losses, launch->call.instr->loss.rows,
              launch->call.instr->scalar, (fr_step_scalars *)step);
}

template <int N, class T>
static void run(const fr_cuda_launch *launch, double *losses)
{
    const fr_kernel_call *call = &launch->call;
    xent_operands<T> at = operands_of<T>(call);
    launch_shape shape = {dim3((unsigned)at.rows), THREADS, 0, launch->stream};
    switch (call->instr->op) {
    case FR_OP_XENT_MAX:
        start(shape, xent_max<N, T>, at, (float *)call->ptr[2]);
        break;
    case FR_OP_XENT_SUM:
        start(shape, xent_sum<N, T>, at, (float *)call->ptr[3]);
        break;
    case FR_OP_XENT_GRAD:
        start(shape, xent_grad<N, T>, at, losses);
        add_losses(launch, losses,
                   call->coordinate == 0 ? call->ptr[4] : nullptr);
        break;
    default:
        start(shape, xent<N, T>, at, losses);
        /* Other ranks have the same logits. */
        add_losses(launch, losses,
                   call->tp_coordinate == 0 ? call->ptr[2] : nullptr);
    }
}

static fr_status any(const fr_cuda_launch *launch, fr_err *err)
{
    const fr_instr *instr = launch->call.instr;
    void *losses = nullptr;
    FR_TRY(take_workspace(launch, (uint64_t)instr->loss.rows * sizeof(double),
                          &losses, err));
    bool is_known = with_type(instr->dtype, [&](auto t) {
        using T = decltype(t);
        constexpr int N = pack_of<T>();
        if (is_aligned(launch->call.ptr[0]) && instr->loss.n_local % N == 0)
            run<N, T>(launch, (double *)losses);
        else
            run<1, T>(launch, (double *)losses);
    });
    return is_known ? launched(launch, err) : refuse_dtype(launch, err);
}

extern "C" fr_status fr_cuda_xent(const fr_cuda_launch *launch, fr_err *err)
{
    return any(launch, err);
}

extern "C" fr_status fr_cuda_xent_max(const fr_cuda_launch *launch, fr_err *err)
{
    return any(launch, err);
}

extern "C" fr_status fr_cuda_xent_sum(const fr_cuda_launch *launch, fr_err *err)
{
    return any(launch, err);
}

extern "C" fr_status fr_cuda_xent_grad(const fr_cuda_launch *launch,
                                       fr_err *err)
{
    return any(launch, err);
}
