/*
 * goal_options.h: what the command line wants: objective and constraints.
 */
#ifndef FR_API_RESOLVE_GOAL_OPTIONS_H
#define FR_API_RESOLVE_GOAL_OPTIONS_H

#include "api/request/request.h"
#include "tuner/goal/goal.h"

/* The goal of --goal and what belongs to it, checked; without --goal that of
 * a step.  FR_USAGE: an amount cannot be read, or is missing. */
/* --fit-confidence: what is called best is likely to fit. */
double fr_request_fit_confidence(const fr_request *request);

FR_CHECKED fr_status fr_request_make_goal(const fr_request *request,
                                          fr_goal *out, fr_err *err);

#endif
