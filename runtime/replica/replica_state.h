/* replica_state.h: copies in memory from inside: runtime/replica/ only. */
#ifndef FR_RUNTIME_REPLICA_REPLICA_STATE_H
#define FR_RUNTIME_REPLICA_REPLICA_STATE_H

#include "core/base/vec.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/replica/replica.h"
#include "runtime/replica/replica_store.h"

#include <pthread.h>

/* Messages of copies, beside those of set-up and of step exchange. */
enum { FR_TAG_REPLICA = FR_TAG_SETUP + 1 };

/* One of the two places that a rank's copies take turns in. */
typedef struct fr_replica_slot {
    char name[32];             /* in the store: "slot-0", then "step-N" */
    unsigned char *own, *held; /* mapped files; NULL: not made yet */
} fr_replica_slot;

typedef struct fr_replica_message {
    fr_message request;
    int64_t peer;
    bool is_done;
} fr_replica_message;

/* A copy under way. */
typedef struct fr_replica_transfer {
    bool is_pending;
    int64_t n_steps_done;
    double *loss; /* own ones on rank 0, or what its holder receives */
    bool is_loss_known;
    fr_vec(fr_replica_message) messages;
    uint64_t hash; /* of the own image, by the thread */
    pthread_t thread;
    bool is_running;
    _Atomic bool is_hashed;
} fr_replica_transfer;

struct fr_replicas {
    const fr_program *program;
    fr_transport *transport;
    const fr_shard *shard;
    fr_data_identity data;
    char run[FR_REPLICA_PATH], store[FR_REPLICA_PATH];
    int64_t holder, source; /* the rank that keeps this rank's copy; the rank
                               whose copy it keeps */
    uint64_t own_bytes, held_bytes; /* held_bytes 0: the world is one rank */
    fr_replica_slot slots[2];
    int i_slot; /* the older one */
    fr_replica_transfer transfer;
};

/* Maps a file of memory with room for all of it; FR_IO: there is none. */
FR_CHECKED fr_status fr_replica_map(const char *path, uint64_t n_bytes,
                                    unsigned char **out, fr_err *err);
void fr_replica_unmap(unsigned char *bytes, uint64_t n_bytes);

#endif
