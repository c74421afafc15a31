/*
 * block_tensors.h: of how many tensors a block is made.
 *
 * What a call keeps and its scratch are blocks of many tensors.  They begin
 * where the instructions of the call that makes the block point into it.
 */
#ifndef FR_PROGRAM_MEMORY_BLOCK_TENSORS_H
#define FR_PROGRAM_MEMORY_BLOCK_TENSORS_H

#include "core/base/vec.h"
#include "program/ir/program.h"

/* The offsets at which each segment points into each space, ascending. */
typedef struct fr_tensor_marks {
    const fr_program *program;
    uint32_t *first;          /* [segments][spaces of many tensors], an end */
    fr_vec(uint64_t) offsets; /* bytes from the space's base */
    fr_vec(uint64_t) cuts;    /* scratch: of the block that is looked at */
} fr_tensor_marks;

/* `program` NULL: every block is one tensor.  FR_NO_MEMORY. */
FR_CHECKED fr_status fr_tensor_marks_init(const fr_program *program,
                                          fr_tensor_marks *out, fr_err *err);
void fr_tensor_marks_release(fr_tensor_marks *marks);

/*
 * The tensors of a block: their number, 0 when out of memory; they begin at
 * marks->cuts.items[0 .. n) (bytes from the block's begin, ascending, the
 * first is 0), and the last ends where the block does, at items[n].
 */
FR_CHECKED size_t fr_block_tensors(fr_tensor_marks *marks,
                                   const fr_rank_program *rank_program,
                                   const fr_block *block);

#endif
