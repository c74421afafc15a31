/*
 * stack_features.h: what of a plan and of its predicted step says how far a
 * stack (software on hardware) may be from the prediction, and how alike it is
 * to other steps.
 */
#ifndef FR_COST_MODELS_STACK_STACK_FEATURES_H
#define FR_COST_MODELS_STACK_STACK_FEATURES_H

#include "plan/decide/plan.h"
#include "spec/cluster/cluster.h"
#include "spec/profile/run_point.h"
#include "spec/result/prediction.h"

/* All are finite and >= 0. */
void fr_stack_features(const fr_model *model, const fr_job *job,
                       const fr_plan *plan, const fr_device_type *device,
                       const double breakdown_s[FR_PART_N],
                       fr_run_features *out);

/* A measured step of a plan beside what is predicted of it, without what other
 * measured steps taught; its name is left empty. */
void fr_stack_run_of(const fr_model *model, const fr_job *job,
                     const fr_plan *plan, const fr_device_type *device,
                     const fr_prediction *prediction, double measured_s,
                     fr_run_point *out);

/* The share that a part of the step belongs to. */
fr_run_share fr_stack_share_of(fr_part part);

#endif
