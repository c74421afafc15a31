/*
 * compressor_randomk.c: elements at random places, the same on all ranks
 * (Stich, Cordonnier, Jaggi, NeurIPS 2018, arXiv 1809.07599).  The payload is
 * their values; nobody sends the places.
 */
#include "core/numbers/rng.h"
#include "plan/codec/compressor.h"

/* Returns the begin of run i of k < 2^32: floor(i n / k). */
static uint64_t run_begin(uint64_t n, uint64_t k, uint64_t i)
{
    return i * (n / k) + i * (n % k) / k;
}

uint64_t fr_randomk_index(uint64_t key, uint64_t n, uint64_t k, uint64_t i)
{
    const uint64_t first = run_begin(n, k, i);
    const uint64_t length = run_begin(n, k, i + 1) - first;
    return first + (fr_hash_u64(key, i, 0, 0) >> 32) % length;
}

static uint64_t randomk_bytes(const fr_plan *plan, const fr_bucket *bucket,
                              int stage)
{
    return stage == 0 ? sizeof(float) *
                            fr_topk_kept(plan->compressor_density, bucket->n)
                      : 0;
}

static fr_status randomk_check(const fr_plan *plan, fr_err *err)
{
    if (!(plan->compressor_density > 0 && plan->compressor_density <= 1))
        return fr_fail(err, FR_INPUT,
                       "compressor randomk: density %g is not in (0, 1]; "
                       "choose for example 0.01",
                       plan->compressor_density);
    return fr_compressor_check_shards(plan, "randomk",
                                      "a bucket's elements are drawn from "
                                      "all of it",
                                      err);
}

const fr_compressor fr_compressor_randomk = {
    .name = "randomk",
    .summary = "elements at random, the same on all ranks",
    .number = FR_COMPRESSOR_BY_DENSITY,
    .has_indices = true,
    .is_lossy = true,
    .wants_error_feedback = true,
    .wire = FR_WIRE_REDUCE,
    .wire_dtype = FR_DTYPE_F32,
    .n_stages = 1,
    .stage_bytes = randomk_bytes,
    .state_bytes = fr_compressor_error_bytes,
    .check = randomk_check,
    /* randomk.py: the seed, indices, values at them; zeros, values to their
     * places */
    .encode = {.n_kernels = 3, .payload_ratio = (4 + 4 + 32 + 4) / 4.0},
    .decode = {.n_kernels = 2,
               .element_bytes = 4,
               .payload_ratio = (4 + 4 + 32 + 32) / 4.0},
};
