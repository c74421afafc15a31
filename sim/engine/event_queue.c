/*
 * event_queue.c: the four-way heap.  Children of i are 4i+1 .. 4i+4; keys[0]
 * stands at the end of a cache line, so that four siblings share one.  The
 * smallest child is chosen without branches: which one it is cannot be
 * predicted, and a mispredicted branch costs more than the comparisons.
 */
#include "sim/engine/event_queue.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { PAYLOAD_BITS = 26, LINE_BYTES = 64 };
#define MAX_SEQUENCE ((UINT64_C(1) << 38) - 1)

void fr_event_queue_init(fr_event_queue *queue)
{
    memset(queue, 0, sizeof *queue);
}

void fr_event_queue_release(fr_event_queue *queue)
{
    free(queue->memory);
    fr_event_queue_init(queue);
}

/* Room for n pending events. */
static fr_status reserve(fr_event_queue *queue, size_t n, fr_err *err)
{
    size_t capacity = queue->capacity ? queue->capacity : 64;
    char *memory;

    if (n <= queue->capacity)
        return FR_OK;
    while (capacity < n)
        capacity *= 2;
    /* Three keys of padding put keys[1] at the start of a line. */
    size_t n_bytes = (capacity + 4) * sizeof(fr_event_key);
    memory = aligned_alloc(LINE_BYTES, n_bytes);
    if (memory == NULL)
        return fr_fail_no_memory(err);
    fr_event_key *keys = (fr_event_key *)memory + 3;
    if (queue->n)
        memcpy(keys, queue->keys, queue->n * sizeof *keys);
    free(queue->memory);
    queue->memory = memory;
    queue->keys = keys;
    queue->capacity = capacity;
    return FR_OK;
}

static void sift_up(fr_event_key *keys, size_t i, fr_event_key key)
{
    while (i > 0) {
        size_t parent = (i - 1) / 4;
        if (keys[parent] <= key)
            break;
        keys[i] = keys[parent];
        i = parent;
    }
    keys[i] = key;
}

/* Puts key where the hole at i leads to, i's children being ordered. */
static void sift_down(fr_event_key *keys, size_t n, size_t i, fr_event_key key)
{
    for (;;) {
        size_t first = 4 * i + 1, best;
        fr_event_key smallest;
        if (first + 4 <= n) {
            const fr_event_key *c = keys + first;
            size_t a = first + (size_t)(c[1] < c[0]);
            size_t b = first + 2 + (size_t)(c[3] < c[2]);
            fr_event_key key_a = keys[a], key_b = keys[b];
            bool is_b = key_b < key_a;
            best = is_b ? b : a;
            smallest = is_b ? key_b : key_a;
        } else {
            if (first >= n)
                break;
            best = first;
            for (size_t j = first + 1; j < n; j++)
                best = keys[j] < keys[best] ? j : best;
            smallest = keys[best];
        }
        if (key <= smallest)
            break;
        keys[i] = smallest;
        i = best;
    }
    keys[i] = key;
}

/* The next sequence number; an empty queue may start over. */
static fr_status make_key(fr_event_queue *queue, int64_t time_ps,
                          uint32_t payload, fr_event_key *key, fr_err *err)
{
    assert(time_ps >= 0 && payload <= FR_EVENT_MAX_PAYLOAD);
    if (queue->n == 0)
        queue->sequence = 0;
    if (queue->sequence > MAX_SEQUENCE)
        return fr_fail(err, FR_FAILURE, "too many events in one simulation");
    *key = (fr_event_key)(uint64_t)time_ps << 64 |
           (queue->sequence++ << PAYLOAD_BITS | payload);
    return FR_OK;
}

fr_status fr_event_queue_push(fr_event_queue *queue, int64_t time_ps,
                              uint32_t payload, fr_err *err)
{
    fr_event_key key = 0;
    if (queue->n == queue->capacity)
        FR_TRY(reserve(queue, queue->n + 1, err));
    FR_TRY(make_key(queue, time_ps, payload, &key, err));
    sift_up(queue->keys, queue->n++, key);
    return FR_OK;
}

int64_t fr_event_queue_next_ps(const fr_event_queue *queue)
{
    return queue->n ? (int64_t)(queue->keys[0] >> 64) : INT64_MAX;
}

int64_t fr_event_queue_pop(fr_event_queue *queue, uint32_t *payload)
{
    assert(queue->n > 0);
    fr_event_key next = queue->keys[0];
    queue->n--;
    if (queue->n)
        sift_down(queue->keys, queue->n, 0, queue->keys[queue->n]);
    *payload = (uint32_t)next & FR_EVENT_MAX_PAYLOAD;
    return (int64_t)(next >> 64);
}
