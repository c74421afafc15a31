/*
 * schedule.c: what holds for all pipeline schedules.
 */
#include "plan/schedule/schedule.h"

#include <stddef.h>

static const char *name_at(int i)
{
    return i < fr_n_schedules ? fr_schedules[i]->name : NULL;
}
const fr_names fr_schedule_names = {.at = name_at, .n_rows = &fr_n_schedules};

bool fr_schedule_fits(const fr_schedule *schedule, int64_t n_stages,
                      int64_t n_micro, int64_t vpp)
{
    const int64_t least =
        schedule->least_micro != NULL ? schedule->least_micro(n_stages) : 1;
    return n_stages >= (schedule->needs_pipeline ? 2 : 1) && n_micro >= least &&
           (schedule->n_chunks > 0 ? vpp == schedule->n_chunks : vpp >= 2) &&
           (!schedule->is_grouped || n_micro % n_stages == 0);
}

bool fr_schedule_has_chunks(const fr_schedule *schedule)
{
    return schedule->n_chunks != 1;
}

fr_schedule_kind fr_schedule_usual(int32_t vpp)
{
    return vpp > 1 ? FR_SCHEDULE_INTERLEAVED : FR_SCHEDULE_1F1B;
}

fr_schedule_kind fr_schedule_plain(bool is_split)
{
    return is_split ? FR_SCHEDULE_ZB_H1 : FR_SCHEDULE_1F1B;
}

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
