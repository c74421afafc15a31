/*
 * schedule_table.c: the table of pipeline schedules.  It has nothing else, so
 * that a test can link a table of its own, with a schedule more.
 */
#include "plan/schedule/schedule.h"

#define ENTRY(name, entry) &fr_schedule_##entry,
const fr_schedule *const fr_schedules[] = {FR_SCHEDULES(ENTRY)};
const int fr_n_schedules = FR_SCHEDULE_N;
