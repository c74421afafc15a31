/*
 * transport.h: how the ranks of a run reach each other: messages between any
 * two, and slabs that ranks of one node see directly.
 *
 * Backends: MPI (transport_mpi.c), threads of one process
 * (transport_loopback.c: tests, and world 1 without MPI), sockets
 * (transport_tcp.c: GPU runs that a launcher without MPI started).  One thread
 * at a time may use a transport; a message belongs to whoever waits for it.
 */
#ifndef FR_RUNTIME_COMM_TRANSPORT_H
#define FR_RUNTIME_COMM_TRANSPORT_H

#include "core/base/err.h"
#include "runtime/comm/transport_shm.h"

/* A message in flight; the backend's own, zero: none. */
typedef struct fr_message {
    void *handle;
} fr_message;

typedef struct fr_transport fr_transport;

typedef struct fr_transport_ops {
    const char *name;
    void (*destroy)(fr_transport *transport);
    /* Collective: makes every rank's slab and control block visible to the
     * ranks of its node.  Memory is zero, and that which is shared is there:
     * FR_NO_MEMORY where it has no room, instead of a signal later. */
    fr_status (*open_slab)(fr_transport *transport, uint64_t n_bytes,
                           fr_err *err);
    void (*close_slab)(fr_transport *transport);
    /* Buffers stay the caller's and untouched until test() says done.
     * Messages of one (source, destination, tag) arrive in order. */
    fr_status (*isend)(fr_transport *transport, int64_t peer, int tag,
                       const void *bytes, uint64_t n_bytes, fr_message *request,
                       fr_err *err);
    fr_status (*irecv)(fr_transport *transport, int64_t peer, int tag,
                       void *bytes, uint64_t n_bytes, fr_message *request,
                       fr_err *err);
    fr_status (*test)(fr_transport *transport, fr_message *request,
                      bool *is_done, fr_err *err);
    /* Has a message from `peer` with that tag begun to come? */
    fr_status (*probe)(fr_transport *transport, int64_t peer, int tag,
                       bool *is_there, fr_err *err);
    /* May be NULL, and are called from any thread.  check() fails if a rank has
     * died or announced why it ends; announce() tells all ranks why this one
     * does. */
    fr_status (*check)(fr_transport *transport, fr_err *err);
    void (*announce)(fr_transport *transport, const char *text);
} fr_transport_ops;

struct fr_transport {
    const fr_transport_ops *ops;
    int64_t rank, world;
    int32_t *node_of_rank;    /* [world], numbered in rank order from 0 */
    int64_t n_local;          /* ranks of this machine (not node) and ... */
    int64_t i_local;          /* ... which of them this is: for pinning */
    uint64_t slab_bytes;      /* of this rank */
    bool is_slab_shared;      /* it is shared memory, not private */
    uint64_t private_bytes;   /* of fr_transport_open_private(); 0: not open */
    unsigned char **slab;     /* [world]; NULL: not on this node */
    fr_shm_control **control; /* [world]; NULL likewise */
    double timeout_s;         /* of the blocking calls below */
    fr_shm_bell idle_bell;    /* nobody rings it: naps while polling */
};

/* Largest message; longer data go in pieces. */
#define FR_TRANSPORT_MAX_BYTES ((uint64_t)1 << 30)

/* Tags: setup and step exchange; above them even ones for point to point (the
 * instruction's tag), odd ones for collectives (axis, lane, transfer). */
enum { FR_TAG_SETUP = 1, FR_TAG_FIRST = 64 };

/*
 * Joins the world of the launcher (MPI_Init_thread when nobody did), as many
 * ranks as `world`, which must be MPI's size or less (ranks beyond it get
 * *out == NULL).  FR_FAILURE when it cannot, FR_USAGE when MPI was left out
 * of the build.  fr_transport_mpi_finish() ends MPI, once per process.
 */
FR_CHECKED fr_status fr_transport_mpi_create(int64_t world, double timeout_s,
                                             fr_transport **out, fr_err *err);
void fr_transport_mpi_finish(void);
/* Was MPI compiled in? */
bool fr_transport_mpi_is_available(void);

/* A world inside this process: rank i is driven by a thread of its own. */
typedef struct fr_loopback fr_loopback;
/* node_of_rank may be NULL: all on one node.  Outlives its transports, which
 * open their slabs once. */
FR_CHECKED fr_status fr_loopback_create(int64_t world,
                                        const int32_t *node_of_rank,
                                        fr_loopback **out, fr_err *err);
void fr_loopback_destroy(fr_loopback *hub); /* takes NULL */
FR_CHECKED fr_status fr_transport_loopback_create(fr_loopback *hub,
                                                  int64_t rank,
                                                  double timeout_s,
                                                  fr_transport **out,
                                                  fr_err *err);

/* A world of one, which needs no hub of the caller's. */
FR_CHECKED fr_status fr_transport_alone_create(double timeout_s,
                                               fr_transport **out, fr_err *err);

void fr_transport_destroy(fr_transport *transport); /* takes NULL */

/* Zeroed memory of this process, paged in as it is written; NULL: none. */
unsigned char *fr_transport_map_private(uint64_t window_bytes);

/* For backends: gives this rank's control block and slab private zeroed memory;
 * close_slabs() ends that and forgets the slabs of all ranks. */
FR_CHECKED fr_status fr_transport_open_private(fr_transport *transport,
                                               uint64_t n_bytes, fr_err *err);
void fr_transport_close_slabs(fr_transport *transport);

/*
 * For backends, collective: numbers the nodes (ranks of one `node` are on one)
 * and counts the ranks of this machine, however many nodes it stands for.
 */
FR_CHECKED fr_status fr_transport_find_nodes(fr_transport *transport,
                                             uint64_t node, fr_err *err);

/* For backends: these allocate and free the arrays of the struct. */
FR_CHECKED fr_status fr_transport_init(fr_transport *transport, int64_t rank,
                                       int64_t world, fr_err *err);
void fr_transport_release(fr_transport *transport);

/* Waits until all are done; names the peer when the time is over. */
FR_CHECKED fr_status fr_transport_wait(fr_transport *transport,
                                       fr_message *request, int64_t peer,
                                       const char *what, fr_err *err);

/*
 * Collective and blocking, for setup and between steps: everybody's n_bytes
 * in rank order at out[world * n_bytes] (also a barrier); everybody's bytes,
 * of any length, at *out of rank 0 (free() it; first_bytes[world + 1] says
 * where each begins, elsewhere NULL and untouched).
 */
FR_CHECKED fr_status fr_transport_all_gather(fr_transport *transport,
                                             const void *bytes, size_t n_bytes,
                                             void *out, fr_err *err);
FR_CHECKED fr_status fr_transport_gather(fr_transport *transport,
                                         const void *bytes, uint64_t n_bytes,
                                         unsigned char **out,
                                         uint64_t *first_bytes, fr_err *err);

/* Collective: everybody gets rank 0's bytes. */
FR_CHECKED fr_status fr_transport_share(fr_transport *transport, void *bytes,
                                        size_t n_bytes, fr_err *err);

/*
 * Collective: everybody learns whether all are well, for a rank that cannot go
 * on must not leave the others waiting for a time limit.  `mine`: how it went
 * here, with its reason in *err, which stays; where all was well the first
 * failure of another rank, which is_named begins with "rank 3: ".
 */
FR_CHECKED fr_status fr_transport_agree(fr_transport *transport, fr_status mine,
                                        bool is_named, fr_err *err);

/* A rank of this node that gave up: its number, or -1. */
int64_t fr_transport_failed_rank(const fr_transport *transport);

#endif
