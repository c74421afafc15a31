/*
 * gpu_generation.c: the table of generations of GPUs.
 */
#include "cost_models/base/gpu_generation.h"

#include <string.h>

/*
 * NVLink carries packets with headers: of 25 (Blackwell: 50) GB/s per link
 * and direction NCCL counts 20, 20, 20.6 and 40.1 GB/s for SM 70, 80, 90 and
 * 100 (NCCL 2.30, src/graph/topo.h); limits of LL and shares of NVLS:
 * src/graph/tuning.cc.
 */
static const fr_gpu_link_rates sm70 = {.capability = 70,
                                       .nvlink_share = 20.0 / 25.0,
                                       .ll_most_Bps = {39e9, 39e9, 20.4e9},
                                       .n_channels = 12};
static const fr_gpu_link_rates sm80 = {.capability = 80,
                                       .nvlink_share = 20.0 / 25.0,
                                       .ll_most_Bps = {87.7e9, 22.5e9, 19e9},
                                       .n_channels = 24,
                                       .is_known = true};
static const fr_gpu_link_rates sm90 = {.capability = 90,
                                       .nvlink_share = 20.6 / 25.0,
                                       .ll_most_Bps = {141e9, 45e9, 35e9},
                                       .nvls_share = 0.85,
                                       .n_channels = 24,
                                       .is_known = true,
                                       .is_new = true};
static const fr_gpu_link_rates sm100 = {.capability = 100,
                                        .nvlink_share = 40.1 / 50.0,
                                        .ll_most_Bps = {282e9, 90e9, 70e9},
                                        .nvls_share = 0.74,
                                        .n_channels = 24,
                                        .is_known = true,
                                        .is_new = true};

enum { KIB = 1024, MIB = 1024 * KIB };

/* PyTorch's default where a generation has none of its own: two buffers of
 * 4 MiB and eight of 16 KiB (":4096:2:16:8"). */
enum { SMALL_BLAS = 2 * 4 * MIB + 8 * 16 * KIB };

/* Reference cards: V100 SXM2, A100 SXM, L40S, H100 SXM, B200, B300, one die of
 * MI250X, MI300X, MI355X. */
const fr_gpu_generation_row fr_gpu_generations[FR_GPU_GENERATION_N] = {
    [FR_GPU_VOLTA] = {"volta", 300.0 / 125.0, FR_GPU_AMPERE,
                      FR_GPU_ATTENTION_SYNC, true, SMALL_BLAS, 0, &sm70},
    [FR_GPU_AMPERE] = {"ampere", 400.0 / 312.0, FR_GPU_HOPPER,
                       FR_GPU_ATTENTION_SYNC, false, SMALL_BLAS, 4 * MIB,
                       &sm80},
    [FR_GPU_ADA] = {"ada", 350.0 / 362.0, FR_GPU_AMPERE, FR_GPU_ATTENTION_SYNC,
                    false, SMALL_BLAS, 4 * MIB, &sm80},
    [FR_GPU_HOPPER] = {"hopper", 700.0 / 989.0, FR_GPU_BLACKWELL,
                       FR_GPU_ATTENTION_ASYNC, false, 32 * MIB, 32 * MIB,
                       &sm90},
    [FR_GPU_BLACKWELL] = {"blackwell", 1000.0 / 2250.0, FR_GPU_HOPPER,
                          FR_GPU_ATTENTION_TMEM, false, 32 * MIB, 32 * MIB,
                          &sm100},
    [FR_GPU_BLACKWELL_ULTRA] = {"blackwell-ultra", 1100.0 / 2250.0,
                                FR_GPU_BLACKWELL, FR_GPU_ATTENTION_TMEM, false,
                                32 * MIB, 32 * MIB, &sm100},
    [FR_GPU_CDNA2] = {"cdna2", 280.0 / 191.5, FR_GPU_CDNA3,
                      FR_GPU_ATTENTION_SYNC, false, 32 * MIB, 0, &sm80},
    [FR_GPU_CDNA3] = {"cdna3", 750.0 / 1300.0, FR_GPU_CDNA3,
                      FR_GPU_ATTENTION_SYNC, false, 128 * MIB, 0, &sm80},
    [FR_GPU_CDNA4] = {"cdna4", 1400.0 / 2500.0, FR_GPU_CDNA3,
                      FR_GPU_ATTENTION_SYNC, false, 128 * MIB, 0, &sm80},
    [FR_GPU_OTHER] = {"other", 0, FR_GPU_HOPPER, FR_GPU_ATTENTION_SYNC, false,
                      SMALL_BLAS, 0, NULL},
};

const char *fr_gpu_generation_name(fr_gpu_generation generation)
{
    return (unsigned)generation < FR_GPU_GENERATION_N
               ? fr_gpu_generations[generation].name
               : "?";
}

fr_gpu_generation fr_gpu_generation_of(const fr_device_type *device)
{
    for (int i = 0; i < FR_GPU_OTHER; i++)
        if (strcmp(device->generation, fr_gpu_generations[i].name) == 0)
            return (fr_gpu_generation)i;
    if (device->generation[0] != '\0')
        return FR_GPU_OTHER;
    if (fr_device_peak_flops(device, "fp4") > 0.0)
        return fr_device_peak_flops(device, "fp4") <
                       2.5 * fr_device_peak_flops(device, "fp8")
                   ? FR_GPU_BLACKWELL
                   : FR_GPU_BLACKWELL_ULTRA;
    if (fr_device_peak_flops(device, "fp8") > 0.0)
        return FR_GPU_HOPPER;
    if (fr_device_peak_flops(device, "bf16") > 0.0)
        return FR_GPU_AMPERE;
    if (fr_device_peak_flops(device, "fp16") > 0.0)
        return FR_GPU_VOLTA;
    return FR_GPU_OTHER;
}

/* Devices that have no row: what NCCL, or what stands for it, is like there. */
static const struct {
    const char *begin; /* of the name */
    const fr_gpu_link_rates *links;
} others[] = {{"volta", &sm70},  {"turing", &sm70}, {"pascal", &sm70},
              {"ampere", &sm80}, {"ada", &sm80},    {"cdna", &sm80},
              {"tpu", &sm80},    {"hopper", &sm90}, {"blackwell", &sm100}};

const fr_gpu_link_rates *fr_gpu_link_rates_of(const fr_device_type *device)
{
    const fr_gpu_generation generation = fr_gpu_generation_of(device);
    if (fr_gpu_generations[generation].links != NULL)
        return fr_gpu_generations[generation].links;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (strncmp(device->generation, others[i].begin,
                    strlen(others[i].begin)) == 0)
            return others[i].links;
    if (fr_device_peak_flops(device, "fp4") > 0.0)
        return &sm100;
    if (fr_device_peak_flops(device, "fp8") > 0.0)
        return &sm90;
    return fr_device_peak_flops(device, "bf16") > 0.0 ? &sm80 : &sm70;
}
