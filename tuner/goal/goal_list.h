/*
 * goal_list.h: the rows of the table of objectives.
 *
 * An objective is a const fr_goal_row (goal.h) of goal_rows.c and one row here:
 * NAME makes FR_GOAL_NAME, ENTRY names its struct fr_goal_ENTRY.  The order is
 * that of help texts.
 */
#ifndef FR_TUNER_GOAL_GOAL_LIST_H
#define FR_TUNER_GOAL_GOAL_LIST_H

#define FR_GOALS(ROW)                                                          \
    ROW(STEP, step)                                                            \
    ROW(THROUGHPUT, throughput)                                                \
    ROW(TIME, time)                                                            \
    ROW(COST, cost)                                                            \
    ROW(ENERGY, energy)                                                        \
    ROW(DEADLINE, deadline)                                                    \
    ROW(DEVICES, devices)                                                      \
    ROW(LOSS, loss)                                                            \
    ROW(HEADROOM, headroom)

#define FR_GOAL_KIND(name, entry) FR_GOAL_##name,
typedef enum fr_goal_kind { FR_GOALS(FR_GOAL_KIND) FR_GOAL_N } fr_goal_kind;
#undef FR_GOAL_KIND

#endif
