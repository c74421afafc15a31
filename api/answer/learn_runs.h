/*
 * learn_runs.h: `calibrate --runs`: measured steps of a stack into a profile,
 * beside what is predicted of them.
 */
#ifndef FR_API_ANSWER_LEARN_RUNS_H
#define FR_API_ANSWER_LEARN_RUNS_H

#include "api/request/request.h"
#include "interop/case/case.h"
#include "plan/decide/plan_json.h"
#include "report/document/document.h"
#include "spec/profile/profile.h"
#include "spec/result/prediction.h"

/* Predicts a row on its own cluster; profile may be NULL.  FR_INTERRUPTED: the
 * log, which may be NULL, cancels it. */
FR_CHECKED fr_status fr_predict_case(const fr_profile *profile,
                                     const fr_case_setup *setup,
                                     const fr_log *log, fr_prediction *out,
                                     fr_err *err);

/* Adds a run; one of the same name gives way. */
FR_CHECKED fr_status fr_profile_put_run(fr_profile *profile,
                                        const fr_run_point *run, fr_err *err);

/* `run --update-profile`: a step of the plan that was just run joins the runs
 * of --profile, beside what its kernels and links predict. */
FR_CHECKED fr_status fr_learn_run(const fr_request *request,
                                  const fr_plan_file *file, double measured_s,
                                  fr_err *err);

/* Reads --runs and --profile, writes --output. */
FR_CHECKED fr_status fr_learn_runs(const fr_request *request, fr_document *out,
                                   fr_err *err);

#endif
