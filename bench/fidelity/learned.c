/* learned.c: see learned.h. */
#include "bench/fidelity/learned.h"

#include "core/numbers/rng.h"
#include "core/numbers/stats.h"
#include "cost_models/stack/stack.h"
#include "cost_models/stack/stack_features.h"
#include "plan/decide/plan_json.h"

#include <math.h>
#include <stdlib.h>

/* One step beside its prediction, from the plan file that was run. */
static fr_status run_of(const fr_contender *contender, fr_run_point *out,
                        fr_err *err)
{
    fr_plan_file file;
    fr_cluster cluster;
    FR_TRY(fr_plan_file_load(contender->plan_path, &file, err));
    fr_status status = fr_cluster_load(NULL, file.cluster, &cluster, err);
    if (status == FR_OK) {
        fr_stack_run_of(&file.model, &file.job, &file.plan,
                        fr_cluster_device(&cluster, 0), &file.prediction,
                        contender->measured_s, out);
        fr_cluster_release(&cluster);
    }
    fr_plan_file_release(&file);
    return status;
}

/* The first FR_LEARNED_KNOWN of `runs` become a random choice of them. */
static void shuffle(fr_rng *rng, fr_run_point *runs, size_t n)
{
    for (size_t i = 0; i < FR_LEARNED_KNOWN; i++) {
        size_t j = i + (size_t)fr_rng_below(rng, n - i);
        fr_run_point swap = runs[i];
        runs[i] = runs[j];
        runs[j] = swap;
    }
}

/* Scores the predictions of the runs behind the known ones: writes one value
 * each into ape[] and half_width[]; *n_covered grows by the number of runs
 * within their interval. */
static fr_status score_others(const fr_run_point *runs, size_t n, double *ape,
                              double *half_width, size_t *n_covered,
                              fr_err *err)
{
    fr_stack *stack;
    FR_TRY(fr_stack_create(fr_stack_prior_without(""), runs, FR_LEARNED_KNOWN,
                           &stack, err));
    for (size_t i = FR_LEARNED_KNOWN; i < n; i++) {
        fr_student said = fr_stack_at(stack, &runs[i].features);
        double off = log(runs[i].measured_s / runs[i].predicted_s) - said.mean;
        double half = fr_student_half_width(&said, 0.9);
        ape[i - FR_LEARNED_KNOWN] = fabs(expm1(-off));
        half_width[i - FR_LEARNED_KNOWN] = expm1(half);
        *n_covered += fabs(off) <= half;
    }
    fr_stack_destroy(stack);
    return FR_OK;
}

static fr_status score(fr_run_point *runs, size_t n, fr_rng *rng,
                       double *numbers, fr_learned_scores *out, fr_err *err)
{
    const size_t n_others = n - FR_LEARNED_KNOWN;
    const size_t n_all = n_others * FR_LEARNED_DRAWS;
    double *ape = numbers, *half_width = ape + n_all;
    double *worst = half_width + n_all;
    size_t n_covered = 0;
    for (size_t draw = 0; draw < FR_LEARNED_DRAWS; draw++) {
        double *mine = ape + draw * n_others;
        shuffle(rng, runs, n);
        FR_TRY(score_others(runs, n, mine, half_width + draw * n_others,
                            &n_covered, err));
        worst[draw] = fr_stats_max(mine, n_others);
    }
    double sum = 0;
    for (size_t i = 0; i < n_all; i++)
        sum += ape[i];
    *out = (fr_learned_scores){
        .mape = sum / (double)n_all,
        .worst = fr_stats_median(worst, FR_LEARNED_DRAWS),
        .coverage_90 = (double)n_covered / (double)n_all,
        .half_width_median = fr_stats_median(half_width, n_all),
    };
    return FR_OK;
}

fr_status fr_learned_score(const fr_contender *contenders, size_t n,
                           fr_learned_scores *out, fr_err *err)
{
    fr_run_point *runs = calloc(n, sizeof *runs);
    double *numbers = calloc((2 * n + 1) * FR_LEARNED_DRAWS, sizeof *numbers);
    fr_rng *rng = NULL;
    size_t n_runs = 0;
    fr_status status =
        runs == NULL || numbers == NULL ? fr_fail_no_memory(err) : FR_OK;
    for (size_t i = 0; i < n && status == FR_OK; i++)
        if (!contenders[i].is_oversubscribed)
            status = run_of(&contenders[i], &runs[n_runs++], err);
    if (status == FR_OK)
        status = fr_rng_create(1, &rng, err);
    if (status == FR_OK)
        status = score(runs, n_runs, rng, numbers, out, err);
    fr_rng_destroy(rng);
    free(numbers);
    free(runs);
    return status;
}
