/*
 * event_queue.h: what happens when, in virtual time.
 *
 * A priority queue of (time, payload) on integer picoseconds with a total
 * order: earlier first, of one instant first pushed first popped, so a run is
 * the same everywhere.  A four-way implicit heap over 16-byte keys; memory is
 * taken when the number of pending events reaches a new maximum and kept.
 */
#ifndef FR_SIM_ENGINE_EVENT_QUEUE_H
#define FR_SIM_ENGINE_EVENT_QUEUE_H

#include "core/base/err.h"

#define FR_EVENT_MAX_PAYLOAD ((UINT32_C(1) << 26) - 1)

/* time in the upper 64 bits, then 38 bits of sequence, 26 of payload */
__extension__ typedef unsigned __int128 fr_event_key;

typedef struct fr_event_queue {
    fr_event_key *keys; /* keys[0] is the next one */
    void *memory;       /* keys lie in it, aligned to cache lines */
    size_t n, capacity;
    uint64_t sequence;
} fr_event_queue;

/* Allocates nothing, cannot fail. */
void fr_event_queue_init(fr_event_queue *queue);
void fr_event_queue_release(fr_event_queue *queue);

/*
 * time_ps >= 0, payload <= FR_EVENT_MAX_PAYLOAD.  FR_NO_MEMORY; FR_FAILURE
 * after 2^38 pushes without the queue ever running empty.
 */
FR_CHECKED fr_status fr_event_queue_push(fr_event_queue *queue, int64_t time_ps,
                                         uint32_t payload, fr_err *err);

/* Time of the next event, INT64_MAX when there is none. */
int64_t fr_event_queue_next_ps(const fr_event_queue *queue);

/* Takes the next event; there must be one. */
int64_t fr_event_queue_pop(fr_event_queue *queue, uint32_t *payload);

#endif
