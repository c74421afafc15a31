/*
 * step_record.h: what is known of one training step once it is over: a line of
 * --metrics, the numbers of --prometheus.
 */
#ifndef FR_SPEC_RUN_STEP_RECORD_H
#define FR_SPEC_RUN_STEP_RECORD_H

#include "spec/run/straggler.h"

enum { FR_STEP_STRAGGLERS = 8 };

typedef struct fr_step_record {
    int64_t step;    /* from 0 */
    int64_t n_steps; /* where the run ends */
    double loss;
    int64_t bad_rank; /* the first whose part of it is not finite; -1: none */
    double grad_norm; /* before it is clipped; NaN: it is not computed */
    double step_s;    /* of the slowest rank */
    /* Before it, since the step before: how long the ranks stood still for
     * checkpoints and copies of their state, at most. */
    double saving_s;
    /* Where the ranks' compute lanes spent their time, mean over them; what a
     * backend cannot tell: has_parts is false. */
    bool has_parts;
    double part_s[FR_PART_N];
    /* Who computed longest, and how long the ranks did in the middle. */
    int64_t slowest_rank;
    double slowest_compute_s, median_compute_s;
    uint64_t memory_bytes;   /* resident, of the rank that has most */
    uint64_t received_bytes; /* by all ranks in this step, from others */
    /* Who holds the run up now; on rank 0, the first so many. */
    int n_stragglers;
    fr_straggler stragglers[FR_STEP_STRAGGLERS];
} fr_step_record;

/* The mean loss of batches that are not trained on. */
typedef struct fr_run_evaluation {
    int64_t n_steps_done;
    double loss;
} fr_run_evaluation;

#endif
