/*
 * weights.h: the weights of a run from and to Hugging Face's safetensors.
 *
 * Each rank reads the elements that are its own, whatever the layout, and
 * writes those that no rank before it has.
 */
#ifndef FR_RUNTIME_WEIGHTS_WEIGHTS_H
#define FR_RUNTIME_WEIGHTS_WEIGHTS_H

#include "program/ir/program.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/comm/transport.h"

/* The weights that a run begins with. */
typedef struct fr_weights fr_weights;

/*
 * Opens the files at `path` (weight_files.h) and sees that they have all
 * tensors of the program's model, in its shapes and in a dtype that is read,
 * and no others.  FR_INPUT names file and tensor.  Borrows the program.
 */
FR_CHECKED fr_status fr_weights_open(const char *path,
                                     const fr_program *program,
                                     fr_weights **out, fr_err *err);
void fr_weights_close(fr_weights *weights); /* takes NULL */

/* Elements [first, first + n) of a rank's flat list. */
FR_CHECKED fr_status fr_weights_fill(const fr_weights *weights, int64_t rank,
                                     int64_t first, int64_t n, float *out,
                                     fr_err *err);

/* Before a run, on one rank: sees that its weights can be written to `dir`,
 * which it makes. */
FR_CHECKED fr_status fr_weights_check_dir(const char *dir,
                                          const fr_program *program,
                                          fr_err *err);

/*
 * Collective: writes the weights to `dir`, which all ranks see: one file, or
 * shards of at most shard_bytes (0: 5 GB; a larger tensor has one of its own)
 * and their index, with the config.json of the model.  What was there stays
 * until all is written.
 */
FR_CHECKED fr_status fr_weights_save(const char *dir, const fr_program *program,
                                     fr_transport *transport,
                                     const fr_state *state,
                                     uint64_t shard_bytes, fr_err *err);

#endif
