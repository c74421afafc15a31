/*
 * fit.h: fits of timings.  Costs span decades, so most fits weigh relative
 * errors; outliers are damped (bisquare).  FR_INPUT when the data cannot
 * carry the fit (too few points, all equal, not finite).
 */
#ifndef FR_CORE_NUMBERS_FIT_H
#define FR_CORE_NUMBERS_FIT_H

#include "core/base/err.h"

/* ---- lines -------------------------------------------------------------- */
/* y = a + b x */
typedef struct fr_line {
    double a, b;
    double a_err, b_err; /* standard errors */
    double rms_rel;      /* root mean square of (fit - y) / y */
    double max_rel;      /* largest |fit - y| / |y| */
    size_t n;
} fr_line;

/*
 * Hockney's alpha-beta: seconds = a + b * bytes with a, b >= 0, relative
 * errors, robust from 4 points on.  y > 0.
 */
FR_CHECKED fr_status fr_fit_alpha_beta(const double *bytes,
                                       const double *seconds, size_t n,
                                       fr_line *out, fr_err *err);

/* ---- curves ------------------------------------------------------------ */
typedef struct fr_curve fr_curve;

/*
 * Monotone interpolation (Steffen 1990) of log y over log x: it goes through
 * the points and makes no extremum between them.  x > 0 strictly ascending,
 * y > 0, n >= 1.  Outside, the slope (log-log) of the last two points goes
 * on.  Reading is thread-safe.
 */
FR_CHECKED fr_status fr_curve_create(const double *x, const double *y, size_t n,
                                     fr_curve **out, fr_err *err);
void fr_curve_destroy(fr_curve *curve); /* takes NULL */
double fr_curve_at(const fr_curve *curve, double x);

/* Isotonic regression (pool adjacent violators): makes y not decreasing with
 * the least change in squares.  w NULL: all 1.  In place. */
FR_CHECKED fr_status fr_fit_isotonic(double *y, const double *w, size_t n,
                                     fr_err *err);

/* ---- least squares ------------------------------------------------------ */
enum { FR_FIT_COLUMNS_MAX = 32 };

/*
 * y ~ design * coef with coef >= 0 (Lawson and Hanson 1974); design is
 * [n][n_columns] row by row, w NULL: all 1.
 */
FR_CHECKED fr_status fr_fit_nonnegative(const double *design, const double *y,
                                        const double *w, size_t n,
                                        size_t n_columns, double *coef,
                                        fr_err *err);

/* ---- nonlinear least squares ------------------------------------------- */

/* Writes the n residuals at x. */
typedef void (*fr_residual_fn)(const double *x, double *out, void *context);

/*
 * Moves x[n_x] from where it is to the nearest least sum of squares of n >=
 * n_x residuals.  Deterministic.  x is untouched on failure.
 */
FR_CHECKED fr_status fr_fit_nonlinear(fr_residual_fn residuals, void *context,
                                      size_t n, double *x, size_t n_x,
                                      fr_err *err);

#endif
