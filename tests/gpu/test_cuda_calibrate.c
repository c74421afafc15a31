/*
 * The CUDA kernels under calibration: every kind of kernel, on operands that
 * calibration makes, in every precision; none may be left out.  Compiled
 * twice: for the emulation, on a fake device (make check), and for a GPU
 * (make check-gpu).
 */
#include "calibrate/gpu/bench_gpu_compute.h"
#include "calibrate/gpu/bench_gpu_device.h"
#include "program/lower/step/lower.h"
#include "runtime/gpu/gpu_choice.h"
#include "tests/check.h"
#include "tests/unit/runtime/gpu_show.h"

static const fr_dtype precisions[] = {FR_DTYPE_BF16, FR_DTYPE_TF32,
                                      FR_DTYPE_F32};

typedef struct bench {
    gpu_fake fake;
    fr_gpu_system system;
    fr_gpu_rig rig;
    fr_fingerprint machine;
    fr_shapes shapes;
    fr_model model;
    fr_job job;
} bench;

static void add_plan(bench *b, const fr_plan *plan)
{
    fr_placement placement = {.n_ranks = fr_plan_world(plan)};
    fr_program *program = NULL;
    fr_err err = {0};

    if (fr_plan_check_executable_gpu(plan, &b->model, &b->job, NULL) == FR_OK &&
        CHECK_OK(fr_lower(&b->model, &b->job, plan, &placement, &program, &err),
                 &err))
        CHECK_OK(fr_shapes_add_program(&b->shapes, program, &b->machine, &err),
                 &err);
}

static void add_plans(bench *b, fr_dtype precision)
{
    fr_plan plan;

    fr_plan_init(&plan);
    plan.precision = precision;
    plan.is_flash = true;
    plan.execution.kernels = FR_KERNELS_OWN;
    plan.micro_batch = 2;
    plan.grad_dtype = FR_DTYPE_F32;
    for (int kind = 0; kind < FR_OPTIMIZER_N; kind++) {
        b->job.optimizer = (fr_optimizer_kind)kind;
        add_plan(b, &plan);
    }
    plan.tp = 2;
    plan.is_sequence_parallel = true;
    add_plan(b, &plan);
    plan.tp = 1;
    plan.dp = 2;
    plan.zero_stage = 1;
    add_plan(b, &plan);
    plan.zero_stage = 0;
    plan.has_error_feedback = true;
    plan.compressor_rank = 2;
    plan.compressor_density = 0.05;
    for (int kind = 1; kind < fr_n_compressors; kind++) {
        plan.compressor = (fr_compressor_kind)kind;
        add_plan(b, &plan);
    }
}

static void add_model(bench *b, const char *text)
{
    fr_err err = {0};

    if (!CHECK_OK(fr_model_parse("tiny", text, strlen(text), &b->model, &err),
                  &err))
        return;
    b->model.n_layers = 1;
    for (int i = 0; i < 3; i++)
        add_plans(b, precisions[i]);
    fr_model_release(&b->model);
}

#ifdef FR_EMULATED

static bool open_device(bench *b, fr_transport *transport)
{
    fr_err err = {0};

    gpu_fake_init(&b->fake, 1);
    b->fake.emulated = fr_kernels_cuda;
    b->fake.kernels_create = fr_cuda_kernels_create;
    b->fake.kernels_destroy = fr_cuda_kernels_destroy;
    b->system = gpu_fake_system(&b->fake);
    return CHECK_OK(
        fr_gpu_choose(&b->system, transport, false, &b->rig.gpu, &err), &err);
}

#else

static bool open_device(bench *b, fr_transport *transport)
{
    const fr_gpu_system *cuda = NULL;
    fr_err err = {0};
    int n = 0;

    if (fr_gpu_system_cuda(&cuda, &err) != FR_OK ||
        cuda->driver->count(NULL, &n, &err) != FR_OK) {
        (void)snprintf(check_state.skipped, sizeof check_state.skipped,
                       "%.200s", err.text);
        return false;
    }
    b->system = *cuda;
    return CHECK_OK(
        fr_gpu_choose(&b->system, transport, false, &b->rig.gpu, &err), &err);
}

#endif

static void time_all(bench *b, fr_transport *transport)
{
    fr_sampling schedule;
    fr_profile profile;
    fr_err err = {0};

    fr_profile_init(&profile);
    fr_sampling_init(&schedule);
    schedule.budget_s = 0.1;
    b->rig.system = &b->system;
    b->rig.driver = b->system.driver;
    b->rig.transport = transport;
    b->rig.timeout_s = 60;
    if (CHECK_OK(fr_gpu_rig_open(&b->rig,
                                 fr_gpu_bench_compute_bytes(&b->shapes), &err),
                 &err)) {
        fr_gpu_bench_launches(&b->rig, &profile);
        CHECK(profile.gpu.launch_s > 0);
        CHECK_OK(fr_gpu_bench_compute(&b->rig, &b->shapes, &schedule, &profile,
                                      &err),
                 &err);
        CHECK_INT(profile.n_compute, b->shapes.list.n);
        fr_gpu_rig_close(&b->rig);
    }
    fr_profile_release(&profile);
}

static void test_kernels(void)
{
    fr_err err = {0};
    fr_transport *transport = NULL;
    bench b = {0};

    fr_shapes_init(&b.shapes);
    fr_job_init(&b.job);
    b.job.seq = 16;
    b.job.global_batch = 4;
    snprintf(b.machine.gpu.name, sizeof b.machine.gpu.name, "any");
    add_model(&b, gpu_show_gpt2);
    add_model(&b, gpu_show_llama);
    CHECK(b.shapes.list.n > 100);
    CHECK_OK(fr_transport_alone_create(60, &transport, &err), &err);
    if (open_device(&b, transport))
        time_all(&b, transport);
    fr_transport_destroy(transport);
    fr_shapes_release(&b.shapes);
}

CHECK_MAIN({"kernels", test_kernels})
