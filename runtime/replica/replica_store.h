/*
 * replica_store.h: where copies of a run's state lie in the memory of a host,
 * outside of the processes of the ranks, so that they outlive them:
 *
 *     DIR/forerun-replicas-HASH/store-R/step-N
 *
 * DIR is a file system in memory (/dev/shm), the hash that of the path of the
 * run's checkpoints.  The store of rank R holds its own state and the copy of
 * another rank's; step-N has the form of a checkpoint (checkpoint.h) without
 * the files that lie in other stores, and counts once it has its manifest.
 * Where FORERUN_NODE_ID cuts a machine into nodes each has a folder of its own.
 */
#ifndef FR_RUNTIME_REPLICA_REPLICA_STORE_H
#define FR_RUNTIME_REPLICA_REPLICA_STORE_H

#include "runtime/checkpoint/state.h"

#define FR_REPLICA_DIR "/dev/shm"

enum { FR_REPLICA_PATH = FR_CHECKPOINT_PATH - 256 }; /* of a run or a store */

/* The folder of a run; `dir` NULL: FR_REPLICA_DIR.  FR_IO: the directory of
 * its checkpoints is not there, or the path is too long. */
FR_CHECKED fr_status fr_replica_run_path(const char *dir,
                                         const char *checkpoint_dir,
                                         char out[FR_REPLICA_PATH],
                                         fr_err *err);

/* "RUN/store-R" and "RUN/view-R". */
void fr_replica_store_path(const char *run, int64_t rank,
                           char out[FR_REPLICA_PATH]);
void fr_replica_view_path(const char *run, int64_t rank,
                          char out[FR_REPLICA_PATH]);

/* The newest step below `below` that a store on this host has; 0: none. */
int64_t fr_replica_newest(const char *run, int64_t below);

/*
 * "RUN/store-R/step-N/NAME" of the first store from number `from` on that has
 * it, with the manifest; returns its number, -1: none has.
 */
int64_t fr_replica_find(const char *run, int64_t step, const char *name,
                        int64_t from, char path[FR_CHECKPOINT_PATH]);

/* Removes what copies that were under way when all ranks ended have taken. */
void fr_replica_drop_slots(const char *run);

/* Removes the stores of this host from that number on. */
void fr_replica_forget(const char *run, int64_t from);

/* Removes all steps but one (0: all) from the stores of this host. */
void fr_replica_keep_only(const char *run, int64_t step);

#endif
