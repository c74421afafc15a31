/*
 * sweep_trials.h: --jobs N: independent trials, such as those of a search for
 * hyper-parameters.  One after the other, each sharded over all devices; all
 * side by side, each on its part; or anything between.
 */
#ifndef FR_API_SWEEP_SWEEP_TRIALS_H
#define FR_API_SWEEP_SWEEP_TRIALS_H

#include "api/sweep/sweep_points.h"

/*
 * A point for every number of parts that the cluster divides into evenly:
 * whole nodes, or equal shares of a node's GPUs; at most as many as there are
 * trials, and one more where that is what N of them need.  Key "at-once".
 * FR_INPUT: there is nothing to divide.
 */
FR_CHECKED fr_status fr_sweep_trials_make(const fr_request *request,
                                          const fr_inputs *inputs,
                                          fr_sweep_points *out, fr_err *err);

/* Once the points are known: when all trials are done, at what cost, and which
 * is best by the goal (without one: done first). */
void fr_sweep_trials_finish(const fr_cluster *cluster, const fr_goal *goal,
                            fr_sweep_points *points);

#endif
