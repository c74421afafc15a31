/*
 * column_parts.cuh: sums of columns that blocks have left in parts are added
 * in the order of their numbers, so that a rerun gives the same bits.
 */
#ifndef FR_KERNELS_CUDA_NORM_COLUMN_PARTS_CUH
#define FR_KERNELS_CUDA_NORM_COLUMN_PARTS_CUH

#include "kernels/cuda/kernel_launch.cuh"

enum { ADD_WARPS = 32 };

/* Kernels whose blocks each leave a part have as many as fit into the SMs of an
 * H100 or H200 at once.  The number is the same on every GPU, so that sums are
 * too. */
static const int64_t PART_SMS = 132;

/* The destination of the sums of columns: `first` has the first `n_first`,
 * `second` the others. */
template <class G> struct column_sums {
    G *first, *second;
    int64_t n_first, n;
};

/* to[c] += parts[0][c] + parts[1][c] + ...; `stride` between the parts.  A
 * block has 32 columns, its warps the parts in turn. */
template <class G>
__global__ __launch_bounds__(ADD_WARPS * 32) void add_parts(const float *parts,
                                                            int64_t stride,
                                                            int n_parts,
                                                            column_sums<G> to)
{
    __shared__ float room[ADD_WARPS][32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int64_t c = (int64_t)blockIdx.x * 32 + lane;
    float sum = 0;
    if (c < to.n) {
#pragma unroll 8
        for (int i = warp; i < n_parts; i += ADD_WARPS)
            sum += parts[i * stride + c];
    }
    room[warp][lane] = sum;
    __syncthreads();
    if (warp > 0 || c >= to.n)
        return;
    for (int i = 1; i < ADD_WARPS; i++)
        sum += room[i][lane];
    G *at = c < to.n_first ? &to.first[c] : &to.second[c - to.n_first];
    store(at, to_float(*at) + sum);
}

template <class G>
static void run_add_parts(const fr_cuda_launch *launch, const float *parts,
                          int64_t stride, int64_t n_parts,
                          const column_sums<G> &to)
{
    start({dim3(blocks_of(to.n, 32)), ADD_WARPS * 32, 0, launch->stream},
          add_parts<G>, parts, stride, (int)n_parts, to);
}

#endif
