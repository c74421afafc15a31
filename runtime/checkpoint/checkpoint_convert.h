/*
 * checkpoint_convert.h: a checkpoint written anew as ranks of another layout
 * would have written it, without them.
 */
#ifndef FR_RUNTIME_CHECKPOINT_CHECKPOINT_CONVERT_H
#define FR_RUNTIME_CHECKPOINT_CHECKPOINT_CONVERT_H

#include "runtime/checkpoint/shard_reader.h"

/* All files have what the manifest says.  FR_IO names the first that has
 * not. */
FR_CHECKED fr_status fr_checkpoint_verify(const fr_shard_reader *reader,
                                          fr_err *err);

/*
 * Writes it into `dir` for the ranks of a program of the same model, job and
 * precision.  Error feedback of compressors is kept where the layout is the
 * same, else it is zero.  One rank's state is in memory at a time.  FR_INPUT:
 * the program's is another model or job, or `dir` holds checkpoints already.
 */
FR_CHECKED fr_status fr_checkpoint_convert(fr_shard_reader *reader,
                                           const char *source_dir,
                                           const fr_program *program,
                                           const char *dir, fr_err *err);

#endif
