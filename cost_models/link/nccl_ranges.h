/*
 * nccl_ranges.h: NCCL's choice by size: which algorithm and protocol its model
 * takes for payloads of a group, as ranges of bytes.
 */
#ifndef FR_COST_MODELS_LINK_NCCL_RANGES_H
#define FR_COST_MODELS_LINK_NCCL_RANGES_H

#include "cost_models/link/gpu_comm.h"

typedef struct fr_nccl_range {
    uint64_t min_bytes, max_bytes;
    const char *algorithm, *protocol; /* as in fr_nccl_time */
} fr_nccl_range;

enum { FR_NCCL_MAX_RANGES = 96 };

/*
 * Lists the choices for a collective (its op, algorithm, protocol, channels and
 * flags; not its payload) over a group: ranges in order, which together cover
 * all sizes.  The model is evaluated at every power of two up to 2^40 bytes
 * and, where two neighbours differ, for the byte where the next choice begins;
 * a choice between two equal ones is missed.  Errors of fr_gpu_comm_choice().
 */
FR_CHECKED fr_status fr_nccl_ranges_of(const fr_gpu_comm_model *comm,
                                       const fr_instr *collective,
                                       const fr_comm_scope *scope,
                                       fr_nccl_range out[FR_NCCL_MAX_RANGES],
                                       int *n, fr_err *err);

#endif
