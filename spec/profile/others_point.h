/*
 * others_point.h: what other processes took while a profile was measured.
 */
#ifndef FR_SPEC_PROFILE_OTHERS_POINT_H
#define FR_SPEC_PROFILE_OTHERS_POINT_H

#include <stdbool.h>
#include <stdint.h>

/* Processor time that others took from a machine in a phase of calibration. */
typedef struct fr_others_point {
    char phase[32]; /* "before", "kernels", "collectives" ... */
    int32_t rank;   /* one of the machine */
    double elapsed_s;
    double own_s, others_s; /* of processors */
    double stolen_s;        /* that a hypervisor gave to others */
    int32_t n_processors, n_runnable;
    bool is_disturbed; /* others took time from the ranks */
} fr_others_point;

#endif
