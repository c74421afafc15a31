/*
 * narrow.h: kernels on operands in bfloat16.
 *
 * Sums are made in float32: a float kernel gets what it reads widened, and
 * what it wrote is rounded, once.  Products do so by tiles (product_blas.c),
 * embeddings and optimizers row by row; for all others a window of rows goes
 * through scratch, so that nothing the size of an operand is ever there twice.
 */
#ifndef FR_KERNELS_CPU_NARROW_NARROW_H
#define FR_KERNELS_CPU_NARROW_NARROW_H

#include "kernels/cpu/kernels_cpu.h"

/* Is an operand in bfloat16? */
bool fr_narrow_is_met(const fr_instr *instr);

/* Runs `kernel`, which knows float32 alone, through call->scratch. */
void fr_narrow_run(const fr_kernel_call *call, fr_kernel_fn kernel);
uint64_t fr_narrow_scratch_bytes(const fr_instr *instr);

/* n elements from `first` on of memory in float32 or bfloat16. */
void fr_narrow_load(float *out, const void *from, fr_dtype dtype, int64_t first,
                    int64_t n);
void fr_narrow_store(void *to, fr_dtype dtype, int64_t first, const float *x,
                     int64_t n);

/* A matrix of rows of `ld` elements, float32 or bfloat16. */
typedef struct fr_narrow_matrix {
    void *at;
    fr_dtype dtype;
    bool is_transposed;
    int64_t ld;
} fr_narrow_matrix;

/* c[m, n] (+)= a[m, k] b[k, n] (+ bias[n], of c's dtype). */
typedef struct fr_product {
    int64_t m, n, k;
    fr_narrow_matrix a, b, c;
    const void *bias;
    bool is_added;
} fr_product;

void fr_product_run(const fr_kernel_call *call, const fr_product *product);
uint64_t fr_product_scratch_bytes(int64_t m, int64_t n, int64_t k);

/* `n` elements later. */
static inline void *fr_narrow_at(const void *base, fr_dtype dtype, int64_t n)
{
    return (char *)(uintptr_t)base + n * (int64_t)fr_dtype_bytes(dtype);
}

/* Operand i of a call from element `first` on, in rows of ld elements. */
static inline fr_narrow_matrix
fr_narrow_operand(const fr_kernel_call *call, int i, int64_t first, int64_t ld)
{
    const fr_dtype dtype = fr_instr_ref_dtype(call->instr, i);
    return (fr_narrow_matrix){.at = fr_narrow_at(call->ptr[i], dtype, first),
                              .dtype = dtype,
                              .ld = ld};
}

#endif
