/*
 * walk_clock.h: when a walk has to end.  All its workers ask, so an end is one
 * for all.
 */
#ifndef FR_TUNER_BOUND_WALK_CLOCK_H
#define FR_TUNER_BOUND_WALK_CLOCK_H

#include "core/system/clock.h"

#include <stdbool.h>

typedef struct fr_walk_clock {
    double until_s; /* once something is found; 0: there is no end */
    double last_s;  /* though nothing is */
    int has_found, is_over;
} fr_walk_clock;

/* Nothing found yet gets as much time again. */
static inline fr_walk_clock fr_walk_clock_of(double until_s)
{
    const double now_s = fr_clock_s();
    double left_s = until_s > now_s ? until_s - now_s : 0;
    return (fr_walk_clock){.until_s = until_s, .last_s = until_s + left_s};
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
