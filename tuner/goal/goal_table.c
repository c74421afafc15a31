/*
 * goal_table.c: the table of objectives.  It has nothing else, so that a test
 * can link a table of its own, with an objective more.
 */
#include "tuner/goal/goal_rows.h"

#define ENTRY(name, entry) &fr_goal_##entry,
const fr_goal_row *const fr_goal_rows[] = {FR_GOALS(ENTRY)};
const int fr_n_goals = FR_GOAL_N;
