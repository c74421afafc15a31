/*
 * gpu_shapes.h: which kernels on which shapes to time on a GPU: what the
 * candidate plans of the models need, in bf16, tf32 and f32 and split over 1
 * to 8 ranks, whether they are here or not; grids of products and attention
 * for other models; and some with all operands in the L2, or none.
 */
#ifndef FR_CALIBRATE_GPU_GPU_SHAPES_H
#define FR_CALIBRATE_GPU_GPU_SHAPES_H

#include "calibrate/calibrate.h"
#include "calibrate/cpu/shapes.h"

FR_CHECKED fr_status fr_gpu_shapes_fill(fr_shapes *shapes,
                                        const fr_calibrate_options *options,
                                        const fr_fingerprint *machine,
                                        fr_err *err);

#endif
