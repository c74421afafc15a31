/*
 * predict_memory.h: what a rank holds at most, and whether that fits.
 *
 * On CPUs the runtime packs all into one slab, so the slab is the answer.  On
 * GPUs a framework asks an allocator for each tensor: the blocks of a rank
 * program are replayed through one (caching_allocator.h), with the workspaces
 * of libraries, and the driver's context and NCCL's buffers stand beside that
 * (gpu_memory.h).  forerun's own runtime has a slab there too: where a profile
 * says what it holds besides, the two are the answer.
 */
#ifndef FR_SIM_PREDICT_PREDICT_MEMORY_H
#define FR_SIM_PREDICT_PREDICT_MEMORY_H

#include "cost_models/base/cost.h"
#include "sim/replay/replay.h"
#include "spec/result/prediction.h"

/* By how much tensors that a framework allocates may be mispredicted, one
 * standard error, as a share of them. */
double fr_memory_rel_err(void);

/* Standard errors that have to be free for a plan to fit with such a
 * probability: 1.28 for 0.9; 0 for 0.5 and less.  Below 1. */
double fr_memory_errors_of(double confidence);

/* Bytes that are lacking for that; 0: it fits. */
uint64_t fr_memory_short_by(const fr_prediction *prediction, double confidence);

/* Fills out->memory for the rank with the least headroom.  FR_NO_MEMORY. */
FR_CHECKED fr_status fr_predict_memory(const fr_replay_context *context,
                                       const fr_cost_model *costs,
                                       fr_prediction *out, fr_err *err);

#endif
