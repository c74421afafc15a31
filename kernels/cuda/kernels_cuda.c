/*
 * kernels_cuda.c: the table of the CUDA kernels, their workspace.
 */
#include "kernels/cuda/product_cuda.h"

#include <cuda_runtime.h>
#include <stdlib.h>

const fr_cuda_kernel_fn fr_kernels_cuda[FR_OP_N] = {
#define FR_CUDA_KERNEL_ENTRY(symbol, name) [FR_OP_##symbol] = fr_cuda_##name,
    FR_KERNEL_LIST(FR_CUDA_KERNEL_ENTRY)
#undef FR_CUDA_KERNEL_ENTRY
};

fr_status fr_cuda_kernels_create(fr_cuda_kernels **out, fr_err *err)
{
    fr_cuda_kernels *kernels;
    FR_TRY_CALLOC(kernels, 1, err);
    cudaError_t error =
        cudaMalloc(&kernels->workspace, FR_CUDA_WORKSPACE_BYTES);
    fr_status status = FR_OK;
    if (error != cudaSuccess)
        status =
            fr_fail(err, FR_FAILURE, "workspace of %d MiB: %s",
                    FR_CUDA_WORKSPACE_BYTES >> 20, cudaGetErrorString(error));
    if (status == FR_OK)
        status = fr_cuda_products_create(&kernels->products, err);
    if (status != FR_OK) {
        fr_cuda_kernels_destroy(kernels);
        return status;
    }
    *out = kernels;
    return FR_OK;
}

void fr_cuda_kernels_destroy(fr_cuda_kernels *kernels)
{
    if (kernels == NULL)
        return;
    fr_cuda_products_destroy(kernels->products);
    cudaFree(kernels->workspace);
    free(kernels);
}

fr_status fr_cuda_kernels_tune(const fr_cuda_launch *launch, fr_err *err)
{
    fr_cuda_kernels *kernels = launch->kernels;
    fr_op op = (fr_op)launch->call.instr->op;
    if (op != FR_OP_LINEAR_FWD && op != FR_OP_LINEAR_DGRAD &&
        op != FR_OP_LINEAR_WGRAD)
        return FR_OK;
    kernels->is_tuning = true;
    fr_status status = fr_kernels_cuda[op](launch, err);
    kernels->is_tuning = false;
    return status;
}
