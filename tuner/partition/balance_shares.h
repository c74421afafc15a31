/*
 * balance_shares.h: shares of a batch that make unlike replicas take alike: as
 * many micro-batches for each as it is fast.
 */
#ifndef FR_TUNER_PARTITION_BALANCE_SHARES_H
#define FR_TUNER_PARTITION_BALANCE_SHARES_H

#include "sim/bound/estimate.h"

/*
 * Sets the shares of a plan that is decided but for them, by what a micro-batch
 * takes on each data-parallel rank times slowness[dp] (NULL: 1).  They are none
 * where even ones are best, or there is nothing to deal: one replica, too many,
 * or fewer micro-batches.  Errors: those of the estimator.
 */
FR_CHECKED fr_status fr_balance_shares(fr_estimator *estimator,
                                       const fr_job *job,
                                       const double *slowness, fr_plan *plan,
                                       fr_err *err);

/* The same with an estimator of its own, on any cluster. */
FR_CHECKED fr_status fr_balance_shares_on(const fr_model *model,
                                          const fr_job *job,
                                          const fr_cluster *cluster,
                                          const fr_cost_model *costs,
                                          const double *slowness, fr_plan *plan,
                                          fr_err *err);

#endif
