/*
 * goodput.h: the answer of goodput: where the time of a run of weeks goes, how
 * long it takes until its work is done, what that costs.
 */
#ifndef FR_SPEC_RESULT_GOODPUT_H
#define FR_SPEC_RESULT_GOODPUT_H

#include "core/document/names.h"

#include <stdint.h>

/* The parts of a run, as shares of its time. */
typedef enum fr_run_part {
    FR_RUN_USEFUL,      /* steps that count */
    FR_RUN_CHECKPOINT,  /* training waits for a checkpoint to be written */
    FR_RUN_LOST,        /* steps since the last checkpoint, done once more */
    FR_RUN_RESTART,     /* detection, start-up, loading; the end of a run */
    FR_RUN_REPLAN,      /* another plan for other nodes, its state resharded */
    FR_RUN_STRAGGLER,   /* of steps that count: waits for slower ranks */
    FR_RUN_INPUT,       /* of the same: waits for data */
    FR_RUN_IDLE,        /* nodes are missing */
    FR_RUN_MAINTENANCE, /* all stand still, as announced */
    FR_RUN_EVALUATION,  /* batches that are not trained on */
    FR_RUN_PARTS
} fr_run_part;

extern const fr_names fr_run_part_names; /* the JSON keys */

/* Percentiles of a distribution over runs. */
typedef struct fr_spread {
    double p5, p50, p95;
} fr_spread;

typedef struct fr_goodput {
    int64_t n_runs;
    int64_t n_unfinished; /* of them: given up, as they took 50 times as long */
    double goodput;       /* share that steps have which count, the mean ... */
    double goodput_standard_error; /* ... and its own error */
    double goodput_p5, goodput_p95;
    double waterfall[FR_RUN_PARTS]; /* means; they add up to 1 */
    fr_spread finish_days; /* until the work is done; HUGE_VAL: not finished */
    double finish_days_mean;
    double interruptions;    /* within the time of the waterfall, the mean */
    double expected_goodput; /* by the closed form, where there is one; 0 */
} fr_goodput;

/* One run through faults on purpose. */
typedef struct fr_schedule_result {
    double wall_s;
    double parts_s[FR_RUN_PARTS]; /* add up to it */
    int64_t n_restarts;
    int64_t n_lost_steps;
} fr_schedule_result;

#endif
