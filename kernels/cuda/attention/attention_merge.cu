/*
 * attention_merge.cu: what context parallel ranks do around attention
 * (kernels_merge.c has the formulas): outputs of some keys join those of
 * others, a warp for a row of a head; heads are packed for the ranks that get
 * them.  Bytes moved: all operands once; bound by them.
 */
#include "kernels/cuda/kernel_launch.cuh"

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

/* ---- heads -------------------------------------------------------------- */

/* Returns the column in its row of an element of a group: `i` of the group's
 * columns, which are queries, keys, then values. */
FR_DEVICE int64_t column_of(const fr_heads_dims &dim, int64_t group, int64_t i)
{
    const int64_t widths[] = {dim.q_cols, dim.k_cols,
                              dim.cols - dim.q_cols - dim.k_cols};
    int64_t begin = 0;
    for (int part = 0; part < 2; part++) {
        const int64_t n = widths[part] / dim.n_groups;
        if (i < n)
            return begin + group * n + i;
        begin += widths[part];
        i -= n;
    }
    return begin + group * (widths[2] / dim.n_groups) + i;
}

template <class T>
__global__ void pack(fr_heads_dims dim, bool is_back, const T *src, T *dst)
{
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    const int64_t per_group = dim.cols / dim.n_groups;
    if (i >= dim.rows * dim.cols)
        return;
    const int64_t group = i / per_group / dim.rows;
    const int64_t row = i / per_group % dim.rows;
    const int64_t whole = row * dim.cols + column_of(dim, group, i % per_group);
    if (is_back)
        dst[whole] = src[i];
    else
        dst[i] = src[whole];
}

extern "C" fr_status fr_cuda_pack_heads(const fr_cuda_launch *launch,
                                        fr_err *err)
{
    const fr_heads_dims dim = launch->call.instr->heads;
    const bool is_back = launch->call.instr->flags & FR_INSTR_TRANSPOSE;
    void *const *ptr = launch->call.ptr;
    bool is_known = with_type(launch->call.instr->dtype, [&](auto t) {
        using T = decltype(t);
        start({dim3(blocks_of(dim.rows * dim.cols, THREADS)), THREADS, 0,
               launch->stream},
              pack<T>, dim, is_back, (const T *)ptr[FR_PACK_HEADS_SRC],
              (T *)ptr[FR_PACK_HEADS_DST]);
    });
    return is_known ? launched(launch, err) : refuse_dtype(launch, err);
}
