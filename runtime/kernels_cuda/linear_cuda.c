/*
 * linear_cuda.c: the products of linear layers and their biases.
 *
 * Bytes moved: the three matrices once each, dy once more where its column
 * sums are a bias' gradient.  Bound by the tensor cores where m, n and k are
 * all some hundreds.
 */
#include "runtime/kernels_cuda/product_cuda.h"

/* Operands of `dtype`; TF32 is the plan's way to multiply float32. */
static fr_dtype product_dtype(const fr_kernel_call *call)
{
    fr_dtype dtype = (fr_dtype)call->instr->dtype;
    bool is_tf32 = dtype == FR_DTYPE_F32 && call->plan != NULL &&
                   call->plan->precision == FR_DTYPE_TF32;
    return is_tf32 ? FR_DTYPE_TF32 : dtype;
}

static fr_status start(const fr_cuda_launch *launch, fr_cuda_product *product,
                       fr_err *err)
{
    fr_dtype dtype = product_dtype(&launch->call);
    if (dtype != FR_DTYPE_F32 && dtype != FR_DTYPE_TF32 &&
        dtype != FR_DTYPE_BF16)
        return fr_fail(err, FR_INPUT, "products of %s have no CUDA kernel",
                       fr_dtype_name(dtype));
    product->dtype = dtype;
    product->alpha = 1;
    return fr_cuda_product_start(launch->kernels, product, launch->stream, err);
}

fr_status fr_cuda_linear_fwd(const fr_cuda_launch *launch, fr_err *err)
{
    const fr_kernel_call *call = &launch->call;
    const fr_linear_dims *dim = &call->instr->linear;
    fr_cuda_product product = {
        .m = dim->m,
        .n = dim->n,
        .k = dim->k,
        .is_b_transposed = true,
        .out_dtype = fr_dtype_storage((fr_dtype)call->instr->dtype),
        .a = call->ptr[FR_LINEAR_FWD_X],
        .b = call->ptr[FR_LINEAR_FWD_W],
        .bias = call->ptr[FR_LINEAR_FWD_BIAS],
        .c = call->ptr[FR_LINEAR_FWD_Y]};
    return start(launch, &product, err);
}

fr_status fr_cuda_linear_dgrad(const fr_cuda_launch *launch, fr_err *err)
{
    const fr_kernel_call *call = &launch->call;
    const fr_linear_dims *dim = &call->instr->linear;
    fr_cuda_product product = {
        .m = dim->m,
        .n = dim->k,
        .k = dim->n,
        .is_added = call->instr->flags & FR_INSTR_ACCUMULATE,
        .out_dtype = fr_dtype_storage((fr_dtype)call->instr->dtype),
        .a = call->ptr[FR_LINEAR_DGRAD_DY],
        .b = call->ptr[FR_LINEAR_DGRAD_W],
        .c = call->ptr[FR_LINEAR_DGRAD_DX]};
    return start(launch, &product, err);
}

fr_status fr_cuda_linear_wgrad(const fr_cuda_launch *launch, fr_err *err)
{
    const fr_kernel_call *call = &launch->call;
    const fr_linear_dims *dim = &call->instr->linear;
    fr_cuda_product product = {.m = dim->n,
                               .n = dim->k,
                               .k = dim->m,
                               .is_a_transposed = true,
                               .is_added = true,
                               .out_dtype = call->instr->grad_dtype,
                               .a = call->ptr[FR_LINEAR_WGRAD_DY],
                               .b = call->ptr[FR_LINEAR_WGRAD_X],
                               .c = call->ptr[FR_LINEAR_WGRAD_DW]};
    if (call->ptr[FR_LINEAR_WGRAD_DBIAS] != NULL && !launch->kernels->is_tuning)
        FR_TRY(fr_cuda_add_column_sums(launch, call->ptr[FR_LINEAR_WGRAD_DY],
                                       call->ptr[FR_LINEAR_WGRAD_DBIAS], dim->m,
                                       dim->n, err));
    return start(launch, &product, err);
}
