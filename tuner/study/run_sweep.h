/*
 * run_sweep.h: predicts the points of a sweep: under the plan that each was
 * given, or under the best one for it.
 */
#ifndef FR_TUNER_STUDY_RUN_SWEEP_H
#define FR_TUNER_STUDY_RUN_SWEEP_H

#include "core/base/log.h"
#include "cost_models/base/cost.h"
#include "frameworks/framework_plan.h"
#include "spec/result/sweep.h"
#include "tuner/goal/goal.h"
#include "tuner/space/plan_space.h"

/* The inputs of one point; all are borrowed. */
typedef struct fr_sweep_case {
    const fr_model *model;
    const fr_cluster *cluster;
    const fr_cost_model *costs;
    fr_job job;
    fr_plan plan;
    uint64_t pins;    /* FR_PIN(): the fields of the plan that were given */
    int64_t n_ranks;  /* 0: all that the cluster has places for; CPUs, tuned:
                         any number */
    bool allow_lossy; /* tuned */
    fr_goal goal;     /* the goal of its run; all cases have one kind */
    double fit_confidence; /* tuned: how likely the plan has to fit */
    /* The framework has the defaults of all plan fields without a bit in
     * `given`; a tuned plan is also checked by `target`. NULL: no framework, no
     * target. */
    const fr_framework *framework;
    uint64_t given;
    fr_execution_bits facts;
    const fr_target *target;
    const char *why; /* it cannot be; NULL: it can */
} fr_sweep_case;

typedef struct fr_sweep_options {
    bool is_fixed;     /* keep the plan; dp, where it is not given, takes all
                          ranks.  Else: tune each */
    bool is_exact;     /* tune each in the whole space, until its best plan is
                          proven; else as tune_quick.h does */
    bool is_weak;      /* the batch is that of the case with the fewest ranks,
                          and grows with them */
    bool has_goal;     /* that of the cases makes the best point */
    int n_threads;     /* 0: as many as OpenMP has */
    const fr_log *log; /* progress, cancellation; may be NULL */
} fr_sweep_options;

/*
 * Fills sweep->points, one for each of sweep->n_points cases; keys and points
 * are made before (sweep.h).  The cases are changed: dp, batch.  A point
 * that cannot be (illegal plan, too little memory ...) is a row with the
 * reason; an error is one of the program itself, or FR_INTERRUPTED.  The same
 * for any number of threads.
 */
FR_CHECKED fr_status fr_sweep_run(fr_sweep_case *cases,
                                  const fr_sweep_options *options,
                                  fr_sweep *sweep, fr_err *err);

#endif
