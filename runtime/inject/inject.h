/*
 * inject.h: carries out the faults on purpose (faults.h) that one rank has.
 */
#ifndef FR_RUNTIME_INJECT_INJECT_H
#define FR_RUNTIME_INJECT_INJECT_H

#include "spec/model/faults.h"

typedef struct fr_inject {
    const fr_faults *faults; /* borrowed; NULL: there are none */
    int64_t rank;
    /* Of the running step: */
    double factor; /* compute takes so many times as long; 1: as it is */
    bool is_hung;
    int64_t owed_ns; /* of slowness that has not been slept yet */
} fr_inject;

/* Kills this process if it is its step, and sets what holds in the step. */
void fr_inject_begin_step(fr_inject *inject, int64_t i_step);

/* Work of ran_ns took place: sleeps for what a slow rank would need on top of
 * it; little sleeps are put together. */
void fr_inject_slow(fr_inject *inject, int64_t ran_ns);
/* Before others are met: sleeps what is owed. */
void fr_inject_settle(fr_inject *inject);

#endif
