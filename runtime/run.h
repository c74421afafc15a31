/*
 * run.h: interpreter 2: trains under a program, one process per rank.
 */
#ifndef FR_RUNTIME_RUN_H
#define FR_RUNTIME_RUN_H

#include "core/err.h"
#include "plan/program.h"
#include "spec/timeline.h"

typedef struct fr_run_options {
    int64_t n_steps;       /* 0: as the job says */
    int64_t n_warmup;      /* steps left out of the statistics */
    int64_t trace_steps;   /* last k steps recorded in the timeline */
    double timeout_s;      /* a wait longer than this ends the run */
    bool is_gradient_dump; /* rank files with gradients of the first step */
    const char *gradient_path;
    /* Called on rank 0 after each step; may be NULL. */
    void (*on_step)(void *context, int64_t i_step, double loss, double step_s);
    void *context;
} fr_run_options;

void fr_run_options_init(fr_run_options *options);

typedef struct fr_run_result {
    int64_t n_steps, world_size;
    double *loss;   /* [n_steps] */
    double *step_s; /* [n_steps], slowest rank */
    double step_s_median, step_s_p5, step_s_p95; /* after warm-up */
    uint64_t peak_bytes;     /* of the peak rank, from the operating system */
    uint64_t baseline_bytes; /* the same before the slab was made */
    int64_t resumed_from_step;
} fr_run_result;

void fr_run_result_release(fr_run_result *result);

/*
 * Runs inside a process that a launcher started (or alone, world 1): joins
 * the others, executes the program, gathers the result on rank 0 (elsewhere
 * *out is zeroed).  `timeline` may be NULL; rank 0 gets everybody's spans.
 * FR_FAILURE names the rank and the operation that died or timed out.
 */
FR_CHECKED fr_status fr_run(const fr_program *program,
                            const fr_run_options *options,
                            fr_timeline *timeline, fr_run_result *out,
                            fr_err *err);

#endif
