/*
 * bound_seeds.h: the order in which the best plans by estimate are simulated.
 *
 * Lists that come in the order of their estimates begin with many variants of
 * one plan, with plans that do not fit, or with some whose simulation takes all
 * of the budget.
 */
#ifndef FR_TUNER_SEARCH_BOUND_SEEDS_H
#define FR_TUNER_SEARCH_BOUND_SEEDS_H

#include "tuner/bound/bound_walk.h"

/* Returns the family of a plan: the distribution of layers and of state over
 * ranks. */
int64_t fr_seeds_layout(const fr_plan_space_request *request,
                        const fr_candidate *candidate);

/* Reorders a list to the best of each family, then the second of each, and so
 * on. */
FR_CHECKED fr_status fr_seeds_interleave(const fr_plan_space_request *request,
                                         fr_bounded_list *list, fr_err *err);

/*
 * Appends the seeds whose simulation takes at most a quarter of the first one's
 * steps, or at most few_steps; the best of each family first.
 */
FR_CHECKED fr_status fr_seeds_list_cheap(const fr_plan_space_request *request,
                                         const fr_bounded_list *seeds,
                                         int64_t few_steps,
                                         fr_bounded_list *out, fr_err *err);

/* Inserts one entry of the other list after each of the list, as long as there
 * are any. */
FR_CHECKED fr_status fr_seeds_alternate(const fr_bounded_list *with,
                                        fr_bounded_list *list, fr_err *err);

/* Moves the seeds that fit by the estimate of their peak before the others. */
void fr_seeds_likely_first(fr_bounded_list *list);

#endif
