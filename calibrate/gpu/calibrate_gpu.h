/*
 * calibrate_gpu.h: measures GPUs and what joins them into a profile, through
 * the tables of gpu_driver.h and by the kernels and collectives that
 * `forerun run --backend cuda` calls.  docs/calibration.md says how.
 */
#ifndef FR_CALIBRATE_GPU_CALIBRATE_GPU_H
#define FR_CALIBRATE_GPU_CALIBRATE_GPU_H

#include "calibrate/calibrate.h"
#include "runtime/gpu/executor_gpu.h"

/*
 * Collective, one rank per device, which the calling thread opens and closes.
 * Rank 0's *out is the profile, elsewhere it is left empty.  What cannot be
 * measured (memory, NCCL, peers) is left out with a line in the log.
 * FR_FAILURE: there is no GPU, or nothing could be measured; FR_INFEASIBLE:
 * fewer devices than ranks and setup->is_shared is not set.
 * options->budget_s 0: 120 s, quick 30 s.
 */
FR_CHECKED fr_status fr_calibrate_gpu(fr_transport *transport,
                                      const fr_gpu_setup *setup,
                                      const fr_calibrate_options *options,
                                      fr_profile *out, fr_err *err);

#endif
