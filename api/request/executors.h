/*
 * executors.h: the names of --for, which say who has to be able to execute a
 * plan: forerun, any, then the targets.
 */
#ifndef FR_API_REQUEST_EXECUTORS_H
#define FR_API_REQUEST_EXECUTORS_H

#include "plan/target/target.h"

/* Name i, NULL past the last. */
const char *fr_executor_name(int i);

/* The target of that name; forerun's is its runtime for GPUs or for CPUs.  NULL
 * of "any": plans are not restricted. */
const fr_target *fr_executor_at(int i, bool is_gpu);

#endif
