/* stats.c: see stats.h. */
#include "core/numbers/stats.h"

#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdlib.h>

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    if (isnan(x) || isnan(y))
        return isnan(x) - isnan(y);
    return (x > y) - (x < y);
}

void fr_stats_sort(double *x, size_t n)
{
    if (n > 1)
        qsort(x, n, sizeof *x, compare_doubles);
}

double fr_stats_min(const double *x, size_t n)
{
    double least = n ? x[0] : NAN;

    for (size_t i = 1; i < n; i++)
        least = fmin(least, x[i]);
    return least;
}

double fr_stats_max(const double *x, size_t n)
{
    double most = n ? x[0] : NAN;

    for (size_t i = 1; i < n; i++)
        most = fmax(most, x[i]);
    return most;
}

double fr_stats_quantile_sorted(const double *x, size_t n, double p)
{
    double at, below;
    size_t i;

    if (n == 0 || isnan(p))
        return NAN;
    at = fmin(fmax(p, 0), 1) * (double)(n - 1);
    below = floor(at);
    i = (size_t)below;
    if (i + 1 >= n)
        return x[n - 1];
    return x[i] + (at - below) * (x[i + 1] - x[i]);
}

double fr_stats_quantile(double *x, size_t n, double p)
{
    fr_stats_sort(x, n);
    return fr_stats_quantile_sorted(x, n, p);
}

double fr_stats_median(double *x, size_t n)
{
    return fr_stats_quantile(x, n, 0.5);
}

/*
 * The distances from the median fall towards it from both ends of the sorted
 * sample: taking the larger end off again and again passes them in descending
 * order, without a second array.
 */
static double median_distance(const double *x, size_t n, double median)
{
    size_t low = 0, high = n, n_left = n;
    double last = 0, before = 0;

    /* n / 2 + 1 of them: the last one and, for an even n, the one before. */
    while (n_left > (n - 1) / 2) {
        double from_low = median - x[low], from_high = x[high - 1] - median;
        before = last;
        if (from_low > from_high) {
            last = from_low;
            low++;
        } else {
            last = from_high;
            high--;
        }
        n_left--;
    }
    return n % 2 ? last : (last + before) / 2;
}

double fr_stats_mad(double *x, size_t n)
{
    double median = fr_stats_median(x, n);

    /* 1.4826 = 1 / the 75 % quantile of the normal distribution. */
    return n ? 1.4826 * median_distance(x, n, median) : NAN;
}

fr_interval fr_stats_median_interval(double *x, size_t n, double confidence)
{
    fr_interval out = {NAN, NAN, 0};
    size_t k = 1;

    if (n == 0)
        return out;
    fr_stats_sort(x, n);
    /* [x_(k), x_(n+1-k)] covers with 1 - 2 P(B(n, 1/2) <= k - 1). */
    while (k < (n + 1) / 2 &&
           1 - 2 * gsl_cdf_binomial_P((unsigned)k, 0.5, (unsigned)n) >=
               confidence)
        k++;
    out.low = x[k - 1];
    out.high = x[n - k];
    out.coverage =
        1 - 2 * gsl_cdf_binomial_P((unsigned)k - 1, 0.5, (unsigned)n);
    if (out.coverage < 0)
        out.coverage = 0;
    return out;
}

static bool is_scored(double predicted, double measured)
{
    return measured > 0 && !isnan(predicted);
}

/* Mean of the relative errors, or of their sizes; NAN: nothing is scored. */
static double mean_error(const double *predicted, const double *measured,
                         size_t n, bool is_size)
{
    double sum = 0;
    size_t n_scored = 0;

    for (size_t i = 0; i < n; i++) {
        double error = (predicted[i] - measured[i]) / measured[i];
        if (!is_scored(predicted[i], measured[i]))
            continue;
        sum += is_size ? fabs(error) : error;
        n_scored++;
    }
    return n_scored ? sum / (double)n_scored : NAN;
}

double fr_stats_mape(const double *predicted, const double *measured, size_t n)
{
    return mean_error(predicted, measured, n, true);
}

double fr_stats_bias(const double *predicted, const double *measured, size_t n)
{
    return mean_error(predicted, measured, n, false);
}

static int sign(double x)
{
    return (x > 0) - (x < 0);
}

double fr_stats_kendall_tau(const double *x, const double *y, size_t n)
{
    double balance = 0, n_x = 0, n_y = 0;

    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < i; j++) {
            int in_x = sign(x[i] - x[j]), in_y = sign(y[i] - y[j]);
            balance += in_x * in_y;
            n_x += in_x != 0;
            n_y += in_y != 0;
        }
    }
    return n_x > 0 && n_y > 0 ? balance / sqrt(n_x * n_y) : NAN;
}

double fr_stats_concordance(const double *predicted, const double *measured,
                            size_t n, double min_rel_diff, size_t *n_pairs)
{
    double right = 0;
    size_t n_counted = 0;

    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < i; j++) {
            double diff = measured[i] - measured[j];
            int order = sign(diff) * sign(predicted[i] - predicted[j]);
            if (!is_scored(predicted[i], measured[i]) ||
                !is_scored(predicted[j], measured[j]))
                continue;
            if (!(fabs(diff) > min_rel_diff * fmin(measured[i], measured[j])))
                continue;
            n_counted++;
            right += order > 0 ? 1 : order == 0 ? 0.5 : 0;
        }
    }
    if (n_pairs != NULL)
        *n_pairs = n_counted;
    return n_counted ? right / (double)n_counted : NAN;
}
