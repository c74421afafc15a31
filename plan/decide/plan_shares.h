/*
 * plan_shares.h: how many micro-batches each data-parallel rank has, so that a
 * slow one can have fewer.  All are of the same size, and the sequences of a
 * rank follow those of the ranks before it in the global batch.
 */
#ifndef FR_PLAN_DECIDE_PLAN_SHARES_H
#define FR_PLAN_DECIDE_PLAN_SHARES_H

#include "plan/decide/plan.h"

/* Micro-batches of a data-parallel rank, of that with fewest, and of all before
 * one. */
int64_t fr_plan_share(const fr_plan *plan, const fr_job *job, int32_t dp);
int64_t fr_plan_least_share(const fr_plan *plan, const fr_job *job);
int64_t fr_plan_first_micro(const fr_plan *plan, const fr_job *job, int32_t dp);

/* Returns the sum of uneven shares; 0: they are even. */
int64_t fr_plan_shares_sum(const fr_plan *plan);

/* Data-parallel ranks with as many micro-batches do the same and are of one
 * class; classes are numbered in the order of their first ranks. */
int32_t fr_plan_share_class(const fr_plan *plan, int32_t dp);
int32_t fr_plan_n_share_classes(const fr_plan *plan);

/* Why the shares of a plan do not come to its global batch. */
FR_CHECKED fr_status fr_plan_shares_refuse(const fr_plan *plan,
                                           const fr_job *job, fr_err *err);
/* Checks the shares, as a part of fr_plan_check_lowerable(). */
FR_CHECKED fr_status fr_plan_shares_check_lowerable(const fr_plan *plan,
                                                    fr_err *err);

/*
 * Deals n micro-batches to plan->dp ranks that take pass_s[dp] > 0 for one, and
 * as long as `fill` of them besides (a pipeline that fills), so that the last
 * one ends as early as can be; each gets one at least.  Sets the shares, none
 * where all are alike.  false: there are too few micro-batches, or too many
 * ranks.
 */
bool fr_plan_share_out(int64_t n, double fill, const double *pass_s,
                       fr_plan *plan);

#endif
