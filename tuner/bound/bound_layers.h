/*
 * bound_layers.h: what all plans of the same LAYERS take and need at least,
 * before any of them is looked at.
 */
#ifndef FR_TUNER_BOUND_BOUND_LAYERS_H
#define FR_TUNER_BOUND_BOUND_LAYERS_H

#include "sim/bound/estimate.h"
#include "tuner/space/decision_lists.h"

#include <math.h>

typedef struct fr_bound_layers {
    fr_estimate_headroom headroom;
    fr_vec(uint64_t) state_bytes; /* of each group of gradients, at least */
    uint64_t least_state_bytes;   /* of any of them */
} fr_bound_layers;

void fr_bound_layers_release(fr_bound_layers *layers);

/* No step of those whose backward is split, or not, has less to do.  *plan has
 * LAYERS. */
FR_CHECKED fr_status fr_bound_layers_work(fr_estimator *estimator,
                                          const fr_plan *plan, bool is_split,
                                          fr_least_work *out, fr_err *err);

/* Replaces *out, which is zero at first. */
FR_CHECKED fr_status fr_bound_layers_find(fr_estimator *estimator,
                                          const fr_plan_space_request *request,
                                          const fr_plan *plan,
                                          const fr_decision_list *pipelines,
                                          const fr_decision_list *gradients,
                                          fr_bound_layers *out, fr_err *err);

/* Bytes that a plan lacks at least, where so much of what it needs has to stay
 * free beside it for it to be sure enough to fit; 0: it may do. */
static inline uint64_t fr_bound_lack(const fr_estimate *estimate,
                                     double free_frac)
{
    double lack = (double)estimate->least_bytes * (1 + free_frac) -
                  (double)estimate->capacity_bytes;
    return lack > 0 ? (uint64_t)ceil(lack) : 0;
}

/* Returns the least bytes that the first rank's device lacks; 0: a plan may
 * fit. */
static inline uint64_t fr_bound_layers_lack(const fr_bound_layers *layers,
                                            uint64_t kept_bytes,
                                            uint64_t state_bytes)
{
    uint64_t bytes = kept_bytes + state_bytes;
    return bytes > layers->headroom.capacity_bytes
               ? bytes - layers->headroom.capacity_bytes
               : 0;
}

#endif
