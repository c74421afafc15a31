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

static void test_linear(void)
{
    /* By hand: x 1..4, y 2 4 5 8: b = 1.9, a = 0, residual variance 0.35,
     * errors sqrt(0.35/5) and sqrt(0.35 * 30/20). */
    const double x[] = {1, 2, 3, 4}, y[] = {2, 4, 5, 8}, w[] = {1, 1, 2, 1};
    const double doubled[] = {1, 2, 3, 3, 4}, twice[] = {2, 4, 5, 5, 8};
    fr_line line, other;
    fr_err err;

    CHECK_OK(fr_fit_linear(x, y, NULL, 4, &line, &err), &err);
    CHECK_NEAR(line.b, 1.9, 1e-14);
    CHECK_WITHIN(line.a, 0, 1e-14);
    CHECK_NEAR(line.b_err, sqrt(0.35 / 5), 1e-12);
    CHECK_NEAR(line.a_err, sqrt(0.35 * 1.5), 1e-12);
    CHECK_NEAR(line.max_rel, 0.7 / 5, 1e-12);
    /* A weight of 2 is the same as two points. */
    CHECK_OK(fr_fit_linear(x, y, w, 4, &line, &err), &err);
    CHECK_OK(fr_fit_linear(doubled, twice, NULL, 5, &other, &err), &err);
    CHECK_WITHIN(line.a, other.a, 1e-12);
    CHECK_NEAR(line.b, other.b, 1e-12);
    CHECK_FAILS(fr_fit_linear(x, y, NULL, 1, &line, &err), FR_INPUT, &err);
    CHECK_FAILS(fr_fit_linear(x, y, NULL, 0, &line, &err), FR_INPUT, &err);
}

static void test_robust(void)
{
    double x[N], y[N];
    fr_line plain, robust;
    fr_err err;

    for (uint64_t i = 0; i < N; i++) {
        x[i] = 0.37 * (double)i;
        y[i] = 2.385 + 1.72 * x[i] + 0.01 * fr_hash_normal(5, i, 0, 0);
    }
    /* A fifth of the points are wild, all on one side. */
    for (size_t i = 3; i < N; i += 5)
        y[i] += 25;
    CHECK_OK(fr_fit_linear(x, y, NULL, N, &plain, &err), &err);
    CHECK_OK(fr_fit_linear_robust(x, y, NULL, N, &robust, &err), &err);
    CHECK(fabs(plain.a - 2.385) > 2);
    CHECK_WITHIN(robust.a, 2.385, 0.02);
    CHECK_WITHIN(robust.b, 1.72, 0.002);
    CHECK(robust.b_err < 0.001 && robust.max_rel > 0.5);
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

static double three_regimes(double x)
{
    if (x < 4096)
        return 1.3e-6 + x / 3.1e9;
    if (x < 262144)
        return 5.9e-6 + x / 6.7e9;
    return 21e-6 + x / 12.4e9;
}

/* Between the two points around a jump nobody knows where it is. */
static bool is_near_jump(double x)
{
    return fabs(log(x / 4096)) < 0.2 || fabs(log(x / 262144)) < 0.2;
}

static void test_pieces(void)
{
    const double two_x[] = {100, 1000}, two_y[] = {2.385e-6, 5e-6};
    double x[80], y[80];
    fr_pieces pieces;
    fr_err err;

    make_sizes(x, 80, 16, 1 << 26);
    for (uint64_t i = 0; i < 80; i++)
        y[i] = three_regimes(x[i]) * (1 + 0.004 * fr_hash_normal(1, i, 2, 3));
    CHECK_OK(fr_fit_pieces(x, y, 80, 6, &pieces, &err), &err);
    CHECK_INT(pieces.n, 3);
    for (size_t i = 1; i < pieces.n; i++)
        CHECK(pieces.first_x[i] > pieces.first_x[i - 1]);
    for (double at = 17.3; at < 5e7; at *= 1.83)
        if (!is_near_jump(at))
            CHECK_NEAR(fr_pieces_at(&pieces, at), three_regimes(at), 0.02);
    CHECK(pieces.rms_rel < 0.006 && pieces.max_rel < 0.02);
    /* One law: one piece, whatever is allowed. */
    for (uint64_t i = 0; i < 80; i++)
        y[i] = (2e-6 + x[i] / 9e9) * (1 + 0.02 * fr_hash_normal(4, i, 2, 3));
    CHECK_OK(fr_fit_pieces(x, y, 80, 8, &pieces, &err), &err);
    CHECK_INT(pieces.n, 1);
    CHECK_OK(fr_fit_pieces(two_x, two_y, 2, 8, &pieces, &err), &err);
    CHECK_INT(pieces.n, 1);
    CHECK_NEAR(fr_pieces_at(&pieces, 1000), 5e-6, 1e-12);
    CHECK_FAILS(fr_fit_pieces(x, y, 1, 8, &pieces, &err), FR_INPUT, &err);
    x[3] = 1;
    CHECK_FAILS(fr_fit_pieces(x, y, 80, 8, &pieces, &err), FR_INPUT, &err);
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
    CHECK(fr_curve_contains(curve, 10) && fr_curve_contains(curve, 1e6));
    CHECK(!fr_curve_contains(curve, 9) && !fr_curve_contains(curve, 0));
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

static void test_least_squares(void)
{
    enum { ROWS = 60, COLUMNS = 4 };
    static const double truth[COLUMNS] = {2.4e-6, 8.9e-11, 3.3e-13, 0.71e-3};
    static const double scale[COLUMNS] = {1, 1e8, 1e10, 1e-2};
    double design[ROWS * COLUMNS], y[ROWS], coef[COLUMNS], std_err[COLUMNS];
    fr_err err;

    /* Columns whose sizes lie 12 decades apart. */
    for (uint64_t i = 0; i < ROWS; i++) {
        y[i] = 0;
        for (uint64_t j = 0; j < COLUMNS; j++) {
            double item = scale[j] * fr_hash_uniform(3, i, j, 0);
            design[i * COLUMNS + j] = j == 0 ? 1 : item;
            y[i] += truth[j] * design[i * COLUMNS + j];
        }
    }
    CHECK_OK(fr_fit_least_squares(design, y, NULL, ROWS, COLUMNS, coef, std_err,
                                  &err),
             &err);
    for (size_t j = 0; j < COLUMNS; j++)
        CHECK_NEAR(coef[j], truth[j], 1e-8);
    /* Noise: within four standard errors, which are not silly. */
    for (uint64_t i = 0; i < ROWS; i++)
        y[i] += 1e-4 * fr_hash_normal(8, i, 0, 0);
    CHECK_OK(fr_fit_least_squares(design, y, NULL, ROWS, COLUMNS, coef, std_err,
                                  &err),
             &err);
    for (size_t j = 0; j < COLUMNS; j++)
        CHECK(fabs(coef[j] - truth[j]) < 4 * std_err[j]);
    CHECK(std_err[1] * scale[1] > 1e-5 && std_err[1] * scale[1] < 1e-4);
    /* Two equal columns cannot be told apart. */
    for (size_t i = 0; i < ROWS; i++)
        design[i * COLUMNS + 2] = 3 * design[i * COLUMNS + 1];
    CHECK_FAILS(fr_fit_least_squares(design, y, NULL, ROWS, COLUMNS, coef,
                                     std_err, &err),
                FR_INPUT, &err);
    CHECK_FAILS(
        fr_fit_least_squares(design, y, NULL, 3, COLUMNS, coef, NULL, &err),
        FR_INPUT, &err);
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

CHECK_MAIN({"nonlinear", test_nonlinear}, {"linear", test_linear},
           {"robust", test_robust}, {"alpha_beta", test_alpha_beta},
           {"pieces", test_pieces}, {"curve", test_curve},
           {"curve_power_law", test_curve_power_law},
           {"isotonic", test_isotonic}, {"least_squares", test_least_squares},
           {"nonnegative", test_nonnegative})
