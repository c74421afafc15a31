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
    const int64_t *dim = call->instr->dim;
    fr_cuda_product product = {
        .m = dim[0],
        .n = dim[1],
        .k = dim[2],
        .is_b_transposed = true,
        .out_dtype = fr_dtype_storage((fr_dtype)call->instr->dtype),
        .a = call->ptr[0],
        .b = call->ptr[1],
        .bias = call->ptr[2],
        .c = call->ptr[3]};
    return start(launch, &product, err);
}

fr_status fr_cuda_linear_dgrad(const fr_cuda_launch *launch, fr_err *err)
{
    const fr_kernel_call *call = &launch->call;
    const int64_t *dim = call->instr->dim;
    fr_cuda_product product = {
        .m = dim[0],
        .n = dim[2],
        .k = dim[1],
        .is_added = call->instr->flags & FR_INSTR_ACCUMULATE,
        .out_dtype = fr_dtype_storage((fr_dtype)call->instr->dtype),
        .a = call->ptr[0],
        .b = call->ptr[1],
        .c = call->ptr[2]};
    return start(launch, &product, err);
}

fr_status fr_cuda_linear_wgrad(const fr_cuda_launch *launch, fr_err *err)
{
    const fr_kernel_call *call = &launch->call;
    const int64_t *dim = call->instr->dim;
    fr_cuda_product product = {.m = dim[1],
                               .n = dim[2],
                               .k = dim[0],
                               .is_a_transposed = true,
                               .is_added = true,
                               .out_dtype = call->instr->grad_dtype,
                               .a = call->ptr[0],
                               .b = call->ptr[1],
                               .c = call->ptr[2]};
    if (call->ptr[3] != NULL && !launch->kernels->is_tuning)
        FR_TRY(fr_cuda_add_column_sums(launch, call->ptr[0], call->ptr[3],
                                       dim[0], dim[1], err));
    return start(launch, &product, err);
}
