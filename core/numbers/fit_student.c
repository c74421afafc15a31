/* fit_student.c: Student-t processes; see student.h. */
#include "core/numbers/student.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_errno.h>
#include <gsl/gsl_linalg.h>
#include <gsl/gsl_sf_gamma.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct fr_process {
    size_t n;
    double dof;       /* of the prior */
    double *inverse;  /* n * n, of the covariances */
    double *y;        /* n */
    double *weights;  /* n: inverse * y */
    double square;    /* y * inverse * y */
    double half_logs; /* half of the logarithm of the determinant */
};

double fr_student_half_width(const fr_student *value, double probability)
{
    return value->scale * gsl_cdf_tdist_Pinv(0.5 + probability / 2, value->dof);
}

double fr_student_tail(const fr_student *value, double at)
{
    double off = fabs(at - value->mean) / value->scale;
    return 2 * gsl_cdf_tdist_Q(off, value->dof);
}

void fr_process_destroy(fr_process *process)
{
    if (process == NULL)
        return;
    free(process->inverse);
    free(process->y);
    free(process->weights);
    free(process);
}

static fr_status invert(fr_process *p, fr_err *err)
{
    gsl_matrix_view view = gsl_matrix_view_array(p->inverse, p->n, p->n);
    gsl_matrix *m = &view.matrix;
    for (size_t i = 0; i < p->n * p->n; i++)
        if (!isfinite(p->inverse[i]))
            return fr_fail(err, FR_INPUT, "a covariance is not finite");
    gsl_set_error_handler_off();
    if (gsl_linalg_cholesky_decomp1(m) != GSL_SUCCESS)
        return fr_fail(err, FR_INPUT, "covariances are not positive definite");
    for (size_t i = 0; i < p->n; i++)
        p->half_logs += log(gsl_matrix_get(m, i, i));
    if (gsl_linalg_cholesky_invert(m) != GSL_SUCCESS)
        return fr_fail(err, FR_INPUT, "covariances are not positive definite");
    return FR_OK;
}

static fr_status fill(fr_process *p, const double *cov, const double *y,
                      fr_err *err)
{
    memcpy(p->inverse, cov, p->n * p->n * sizeof *cov);
    memcpy(p->y, y, p->n * sizeof *y);
    FR_TRY(invert(p, err));
    for (size_t i = 0; i < p->n; i++) {
        for (size_t k = 0; k < p->n; k++)
            p->weights[i] += p->inverse[i * p->n + k] * y[k];
        p->square += p->weights[i] * y[i];
    }
    return FR_OK;
}

fr_status fr_process_create(const double *cov, const double *y, size_t n,
                            double prior_dof, fr_process **out, fr_err *err)
{
    fr_process *p = calloc(1, sizeof *p);
    if (p == NULL)
        return fr_fail_no_memory(err);
    p->n = n;
    p->dof = prior_dof;
    p->inverse = calloc(n * n + 1, sizeof *p->inverse);
    p->y = calloc(n + 1, sizeof *p->y);
    p->weights = calloc(n + 1, sizeof *p->weights);
    fr_status status = FR_OK;
    if (p->inverse == NULL || p->y == NULL || p->weights == NULL)
        status = fr_fail_no_memory(err);
    if (status == FR_OK && n > 0)
        status = fill(p, cov, y, err);
    if (status != FR_OK) {
        fr_process_destroy(p);
        return status;
    }
    *out = p;
    return FR_OK;
}

double fr_process_log_density(const fr_process *p)
{
    double n = (double)p->n, dof = p->dof;
    return gsl_sf_lngamma((dof + n) / 2) - gsl_sf_lngamma(dof / 2) -
           n / 2 * log(dof * M_PI) - p->half_logs -
           (dof + n) / 2 * log1p(p->square / dof);
}

/* The common scale squared, as n values say whose square is `square`. */
static double scale2(double dof, double square, double n)
{
    return (dof + square) / (dof + n);
}

double fr_process_covariance(const fr_process *p, const double *cross_a,
                             const double *cross_b, double covariance)
{
    for (size_t i = 0; i < p->n; i++)
        for (size_t k = 0; k < p->n; k++)
            covariance -= cross_a[i] * p->inverse[i * p->n + k] * cross_b[k];
    return covariance;
}

fr_student fr_process_at(const fr_process *p, const double *cross,
                         double variance)
{
    double n = (double)p->n, mean = 0;
    for (size_t i = 0; i < p->n; i++)
        mean += cross[i] * p->weights[i];
    double left = fr_process_covariance(p, cross, cross, variance);
    return (fr_student){.mean = mean,
                        .scale =
                            sqrt(fmax(left, 0) * scale2(p->dof, p->square, n)),
                        .dof = p->dof + n};
}

/* Rasmussen and Williams, Gaussian Processes, eq. 5.12. */
fr_student fr_process_without(const fr_process *p, size_t i)
{
    double n = (double)p->n - 1, precision = p->inverse[i * p->n + i];
    double off = p->weights[i] / precision;
    double square = fmax(p->square - p->weights[i] * off, 0);
    return (fr_student){.mean = p->y[i] - off,
                        .scale = sqrt(scale2(p->dof, square, n) / precision),
                        .dof = p->dof + n};
}

const double *fr_process_weights(const fr_process *p)
{
    return p->weights;
}
