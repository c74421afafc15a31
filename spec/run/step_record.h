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
    int64_t n_steps; /* the step at which the run ends */
    double loss;
    int64_t bad_rank; /* the first whose part of it is not finite; -1: none */
    double grad_norm; /* before it is clipped; NaN: it is not computed */
    double step_s;    /* of the slowest rank */
    /* Before it, since the step before: how long the ranks stood still for
     * checkpoints and copies of their state, at most. */
    double saving_s;
    /* The parts of the time of the ranks' compute lanes, mean over the ranks;
     * has_parts is false if the backend cannot measure them. */
    bool has_parts;
    double part_s[FR_PART_N];
    /* The rank that computed longest, its time, and the median over the
     * ranks. */
    int64_t slowest_rank;
    double slowest_compute_s, median_compute_s;
    uint64_t memory_bytes;   /* resident, of the rank that has most */
    uint64_t received_bytes; /* by all ranks in this step, from others */
    /* The ranks that slow the run now, at most this many; set on rank 0
     * only. */
    int n_stragglers;
    fr_straggler stragglers[FR_STEP_STRAGGLERS];
} fr_step_record;

/* The mean loss of batches that are not trained on. */
typedef struct fr_run_evaluation {
    int64_t n_steps_done;
    double loss;
} fr_run_evaluation;

#endif
