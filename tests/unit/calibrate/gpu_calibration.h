/*
 * gpu_calibration.h: one calibration of all its ranks, a thread each, on fake
 * GPUs whose kernels, copies and exchanges take times by a law that is written
 * in gpu_calibration.c and nowhere else.
 */
#ifndef FR_TESTS_GPU_CALIBRATION_H
#define FR_TESTS_GPU_CALIBRATION_H

#include "calibrate/gpu/calibrate_gpu.h"
#include "tests/unit/runtime/gpu_fake.h"

extern const gpu_fake_law gpu_calibration_law;

typedef struct gpu_calibration {
    gpu_fake fake;
    fr_gpu_system system;
    fr_gpu_setup setup;
    const fr_gpu_comm_driver *comm; /* instead of the fake's */
    fr_cuda_kernel_fn norm_fwd;     /* likewise */
    double timeout_s;               /* of the ranks' transport */
    fr_model model;
    fr_job job;
    fr_calibrate_case one;
    fr_calibrate_options options;
    fr_log log;
    fr_profile profile;
} gpu_calibration;

/* Two layers of GPT-2, quick, within two seconds. */
void gpu_calibration_init(gpu_calibration *b, int n_devices);
/* All ranks' status; rank 0's profile. */
fr_status gpu_calibration_run(gpu_calibration *b, int n_ranks,
                              const int32_t *nodes, fr_err *err);
void gpu_calibration_release(gpu_calibration *b);

#endif
