/* flows.c: the engine: events for starts, the max-min solver for ends. */
#include "simgrid/flows.h"

#include "sim/engine/event_queue.h"

#include <stdlib.h>
#include <string.h>

enum { BATCH = 256 };

typedef struct flow_run {
    const fr_flow_set *set;
    fr_maxmin *maxmin;
    fr_event_queue queue;
    uint32_t *n_waiting; /* how many dependencies have not ended */
    int64_t *ready_ps;   /* the latest end of those that have ended */
    int64_t *end_ps;
    size_t n_ended;
    uint64_t n_events;
    fr_err *err;
} flow_run;

/* All dependencies have ended, so the flow starts after its delay. */
static fr_status schedule(flow_run *run, uint32_t i)
{
    const fr_flow_item *item = &run->set->items[i];
    int64_t wait_ps = item->delay_ps + run->set->routes[item->route].latency_ps;
    int64_t ready_ps = run->ready_ps[i];

    if (ready_ps > INT64_MAX - wait_ps)
        return fr_fail(run->err, FR_FAILURE, "flows last longer than 106 days");
    return fr_event_queue_push(&run->queue, ready_ps + wait_ps, i, run->err);
}

static fr_status end_flow(flow_run *run, uint32_t i, int64_t now_ps)
{
    const fr_flow_item *item = &run->set->items[i];

    run->end_ps[i] = now_ps;
    run->n_ended++;
    for (uint32_t c = 0; c < item->n_children; c++) {
        uint32_t child = run->set->children[item->first_child + c];
        if (now_ps > run->ready_ps[child])
            run->ready_ps[child] = now_ps;
        if (--run->n_waiting[child] == 0)
            FR_TRY(schedule(run, child));
    }
    return FR_OK;
}

static fr_status start_flow(flow_run *run, uint32_t i, int64_t now_ps)
{
    const fr_flow_item *item = &run->set->items[i];
    const fr_flow_route *route = &run->set->routes[item->route];

    if (item->work == 0)
        return end_flow(run, i, now_ps);
    /* A route through nothing that is shared has no uses, nor has the set. */
    const fr_maxmin_use *uses =
        route->n_uses > 0 ? run->set->uses + route->first_use : NULL;
    return fr_maxmin_add(run->maxmin, item->work, route->cap, uses,
                         route->n_uses, i, NULL, run->err);
}

/* Handles everything that happens at one instant, then solves once for the new
 * rates. */
static fr_status step(flow_run *run, int64_t now_ps)
{
    uint32_t tags[BATCH], i;
    size_t n;

    do {
        n = fr_maxmin_take_finished(run->maxmin, now_ps, tags, BATCH);
        for (size_t k = 0; k < n; k++)
            FR_TRY(end_flow(run, tags[k], now_ps));
        run->n_events += n;
    } while (n == BATCH);
    while (fr_event_queue_next_ps(&run->queue) <= now_ps) {
        (void)fr_event_queue_pop(&run->queue, &i);
        FR_TRY(start_flow(run, i, now_ps));
        run->n_events++;
    }
    fr_maxmin_solve(run->maxmin, now_ps);
    return FR_OK;
}

static fr_status run_all(flow_run *run)
{
    const fr_flow_set *set = run->set;

    for (uint32_t i = 0; i < set->n_items; i++) {
        run->end_ps[i] = -1;
        run->n_waiting[i] = set->items[i].n_deps;
        run->ready_ps[i] = set->items[i].start_ps;
        if (set->items[i].n_deps == 0)
            FR_TRY(schedule(run, i));
    }
    while (run->n_ended < set->n_items) {
        int64_t next_ps = fr_event_queue_next_ps(&run->queue);
        int64_t end_ps = fr_maxmin_next_ps(run->maxmin);
        next_ps = end_ps < next_ps ? end_ps : next_ps;
        if (next_ps == INT64_MAX)
            return fr_fail(run->err, FR_FAILURE,
                           fr_maxmin_n_flows(run->maxmin)
                               ? "flows last longer than 106 days"
                               : "flows wait for each other in a circle");
        FR_TRY(step(run, next_ps));
    }
    return FR_OK;
}

fr_status fr_flow_set_run(const fr_flow_set *set, int64_t *end_ps,
                          uint64_t *n_events, fr_err *err)
{
    size_t n = set->n_items ? set->n_items : 1;
    flow_run run = {.set = set, .err = err};
    fr_status status;

    if (set->n_items > FR_EVENT_MAX_PAYLOAD)
        return fr_fail(err, FR_INPUT, "more than %u flows",
                       FR_EVENT_MAX_PAYLOAD);
    fr_event_queue_init(&run.queue);
    run.end_ps = end_ps;
    run.n_waiting = malloc(n * sizeof *run.n_waiting);
    run.ready_ps = malloc(n * sizeof *run.ready_ps);
    if (!run.n_waiting || !run.ready_ps)
        status = fr_fail_no_memory(err);
    else
        status =
            fr_maxmin_create(set->n_links, set->capacity, &run.maxmin, err);
    if (status == FR_OK)
        status = run_all(&run);
    if (status == FR_OK)
        *n_events = run.n_events;
    fr_maxmin_destroy(run.maxmin);
    fr_event_queue_release(&run.queue);
    free(run.n_waiting);
    free(run.ready_ps);
    return status;
}
