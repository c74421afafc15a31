/*
 * estimate_update.h: what gradients and parameters of a stage take, and how it
 * is kept: estimate_update.c.
 */
#ifndef FR_SIM_BOUND_ESTIMATE_UPDATE_H
#define FR_SIM_BOUND_ESTIMATE_UPDATE_H

#include "core/base/vec.h"

/* Times of the communication and of the optimizer before and after the passes
 * of a stage. */
typedef struct est_update {
    int64_t reduce_ps, last_reduce_ps; /* all gradients, the last bucket */
    int64_t gather_ps, long_gather_ps; /* on lane GATHER, the longest */
    int64_t norm_ps, last_norm_ps;     /* squares of the own range */
    int64_t step_ps;                   /* optimizer, gathering afterwards */
    int64_t wire_reduce_ps, wire_gather_ps, wire_long_gather_ps; /* what that
                              keeps the node's NICs busy, at least */
    int64_t core_reduce_ps, core_gather_ps, core_long_gather_ps; /* and the
                              device's processors */
    int64_t layer_gather_ps, layer_wire_ps, layer_core_ps; /* of one layer's
                              parameters, with ZeRO 3 */
    int64_t layer_reduce_ps;                               /* and gradients */
    int64_t layer_copy_ps, layer_zero_ps; /* on the compute lane: to where they
                              are used, and of its gradients */
    int64_t start_gather_ps, first_gather_ps; /* on lane GATHER: up to the end
                              of chunk 0, of the first bucket */
    uint64_t n_first; /* parameters of the first bucket */
} est_update;

/* The updates of one stage, by the number of the variant of the plan; NULL: not
 * computed yet. */
typedef fr_vec(const est_update *) est_update_row;

#endif
