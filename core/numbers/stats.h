/*
 * stats.h: statistics of small samples (timings, errors of predictions).
 * Nothing here allocates.  Functions marked "sorts" reorder their input.
 * An empty sample gives NaN.
 */
#ifndef FR_CORE_NUMBERS_STATS_H
#define FR_CORE_NUMBERS_STATS_H

#include "core/base/err.h"

void fr_stats_sort(double *x, size_t n); /* ascending, NaN last */
double fr_stats_min(const double *x, size_t n);
double fr_stats_max(const double *x, size_t n);
double fr_stats_median(double *x, size_t n); /* sorts */
/* p in 0..1, linear between order statistics (type 7); sorts. */
double fr_stats_quantile(double *x, size_t n, double p);
double fr_stats_quantile_sorted(const double *x, size_t n, double p);
/* Median absolute deviation from the median, times 1.4826; sorts. */
double fr_stats_mad(double *x, size_t n);

typedef struct fr_interval {
    double low, high;
    double coverage; /* the real one; below what was asked for small n */
} fr_interval;

/*
 * Distribution-free interval of the median from order statistics (binomial;
 * e.g. Conover, Practical Nonparametric Statistics, 3.2).  With too few
 * samples it is [min, max] and `coverage` says what that is worth.  Sorts.
 */
fr_interval fr_stats_median_interval(double *x, size_t n, double confidence);

/* ---- predictions against measurements ---------------------------------- */
/* Mean of |predicted - measured| / measured; rows with measured <= 0 or a
 * NaN on either side are left out. */
double fr_stats_mape(const double *predicted, const double *measured, size_t n);
/* Mean of (predicted - measured) / measured. */
double fr_stats_bias(const double *predicted, const double *measured, size_t n);
/* Kendall's tau-b, O(n^2); NaN when a side is constant. */
double fr_stats_kendall_tau(const double *x, const double *y, size_t n);
/*
 * Share of the pairs whose measurements differ by more than min_rel_diff
 * (of the smaller) that the predictions order the same way; a predicted tie
 * counts half.  *n_pairs (may be NULL) says how many such pairs there are;
 * none: NaN.
 */
double fr_stats_concordance(const double *predicted, const double *measured,
                            size_t n, double min_rel_diff, size_t *n_pairs);

#endif
