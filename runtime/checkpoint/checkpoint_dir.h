/*
 * checkpoint_dir.h: the directory of a run's checkpoints: which there are,
 * manifests, and the removal of old ones (checkpoint.h).
 */
#ifndef FR_RUNTIME_CHECKPOINT_CHECKPOINT_DIR_H
#define FR_RUNTIME_CHECKPOINT_CHECKPOINT_DIR_H

#include "core/base/buffer.h"

enum { FR_CHECKPOINT_PATH = 1024 };

/* The largest N below `below` of a directory step-N in `dir`; 0: none. */
int64_t fr_checkpoint_older(const char *dir, int64_t below);

/* Where to begin: what `latest` names, else the newest there is, 0: nothing;
 * a line in `notes` where `latest` is missing or says nothing. */
int64_t fr_checkpoint_newest(const char *dir, fr_buffer *notes);

/* FR_IO: the manifest of step-N cannot be read or is damaged, with its path. */
FR_CHECKED fr_status fr_checkpoint_read_manifest(const char *dir,
                                                 int64_t n_steps_done,
                                                 int64_t world,
                                                 uint64_t *hashes, fr_err *err);

/* Removes all that are older than `newest` but `kept`. */
void fr_checkpoint_prune(const char *dir, int64_t newest, int64_t kept);

/* Writes the manifest and makes it the latest. */
FR_CHECKED fr_status fr_checkpoint_publish(const char *dir,
                                           int64_t n_steps_done,
                                           const uint64_t *hashes,
                                           int64_t world, fr_err *err);

#endif
