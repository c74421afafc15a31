/*
 * validation_baselines.c: what who has no simulator would say, by the share of
 * the peak that is reached (MFU).
 */
#include "core/numbers/stats.h"
#include "spec/result/validation.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A common rule of thumb for large models. */
static const double flat_mfu = 0.4;

static bool counts(const fr_validation_row *row)
{
    return row->is_step_scored && row->prediction.mfu > 0;
}

/* Returns the time of the step if every device only did the model's flop at its
 * peak. */
static double peak_s(const fr_validation_row *row)
{
    return row->prediction.mfu * row->predicted_s;
}

static bool is_of(const fr_validation *v, const fr_validation_row *row,
                  size_t i_source)
{
    return counts(row) && strcmp(row->source, v->sources[i_source].name) == 0;
}

/* The median MFU of each source; NaN: it has no row. */
static void find_mfu(const fr_validation *v, double *scratch, double *mfu)
{
    for (size_t j = 0; j < v->n_sources; j++) {
        size_t n = 0;
        for (size_t i = 0; i < v->n_rows; i++)
            if (is_of(v, &v->rows[i], j))
                scratch[n++] = peak_s(&v->rows[i]) / v->rows[i].measured_s;
        mfu[j] = fr_stats_median(scratch, n);
    }
}

/* The mean over all sources but one. */
static double mfu_without(const double *mfu, size_t n, size_t without)
{
    double sum = 0, n_others = 0;
    for (size_t j = 0; j < n; j++) {
        if (j == without || isnan(mfu[j]))
            continue;
        sum += mfu[j];
        n_others++;
    }
    return n_others > 0 ? sum / n_others : NAN;
}

/* mfu NULL: flat. */
static fr_validation_baseline score(const fr_validation *v, const double *mfu)
{
    fr_validation_baseline out = {0};
    double n_sources = 0, n_rows = 0;
    for (size_t j = 0; j < v->n_sources; j++) {
        double used =
            mfu != NULL ? mfu_without(mfu, v->n_sources, j) : flat_mfu;
        double sum = 0, n = 0;
        for (size_t i = 0; i < v->n_rows; i++) {
            const fr_validation_row *row = &v->rows[i];
            if (!is_of(v, row, j))
                continue;
            sum += fabs(peak_s(row) / used / row->measured_s - 1);
            n++;
        }
        if (n == 0 || isnan(sum))
            continue;
        out.macro_mape += sum / n;
        out.mape += sum;
        n_rows += n;
        n_sources++;
    }
    out.macro_mape /= n_sources > 0 ? n_sources : NAN;
    out.mape /= n_rows > 0 ? n_rows : NAN;
    return out;
}

fr_status fr_validation_baselines(fr_validation *v, fr_err *err)
{
    double *scratch;
    FR_TRY_CALLOC(scratch, v->n_rows + v->n_sources + 1, err);
    double *mfu = scratch + v->n_rows;
    find_mfu(v, scratch, mfu);
    v->flat_mfu = score(v, NULL);
    v->others_mfu = score(v, mfu);
    free(scratch);
    return FR_OK;
}
