/*
 * compressor_int8.c: 8-bit codes.  The payload is the fp32
 * scales of the blocks, then the codes.
 */
#include "plan/codec/compressor.h"

static uint64_t int8_bytes(const fr_plan *plan, const fr_bucket *bucket,
                           int stage)
{
    (void)plan;
    uint64_t n_blocks = (bucket->n + FR_INT8_BLOCK - 1) / FR_INT8_BLOCK;
    return stage == 0
               ? n_blocks * sizeof(float) + fr_compressor_round_up(bucket->n)
               : 0;
}

const fr_compressor fr_compressor_int8 = {
    .name = "int8",
    .summary = "8-bit codes, one scale per 256 elements",
    .is_lossy = true,
    .is_elementwise = true,
    .wants_error_feedback = true,
    .wire = FR_WIRE_GATHER,
    .n_stages = 1,
    .stage_bytes = int8_bytes,
    .state_bytes = fr_compressor_error_bytes,
    .check = fr_compressor_check_nothing,
    /* qsgd.py: norm, |x|, times levels, floor, uniform, -, <, cast, +, sign,
     * *, cast; cast, times scale */
    .encode = {.n_kernels = 12,
               .element_bytes =
                   4 + 8 + 8 + 8 + 4 + 12 + 9 + 5 + 12 + 8 + 12 + 5},
    .decode = {.n_kernels = 2, .element_bytes = 5 + 8},
};
