/* test_sim_queue.c: the event queue and the heap of times against sorting. */
#include "sim/engine/event_queue.h"
#include "sim/engine/time_heap.h"
#include "tests/check.h"

#include <stdlib.h>

static uint64_t random_state = 88172645463325252u;

static uint32_t below(uint32_t n)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)(random_state >> 33) % n;
}

typedef struct event {
    int64_t time_ps;
    uint32_t order, payload;
} event;

static int compare(const void *a, const void *b)
{
    const event *x = a, *y = b;
    if (x->time_ps != y->time_ps)
        return x->time_ps < y->time_ps ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

static void test_order(void)
{
    enum { N = 3000 };
    static event events[N];
    fr_event_queue queue;
    fr_err err;

    fr_event_queue_init(&queue);
    CHECK(fr_event_queue_next_ps(&queue) == INT64_MAX);
    for (uint32_t i = 0; i < N; i++) {
        events[i] = (event){below(400), i, below(FR_EVENT_MAX_PAYLOAD + 1u)};
        if (i % 100 == 7)
            events[i].time_ps = INT64_MAX - 1;
        CHECK_OK(fr_event_queue_push(&queue, events[i].time_ps,
                                     events[i].payload, &err),
                 &err);
    }
    qsort(events, N, sizeof *events, compare);
    for (uint32_t i = 0; i < N; i++) {
        uint32_t payload = 0;
        CHECK_INT(fr_event_queue_next_ps(&queue), events[i].time_ps);
        CHECK_INT(fr_event_queue_pop(&queue, &payload), events[i].time_ps);
        CHECK_INT(payload, events[i].payload);
    }
    CHECK_INT(queue.n, 0);
    fr_event_queue_release(&queue);
}

/* Delays as a step has them: most of one size, some at once, some far off. */
static uint32_t delay_ps(void)
{
    const uint32_t kind = below(8);
    return kind == 0 ? 0 : kind == 1 ? below(1u << 30) : 1000 + below(64);
}

/*
 * Popping and pushing by turns with n pending: every time what has the earliest
 * time, and of those what was pushed first, which a list of all of them tells.
 */
static void hold(uint32_t n, int n_turns)
{
    event *pending = calloc(n, sizeof *pending);
    fr_event_queue queue;
    fr_err err;
    uint32_t order = 0;

    fr_event_queue_init(&queue);
    CHECK(pending != NULL);
    for (uint32_t i = 0; i < n; i++) {
        pending[i] = (event){delay_ps(), order++, i};
        CHECK_OK(fr_event_queue_push(&queue, pending[i].time_ps, i, &err),
                 &err);
    }
    for (int turn = 0; turn < n_turns; turn++) {
        uint32_t first = 0, payload = 0;
        for (uint32_t i = 1; i < n; i++)
            if (compare(&pending[i], &pending[first]) < 0)
                first = i;
        const int64_t now_ps = pending[first].time_ps;
        CHECK_INT(fr_event_queue_next_ps(&queue), now_ps);
        CHECK_INT(fr_event_queue_pop(&queue, &payload), now_ps);
        CHECK_INT(payload, first);
        pending[first] = (event){now_ps + delay_ps(), order++, first};
        CHECK_OK(
            fr_event_queue_push(&queue, pending[first].time_ps, first, &err),
            &err);
    }
    CHECK_INT(queue.n, n);
    fr_event_queue_release(&queue);
    free(pending);
}

static void test_hold(void)
{
    hold(5, 2000);
    hold(64, 20000);
    hold(3000, 6000);
}

static void test_time_heap(void)
{
    enum { N = 90 };
    int64_t times[N];
    fr_time_heap heap;
    fr_err err;

    fr_time_heap_init(&heap);
    CHECK_OK(fr_time_heap_reserve(&heap, N, &err), &err);
    for (int i = 0; i < N; i++)
        times[i] = INT64_MAX;
    for (int turn = 0; turn < 30000; turn++) {
        uint32_t id = below(N);
        int64_t least = INT64_MAX;
        times[id] = below(4) ? (int64_t)below(500) : INT64_MAX;
        fr_time_heap_set(&heap, id, times[id]);
        for (int i = 0; i < N; i++)
            least = times[i] < least ? times[i] : least;
        CHECK_INT(fr_time_heap_next_ps(&heap), least);
        if (least != INT64_MAX)
            CHECK_INT(times[fr_time_heap_next(&heap)], least);
    }
    fr_time_heap_release(&heap);
}

CHECK_MAIN({"order", test_order}, {"hold", test_hold}, {"heap", test_time_heap})
