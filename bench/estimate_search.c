/* estimate_search.c: the walk over all combinations. */
#include "bench/estimate_search.h"

#include "core/system/clock.h"

#include <math.h>
#include <stdio.h>

/* Choices of the search, and how many values each has. */
enum {
    BY_TP,
    BY_PP,
    BY_CP,
    BY_MICRO_BATCH,
    BY_SCHEDULE,
    BY_RECOMPUTE,
    BY_SEQUENCE,
    BY_ORDER,
    BY_ZERO,
    BY_OVERLAP,
    BY_GATHER,
    BY_BUCKET,
    N_CHOICES
};
static const int n_values[N_CHOICES] = {4, 5, 2, 3, 5, 3, 2, 2, 4, 2, 2, 4};

/* Plan `i` of the search; false: its ranks are not as many as there are. */
static bool choose(int64_t i, int64_t world, fr_plan *plan)
{
    static const uint64_t buckets[] = {0, 25 << 20, 100 << 20, 400 << 20};
    int at[N_CHOICES];
    for (int k = N_CHOICES; k-- > 0; i /= n_values[k])
        at[k] = (int)(i % n_values[k]);
    plan->tp = 1 << at[BY_TP];
    plan->pp = 1 << at[BY_PP];
    plan->cp = 1 << at[BY_CP];
    plan->micro_batch = 1 << at[BY_MICRO_BATCH];
    plan->schedule = at[BY_SCHEDULE] == 0   ? FR_SCHEDULE_GPIPE
                     : at[BY_SCHEDULE] == 1 ? FR_SCHEDULE_1F1B
                     : at[BY_SCHEDULE] == 2 ? FR_SCHEDULE_ZB_H1
                                            : FR_SCHEDULE_INTERLEAVED;
    plan->vpp = at[BY_SCHEDULE] > 2 ? 1 << (at[BY_SCHEDULE] - 2) : 1;
    plan->recompute = (fr_recompute)at[BY_RECOMPUTE];
    plan->is_sequence_parallel = at[BY_SEQUENCE];
    plan->rank_order = (fr_rank_order)at[BY_ORDER];
    plan->zero_stage = at[BY_ZERO];
    plan->is_overlap = at[BY_OVERLAP];
    plan->is_gather_overlap = at[BY_GATHER];
    plan->bucket_bytes = buckets[at[BY_BUCKET]];
    int64_t n = (int64_t)plan->tp * plan->pp * plan->cp;
    plan->dp = (int32_t)(world / n);
    /* A search does not list what cannot be. */
    if ((plan->pp == 1 && plan->schedule != FR_SCHEDULE_1F1B) ||
        (plan->tp == 1 && plan->is_sequence_parallel) || n > world)
        return false;
    return world % n == 0;
}

fr_status fr_estimate_search(const fr_estimate_job *of, int64_t world,
                             double *out_us, fr_err *err)
{
    int64_t n_all = 1, n_done = 0, n_refused = 0;
    double least_s = INFINITY;
    fr_estimator *estimator = NULL;
    fr_plan plan;
    for (int k = 0; k < N_CHOICES; k++)
        n_all *= n_values[k];
    fr_plan_init(&plan);
    plan.precision = FR_DTYPE_BF16;
    plan.is_flash = true;
    double begin_s = fr_clock_s();
    FR_TRY(fr_estimator_create(of->model, of->job, of->cluster, of->costs,
                               &estimator, err));
    for (int64_t i = 0; i < n_all; i++) {
        fr_estimate estimate;
        if (!choose(i, world, &plan))
            continue;
        if (fr_estimate_plan(estimator, &plan, &estimate, err) != FR_OK) {
            n_refused++;
            continue;
        }
        n_done++;
        least_s = fmin(least_s, estimate.estimate_s);
    }
    double wall_s = fr_clock_s() - begin_s;
    *out_us = 1e6 * wall_s / (double)(n_done > 0 ? n_done : 1);
    printf("  %lld plans in %.3f s, %lld refused, %zu sets of layers priced, "
           "best %.3f s: %.3f us each\n",
           (long long)n_done, wall_s, (long long)n_refused,
           fr_estimator_n_priced(estimator), least_s, *out_us);
    fr_estimator_destroy(estimator);
    return FR_OK;
}
