/*
 * disturbance.h: what other processes take from the ranks of a calibration,
 * before it, during each of its phases, and after it.
 */
#ifndef FR_CALIBRATE_DISTURBANCE_H
#define FR_CALIBRATE_DISTURBANCE_H

#include "calibrate/sampler.h"
#include "runtime/comm/transport.h"

typedef struct fr_disturbance fr_disturbance;

/* Collective, before a thread is pinned. */
FR_CHECKED fr_status fr_disturbance_create(fr_transport *transport,
                                           fr_disturbance **out, fr_err *err);
void fr_disturbance_destroy(fr_disturbance *watch); /* takes NULL */

/* Collective: ends the phase that began with the call before, and adds a point
 * to the profile of rank 0: that of the machine where others had most. */
FR_CHECKED fr_status fr_disturbance_end(fr_disturbance *watch,
                                        const char *phase, fr_profile *profile,
                                        fr_err *err);

/* Collective: does nothing for a moment, and ends the phase. */
FR_CHECKED fr_status fr_disturbance_rest(fr_disturbance *watch,
                                         const char *phase, fr_profile *profile,
                                         fr_err *err);

/* The sampler asks after each chunk whether others took time meanwhile. */
void fr_disturbance_attach(fr_disturbance *watch, fr_sampling *schedule);

#endif
