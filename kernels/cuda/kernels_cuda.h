/*
 * kernels_cuda.h: the CUDA kernel of every compute instruction (op.h gives
 * shapes and operands; dtype, grad_dtype and the plan's precision say of what
 * width they are).  The functions only launch: they return before the work is
 * done, and a failure is one of launching, or FR_INPUT for what has no kernel
 * (dtypes other than F32, TF32 and BF16).  Sums are made in a fixed order, so a
 * rerun gives the same bits.
 *
 * Weights of 16 bits: OPT_STEP works on the float32 master copy behind the
 * moments in the operand `opt` (m[n], v[n] if there are two, master[n]) and
 * writes both; whoever loads weights fills both (CAST).
 *
 * A step's launches are captured into a graph and replayed, so nothing that
 * changes from step to step may be in a launch's arguments: it lies in
 * fr_cuda_step, in the memory of the device.
 *
 * The header is plain C and names no type of CUDA: what knows none of it (the
 * interpreter, tests on an emulated device) can include it.
 */
#ifndef FR_KERNELS_CUDA_KERNELS_CUDA_H
#define FR_KERNELS_CUDA_KERNELS_CUDA_H

#include "core/base/err.h"
#include "kernels/cpu/kernels_cpu.h"

/* The values that differ between steps; the host writes them before a step
 * begins. */
typedef struct fr_cuda_step {
    int64_t i_step; /* from 0 */
    float learning_rate;
    float moment1_scale, moment2_scale; /* Adam's bias corrections, 1 / (1 -
                                           beta^(i_step + 1)) */
} fr_cuda_step;

/* Handles and scratch of one device: cuBLASLt, tuned algorithms, workspace. */
typedef struct fr_cuda_kernels fr_cuda_kernels;

typedef struct fr_cuda_launch {
    fr_kernel_call call;      /* ptr: in the device's memory; i_step unused */
    const fr_cuda_step *step; /* in the device's memory */
    void *stream;             /* cudaStream_t */
    fr_cuda_kernels *kernels;
} fr_cuda_launch;

typedef fr_status (*fr_cuda_kernel_fn)(const fr_cuda_launch *launch,
                                       fr_err *err);

/* Indexed by fr_op; NULL for communication, LOAD_TOKENS, HOST_COPY and what
 * has no kernel yet. */
extern const fr_cuda_kernel_fn fr_kernels_cuda[FR_OP_N];

/*
 * Creates them on the current device.  Their workspace serves one launch at a
 * time, so every stream that kernels are launched on needs its own.  FR_FAILURE
 * with CUDA's reason.
 */
FR_CHECKED fr_status fr_cuda_kernels_create(fr_cuda_kernels **out, fr_err *err);
void fr_cuda_kernels_destroy(fr_cuda_kernels *kernels); /* takes NULL */

/*
 * Chooses how a product is computed, by timing what the library proposes on
 * the operands of the launch; those it writes are lost.  Once per product and
 * stream before weights are loaded, never while a stream is captured.  Does
 * nothing for other operations, nor for a shape that is known.  Without it the
 * library's first proposal is taken.
 */
FR_CHECKED fr_status fr_cuda_kernels_tune(const fr_cuda_launch *launch,
                                          fr_err *err);

#endif
