/*
 * measurer.h: runs plans on this machine, for `tune --measure K`.  A caller
 * that can start processes gives one to its session.
 */
#ifndef FR_API_ANSWER_MEASURER_H
#define FR_API_ANSWER_MEASURER_H

#include "api/resolve/plan_choice.h"
#include "spec/result/tuning.h"
#include "tuner/goal/goal.h"

typedef struct fr_measurer {
    /* Before anything is searched.  FR_USAGE: the cluster is not this machine,
     * or options miss each other. */
    fr_status (*check)(const fr_request *request, const fr_inputs *inputs,
                       fr_err *err);
    /*
     * Runs the best and the alternatives after it, K together, for a few steps;
     * fills tuning->measured and makes the one with the best value at its
     * median step the best.  `choice` is what the plans were tuned from.  With
     * --update-profile the profile and its file get the steps.  FR_FAILURE:
     * none could be run, with the first reason.
     */
    fr_status (*measure)(const fr_request *request, fr_inputs *inputs,
                         const fr_plan_choice *choice, const fr_goal *goal,
                         fr_tuning *tuning, fr_err *err);
} fr_measurer;

#endif
