/*
 * learned_step.h: a predicted step as measured steps of the stack correct it.
 */
#ifndef FR_SIM_PREDICT_LEARNED_STEP_H
#define FR_SIM_PREDICT_LEARNED_STEP_H

#include "cost_models/stack/stack.h"
#include "program/ir/program.h"
#include "spec/cluster/cluster.h"
#include "spec/result/prediction.h"

/* Time, parts and interval.  stack NULL, or of outliers: they stay;
 * is_of_field, is it a step of a framework on GPUs, as those that the prior is
 * of? then what these take in the middle is noted. */
void fr_learned_step_apply(const fr_stack *stack, const fr_program *program,
                           const fr_device_type *device, bool is_of_field,
                           fr_prediction *out);

#endif
