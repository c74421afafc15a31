/* trace_losses.c: intervals of a rank, swept once. */
#include "interop/trace/trace_losses.h"

#include "core/base/text.h"
#include "core/numbers/stats.h"
#include "interop/trace/trace_ranks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[FR_LOSS_N] = {
    [FR_LOSS_COMPUTE] = "compute",
    [FR_LOSS_OPTIMIZER] = "optimizer",
    [FR_LOSS_COLLECTIVES] = "exposed_collectives",
    [FR_LOSS_PIPELINE] = "pipeline",
    [FR_LOSS_DATA] = "data",
    [FR_LOSS_IDLE] = "idle",
};
const fr_names fr_loss_names = FR_NAMES(names);

static const char *const step_marks[FR_STEPS_N] = {
    [FR_STEPS_UNKNOWN] = "none",
    [FR_STEPS_MARKED] = "profiler",
    [FR_STEPS_OPTIMIZER] = "optimizer",
};
const fr_names fr_step_marks_names = FR_NAMES(step_marks);

const char *fr_loss_title(fr_loss loss)
{
    static const char *const titles[FR_LOSS_N] = {
        [FR_LOSS_COMPUTE] = "compute",
        [FR_LOSS_OPTIMIZER] = "optimizer",
        [FR_LOSS_COLLECTIVES] = "exposed collectives",
        [FR_LOSS_PIPELINE] = "send, receive, bubble",
        [FR_LOSS_DATA] = "data, copies",
        [FR_LOSS_IDLE] = "idle: host gaps",
    };
    return titles[loss];
}

/* ---- a rank ------------------------------------------------------------- */

typedef struct edge {
    double at_us;
    int32_t class, step; /* +1: begins, -1: ends */
} edge;

static int compare_edges(const void *a, const void *b)
{
    const edge *x = a, *y = b;
    return (x->at_us > y->at_us) - (x->at_us < y->at_us);
}

/* To the first that is under way.  Open spans of class IDLE are operators of a
 * CPU: compute, where nothing else is known. */
static void add_time(const int64_t n_open[FR_LOSS_N], double time_us,
                     double time_s[FR_LOSS_N])
{
    int class = 0;
    while (class < FR_LOSS_IDLE && n_open[class] == 0)
        class ++;
    if (class == FR_LOSS_IDLE && n_open[FR_LOSS_IDLE] > 0)
        class = FR_LOSS_COMPUTE;
    time_s[class] += time_us * 1e-6;
}

fr_status fr_loss_sweep(const fr_rank_spans *spans, fr_loss_rank *out,
                        fr_err *err)
{
    double begin_us = spans->begin_us, end_us = spans->end_us;
    int64_t n_open[FR_LOSS_N] = {0};
    edge *edges = calloc(2 * spans->n + 1, sizeof *edges);
    fr_loss_rank rank = {.rank = spans->rank};
    if (edges == NULL)
        return fr_fail_no_memory(err);
    for (size_t i = 0; i < spans->n; i++) {
        const fr_rank_span *span = &spans->at[i];
        edges[2 * i] = (edge){fmax(span->begin_us, begin_us), span->class, 1};
        edges[2 * i + 1] = (edge){fmin(span->end_us, end_us), span->class, -1};
        if (edges[2 * i].at_us >= edges[2 * i + 1].at_us)
            edges[2 * i].at_us = edges[2 * i + 1].at_us = begin_us;
    }
    qsort(edges, 2 * spans->n, sizeof *edges, compare_edges);
    double at_us = begin_us;
    for (size_t i = 0; i < 2 * spans->n; i++) {
        double next_us = fmin(fmax(edges[i].at_us, begin_us), end_us);
        if (next_us > at_us)
            add_time(n_open, next_us - at_us, rank.time_s);
        at_us = fmax(at_us, next_us);
        n_open[edges[i].class] += edges[i].step;
    }
    add_time(n_open, end_us - at_us, rank.time_s);
    free(edges);
    double n_steps = (double)(spans->n_steps > 0 ? spans->n_steps : 1);
    rank.step_s = (end_us - begin_us) * 1e-6 / n_steps;
    for (int i = 0; i < FR_LOSS_N; i++)
        rank.time_s[i] /= n_steps;
    *out = rank;
    return FR_OK;
}

/* ---- all ---------------------------------------------------------------- */

static int compare_ranks(const void *a, const void *b)
{
    const fr_loss_rank *x = a, *y = b;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

void fr_losses_finish(fr_losses *losses)
{
    qsort(losses->ranks, losses->n, sizeof *losses->ranks, compare_ranks);
    for (size_t i = 0; i < losses->n; i++) {
        losses->step_s += losses->ranks[i].step_s / (double)losses->n;
        for (int k = 0; k < FR_LOSS_N; k++)
            losses->time_s[k] += losses->ranks[i].time_s[k] / (double)losses->n;
    }
}

/* Compute that is predicted for a rank; 1 where it is not. */
static double compute_of(const fr_losses *predicted, int64_t rank)
{
    double compute_s = 0;
    for (size_t i = 0; i < predicted->n && predicted->n > 1; i++)
        if (i == 0 || predicted->ranks[i].rank <= rank)
            compute_s = predicted->ranks[i].time_s[FR_LOSS_COMPUTE];
    return compute_s > 0 ? compute_s : 1;
}

fr_status fr_losses_slowest(const fr_losses *predicted,
                            const fr_losses *measured, fr_slow_rank *out,
                            fr_err *err)
{
    double *ratio, most = -1;
    fr_slow_rank slowest = {0, 1};
    FR_TRY_CALLOC(ratio, measured->n, err);
    for (size_t i = 0; i < measured->n; i++) {
        const fr_loss_rank *rank = &measured->ranks[i];
        ratio[i] =
            rank->time_s[FR_LOSS_COMPUTE] / compute_of(predicted, rank->rank);
        if (ratio[i] > most) {
            most = ratio[i];
            slowest.rank = rank->rank;
        }
    }
    double median = fr_stats_median(ratio, measured->n);
    /* The slower of two ranks is compared with the faster one. */
    if (measured->n == 2)
        median = fmin(ratio[0], ratio[1]);
    slowest.ratio = median > 0 ? most / median : 1;
    free(ratio);
    *out = slowest;
    return FR_OK;
}

fr_status fr_losses_of_parts(double step_s, const double parts_s[FR_PART_N],
                             fr_losses *out, fr_err *err)
{
    static const fr_loss loss_of[FR_PART_N] = {
        [FR_PART_COMPUTE] = FR_LOSS_COMPUTE,
        [FR_PART_EXPOSED_TP] = FR_LOSS_COLLECTIVES,
        [FR_PART_EXPOSED_CP] = FR_LOSS_COLLECTIVES,
        [FR_PART_EXPOSED_EP] = FR_LOSS_COLLECTIVES,
        [FR_PART_EXPOSED_DP] = FR_LOSS_COLLECTIVES,
        [FR_PART_STRAGGLERS] = FR_LOSS_COLLECTIVES,
        [FR_PART_EXPOSED_PP] = FR_LOSS_PIPELINE,
        [FR_PART_BUBBLE] = FR_LOSS_PIPELINE,
        [FR_PART_OPTIMIZER] = FR_LOSS_OPTIMIZER,
        [FR_PART_DATA] = FR_LOSS_DATA,
        [FR_PART_EXPOSED_OFFLOAD] = FR_LOSS_DATA, /* "data, copies" */
        [FR_PART_HOST] = FR_LOSS_IDLE,
        [FR_PART_OTHER] = FR_LOSS_IDLE,
    };
    fr_losses losses = {.n = 1, .n_steps = 1};
    FR_TRY_CALLOC(losses.ranks, 1, err);
    losses.ranks[0].step_s = step_s;
    for (int i = 0; i < FR_PART_N; i++)
        losses.ranks[0].time_s[loss_of[i]] += parts_s[i];
    fr_losses_finish(&losses);
    *out = losses;
    return FR_OK;
}

void fr_losses_release(fr_losses *losses)
{
    free(losses->ranks);
    memset(losses, 0, sizeof *losses);
}
