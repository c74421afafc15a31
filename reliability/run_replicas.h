/*
 * run_replicas.h: a run of weeks, many times over.
 *
 * Between two interruptions nothing is random, so a replica goes from one to
 * the next and counts the checkpoints in between.  Replica i of a seed is the
 * same whatever the others are, and however many threads there are.
 */
#ifndef FR_RELIABILITY_RUN_REPLICAS_H
#define FR_RELIABILITY_RUN_REPLICAS_H

#include "core/base/log.h"
#include "reliability/run_conditions.h"
#include "spec/result/goodput.h"

typedef struct fr_run_request {
    double work_s;    /* of undisturbed steps, until the run is done; > 0 */
    double horizon_s; /* the waterfall is of the time until then; 0: until the
                         work is done */
    int64_t n_runs;   /* >= 1 */
    uint64_t seed;
    const fr_log *log; /* cancellation; NULL: none */
} fr_run_request;

/* FR_INPUT: conditions that make no sense.  FR_NO_MEMORY.  FR_INTERRUPTED: the
 * log cancels it. */
FR_CHECKED fr_status fr_run_replicas(const fr_run_conditions *conditions,
                                     const fr_run_request *request,
                                     fr_goodput *out, fr_err *err);

#endif
