/*
 * estimate_place.h: where the ranks of a plan sit, one of each pipeline stage,
 * and whom they communicate with.
 */
#ifndef FR_SIM_BOUND_ESTIMATE_PLACE_H
#define FR_SIM_BOUND_ESTIMATE_PLACE_H

#include "cost_models/base/cost.h"
#include "sim/bound/estimate.h"

static inline int64_t est_most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static inline int64_t est_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* A rank: its device, and where its groups sit. */
typedef struct est_place {
    int64_t node;
    uint32_t type_bit;
    double compute_frac;
    double port_Bps, nic_Bps; /* of the rank, of its node; 0: not told */
    int64_t n_beside; /* ranks of its node that do the same: of its stage */
    fr_comm_scope scopes[FR_AXIS_N]; /* n_group 0: not asked for */
    /* Equal numbers, equal places: of the NICs and ports; of the device and
     * what layers communicate over; of everything. */
    uint32_t net_id, layers_id, id;
} est_place;

/* Ranks of one tp, cp and dp, the slowest, one of each pipeline stage. */
typedef struct est_layout {
    int32_t dp;
    est_place *places;  /* [pp] */
    fr_comm_scope *hop; /* [pp] from this stage to the next (the last: to
                           the first) */
} est_layout;

/* The properties of a place that the times of layers depend on.  It has no
 * padding, because it is a key. */
typedef struct est_place_key {
    double compute_frac, port_Bps, nic_Bps;
    int64_t type_bit, n_beside;
    int64_t scopes[FR_AXIS_N][4]; /* 0 of the axes that are no matter */
} est_place_key;

FR_CHECKED fr_status est_layout_find(fr_estimator *e, const fr_plan *plan,
                                     const est_layout **out, fr_err *err);
void est_layout_destroy(est_layout *layout);
/* The ranks of a plan get their nodes; then of one of them: the share of its
 * normal speed, and where it is. */
FR_CHECKED fr_status est_ranks_place(fr_estimator *e, const fr_plan *plan,
                                     fr_err *err);
double est_compute_frac(const fr_estimator *e, int64_t rank);
FR_CHECKED fr_status est_place_find(fr_estimator *e, const fr_plan *plan,
                                    int64_t rank, est_place *out, fr_err *err);
/* The number of the plan's shares of the batch, 0 if they are even. */
FR_CHECKED fr_status est_shares_find(fr_estimator *e, const fr_plan *plan,
                                     uint32_t *out, fr_err *err);
/* Returns the properties of the device and of the links that layers communicate
 * over. */
est_place_key est_place_layers_key(const est_place *place);

#endif
