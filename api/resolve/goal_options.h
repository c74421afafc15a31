/*
 * goal_options.h: what the command line wants: objective and constraints.
 */
#ifndef FR_CLI_OPTION_GOAL_OPTIONS_H
#define FR_CLI_OPTION_GOAL_OPTIONS_H

#include "cli/command.h"
#include "tuner/goal/goal.h"

/* The goal of --goal and what belongs to it, checked; without --goal that of
 * a step.  FR_USAGE: an amount cannot be read, or is missing. */
/* --fit-confidence: what is called best is likely to fit. */
double fr_cli_fit_confidence(const fr_cli *cli);

FR_CHECKED fr_status fr_cli_make_goal(const fr_cli *cli, fr_goal *out,
                                      fr_err *err);

#endif
