/*
 * compress_cuda.c: which compressor; the walk over the matrices of a bucket
 * that PowerSGD makes (kernels_powersgd.c has the algorithm).
 */
#include "kernels/cuda/compress_cuda.h"

#include "kernels/cuda/product_cuda.h"
#include "kernels/powersgd_layout.h"
#include "plan/codec/compressor.h"

#include <cuda_runtime.h>

static fr_status copy_floats(const fr_cuda_launch *launch, float *to,
                             const float *from, uint64_t n, fr_err *err)
{
    cudaError_t error =
        cudaMemcpyAsync(to, from, n * sizeof *to, cudaMemcpyDeviceToDevice,
                        (cudaStream_t)launch->stream);
    if (error != cudaSuccess)
        return fr_fail(err, FR_FAILURE, "copy of a gradient: %s",
                       cudaGetErrorString(error));
    return FR_OK;
}

fr_status fr_cuda_none_compress(const fr_cuda_launch *launch, fr_err *err)
{
    const fr_kernel_call *call = &launch->call;
    return copy_floats(launch, call->ptr[2], call->ptr[0],
                       (uint64_t)call->instr->compress.n, err);
}

fr_status fr_cuda_none_decompress(const fr_cuda_launch *launch, fr_err *err)
{
    return fr_cuda_none_compress(launch, err);
}

static fr_status check(const fr_cuda_launch *launch, fr_err *err)
{
    if (launch->call.plan->grad_dtype != FR_DTYPE_F32)
        return fr_fail(err, FR_INPUT,
                       "compressors of %s gradients have no CUDA kernel: "
                       "choose f32",
                       fr_dtype_name(launch->call.plan->grad_dtype));
    return FR_OK;
}

fr_status fr_cuda_compress(const fr_cuda_launch *launch, fr_err *err)
{
    FR_TRY(check(launch, err));
    return fr_codecs_cuda[launch->call.plan->compressor].compress(launch, err);
}

fr_status fr_cuda_decompress(const fr_cuda_launch *launch, fr_err *err)
{
    FR_TRY(check(launch, err));
    return fr_codecs_cuda[launch->call.plan->compressor].decompress(launch,
                                                                    err);
}

/* ---- PowerSGD ----------------------------------------------------------- */

static fr_status multiply(const fr_cuda_launch *launch, fr_cuda_product product,
                          fr_err *err)
{
    product.dtype = product.out_dtype = FR_DTYPE_F32;
    product.alpha = product.alpha == 0 ? 1 : product.alpha;
    return fr_cuda_product_start(launch->kernels, &product, launch->stream,
                                 err);
}

/* y[rows, cols] (+)= alpha p^T q of a piece. */
static fr_status multiply_factors(const fr_cuda_launch *launch,
                                  const fr_powersgd_piece *piece,
                                  const float *p, const float *q, float *y,
                                  float alpha, fr_err *err)
{
    return multiply(launch,
                    (fr_cuda_product){.m = piece->rows,
                                      .n = piece->cols,
                                      .k = piece->rank,
                                      .is_a_transposed = true,
                                      .is_added = alpha < 0,
                                      .alpha = alpha,
                                      .a = p,
                                      .b = q,
                                      .c = y},
                    err);
}

/* P = M Q, M = gradient + error. */
static fr_status stage_p(const fr_cuda_launch *launch,
                         const fr_powersgd_layout *at,
                         const fr_powersgd_piece *piece, fr_err *err)
{
    const fr_kernel_call *call = &launch->call;
    float *g = (float *)call->ptr[0] + piece->first;
    float *error = at->error != NULL ? at->error + piece->first : NULL;
    float *q = at->q + piece->q;
    fr_cuda_revive(launch->stream, q, piece->cols, piece->rank, call->job->seed,
                   piece->tensor_id);
    if (error != NULL)
        fr_cuda_add_floats(launch->stream, error, g, piece->rows * piece->cols);
    return multiply(launch,
                    (fr_cuda_product){.m = piece->rank,
                                      .n = piece->rows,
                                      .k = piece->cols,
                                      .is_b_transposed = true,
                                      .a = q,
                                      .b = error != NULL ? error : g,
                                      .c = at->wire_p + piece->p},
                    err);
}

/* P orthonormalised, Q = M^T P, error = M - P Q^T. */
static fr_status stage_q(const fr_cuda_launch *launch,
                         const fr_powersgd_layout *at,
                         const fr_powersgd_piece *piece, fr_err *err)
{
    const fr_kernel_call *call = &launch->call;
    float *g = (float *)call->ptr[0] + piece->first;
    float *error = at->error != NULL ? at->error + piece->first : NULL;
    float *p = at->p + piece->p, *q = at->wire_q + piece->q;
    FR_TRY(copy_floats(launch, p, at->wire_p + piece->p,
                       (uint64_t)(piece->rows * piece->rank), err));
    fr_cuda_orthonormalise(launch->stream, p, piece->rows, piece->rank);
    FR_TRY(multiply(launch,
                    (fr_cuda_product){.m = piece->rank,
                                      .n = piece->cols,
                                      .k = piece->rows,
                                      .a = p,
                                      .b = error != NULL ? error : g,
                                      .c = q},
                    err));
    return error != NULL ? multiply_factors(launch, piece, p, q, error, -1, err)
                         : FR_OK;
}

fr_status fr_cuda_powersgd_compress(const fr_cuda_launch *launch, fr_err *err)
{
    const fr_kernel_call *call = &launch->call;
    const float *g = call->ptr[0];
    fr_powersgd_layout at = fr_powersgd_layout_of(call, call->ptr[2]);
    bool is_first = call->instr->compress.stage == 0;
    fr_powersgd_piece piece = {0};
    while (fr_powersgd_next(&at.bucket, call->plan->compressor_rank, &piece)) {
        if (!piece.is_matrix && is_first)
            FR_TRY(copy_floats(launch, at.wire_raw + piece.raw, g + piece.first,
                               piece.n, err));
        else if (piece.is_matrix && is_first)
            FR_TRY(stage_p(launch, &at, &piece, err));
        else if (piece.is_matrix)
            FR_TRY(stage_q(launch, &at, &piece, err));
    }
    return FR_OK;
}

fr_status fr_cuda_powersgd_decompress(const fr_cuda_launch *launch, fr_err *err)
{
    const fr_kernel_call *call = &launch->call;
    float *g = call->ptr[2];
    fr_powersgd_layout at = fr_powersgd_layout_of(call, call->ptr[0]);
    fr_powersgd_piece piece = {0};
    while (fr_powersgd_next(&at.bucket, call->plan->compressor_rank, &piece)) {
        float *q = at.q + piece.q;
        if (!piece.is_matrix) {
            FR_TRY(copy_floats(launch, g + piece.first, at.wire_raw + piece.raw,
                               piece.n, err));
            continue;
        }
        FR_TRY(copy_floats(launch, q, at.wire_q + piece.q,
                           (uint64_t)(piece.cols * piece.rank), err));
        FR_TRY(multiply_factors(launch, &piece, at.p + piece.p, q,
                                g + piece.first, 1, err));
    }
    return FR_OK;
}
