/*
 * attention_merge.cu: attention over some keys joins that over others
 * (kernels_merge.c has the formula).  A warp has a row of a head; bytes moved:
 * both outputs once, the sum written; bound by them.
 */
#include "runtime/kernels_cuda/kernel_launch.cuh"

enum { THREADS = 256, N_WARPS = THREADS / 32 };

struct merge_dims {
    int64_t rows, seq;
    int n_heads, n;
};

template <class T>
__global__ void merge(merge_dims dim, const T *part, const float *lse, T *sum,
                      float *sum_lse)
{
    const int64_t i = (int64_t)blockIdx.x * N_WARPS + threadIdx.x / 32;
    if (i >= dim.rows * dim.n_heads)
        return;
    const int64_t row = i / dim.n_heads, h = i % dim.n_heads;
    const int64_t at =
        (row / dim.seq * dim.n_heads + h) * dim.seq + row % dim.seq;
    const float mine = sum_lse[at], other = lse[at];
    if (other == -INFINITY)
        return;
    const float most = mine > other ? mine : other;
    const float a = expf(mine - most), b = expf(other - most);
    for (int c = threadIdx.x % 32; c < dim.n; c += 32)
        store(&sum[i * dim.n + c],
              to_float(sum[i * dim.n + c]) * (a / (a + b)) +
                  to_float(part[i * dim.n + c]) * (b / (a + b)));
    __syncwarp();
    if (threadIdx.x % 32 == 0)
        sum_lse[at] = most + logf(a + b);
}

extern "C" fr_status fr_cuda_attn_merge(const fr_cuda_launch *launch,
                                        fr_err *err)
{
    const fr_merge_dims *d = &launch->call.instr->merge;
    void *const *ptr = launch->call.ptr;
    const merge_dims dim = {d->rows, d->seq, (int)d->q_heads, (int)d->v_dim};
    bool is_known = with_type(launch->call.instr->dtype, [&](auto t) {
        using T = decltype(t);
        start({dim3(blocks_of(d->rows * d->q_heads, N_WARPS)), THREADS, 0,
               launch->stream},
              merge<T>, dim, (const T *)ptr[FR_ATTN_MERGE_O],
              (const float *)ptr[FR_ATTN_MERGE_LSE],
              (T *)ptr[FR_ATTN_MERGE_SUM], (float *)ptr[FR_ATTN_MERGE_SUM_LSE]);
    });
    return is_known ? launched(launch, err) : refuse_dtype(launch, err);
}
