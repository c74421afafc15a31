/*
 * checkpoint.h: what training needs to go on: weights, optimizer state, error
 * feedback, step and losses so far.
 *
 * A checkpoint is a directory DIR/step-N: a file of each rank with its part of
 * the global tensors (shard_file.h), and manifest.json, written last, with the
 * hash of each file.  DIR/latest holds the name of the newest complete one.
 * Each file is written beside its place, synced and renamed, so a crash leaves
 * the older one usable.  All ranks see the directory.
 *
 * Any layout goes on from any other one, with the same model, job and data:
 * the same plan bit by bit; another begins with the same tensors, and with no
 * error feedback of a compressor, which belongs to the layout.
 */
#ifndef FR_RUNTIME_CHECKPOINT_CHECKPOINT_H
#define FR_RUNTIME_CHECKPOINT_CHECKPOINT_H

#include "core/base/buffer.h"
#include "program/ir/program.h"
#include "runtime/checkpoint/state.h"
#include "runtime/comm/transport.h"
#include "runtime/replica/replica.h"

typedef struct fr_checkpoint_options {
    const char *dir;
    bool is_resumed;
    /* A save copies the state and returns; a thread writes the copy. */
    bool is_async;
    int64_t n_kept; /* newest complete ones that stay; 0: 2 */
    /* Also copies in memory (replica.h), there; NULL: where they usually are.
     */
    bool is_replicated;
    const char *replica_dir;
} fr_checkpoint_options;

/* The checkpoints of one run; one for each rank. */
typedef struct fr_checkpoints fr_checkpoints;

/*
 * Collective, before any step: makes the directory, sees that it can be
 * written, and learns what data the run has.  Borrows program and transport;
 * close takes NULL.  FR_IO: it cannot be written; FR_INPUT: there are
 * checkpoints in it and the run is not resumed, which would lose them.
 */
FR_CHECKED fr_status fr_checkpoints_open(const fr_checkpoint_options *options,
                                         const fr_program *program,
                                         fr_transport *transport,
                                         fr_checkpoints **out, fr_err *err);
void fr_checkpoints_close(fr_checkpoints *checkpoints);

/*
 * Collective: saves the state after n_steps_done steps.  `loss`: of all of
 * them, kept beside the state by rank 0; NULL: not known.  Where writing is
 * asynchronous the one before is finished first, and FR_IO may be of that.
 */
FR_CHECKED fr_status fr_checkpoints_save(fr_checkpoints *checkpoints,
                                         const fr_state *state,
                                         int64_t n_steps_done,
                                         const double *loss, fr_err *err);

/* Has this rank's thread written a file that the others do not know of?  Once
 * all have, fr_checkpoints_finish() makes the checkpoint complete. */
bool fr_checkpoints_is_written(const fr_checkpoints *checkpoints);
/* Collective: agrees on what was written; is_waited, as at the end of a run:
 * it is on the disk.  FR_IO: it could not be written. */
FR_CHECKED fr_status fr_checkpoints_finish(fr_checkpoints *checkpoints,
                                           bool is_waited, fr_err *err);

/* NULL: none are wanted. */
fr_replicas *fr_checkpoints_replicas(fr_checkpoints *checkpoints);
/* Was the one that the run goes on from loaded from them? */
bool fr_checkpoints_is_from_memory(const fr_checkpoints *checkpoints);

/*
 * Collective: loads the newest one that is whole, copies in memory among them,
 * into the slab; rank 0 says
 * in `notes` (lines) which were passed over and why.  *n_steps_done is 0 when
 * there is none at all.  *loss, of all steps so far, is the caller's to free;
 * NULL where it is not known, and on all ranks but 0.  FR_INPUT: of another
 * model, job or data; also where there are some and all are damaged.
 */
FR_CHECKED fr_status fr_checkpoints_load(fr_checkpoints *checkpoints,
                                         const fr_state *state,
                                         int64_t *n_steps_done, double **loss,
                                         fr_buffer *notes, fr_err *err);

#endif
