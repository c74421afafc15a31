/*
 * checkpoint_lock.h: one run at a time writes a directory of checkpoints.
 *
 * Rank 0 holds a lock on DIR/lock, a file with its pid and host, as long as it
 * writes there.  The kernel gives the lock up when the process dies, so the
 * file says nothing by being there.  Reading checkpoints needs no lock.
 */
#ifndef FR_RUNTIME_CHECKPOINT_CHECKPOINT_LOCK_H
#define FR_RUNTIME_CHECKPOINT_CHECKPOINT_LOCK_H

#include "core/base/err.h"

/* Seconds to wait for a run that may be about to end: a run that was killed
 * when its successor started must first release its memory. */
#define FR_CHECKPOINT_LEAVE_S 3.0

/*
 * Takes the lock, waiting up to wait_s for a run that is about to end.  *out is
 * for fr_checkpoint_unlock(); -1: the file system has no locks, and nobody is
 * kept out.  FR_INPUT: another run holds it; FR_IO.
 */
FR_CHECKED fr_status fr_checkpoint_lock(const char *dir, double wait_s,
                                        int *out, fr_err *err);
void fr_checkpoint_unlock(int lock); /* takes -1 */

/* Does a run write there now? */
bool fr_checkpoint_is_locked(const char *dir);

#endif
