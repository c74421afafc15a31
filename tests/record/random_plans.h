/*
 * random_plans.h: plans drawn over every field of fr_plan, for the recorder.
 * Drawn by hand here, so that a change of the tables of fields changes no
 * plan: what two builds record stays comparable.
 */
#ifndef FR_TESTS_RECORD_RANDOM_PLANS_H
#define FR_TESTS_RECORD_RANDOM_PLANS_H

#include "core/numbers/rng.h"
#include "plan/decide/plan.h"

/* A plan of at most 512 ranks and n_devices; many are refused by the checks,
 * which is recorded like any other answer. */
void random_plans_next(fr_rng *rng, const fr_model *model, int64_t n_devices,
                       fr_plan *out);

/* Gives each data-parallel rank any number of the batch's micro-batches, one at
 * least; leaves even shares where there are none to give. */
void random_plans_share(fr_rng *rng, const fr_job *job, fr_plan *plan);

#endif
