/*
 * compressor_onebit.c: signs, and the mean magnitude of each block (signSGD
 * with scaling: Bernstein et al., arXiv 1802.04434; Karimireddy et al., arXiv
 * 1901.09847).  The payload is the fp32 scales, then a bit for each element in
 * words of 32, set where it is negative.
 */
#include "plan/codec/compressor.h"

uint64_t fr_onebit_blocks(uint64_t n)
{
    return (n + FR_ONEBIT_BLOCK - 1) / FR_ONEBIT_BLOCK;
}

static uint64_t onebit_bytes(const fr_plan *plan, const fr_bucket *bucket,
                             int stage)
{
    const uint64_t scales = fr_onebit_blocks(bucket->n) * sizeof(float);
    if (stage > 0)
        return 0;
    /* GRACE's efsignsgd.py hands the booleans of >= to the all-gather. */
    if (plan->execution.compress_by == FR_COMPRESS_TENSOR)
        return scales + fr_compressor_round_up(bucket->n);
    return scales + (bucket->n + 31) / 32 * sizeof(uint32_t);
}

const fr_compressor fr_compressor_onebit = {
    .name = "onebit",
    .summary = "signs, one scale per 1024 elements",
    .is_lossy = true,
    .is_elementwise = true,
    .wants_error_feedback = true,
    .wire = FR_WIRE_GATHER,
    .n_stages = 1,
    .stage_bytes = onebit_bytes,
    .state_bytes = fr_compressor_error_bytes,
    .check = fr_compressor_check_nothing,
    /* efsignsgd.py: >=, |x|, mean; cast, * 2, - 1, times the mean */
    .encode = {.n_kernels = 3, .element_bytes = 5 + 8 + 4},
    .decode = {.n_kernels = 4, .element_bytes = 5 + 8 + 8 + 8},
};
