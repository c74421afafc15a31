/*
 * student.h: a Student-t process (Shah, Wilson and Ghahramani, AISTATS 2014):
 * Gaussian process regression whose scale is itself learned from the values.
 * Calm values narrow what is said of others, wild ones widen it.
 */
#ifndef FR_CORE_NUMBERS_STUDENT_H
#define FR_CORE_NUMBERS_STUDENT_H

#include "core/base/err.h"

/* The distribution of a value: mean + scale x t with `dof` degrees of
 * freedom. */
typedef struct fr_student {
    double mean, scale, dof;
} fr_student;

/* Half-width of its central interval of that probability. */
double fr_student_half_width(const fr_student *value, double probability);
/* Probability of a value at least so far from the mean, both sides. */
double fr_student_tail(const fr_student *value, double at);

typedef struct fr_process fr_process;

/*
 * n values y (n may be 0) of mean 0 with the covariances cov[n * n], row by
 * row, noise on the diagonal; prior_dof > 0.  FR_INPUT where they are not
 * finite or not positive definite.  Borrows nothing.
 */
FR_CHECKED fr_status fr_process_create(const double *cov, const double *y,
                                       size_t n, double prior_dof,
                                       fr_process **out, fr_err *err);
void fr_process_destroy(fr_process *process); /* takes NULL */

/* The logarithm of the probability density of y. */
double fr_process_log_density(const fr_process *process);

/* A further value, given y: cross[n] its covariances with y, `variance` its
 * own, noise included. */
fr_student fr_process_at(const fr_process *process, const double *cross,
                         double variance);
/* Covariance of two further values that is left when y is known, before the
 * common scale. */
double fr_process_covariance(const fr_process *process, const double *cross_a,
                             const double *cross_b, double covariance);
/* Value i, given all others. */
fr_student fr_process_without(const fr_process *process, size_t i);
/* weights[n] with mean = sum of weights[i] * cross[i]. */
const double *fr_process_weights(const fr_process *process);

#endif
