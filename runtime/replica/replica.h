/*
 * replica.h: copies of a run's state in the memory of its hosts: every rank
 * keeps its own, and a rank of another host where there is one keeps one more,
 * so that any host may go away (Wang et al., "GEMINI: Fast Failure Recovery in
 * Distributed Training with In-Memory Checkpoints", SOSP 2023).
 *
 * A save stops training for a copy within the host's memory.  That one is sent
 * while training goes on: the messages are posted, and looked at between steps
 * (fr_replicas_is_sent).  Two steps are kept, so that one is complete whenever
 * a rank dies.  What the next ranks find they put together (replica_load.c) as
 * a checkpoint of files, from which any layout goes on.
 */
#ifndef FR_RUNTIME_REPLICA_REPLICA_H
#define FR_RUNTIME_REPLICA_REPLICA_H

#include "program/ir/program.h"
#include "runtime/checkpoint/shard_file.h"
#include "runtime/comm/transport.h"
#include "runtime/data/data_identity.h"

typedef struct fr_replica_options {
    const char *dir;            /* NULL: FR_REPLICA_DIR */
    const char *checkpoint_dir; /* which run it is */
    bool is_resumed;            /* the run may resume from existing copies */
    fr_data_identity data;
} fr_replica_options;

typedef struct fr_replicas fr_replicas;

/*
 * Collective, before any step.  Borrows program, transport and shard; close
 * takes NULL and leaves what was copied.  FR_IO: there is no room for two
 * copies of the own state and two of the other rank's.
 */
FR_CHECKED fr_status fr_replicas_open(const fr_replica_options *options,
                                      const fr_program *program,
                                      fr_transport *transport,
                                      const fr_shard *shard, fr_replicas **out,
                                      fr_err *err);
void fr_replicas_close(fr_replicas *replicas);

/* Collective: begins to copy the state after n_steps_done steps; the copy
 * before is finished first.  `loss`: of all of them on rank 0; NULL: not known.
 */
FR_CHECKED fr_status fr_replicas_save(fr_replicas *replicas,
                                      const fr_state *state,
                                      int64_t n_steps_done, const double *loss,
                                      fr_err *err);

/* Has this rank sent and received what the others do not know of? */
FR_CHECKED fr_status fr_replicas_is_sent(fr_replicas *replicas, bool *out,
                                         fr_err *err);
/* Collective: the copy under way is waited for and counts from now on. */
FR_CHECKED fr_status fr_replicas_finish(fr_replicas *replicas, fr_err *err);

/* Collective: what was copied is needed no more. */
FR_CHECKED fr_status fr_replicas_remove(fr_replicas *replicas, fr_err *err);

/* Returns the bytes of one copy of this rank's state and of the other
 * rank's. */
uint64_t fr_replicas_bytes(const fr_replicas *replicas);

/* ---- going on from them (replica_load.c) --------------------------------- */

/* Collective: the newest step below `below` of which somebody has a part; 0:
 * none. */
FR_CHECKED fr_status fr_replicas_newest(const fr_replicas *replicas,
                                        int64_t below, int64_t *out,
                                        fr_err *err);

/*
 * Collective: a directory with the checkpoint of a step, as far as this rank
 * needs it: the files of which `held` has slices whole, of the others the
 * index.  Each is verified by its hash where it lies; what no host of this rank
 * has another one sends.  *is_whole is false, everywhere, where a file is lost
 * or damaged on all hosts.  The view is to be dropped in any case.
 */
FR_CHECKED fr_status fr_replicas_view(const fr_replicas *replicas, int64_t step,
                                      const fr_tensor_slices *held,
                                      char dir[FR_CHECKPOINT_PATH],
                                      bool *is_whole, fr_err *err);
void fr_replicas_drop_view(const fr_replicas *replicas);

/* Collective: the run goes on from this step (0: of none), others are stale. */
FR_CHECKED fr_status fr_replicas_keep_only(const fr_replicas *replicas,
                                           int64_t step, fr_err *err);

#endif
