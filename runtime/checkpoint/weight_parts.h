/*
 * weight_parts.h: where the parameters of a rank lie in its slab: the whole
 * flat list, or with ZeRO 3 the rank's own shard of each unit.
 */
#ifndef FR_RUNTIME_CHECKPOINT_WEIGHT_PARTS_H
#define FR_RUNTIME_CHECKPOINT_WEIGHT_PARTS_H

#include "core/base/vec.h"
#include "runtime/rank/rank_context.h"

typedef struct fr_weight_part {
    uint64_t offset_bytes; /* in the slab */
    int64_t first, n;      /* elements of the flat list */
} fr_weight_part;

typedef fr_vec(fr_weight_part) fr_weight_parts;

/* Returns the offset in the slab of the parameters that an OPT_STEP updates.
 * With flag HOST its own operand is a copy of them, and the HOST_COPY behind it
 * has them. */
uint64_t fr_updated_bytes(const fr_rank_context *rank, const fr_call *call,
                          const fr_instr *instr);

/* Appends the parts; fr_vec_release(out) frees, also after a failure. */
FR_CHECKED fr_status fr_weight_parts_list(const fr_program *program,
                                          int64_t rank, fr_weight_parts *out,
                                          fr_err *err);

#endif
