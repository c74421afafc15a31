/*
 * checkpoint.h: what training needs to go on: weights, optimizer state, error
 * feedback, step.
 *
 * A checkpoint is a directory DIR/step-N: rank-R files with the persistent
 * blocks of each rank's slab but the gradients (which every step clears), and
 * manifest.json, written last, with the hash of each file.  DIR/latest holds
 * the name of the newest complete one.  Each file is written beside its place,
 * synced and renamed, so a crash leaves the older one usable.  Resuming needs
 * the same plan, model, job and data; then it is bit-identical.  The two
 * newest checkpoints are kept.
 */
#ifndef FR_RUNTIME_CHECKPOINT_CHECKPOINT_H
#define FR_RUNTIME_CHECKPOINT_CHECKPOINT_H

#include "core/base/buffer.h"
#include "plan/ir/program.h"
#include "runtime/comm/transport.h"

/* This rank's slab, wherever it lies; at most FR_STATE_PIECE_BYTES at once. */
#define FR_STATE_PIECE_BYTES ((uint64_t)256 << 10)

typedef struct fr_state {
    void *context;
    /* What is read stays until the next call. */
    fr_status (*view)(void *context, uint64_t offset_bytes, uint64_t n_bytes,
                      const void **out, fr_err *err);
    fr_status (*store)(void *context, uint64_t offset_bytes, uint64_t n_bytes,
                       const void *bytes, fr_err *err);
} fr_state;

/* The checkpoints of one run; one for each rank. */
typedef struct fr_checkpoints fr_checkpoints;

/*
 * Collective, before any step: makes the directory, sees that it can be
 * written, and learns what model and data the run has.  Borrows program and
 * transport; close takes NULL.  FR_IO: it cannot be written; FR_INPUT: there
 * are checkpoints in it and the run is not resumed, which would lose them.
 */
FR_CHECKED fr_status fr_checkpoints_open(const char *dir,
                                         const fr_program *program,
                                         fr_transport *transport,
                                         bool is_resumed, fr_checkpoints **out,
                                         fr_err *err);
void fr_checkpoints_close(fr_checkpoints *checkpoints);

/* Collective: saves the state after n_steps_done steps. */
FR_CHECKED fr_status fr_checkpoints_save(fr_checkpoints *checkpoints,
                                         const fr_state *state,
                                         int64_t n_steps_done, fr_err *err);

/*
 * Collective: loads the newest one that is whole into the slab; rank 0 says
 * in `notes` (lines) which were passed over and why.  *n_steps_done is 0 when
 * there is none at all.  FR_INPUT: of another plan, model, job or data;
 * also where there are some and all are damaged.
 */
FR_CHECKED fr_status fr_checkpoints_load(fr_checkpoints *checkpoints,
                                         const fr_state *state,
                                         int64_t *n_steps_done,
                                         fr_buffer *notes, fr_err *err);

#endif
