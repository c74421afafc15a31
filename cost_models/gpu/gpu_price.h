/*
 * gpu_price.h: what the GPUs of a cluster and their hosts take for what does
 * not communicate: measured by a profile where it is of such a device
 * (gpu_measured.h), else modelled (gpu_model.h, host_time.h).
 */
#ifndef FR_COST_MODELS_GPU_GPU_PRICE_H
#define FR_COST_MODELS_GPU_GPU_PRICE_H

#include "cost_models/base/cost.h"

typedef struct fr_gpu_prices fr_gpu_prices;

/* Borrows both; profile NULL, or of a CPU: nothing is measured. */
FR_CHECKED fr_status fr_gpu_prices_create(const fr_profile *profile,
                                          const fr_cluster *cluster,
                                          fr_gpu_prices **out, fr_err *err);
void fr_gpu_prices_destroy(fr_gpu_prices *prices); /* takes NULL */

/* Was a device of the cluster measured?  Of this node? */
bool fr_gpu_prices_has_measured(const fr_gpu_prices *prices);
bool fr_gpu_prices_is_measured(const fr_gpu_prices *prices, int64_t node);

/* A compute or I/O instruction on the node's kind of GPU; memory_frac is 0,
 * its memory is its own, but of what the host does of the host's.  As
 * fr_cost_compute(). */
FR_CHECKED fr_status fr_gpu_prices_ask(const fr_gpu_prices *prices,
                                       const fr_instr *instr, int64_t node,
                                       fr_cost *out, fr_err *err);

/*
 * Returns the host's time before an instruction of n_kernels (communication: 1)
 * can begin.  It is that of host_time.h on the node's processor, or the
 * measured time of forerun's own runtime for a graph of the step.
 */
double fr_gpu_prices_issue_s(const fr_gpu_prices *prices, const fr_plan *plan,
                             const fr_instr *instr, int n_kernels,
                             int64_t node);

/* The memory that forerun's own runtime holds on a measured GPU beyond its
 * slab. */
typedef struct fr_own_memory {
    uint64_t alone_bytes;     /* context, libraries, one stream's workspace */
    uint64_t workspace_bytes; /* of each further stream with kernels */
    uint64_t comm_world_bytes, comm_pair_bytes, comm_group_bytes;
} fr_own_memory;

/* false: it was not measured, or the plan is another framework's. */
bool fr_gpu_prices_own_memory(const fr_gpu_prices *prices, const fr_plan *plan,
                              int64_t node, fr_own_memory *out);

#endif
