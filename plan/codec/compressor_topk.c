/*
 * compressor_topk.c: the largest elements of a bucket.  The
 * payload is their u32 indices, then their f32 values.
 */
#include "plan/codec/compressor.h"

#include <math.h>

uint64_t fr_topk_kept(double density, uint64_t n)
{
    double kept = floor(density * (double)n + 0.5);
    uint64_t k = kept < 1 ? 1 : (uint64_t)kept;
    return k < n ? k : n;
}

static uint64_t topk_bytes(const fr_plan *plan, const fr_bucket *bucket,
                           int stage)
{
    return stage == 0 ? 8 * fr_topk_kept(plan->compressor_density, bucket->n)
                      : 0;
}

static fr_status topk_check(const fr_plan *plan, fr_err *err)
{
    if (!(plan->compressor_density > 0 && plan->compressor_density <= 1))
        return fr_fail(err, FR_INPUT,
                       "compressor topk: density %g is not in (0, 1]; choose "
                       "for example 0.01",
                       plan->compressor_density);
    return fr_compressor_check_shards(plan, "topk",
                                      "a bucket's largest elements lie in "
                                      "any slice",
                                      err);
}

const fr_compressor fr_compressor_topk = {
    .name = "topk",
    .summary = "the largest elements of each bucket",
    .number = FR_COMPRESSOR_BY_DENSITY,
    .has_indices = true,
    .is_lossy = true,
    .wants_error_feedback = true,
    .wire = FR_WIRE_GATHER,
    .n_stages = 1,
    .stage_bytes = topk_bytes,
    .state_bytes = fr_compressor_error_bytes,
    .check = topk_check,
    /* topk.py: |x|, selection, values at the indices, one payload of both;
     * zeros, the payload in two, values to their places */
    .encode = {.n_kernels = 3,
               .element_bytes = 8,
               .payload_ratio = (4 + 32 + 4 + 8 + 8) / 8.0,
               .is_selection = true},
    .decode = {.n_kernels = 3,
               .element_bytes = 4,
               .payload_ratio = (8 + 8 + 8 + 32 + 32) / 8.0},
};
