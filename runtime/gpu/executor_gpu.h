/*
 * executor_gpu.h: the GPU backend of a training run: one rank per device.
 *
 * Which device a rank gets: of those that it sees, the one of its number
 * among the ranks of its machine (launchers that show each rank its own device
 * are fine too).  The rank's slab is one allocation of the size that the
 * program says.
 */
#ifndef FR_RUNTIME_GPU_EXECUTOR_GPU_H
#define FR_RUNTIME_GPU_EXECUTOR_GPU_H

#include "runtime/backend/gpu_driver.h"
#include "runtime/run/executor.h"

typedef struct fr_gpu_setup {
    const fr_gpu_system *system;
    bool is_shared;    /* several ranks may share a device: communication is
                          staged through the host.  For tests */
    bool is_launched;  /* no graphs */
    bool is_estimated; /* ask the library what it expects of collectives */
} fr_gpu_setup;

/* Borrows the setup.  Its open() is FR_INFEASIBLE where there are fewer
 * devices than ranks, FR_FAILURE where there is no driver. */
fr_backend fr_gpu_backend(const fr_gpu_setup *setup);

#endif
