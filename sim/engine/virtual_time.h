/*
 * virtual_time.h: where the clock of picoseconds ends.
 *
 * Times and durations lie in [0, FR_PS_END]; what would be longer is FR_PS_END.
 * Seven times that still fit 64 bits, so that sums saturate and never wrap.
 * Who reaches the end answers with fr_ps_fail(), not with a number.
 */
#ifndef FR_SIM_ENGINE_VIRTUAL_TIME_H
#define FR_SIM_ENGINE_VIRTUAL_TIME_H

#include "core/base/err.h"
#include "sim/engine/maxmin.h"

/* 2^60 ps: 13 days and 8 hours. */
#define FR_PS_END (INT64_C(1) << 60)

/* The sum of two times; one of them may lie as far below zero. */
static inline int64_t fr_ps_add(int64_t a_ps, int64_t b_ps)
{
    int64_t sum_ps = a_ps + b_ps;
    return sum_ps < FR_PS_END ? sum_ps : FR_PS_END;
}

/* Adds n times ps to a sum. */
static inline void fr_ps_add_times(int64_t *sum_ps, int64_t n, int64_t ps)
{
    int64_t all_ps;
    if (__builtin_mul_overflow(n, ps, &all_ps) || all_ps > FR_PS_END)
        all_ps = FR_PS_END;
    *sum_ps = fr_ps_add(*sum_ps, all_ps);
}

/* Seconds as picoseconds; what is no number counts as endless. */
static inline int64_t fr_ps_of(double seconds)
{
    if (!(seconds < 1e-12 * (double)FR_PS_END))
        return FR_PS_END;
    return seconds > 0 ? (int64_t)(seconds * 1e12 + 0.5) : 0;
}

/* Whole picoseconds of a number of them. */
static inline int64_t fr_ps_cut(double ps)
{
    return ps < (double)FR_PS_END ? (int64_t)ps : FR_PS_END;
}

/* Returns the time that work takes at a rate. */
static inline int64_t fr_ps_of_work(fr_work work, int64_t rate)
{
    int64_t ps = fr_maxmin_duration_ps(work, rate);
    return ps < FR_PS_END ? ps : FR_PS_END;
}

/* The error of a step that is longer than the clock. */
FR_CHECKED static inline fr_status fr_ps_fail(fr_err *err)
{
    return fr_fail(err, FR_INFEASIBLE,
                   "a step takes more than 13 days, where the clock of "
                   "picoseconds ends; choose a smaller global_batch or seq, or "
                   "more devices");
}

#endif
