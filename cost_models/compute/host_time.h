/*
 * host_time.h: what the host of a GPU does before an instruction can begin:
 * the framework's code between two kernels, on the one thread that issues
 * everything.  The host runs ahead of its device and is held where it needs a
 * result; a CUDA graph is issued as a whole.
 *
 * Seconds are those of a Xeon Platinum 8480C; fr_node_type.host_speed_frac of
 * other hosts divides them.
 */
#ifndef FR_COST_MODELS_COMPUTE_HOST_TIME_H
#define FR_COST_MODELS_COMPUTE_HOST_TIME_H

#include "plan/decide/plan.h"
#include "plan/op/op.h"
#include "spec/cluster/cluster.h"

/* n_kernels: that the instruction launches; communication: 1. */
double fr_host_issue_s(const fr_plan *plan, const fr_instr *instr,
                       int n_kernels);

/* Does the host wait for its result before it goes on? */
bool fr_host_is_held(const fr_plan *plan, const fr_instr *instr);

/* Returns the bandwidth that the memory of all sockets of a node reaches with
 * long arrays. */
double fr_host_memory_Bps(const fr_node_type *node);

#endif
