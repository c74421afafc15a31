/*
 * schedule.c: the list of pipeline schedules, and what holds for all of them.
 */
#include "plan/schedule/schedule.h"

const fr_schedule *const fr_schedules[FR_SCHEDULE_N] = {
    [FR_SCHEDULE_GPIPE] = &fr_schedule_gpipe,
    [FR_SCHEDULE_1F1B] = &fr_schedule_1f1b,
    [FR_SCHEDULE_INTERLEAVED] = &fr_schedule_interleaved,
    [FR_SCHEDULE_ZB_H1] = &fr_schedule_zb_h1,
    [FR_SCHEDULE_ZB_V] = &fr_schedule_zb_v,
};

int64_t fr_schedule_n_tasks(const fr_schedule *schedule, int64_t n_micro,
                            int64_t vpp)
{
    return (schedule->is_split ? 3 : 2) * n_micro * vpp;
}

int32_t fr_schedule_stage(const fr_schedule *schedule, int32_t rank,
                          int32_t chunk, int32_t n_stages)
{
    if (schedule->is_v && chunk % 2 == 1)
        return (chunk + 1) * n_stages - 1 - rank;
    return chunk * n_stages + rank;
}

int32_t fr_schedule_rank(const fr_schedule *schedule, int32_t stage,
                         int32_t n_stages)
{
    int32_t at = stage % n_stages;
    return schedule->is_v && stage / n_stages % 2 == 1 ? n_stages - 1 - at : at;
}

double fr_schedule_bubble_frac(const fr_schedule *schedule, int64_t n_stages,
                               int64_t n_micro, int64_t vpp)
{
    static const fr_pass_times equal = {1, 1, 1};
    double idle_s = schedule->bubble_s(n_stages, n_micro, vpp, &equal);
    return idle_s / (idle_s + 3.0 * (double)n_micro);
}
