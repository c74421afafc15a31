/*
 * norm_rows.cuh: which rows a norm and its gradients go through.
 */
#ifndef FR_KERNELS_CUDA_NORM_NORM_ROWS_CUH
#define FR_KERNELS_CUDA_NORM_NORM_ROWS_CUH

#include "kernels/cuda/kernel_launch.cuh"

/* Row i of an operand that lies among others: head i % n_heads of the heads of
 * one row of q, k and v.  A launch has fewer than 2^31 rows, and a division of
 * 64 bits takes long and many registers. */
struct row_places {
    uint32_t n_heads;
    int64_t row_heads, first_head;
    FR_DEVICE int64_t operator()(int64_t i) const
    {
        const uint32_t row = (uint32_t)i / n_heads;
        return row * row_heads + first_head + ((uint32_t)i - row * n_heads);
    }
};

static const row_places every_row = {1, 1, 0};

static inline row_places heads_of(const fr_instr *instr)
{
    const fr_head_norm_dims *dim = &instr->head_norm;
    return {(uint32_t)dim->n_heads, dim->row_heads, dim->first_head};
}

#endif
