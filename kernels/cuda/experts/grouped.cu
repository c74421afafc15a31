/*
 * grouped.cu: products of rows with the matrices of their experts
 * (grouped_blas.c).
 *
 * How many rows an expert has is known on the device alone, and a step never
 * waits for it: libraries whose grouped products take their shapes from the
 * host cannot be asked (cublasGemmGroupedBatchedEx, cuBLAS 12.5), and a product
 * of each expert with room for all rows would multiply mostly nothing.  So the
 * first launch lists the tiles of rows that there are, and the second has a
 * block for each that there could be, of which those without a tile end at
 * once.
 *
 * Tiles of 64 by 64, 32 columns of the operands at a time in shared memory, by
 * tensor cores in bf16 and tf32.  Bytes moved: rows once for each 64 columns of
 * the result, matrices once for each 64 rows of their expert.  Bound by the
 * loads to shared memory, which do not overlap the products.
 */
#include "kernels/cuda/kernel_launch.cuh"
#include "kernels/cuda/mma_tiles.cuh"

enum { THREADS = 128, TILE = 64, DEPTH = 32, LIST_THREADS = 256 };

/* ---- which rows ---------------------------------------------------------- */

/* Rows of an expert in a run. */
struct row_piece {
    int32_t first, n;
};

/* At most TILE of them. */
struct row_tile_at {
    int32_t first, n, group;
};

struct row_lists {
    row_piece *pieces; /* [n_runs][n_groups] */
    row_tile_at *tiles;
    int32_t *n_tiles;
};

/* By one block, a thread for a run. */
__global__ void list_tiles(fr_grouped_dims dim, const int32_t *counts,
                           row_lists lists)
{
    FR_SHARED(shared);
    int32_t *n_before = (int32_t *)shared; /* [n_runs + 1]: tiles of runs */
    const int64_t n = dim.n_groups;
    for (int64_t run = threadIdx.x; run < dim.n_runs; run += LIST_THREADS) {
        int32_t first = (int32_t)(run * dim.run_rows), n_tiles = 0;
        for (int64_t g = 0; g < n; g++) {
            const int32_t rows = counts[run * n + g];
            lists.pieces[run * n + g] = {first, rows};
            first += rows;
            n_tiles += (rows + TILE - 1) / TILE;
        }
        n_before[run + 1] = n_tiles;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        n_before[0] = 0;
        for (int64_t run = 0; run < dim.n_runs; run++)
            n_before[run + 1] += n_before[run];
        *lists.n_tiles = n_before[dim.n_runs];
    }
    __syncthreads();
    for (int64_t run = threadIdx.x; run < dim.n_runs; run += LIST_THREADS) {
        row_tile_at *out = lists.tiles + n_before[run];
        for (int64_t g = 0; g < n; g++) {
            const row_piece piece = lists.pieces[run * n + g];
            for (int32_t at = 0; at < piece.n; at += TILE) {
                const int32_t left = piece.n - at;
                *out++ = {piece.first + at, left < TILE ? left : TILE,
                          (int32_t)g};
            }
        }
    }
}

/* Tiles that there are at most. */
static int64_t most_tiles(const fr_grouped_dims *dim)
{
    return dim->n_runs * (dim->run_rows / TILE + dim->n_groups);
}

static fr_status list_rows(const fr_cuda_launch *launch, const void *counts,
                           row_lists *out, fr_err *err)
{
    const fr_grouped_dims *dim = &launch->call.instr->grouped;
    const int64_t n_pieces = dim->n_runs * dim->n_groups;
    void *workspace = nullptr;
    FR_TRY(take_workspace(launch,
                          (uint64_t)n_pieces * sizeof(row_piece) +
                              (uint64_t)most_tiles(dim) * sizeof(row_tile_at) +
                              sizeof(int32_t),
                          &workspace, err));
    out->pieces = (row_piece *)workspace;
    out->tiles = (row_tile_at *)(out->pieces + n_pieces);
    out->n_tiles = (int32_t *)(out->tiles + most_tiles(dim));
    start({dim3(1), LIST_THREADS, (size_t)(dim->n_runs + 1) * sizeof(int32_t),
           launch->stream},
          list_tiles, *dim, (const int32_t *)counts, *out);
    return FR_OK;
}

/* ---- tiles in shared memory ---------------------------------------------- */

/* A matrix in memory: element (i, j) at [i * row + j * col]; one of the two
 * strides is 1. */
template <class T> struct strided {
    const T *at;
    int64_t row, col;
    int64_t n_rows, n_cols; /* that are there: zeros beyond */
};

/* tile[TILE, DEPTH] = the rows from row0 and the columns from col0 on. */
template <class T>
FR_DEVICE void load_tile(T *tile, const strided<T> &x, int64_t row0,
                         int64_t col0)
{
    for (int i = threadIdx.x; i < TILE * DEPTH; i += THREADS) {
        const int r = x.col == 1 ? i / DEPTH : i % TILE;
        const int c = x.col == 1 ? i % DEPTH : i / TILE;
        const bool is_there = row0 + r < x.n_rows && col0 + c < x.n_cols;
        tile[r * stride_of<T, DEPTH> + c] =
            is_there ? x.at[(row0 + r) * x.row + (col0 + c) * x.col] : T{};
    }
}

/* A warp's 16 rows of the result by tensor cores. */
template <class T> struct mma_sums {
    row_tile<TILE> sums[1];

    FR_DEVICE void clear()
    {
        sums[0].clear();
    }

    FR_DEVICE void add(const T *a, const T *b)
    {
        left_rows<T, DEPTH, 1, true> rows;
        rows.load(a, (int)threadIdx.x / 32 * ROWS);
        multiply_rows(sums, rows, b);
    }

    /* f(row, column, sum) of each element. */
    template <class F> FR_DEVICE void each(const F &f) const
    {
        const int first = (int)threadIdx.x / 32 * ROWS;
#pragma unroll
        for (int n = 0; n < TILE / 8; n++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                f(first + row_of(i), col_of(n, i), sums[0].at[n][i]);
    }
};

/* A thread's 8 by 4 elements by fp32 units; rows and columns 8 and 16 apart. */
struct plain_sums {
    float sums[8][4];

    FR_DEVICE void clear()
    {
#pragma unroll
        for (int i = 0; i < 32; i++)
            sums[i / 4][i % 4] = 0.0F;
    }

    FR_DEVICE void add(const float *a, const float *b)
    {
        constexpr int STRIDE = stride_of<float, DEPTH>;
        const float *rows = a + (int)threadIdx.x / 16 * STRIDE;
        const float *cols = b + (int)threadIdx.x % 16 * STRIDE;
        for (int k = 0; k < DEPTH; k++) {
            float y[4];
#pragma unroll
            for (int j = 0; j < 4; j++)
                y[j] = cols[j * 16 * STRIDE + k];
#pragma unroll
            for (int i = 0; i < 8; i++) {
                const float x = rows[i * 8 * STRIDE + k];
#pragma unroll
                for (int j = 0; j < 4; j++)
                    sums[i][j] += x * y[j];
            }
        }
    }

    template <class F> FR_DEVICE void each(const F &f) const
    {
#pragma unroll
        for (int i = 0; i < 8; i++)
#pragma unroll
            for (int j = 0; j < 4; j++)
                f((int)threadIdx.x / 16 + i * 8, (int)threadIdx.x % 16 + j * 16,
                  sums[i][j]);
    }
};

/* Two tiles, and how they are multiplied. */
template <class T, class SUMS> struct multiplier {
    T *a, *b;
    SUMS sums;

    FR_DEVICE void begin(char *shared)
    {
        a = (T *)shared;
        b = a + TILE * stride_of<T, DEPTH>;
        sums.clear();
    }

    /* sums += x[row0.., :] y[col0.., :]^T */
    FR_DEVICE void add(const strided<T> &x, int64_t row0, const strided<T> &y,
                       int64_t col0)
    {
        for (int64_t k = 0; k < x.n_cols; k += DEPTH) {
            __syncthreads();
            load_tile(a, x, row0, k);
            load_tile(b, y, col0, k);
            __syncthreads();
            sums.add(a, b);
        }
    }
};

template <class T> constexpr size_t shared_bytes()
{
    return 2 * TILE * stride_of<T, DEPTH> * sizeof(T);
}

/* ---- by rows: forward, and gradients of rows ----------------------------- */

template <class T> struct grouped_rows {
    row_lists lists;
    const T *x; /* [rows, depth] */
    const T *w; /* of each group: [n, k] */
    T *out;     /* [rows, width] */
    int64_t n, k;
    bool is_backward;
};

template <class T, class SUMS>
__global__ __launch_bounds__(THREADS) void multiply_grouped(grouped_rows<T> of)
{
    FR_SHARED(shared);
    if ((int32_t)blockIdx.x >= *of.lists.n_tiles)
        return;
    const row_tile_at at = of.lists.tiles[blockIdx.x];
    const int64_t width = of.is_backward ? of.k : of.n;
    const int64_t depth = of.is_backward ? of.n : of.k;
    const int64_t col0 = (int64_t)blockIdx.y * TILE;
    const T *w = of.w + at.group * of.n * of.k;
    const strided<T> rows = {of.x + at.first * depth, depth, 1, at.n, depth};
    const strided<T> matrix = {w, of.is_backward ? 1 : of.k,
                               of.is_backward ? of.k : 1, width, depth};
    multiplier<T, SUMS> by;
    by.begin(shared);
    by.add(rows, 0, matrix, col0);
    T *out = of.out + at.first * width + col0;
    by.sums.each([&](int r, int c, float sum) {
        if (r < at.n && col0 + c < width)
            store(&out[r * width + c], sum);
    });
}

/* ---- gradients of the matrices ------------------------------------------- */

template <class T, class G> struct grouped_grad {
    row_lists lists;
    const T *dy, *x; /* [rows, n], [rows, k] */
    G *dw;
    int64_t n, k, n_runs, n_groups;
};

/* A block has a tile of a group's matrix: the rows of all runs, in order. */
template <class T, class G, class SUMS>
__global__ __launch_bounds__(THREADS) void add_grouped(grouped_grad<T, G> of)
{
    FR_SHARED(shared);
    const int64_t group = blockIdx.z;
    const int64_t row0 = (int64_t)blockIdx.x * TILE;
    const int64_t col0 = (int64_t)blockIdx.y * TILE;
    multiplier<T, SUMS> by;
    by.begin(shared);
    for (int64_t run = 0; run < of.n_runs; run++) {
        const row_piece at = of.lists.pieces[run * of.n_groups + group];
        const strided<T> dy = {of.dy + at.first * of.n, 1, of.n, of.n, at.n};
        const strided<T> x = {of.x + at.first * of.k, 1, of.k, of.k, at.n};
        by.add(dy, row0, x, col0);
    }
    G *out = of.dw + group * of.n * of.k;
    by.sums.each([&](int r, int c, float sum) {
        const int64_t row = row0 + r, col = col0 + c;
        if (row < of.n && col < of.k) {
            G *to = &out[row * of.k + col];
            store(to, to_float(*to) + sum);
        }
    });
}

/* ---- host --------------------------------------------------------------- */

/* Calls f(T(), SUMS()) with how a launch's operands are multiplied: float32 is
 * as it is unless the plan wants tf32. */
template <class F> static bool with_sums(const fr_kernel_call *call, const F &f)
{
    bool is_tf32 = call->plan && call->plan->precision == FR_DTYPE_TF32;
    return with_type(call->instr->dtype, [&](auto t) {
        using T = decltype(t);
        if constexpr (sizeof(T) == 4) {
            if (!is_tf32) {
                f(t, plain_sums());
                return;
            }
        }
        f(t, mma_sums<T>());
    });
}

static fr_status by_rows(const fr_cuda_launch *launch, int i_counts,
                         bool is_backward, fr_err *err)
{
    const fr_kernel_call *call = &launch->call;
    const fr_grouped_dims *dim = &call->instr->grouped;
    const int i_out =
        is_backward ? (int)FR_GROUPED_DGRAD_DX : (int)FR_GROUPED_FWD_Y;
    row_lists lists = {};
    FR_TRY(list_rows(launch, call->ptr[i_counts], &lists, err));
    bool is_known = with_sums(call, [&](auto t, auto sums) {
        using T = decltype(t);
        const grouped_rows<T> of = {lists,
                                    (const T *)call->ptr[FR_GROUPED_FWD_X],
                                    (const T *)call->ptr[FR_GROUPED_FWD_W],
                                    (T *)call->ptr[i_out],
                                    dim->n,
                                    dim->k,
                                    is_backward};
        start({dim3((unsigned)most_tiles(dim),
                    blocks_of(is_backward ? dim->k : dim->n, TILE)),
               THREADS, shared_bytes<T>(), launch->stream},
              multiply_grouped<T, decltype(sums)>, of);
    });
    return is_known ? launched(launch, err) : refuse_dtype(launch, err);
}

extern "C" fr_status fr_cuda_grouped_fwd(const fr_cuda_launch *launch,
                                         fr_err *err)
{
    return by_rows(launch, FR_GROUPED_FWD_COUNTS, false, err);
}

extern "C" fr_status fr_cuda_grouped_dgrad(const fr_cuda_launch *launch,
                                           fr_err *err)
{
    return by_rows(launch, FR_GROUPED_DGRAD_COUNTS, true, err);
}

extern "C" fr_status fr_cuda_grouped_wgrad(const fr_cuda_launch *launch,
                                           fr_err *err)
{
    const fr_kernel_call *call = &launch->call;
    const fr_grouped_dims *dim = &call->instr->grouped;
    row_lists lists = {};
    FR_TRY(list_rows(launch, call->ptr[FR_GROUPED_WGRAD_COUNTS], &lists, err));
    bool is_known = with_sums(call, [&](auto t, auto sums) {
        with_type(call->instr->grad_dtype, [&](auto g) {
            using T = decltype(t);
            using G = decltype(g);
            const grouped_grad<T, G> of = {
                lists,
                (const T *)call->ptr[FR_GROUPED_WGRAD_DY],
                (const T *)call->ptr[FR_GROUPED_WGRAD_X],
                (G *)call->ptr[FR_GROUPED_WGRAD_DW],
                dim->n,
                dim->k,
                dim->n_runs,
                dim->n_groups};
            start({dim3(blocks_of(dim->n, TILE), blocks_of(dim->k, TILE),
                        (unsigned)dim->n_groups),
                   THREADS, shared_bytes<T>(), launch->stream},
                  add_grouped<T, G, decltype(sums)>, of);
        });
    });
    return is_known ? launched(launch, err) : refuse_dtype(launch, err);
}
