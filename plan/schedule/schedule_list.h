/*
 * schedule_list.h: the rows of the table of pipeline schedules.
 *
 * A schedule is a file with one const fr_schedule and one row here: NAME makes
 * FR_SCHEDULE_NAME, the number that a plan holds, and ENTRY names its struct
 * fr_schedule_ENTRY (schedule.h).  The order is that of help texts and of the
 * search.
 */
#ifndef FR_PLAN_SCHEDULE_SCHEDULE_LIST_H
#define FR_PLAN_SCHEDULE_SCHEDULE_LIST_H

#include "core/document/names.h"

#define FR_SCHEDULES(ROW)                                                      \
    ROW(GPIPE, gpipe)                                                          \
    ROW(1F1B, 1f1b)                                                            \
    ROW(INTERLEAVED, interleaved)                                              \
    ROW(ZB_H1, zb_h1)                                                          \
    ROW(ZB_V, zb_v)

#define FR_SCHEDULE_KIND(name, entry) FR_SCHEDULE_##name,
typedef enum fr_schedule_kind {
    FR_SCHEDULES(FR_SCHEDULE_KIND) FR_SCHEDULE_N
} fr_schedule_kind;
#undef FR_SCHEDULE_KIND

/* Rows of the table. */
extern const int fr_n_schedules;

extern const fr_names fr_schedule_names;

#endif
