/*
 * inject.h: carries out the faults on purpose (faults.h) that one rank has.
 */
#ifndef FR_RUNTIME_INJECT_INJECT_H
#define FR_RUNTIME_INJECT_INJECT_H

#include "spec/model/faults.h"

typedef struct fr_inject {
    const fr_faults *faults; /* borrowed; NULL: there are none */
    int64_t rank;
    /* The next three members are for the running step. */
    double factor; /* compute takes so many times as long; 1: as it is */
    bool is_hung;
    int64_t owed_ns; /* of slowness that has not been slept yet */
    /* Lanes wait at random where nothing makes them: an order that a program
     * leaves open must not matter.  0: they do not. */
    uint64_t shake_seed;
    uint64_t n_shaken[2]; /* draws of each thread */
} fr_inject;

/* The threads of a rank, for fr_inject_holds_back. */
enum { FR_INJECT_COMPUTE, FR_INJECT_COMM };

/* Kills this process if it is its step, and sets what holds in the step. */
void fr_inject_begin_step(fr_inject *inject, int64_t i_step);

/* Work of ran_ns took place: sleeps for what a slow rank would need on top of
 * it; little sleeps are put together. */
void fr_inject_slow(fr_inject *inject, int64_t ran_ns);
/* Before others are met: sleeps what is owed. */
void fr_inject_settle(fr_inject *inject);

/* Is what this thread could begin put off, drawn anew at each call?  May sleep
 * for up to 200 us. */
bool fr_inject_holds_back(fr_inject *inject, int i_thread);

#endif
