/*
 * compressor_parts.c: members that several compressors share.
 */
#include "plan/codec/compressor.h"

#include <stdio.h>

const fr_codec_work fr_codec_feedback = {.n_kernels = 2,
                                         .element_bytes = 12 + 12};
const fr_codec_work fr_codec_sum = {.n_kernels = 1, .element_bytes = 12};

uint64_t fr_compressor_round_up(uint64_t n_bytes)
{
    return (n_bytes + 3) / 4 * 4;
}

uint64_t fr_compressor_error_bytes(const fr_plan *plan, const fr_bucket *bucket)
{
    return plan->has_error_feedback ? bucket->n * sizeof(float) : 0;
}

uint64_t fr_compressor_no_state(const fr_plan *plan, const fr_bucket *bucket)
{
    (void)plan;
    (void)bucket;
    return 0;
}

fr_status fr_compressor_check_nothing(const fr_plan *plan, fr_err *err)
{
    (void)plan;
    (void)err;
    return FR_OK;
}

fr_status fr_compressor_check_shards(const fr_plan *plan, const char *name,
                                     const char *why, fr_err *err)
{
    const int64_t n_data = (int64_t)plan->dp * plan->cp;
    if (plan->zero_stage == 0 ||
        (plan->zero_stage == 1 && plan->zero_group > 0 &&
         plan->zero_group < n_data))
        return FR_OK;
    char group[64] = "";
    int64_t most = n_data / 2;
    while (most > 1 && n_data % most != 0)
        most--;
    if (most > 1)
        snprintf(group, sizeof group, ", or zero 1 with zero_group %lld",
                 (long long)most);
    return fr_fail(err, FR_INPUT,
                   "compressor %s does not go with ZeRO %d, which scatters "
                   "the reduced gradient: %s; choose zero 0%s, or bf16 or int8",
                   name, (int)plan->zero_stage, why, group);
}

fr_status fr_compressor_check_no_zero(const fr_plan *plan, const char *name,
                                      const char *why, fr_err *err)
{
    if (plan->zero_stage == 0)
        return FR_OK;
    return fr_fail(err, FR_INPUT,
                   "compressor %s does not go with ZeRO %d, which scatters "
                   "the reduced gradient: %s; choose zero 0, or bf16 or int8",
                   name, (int)plan->zero_stage, why);
}
