/*
 * walk_clock.h: when a walk has to end: its time is over, or its caller has
 * cancelled it.  All its workers ask, so an end is one for all.
 */
#ifndef FR_TUNER_BOUND_WALK_CLOCK_H
#define FR_TUNER_BOUND_WALK_CLOCK_H

#include "core/base/log.h"
#include "core/system/clock.h"

#include <stdbool.h>

typedef struct fr_walk_clock {
    double until_s; /* once something is found; 0: there is no end */
    double last_s;  /* though nothing is */
    int has_found, is_over;
    const fr_log *log; /* can cancel it; NULL: nothing does */
} fr_walk_clock;

/* Nothing found yet gets as much time again. */
static inline fr_walk_clock fr_walk_clock_of(double until_s, const fr_log *log)
{
    const double now_s = fr_clock_s();
    double left_s = until_s > now_s ? until_s - now_s : 0;
    return (fr_walk_clock){
        .until_s = until_s, .last_s = until_s + left_s, .log = log};
}

/* Something was found. */
static inline void fr_walk_clock_note(fr_walk_clock *clock)
{
#pragma omp atomic write
    clock->has_found = 1;
}

/* Ends the walk of all workers. */
static inline void fr_walk_clock_end(fr_walk_clock *clock)
{
#pragma omp atomic write
    clock->is_over = 1;
}

/* Counts a step of a worker, and asks the caller now and then.  FR_INTERRUPTED
 * ends the walk of all workers. */
static inline fr_status fr_walk_clock_step(fr_walk_clock *clock,
                                           uint32_t *n_steps, fr_err *err)
{
    enum { STEPS_PER_QUESTION = 16 };
    if ((*n_steps)++ % STEPS_PER_QUESTION != 0)
        return FR_OK;
    const fr_status status = fr_log_check(clock->log, err);
    if (status != FR_OK)
        fr_walk_clock_end(clock);
    return status;
}

static inline bool fr_walk_clock_is_over(fr_walk_clock *clock)
{
    int is_over, has_found;
#pragma omp atomic read
    is_over = clock->is_over;
    if (is_over || !(clock->until_s > 0))
        return is_over;
    const double now_s = fr_clock_s();
#pragma omp atomic read
    has_found = clock->has_found;
    if (now_s < (has_found ? clock->until_s : clock->last_s))
        return false;
    fr_walk_clock_end(clock);
    return true;
}

#endif
