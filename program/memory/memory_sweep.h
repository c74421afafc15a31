/*
 * memory_sweep.h: packing in the order of time, for very many buffers.
 */
#ifndef FR_PROGRAM_MEMORY_MEMORY_SWEEP_H
#define FR_PROGRAM_MEMORY_MEMORY_SWEEP_H

#include "program/memory/memory_pack.h"

/*
 * Items come in the order of their first call, each into the smallest gap
 * that holds it, else on top; their memory is free after the last call.  n log
 * n and the number of gaps, where better orders cost n^2.  As fr_memory_pack().
 */
FR_CHECKED fr_status fr_memory_sweep(fr_pack_item *items, size_t n,
                                     uint64_t *total_bytes, fr_err *err);

#endif
