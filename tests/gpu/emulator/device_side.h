/*
 * device_side.h: the language of kernels as C++ that runs on the CPU: indices,
 * barriers, exchanges within a warp, and the instructions of tensor cores and
 * of asynchronous copies as loops (PTX ISA 8.5, sections 9.7.9 and 9.7.14:
 * which lane holds which element).
 *
 * Stricter than a GPU where that finds mistakes: shared memory of a launch's
 * size begins as NaN, an asynchronous copy arrives at once in one launch and
 * only when it is waited for in another, a barrier that not all threads reach
 * ends the program, threads take turns in an order that differs from launch
 * to launch.  They do so at barriers alone: what happens between two of them
 * never interleaves.
 */
#ifndef FR_TESTS_DEVICE_SIDE_H
#define FR_TESTS_DEVICE_SIDE_H

#include <cmath>
#include <cstring>
#include <functional>

#define __global__ static
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__ static
#define __align__(n) alignas(n)

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1)
        : x(x_), y(y_), z(z_)
    {
    }
};

extern dim3 threadIdx, blockIdx, blockDim, gridDim;

/* Runs body() once per thread of each block. */
void emulator_launch(dim3 grid, unsigned n_threads, size_t shared_bytes,
                     const std::function<void()> &body);
char *emulator_shared();
void emulator_block_barrier();

/* All 32 lanes meet: lane's n_bytes are there for the others to see. */
const void *emulator_meet(const void *mine, size_t n_bytes);
enum { EMULATOR_SLOT = 64 }; /* bytes of a lane; lane i at i * SLOT */

template <class T> T emulator_lane(const void *met, unsigned lane)
{
    T value;
    memcpy(&value, (const char *)met + lane * EMULATOR_SLOT, sizeof value);
    return value;
}

inline unsigned emulator_lane_id()
{
    return threadIdx.x % 32;
}

inline void __syncthreads()
{
    emulator_block_barrier();
}

inline void __syncwarp()
{
    char nothing = 0;
    emulator_meet(&nothing, 1);
}

template <class T> T __shfl_sync(unsigned, T value, int lane)
{
    return emulator_lane<T>(emulator_meet(&value, sizeof value),
                            (unsigned)lane % 32);
}

template <class T> T __shfl_xor_sync(unsigned, T value, int mask)
{
    return __shfl_sync(~0U, value, (int)(emulator_lane_id() ^ (unsigned)mask));
}

inline unsigned __ballot_sync(unsigned, int is_true)
{
    const void *met = emulator_meet(&is_true, sizeof is_true);
    unsigned bits = 0;
    for (unsigned i = 0; i < 32; i++)
        bits |= emulator_lane<int>(met, i) ? 1U << i : 0;
    return bits;
}

inline int __popc(unsigned x)
{
    return __builtin_popcount(x);
}

inline float __uint_as_float(unsigned bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

inline unsigned __float_as_uint(float x)
{
    unsigned bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* Threads take turns at barriers only: nothing comes between. */
template <class T> T atomicAdd(T *at, T x)
{
    T old = *at;
    *at = old + x;
    return old;
}

struct float4 {
    float x, y, z, w;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};

/* ---- tensor cores, matrix loads, asynchronous copies --------------------- */

void emulator_mma_bf16(float c[4], const uint32_t a[4], const uint32_t b[2]);
void emulator_mma_tf32(float c[4], const uint32_t a[4], const uint32_t b[2]);
void emulator_load_matrices(uint32_t out[4], const void *row,
                            bool is_transposed);
void emulator_copy_async(void *to, const void *from, size_t n_bytes,
                         bool is_zero);
void emulator_copy_commit();
void emulator_copy_wait(int n_left);

template <class... P, class... A>
void emulator_start(void (*kernel)(P...), dim3 grid, unsigned n_threads,
                    size_t shared_bytes, A... args)
{
    emulator_launch(grid, n_threads, shared_bytes, [=] { kernel(args...); });
}

template <class K> int cudaFuncSetAttribute(K, int, int)
{
    return 0;
}
enum { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };

#endif
