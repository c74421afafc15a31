/*
 * kernels_cuda_state.h: what the kernels of one stream own, and what their
 * host side and their .cu files tell each other.  Inside runtime/.
 */
#ifndef FR_KERNELS_CUDA_KERNELS_CUDA_STATE_H
#define FR_KERNELS_CUDA_KERNELS_CUDA_STATE_H

#include "kernels/cuda/kernels_cuda.h"
#include "kernels/kernels_list.h"

/* Room for partial sums, sorted tokens and products, one launch at a time. */
enum {
    FR_CUDA_WORKSPACE_BYTES = 64 << 20,
    FR_CUDA_PRODUCT_WORKSPACE_BYTES = 32 << 20
};

typedef struct fr_cuda_products fr_cuda_products; /* product_cuda.h */

struct fr_cuda_kernels {
    void *workspace; /* FR_CUDA_WORKSPACE_BYTES of the device's memory */
    fr_cuda_products *products;
    bool is_tuning; /* products are timed, not run */
};

#define FR_CUDA_KERNEL_DECLARE(symbol, name)                                   \
    fr_status fr_cuda_##name(const fr_cuda_launch *launch, fr_err *err);
FR_KERNEL_LIST(FR_CUDA_KERNEL_DECLARE)
#undef FR_CUDA_KERNEL_DECLARE

/* sums[c] += column sums of x[rows, cols], of `instr`'s dtype into its
 * grad_dtype. */
FR_CHECKED fr_status fr_cuda_add_column_sums(const fr_cuda_launch *launch,
                                             const void *x, void *sums,
                                             int64_t rows, int64_t cols,
                                             fr_err *err);

#endif
