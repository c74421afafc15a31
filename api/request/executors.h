/*
 * executors.h: the names of --for, which say who has to be able to execute a
 * plan: forerun, any, then the targets.
 */
#ifndef FR_API_REQUEST_EXECUTORS_H
#define FR_API_REQUEST_EXECUTORS_H

#include "frameworks/framework.h"

extern const fr_names fr_executor_names;

/* Returns the framework of value i of --for, and the target that plans are
 * restricted to: forerun's is its runtime for GPUs or for CPUs.  NULL of "any":
 * plans are not restricted. */
const fr_framework *fr_executor_framework(int i);
const fr_target *fr_executor_at(int i, bool is_gpu);

#endif
