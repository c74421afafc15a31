/*
 * product_cuda.h: matrix products on the device, by cuBLASLt.  Inside
 * runtime/; tests without a GPU have a reference in its place.
 *
 * Everything is row-major: c[m,n] = alpha op(a)[m,k] op(b)[k,n] (+ c) (+ bias
 * [n] in every row).  TF32: operands are float32 of which the product reads
 * 10 bits of mantissa.  Sums are float32.  A product may be one of a batch of
 * the same shape, whose operands are as far from each other as the steps say.
 */
#ifndef FR_KERNELS_CUDA_PRODUCT_CUDA_H
#define FR_KERNELS_CUDA_PRODUCT_CUDA_H

#include "kernels/cuda/kernels_cuda_state.h"

/* The layout of a matrix in memory, in elements; all 0: a single matrix, row
 * after row. */
typedef struct fr_cuda_matrix {
    int64_t stride; /* from row to row; 0: what a row has */
    int64_t step;   /* to the next product's */
} fr_cuda_matrix;

typedef struct fr_cuda_product {
    int64_t m, n, k;
    bool is_a_transposed; /* a lies as [k,m] */
    bool is_b_transposed; /* b lies as [n,k] */
    bool is_added;        /* to what c holds */
    fr_dtype dtype;       /* F32, TF32 or BF16: of a and b */
    fr_dtype out_dtype;   /* F32 or BF16: of c and bias */
    float alpha;
    const void *a, *b, *bias; /* bias: NULL, none */
    void *c;
    int64_t n_batch; /* 0: one product */
    fr_cuda_matrix a_lies, b_lies, c_lies;
} fr_cuda_product;

/* Returns the dtype in which an instruction's operands are multiplied: TF32 is
 * the plan's way to multiply float32. */
fr_dtype fr_cuda_product_dtype(const fr_kernel_call *call);

/* FR_FAILURE with the library's reason. */
FR_CHECKED fr_status fr_cuda_products_create(fr_cuda_products **out,
                                             fr_err *err);
void fr_cuda_products_destroy(fr_cuda_products *products); /* takes NULL */

/*
 * Starts the product on the stream.  The first of its shape asks the library
 * for an algorithm, and where the kernels are being tuned it times all that
 * the library proposes (fr_cuda_kernels_tune); later ones take the same.
 */
FR_CHECKED fr_status fr_cuda_product_start(fr_cuda_kernels *kernels,
                                           const fr_cuda_product *product,
                                           void *stream, fr_err *err);

#endif
