/*
 * explain_plan.h: says what binds a plan, by simulating it again with each
 * resource a little faster and slower, and what the next best change is, by
 * simulating its neighbours.
 */
#ifndef FR_TUNER_STUDY_EXPLAIN_PLAN_H
#define FR_TUNER_STUDY_EXPLAIN_PLAN_H

#include "core/base/log.h"
#include "cost_models/base/cost.h"
#include "spec/profile/profile.h"
#include "spec/result/explanation.h"
#include "tuner/space/plan_space.h"

typedef struct fr_explain_request {
    const fr_model *model;
    const fr_job *job;
    const fr_cluster *cluster;
    const fr_profile *profile; /* NULL: none */
    const fr_cost_model *costs;
    const fr_plan *plan;
    const fr_prediction *prediction; /* of the plan; whether it fits or not */
    bool allow_lossy;
    double fit_confidence; /* with which the change that is advised fits */
    int n_threads;         /* 0: as many as OpenMP has */
    const fr_log *log;     /* progress, cancellation; may be NULL */
    /* Changes that are proposed are plans that it can execute; NULL: any. */
    const fr_target *target;
    int target_version;
} fr_explain_request;

/* Everything is borrowed.  The plan is legal and has been predicted.  The
 * same for any number of threads. */
FR_CHECKED fr_status fr_explain_plan(const fr_explain_request *request,
                                     fr_explanation *out, fr_err *err);

#endif
