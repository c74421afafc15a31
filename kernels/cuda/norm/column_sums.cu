/*
 * column_sums.cu: sums of columns, which are the gradients of biases.
 *
 * Bytes moved per element of w bytes: w.
 */
#include "kernels/cuda/norm/column_parts.cuh"

enum { THREADS = 256, N_WARPS = THREADS / 32, BATCH = 4, BLOCKS_OF_SM = 4 };

/* parts[piece of the rows][c]: a block has 32 N columns, its warps rows in
 * turn.  BATCH rows are on their way to a thread before it adds the first. */
template <int N, class T>
__global__ __launch_bounds__(THREADS, BLOCKS_OF_SM) void sum_columns(
    const T *x, float *parts, int64_t n, int64_t rows, int64_t cols)
{
    __shared__ float room[N_WARPS][32 * N];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int64_t c = ((int64_t)blockIdx.x * 32 + lane) * N;
    const int64_t first = blockIdx.y * n;
    const int64_t last = first + n < rows ? first + n : rows;
    float v[BATCH][N], sum[N] = {};
    int64_t row = first + warp;
    for (; row + (BATCH - 1) * N_WARPS < last && c < cols;
         row += BATCH * N_WARPS) {
#pragma unroll
        for (int i = 0; i < BATCH; i++)
            load<N>(v[i], x + (row + i * N_WARPS) * cols + c);
#pragma unroll
        for (int i = 0; i < BATCH; i++)
            for (int j = 0; j < N; j++)
                sum[j] += v[i][j];
    }
    for (; row < last && c < cols; row += N_WARPS) {
        load<N>(v[0], x + row * cols + c);
        for (int j = 0; j < N; j++)
            sum[j] += v[0][j];
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

/* Pieces of the rows: enough blocks for all SMs, each with a batch or more for
 * all its warps. */
static int64_t pieces_of(int64_t rows, int64_t n_column_blocks)
{
    const int64_t wanted = PART_SMS * BLOCKS_OF_SM / n_column_blocks;
    const int64_t most = rows / (BATCH * N_WARPS);
    const int64_t n = wanted < most ? wanted : most;
    return n > 0 ? n : 1;
}

template <int N, class T, class G>
static fr_status run(const fr_cuda_launch *launch, const T *x,
                     const column_sums<G> &to, int64_t rows, fr_err *err)
{
    void *parts = nullptr;
    const int64_t n_blocks = blocks_of(to.n, 32 * N);
    const int64_t n_pieces = pieces_of(rows, n_blocks);
    FR_TRY(take_workspace(launch,
                          (uint64_t)n_pieces * (uint64_t)to.n * sizeof(float),
                          &parts, err));
    start({dim3((unsigned)n_blocks, (unsigned)n_pieces), THREADS, 0,
           launch->stream},
          sum_columns<N, T>, x, (float *)parts,
          (rows + n_pieces - 1) / n_pieces, rows, to.n);
    run_add_parts(launch, (const float *)parts, to.n, n_pieces, to);
    return launched(launch, err);
}

extern "C" fr_status fr_cuda_add_column_sums(const fr_cuda_launch *launch,
                                             const void *x, void *sums,
                                             int64_t rows, int64_t cols,
                                             fr_err *err)
{
    fr_status status = FR_OK;
    bool is_known = with_types(launch->call.instr, [&](auto t, auto g) {
        using T = decltype(t);
        using G = decltype(g);
        constexpr int N = pack_of<T>();
        const column_sums<G> to = {(G *)sums, nullptr, cols, cols};
        if (is_aligned(x) && cols % N == 0)
            status = run<N>(launch, (const T *)x, to, rows, err);
        else
            status = run<1>(launch, (const T *)x, to, rows, err);
    });
    return is_known ? status : refuse_dtype(launch, err);
}

extern "C" fr_status fr_cuda_bias_grad(const fr_cuda_launch *launch,
                                       fr_err *err)
{
    const fr_kernel_call *call = &launch->call;
    return fr_cuda_add_column_sums(
        launch, call->ptr[FR_BIAS_GRAD_DY], call->ptr[FR_BIAS_GRAD_DB],
        call->instr->matrix.rows, call->instr->matrix.cols, err);
}
