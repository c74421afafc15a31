/*
 * compress_cuda.h: launches of the compressors' kernels (compress.cu,
 * powersgd.cu) that their host side puts together.  Inside runtime/.
 *
 * Gradients are float32, as for the CPU's compressors.
 */
#ifndef FR_KERNELS_CUDA_COMPRESS_CUDA_H
#define FR_KERNELS_CUDA_COMPRESS_CUDA_H

#include "kernels/cuda/kernels_cuda_state.h"
#include "plan/codec/compressor_list.h"

/* The kernels of each row of compressor_list.h, indexed by fr_compressor_kind
 * (codec_table_cuda.c). */
#define FR_CODEC_DECLARE(symbol, name)                                         \
    fr_status fr_cuda_##name##_compress(const fr_cuda_launch *launch,          \
                                        fr_err *err);                          \
    fr_status fr_cuda_##name##_decompress(const fr_cuda_launch *launch,        \
                                          fr_err *err);
FR_COMPRESSORS(FR_CODEC_DECLARE)
#undef FR_CODEC_DECLARE

typedef struct fr_codec_cuda {
    fr_cuda_kernel_fn compress, decompress;
} fr_codec_cuda;
extern const fr_codec_cuda fr_codecs_cuda[];

/* to[0..n) += from */
void fr_cuda_add_floats(void *stream, float *to, const float *from, int64_t n);

/* Columns k of q[rank, cols] that are 0 begin at random, by (tensor, k, i). */
void fr_cuda_revive(void *stream, float *q, int64_t cols, int64_t rank,
                    uint64_t seed, uint32_t tensor_id);

/* The rows of p[rank, rows] become orthonormal, or 0. */
void fr_cuda_orthonormalise(void *stream, float *p, int64_t rows, int64_t rank);

#endif
