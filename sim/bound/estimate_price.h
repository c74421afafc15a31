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
    int64_t host_ps;    /* of its host, before */
    int64_t core_ps;    /* of all processors of the device, at least */
    int64_t compute_ps; /* without communication */
} est_cost;

/* estimate_price.c. */
FR_CHECKED fr_status est_price(fr_estimator *e, const fr_plan *plan,
                               const fr_instr *instr, fr_lane lane,
                               const est_place *place, est_cost *out,
                               fr_err *err);
/* Sets *out to the expected wait of a group of n for its slowest member, in
 * seconds per second that they compute (jitter.h). */
FR_CHECKED fr_status est_jitter(fr_estimator *e, int64_t n, double *out,
                                fr_err *err);

/* Prices the transfer of a rank to the next stage.  The result is kept. */
FR_CHECKED fr_status est_send(fr_estimator *e, const fr_comm_scope *hop,
                              const est_place *place, fr_dtype dtype,
                              uint64_t n, int64_t *out_ps, fr_err *err);

/* 0 for no elements and groups of one.  Kept. */
FR_CHECKED fr_status est_collective(fr_estimator *e, const fr_plan *plan,
                                    const est_place *place, const fr_move *move,
                                    int64_t *out_ps, fr_err *err);
/* Sets *out_ps to the time for which a collective, together with those of all
 * ranks of the same stage, keeps the NICs of the node busy.  A step is no
 * shorter than the sum of these times. */
FR_CHECKED fr_status est_wire(fr_estimator *e, const fr_plan *plan,
                              const est_place *place, const fr_move *move,
                              int64_t *out_ps, fr_err *err);
/* Sets *out_ps to the share of the collective's time that it takes of the
 * device's multiprocessors. */
FR_CHECKED fr_status est_core(fr_estimator *e, const fr_plan *plan,
                              const est_place *place, const fr_move *move,
                              int64_t *out_ps, fr_err *err);
/* An instruction over a range, over n parameters.  Kept. */
FR_CHECKED fr_status est_over_range(fr_estimator *e, const fr_plan *plan,
                                    const est_place *place,
                                    const fr_instr *instr, uint64_t n,
                                    int64_t *out_ps, fr_err *err);

#endif
