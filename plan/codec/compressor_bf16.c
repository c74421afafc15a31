/*
 * compressor_bf16.c: gradients rounded to bfloat16.
 */
#include "plan/codec/compressor.h"

static uint64_t bf16_bytes(const fr_plan *plan, const fr_bucket *bucket,
                           int stage)
{
    (void)plan;
    return stage == 0 ? fr_compressor_round_up(bucket->n * sizeof(uint16_t))
                      : 0;
}

const fr_compressor fr_compressor_bf16 = {
    .name = "bf16",
    .summary = "rounded to bfloat16, summed as that",
    .is_lossy = true,
    .is_elementwise = true,
    .wire = FR_WIRE_REDUCE,
    .wire_dtype = FR_DTYPE_BF16,
    .n_stages = 1,
    .stage_bytes = bf16_bytes,
    .state_bytes = fr_compressor_no_state,
    .check = fr_compressor_check_nothing,
    /* cast, divided by the ranks; cast (bf16_compress_hook) */
    .encode = {.n_kernels = 2, .element_bytes = 6 + 4},
    .decode = {.n_kernels = 1, .element_bytes = 6},
};
