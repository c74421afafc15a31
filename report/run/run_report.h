/*
 * run_report.h: what a training run measured next to what was predicted; the
 * data are the members of "forerun.run/1".
 */
#ifndef FR_REPORT_RUN_RUN_REPORT_H
#define FR_REPORT_RUN_RUN_REPORT_H

#include "plan/collective/collective.h"
#include "plan/decide/plan.h"
#include "report/document/document.h"
#include "spec/result/prediction.h"
#include "spec/run/busy_steps.h"
#include "spec/run/saving_cost.h"
#include "spec/run/step_record.h"
#include "spec/run/straggler.h"

typedef struct fr_run_report {
    const char *plan;    /* fr_plan_describe */
    const char *backend; /* "cpu", "cuda" */
    const fr_model *model;
    int64_t world_size, n_steps;
    const double *loss;                   /* [n_steps], borrowed */
    const fr_run_evaluation *evaluations; /* borrowed */
    size_t n_evaluations;
    /* [resumed_from_step], borrowed; NULL: of this run's own steps alone. */
    const double *loss_before;
    double step_s_median, step_s_p5, step_s_p95;
    double tokens_per_s, samples_per_s; /* alike: there are no tokens */
    uint64_t peak_bytes;
    uint64_t baseline_bytes; /* of it what the process has beside the plan's
                                memory: libraries, BLAS, MPI */
    int64_t resumed_from_step;
    bool is_from_memory; /* it went on from copies in memory */
    fr_saving_cost saving;
    fr_busy_steps busy;
    double breakdown_s[FR_PART_N]; /* measured; adds up to the median */
    bool has_breakdown;
    bool has_prediction;
    double predicted_step_s;
    uint64_t predicted_peak_bytes;
    uint64_t predicted_baseline_bytes; /* 0: nobody measured it */
    /* The collectives of rank 0 that went through NCCL; borrowed. */
    const fr_collective_note *collectives;
    size_t n_collectives;
    /* The ranks that delayed the run, and the time that each rank computed and
     * waited, mean of a step: [world_size], NULL: not known; borrowed. */
    const fr_straggler *stragglers;
    size_t n_stragglers;
    double monitoring_s; /* what looking at a step took rank 0, mean */
    const double *compute_s, *wait_s;
    const fr_plan *grid;  /* that of the ranks */
    const char *topology; /* file that NCCL wrote its topology to; NULL */
    double predicted_breakdown_s[FR_PART_N]; /* of the simulated timeline, by
                                                the same code as measured */
} fr_run_report;

/* predicted / measured - 1; 0 without a prediction. */
double fr_run_report_rel_err(const fr_run_report *report);

void fr_report_run(const fr_run_report *report, fr_document *out);

#endif
