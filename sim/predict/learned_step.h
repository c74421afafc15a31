/*
 * learned_step.h: a predicted step as measured steps of the stack correct it.
 */
#ifndef FR_SIM_PREDICT_LEARNED_STEP_H
#define FR_SIM_PREDICT_LEARNED_STEP_H

#include "cost_models/stack/stack.h"
#include "plan/ir/program.h"
#include "spec/cluster/cluster.h"
#include "spec/result/prediction.h"

/* Time, parts and interval; nothing where stack is NULL. */
void fr_learned_step_apply(const fr_stack *stack, const fr_program *program,
                           const fr_device_type *device, fr_prediction *out);

#endif
