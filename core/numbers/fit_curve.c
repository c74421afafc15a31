/* fit_curve.c: monotone curves through points, log over log; see fit.h. */
#include "core/numbers/fit.h"

#include <gsl/gsl_errno.h>
#include <gsl/gsl_interp.h>
#include <math.h>
#include <stdlib.h>

struct fr_curve {
    size_t n;
    double *log_x, *log_y;
    gsl_interp *interp; /* from 3 points on */
};

static fr_status check(const double *x, const double *y, size_t n, fr_err *err)
{
    if (n == 0)
        return fr_fail(err, FR_INPUT, "curve: has no points");
    for (size_t i = 0; i < n; i++) {
        if (!(x[i] > 0 && y[i] > 0 && isfinite(x[i]) && isfinite(y[i])))
            return fr_fail(err, FR_INPUT,
                           "curve: point %zu (%g, %g) is not positive", i, x[i],
                           y[i]);
        if (i && !(x[i] > x[i - 1]))
            return fr_fail(err, FR_INPUT,
                           "curve: x of point %zu (%g) is not above the one "
                           "before",
                           i, x[i]);
    }
    return FR_OK;
}

fr_status fr_curve_create(const double *x, const double *y, size_t n,
                          fr_curve **out, fr_err *err)
{
    fr_curve *curve;

    FR_TRY(check(x, y, n, err));
    curve = calloc(1, sizeof *curve);
    if (curve == NULL)
        return fr_fail_no_memory(err);
    curve->n = n;
    curve->log_x = malloc(n * sizeof *curve->log_x);
    curve->log_y = malloc(n * sizeof *curve->log_y);
    if (curve->log_x == NULL || curve->log_y == NULL)
        goto out_no_memory;
    for (size_t i = 0; i < n; i++) {
        curve->log_x[i] = log(x[i]);
        curve->log_y[i] = log(y[i]);
    }
    if (n >= 3) {
        gsl_set_error_handler_off();
        curve->interp = gsl_interp_alloc(gsl_interp_steffen, n);
        if (curve->interp == NULL ||
            gsl_interp_init(curve->interp, curve->log_x, curve->log_y, n) !=
                GSL_SUCCESS)
            goto out_no_memory;
    }
    *out = curve;
    return FR_OK;
out_no_memory:
    fr_curve_destroy(curve);
    return fr_fail_no_memory(err);
}

void fr_curve_destroy(fr_curve *curve)
{
    if (curve == NULL)
        return;
    if (curve->interp != NULL)
        gsl_interp_free(curve->interp);
    free(curve->log_x);
    free(curve->log_y);
    free(curve);
}

/* The straight line through points i and i + 1. */
static double line_at(const fr_curve *curve, size_t i, double log_x)
{
    const double *x = curve->log_x, *y = curve->log_y;

    return y[i] + (y[i + 1] - y[i]) / (x[i + 1] - x[i]) * (log_x - x[i]);
}

double fr_curve_at(const fr_curve *curve, double x)
{
    double log_x = log(x);
    size_t n = curve->n;

    if (n == 1)
        return exp(curve->log_y[0]);
    if (!(x > 0))
        log_x = curve->log_x[0];
    if (log_x <= curve->log_x[0])
        return exp(line_at(curve, 0, log_x));
    if (log_x >= curve->log_x[n - 1] || n == 2)
        return exp(line_at(curve, n - 2, log_x));
    return exp(gsl_interp_eval(curve->interp, curve->log_x, curve->log_y, log_x,
                               NULL));
}
