/*
 * shard_reader.h: a checkpoint that is read: any slice of any of its tensors,
 * whatever ranks wrote it.
 */
#ifndef FR_RUNTIME_CHECKPOINT_SHARD_READER_H
#define FR_RUNTIME_CHECKPOINT_SHARD_READER_H

#include "runtime/checkpoint/manifest.h"
#include "runtime/checkpoint/shard_file.h"

typedef struct fr_shard_reader fr_shard_reader;

/* Reads the manifest and all indices.  FR_IO: one is missing or damaged;
 * FR_INPUT: of another version. */
FR_CHECKED fr_status fr_shard_reader_open(const char *dir, int64_t n_steps_done,
                                          fr_shard_reader **out, fr_err *err);
void fr_shard_reader_close(fr_shard_reader *reader); /* takes NULL */

const fr_manifest *fr_shard_reader_manifest(const fr_shard_reader *reader);
const fr_shard_index *fr_shard_reader_index(const fr_shard_reader *reader,
                                            int64_t i_file);

/* Has a file the size and the hash that the manifest says?  FR_IO: no. */
FR_CHECKED fr_status fr_shard_reader_verify(const fr_shard_reader *reader,
                                            int64_t i_file, fr_err *err);

/* Puts the elements of a slice together, wherever they lie; its place does not
 * matter.  FR_IO: the checkpoint lacks some, or cannot be read. */
FR_CHECKED fr_status fr_shard_reader_get(fr_shard_reader *reader,
                                         const fr_tensor_slice *slice,
                                         void *bytes, fr_err *err);

/* Hands slices to a state at their places, at most a piece at once. */
FR_CHECKED fr_status fr_shard_reader_restore(fr_shard_reader *reader,
                                             const fr_tensor_slices *slices,
                                             const fr_state *state,
                                             fr_err *err);

/* The same with what belongs to the layout, from the file of the same rank;
 * *is_there is false where the layout is another. */
FR_CHECKED fr_status fr_shard_reader_restore_own(fr_shard_reader *reader,
                                                 int64_t rank, uint64_t layout,
                                                 const fr_byte_ranges *ranges,
                                                 const fr_state *state,
                                                 bool *is_there, fr_err *err);

#endif
