/* test_stats.c: statistics and random numbers against textbook values. */
#include "core/numbers/rng.h"
#include "core/numbers/spike.h"
#include "core/numbers/stats.h"
#include "tests/check.h"

#include <stdlib.h>

static void test_order(void)
{
    double x[] = {3.1, -2, 7.25, 0.5, 2.385, 11, 4};
    double even[] = {1, 9, 4, 2};
    double one[] = {2.385}, with_nan[] = {NAN, 2, 1};

    CHECK_NEAR(fr_stats_median(x, 7), 3.1, 0);
    CHECK_NEAR(x[0], -2, 0);
    CHECK_NEAR(fr_stats_median(even, 4), 3, 0);
    /* type 7 of Hyndman and Fan 1996: 1 + 3 p for 1, 2, 4, 9 at p = 0.9 */
    CHECK_NEAR(fr_stats_quantile(even, 4, 0.9), 4 + 0.7 * 5, 1e-15);
    CHECK_NEAR(fr_stats_quantile(even, 4, 0), 1, 0);
    CHECK_NEAR(fr_stats_quantile(even, 4, 1), 9, 0);
    CHECK_NEAR(fr_stats_quantile(one, 1, 0.3), 2.385, 0);
    CHECK(isnan(fr_stats_median(x, 0)));
    fr_stats_sort(with_nan, 3);
    CHECK(with_nan[0] == 1 && with_nan[1] == 2 && isnan(with_nan[2]));
}

/* Against the definition, with a second array. */
static double slow_mad(const double *x, size_t n)
{
    double *copy = malloc(n * sizeof *copy), median, mad;

    memcpy(copy, x, n * sizeof *copy);
    median = fr_stats_median(copy, n);
    for (size_t i = 0; i < n; i++)
        copy[i] = fabs(x[i] - median);
    mad = 1.4826 * fr_stats_median(copy, n);
    free(copy);
    return mad;
}

static void test_mad(void)
{
    for (uint64_t n = 1; n < 60; n++) {
        double x[60], expected;
        for (uint64_t i = 0; i < n; i++)
            x[i] = floor(20 * fr_hash_normal(7, n, i, 0)) / 4;
        expected = slow_mad(x, n);
        CHECK_NEAR(fr_stats_mad(x, n), expected, 1e-14);
    }
}

static void test_intervals(void)
{
    double x[100];
    fr_interval interval;

    for (int i = 0; i < 100; i++)
        x[i] = 100 - i; /* each call sorts what it sees */
    /* Tables (e.g. Conover A3): n = 10 at 95 %: 2nd and 9th, 97.85 %. */
    interval = fr_stats_median_interval(x, 10, 0.95);
    CHECK_NEAR(interval.low, 92, 0);
    CHECK_NEAR(interval.high, 99, 0);
    CHECK_NEAR(interval.coverage, 0.978515625, 1e-12);
    /* n = 5: the extremes cover 1 - 2/32. */
    interval = fr_stats_median_interval(x, 5, 0.95);
    CHECK_NEAR(interval.low, 91, 0);
    CHECK_NEAR(interval.high, 95, 0);
    CHECK_NEAR(interval.coverage, 0.9375, 1e-12);
    interval = fr_stats_median_interval(x, 1, 0.95);
    CHECK(interval.low == interval.high && interval.coverage == 0);
}

/* The intervals hold the median as often as they say. */
static void test_interval_coverage(void)
{
    enum { N_TRIALS = 4000, N = 17 };
    double coverage = 0;
    int n_held = 0;

    for (uint64_t trial = 0; trial < N_TRIALS; trial++) {
        double x[N];
        fr_interval interval;
        for (uint64_t i = 0; i < N; i++)
            x[i] = exp(fr_hash_normal(2385, trial, i, 1));
        interval = fr_stats_median_interval(x, N, 0.9);
        n_held += interval.low <= 1 && 1 <= interval.high;
        coverage = interval.coverage;
    }
    CHECK(coverage >= 0.9);
    CHECK_WITHIN((double)n_held / N_TRIALS, coverage, 0.015);
}

static void test_scores(void)
{
    const double measured[] = {1.0, 2.0, 4.0, 4.1, NAN};
    const double predicted[] = {1.1, 1.5, 5.0, 4.9, 3};
    const double x[] = {1, 2, 3, 4, 5}, y[] = {3, 4, 1, 2, 5};
    const double tied[] = {1, 1, 2, 2};
    const double ranks[] = {1, 2, 3, 4};
    size_t n_pairs = 0;

    CHECK_NEAR(fr_stats_mape(predicted, measured, 5),
               (0.1 + 0.25 + 0.25 + 0.8 / 4.1) / 4, 1e-12);
    CHECK_NEAR(fr_stats_bias(predicted, measured, 5),
               (0.1 - 0.25 + 0.25 + 0.8 / 4.1) / 4, 1e-12);
    /* 4.0 against 4.1 is too near to count. */
    CHECK_NEAR(fr_stats_concordance(predicted, measured, 5, 0.05, &n_pairs), 1,
               0);
    CHECK_INT(n_pairs, 5);
    CHECK_NEAR(fr_stats_concordance(predicted, measured, 4, 0.01, &n_pairs),
               5.0 / 6, 1e-15);
    CHECK_INT(n_pairs, 6);
    CHECK(isnan(fr_stats_concordance(predicted, measured, 1, 0.05, NULL)));
    /* 6 pairs agree, 4 do not. */
    CHECK_NEAR(fr_stats_kendall_tau(x, y, 5), 0.2, 1e-15);
    /* tau-b with ties: 4 / sqrt(4 * 6) */
    CHECK_NEAR(fr_stats_kendall_tau(tied, ranks, 4), 4 / sqrt(24), 1e-15);
}

static void test_hash_numbers(void)
{
    enum { N = 200000 };
    double sum = 0, squares = 0, fourth = 0, uniform = 0;
    int n_bins[16] = {0};
    double chi = 0;

    for (uint64_t i = 0; i < N; i++) {
        double z = fr_hash_normal(42, 3, i, 9), u;
        sum += z;
        squares += z * z;
        fourth += z * z * z * z;
        u = fr_hash_uniform(43, i, 1, 2);
        uniform += u;
        CHECK(u >= 0 && u < 1 && isfinite(z));
        n_bins[(int)(16 * u)]++;
    }
    CHECK_WITHIN(sum / N, 0, 0.01);
    CHECK_WITHIN(squares / N, 1, 0.015);
    CHECK_WITHIN(fourth / N, 3, 0.12);
    CHECK_WITHIN(uniform / N, 0.5, 0.003);
    for (int i = 0; i < 16; i++)
        chi += pow(n_bins[i] - N / 16.0, 2) / (N / 16.0);
    CHECK(chi < 37.7); /* 15 degrees of freedom, 0.1 % */
    /* A pure function whose arguments all count. */
    CHECK(fr_hash_u64(1, 2, 3, 4) == fr_hash_u64(1, 2, 3, 4));
    CHECK(fr_hash_u64(1, 2, 3, 4) != fr_hash_u64(2, 1, 3, 4));
    CHECK(fr_hash_u64(1, 2, 3, 4) != fr_hash_u64(1, 3, 2, 4));
    CHECK(fr_hash_u64(1, 2, 3, 4) != fr_hash_u64(1, 2, 4, 3));
}

static void test_rng(void)
{
    enum { N = 100000 };
    fr_rng *rng, *twin;
    fr_err err;
    int n_seen[7] = {0};

    if (!CHECK_OK(fr_rng_create(2385, &rng, &err), &err) ||
        !CHECK_OK(fr_rng_create(2385, &twin, &err), &err))
        return;
    for (int i = 0; i < N; i++) {
        uint64_t drawn = fr_rng_below(rng, 7);
        CHECK(drawn == fr_rng_below(twin, 7));
        n_seen[drawn]++;
    }
    for (int i = 0; i < 7; i++)
        CHECK_NEAR(n_seen[i], N / 7.0, 0.05);
    fr_rng_destroy(rng);
    fr_rng_destroy(twin);
    fr_rng_destroy(NULL);
}

static void test_spikes(void)
{
    fr_spike_watch watch = {0};
    double usual = 0;

    for (int i = 0; i < 40; i++)
        CHECK_INT(fr_spike_add(&watch, 4 - 0.02385 * i + 0.05 * (i % 3), NULL),
                  FR_SPIKE_NONE);
    CHECK_INT(fr_spike_add(&watch, 5.385, &usual), FR_SPIKE_HIGH);
    CHECK_WITHIN(usual, 3.5, 0.2);
    CHECK_INT(fr_spike_add(&watch, 5.2, NULL), FR_SPIKE_NONE); /* said once */
    CHECK_INT(fr_spike_add(&watch, 3.07, NULL), FR_SPIKE_NONE);
    CHECK_INT(fr_spike_add(&watch, NAN, NULL), FR_SPIKE_NOT_FINITE);
    CHECK_INT(fr_spike_add(&watch, INFINITY, NULL), FR_SPIKE_NONE);
    CHECK_INT(fr_spike_add(&watch, 3.05, NULL), FR_SPIKE_NONE);
    CHECK_INT(fr_spike_add(&watch, -INFINITY, NULL), FR_SPIKE_NOT_FINITE);
}

CHECK_MAIN({"spikes", test_spikes}, {"order", test_order}, {"mad", test_mad},
           {"intervals", test_intervals},
           {"interval_coverage", test_interval_coverage},
           {"scores", test_scores}, {"hash_numbers", test_hash_numbers},
           {"rng", test_rng})
