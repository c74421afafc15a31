/*
 * goal_rows.h: the objectives that forerun has, for its table (goal_table.c).
 */
#ifndef FR_TUNER_GOAL_GOAL_ROWS_H
#define FR_TUNER_GOAL_GOAL_ROWS_H

#include "tuner/goal/goal.h"

#define FR_GOAL_ENTRY(name, entry) extern const fr_goal_row fr_goal_##entry;
FR_GOALS(FR_GOAL_ENTRY)
#undef FR_GOAL_ENTRY

/* Dollars and kilowatt hours of the run; HUGE_VAL where there is no price, or
 * no power. */
double fr_goal_usd(const fr_goal_point *at);
double fr_goal_kwh(const fr_goal_point *at);

#endif
