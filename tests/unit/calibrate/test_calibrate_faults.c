/*
 * test_calibrate_faults.c: what goes wrong while fake GPUs are calibrated: it
 * ends in time, and says why or leaves out what it concerns.
 */
#include "tests/check.h"
#include "tests/unit/calibrate/gpu_calibration.h"

/* A kernel that never ends: the device is given up, and that is the end. */
static void test_hang(void)
{
    fr_err err = {0};
    gpu_calibration b;

    gpu_calibration_init(&b, 2);
    b.timeout_s = 6;
    b.fake.fault.device = 0;
    b.fake.fault.op = FR_OP_GELU_FWD;
    b.fake.fault.kind = GPU_FAKE_RANK_HANGS;
    CHECK(gpu_calibration_run(&b, 2, NULL, &err) == FR_FAILURE);
    CHECK_HAS(err.text, "rank 0: the device was given up");
    /* By the run that asks for the baseline, and by the benches. */
    CHECK_INT(atomic_load(&b.fake.n_abandoned), 2);
    gpu_calibration_release(&b);
}

/* If a launch waits for the device, a held stream continues by itself: a few
 * points are lost, and the rest is timed without holding. */
static void test_blocking(void)
{
    fr_err err = {0};
    gpu_calibration b;

    gpu_calibration_init(&b, 1);
    b.fake.is_blocking = true;
    if (CHECK_OK(gpu_calibration_run(&b, 1, NULL, &err), &err))
        CHECK(b.profile.n_compute > 200);
    gpu_calibration_release(&b);
}

/* Refused while a stream waits for a word, as beside an exchange. */
static fr_status refuse_beside(const fr_cuda_launch *launch, fr_err *err)
{
    fr_gpu *gpu = ((const gpu_fake_stream *)launch->stream)->gpu;

    if (atomic_load(&gpu->n_awaits) > 0)
        return fr_fail(err, FR_FAILURE, "too many resources requested");
    return gpu->fake->kernels[FR_OP_NORM_BWD](launch, err);
}

/* Exchanges are under way when a kernel beside them is refused: they have left
 * the links' memory before it is freed. */
static void test_refused_beside(void)
{
    fr_err err = {0};
    int n = 0;
    gpu_calibration b;

    gpu_calibration_init(&b, 1);
    b.setup.is_shared = true;
    b.norm_fwd = refuse_beside;
    if (CHECK_OK(gpu_calibration_run(&b, 2, NULL, &err), &err)) {
        for (size_t i = 0; i < b.profile.n_sharing; i++)
            n += strcmp(b.profile.sharing[i].victim, "norm_fwd") == 0;
        CHECK_INT(n, 0);
        CHECK(b.profile.n_sharing > 0);
    }
    CHECK_INT(atomic_load(&b.fake.n_early_frees), 0);
    CHECK_INT(atomic_load(&b.fake.n_abandoned), 0);
    gpu_calibration_release(&b);
}

CHECK_MAIN({"hang", test_hang}, {"blocking", test_blocking},
           {"refused_beside", test_refused_beside})
