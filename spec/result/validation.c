/* validation.c: statistics of predictions against measurements. */
#include "spec/result/validation.h"

#include "core/numbers/stats.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Pairs nearer than this are within the noise of measuring. */
static const double pair_min_rel_diff = 0.05;
static const double nominal_coverage = 0.9;

double fr_validation_step_err(const fr_validation_row *row)
{
    return row->predicted_s / row->measured_s - 1;
}

double fr_validation_memory_err(const fr_validation_row *row)
{
    return row->predicted_bytes / row->measured_bytes - 1;
}

/* Columns of the rows that count, gathered anew for every set of them. */
typedef struct columns {
    double *predicted, *measured, *ape, *half; /* half: relative half-width */
    size_t n, n_covered;
} columns;

typedef bool (*select_fn)(const fr_validation_row *row, const char *source);

static bool is_step(const fr_validation_row *row, const char *source)
{
    return row->is_step_scored &&
           (source == NULL || strcmp(source, row->source) == 0);
}

static bool is_memory(const fr_validation_row *row, const char *source)
{
    return row->is_memory_scored &&
           (source == NULL || strcmp(source, row->source) == 0);
}

static bool is_experts(const fr_validation_row *row, const char *source)
{
    return is_step(row, source) && row->features.kind[FR_RUN_KIND_MODEL] > 0;
}

static bool is_large(const fr_validation_row *row, const char *source)
{
    return is_step(row, source) && row->n_gpus >= 512;
}

static void gather(const fr_validation *v, select_fn select, const char *source,
                   columns *c)
{
    c->n = c->n_covered = 0;
    for (size_t i = 0; i < v->n_rows; i++) {
        const fr_validation_row *row = &v->rows[i];
        if (!select(row, source))
            continue;
        bool is_time = select != is_memory;
        double predicted = is_time ? row->predicted_s : row->predicted_bytes;
        double measured = is_time ? row->measured_s : row->measured_bytes;
        c->predicted[c->n] = predicted;
        c->measured[c->n] = measured;
        c->ape[c->n] = fabs(predicted / measured - 1);
        c->half[c->n] = (row->p95_s - row->p5_s) / 2 / predicted;
        c->n_covered +=
            is_time && measured >= row->p5_s && measured <= row->p95_s;
        c->n++;
    }
}

static void score(const fr_validation *v, select_fn select, const char *source,
                  columns *c, fr_validation_score *out)
{
    gather(v, select, source, c);
    out->n = c->n;
    out->mape = fr_stats_mape(c->predicted, c->measured, c->n);
    out->bias = fr_stats_bias(c->predicted, c->measured, c->n);
    out->worst_ape = fr_stats_max(c->ape, c->n);
    out->median_ape = fr_stats_median(c->ape, c->n);
    out->kendall_tau =
        c->n > 1 ? fr_stats_kendall_tau(c->predicted, c->measured, c->n) : NAN;
    out->concordance = fr_stats_concordance(c->predicted, c->measured, c->n,
                                            pair_min_rel_diff, &out->n_pairs);
    bool is_time = select != is_memory && c->n > 0;
    out->coverage_90 = is_time ? (double)c->n_covered / (double)c->n : NAN;
    out->half_width_median = is_time ? fr_stats_median(c->half, c->n) : NAN;
}

/* ---- widths of intervals ------------------------------------------------- */

/* Returns the distance of the measurement from the prediction over the distance
 * of the interval's end on that side, both as logarithms of ratios, because
 * errors multiply. */
static double in_half_widths(const fr_validation_row *row)
{
    double off = log(row->measured_s / row->predicted_s);
    double half = off > 0 ? log(row->p95_s / row->predicted_s)
                          : log(row->predicted_s / row->p5_s);
    return half > 0 ? fabs(off) / half : off == 0 ? 0 : INFINITY;
}

/* Relative half-width of the interval that is `scale` times as wide. */
static double scaled_half_width(const fr_validation_row *row, double scale)
{
    return (pow(row->p95_s / row->predicted_s, scale) -
            pow(row->p5_s / row->predicted_s, scale)) /
           2;
}

/* The factor that makes 90 % of the rows not of `without` covered. */
static double scale_without(const fr_validation *v, const char *without,
                            double *scratch)
{
    size_t n = 0;
    for (size_t i = 0; i < v->n_rows; i++)
        if (v->rows[i].is_step_scored &&
            (without == NULL || strcmp(without, v->rows[i].source) != 0))
            scratch[n++] = in_half_widths(&v->rows[i]);
    return fr_stats_quantile(scratch, n, nominal_coverage);
}

static double scale_of(const fr_validation *v, const char *source)
{
    for (size_t i = 0; i < v->n_sources; i++)
        if (strcmp(v->sources[i].name, source) == 0)
            return v->sources[i].interval_scale;
    return NAN;
}

static void score_widths(fr_validation *v, double *scratch)
{
    size_t n = 0, n_covered = 0;
    v->interval_scale = scale_without(v, NULL, scratch);
    for (size_t i = 0; i < v->n_sources; i++)
        v->sources[i].interval_scale =
            scale_without(v, v->sources[i].name, scratch);
    for (size_t i = 0; i < v->n_rows; i++) {
        const fr_validation_row *row = &v->rows[i];
        if (!row->is_step_scored)
            continue;
        double scale = scale_of(v, row->source);
        if (isnan(scale)) /* there is no other source */
            continue;
        n_covered += in_half_widths(row) <= scale;
        scratch[n++] = scaled_half_width(row, scale);
    }
    v->coverage_90_scaled = n > 0 ? (double)n_covered / (double)n : NAN;
    v->half_width_median_scaled = fr_stats_median(scratch, n);
}

/* ---- sources ------------------------------------------------------------- */

static fr_validation_source *source_of(fr_validation *v, const char *name)
{
    for (size_t i = 0; i < v->n_sources; i++)
        if (strcmp(v->sources[i].name, name) == 0)
            return &v->sources[i];
    fr_validation_source *source = &v->sources[v->n_sources++];
    snprintf(source->name, sizeof source->name, "%s", name);
    return source;
}

/* The default of --fit-confidence. */
static const double confident = 0.9;

static void count_rows(fr_validation *v)
{
    for (size_t i = 0; i < v->n_rows; i++) {
        const fr_validation_row *row = &v->rows[i];
        fr_validation_source *source = source_of(v, row->source);
        source->n_rows++;
        source->n_run += row->has_run;
        v->n_skipped += !row->has_run;
        if (!row->has_run || row->fits == FR_FITS_UNKNOWN)
            continue;
        if (row->fits == row->predicted_fits)
            v->fits_right[row->fits]++;
        else
            v->fits_wrong[row->fits]++;
        if (row->predicted_fits == FR_FITS_YES && row->p_fits >= confident) {
            v->n_confident++;
            v->n_confident_ran_out += row->fits == FR_FITS_NO;
        }
    }
}

static double mean_mape(const fr_validation *v, bool is_time)
{
    double sum = 0;
    size_t n = 0;
    for (size_t i = 0; i < v->n_sources; i++) {
        const fr_validation_score *s =
            is_time ? &v->sources[i].step : &v->sources[i].memory;
        if (s->n == 0)
            continue;
        sum += s->mape;
        n++;
    }
    return n > 0 ? sum / (double)n : NAN;
}

static void mean_over_sources(fr_validation *v)
{
    double n = 0, bias = 0, coverage = 0, half = 0;
    for (size_t i = 0; i < v->n_sources; i++) {
        const fr_validation_score *s = &v->sources[i].step;
        if (s->n == 0)
            continue;
        bias += s->bias;
        coverage += s->coverage_90;
        half += s->half_width_median;
        n++;
    }
    n = n > 0 ? n : NAN;
    v->macro_bias = bias / n;
    v->macro_coverage_90 = coverage / n;
    v->macro_half_width = half / n;
}

/* Pairs are made within a source; a source counts by its pairs. */
static void pool_ranks(const fr_validation *v, bool is_time,
                       fr_validation_score *out)
{
    double right = 0, tau = 0;
    size_t n_pairs = 0, n_tau = 0;
    for (size_t i = 0; i < v->n_sources; i++) {
        const fr_validation_score *s =
            is_time ? &v->sources[i].step : &v->sources[i].memory;
        if (s->n_pairs > 0) {
            right += s->concordance * (double)s->n_pairs;
            n_pairs += s->n_pairs;
        }
        if (s->n > 1 && !isnan(s->kendall_tau)) {
            tau += s->kendall_tau;
            n_tau++;
        }
    }
    out->n_pairs = n_pairs;
    out->concordance = n_pairs > 0 ? right / (double)n_pairs : NAN;
    out->kendall_tau = n_tau > 0 ? tau / (double)n_tau : NAN;
}

/* Feasible and infeasible count alike, however many there are of each. */
static double balance_fits(const fr_validation *v)
{
    double sum = 0;
    int n = 0;
    for (int i = 0; i < 2; i++) {
        size_t all = v->fits_right[i] + v->fits_wrong[i];
        if (all == 0)
            continue;
        sum += (double)v->fits_right[i] / (double)all;
        n++;
    }
    return n > 0 ? sum / n : NAN;
}

static void fill(fr_validation *v, columns *c)
{
    count_rows(v);
    for (size_t i = 0; i < v->n_sources; i++) {
        fr_validation_source *s = &v->sources[i];
        score(v, is_step, s->name, c, &s->step);
        score(v, is_memory, s->name, c, &s->memory);
    }
    score(v, is_step, NULL, c, &v->step);
    score(v, is_memory, NULL, c, &v->memory);
    pool_ranks(v, true, &v->step);
    pool_ranks(v, false, &v->memory);
    score(v, is_experts, NULL, c, &v->experts);
    score(v, is_large, NULL, c, &v->large);
    mean_over_sources(v);
    v->macro_mape = mean_mape(v, true);
    v->memory_macro_mape = mean_mape(v, false);
    v->fits_balanced = balance_fits(v);
    score_widths(v, c->half);
}

fr_status fr_validation_make(fr_validation_row *rows, size_t n_rows,
                             fr_validation *out, fr_err *err)
{
    fr_validation v = {.rows = rows, .n_rows = n_rows};
    size_t n = n_rows > 0 ? n_rows : 1;
    double *scratch = malloc(4 * n * sizeof *scratch);
    v.sources = calloc(n, sizeof *v.sources);
    if (scratch == NULL || v.sources == NULL) {
        free(scratch);
        fr_validation_release(&v);
        return fr_fail_no_memory(err);
    }
    columns c = {scratch, scratch + n, scratch + 2 * n, scratch + 3 * n, 0, 0};
    fill(&v, &c);
    free(scratch);
    fr_status status = fr_validation_baselines(&v, err);
    if (status != FR_OK) {
        fr_validation_release(&v);
        return status;
    }
    *out = v;
    return FR_OK;
}

void fr_validation_release(fr_validation *validation)
{
    free(validation->rows);
    free(validation->sources);
    memset(validation, 0, sizeof *validation);
}
