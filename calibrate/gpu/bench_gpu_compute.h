/*
 * bench_gpu_compute.h: times the kernels of the GPU's runtime on rank 0.
 *
 * Before each timed execution the L2 is flushed; operands whose key says that
 * they are in the L2 are read once more.  A shape that cannot be timed is left
 * out with a line in the log and never ends the others.
 */
#ifndef FR_CALIBRATE_GPU_BENCH_GPU_COMPUTE_H
#define FR_CALIBRATE_GPU_BENCH_GPU_COMPUTE_H

#include "calibrate/cpu/shapes.h"
#include "calibrate/gpu/gpu_rig.h"
#include "calibrate/sampler.h"

/* Collective over the transport's ranks; rank 0's profile gets the points. */
FR_CHECKED fr_status fr_gpu_bench_compute(const fr_gpu_rig *rig,
                                          const fr_shapes *shapes,
                                          const fr_sampling *schedule,
                                          fr_profile *profile, fr_err *err);

/* Largest arena that the shapes can use, at most 16 GiB. */
uint64_t fr_gpu_bench_compute_bytes(const fr_shapes *shapes);

#endif
