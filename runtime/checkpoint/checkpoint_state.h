/*
 * checkpoint_state.h: the checkpoints of a run from inside: checkpoint.c opens
 * and loads them, checkpoint_write.c writes them.
 */
#ifndef FR_RUNTIME_CHECKPOINT_CHECKPOINT_STATE_H
#define FR_RUNTIME_CHECKPOINT_CHECKPOINT_STATE_H

#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/checkpoint/shard_file.h"

#include <pthread.h>
#include <stdatomic.h>

/* One checkpoint on its way to the disk. */
typedef struct fr_checkpoint_writer {
    unsigned char *image; /* of this rank's file; NULL: never asynchronous */
    int64_t n_steps_done;
    double *loss; /* [n_steps_done] on rank 0; NULL: not known */
    uint64_t hash;
    fr_status status;
    fr_err why;
    pthread_t thread;
    bool is_running; /* the thread is there to be joined */
    bool is_pending; /* the ranks have not yet agreed that it is written */
    _Atomic bool is_written;
    fr_manifest_file *files; /* of all ranks: what rank 0 publishes */
} fr_checkpoint_writer;

struct fr_checkpoints {
    char dir[FR_CHECKPOINT_PATH - 64]; /* names are appended to it */
    const fr_program *program;
    fr_transport *transport;
    fr_data_identity data;
    bool is_async;
    int64_t n_kept;
    int64_t loaded, own_first; /* steps: the one that was loaded, 0 without; the
                                  first that this run has saved */
    fr_shard shard;            /* the parts that this rank writes */
    fr_checkpoint_writer writer;
    fr_replicas *replicas; /* NULL: none are wanted */
    bool is_from_memory;   /* the loaded checkpoint */
    int lock; /* of rank 0, on the directory (checkpoint_lock.h); -1: none */
};

/* Lists the parts of the state that a rank of a program writes. */
FR_CHECKED fr_status fr_shard_plan(const fr_program *program, int64_t rank,
                                   fr_shard *out, fr_err *err);

/* All files of the ranks are there: writes losses (NULL: not known), manifest
 * and `latest`. */
FR_CHECKED fr_status fr_checkpoint_publish(const char *dir,
                                           const fr_program *program,
                                           fr_manifest *manifest,
                                           const double *loss, fr_err *err);

/* Before the first asynchronous save. */
FR_CHECKED fr_status fr_checkpoint_writer_start(fr_checkpoints *checkpoints,
                                                fr_err *err);
/* Waits for the thread, and gives back what the writer holds. */
void fr_checkpoint_writer_stop(fr_checkpoints *checkpoints);

#endif
