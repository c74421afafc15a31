/*
 * gpu_memory.h: what a training process takes of a GPU's memory besides its
 * tensors: the driver's context with the loaded kernels, and the buffers of
 * NCCL's communicators.  The replay of a program knows neither.
 */
#ifndef FR_COST_MODELS_GPU_GPU_MEMORY_H
#define FR_COST_MODELS_GPU_GPU_MEMORY_H

#include "plan/decide/plan.h"
#include "spec/cluster/cluster.h"

/*
 * Is it a framework that runs this plan on `device`, with an allocator that
 * finds memory meanwhile?  On CPUs, and with our own kernels, it is our runtime
 * with offsets that are fixed before.  What fr_placement.by_framework is to be.
 */
bool fr_gpu_is_by_framework(const fr_plan *plan, const fr_device_type *device);

typedef struct fr_gpu_memory {
    uint64_t context_bytes;
    uint64_t nccl_bytes;
    double rel_err; /* one standard error of their sum, relative */
} fr_gpu_memory;

/* Scratch that libraries keep for good; it comes from the framework's
 * allocator and so counts as allocated. */
enum { FR_GPU_MAX_WORKSPACES = 8 };

typedef struct fr_gpu_workspaces {
    int n;
    uint64_t n_bytes[FR_GPU_MAX_WORKSPACES];
} fr_gpu_workspaces;

/*
 * Returns the memory that one rank of the plan takes beyond tensors.  Facts:
 *   context   about 300 MB with CUDA >= 11.7, which loads kernels as they are
 *             used, more than 1 GB before (pytorch/pytorch #107667); 543 MiB
 *             per process on an A100 with CUDA 11.5 (#81257).  Volta is of
 *             the time before: 1113 MiB on a V100 with one element on it
 *             (bigscience-workshop/bigscience, experiments/tr3m-1B3.md)
 *   NCCL      per communicator 342 MB with 2 GPUs, 392 MB with 8 (measured for
 *             aiconfigurator's systems files, 2025); 544 MB with 2 and 688 MB
 *             with 3 or 4 A100 in 2023 (NVIDIA/nccl #964).  Ranks that only
 *             send to neighbours have fewer connections, not fewer buffers
 *             per connection.
 * A rank has a communicator for each group of its own: world, tp, cp, pp, dp
 * (with ZeRO over a part of it: shards and replicas), experts and the ranks
 * that hold the same ones, etp where it is not tp, and without ZeRO the stages
 * and tensor ranks of one replica, among which the norm of the gradients is
 * summed.
 */
fr_gpu_memory fr_gpu_memory_overhead(const fr_plan *plan,
                                     const fr_device_type *device);
/* At least, whatever ZeRO shards; for bounds over such plans. */
fr_gpu_memory fr_gpu_memory_least(const fr_plan *plan,
                                  const fr_device_type *device);

/*
 * Workspaces of a rank on `device`:
 *   cuBLAS    one per handle; autograd's thread has a handle of its own, so
 *             two.  32 MiB on Hopper and later, before that 2 x 4 MiB + 8 x 16
 *             KiB (PyTorch, aten/src/ATen/cuda/CublasHandlePool.cpp,
 *             parseChosenWorkspaceSize); AMD 32 MiB, 128 MiB on gfx94x, 95x
 *   TE        where layers are Transformer Engine's (fused kernels and fused
 *             attention, not lists of layers): 32 MiB on Hopper and later,
 *             else 4 MiB, and with experts four more for the streams of
 *             grouped products (TE pytorch/module/base.py,
 *             get_cublas_workspace_size_bytes)
 */
fr_gpu_workspaces fr_gpu_workspaces_of(const fr_plan *plan,
                                       const fr_model *model,
                                       const fr_device_type *device);

#endif
