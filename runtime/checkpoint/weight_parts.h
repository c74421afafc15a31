/*
 * weight_parts.h: where the parameters of a rank lie in its slab: the whole
 * flat list, or with ZeRO 3 the rank's own shard of each unit.
 */
#ifndef FR_RUNTIME_CHECKPOINT_WEIGHT_PARTS_H
#define FR_RUNTIME_CHECKPOINT_WEIGHT_PARTS_H

#include "core/base/vec.h"
#include "plan/ir/program.h"

typedef struct fr_weight_part {
    uint64_t offset_bytes; /* in the slab */
    int64_t first, n;      /* elements of the flat list */
} fr_weight_part;

typedef fr_vec(fr_weight_part) fr_weight_parts;

/* Appends the parts; fr_vec_release(out) frees, also after a failure. */
FR_CHECKED fr_status fr_weight_parts_list(const fr_program *program,
                                          int64_t rank, fr_weight_parts *out,
                                          fr_err *err);

#endif
