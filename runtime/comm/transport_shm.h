/*
 * transport_shm.h: what ranks of one node share beyond their slabs: a
 * control block each, with sequence counters for collectives, a mail slot per
 * lane for sends, and doorbells for threads that sleep.
 *
 * A control block has one writer per field (its owner, except `taken`, which
 * the receiver writes, and the doorbells), so there are no locks.
 */
#ifndef FR_RUNTIME_COMM_TRANSPORT_SHM_H
#define FR_RUNTIME_COMM_TRANSPORT_SHM_H

#include "core/base/err.h"
#include "plan/op/op.h"

#include <stdalign.h>
#include <stdatomic.h>

#define FR_CACHE_LINE 64

/* Counts the synchronisation points of the group on (axis, lane), which follow
 * each other. */
typedef struct fr_shm_sync {
    alignas(FR_CACHE_LINE) _Atomic uint64_t count;
    uint64_t src_offset, dst_offset; /* operands in the owner's slab */
} fr_shm_sync;

/* The send that the owner has on a lane; done when taken == posted.  Ranks
 * that it is not for look at it too, so whom it is for is atomic. */
typedef struct fr_shm_post {
    alignas(FR_CACHE_LINE) _Atomic uint64_t posted;
    _Atomic int64_t dst;
    _Atomic uint32_t tag;
    uint64_t offset_bytes, n_bytes;
    alignas(FR_CACHE_LINE) _Atomic uint64_t taken;
} fr_shm_post;

/* A thread's doorbell: the futex word that it sleeps on. */
typedef struct fr_shm_bell {
    _Atomic uint32_t word;
    _Atomic uint32_t is_asleep;
    unsigned char padding[FR_CACHE_LINE - 2 * sizeof(uint32_t)];
} fr_shm_bell;

enum { FR_BELL_MAIN, FR_BELL_COMM, FR_BELL_N };

typedef struct fr_shm_control {
    fr_shm_sync sync[FR_AXIS_N][FR_LANE_N];
    fr_shm_post post[FR_LANE_N];
    alignas(FR_CACHE_LINE) fr_shm_bell bell[FR_BELL_N];
    alignas(FR_CACHE_LINE) _Atomic uint32_t has_failed;
    char failure[512]; /* one line; valid once has_failed */
} fr_shm_control;

/* Bytes of a control block, rounded up to pages: where the slab begins. */
uint64_t fr_shm_control_bytes(void);

/* Wakes the thread if it sleeps; call it after publishing. */
void fr_shm_ring(fr_shm_bell *bell);

/* Tells everybody who can see this block that its owner gave up. */
void fr_shm_set_failure(fr_shm_control *control, const char *text);

/*
 * The state of a thread that waits.  It spins, then yields, then sleeps on its
 * bell, so that more threads than cores still make progress.  Poll like this:
 *
 *     fr_waiter_reset(&w);
 *     while (!is_ready())
 *         fr_waiter_pause(&w);
 *     fr_waiter_reset(&w);
 */
typedef struct fr_waiter {
    fr_shm_bell *bell;
    int64_t spin_ns;  /* spinning with a pause instruction */
    int64_t yield_ns; /* then giving the core away each time */
    int64_t sleep_ns; /* longest sleep: how often to poll what rings no bell */
    int64_t begin_ns; /* 0: not waiting */
    int64_t now_ns;   /* at the last pause */
    uint32_t word;
    uint32_t n_pauses;
    uint8_t stage;
} fr_waiter;

void fr_waiter_init(fr_waiter *waiter, fr_shm_bell *bell);
void fr_waiter_reset(fr_waiter *waiter);
void fr_waiter_pause(fr_waiter *waiter);
/* Seconds since the first pause after the last reset. */
double fr_waiter_waited_s(const fr_waiter *waiter);

#endif
