/*
 * measure_plans.h: `tune --measure K`: the first plans of the answer are run
 * here, each by a `forerun run` of its own, and the choice is made by what
 * they took.
 */
#ifndef FR_CLI_MEASURED_MEASURE_PLANS_H
#define FR_CLI_MEASURED_MEASURE_PLANS_H

#include "api/request/request.h"
#include "api/resolve/plan_choice.h"
#include "spec/result/tuning.h"
#include "tuner/goal/goal.h"

/*
 * Before anything is searched.  FR_USAGE: the cluster is not this machine, or
 * options miss each other.
 */
FR_CHECKED fr_status fr_measure_check(const fr_request *request,
                                      const fr_inputs *inputs, fr_err *err);

/*
 * Runs the best and the alternatives after it, K together, for a few steps;
 * fills tuning->measured and makes the one with the best value at its median
 * step the best.  `choice` is what the plans were tuned from.  With
 * --update-profile the profile and its file get the steps.  FR_FAILURE: none
 * could be run, with the first reason.
 */
FR_CHECKED fr_status fr_measure_plans(const fr_request *request,
                                      fr_inputs *inputs,
                                      const fr_plan_choice *choice,
                                      const fr_goal *goal, fr_tuning *tuning,
                                      fr_err *err);

/* What the profile's steps of this model say: tuning->correction. */
FR_CHECKED fr_status fr_measure_correction(const fr_inputs *inputs,
                                           const fr_model *model,
                                           fr_tuning *tuning, fr_err *err);

#endif
