/*
 * held_out.h: how well the fits of a profile meet sizes that they never saw.
 */
#ifndef FR_SPEC_PROFILE_HELD_OUT_H
#define FR_SPEC_PROFILE_HELD_OUT_H

#include <stdint.h>

/* Fits against sizes that they never saw. */
typedef struct fr_held_out {
    char what[64]; /* "compute linear_fwd", "shm all_reduce" */
    int32_t n;
    double mean_ape, worst_ape;
} fr_held_out;

#endif
