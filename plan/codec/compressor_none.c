/*
 * compressor_none.c: gradients as they are.
 */
#include "plan/codec/compressor.h"

static uint64_t none_bytes(const fr_plan *plan, const fr_bucket *bucket,
                           int stage)
{
    (void)plan;
    return stage == 0 ? bucket->n * sizeof(float) : 0;
}

const fr_compressor fr_compressor_none = {
    .name = "none",
    .summary = "gradients as they are (fp32)",
    .is_elementwise = true,
    .wire = FR_WIRE_PLAIN,
    .n_stages = 1,
    .stage_bytes = none_bytes,
    .state_bytes = fr_compressor_no_state,
    .check = fr_compressor_check_nothing,
};
