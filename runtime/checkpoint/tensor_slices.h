/*
 * tensor_slices.h: which part of which global tensor a rank holds, and where
 * in its slab: what makes a checkpoint of one layout one of any other.
 *
 * A slice is a rectangle of a whole tensor, of the parameter itself or of what
 * the optimizer keeps beside it, that lies in the slab in one piece, row after
 * row.  Padding belongs to no slice; it stays as it was before the first step.
 */
#ifndef FR_RUNTIME_CHECKPOINT_TENSOR_SLICES_H
#define FR_RUNTIME_CHECKPOINT_TENSOR_SLICES_H

#include "core/base/vec.h"
#include "program/ir/program.h"

typedef struct fr_tensor_slice {
    uint32_t tensor; /* fr_tensor.id */
    uint32_t what;   /* 0: the parameter; i: the i-th float32 of the optimizer's
                        state of it (moments, then the master copy) */
    int64_t row, col, n_rows, n_cols; /* of the whole tensor */
    uint64_t at_bytes;                /* in the slab, or in a file */
    uint64_t element_bytes;
} fr_tensor_slice;

typedef fr_vec(fr_tensor_slice) fr_tensor_slices;

typedef struct fr_byte_range {
    uint64_t at_bytes, n_bytes;
} fr_byte_range;

typedef fr_vec(fr_byte_range) fr_byte_ranges;

uint64_t fr_tensor_slice_bytes(const fr_tensor_slice *slice);

/* All that a rank holds.  Appends, as all of these; fr_vec_release(out) frees,
 * also after a failure. */
FR_CHECKED fr_status fr_tensor_slices_held(const fr_program *program,
                                           int64_t rank, fr_tensor_slices *out,
                                           fr_err *err);

/* Lists the slices that a rank writes.  Of a slice that several ranks hold each
 * writes a part, so that all ranks together write each element once. */
FR_CHECKED fr_status fr_tensor_slices_written(const fr_program *program,
                                              int64_t rank,
                                              fr_tensor_slices *out,
                                              fr_err *err);

/* Lists the state that outlives a step and belongs to the layout: error
 * feedback of a compressor, and each rank's own copies of tensors that others
 * hold too, where compressed gradients let them differ. */
FR_CHECKED fr_status fr_layout_ranges(const fr_program *program, int64_t rank,
                                      fr_byte_ranges *out, fr_err *err);

#endif
