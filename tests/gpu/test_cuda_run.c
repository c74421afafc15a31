/*
 * Whole training runs with the CUDA kernels: losses of the CPU within what the
 * precision allows, several ranks on one device staged through the host.
 * Compiled twice: for the emulation, on fake devices (make check), and for a
 * GPU (make check-gpu).
 */
#include "tests/check.h"
#include "tests/gpu/cuda_show.h"
#include "tests/unit/runtime/gpu_show.h"

typedef struct way {
    const char *name;
    bool is_llama;
    fr_dtype precision, grad_dtype;
    int32_t dp, tp, pp;
    int32_t zero;
    double tolerance; /* of losses, relative */
} way;

static const way ways[] = {
    {"f32", false, FR_DTYPE_F32, FR_DTYPE_F32, 1, 1, 1, 0, 1e-4},
    {"llama f32", true, FR_DTYPE_F32, FR_DTYPE_F32, 1, 1, 1, 0, 1e-4},
    {"tf32", false, FR_DTYPE_TF32, FR_DTYPE_F32, 1, 1, 1, 0, 2e-3},
    {"bf16", false, FR_DTYPE_BF16, FR_DTYPE_F32, 1, 1, 1, 0, 1e-2},
    {"llama bf16", true, FR_DTYPE_BF16, FR_DTYPE_BF16, 1, 1, 1, 0, 1e-2},
    {"dp2 zero1 bf16", false, FR_DTYPE_BF16, FR_DTYPE_F32, 2, 1, 1, 1, 1e-2},
    {"tp2 bf16", true, FR_DTYPE_BF16, FR_DTYPE_F32, 1, 2, 1, 0, 1e-2},
    {"pp2 f32", false, FR_DTYPE_F32, FR_DTYPE_F32, 1, 1, 2, 0, 1e-4},
};

static void prepare(gpu_show *show, const way *w)
{
    gpu_show_init(show);
    show->model_text = w->is_llama ? gpu_show_llama : gpu_show_gpt2;
    show->plan.dp = w->dp;
    show->plan.tp = w->tp;
    show->plan.pp = w->pp;
    show->plan.zero_stage = w->zero;
    show->plan.micro_batch = 4 / w->dp;
    show->plan.is_flash = true;
    show->plan.precision = w->precision;
    show->plan.grad_dtype = w->grad_dtype;
    show->plan.execution.kernels = FR_KERNELS_OWN;
}

static void check_way(const way *w)
{
    way alone = *w;
    gpu_show cpu, gpu;
    gpu_fake fake;

    alone.dp = alone.tp = alone.pp = 1;
    alone.zero = 0;
    alone.precision = alone.grad_dtype = FR_DTYPE_F32;
    prepare(&cpu, &alone);
    prepare(&gpu, w);
    gpu.is_shared = true;
    gpu_fake_init(&fake, 1);
    if (gpu_show_on_cuda(&gpu, &fake) && gpu_show_perform_well(&gpu) &&
        gpu_show_perform_well(&cpu)) {
        for (int i = 0; i < cpu.job.n_steps; i++)
            check_that(fabs(gpu.result.loss[i] / cpu.result.loss[i] - 1) <=
                           w->tolerance,
                       __FILE__, __LINE__, "%s: step %d: loss %.7g, CPU %.7g",
                       w->name, i, gpu.result.loss[i], cpu.result.loss[i]);
        CHECK(cpu.result.loss[5] < 0.97 * cpu.result.loss[0]);
    }
    gpu_show_release(&cpu);
    gpu_show_release(&gpu);
    gpu_fake_release(&fake);
}

static void test_ways(void)
{
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        check_way(&ways[i]);
}

CHECK_MAIN({"ways", test_ways})
