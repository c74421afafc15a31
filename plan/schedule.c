/*
 * schedule.c: the list of pipeline schedules.
 */
#include "plan/schedule.h"

const fr_schedule *const fr_schedules[FR_SCHEDULE_N] = {
    [FR_SCHEDULE_GPIPE] = &fr_schedule_gpipe,
    [FR_SCHEDULE_1F1B] = &fr_schedule_1f1b,
    [FR_SCHEDULE_INTERLEAVED] = &fr_schedule_interleaved,
};
