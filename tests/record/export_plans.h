/*
 * export_plans.h: random plans and jobs that a target can have field by field;
 * its rules may still refuse them.  For the tests of exports and of reading
 * them back.
 */
#ifndef FR_TESTS_RECORD_EXPORT_PLANS_H
#define FR_TESTS_RECORD_EXPORT_PLANS_H

#include "core/numbers/rng.h"
#include "frameworks/target.h"

/* A job of a sequence that a short and a long model have. */
void export_plans_job(fr_rng *rng, const fr_model *model, fr_job *out);

/* A plan that is legal for model and job and has a lowering, of this backend
 * of the target, where that has any (else NULL); values that they have none of
 * are as fr_plan_init() has them.  false: none was found. */
bool export_plans_next(fr_rng *rng, const fr_target *target,
                       const fr_target *backend, const fr_model *model,
                       const fr_job *job, int64_t n_devices, fr_plan *out);

#endif
