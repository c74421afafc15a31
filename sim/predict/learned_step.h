/*
 * learned_step.h: the step that a stack is expected to take, from the sum of
 * costs: as its own measured steps correct it, else by what published stacks
 * typically take beyond theirs.
 */
#ifndef FR_SIM_PREDICT_LEARNED_STEP_H
#define FR_SIM_PREDICT_LEARNED_STEP_H

#include "cost_models/base/cost.h"
#include "cost_models/stack/stack.h"
#include "program/ir/program.h"
#include "spec/cluster/cluster.h"
#include "spec/result/prediction.h"

/*
 * The median over published stacks of measured to predicted steps (the prior of
 * stack.h) for a step of a framework on GPUs none of whose steps was measured;
 * else 1: forerun's own runtime is no published stack.  All plans with the same
 * kernels have the same factor, so that their order does not depend on it.
 */
double fr_expected_step_factor(const fr_cost_model *costs,
                               const fr_cluster *cluster,
                               fr_kernel_set kernels);

/* Corrects the times, parts and interval by the steps that the stack has
 * measured; NULL, or of outliers alone: they stay. */
void fr_learned_step_apply(const fr_stack *stack, const fr_program *program,
                           const fr_device_type *device, fr_prediction *out);

#endif
