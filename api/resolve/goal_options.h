/*
 * goal_options.h: the objective and the constraints of a request.
 */
#ifndef FR_API_RESOLVE_GOAL_OPTIONS_H
#define FR_API_RESOLVE_GOAL_OPTIONS_H

#include "api/request/request.h"
#include "tuner/goal/goal.h"

/* --fit-confidence: the least probability that the best plan fits. */
double fr_request_fit_confidence(const fr_request *request);

/* Reads --goal with its options and checks it; without --goal the goal is the
 * time of a step.  FR_USAGE: an amount cannot be read, or is missing. */
FR_CHECKED fr_status fr_request_make_goal(const fr_request *request,
                                          fr_goal *out, fr_err *err);

#endif
