/*
 * fit_nonlinear.c: nonlinear least squares; see fit.h.  GSL's trust region
 * with Levenberg-Marquardt steps (More 1978); derivatives by differences.
 */
#include "core/numbers/fit.h"

#include <gsl/gsl_errno.h>
#include <gsl/gsl_multifit_nlinear.h>
#include <math.h>
#include <stdlib.h>

/* Models with a choice in them (the best of several kernels) have kinks: a
 * step of a thousandth looks over the small ones. */
static const double difference_step = 1e-3;
static const double tolerance = 1e-6;
static const size_t most_steps = 25;

typedef struct problem {
    fr_residual_fn residuals;
    void *context;
    double *out; /* n: GSL's own vectors may be columns of a matrix */
} problem;

static int evaluate(const gsl_vector *x, void *context, gsl_vector *out)
{
    const problem *p = context;

    p->residuals(x->data, p->out, p->context);
    for (size_t i = 0; i < out->size; i++) {
        if (!isfinite(p->out[i]))
            return GSL_EDOM;
        gsl_vector_set(out, i, p->out[i]);
    }
    return GSL_SUCCESS;
}

static fr_status run(gsl_multifit_nlinear_workspace *work,
                     gsl_multifit_nlinear_fdf *fdf, double *x, fr_err *err)
{
    gsl_vector_view start = gsl_vector_view_array(x, fdf->p);
    int why = 0;

    if (gsl_multifit_nlinear_init(&start.vector, fdf, work) != GSL_SUCCESS)
        return fr_fail(err, FR_INPUT, "fit: a residual is not finite");
    /* Past its most steps, or where no step helps, the best so far stands. */
    (void)gsl_multifit_nlinear_driver(most_steps, tolerance, tolerance, 0.0,
                                      NULL, NULL, &why, work);
    for (size_t i = 0; i < fdf->p; i++)
        if (!isfinite(gsl_vector_get(work->x, i)))
            return fr_fail(err, FR_INPUT, "fit: it does not converge");
    for (size_t i = 0; i < fdf->p; i++)
        x[i] = gsl_vector_get(work->x, i);
    return FR_OK;
}

fr_status fr_fit_nonlinear(fr_residual_fn residuals, void *context, size_t n,
                           double *x, size_t n_x, fr_err *err)
{
    problem p = {residuals, context, NULL};
    gsl_multifit_nlinear_parameters how =
        gsl_multifit_nlinear_default_parameters();
    gsl_multifit_nlinear_fdf fdf = {
        .f = evaluate, .n = n, .p = n_x, .params = &p};
    gsl_multifit_nlinear_workspace *work;
    fr_status status;

    if (n < n_x || n_x == 0)
        return fr_fail(err, FR_INPUT, "fit: %zu points for %zu unknowns", n,
                       n_x);
    gsl_set_error_handler_off();
    how.h_df = difference_step;
    p.out = malloc(n * sizeof *p.out);
    work = gsl_multifit_nlinear_alloc(gsl_multifit_nlinear_trust, &how, n, n_x);
    if (work != NULL && p.out != NULL)
        status = run(work, &fdf, x, err);
    else
        status = fr_fail_no_memory(err);
    if (work != NULL)
        gsl_multifit_nlinear_free(work);
    free(p.out);
    return status;
}
