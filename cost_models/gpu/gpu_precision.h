/*
 * gpu_precision.h: which devices can multiply in a plan's precision.
 */
#ifndef FR_COST_MODELS_GPU_GPU_PRECISION_H
#define FR_COST_MODELS_GPU_GPU_PRECISION_H

#include "plan/op/dtype.h"
#include "spec/cluster/cluster.h"

/* Nodes before the first that has a device without it: ranks are placed node
 * by node.  GPUs have what their peaks list (TF32 falls back to F32), CPUs
 * all. */
int64_t fr_nodes_with_precision(const fr_cluster *cluster, fr_dtype precision);

/* FR_INFEASIBLE: what a device that has it not is refused with. */
FR_CHECKED fr_status fr_fail_precision(const char *device_id,
                                       fr_dtype precision, fr_err *err);

#endif
