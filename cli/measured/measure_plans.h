/*
 * measure_plans.h: `tune --measure K`: the first plans of the answer are run
 * here, each by a `forerun run` of its own, and the choice is made by what
 * they took.
 */
#ifndef FR_CLI_MEASURED_MEASURE_PLANS_H
#define FR_CLI_MEASURED_MEASURE_PLANS_H

#include "api/answer/measurer.h"

extern const fr_measurer fr_local_measurer;

#endif
