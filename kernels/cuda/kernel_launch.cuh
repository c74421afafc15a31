/*
 * kernel_launch.cuh: how the host starts a CUDA kernel: the shape of a launch,
 * the element type that a dtype stands for, the workspace, and what is said
 * when a launch fails.  For .cu files only.
 */
#ifndef FR_KERNELS_CUDA_KERNEL_LAUNCH_CUH
#define FR_KERNELS_CUDA_KERNEL_LAUNCH_CUH

#include "kernels/cuda/device.cuh"

extern "C" {
#include "kernels/cuda/kernels_cuda_state.h"
}

struct launch_shape {
    dim3 grid;
    unsigned n_threads;
    size_t shared_bytes;
    void *stream;
};

/* Bytes of shared memory that a block may ask for: 227 KiB on compute
 * capability 9.0, 163 on 8.0, 99 on 8.6, 8.9 and 12.0. */
static inline size_t most_shared_bytes()
{
    int device = 0, n_bytes = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&n_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin,
                           device);
    return (size_t)n_bytes;
}

template <class... P, class... A>
void start(const launch_shape &shape, void (*kernel)(P...), A... args)
{
    if (shape.grid.x == 0 || shape.grid.y == 0 || shape.grid.z == 0)
        return;
    /* 48 KiB are there unasked, the static ones counted. */
    if (shape.shared_bytes > 32 * 1024)
        cudaFuncSetAttribute(kernel,
                             cudaFuncAttributeMaxDynamicSharedMemorySize,
                             (int)shape.shared_bytes);
#ifdef FR_EMULATED
    emulator_start(kernel, shape.grid, shape.n_threads, shape.shared_bytes,
                   (P)args...);
#else
    kernel<<<shape.grid, shape.n_threads, shape.shared_bytes,
             (cudaStream_t)shape.stream>>>((P)args...);
#endif
}

/* Returns the error of the launches so far. */
static inline fr_status launched(const fr_cuda_launch *launch, fr_err *err)
{
    cudaError_t error = cudaGetLastError();
    if (error != cudaSuccess)
        return fr_fail(err, FR_FAILURE, "launch of %s: %s",
                       fr_op_name((fr_op)launch->call.instr->op),
                       cudaGetErrorString(error));
    return FR_OK;
}

static inline fr_status refuse_dtype(const fr_cuda_launch *launch, fr_err *err)
{
    return fr_fail(err, FR_INPUT, "%s of %s has no CUDA kernel",
                   fr_op_name((fr_op)launch->call.instr->op),
                   fr_dtype_name((fr_dtype)launch->call.instr->dtype));
}

/* The start of the workspace; FR_INPUT when `n_bytes` do not fit into it. */
static inline fr_status take_workspace(const fr_cuda_launch *launch,
                                       uint64_t n_bytes, void **out,
                                       fr_err *err)
{
    if (n_bytes > FR_CUDA_WORKSPACE_BYTES)
        return fr_fail(err, FR_INPUT,
                       "%s needs a workspace of %llu MiB, there are %d: make "
                       "the micro-batch smaller",
                       fr_op_name((fr_op)launch->call.instr->op),
                       (unsigned long long)(n_bytes >> 20) + 1,
                       FR_CUDA_WORKSPACE_BYTES >> 20);
    *out = launch->kernels->workspace;
    return FR_OK;
}

/* Calls f(T()) with the element type of a dtype; false: there is none. */
template <class F> bool with_type(int dtype, const F &f)
{
    switch (dtype) {
    case FR_DTYPE_F32:
    case FR_DTYPE_TF32:
        f(float());
        return true;
    case FR_DTYPE_BF16:
        f(bf16());
        return true;
    default:
        return false;
    }
}

/* Calls f(T(), G()) with the types of activations and of the gradients of
 * parameters. */
template <class F> bool with_types(const fr_instr *instr, const F &f)
{
    return with_type(instr->dtype, [&](auto t) {
        if (instr->grad_dtype == FR_DTYPE_BF16)
            f(t, bf16());
        else
            f(t, float());
    });
}

static inline bool is_aligned(const void *at)
{
    return (uintptr_t)at % 16 == 0;
}

/* Whether rows of `cols` elements begin on 16 bytes in all operands. */
static inline bool is_packed(const fr_kernel_call *call, int64_t cols,
                             int n_pack)
{
    for (int i = 0; i < 5; i++)
        if (!is_aligned(call->ptr[i]))
            return false;
    return cols % n_pack == 0;
}

static inline unsigned blocks_of(int64_t n, int64_t per_block)
{
    return (unsigned)((n + per_block - 1) / per_block);
}

#endif
