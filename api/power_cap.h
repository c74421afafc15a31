/*
 * power_cap.h: --power-cap: limits on the power of GPUs, and the choice of the
 * best of several for a goal.
 */
#ifndef FR_API_POWER_CAP_H
#define FR_API_POWER_CAP_H

#include "api/inputs.h"
#include "tuner/answer/tune.h"

enum { FR_POWER_CAPS = 16 };

/* In watts, 0: none. */
typedef struct fr_power_caps {
    double at_w[FR_POWER_CAPS];
    int n;
} fr_power_caps;

/* FR_USAGE: a cap that cannot be read, or several for a command that chooses
 * nothing. */
FR_CHECKED fr_status fr_power_caps_parse(const fr_request *request,
                                         fr_power_caps *out, fr_err *err);

/* Caps the cluster, before its cost model is made.  FR_INPUT: how fast its
 * devices are with less power is not known. */
FR_CHECKED fr_status fr_power_cap_apply(const fr_request *request, double cap_w,
                                        fr_cluster *cluster, fr_err *err);

/*
 * Chooses, of several caps, the one whose best plan is best for the goal; the
 * inputs get this cap, and the budget what remains of it.  A step depends on
 * the clocks, so each cap needs a search of its own.
 */
FR_CHECKED fr_status fr_power_cap_choose(const fr_request *request,
                                         fr_tune_options *options,
                                         fr_inputs *inputs, fr_err *err);

#endif
