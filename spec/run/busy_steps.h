/*
 * busy_steps.h: the steps of a run during which other processes took processor
 * time from its ranks.
 */
#ifndef FR_SPEC_RUN_BUSY_STEPS_H
#define FR_SPEC_RUN_BUSY_STEPS_H

#include <stdint.h>

typedef struct fr_busy_steps {
    int64_t n_steps;
    int64_t n_known;     /* of them: the kernel's counters covered them */
    int64_t n_disturbed; /* of the known ones */
    /* The members below describe the machine that was disturbed most, on which
     * this rank is. */
    int64_t rank;
    int32_t n_processors;
    int32_t n_runnable; /* most threads that ran or waited to run; 0: unknown */
    /* Processors, mean over the disturbed steps, over all known steps if none
     * was disturbed: all that others had, and of it the stolen ones. */
    double others, stolen;
    /* Median of the undisturbed steps that count; 0: there is none. */
    double undisturbed_step_s;
} fr_busy_steps;

#endif
