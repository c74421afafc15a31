/*
 * sampler.h: how often to time what.  Points are timed in interleaved rounds,
 * so that a slow phase of the machine hits all of them alike; a sentinel (a
 * fixed piece of work) brackets every few points, and what was timed while it
 * moved is thrown away and made again; a point is left alone once the interval
 * of its median is tight, and all end when the time is used up.
 *
 * With several ranks every rank runs the same rounds; rank 0 decides and
 * `share` tells the others.
 */
#ifndef FR_CALIBRATE_SAMPLER_H
#define FR_CALIBRATE_SAMPLER_H

#include "core/base/err.h"
#include "spec/profile/profile.h"

/* A table of points to time, behind callbacks; see bench_*.c. */
typedef struct fr_bench {
    const char *name;
    void *context;
    size_t n_points;
    /* Before the points of each round; NULL: nothing to do. */
    fr_status (*begin_round)(void *context, fr_err *err);
    /* One timed execution of a point, prepared as it should be.  Negative
     * seconds: somebody else had the core meanwhile; such a sample counts
     * only where there is no other. */
    fr_status (*run)(void *context, size_t i_point, double *out_s, fr_err *err);
    /* Puts the sample of a point into the profile; fr_bench_profile() calls
     * it. */
    fr_status (*keep)(void *context, size_t i_point, const fr_sample *sample,
                      fr_profile *profile, fr_err *err);
} fr_bench;

typedef struct fr_sampling {
    double budget_s;       /* for all points together */
    double target_rel_err; /* of the median: a point is done below it */
    int n_min, n_max;      /* samples of a point */
    /* Seconds since any zero; NULL: the monotonic clock. */
    double (*now_s)(void *context);
    void *now_context;
    /* Fixed work, seconds; NULL: no sentinel. */
    fr_status (*sentinel)(void *context, double *out_s, fr_err *err);
    void *sentinel_context;
    double sentinel_slack; /* relative movement that spoils a round */
    /* Around each chunk of points; NULL: nobody asks.  end_others() is
     * collective: did other processes take time from a rank meanwhile? */
    void (*begin_others)(void *context);
    fr_status (*end_others)(void *context, bool *is_disturbed, fr_err *err);
    void *others_context;
    double repeat_s; /* beyond the budget, for points that others disturbed */
    /* Rank 0's bytes to everybody; NULL: one rank. */
    fr_status (*share)(void *context, void *bytes, size_t n_bytes, fr_err *err);
    void *share_context;
} fr_sampling;

/* budget 10 s, 1 % target, 5 to 64 samples, slack 3 %. */
void fr_sampling_init(fr_sampling *schedule);

/*
 * Times every point; out[n_points] is written on success only.  Every point
 * gets at least n_min samples (3 when the budget is over before that); one that
 * others disturb each time, the shortest of at least 6.
 * *n_disturbed (may be NULL) is raised by what was thrown away.
 */
FR_CHECKED fr_status fr_bench_measure(const fr_bench *bench,
                                      const fr_sampling *schedule,
                                      fr_sample *out, int *n_disturbed,
                                      fr_err *err);

/* Measures, raises the profile's count of disturbances, and where is_kept
 * keep()s every point in it. */
FR_CHECKED fr_status fr_bench_profile(const fr_bench *bench,
                                      const fr_sampling *schedule, bool is_kept,
                                      fr_profile *profile, fr_err *err);

/* Times so far that somebody else got a core of this process. */
long fr_preemptions(void);

/*
 * Median without outliers (beyond 5 median absolute deviations), and the
 * standard error of it from the distribution-free 95 % interval.  Sorts
 * seconds[n]; n >= 1.
 */
fr_sample fr_sample_of(double *seconds, size_t n);

#endif
