/*
 * powersgd.cu: what PowerSGD needs beyond products (kernels_powersgd.c).
 * Bound by reading P a few times: small beside the gradient's products.
 */
#include "kernels/cuda/kernel_launch.cuh"

extern "C" {
#include "plan/codec/compressor.h"
#include "kernels/cuda/compress_cuda.h"
}

enum { THREADS = 256, ONE_BLOCK = 1024, N_WARPS = ONE_BLOCK / 32 };

__global__ void add_floats(float *to, const float *from, int64_t n)
{
    int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i < n)
        to[i] += from[i];
}

/* A block has a column of q, a row here. */
__global__ void revive(float *q, int64_t cols, uint64_t seed, uint32_t tensor)
{
    __shared__ float room[THREADS / 32];
    float *column = q + blockIdx.x * cols;
    float largest = 0;
    for (int64_t i = threadIdx.x; i < cols; i += THREADS)
        largest = max_of()(largest, fabsf(column[i]));
    if (team_reduce<THREADS>(largest, room, max_of()) != 0.0F)
        return;
    for (int64_t i = threadIdx.x; i < cols; i += THREADS)
        column[i] = (float)hash_normal(seed, tensor, blockIdx.x, (uint64_t)i);
}

FR_DEVICE double block_dot(const float *a, const float *b, int64_t n,
                           double *room)
{
    double sum = 0;
    for (int64_t i = threadIdx.x; i < n; i += ONE_BLOCK)
        sum += (double)a[i] * (double)b[i];
    return team_sum<ONE_BLOCK>(sum, room);
}

/* Takes the components along columns 0..k-1 out of column k. */
FR_DEVICE void project_out(float *p, int64_t rows, int k, float *along)
{
    float *column = p + k * rows;
    for (int j = (int)threadIdx.x / 32; j < k; j += N_WARPS) {
        double sum = 0;
        for (int64_t i = threadIdx.x % 32; i < rows; i += 32)
            sum += (double)p[j * rows + i] * (double)column[i];
        sum = warp_sum(sum);
        if (threadIdx.x % 32 == 0)
            along[j] = (float)sum;
    }
    __syncthreads();
    for (int64_t i = threadIdx.x; i < rows; i += ONE_BLOCK) {
        float x = column[i];
        for (int j = 0; j < k; j++)
            x -= along[j] * p[j * rows + i];
        column[i] = x;
    }
    __syncthreads();
}

/* Classical Gram-Schmidt, twice for each column; one block. */
__global__ __launch_bounds__(ONE_BLOCK) void orthonormalise(float *p,
                                                            int64_t rows,
                                                            int rank)
{
    __shared__ double room[N_WARPS];
    __shared__ float along[FR_POWERSGD_MAX_RANK];
    for (int k = 0; k < rank; k++) {
        float *column = p + k * rows;
        double before = sqrt(block_dot(column, column, rows, room));
        float factor = before > 0 && before < 1e300 ? (float)(1 / before) : 1;
        for (int64_t i = threadIdx.x; i < rows; i += ONE_BLOCK)
            column[i] *= factor;
        __syncthreads();
        for (int pass = 0; pass < 2 && k > 0; pass++)
            project_out(p, rows, k, along);
        double length = sqrt(block_dot(column, column, rows, room));
        /* written so that a NaN is not taken for 0 */
        factor = length < 1e-5 ? 0.0F : (float)(1 / length);
        for (int64_t i = threadIdx.x; i < rows; i += ONE_BLOCK)
            column[i] *= factor;
        __syncthreads();
    }
}

extern "C" void fr_cuda_add_floats(void *stream, float *to, const float *from,
                                   int64_t n)
{
    start({dim3(blocks_of(n, THREADS)), THREADS, 0, stream}, add_floats, to,
          from, n);
}

extern "C" void fr_cuda_revive(void *stream, float *q, int64_t cols,
                               int64_t rank, uint64_t seed, uint32_t tensor_id)
{
    start({dim3((unsigned)rank), THREADS, 0, stream}, revive, q, cols, seed,
          tensor_id);
}

extern "C" void fr_cuda_orthonormalise(void *stream, float *p, int64_t rows,
                                       int64_t rank)
{
    start({dim3(1), ONE_BLOCK, 0, stream}, orthonormalise, p, rows, (int)rank);
}
