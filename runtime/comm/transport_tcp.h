/*
 * transport_tcp.h: ranks joined without MPI: everyone holds one connection to
 * a hub, a thread of rank 0, which hands messages on.
 *
 * Meant for what ranks tell each other before and between steps (a name of a
 * communicator, times, checkpoints' hashes), not for the steps of a CPU run.
 * A connection that ends without that word (FR_TCP_LEAVE) is a rank that died:
 * everybody learns it at once.
 */
#ifndef FR_RUNTIME_COMM_TRANSPORT_TCP_H
#define FR_RUNTIME_COMM_TRANSPORT_TCP_H

#include "runtime/comm/transport.h"

/*
 * Rank 0 listens on `port`, the others connect to `address` (name or number)
 * and try again until timeout_s has passed.  FR_FAILURE with the reason.
 */
FR_CHECKED fr_status fr_transport_tcp_create(const char *address, int port,
                                             int64_t rank, int64_t world,
                                             double timeout_s,
                                             fr_transport **out, fr_err *err);

/* Ends a rank as its death would: it tells the others nothing. */
void fr_transport_tcp_drop(fr_transport *transport);

/* ---- inside runtime/comm/transport_tcp*.c ------------------------------- */

enum {
    FR_TCP_HELLO = 0x46525431, /* src: the rank, n_bytes: the world */
    FR_TCP_MESSAGE,
    FR_TCP_LEAVE, /* src leaves and is well */
    FR_TCP_DEATH  /* of src; the payload is its reason, if it gave one */
};

/* The head before each payload; all machines of a job have the same byte
 * order. */
typedef struct fr_tcp_head {
    uint32_t kind;
    int32_t src, dst, tag;
    uint64_t n_bytes;
} fr_tcp_head;

typedef struct fr_tcp_hub fr_tcp_hub;
/* Starts the thread.  own_fd: rank 0's end of a pair of sockets, the hub's
 * from now on. */
FR_CHECKED fr_status fr_tcp_hub_create(int port, int64_t world, int own_fd,
                                       double timeout_s, fr_tcp_hub **out,
                                       fr_err *err);
/* Waits until all ranks have left.  Takes NULL. */
void fr_tcp_hub_destroy(fr_tcp_hub *hub);

#endif
