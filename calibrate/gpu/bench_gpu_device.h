/*
 * bench_gpu_device.h: what a GPU does besides its kernels' work: launches and
 * graphs, copies to the host, within the device and to its neighbour, and the
 * rate of products once the clock has settled.  Rank 0 measures; each part
 * that cannot be is left out with a line in the log.
 */
#ifndef FR_CALIBRATE_GPU_BENCH_GPU_DEVICE_H
#define FR_CALIBRATE_GPU_BENCH_GPU_DEVICE_H

#include "calibrate/cpu/shapes.h"
#include "calibrate/gpu/gpu_rig.h"

/* Fills profile->gpu's times of launches, and the rig's bracket.  First. */
void fr_gpu_bench_launches(fr_gpu_rig *rig, fr_profile *profile);

/* Points "copy_h2d", "copy_d2h" (scopes "pinned", "pageable") and "copy_d2d"
 * (scope "device") by size, one way. */
FR_CHECKED fr_status fr_gpu_bench_copies(const fr_gpu_rig *rig, bool is_quick,
                                         fr_profile *profile, fr_err *err);

/* "copy_peer" (scope "peer"): to the memory of the next device that this
 * process sees, if there is one that it reaches directly. */
FR_CHECKED fr_status fr_gpu_bench_peer(const fr_gpu_rig *rig, bool is_quick,
                                       fr_profile *profile, fr_err *err);

/*
 * After the kernels: of each dtype the largest LINEAR_FWD that was timed, run
 * until its rate has settled or limit_s are over: rates "gemm_bf16" as it was
 * timed and "gemm_steady_bf16", and what the sensors say meanwhile.
 */
FR_CHECKED fr_status fr_gpu_bench_steady(const fr_gpu_rig *rig,
                                         const fr_shapes *shapes,
                                         double limit_s, fr_profile *profile,
                                         fr_err *err);

#endif
