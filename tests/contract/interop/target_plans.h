/*
 * target_plans.h: random plans that a target can have, drawn from what its
 * table says of each field.
 */
#ifndef FR_TESTS_TARGET_PLANS_H
#define FR_TESTS_TARGET_PLANS_H

#include "core/numbers/rng.h"
#include "frameworks/target.h"
#include "plan/decide/plan_json.h"

/* A decoder of 24 layers, with experts where asked for, and a job on it. */
void target_plans_setup(bool has_experts, fr_plan_file *out);

/* file->plan becomes a legal one that the target can have in this version;
 * false: none was found in many draws. */
bool target_plans_next(fr_rng *rng, const fr_target *target, int version,
                       fr_plan_file *file);

#endif
