/*
 * fit.c: least squares; see fit.h.  Rows are scaled by the root of their
 * weights and columns to length 1, so that bytes and seconds may share a
 * design; GSL's SVD solves what is left.
 */
#include "core/numbers/fit.h"

#include <assert.h>
#include <gsl/gsl_errno.h>
#include <gsl/gsl_multifit.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Columns whose singular value is below this share of the largest add
 * nothing that a double could tell. */
static const double rank_tolerance = 1e-11;

typedef struct problem {
    const double *design;
    const double *y;
    const double *w; /* NULL: all 1 */
    size_t n, n_columns;
} problem;

typedef struct solver {
    gsl_matrix *x;
    gsl_vector *y, *coef;
    gsl_matrix *cov;
    gsl_multifit_linear_workspace *work;
    double scale[FR_FIT_COLUMNS_MAX];
} solver;

static void solver_release(solver *s)
{
    gsl_matrix_free(s->x);
    gsl_vector_free(s->y);
    gsl_vector_free(s->coef);
    gsl_matrix_free(s->cov);
    if (s->work != NULL)
        gsl_multifit_linear_free(s->work);
}

static fr_status solver_init(solver *s, size_t n, size_t n_columns, fr_err *err)
{
    gsl_set_error_handler_off();
    memset(s, 0, sizeof *s);
    s->x = gsl_matrix_alloc(n, n_columns);
    s->y = gsl_vector_alloc(n);
    s->coef = gsl_vector_alloc(n_columns);
    s->cov = gsl_matrix_alloc(n_columns, n_columns);
    s->work = gsl_multifit_linear_alloc(n, n_columns);
    if (s->x != NULL && s->y != NULL && s->coef != NULL && s->cov != NULL &&
        s->work != NULL)
        return FR_OK;
    solver_release(s);
    return fr_fail_no_memory(err);
}

/* Loads the columns `chosen` (n_chosen of them) of the problem. */
static void solver_load(solver *s, const problem *p, const size_t *chosen,
                        size_t n_chosen)
{
    for (size_t j = 0; j < n_chosen; j++) {
        double sum = 0;
        for (size_t i = 0; i < p->n; i++) {
            double root = p->w != NULL ? sqrt(p->w[i]) : 1;
            double item = root * p->design[i * p->n_columns + chosen[j]];
            gsl_matrix_set(s->x, i, j, item);
            sum += item * item;
        }
        s->scale[j] = sum > 0 ? 1 / sqrt(sum) : 0;
        for (size_t i = 0; i < p->n; i++)
            gsl_matrix_set(s->x, i, j,
                           s->scale[j] * gsl_matrix_get(s->x, i, j));
    }
    for (size_t i = 0; i < p->n; i++)
        gsl_vector_set(s->y, i, (p->w != NULL ? sqrt(p->w[i]) : 1) * p->y[i]);
}

/* coef is that of the chosen columns.  Returns the rank. */
static size_t solver_run(solver *s, size_t n_chosen, double *coef)
{
    size_t rank = 0;
    double sum_squares = 0;

    if (gsl_multifit_linear_tsvd(s->x, s->y, rank_tolerance, s->coef, s->cov,
                                 &sum_squares, &rank, s->work) != GSL_SUCCESS)
        return 0;
    for (size_t j = 0; j < n_chosen; j++)
        coef[j] = s->scale[j] * gsl_vector_get(s->coef, j);
    return rank;
}

static bool is_all_finite(const double *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(x[i]))
            return false;
    return true;
}

static fr_status check_problem(const problem *p, fr_err *err)
{
    size_t n_used = 0;

    assert(p->n_columns >= 1 && p->n_columns <= FR_FIT_COLUMNS_MAX);
    if (!is_all_finite(p->design, p->n * p->n_columns) ||
        !is_all_finite(p->y, p->n) ||
        (p->w != NULL && !is_all_finite(p->w, p->n)))
        return fr_fail(err, FR_INPUT, "fit: a value is not finite");
    for (size_t i = 0; i < p->n; i++) {
        if (p->w != NULL && p->w[i] < 0)
            return fr_fail(err, FR_INPUT, "fit: a weight is negative");
        n_used += p->w == NULL || p->w[i] > 0;
    }
    if (n_used < p->n_columns)
        return fr_fail(err, FR_INPUT,
                       "fit: %zu points cannot carry %zu coefficients", n_used,
                       p->n_columns);
    return FR_OK;
}

typedef struct active_set {
    bool is_free[FR_FIT_COLUMNS_MAX];
    double coef[FR_FIT_COLUMNS_MAX];
    double length[FR_FIT_COLUMNS_MAX]; /* of each column */
} active_set;

/* The bound column along which the squares fall most; n_columns: none. */
static size_t steepest(const problem *p, const active_set *set)
{
    double gradient[FR_FIT_COLUMNS_MAX] = {0}, size = 0, best = 0;
    size_t i_best = p->n_columns;

    for (size_t i = 0; i < p->n; i++) {
        const double *row = p->design + i * p->n_columns;
        double w = p->w != NULL ? p->w[i] : 1, rest = p->y[i];
        for (size_t j = 0; j < p->n_columns; j++)
            rest -= row[j] * set->coef[j];
        for (size_t j = 0; j < p->n_columns; j++)
            gradient[j] += w * row[j] * rest;
        size += w * p->y[i] * p->y[i];
    }
    for (size_t j = 0; j < p->n_columns; j++) {
        double slope;
        if (set->is_free[j] || set->length[j] == 0)
            continue;
        slope = gradient[j] / set->length[j];
        if (slope > 1e-11 * sqrt(size) && slope > best) {
            best = slope;
            i_best = j;
        }
    }
    return i_best;
}

/* Solves the free columns alone. */
static fr_status solve_free(const problem *p, const active_set *set,
                            double *coef, fr_err *err)
{
    size_t chosen[FR_FIT_COLUMNS_MAX], n_chosen = 0;
    double part[FR_FIT_COLUMNS_MAX];
    solver s;

    for (size_t j = 0; j < p->n_columns; j++) {
        coef[j] = 0;
        if (set->is_free[j])
            chosen[n_chosen++] = j;
    }
    if (n_chosen == 0)
        return FR_OK;
    FR_TRY(solver_init(&s, p->n, n_chosen, err));
    solver_load(&s, p, chosen, n_chosen);
    if (solver_run(&s, n_chosen, part) > 0)
        for (size_t j = 0; j < n_chosen; j++)
            coef[chosen[j]] = part[j];
    solver_release(&s);
    return FR_OK;
}

/*
 * Goes from set->coef towards `goal` until a coefficient would turn negative
 * and binds that one; false: the goal was reached.
 */
static bool step_towards(const problem *p, active_set *set, const double *goal)
{
    double share = 1;
    size_t i_bound = p->n_columns;

    for (size_t j = 0; j < p->n_columns; j++) {
        double part;
        if (!set->is_free[j] || goal[j] > 0)
            continue;
        part = set->coef[j] / (set->coef[j] - goal[j]);
        if (!(part >= share)) {
            share = isnan(part) ? 0 : part;
            i_bound = j;
        }
    }
    for (size_t j = 0; j < p->n_columns; j++)
        set->coef[j] += share * (goal[j] - set->coef[j]);
    if (i_bound == p->n_columns)
        return false;
    set->coef[i_bound] = 0;
    set->is_free[i_bound] = false;
    return true;
}

fr_status fr_fit_nonnegative(const double *design, const double *y,
                             const double *w, size_t n, size_t n_columns,
                             double *coef, fr_err *err)
{
    problem p = {design, y, w, n, n_columns};
    active_set set = {0};

    FR_TRY(check_problem(&p, err));
    for (size_t j = 0; j < n_columns; j++) {
        for (size_t i = 0; i < n; i++) {
            double item = design[i * n_columns + j];
            set.length[j] += (w != NULL ? w[i] : 1) * item * item;
        }
        set.length[j] = sqrt(set.length[j]);
    }
    /* Lawson and Hanson end by themselves; rounding could make them circle. */
    for (size_t round = 0; round < 10 * n_columns; round++) {
        size_t entering = steepest(&p, &set);
        if (entering == n_columns)
            break;
        set.is_free[entering] = true;
        for (;;) {
            double goal[FR_FIT_COLUMNS_MAX];
            FR_TRY(solve_free(&p, &set, goal, err));
            if (!step_towards(&p, &set, goal))
                break;
        }
    }
    memcpy(coef, set.coef, n_columns * sizeof *coef);
    return FR_OK;
}
