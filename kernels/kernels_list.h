/*
 * kernels_list.h: the kernels of all families, gathered into the table of
 * kernels_cpu.c; shapes and operands stand in op.h.  Inside runtime/.
 */
#ifndef FR_KERNELS_KERNELS_LIST_H
#define FR_KERNELS_KERNELS_LIST_H

#include "kernels/cpu/kernels_cpu.h"
#include "plan/codec/compressor_list.h"

#define FR_KERNEL_LIST(X)                                                      \
    X(EMBED_FWD, embed_fwd)                                                    \
    X(EMBED_BWD, embed_bwd)                                                    \
    X(NORM_FWD, norm_fwd)                                                      \
    X(NORM_BWD, norm_bwd)                                                      \
    X(HEAD_NORM_FWD, head_norm_fwd)                                            \
    X(HEAD_NORM_BWD, head_norm_bwd)                                            \
    X(LINEAR_FWD, linear_fwd)                                                  \
    X(LINEAR_DGRAD, linear_dgrad)                                              \
    X(LINEAR_WGRAD, linear_wgrad)                                              \
    X(BIAS_GRAD, bias_grad)                                                    \
    X(ROPE_FWD, rope_fwd)                                                      \
    X(ROPE_BWD, rope_bwd)                                                      \
    X(ATTN_FWD, attn_fwd)                                                      \
    X(ATTN_BWD, attn_bwd)                                                      \
    X(ATTN_MERGE, attn_merge)                                                  \
    X(GELU_FWD, gelu_fwd)                                                      \
    X(GELU_BWD, gelu_bwd)                                                      \
    X(SWIGLU_FWD, swiglu_fwd)                                                  \
    X(SWIGLU_BWD, swiglu_bwd)                                                  \
    X(RESIDUAL_ADD, residual_add)                                              \
    X(XENT, xent)                                                              \
    X(XENT_MAX, xent_max)                                                      \
    X(XENT_SUM, xent_sum)                                                      \
    X(XENT_GRAD, xent_grad)                                                    \
    X(ZERO, zero)                                                              \
    X(COPY, copy)                                                              \
    X(CAST, cast)                                                              \
    X(ADD, add)                                                                \
    X(GRAD_SQSUM, grad_sqsum)                                                  \
    X(CLIP, clip)                                                              \
    X(OPT_NORMS, opt_norms)                                                    \
    X(OPT_STEP, opt_step)                                                      \
    X(COMPRESS, compress)                                                      \
    X(DECOMPRESS, decompress)                                                  \
    X(DROPOUT_ADD, dropout_add)                                                \
    X(DROPOUT_BWD, dropout_bwd)                                                \
    X(PACK_HEADS, pack_heads)                                                  \
    X(FIRST_ROWS_FWD, first_rows_fwd)                                          \
    X(FIRST_ROWS_BWD, first_rows_bwd)                                          \
    X(LABELS, labels)                                                          \
    X(PATCHES, patches)                                                        \
    X(PATCH_EMBED_FWD, patch_embed_fwd)                                        \
    X(PATCH_EMBED_BWD, patch_embed_bwd)                                        \
    X(LATENT_FWD, latent_fwd)                                                  \
    X(LATENT_BWD, latent_bwd)                                                  \
    X(ROUTER_FWD, router_fwd)                                                  \
    X(ROUTER_BWD, router_bwd)                                                  \
    X(PERMUTE, permute)                                                        \
    X(UNPERMUTE, unpermute)                                                    \
    X(GROUPED_FWD, grouped_fwd)                                                \
    X(GROUPED_DGRAD, grouped_dgrad)                                            \
    X(GROUPED_WGRAD, grouped_wgrad)

/* Kernels that no GPU has yet, and instructions that the GPU's interpreter
 * executes itself. */
#define FR_KERNEL_CPU_LIST(X)                                                  \
    X(HOST_COPY, host_copy)                                                    \
    X(CONV_FWD, conv_fwd)                                                      \
    X(CONV_DGRAD, conv_dgrad)                                                  \
    X(CONV_WGRAD, conv_wgrad)                                                  \
    X(BATCH_NORM_FWD, batch_norm_fwd)                                          \
    X(BATCH_NORM_BWD, batch_norm_bwd)                                          \
    X(POOL_FWD, pool_fwd)                                                      \
    X(POOL_BWD, pool_bwd)                                                      \
    X(IMAGES, images)

#define FR_KERNEL_DECLARE(symbol, name)                                        \
    void fr_kernel_##name(const fr_kernel_call *call);
FR_KERNEL_LIST(FR_KERNEL_DECLARE)
FR_KERNEL_CPU_LIST(FR_KERNEL_DECLARE)
#undef FR_KERNEL_DECLARE

/* sums[c] += column sums of x[rows, cols]; any team size, the same bits. */
void fr_kernel_add_column_sums(const float *x, float *sums, int64_t rows,
                               int64_t cols, int n_threads);

/* Scratch of a BATCH_NORM_*. */
uint64_t fr_batch_norm_scratch_bytes(const fr_instr *instr);

/* The BIAS_GRAD of n columns that a LINEAR_WGRAD does too. */
fr_instr fr_linear_bias_gradient(const fr_instr *wgrad, int64_t n);

/* The kernels of each row of compressor_list.h, indexed by fr_compressor_kind
 * (codec_table_cpu.c). */
#define FR_CODEC_DECLARE(symbol, name)                                         \
    void fr_kernel_##name##_compress(const fr_kernel_call *call);              \
    void fr_kernel_##name##_decompress(const fr_kernel_call *call);
FR_COMPRESSORS(FR_CODEC_DECLARE)
#undef FR_CODEC_DECLARE

typedef struct fr_codec_cpu {
    fr_kernel_fn compress, decompress;
} fr_codec_cpu;
extern const fr_codec_cpu fr_codecs_cpu[];

#endif
