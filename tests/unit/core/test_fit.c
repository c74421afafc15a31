/* test_fit.c: fits recover the laws that made the points. */
#include "core/numbers/fit.h"
#include "core/numbers/rng.h"
#include "tests/check.h"

enum { N = 40 };

static void make_sizes(double *x, size_t n, double first, double last)
{
    for (size_t i = 0; i < n; i++)
        x[i] = first * pow(last / first, (double)i / (double)(n - 1));
}

static void test_alpha_beta(void)
{
    double x[N], y[N];
    fr_line line;
    fr_err err;

    make_sizes(x, N, 8, 1 << 27);
    for (uint64_t i = 0; i < N; i++)
        y[i] =
            (3.7e-6 + x[i] / 11.3e9) * (1 + 0.01 * fr_hash_normal(11, i, 0, 0));
    y[4] *= 9; /* an interrupt */
    y[33] *= 4;
    CHECK_OK(fr_fit_alpha_beta(x, y, N, &line, &err), &err);
    CHECK_NEAR(line.a, 3.7e-6, 0.01);
    CHECK_NEAR(1 / line.b, 11.3e9, 0.01);
    CHECK(line.a_err > 0 && line.a_err < 0.01 * line.a);
    CHECK(line.max_rel > 0.8);
    /* Pure bandwidth with noise would give a negative latency: 0. */
    for (size_t i = 0; i < 6; i++)
        x[i] = (double)(i + 1), y[i] = 2 * x[i] - 0.1;
    CHECK_OK(fr_fit_alpha_beta(x, y, 6, &line, &err), &err);
    CHECK(line.a == 0 && line.b > 1.9 && line.b < 2.01);
    /* Faster with size: no negative slope. */
    for (size_t i = 0; i < 6; i++)
        y[i] = 7 - 0.2 * x[i];
    CHECK_OK(fr_fit_alpha_beta(x, y, 6, &line, &err), &err);
    CHECK(line.b == 0 && line.a > 5.8 && line.a < 6.8);
    y[2] = 0;
    CHECK_FAILS(fr_fit_alpha_beta(x, y, 6, &line, &err), FR_INPUT, &err);
    y[2] = NAN;
    CHECK_FAILS(fr_fit_alpha_beta(x, y, 6, &line, &err), FR_INPUT, &err);
    x[0] = x[1] = 5, y[0] = y[1] = 2;
    CHECK_FAILS(fr_fit_alpha_beta(x, y, 2, &line, &err), FR_INPUT, &err);
}

static void test_curve(void)
{
    const double x[] = {10, 100, 1000, 1e5, 1e6};
    const double y[] = {2, 3, 30, 35, 700};
    fr_curve *curve;
    double last = 0;
    fr_err err;

    if (!CHECK_OK(fr_curve_create(x, y, 5, &curve, &err), &err))
        return;
    for (size_t i = 0; i < 5; i++)
        CHECK_NEAR(fr_curve_at(curve, x[i]), y[i], 1e-12);
    for (double at = 1; at < 1e8; at *= 1.07) {
        double value = fr_curve_at(curve, at);
        CHECK(value >= last);
        last = value;
    }
    /* Outside: the straight line (log-log) of the last two points. */
    CHECK_NEAR(fr_curve_at(curve, 1e7), 700 * (700.0 / 35), 1e-12);
    CHECK_NEAR(fr_curve_at(curve, 1), 2 * (2.0 / 3), 1e-12);
    CHECK(isfinite(fr_curve_at(curve, 0)));
    fr_curve_destroy(curve);
    fr_curve_destroy(NULL);
    CHECK_OK(fr_curve_create(x, y, 2, &curve, &err), &err);
    CHECK_NEAR(fr_curve_at(curve, sqrt(1000.0)), sqrt(6.0), 1e-12);
    fr_curve_destroy(curve);
    CHECK_OK(fr_curve_create(x, y, 1, &curve, &err), &err);
    CHECK_NEAR(fr_curve_at(curve, 77), 2, 1e-12);
    fr_curve_destroy(curve);
    CHECK_FAILS(fr_curve_create(x, y, 0, &curve, &err), FR_INPUT, &err);
    CHECK_FAILS(fr_curve_create(y, (double[]){1, 0, 2, 3, 4}, 5, &curve, &err),
                FR_INPUT, &err);
    CHECK_FAILS(fr_curve_create((double[]){1, 1, 2}, y, 3, &curve, &err),
                FR_INPUT, &err);
}

/* Power laws are straight in log-log: exact everywhere. */
static void test_curve_power_law(void)
{
    double x[9], y[9];
    fr_curve *curve;
    fr_err err;

    make_sizes(x, 9, 3, 7e6);
    for (size_t i = 0; i < 9; i++)
        y[i] = 2.385e-9 * pow(x[i], 1.41);
    if (!CHECK_OK(fr_curve_create(x, y, 9, &curve, &err), &err))
        return;
    for (double at = 0.5; at < 1e8; at *= 1.9)
        CHECK_NEAR(fr_curve_at(curve, at), 2.385e-9 * pow(at, 1.41), 1e-9);
    fr_curve_destroy(curve);
}

static void test_isotonic(void)
{
    double y[] = {1, 3, 2, 4, 3.5, 3.6, 7};
    double w[] = {1, 1, 1, 2, 1, 1, 1};
    double down[] = {4, 3, 2, 1};
    fr_err err;

    CHECK_OK(fr_fit_isotonic(y, w, 7, &err), &err);
    CHECK_NEAR(y[0], 1, 0);
    CHECK_NEAR(y[1], 2.5, 1e-15);
    CHECK_NEAR(y[2], 2.5, 1e-15);
    CHECK_NEAR(y[3], (8 + 3.5 + 3.6) / 4, 1e-15);
    CHECK_NEAR(y[5], (8 + 3.5 + 3.6) / 4, 1e-15);
    CHECK_NEAR(y[6], 7, 0);
    CHECK_OK(fr_fit_isotonic(down, NULL, 4, &err), &err);
    CHECK(down[0] == 2.5 && down[3] == 2.5);
}

/* Karush-Kuhn-Tucker decides: no slope at free columns, none downhill at the
 * bound ones. */
static void test_nonnegative(void)
{
    enum { ROWS = 30, COLUMNS = 8 };

    for (uint64_t trial = 0; trial < 200; trial++) {
        double design[ROWS * COLUMNS], y[ROWS], coef[COLUMNS];
        int n_bound = 0;
        fr_err err;
        for (uint64_t i = 0; i < ROWS * COLUMNS; i++)
            design[i] = fr_hash_normal(trial, i, 1, 0);
        for (uint64_t i = 0; i < ROWS; i++)
            y[i] = fr_hash_normal(trial, i, 2, 0);
        if (!CHECK_OK(
                fr_fit_nonnegative(design, y, NULL, ROWS, COLUMNS, coef, &err),
                &err))
            return;
        for (size_t j = 0; j < COLUMNS; j++) {
            double slope = 0;
            for (size_t i = 0; i < ROWS; i++) {
                double rest = y[i];
                for (size_t k = 0; k < COLUMNS; k++)
                    rest -= design[i * COLUMNS + k] * coef[k];
                slope += design[i * COLUMNS + j] * rest;
            }
            CHECK(coef[j] >= 0);
            CHECK(coef[j] > 0 ? fabs(slope) < 1e-9 : slope < 1e-9);
            n_bound += coef[j] == 0;
        }
        CHECK(n_bound > 0);
    }
}

/* y = a exp(-b t) + c, with derivatives by differences. */
static void decay_residuals(const double *x, double *out, void *context)
{
    const double *y = context;

    for (int i = 0; i < 20; i++)
        out[i] = x[0] * exp(-x[1] * 0.3 * i) + x[2] - y[i];
}

static void test_nonlinear(void)
{
    fr_err err = {0};
    double y[20], x[3] = {1.0, 1.0, 0.0};

    for (int i = 0; i < 20; i++)
        y[i] = 2.385 * exp(-0.717 * 0.3 * i) + 0.419;
    CHECK_OK(fr_fit_nonlinear(decay_residuals, y, 20, x, 3, &err), &err);
    CHECK_NEAR(x[0], 2.385, 1e-6);
    CHECK_NEAR(x[1], 0.717, 1e-6);
    CHECK_NEAR(x[2], 0.419, 1e-6);
    CHECK_FAILS(fr_fit_nonlinear(decay_residuals, y, 2, x, 3, &err), FR_INPUT,
                &err);
    y[3] = NAN;
    CHECK_FAILS(fr_fit_nonlinear(decay_residuals, y, 20, x, 3, &err), FR_INPUT,
                &err);
    CHECK_NEAR(x[0], 2.385, 1e-6);
}

CHECK_MAIN({"nonlinear", test_nonlinear}, {"alpha_beta", test_alpha_beta},
           {"curve", test_curve}, {"curve_power_law", test_curve_power_law},
           {"isotonic", test_isotonic}, {"nonnegative", test_nonnegative})
