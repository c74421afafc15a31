/*
 * simulate.h: interpreter 1: runs a program in virtual time.
 */
#ifndef FR_SIM_PREDICT_SIMULATE_H
#define FR_SIM_PREDICT_SIMULATE_H

#include "cost_models/cost.h"
#include "plan/ir/program.h"
#include "plan/lower/step/lower.h"
#include "sim/replay/replay.h"
#include "spec/cluster/cluster.h"
#include "spec/result/prediction.h"
#include "spec/result/timeline.h"

/*
 * Simulates one steady-state step of `program` with ranks placed as in
 * `placement` (NULL: all on one node) and writes the prediction; `timeline`
 * may be NULL.  Deterministic.  Errors: FR_NO_MEMORY, FR_CHECK (the program
 * deadlocks: names rank, call and what it waits for).
 *
 * Ranks that must behave alike are simulated as one; a timeline then has the
 * spans of one of them (spans_of_rank).  Where a timeline is asked for of up
 * to 64 ranks on CPUs, the runtime's own scale, each has its own.
 */
FR_CHECKED fr_status fr_simulate(const fr_program *program,
                                 const fr_cost_model *costs,
                                 const fr_cluster *cluster,
                                 const fr_placement *placement,
                                 fr_timeline *timeline, fr_prediction *out,
                                 fr_err *err);

/* The same; where out->memory does not fit all else is 0. */
FR_CHECKED fr_status fr_simulate_if_fits(const fr_program *program,
                                         const fr_cost_model *costs,
                                         const fr_cluster *cluster,
                                         const fr_placement *placement,
                                         fr_prediction *out, fr_err *err);

/* The same with options of the replay (NULL: those of fr_simulate). */
FR_CHECKED fr_status fr_simulate_with(const fr_program *program,
                                      const fr_cost_model *costs,
                                      const fr_cluster *cluster,
                                      const fr_placement *placement,
                                      const fr_replay_options *options,
                                      fr_timeline *timeline, fr_prediction *out,
                                      fr_err *err);

#endif
