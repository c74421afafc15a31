/*
 * gpu_memory.h: what a training process takes of a GPU's memory besides its
 * tensors: the driver's context with the loaded kernels, and the buffers of
 * NCCL's communicators.  The replay of a program knows neither.
 */
#ifndef FR_COST_MODELS_GPU_MEMORY_H
#define FR_COST_MODELS_GPU_MEMORY_H

#include "plan/plan.h"

typedef struct fr_gpu_memory {
    uint64_t context_bytes;
    uint64_t nccl_bytes;
    double rel_err; /* one standard error of their sum, relative */
} fr_gpu_memory;

/*
 * Of one rank of the plan.  Facts:
 *   context   about 300 MB with CUDA >= 11.7, which loads kernels as they are
 *             used, more than 1 GB before (pytorch/pytorch #107667); 543 MiB
 *             per process on an A100 with CUDA 11.5 (#81257)
 *   NCCL      per communicator 342 MB with 2 GPUs, 392 MB with 8 (measured for
 *             aiconfigurator's systems files, 2025); 544 MB with 2 and 688 MB
 *             with 3 or 4 A100 in 2023 (NVIDIA/nccl #964).  Ranks that only
 *             send to neighbours have fewer connections, not fewer buffers
 *             per connection.
 * A rank has a communicator for each axis with more than one rank.
 */
fr_gpu_memory fr_gpu_memory_besides(const fr_plan *plan);

#endif
