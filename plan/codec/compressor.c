/*
 * compressor.c: what compressors have in common.
 */
#include "plan/codec/compressor.h"

#include "core/base/units.h"

#include <stddef.h>

static const char *name_at(int i)
{
    return i < fr_n_compressors ? fr_compressors[i]->name : NULL;
}
const fr_names fr_compressor_names = {.at = name_at,
                                      .n_rows = &fr_n_compressors};

const fr_compressor *fr_compressor_of(const fr_plan *plan)
{
    return fr_compressors[plan->compressor];
}

uint64_t fr_compressor_payload_bytes(const fr_plan *plan,
                                     const fr_bucket *bucket)
{
    const fr_compressor *compressor = fr_compressor_of(plan);
    uint64_t n_bytes = 0;
    for (int stage = 0; stage < compressor->n_stages; stage++)
        n_bytes += compressor->stage_bytes(plan, bucket, stage);
    return n_bytes;
}

bool fr_compressor_has_error(const fr_plan *plan)
{
    return plan->has_error_feedback &&
           fr_compressor_of(plan)->wants_error_feedback;
}

bool fr_compressor_set_number(const char *text, fr_plan *plan)
{
    fr_err why;
    switch (fr_compressor_of(plan)->number) {
    case FR_COMPRESSOR_BY_RANK:
        return fr_parse_i64(text, &plan->compressor_rank, &why) == FR_OK;
    case FR_COMPRESSOR_BY_DENSITY:
        return fr_parse_double(text, &plan->compressor_density, &why) == FR_OK;
    default:
        return false;
    }
}

void fr_compressor_mend_number(fr_plan *plan)
{
    const fr_compressor_number number = fr_compressor_of(plan)->number;
    if (number == FR_COMPRESSOR_BY_RANK && plan->compressor_rank == 0)
        plan->compressor_rank = 4;
    if (number == FR_COMPRESSOR_BY_DENSITY && plan->compressor_density <= 0.0)
        plan->compressor_density = 0.01;
}
