/*
 * power_cap.h: --power-cap: what GPUs are kept from drawing, and which of
 * several caps is best for a goal.
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
 * Of several caps the one under which the best plan is best for the goal; the
 * inputs are as it makes them then, and a budget is what is left for the answer
 * itself.  A step depends on the clocks, so that no way of a run is priced
 * without simulating anew: each cap is a search of its own.
 */
FR_CHECKED fr_status fr_power_cap_choose(const fr_request *request,
                                         fr_tune_options *options,
                                         fr_inputs *inputs, fr_err *err);

#endif
