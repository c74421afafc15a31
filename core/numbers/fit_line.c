/*
 * fit_line.c: straight lines through timings; see fit.h.
 *
 * Squares of relative errors are what is made small: a point weighs 1 / y^2.
 * Robust fits reweigh: first towards least absolute errors, which no single
 * outlier can pull away, then with Tukey's bisquare (c = 4.685, which keeps
 * 95 % of the efficiency where errors are normal).
 */
#include "core/numbers/fit.h"
#include "core/numbers/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ABSOLUTE_ROUNDS = 15, BISQUARE_ROUNDS = 20 };

/* Residuals below this share of the values are rounding, not noise. */
static const double noise_floor = 1e-9;

typedef struct points {
    const double *x, *y;
    size_t n;
} points;

static double base_weight(const points *p, size_t i)
{
    return 1 / (p->y[i] * p->y[i]);
}

/*
 * Weighted least squares of two coefficients that are not negative.  x is
 * centred, which keeps the normal equations exact enough over many decades.
 */
static void solve_line(const points *p, const double *u, fr_line *out)
{
    double sum_w = 0, mean_x = 0, mean_y = 0, xx = 0, xy = 0, x2 = 0;

    for (size_t i = 0; i < p->n; i++) {
        double w = u[i] * base_weight(p, i);
        sum_w += w;
        mean_x += w * p->x[i];
        mean_y += w * p->y[i];
    }
    mean_x /= sum_w;
    mean_y /= sum_w;
    for (size_t i = 0; i < p->n; i++) {
        double w = u[i] * base_weight(p, i), dx = p->x[i] - mean_x;
        xx += w * dx * dx;
        xy += w * dx * (p->y[i] - mean_y);
        x2 += w * p->x[i] * p->x[i];
    }
    out->b = xx > 0 ? xy / xx : 0;
    out->a = mean_y - out->b * mean_x;
    /* 1/w-scaled variances; the caller multiplies the residual variance. */
    out->b_err = xx > 0 ? 1 / xx : NAN;
    out->a_err = xx > 0 ? 1 / sum_w + mean_x * mean_x / xx : NAN;
    if (out->b < 0) {
        out->b = 0;
        out->b_err = 0;
        out->a = mean_y;
        out->a_err = 1 / sum_w;
    } else if (out->a < 0) {
        out->a = 0;
        out->a_err = 0;
        out->b = (xy + sum_w * mean_x * mean_y) / x2;
        out->b_err = 1 / x2;
    }
}

static double scaled_rest(const points *p, const fr_line *line, size_t i)
{
    double rest = p->y[i] - line->a - line->b * p->x[i];

    return sqrt(base_weight(p, i)) * fabs(rest);
}

/* Size of the values in the units of scaled_rest. */
static double scaled_size(const points *p)
{
    double sum = 0;

    for (size_t i = 0; i < p->n; i++)
        sum += base_weight(p, i) * p->y[i] * p->y[i];
    return sqrt(sum / (double)p->n);
}

/* u: the weights of the robust fit, [n]; scratch: [n]. */
static void solve_robust(const points *p, double *u, double *scratch,
                         fr_line *line)
{
    double least = noise_floor * scaled_size(p);

    for (int round = 0; round < ABSOLUTE_ROUNDS + BISQUARE_ROUNDS; round++) {
        double scale = 0;

        for (size_t i = 0; i < p->n; i++)
            scratch[i] = u[i] = scaled_rest(p, line, i);
        if (round >= ABSOLUTE_ROUNDS)
            scale = 4.685 * 1.4826 * fr_stats_median(scratch, p->n);
        if (scale < least)
            scale = least;
        for (size_t i = 0; i < p->n; i++) {
            double rest = u[i] / scale;
            if (round < ABSOLUTE_ROUNDS)
                u[i] = 1 / fmax(u[i], least > 0 ? least : 1e-300);
            else
                u[i] = rest < 1 ? (1 - rest * rest) * (1 - rest * rest) : 0;
        }
        solve_line(p, u, line);
    }
}

/* Errors of all points, outliers too: they are facts as well. */
static void measure_line(const points *p, const double *u, fr_line *line)
{
    double sum_rest = 0, sum_rel = 0, sum_u = 0, variance;

    line->n = p->n;
    line->max_rel = 0;
    for (size_t i = 0; i < p->n; i++) {
        double rest = scaled_rest(p, line, i);
        double off = fabs(p->y[i] - line->a - line->b * p->x[i]);
        double rel = off > 0 ? off / fabs(p->y[i]) : 0;
        sum_rest += u[i] * rest * rest;
        sum_u += u[i];
        sum_rel += rel * rel;
        line->max_rel = fmax(line->max_rel, rel);
    }
    line->rms_rel = sqrt(sum_rel / (double)p->n);
    variance = sum_u > 2 ? sum_rest / (sum_u - 2) : NAN;
    line->a_err = sqrt(line->a_err * variance);
    line->b_err = sqrt(line->b_err * variance);
}

static fr_status check_points(const points *p, fr_err *err)
{
    bool has_two = false;

    for (size_t i = 0; i < p->n; i++) {
        if (!isfinite(p->x[i]) || !isfinite(p->y[i]))
            return fr_fail(err, FR_INPUT, "fit: point %zu is not finite", i);
        if (!(p->y[i] > 0 && p->x[i] >= 0))
            return fr_fail(err, FR_INPUT,
                           "fit: point %zu (%g, %g) is not positive", i,
                           p->x[i], p->y[i]);
        has_two = has_two || p->x[i] != p->x[0];
    }
    if (!has_two)
        return fr_fail(err, FR_INPUT,
                       "fit: a line needs points at two places, got %zu at "
                       "one",
                       p->n);
    return FR_OK;
}

fr_status fr_fit_alpha_beta(const double *bytes, const double *seconds,
                            size_t n, fr_line *out, fr_err *err)
{
    const points all = {bytes, seconds, n}, *p = &all;
    double *u, *scratch;
    fr_line line = {0};

    FR_TRY(check_points(p, err));
    u = calloc(2 * n, sizeof *u);
    if (u == NULL)
        return fr_fail_no_memory(err);
    scratch = u + n;
    for (size_t i = 0; i < n; i++)
        u[i] = 1;
    solve_line(p, u, &line);
    if (n >= 4)
        solve_robust(p, u, scratch, &line);
    measure_line(p, u, &line);
    free(u);
    *out = line;
    return FR_OK;
}

fr_status fr_fit_isotonic(double *y, const double *w, size_t n, fr_err *err)
{
    /* A stack of blocks of equal value: {value, weight, size}. */
    double *value, *weight;
    size_t *size, n_blocks = 0, i = 0;

    if (n == 0)
        return FR_OK;
    value = malloc(n * (2 * sizeof *value + sizeof *size));
    if (value == NULL)
        return fr_fail_no_memory(err);
    weight = value + n;
    size = (size_t *)(void *)(weight + n);
    for (size_t k = 0; k < n; k++) {
        value[n_blocks] = y[k];
        weight[n_blocks] = w != NULL ? w[k] : 1;
        size[n_blocks] = 1;
        n_blocks++;
        while (n_blocks > 1 && value[n_blocks - 2] > value[n_blocks - 1]) {
            size_t a = n_blocks - 2, b = n_blocks - 1;
            double sum = weight[a] + weight[b];
            value[a] = (weight[a] * value[a] + weight[b] * value[b]) / sum;
            weight[a] = sum;
            size[a] += size[b];
            n_blocks--;
        }
    }
    for (size_t block = 0; block < n_blocks; block++)
        for (size_t k = 0; k < size[block]; k++)
            y[i++] = value[block];
    free(value);
    return FR_OK;
}
