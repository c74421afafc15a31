/* powersgd_layout.c: sums of the pieces before. */
#include "kernels/powersgd_layout.h"

fr_powersgd_layout fr_powersgd_layout_of(const fr_kernel_call *call,
                                         float *wire)
{
    const fr_compress_dims *dim = &call->instr->compress;
    int64_t n = dim->n;
    fr_powersgd_layout at = {.bucket = {.first = (uint64_t)dim->first,
                                        .n = (uint64_t)n,
                                        .tensors = call->tensors,
                                        .n_tensors = call->n_tensors}};
    fr_powersgd_piece total = {0};
    float *state = call->ptr[1];
    while (fr_powersgd_next(&at.bucket, call->plan->compressor_rank, &total))
        ;
    at.error = fr_compressor_has_error(call->plan) ? state : NULL;
    at.p = at.error != NULL ? state + n : state;
    at.q = at.p + total.p;
    at.wire_raw = wire;
    at.wire_p = wire + total.raw;
    at.wire_q = at.wire_p + total.p;
    return at;
}
