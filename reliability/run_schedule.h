/*
 * run_schedule.h: one run through faults on purpose (faults.h), step by step,
 * as the runtime goes through them: what is predicted of run --inject.
 *
 * A fault comes when its step is first begun; the run starts again from the
 * newest checkpoint.  A place that is back is taken in at once, and everything
 * is saved before.
 */
#ifndef FR_RELIABILITY_RUN_SCHEDULE_H
#define FR_RELIABILITY_RUN_SCHEDULE_H

#include "spec/model/faults.h"
#include "spec/result/goodput.h"

/* The time of a step and its parts. */
typedef struct fr_schedule_step {
    double step_s;
    double straggler_s, input_s, idle_s; /* of it, that it takes longer than an
                                            undisturbed one, by what */
} fr_schedule_step;

typedef struct fr_fault_schedule {
    const fr_faults *faults; /* borrowed */
    int64_t n_steps, n_places;
    int64_t every_steps;                 /* of checkpoints; 0: none */
    double blocked_s, drain_s;           /* of each, as run_conditions.h */
    double start_s, restart_s, replan_s; /* replan_s: for other places */
    double end_s;  /* after the last step and its checkpoint */
    double hang_s; /* until a rank that stands still is given up */
    /* Sets *out to the time of step i with so many places. */
    fr_status (*price)(void *context, int64_t n_places, int64_t i_step,
                       fr_schedule_step *out, fr_err *err);
    void *context;
} fr_fault_schedule;

/* FR_FAILURE: no place is left; else what price() says. */
FR_CHECKED fr_status fr_schedule_walk(const fr_fault_schedule *schedule,
                                      fr_schedule_result *out, fr_err *err);

#endif
