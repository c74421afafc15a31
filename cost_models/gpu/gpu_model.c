/*
 * gpu_model.c: a device's sustained rates from its datasheet and what its
 * generation was measured to reach.
 */
#include "cost_models/gpu/gpu_model.h"

#include "core/base/text.h"
#include "spec/cluster/cluster_power.h"

#include <math.h>
#include <string.h>

/* However much power there is: the best that is measured anywhere. */
static const double most_of_the_peak = 0.97;
/* These values are used if a datasheet has none. */
static const double unknown_cores = 100.0;
static const double unknown_memory_Bps = 1e12;
static const double unknown_cache_bytes = 40.0 * 1048576.0;

static const char *const family_names[FR_GPU_FAMILY_N] = {"product",
                                                          "grouped product",
                                                          "attention forward",
                                                          "attention backward",
                                                          "stream",
                                                          "rows",
                                                          "layers"};

const char *fr_gpu_family_name(fr_gpu_family family)
{
    return (unsigned)family < FR_GPU_FAMILY_N ? family_names[family] : "?";
}

/* Dense peak of a unit, 0: it has none. */
static double peak_flops(const fr_device_type *device, fr_gpu_math math)
{
    static const char *const names[FR_GPU_MATH_N] = {
        [FR_GPU_MATH_F32] = "fp32", [FR_GPU_MATH_TF32] = "tf32",
        [FR_GPU_MATH_F16] = "fp16", [FR_GPU_MATH_BF16] = "bf16",
        [FR_GPU_MATH_FP8] = "fp8",  [FR_GPU_MATH_FP4] = "fp4"};

    return fr_device_peak_flops(device, names[math]);
}

/* Returns the peak of 16-bit products: of bf16, or of fp16 on devices without
 * bf16. */
static double peak_16_flops(const fr_device_type *device)
{
    const double flops = peak_flops(device, FR_GPU_MATH_BF16);
    return flops > 0.0 ? flops : peak_flops(device, FR_GPU_MATH_F16);
}

/* Measured of this generation and unit, or the nearest that was. */
static double share_of(const fr_gpu_constants *c, fr_gpu_generation generation,
                       fr_gpu_math math, bool *is_guessed)
{
    fr_gpu_generation other = fr_gpu_generations[generation].stands_in;
    math = fr_gpu_math_fitted(math);
    double share = c->achievable[generation][math];

    *is_guessed = share <= 0.0;
    if (share <= 0.0)
        share = c->achievable[generation][FR_GPU_MATH_F16];
    if (share <= 0.0)
        share = c->achievable[other][math];
    if (share <= 0.0)
        share = c->achievable[other][FR_GPU_MATH_F16];
    return share > 0.0 ? share : 0.7;
}

/*
 * The clock under load is what the power allows: no card holds its boost
 * clock through large products.  (The published maxima of A100 at 250, 300
 * and 400 W, of H100 at 700 W and GH200 at 900 W differ by it.)
 */
static double power_factor(const fr_device_type *device, fr_gpu_math math,
                           double power_exponent)
{
    double reference =
        fr_gpu_generations[fr_gpu_generation_of(device)].reference_w_per_tflops;
    double peak = fr_gpu_math_is_16(math) ? peak_flops(device, math)
                                          : peak_16_flops(device);

    if (reference <= 0.0 || device->power_w <= 0.0 || peak <= 0.0)
        return 1.0;
    return pow(fr_device_power_w(device) / (peak / 1e12) / reference,
               power_exponent);
}

bool fr_gpu_knows_power(const fr_device_type *device)
{
    return device->kind == FR_DEVICE_GPU && device->power_w > 0 &&
           fr_gpu_generations[fr_gpu_generation_of(device)]
                   .reference_w_per_tflops > 0 &&
           peak_16_flops(device) > 0;
}

void fr_gpu_model_init_with(const fr_device_type *device,
                            const fr_gpu_constants *constants,
                            fr_gpu_model *out)
{
    fr_gpu_model model = {.constants = constants};

    fr_text_copy_cut(model.id, sizeof model.id, device->id);
    model.generation = fr_gpu_generation_of(device);
    model.attention = fr_gpu_generations[model.generation].attention;
    for (int i = 0; i < FR_GPU_MATH_N; i++) {
        fr_gpu_math math = (fr_gpu_math)i;
        double factor = power_factor(device, math, constants->power_exponent);
        double limit =
            power_factor(device, math, constants->sustained_exponent);
        double share =
            share_of(constants, model.generation, math, &model.is_guessed[i]);
        double sustained =
            constants->sustained[model.generation][fr_gpu_math_fitted(math)] *
            limit;
        double peak = peak_flops(device, math);
        /* Tensor cores alone meet the limit. */
        bool is_limited = math != FR_GPU_MATH_F32;
        double first = is_limited ? factor : 1.0;
        double later = is_limited ? fmin(factor, sustained) : 1.0;

        model.burst_flops[i] = fmin(share * first, most_of_the_peak) * peak;
        model.flops[i] = fmin(share * later, most_of_the_peak) * peak;
    }
    /* NVIDIA, "Inside NVIDIA Blackwell Ultra" (2025-08): twice the
     * exponentials of Blackwell. */
    model.exp_ratio = model.generation == FR_GPU_BLACKWELL_ULTRA ? 2.0 : 1.0;
    model.n_cores =
        device->n_cores > 0 ? (double)device->n_cores : unknown_cores;
    model.memory_Bps =
        device->memory_Bps > 0.0 ? device->memory_Bps : unknown_memory_Bps;
    model.cache_bytes = device->cache_bytes > 0 ? (double)device->cache_bytes
                                                : unknown_cache_bytes;
    *out = model;
}

void fr_gpu_model_init(const fr_device_type *device, fr_gpu_model *out)
{
    fr_gpu_model_init_with(device, &fr_gpu_constants_fitted, out);
}

fr_gpu_math fr_gpu_math_of(const fr_gpu_model *model, fr_dtype dtype)
{
    fr_gpu_math math = FR_GPU_MATH_N;

    switch (dtype) {
    case FR_DTYPE_F32:
        math = FR_GPU_MATH_F32;
        break;
    case FR_DTYPE_TF32: /* without such a unit the library uses fp32 */
        math = model->flops[FR_GPU_MATH_TF32] > 0.0 ? FR_GPU_MATH_TF32
                                                    : FR_GPU_MATH_F32;
        break;
    case FR_DTYPE_BF16:
        math = FR_GPU_MATH_BF16;
        break;
    case FR_DTYPE_F16:
        math = FR_GPU_MATH_F16;
        break;
    case FR_DTYPE_FP8:
        math = FR_GPU_MATH_FP8;
        break;
    case FR_DTYPE_FP4:
        math = FR_GPU_MATH_FP4;
        break;
    default:
        return FR_GPU_MATH_N;
    }
    /* Cards that list 16 bits alone do everything wider there. */
    if (model->flops[math] <= 0.0 && math < FR_GPU_MATH_F16)
        math = model->flops[FR_GPU_MATH_F16] > 0.0 ? FR_GPU_MATH_F16
                                                   : FR_GPU_MATH_BF16;
    return model->flops[math] > 0.0 ? math : FR_GPU_MATH_N;
}

fr_gpu_attention_kind fr_gpu_attention_kind_of(const fr_gpu_model *model,
                                               fr_flash_kind flash)
{
    if (flash == FR_FLASH_1)
        return FR_GPU_ATTENTION_FIRST;
    if (flash == FR_FLASH_2 && model->attention != FR_GPU_ATTENTION_SYNC)
        return FR_GPU_ATTENTION_LATER;
    return model->attention;
}
