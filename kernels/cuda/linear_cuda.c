/*
 * linear_cuda.c: the products of linear layers and their biases.
 *
 * Bytes moved: the three matrices once each, dy once more where its column
 * sums are a bias' gradient.  Bound by the tensor cores where m, n and k are
 * all some hundreds.
 */
#include "kernels/cuda/product_cuda.h"

static fr_status start(const fr_cuda_launch *launch, fr_cuda_product *product,
                       fr_err *err)
{
    fr_dtype dtype = fr_cuda_product_dtype(&launch->call);
    if (dtype != FR_DTYPE_F32 && dtype != FR_DTYPE_TF32 &&
        dtype != FR_DTYPE_BF16)
        return fr_fail(err, FR_INPUT, "products of %s have no CUDA kernel",
                       fr_dtype_name(dtype));
    product->dtype = dtype;
    product->alpha = 1;
    return fr_cuda_product_start(launch->kernels, product, launch->stream, err);
}

/* Elements of a matrix from its begin. */
static void *element(const fr_kernel_call *call, int i_ref, fr_dtype dtype,
                     int64_t first)
{
    void *at = call->ptr[i_ref];
    return at != NULL ? (char *)at + (uint64_t)first * fr_dtype_bytes(dtype)
                      : NULL;
}

typedef fr_status (*part_fn)(const fr_cuda_launch *launch,
                             fr_linear_columns part, fr_err *err);

static fr_status each_part(const fr_cuda_launch *launch, part_fn run,
                           fr_err *err)
{
    fr_linear_columns part[2];
    int n_parts = fr_linear_columns_of(&launch->call.instr->linear, part);
    for (int i = 0; i < n_parts; i++)
        FR_TRY(run(launch, part[i], err));
    return FR_OK;
}

static fr_status forward(const fr_cuda_launch *launch, fr_linear_columns part,
                         fr_err *err)
{
    const fr_kernel_call *call = &launch->call;
    const fr_linear_dims *dim = &call->instr->linear;
    const fr_dtype dtype = fr_dtype_storage((fr_dtype)call->instr->dtype);
    fr_cuda_product product = {
        .m = dim->m,
        .n = part.n,
        .k = dim->k,
        .is_b_transposed = true,
        .out_dtype = dtype,
        .a = call->ptr[FR_LINEAR_FWD_X],
        .b = element(call, FR_LINEAR_FWD_W, dtype, part.first * dim->k),
        .bias = element(call, FR_LINEAR_FWD_BIAS, dtype, part.first),
        .c = element(call, FR_LINEAR_FWD_Y, dtype, part.first * dim->m)};
    return start(launch, &product, err);
}

fr_status fr_cuda_linear_fwd(const fr_cuda_launch *launch, fr_err *err)
{
    return each_part(launch, forward, err);
}

static fr_status data_gradient(const fr_cuda_launch *launch,
                               fr_linear_columns part, fr_err *err)
{
    const fr_kernel_call *call = &launch->call;
    const fr_linear_dims *dim = &call->instr->linear;
    const fr_dtype dtype = fr_dtype_storage((fr_dtype)call->instr->dtype);
    bool is_added = call->instr->flags & FR_INSTR_ACCUMULATE;
    fr_cuda_product product = {
        .m = dim->m,
        .n = dim->k,
        .k = part.n,
        .is_added = is_added || part.first > 0,
        .out_dtype = dtype,
        .a = element(call, FR_LINEAR_DGRAD_DY, dtype, part.first * dim->m),
        .b = element(call, FR_LINEAR_DGRAD_W, dtype, part.first * dim->k),
        .c = call->ptr[FR_LINEAR_DGRAD_DX]};
    return start(launch, &product, err);
}

fr_status fr_cuda_linear_dgrad(const fr_cuda_launch *launch, fr_err *err)
{
    return each_part(launch, data_gradient, err);
}

static fr_status weight_gradient(const fr_cuda_launch *launch,
                                 fr_linear_columns part, fr_err *err)
{
    const fr_kernel_call *call = &launch->call;
    const fr_linear_dims *dim = &call->instr->linear;
    const fr_dtype dtype = fr_dtype_storage((fr_dtype)call->instr->dtype);
    const fr_dtype grad = (fr_dtype)call->instr->grad_dtype;
    fr_cuda_product product = {
        .m = part.n,
        .n = dim->k,
        .k = dim->m,
        .is_a_transposed = true,
        .is_added = true,
        .out_dtype = grad,
        .a = element(call, FR_LINEAR_WGRAD_DY, dtype, part.first * dim->m),
        .b = call->ptr[FR_LINEAR_WGRAD_X],
        .c = element(call, FR_LINEAR_WGRAD_DW, grad, part.first * dim->k)};
    void *sums = element(call, FR_LINEAR_WGRAD_DBIAS, grad, part.first);
    if (sums != NULL && !launch->kernels->is_tuning)
        FR_TRY(fr_cuda_add_column_sums(launch, product.a, sums, dim->m, part.n,
                                       err));
    return start(launch, &product, err);
}

fr_status fr_cuda_linear_wgrad(const fr_cuda_launch *launch, fr_err *err)
{
    return each_part(launch, weight_gradient, err);
}
