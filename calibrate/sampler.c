/* sampler.c: see sampler.h. */
#include "calibrate/sampler.h"

#include "core/numbers/stats.h"
#include "core/system/clock.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum {
    N_SENTINEL = 3,  /* executions of one look at the sentinel */
    N_CHUNK = 32,    /* points between two looks at it */
    N_TRIES = 3,     /* of a chunk in one round */
    N_PREEMPTED = 6, /* samples in vain before a point is given up */
    N_LEAST = 3      /* samples of a point, whatever the budget */
};

void fr_sampling_init(fr_sampling *schedule)
{
    memset(schedule, 0, sizeof *schedule);
    schedule->budget_s = 10.0;
    schedule->target_rel_err = 0.01;
    schedule->n_min = 5;
    schedule->n_max = 64;
    schedule->sentinel_slack = 0.03;
}

fr_sample fr_sample_of(double *seconds, size_t n)
{
    fr_sample sample = {0};
    double median = fr_stats_median(seconds, n);
    /* The clock's own steps are no deviation to judge others by. */
    double mad = fmax(fr_stats_mad(seconds, n), 0.002 * median);
    size_t first = 0, last = n;
    fr_interval interval;

    fr_stats_sort(seconds, n);
    while (first < n && seconds[first] < median - 5.0 * mad)
        first++;
    while (last > first && seconds[last - 1] > median + 5.0 * mad)
        last--;
    sample.n_samples = (int32_t)(last - first);
    sample.n_outliers = (int32_t)(n - (last - first));
    sample.median_s = fr_stats_median(seconds + first, last - first);
    interval = fr_stats_median_interval(seconds + first, last - first, 0.95);
    sample.rel_err =
        (interval.high - interval.low) / (2.0 * 1.96) / sample.median_s;
    /* One or two samples have an interval that means nothing. */
    if (last - first < 3)
        sample.rel_err = fmax(sample.rel_err, 0.1);
    return sample;
}

long fr_preemptions(void)
{
    struct rusage usage;

    return getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_nivcsw : 0;
}

typedef struct point_state {
    double *seconds; /* [n_max] */
    int n;
    int n_preempted;
    double preempted_s; /* the shortest of those */
    double spent_s;
    bool is_done;
} point_state;

typedef enum chunk_fate {
    CHUNK_CALM,
    CHUNK_MOVED,    /* the sentinel did: its samples are worth nothing */
    CHUNK_DISTURBED /* by others: its samples count if there are no others */
} chunk_fate;

typedef struct rounds {
    const fr_bench *bench;
    const fr_sampling *schedule;
    point_state *points;
    double *storage;
    double *fresh;       /* [n_points] of this round */
    unsigned char *todo; /* [n_points], rank 0's decision */
    double *scratch;     /* [n_max] */
    double sentinel_best_s;
    double begin_s;
    int n_disturbed;
} rounds;

static double now_s(const fr_sampling *schedule)
{
    return schedule->now_s != NULL ? schedule->now_s(schedule->now_context)
                                   : fr_clock_s();
}

static fr_status look_at_sentinel(rounds *r, double *out_s, fr_err *err)
{
    double seconds[N_SENTINEL];

    *out_s = 0.0;
    if (r->schedule->sentinel == NULL)
        return FR_OK;
    for (int i = 0; i < N_SENTINEL; i++)
        FR_TRY(r->schedule->sentinel(r->schedule->sentinel_context, &seconds[i],
                                     err));
    *out_s = fr_stats_median(seconds, N_SENTINEL);
    return FR_OK;
}

static fr_status share(const rounds *r, void *bytes, size_t n, fr_err *err)
{
    if (r->schedule->share == NULL)
        return FR_OK;
    return r->schedule->share(r->schedule->share_context, bytes, n, err);
}

/* Decides which points the next round times; *any tells whether there is one.
 * */
static fr_status choose(rounds *r, bool *any, fr_err *err)
{
    const fr_sampling *schedule = r->schedule;
    size_t n_points = r->bench->n_points;
    double spent_s = now_s(schedule) - r->begin_s;
    /* No single slow point may use up the time of all others. */
    double fair_s = 4.0 * schedule->budget_s / (double)n_points;
    unsigned char is_any = 0;

    for (size_t i = 0; i < n_points; i++) {
        point_state *p = &r->points[i];
        bool is_enough = p->n >= schedule->n_min;
        if (!p->is_done && is_enough && p->n > 0) {
            memcpy(r->scratch, p->seconds, (size_t)p->n * sizeof(double));
            p->is_done = fr_sample_of(r->scratch, (size_t)p->n).rel_err <=
                         schedule->target_rel_err;
        }
        const double budget_s =
            schedule->budget_s + (p->n == 0 ? schedule->repeat_s : 0.0);
        if (p->n >= schedule->n_max ||
            ((p->n >= N_LEAST || p->n_preempted >= N_PREEMPTED) &&
             (spent_s >= budget_s || p->spent_s > fair_s)))
            p->is_done = true;
        r->todo[i] = !p->is_done;
        is_any |= r->todo[i];
    }
    FR_TRY(share(r, r->todo, n_points, err));
    FR_TRY(share(r, &is_any, sizeof is_any, err));
    *any = is_any != 0;
    return FR_OK;
}

static fr_status time_points(rounds *r, size_t first, size_t last, fr_err *err)
{
    const fr_sampling *schedule = r->schedule;

    if (first == 0 && r->bench->begin_round != NULL)
        FR_TRY(r->bench->begin_round(r->bench->context, err));
    for (size_t i = first; i < last; i++) {
        double begin_s = now_s(schedule);
        if (!r->todo[i])
            continue;
        FR_TRY(r->bench->run(r->bench->context, i, &r->fresh[i], err));
        r->points[i].spent_s += now_s(schedule) - begin_s;
    }
    return FR_OK;
}

static bool has_moved(rounds *r, double before_s, double after_s)
{
    const fr_sampling *schedule = r->schedule;
    const double best_s = fmin(before_s, after_s);

    if (schedule->sentinel == NULL)
        return false;
    if (r->sentinel_best_s == 0.0 || best_s < r->sentinel_best_s)
        r->sentinel_best_s = best_s;
    return fmax(before_s, after_s) >
               r->sentinel_best_s * (1.0 + schedule->sentinel_slack) &&
           now_s(schedule) - r->begin_s < schedule->budget_s;
}

static fr_status run_chunk(rounds *r, size_t first, size_t last,
                           chunk_fate *out, fr_err *err)
{
    const fr_sampling *schedule = r->schedule;
    double before_s, after_s;
    bool is_disturbed = false;

    FR_TRY(look_at_sentinel(r, &before_s, err));
    if (schedule->begin_others != NULL)
        schedule->begin_others(schedule->others_context);
    FR_TRY(time_points(r, first, last, err));
    if (schedule->end_others != NULL)
        FR_TRY(
            schedule->end_others(schedule->others_context, &is_disturbed, err));
    FR_TRY(look_at_sentinel(r, &after_s, err));
    unsigned char fate = has_moved(r, before_s, after_s) ? CHUNK_MOVED
                         : is_disturbed                  ? CHUNK_DISTURBED
                                                         : CHUNK_CALM;
    FR_TRY(share(r, &fate, sizeof fate, err));
    *out = (chunk_fate)fate;
    return FR_OK;
}

/* Rank 0 says how often, who may have been interrupted where this rank was
 * not: what is then too many is left out. */
static void keep_sample(point_state *point, int n_max, double seconds)
{
    if (seconds > 0.0) {
        if (point->n < n_max)
            point->seconds[point->n++] = seconds;
        return;
    }
    if (point->n_preempted++ == 0 || -seconds < point->preempted_s)
        point->preempted_s = -seconds;
}

/* A sample that counts only if its point has no other. */
static void keep_last_resort(point_state *point, double seconds)
{
    keep_sample(point, 0, -fabs(seconds));
}

/* A chunk whose sentinel keeps moving gives no sample in this round. */
static fr_status run_round(rounds *r, fr_err *err)
{
    size_t n_points = r->bench->n_points;
    size_t n_chunk = r->bench->begin_round != NULL ? n_points : N_CHUNK;

    for (size_t first = 0; first < n_points; first += n_chunk) {
        size_t last = first + n_chunk < n_points ? first + n_chunk : n_points;
        chunk_fate fate = CHUNK_MOVED;
        bool any = false;
        for (size_t i = first; i < last; i++)
            any = any || r->todo[i];
        if (!any)
            continue;
        for (int k = 0; k < N_TRIES && fate != CHUNK_CALM; k++) {
            FR_TRY(run_chunk(r, first, last, &fate, err));
            r->n_disturbed += fate != CHUNK_CALM;
            for (size_t i = first; i < last; i++)
                if (r->todo[i] && fate == CHUNK_DISTURBED)
                    keep_last_resort(&r->points[i], r->fresh[i]);
        }
        for (size_t i = first; i < last && fate == CHUNK_CALM; i++)
            if (r->todo[i])
                keep_sample(&r->points[i], r->schedule->n_max, r->fresh[i]);
    }
    return FR_OK;
}

static void release(rounds *r)
{
    free(r->points);
    free(r->storage);
    free(r->fresh);
    free(r->todo);
    free(r->scratch);
}

static fr_status prepare(rounds *r, fr_err *err)
{
    size_t n_points = r->bench->n_points;
    size_t n_max = (size_t)r->schedule->n_max;

    FR_TRY_CALLOC(r->points, n_points, err);
    FR_TRY_CALLOC(r->storage, n_points * n_max, err);
    FR_TRY_CALLOC(r->fresh, n_points, err);
    FR_TRY_CALLOC(r->todo, n_points, err);
    FR_TRY_CALLOC(r->scratch, n_max, err);
    for (size_t i = 0; i < n_points; i++)
        r->points[i].seconds = r->storage + i * n_max;
    return FR_OK;
}

fr_status fr_bench_measure(const fr_bench *bench, const fr_sampling *schedule,
                           fr_sample *out, int *n_disturbed, fr_err *err)
{
    fr_status status;
    rounds r = {.bench = bench, .schedule = schedule};
    bool any = true;

    if (bench->n_points == 0)
        return FR_OK;
    FR_TRY_GOTO(status, prepare(&r, err), out_rounds);
    r.begin_s = now_s(schedule);
    for (;;) {
        FR_TRY_GOTO(status, choose(&r, &any, err), out_rounds);
        if (!any)
            break;
        FR_TRY_GOTO(status, run_round(&r, err), out_rounds);
    }
    for (size_t i = 0; i < bench->n_points; i++) {
        point_state *p = &r.points[i];
        if (p->n == 0)
            p->seconds[p->n++] = p->preempted_s;
        out[i] = fr_sample_of(p->seconds, (size_t)p->n);
        out[i].n_outliers += p->n_preempted;
    }
    if (n_disturbed != NULL)
        *n_disturbed += r.n_disturbed;
out_rounds:
    if (status != FR_OK)
        fr_err_prefix(err, "calibrating %s", bench->name);
    release(&r);
    return status;
}

fr_status fr_bench_profile(const fr_bench *bench, const fr_sampling *schedule,
                           bool is_kept, fr_profile *profile, fr_err *err)
{
    fr_sample *samples;

    FR_TRY_CALLOC(samples, bench->n_points + 1, err);
    fr_status status =
        fr_bench_measure(bench, schedule, samples, &profile->n_disturbed, err);
    for (size_t i = 0; status == FR_OK && is_kept && i < bench->n_points; i++)
        status = bench->keep(bench->context, i, &samples[i], profile, err);
    free(samples);
    return status;
}
