/*
 * stack.h: what a stack (software on hardware) takes beside what is predicted,
 * learned from steps of it that were measured.
 *
 * log(measured / predicted) of the steps of a stack is a Student-t process
 * (core/numbers/student.h) about what the field's stacks have in common, a mean
 * above 0, for a step takes more than the sum of its parts: a common factor,
 * one for each part of the step by its share of it, fixed times for a step and
 * for each pass over a layer, what steps of like size and kind have in common,
 * and noise.  How large each of them is in the field stands in the prior; what
 * is measured of this stack conditions it.
 */
#ifndef FR_COST_MODELS_STACK_STACK_H
#define FR_COST_MODELS_STACK_STACK_H

#include "core/base/err.h"
#include "core/numbers/student.h"
#include "spec/profile/run_point.h"

/* Standard deviations are of logarithms.  Nothing but doubles. */
typedef struct fr_stack_prior {
    double mean; /* of log(measured / predicted) over stacks, > 0 */
    double common;
    double share[FR_RUN_SHARE_N]; /* of a part that is all of the step */
    double alike;                 /* of steps alike in size and kind */
    double size[FR_RUN_SIZE_N];   /* powers of two over which they stop it */
    double kind[FR_RUN_KIND_N];   /* how much another kind counts, small: all */
    double same_kind;             /* of steps of one kind and any size */
    double noise;                 /* of a step by itself */
    double dof; /* how alike stacks are in all this: few, not at all */
} fr_stack_prior;

enum { FR_STACK_PRIOR_N = (int)(sizeof(fr_stack_prior) / sizeof(double)) };

/*
 * The prior that `make fit-stack` fitted to the published runs of all sources
 * but that one.  If `source` is "", as for a user's own stack, or no source of
 * tests/validate/, the prior of all sources is returned.
 */
const fr_stack_prior *fr_stack_prior_without(const char *source);

typedef struct fr_stack fr_stack;

/* More runs than these tell nothing new, and every prediction asks them all. */
enum { FR_STACK_MOST_RUNS = 512 };

/*
 * Copies the runs, 0 to FR_STACK_MOST_RUNS.  Those that are off by a factor of
 * 20 and those that the others contradict are left out:
 * fr_stack_is_outlier().
 */
FR_CHECKED fr_status fr_stack_create(const fr_stack_prior *prior,
                                     const fr_run_point *runs, size_t n,
                                     fr_stack **out, fr_err *err);
void fr_stack_destroy(fr_stack *stack); /* takes NULL */

size_t fr_stack_n(const fr_stack *stack); /* runs, outliers among them */
size_t fr_stack_n_used(const fr_stack *stack);
bool fr_stack_is_outlier(const fr_stack *stack, size_t i);
/* That run as all others have it: log(measured / predicted). */
fr_student fr_stack_without(const fr_stack *stack, size_t i);

/* Returns the distribution of log(measured / predicted) of a step with these
 * features, after and before conditioning on the measured steps. */
fr_student fr_stack_at(const fr_stack *stack, const fr_run_features *features);
fr_student fr_stack_before(const fr_stack *stack,
                           const fr_run_features *features);
/* Returns the name of the largest source of the remaining uncertainty, and its
 * share of the variance. */
const char *fr_stack_left(const fr_stack *stack,
                          const fr_run_features *features, double *frac);
/* Sets the factor of each share of the step over its prediction, and the factor
 * of all effects that are no share (common, similarity); their weighted sum is
 * near the mean. */
void fr_stack_factors(const fr_stack *stack, const fr_run_features *features,
                      double share[FR_RUN_SHARE_N], double *rest);
/* Returns the distribution of the logarithm of the ratio of two steps; `other`
 * NULL: of the one step. */
fr_student fr_stack_difference(const fr_stack *stack,
                               const fr_run_features *one,
                               const fr_run_features *other);
/* By which share its scale shrinks when `measured` is measured, 0 to 1. */
double fr_stack_gain(const fr_stack *stack, const fr_run_features *one,
                     const fr_run_features *other,
                     const fr_run_features *measured);

/* The logarithm of the density of the runs under the prior, without looking
 * for outliers. */
FR_CHECKED fr_status fr_stack_log_density(const fr_stack_prior *prior,
                                          const fr_run_point *runs, size_t n,
                                          double *out, fr_err *err);

#endif
