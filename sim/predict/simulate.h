/*
 * simulate.h: interpreter 1: runs a program in virtual time.
 */
#ifndef FR_SIM_PREDICT_SIMULATE_H
#define FR_SIM_PREDICT_SIMULATE_H

#include "cost_models/base/cost.h"
#include "program/ir/program.h"
#include "program/lower/step/lower.h"
#include "sim/replay/replay.h"
#include "spec/cluster/cluster.h"
#include "spec/result/prediction.h"
#include "spec/result/timeline.h"

typedef struct fr_simulate_options {
    const fr_replay_options *replay; /* NULL: chosen as said below */
    fr_timeline *timeline;           /* is filled; NULL: nobody wants it */
    const fr_log *log;               /* cancellation; NULL: none */
    bool stops_without_room; /* a step that does not fit is not replayed: all
                                but the prediction's memory is 0 */
    bool is_bounded;         /* a program that takes very long, or has more
                                calls than the placement allows, is
                                FR_INFEASIBLE */
} fr_simulate_options;

/*
 * Simulates one steady-state step of `program` with ranks placed as in
 * `placement` (NULL: all on one node) and writes the prediction; `options` may
 * be NULL.  Deterministic.  Errors: FR_NO_MEMORY, FR_CHECK (the program
 * deadlocks: names rank, call and what it waits for), FR_INTERRUPTED (the log
 * cancels it).
 *
 * Ranks that must behave alike are simulated as one; a timeline then has the
 * spans of one of them (spans_of_rank).  Where a timeline is asked for of up
 * to 64 ranks on CPUs, the runtime's own scale, each has its own.
 */
FR_CHECKED fr_status fr_simulate(const fr_program *program,
                                 const fr_cost_model *costs,
                                 const fr_cluster *cluster,
                                 const fr_placement *placement,
                                 const fr_simulate_options *options,
                                 fr_prediction *out, fr_err *err);

#endif
