/*
 * checkpoint_dir.h: the directory of a run's checkpoints: which there are,
 * manifests, and the removal of old ones (checkpoint.h).
 */
#ifndef FR_RUNTIME_CHECKPOINT_CHECKPOINT_DIR_H
#define FR_RUNTIME_CHECKPOINT_CHECKPOINT_DIR_H

#include "core/base/buffer.h"
#include "runtime/checkpoint/state.h"

/* "step-12": 12; 0: it is no such name. */
int64_t fr_checkpoint_step(const char *name);

/* The largest N below `below` of a directory step-N in `dir`; 0: none. */
int64_t fr_checkpoint_older(const char *dir, int64_t below);

/* Returns the step to resume from: the one that `latest` names, else the
 * newest, 0: there is none.  Adds a line to `notes` if `latest` is missing or
 * invalid. */
int64_t fr_checkpoint_newest(const char *dir, fr_buffer *notes);

/* Was it ever a checkpoint to go on from?  What a run was killed in the middle
 * of has no manifest, and is not what `latest` names. */
bool fr_checkpoint_was_finished(const char *dir, int64_t n_steps_done);

/* Removes one, as far as it goes. */
void fr_checkpoint_remove(const char *dir, int64_t n_steps_done);

/*
 * Removes what is older than `newest` but for the n_kept - 1 newest complete
 * ones (by their manifests and the sizes of their files); those in the open
 * range (`suspect_after`, `suspect_before`) go too, which were passed over.
 */
void fr_checkpoint_prune(const char *dir, int64_t newest, int64_t n_kept,
                         int64_t suspect_after, int64_t suspect_before);

/* Makes step-N the latest. */
FR_CHECKED fr_status fr_checkpoint_point_at(const char *dir,
                                            int64_t n_steps_done, fr_err *err);

#endif
