/*
 * estimate_price.h: what single instructions take, as a replay asks for them.
 */
#ifndef FR_SIM_BOUND_ESTIMATE_PRICE_H
#define FR_SIM_BOUND_ESTIMATE_PRICE_H

#include "plan/outline/sharding.h"
#include "program/ir/program.h"
#include "sim/bound/estimate_place.h"

/* An instruction, alone. */
typedef struct est_cost {
    int64_t ps;
    int64_t host_ps; /* of its host, before */
    int64_t core_ps; /* of all processors of the device, at least */
} est_cost;

/* estimate_price.c. */
FR_CHECKED fr_status est_price(fr_estimator *e, const fr_plan *plan,
                               const fr_instr *instr, fr_lane lane,
                               const est_place *place, est_cost *out,
                               fr_err *err);
/* What the members of a group of n wait for the slowest of them, expected, in
 * each second that they compute (jitter.h). */
FR_CHECKED fr_status est_jitter(fr_estimator *e, int64_t n, double *out,
                                fr_err *err);

/* What a rank sends to the next stage.  Kept. */
FR_CHECKED fr_status est_send(fr_estimator *e, const fr_comm_scope *hop,
                              const est_place *place, fr_dtype dtype,
                              uint64_t n, int64_t *out_ps, fr_err *err);

/* 0 for no elements and groups of one.  Kept. */
FR_CHECKED fr_status est_collective(fr_estimator *e, const fr_plan *plan,
                                    const est_place *place, const fr_move *move,
                                    int64_t *out_ps, fr_err *err);
/* How long it keeps the NICs of the node busy, with those of all ranks of the
 * same stage: whatever else happens, a step is no shorter than their sum. */
FR_CHECKED fr_status est_wire(fr_estimator *e, const fr_plan *plan,
                              const est_place *place, const fr_move *move,
                              int64_t *out_ps, fr_err *err);
/* What it takes of the device's processors. */
FR_CHECKED fr_status est_core(fr_estimator *e, const fr_plan *plan,
                              const est_place *place, const fr_move *move,
                              int64_t *out_ps, fr_err *err);
/* An instruction over a range, over n parameters.  Kept. */
FR_CHECKED fr_status est_over_range(fr_estimator *e, const fr_plan *plan,
                                    const est_place *place,
                                    const fr_instr *instr, uint64_t n,
                                    int64_t *out_ps, fr_err *err);

#endif
