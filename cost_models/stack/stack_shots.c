/* stack_shots.c: see stack_shots.h. */
#include "cost_models/stack/stack_shots.h"

#include "core/base/hash.h"
#include "core/numbers/rng.h"
#include "core/numbers/stats.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double nominal = 0.9;

/* Sums over pairs of a draw and a row that it predicts. */
typedef struct sums {
    double ape, err, covered;
    double *half; /* of each pair */
    size_t n;
} sums;

/* The runs of one source. */
typedef struct source_runs {
    const fr_stack_prior *prior;
    fr_run_point *runs, *learned;
    const fr_log *log;
    size_t n, *order;
    uint64_t hash;
} source_runs;

/* The first k of order[n] become k of them drawn anew (Fisher and Yates). */
static void draw(source_runs *s, size_t k, uint64_t seed, uint64_t i_draw)
{
    for (size_t i = 0; i < s->n; i++)
        s->order[i] = i;
    for (size_t i = 0; i < k; i++) {
        double u = fr_hash_uniform(seed ^ s->hash, k, i_draw, i);
        size_t j = i + (size_t)(u * (double)(s->n - i));
        size_t swap = s->order[i];
        s->order[i] = s->order[j];
        s->order[j] = swap;
        s->learned[i] = s->runs[s->order[i]];
    }
}

static void add_pair(const fr_stack *stack, const fr_run_point *run, sums *sum)
{
    fr_student told = fr_stack_at(stack, &run->features);
    double predicted_s = run->predicted_s * exp(told.mean);
    double half = fr_student_half_width(&told, nominal);
    double err = predicted_s / run->measured_s - 1;
    sum->ape += fabs(err);
    sum->err += err;
    sum->covered += fabs(log(run->measured_s / predicted_s)) <= half;
    sum->half[sum->n++] = sinh(half);
}

static fr_status try_draw(source_runs *s, size_t k, sums *sum, fr_err *err)
{
    fr_stack *stack;
    FR_TRY(fr_log_check(s->log, err));
    FR_TRY(fr_stack_create(s->prior, s->learned, k, &stack, err));
    for (size_t i = k; i < s->n; i++)
        add_pair(stack, &s->runs[s->order[i]], sum);
    fr_stack_destroy(stack);
    return FR_OK;
}

static fr_shots_score score_of(sums *sum)
{
    double n = sum->n > 0 ? (double)sum->n : NAN;
    return (fr_shots_score){.mape = sum->ape / n,
                            .bias = sum->err / n,
                            .coverage_90 = sum->covered / n,
                            .half_width_median =
                                fr_stats_median(sum->half, sum->n)};
}

/* Nothing to draw where nothing is learned from. */
static fr_status try_source(source_runs *s, const fr_shots *asked,
                            fr_shots_source *out, fr_err *err)
{
    double *half;
    fr_status status = FR_OK;
    FR_TRY_CALLOC(half, s->n * (size_t)asked->n_draws + 1, err);
    for (int i = 0; i < asked->n && status == FR_OK; i++) {
        sums sum = {.half = half};
        size_t k = (size_t)asked->k[i];
        int64_t n_draws = k > 0 ? asked->n_draws : 1;
        for (int64_t d = 0; k < s->n && d < n_draws && status == FR_OK; d++) {
            draw(s, k, (uint64_t)asked->seed, (uint64_t)d);
            status = try_draw(s, k, &sum, err);
        }
        out->score[i] = score_of(&sum);
    }
    free(half);
    return status;
}

static fr_shots_macro mean_over_sources(const fr_shots *shots, int i)
{
    fr_shots_macro m = {0};
    for (size_t j = 0; j < shots->n_sources; j++) {
        const fr_shots_score *score = &shots->sources[j].score[i];
        if (isnan(score->mape))
            continue;
        m.macro_mape += score->mape;
        m.macro_bias += score->bias;
        m.macro_coverage_90 += score->coverage_90;
        m.macro_half_width += score->half_width_median;
        m.n_sources++;
    }
    double n = m.n_sources > 0 ? (double)m.n_sources : NAN;
    m.macro_mape /= n;
    m.macro_bias /= n;
    m.macro_coverage_90 /= n;
    m.macro_half_width /= n;
    return m;
}

/* Every row counts alike: a source by the rows that it has. */
static fr_status mean_over_rows(const fr_shots *shots, int i,
                                fr_shots_score *out, fr_err *err)
{
    double *half, rows = 0;
    size_t n = 0;
    fr_shots_score all = {0};
    FR_TRY_CALLOC(half, shots->n_sources + 1, err);
    for (size_t j = 0; j < shots->n_sources; j++) {
        const fr_shots_score *score = &shots->sources[j].score[i];
        double weight = (double)shots->sources[j].n_rows;
        if (isnan(score->mape))
            continue;
        all.mape += weight * score->mape;
        all.bias += weight * score->bias;
        all.coverage_90 += weight * score->coverage_90;
        half[n++] = score->half_width_median;
        rows += weight;
    }
    rows = rows > 0 ? rows : NAN;
    all.mape /= rows;
    all.bias /= rows;
    all.coverage_90 /= rows;
    all.half_width_median = fr_stats_median(half, n);
    free(half);
    *out = all;
    return FR_OK;
}

static size_t find_source(const fr_shots *shots, const char *name)
{
    size_t i = 0;
    while (i < shots->n_sources && strcmp(shots->sources[i].name, name) != 0)
        i++;
    return i;
}

static void list_sources(const fr_sourced_run *runs, size_t n, fr_shots *shots)
{
    for (size_t i = 0; i < n; i++) {
        size_t at = find_source(shots, runs[i].source);
        fr_shots_source *source = &shots->sources[at];
        if (at == shots->n_sources) {
            snprintf(source->name, sizeof source->name, "%s", runs[i].source);
            shots->n_sources++;
        }
        source->n_rows++;
    }
}

static fr_status try_sources(const fr_sourced_run *runs, size_t n,
                             source_runs *s, fr_shots *shots, fr_err *err)
{
    for (size_t j = 0; j < shots->n_sources; j++) {
        fr_shots_source *source = &shots->sources[j];
        s->n = 0;
        for (size_t i = 0; i < n; i++)
            if (strcmp(runs[i].source, source->name) == 0)
                s->runs[s->n++] = runs[i].run;
        s->prior = fr_stack_prior_without(source->name);
        s->hash = fr_hash_text(source->name, 0);
        FR_TRY(try_source(s, shots, source, err));
    }
    for (int i = 0; i < shots->n; i++) {
        FR_TRY(mean_over_rows(shots, i, &shots->all[i], err));
        shots->macro[i] = mean_over_sources(shots, i);
    }
    return FR_OK;
}

fr_status fr_stack_try_shots(const fr_sourced_run *runs, size_t n,
                             const fr_log *log, fr_shots *shots, fr_err *err)
{
    source_runs s = {
        .log = log,
        .runs = calloc(n + 1, sizeof *s.runs),
        .learned = calloc(n + 1, sizeof *s.learned),
        .order = calloc(n + 1, sizeof *s.order),
    };
    fr_status status = FR_OK;
    shots->n_sources = 0;
    shots->sources = calloc(n + 1, sizeof *shots->sources);
    if (s.runs == NULL || s.learned == NULL || s.order == NULL ||
        shots->sources == NULL)
        status = fr_fail_no_memory(err);
    if (status == FR_OK) {
        list_sources(runs, n, shots);
        status = try_sources(runs, n, &s, shots, err);
    }
    free(s.runs);
    free(s.learned);
    free(s.order);
    if (status != FR_OK) {
        free(shots->sources);
        shots->sources = NULL;
        shots->n_sources = 0;
    }
    return status;
}
