/*
 * cuda_show.h: a gpu_show with the CUDA kernels: emulated on fake devices
 * (FR_EMULATED), else on the GPU of this machine.
 */
#ifndef FR_TESTS_CUDA_SHOW_H
#define FR_TESTS_CUDA_SHOW_H

#include "tests/check.h"
#include "tests/unit/runtime/gpu_show.h"

/* `fake` is ready, and lives as long as the show.  false: there is no GPU,
 * the test is skipped. */
static inline bool gpu_show_on_cuda(gpu_show *show, gpu_fake *fake)
{
#ifdef FR_EMULATED
    fake->emulated = fr_kernels_cuda;
    fake->kernels_create = fr_cuda_kernels_create;
    fake->kernels_destroy = fr_cuda_kernels_destroy;
    show->fake = fake;
#else
    fr_err err = {0};
    int n = 0;

    (void)fake;
    if (fr_gpu_system_cuda(&show->system, &err) != FR_OK ||
        show->system->driver->count(NULL, &n, &err) != FR_OK) {
        (void)snprintf(check_state.skipped, sizeof check_state.skipped,
                       "%.200s", err.text);
        return false;
    }
#endif
    return true;
}

#endif
