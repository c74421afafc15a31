/*
 * permute.cu: rows to the order of their experts and back (kernels_moe.c).
 *
 * Places are found in three launches: how often each expert is chosen in a
 * chunk of copies, the running sums of that over chunks and experts, the rank
 * of each copy in its chunk.  All of that is whole numbers and the same in
 * every run.  Bytes moved per element of w bytes: 2 w of each copy; bound by
 * memory.
 */
#include "kernels/cuda/experts/places.cuh"

enum { THREADS = 256, CHUNK = THREADS, SUM_THREADS = 1024 };

/* ---- places -------------------------------------------------------------- */

/* before[chunk][expert]: copies of the expert in the chunk. */
__global__ void count_copies(copy_list copies, int32_t *before)
{
    FR_SHARED(shared);
    int32_t *counts = (int32_t *)shared;
    const int64_t i = (int64_t)blockIdx.x * CHUNK + threadIdx.x;
    for (int64_t e = threadIdx.x; e < copies.n_experts; e += THREADS)
        counts[e] = 0;
    __syncthreads();
    if (i < copies.n && !is_dropped(copies.chosen[i]))
        atomicAdd(&counts[copies.chosen[i].expert], 1);
    __syncthreads();
    for (int64_t e = threadIdx.x; e < copies.n_experts; e += THREADS)
        before[blockIdx.x * copies.n_experts + e] = counts[e];
}

/* before[chunk][expert]: the place of the expert's first copy in the chunk; by
 * one block. */
__global__ __launch_bounds__(SUM_THREADS) void sum_copies(copy_list copies,
                                                          int64_t n_chunks,
                                                          int32_t *before)
{
    FR_SHARED(shared);
    int32_t *first = (int32_t *)shared;
    const int64_t n = copies.n_experts, per_slot = n / copies.n_slots;
    for (int64_t e = threadIdx.x; e < n; e += SUM_THREADS) {
        int32_t sum = 0;
        for (int64_t chunk = 0; chunk < n_chunks; chunk++) {
            int32_t *at = &before[chunk * n + e], mine = *at;
            *at = sum;
            sum += mine;
        }
        first[e] = sum;
    }
    __syncthreads();
    for (int64_t slot = threadIdx.x; slot < copies.n_slots;
         slot += SUM_THREADS) {
        int32_t sum = (int32_t)(slot * copies.slot_rows);
        for (int64_t e = slot * per_slot; e < (slot + 1) * per_slot; e++) {
            int32_t mine = first[e];
            first[e] = sum;
            sum += mine;
        }
    }
    __syncthreads();
    for (int64_t i = threadIdx.x; i < n_chunks * n; i += SUM_THREADS)
        before[i] += first[i % n];
}

__global__ void place_copies(copy_list copies, const int32_t *before,
                             int32_t *places)
{
    __shared__ int32_t experts[CHUNK];
    const int64_t i = (int64_t)blockIdx.x * CHUNK + threadIdx.x;
    const int32_t mine = i < copies.n ? copies.chosen[i].expert : -1;
    experts[threadIdx.x] = mine;
    __syncthreads();
    if (i >= copies.n)
        return;
    int32_t rank = 0;
    for (unsigned j = 0; j < threadIdx.x; j++)
        rank += experts[j] == mine;
    places[i] =
        mine < 0 ? -1 : before[blockIdx.x * copies.n_experts + mine] + rank;
}

fr_status find_places(const fr_cuda_launch *launch, const copy_list &copies,
                      const int32_t **out, fr_err *err)
{
    const int64_t n_chunks = (copies.n + CHUNK - 1) / CHUNK;
    const int64_t n_before = n_chunks * copies.n_experts;
    const size_t row_bytes = (size_t)copies.n_experts * sizeof(int32_t);
    void *workspace = nullptr;
    FR_TRY(take_workspace(launch,
                          (uint64_t)(copies.n + n_before) * sizeof(int32_t),
                          &workspace, err));
    int32_t *places = (int32_t *)workspace, *before = places + copies.n;
    const dim3 chunks((unsigned)n_chunks);
    start({chunks, THREADS, row_bytes, launch->stream}, count_copies, copies,
          before);
    start({dim3(1), SUM_THREADS, row_bytes, launch->stream}, sum_copies, copies,
          n_chunks, before);
    start({chunks, THREADS, 0, launch->stream}, place_copies, copies, before,
          places);
    *out = places;
    return FR_OK;
}

/* ---- rows ---------------------------------------------------------------- */

/* A block has a copy. */
template <int N, class T>
__global__ void permute(copy_list copies, const int32_t *places, int64_t top_k,
                        int64_t cols, const T *src, T *dst, float *weights)
{
    const int64_t i = blockIdx.x, to = places[i];
    float x[N];
    if (to < 0)
        return;
    for (int64_t c = (int64_t)threadIdx.x * N; c < cols;
         c += (int64_t)THREADS * N) {
        load<N>(x, src + i / top_k * cols + c);
        store<N>(dst + to * cols + c, x);
    }
    if (weights && threadIdx.x == 0)
        weights[to] = copies.chosen[i].weight;
}

/* A block has a row: the sum of its copies, in their order. */
template <int N, class T>
__global__ void unpermute(const int32_t *places, int64_t top_k, int64_t cols,
                          const T *src, T *dst)
{
    const int64_t row = blockIdx.x;
    float x[N];
    for (int64_t c = (int64_t)threadIdx.x * N; c < cols;
         c += (int64_t)THREADS * N) {
        float sum[N] = {};
        for (int64_t k = 0; k < top_k; k++) {
            const int64_t from = places[row * top_k + k];
            if (from < 0)
                continue;
            load<N>(x, src + from * cols + c);
            for (int j = 0; j < N; j++)
                sum[j] += x[j];
        }
        store<N>(dst + row * cols + c, sum);
    }
}

static copy_list copies_of(const fr_kernel_call *call, int64_t rows,
                           int64_t slot_rows)
{
    const fr_permute_dims *dim = &call->instr->permute;
    return {(const choice *)call->ptr[FR_PERMUTE_CHOSEN], rows * dim->top_k,
            dim->n_experts, dim->n_slots, slot_rows};
}

static bool is_packed(const fr_kernel_call *call, int n_pack)
{
    return is_aligned(call->ptr[0]) && is_aligned(call->ptr[1]) &&
           call->instr->permute.cols % n_pack == 0;
}

template <int N, class T>
static void run_permute(const fr_cuda_launch *launch, const copy_list &copies,
                        const int32_t *places)
{
    const fr_permute_dims *dim = &launch->call.instr->permute;
    void *const *ptr = launch->call.ptr;
    start({dim3((unsigned)copies.n), THREADS, 0, launch->stream}, permute<N, T>,
          copies, places, dim->top_k, dim->cols, (const T *)ptr[FR_PERMUTE_SRC],
          (T *)ptr[FR_PERMUTE_DST], (float *)ptr[FR_PERMUTE_WEIGHTS]);
}

extern "C" fr_status fr_cuda_permute(const fr_cuda_launch *launch, fr_err *err)
{
    const fr_kernel_call *call = &launch->call;
    const fr_permute_dims *dim = &call->instr->permute;
    const copy_list copies =
        copies_of(call, dim->rows_in, dim->rows_out / dim->n_slots);
    const int32_t *places = nullptr;
    FR_TRY(find_places(launch, copies, &places, err));
    bool is_known = with_type(call->instr->dtype, [&](auto t) {
        using T = decltype(t);
        if (is_packed(call, pack_of<T>()))
            run_permute<pack_of<T>(), T>(launch, copies, places);
        else
            run_permute<1, T>(launch, copies, places);
    });
    return is_known ? launched(launch, err) : refuse_dtype(launch, err);
}

template <int N, class T>
static void run_unpermute(const fr_cuda_launch *launch, const int32_t *places)
{
    const fr_permute_dims *dim = &launch->call.instr->permute;
    void *const *ptr = launch->call.ptr;
    start({dim3((unsigned)dim->rows_out), THREADS, 0, launch->stream},
          unpermute<N, T>, places, dim->top_k, dim->cols,
          (const T *)ptr[FR_UNPERMUTE_SRC], (T *)ptr[FR_UNPERMUTE_DST]);
}

extern "C" fr_status fr_cuda_unpermute(const fr_cuda_launch *launch,
                                       fr_err *err)
{
    const fr_kernel_call *call = &launch->call;
    const fr_permute_dims *dim = &call->instr->permute;
    const copy_list copies =
        copies_of(call, dim->rows_out, dim->rows_in / dim->n_slots);
    const int32_t *places = nullptr;
    FR_TRY(find_places(launch, copies, &places, err));
    bool is_known = with_type(call->instr->dtype, [&](auto t) {
        using T = decltype(t);
        if (is_packed(call, pack_of<T>()))
            run_unpermute<pack_of<T>(), T>(launch, places);
        else
            run_unpermute<1, T>(launch, places);
    });
    return is_known ? launched(launch, err) : refuse_dtype(launch, err);
}
