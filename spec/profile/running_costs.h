/*
 * running_costs.h: what a run takes beside its steps, as calibration measured
 * it: to start and end its processes, and to save almost nothing.
 */
#ifndef FR_SPEC_PROFILE_RUNNING_COSTS_H
#define FR_SPEC_PROFILE_RUNNING_COSTS_H

#include <stdint.h>

typedef struct fr_running_costs {
    int32_t n_ranks;     /* that were started; 0: nothing is known */
    double start_s;      /* from the command to the first step, and what that
                            takes longer than later ones */
    double restart_s;    /* the same from the death of a rank */
    double end_s;        /* from the last step to the end of the command */
    double checkpoint_s; /* of almost nothing */
} fr_running_costs;

#endif
