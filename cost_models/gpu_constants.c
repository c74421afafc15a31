/*
 * gpu_constants.c: what `make fit-gpu` prints, from the kernels of
 * configs/kernels/published.csv that are marked "fit";
 * tests/unit/test_gpu_fit.c fits again and compares.
 */
#include "cost_models/gpu_constants.h"

const fr_gpu_constants fr_gpu_constants_fitted = {
    /* columns: f32, tf32, 16 bit, fp8, fp4 */
    .achievable =
        {
            {0.9087, 0, 0.7862, 0, 0},           /* volta */
            {0.8196, 0.8124, 0.9014, 0, 0},      /* ampere */
            {0, 0, 0, 0, 0},                     /* ada */
            {0.7837, 0.8587, 0.8563, 0.7433, 0}, /* hopper */
            {0, 0, 0.9107, 0.913, 0.6993},       /* blackwell */
            {0, 0, 0, 0, 0},                     /* cdna2 */
            {0, 0, 0.5648, 0, 0},                /* cdna3 */
            {0, 0, 0.6777, 0, 0},                /* cdna4 */
            {0, 0, 0, 0, 0},                     /* other */
        },
    .power_exponent = 0.33761,
    .tile_traffic = 0.026101,
    .tile_s = 1.1303e-06,
    .kernel_s = 2.8334e-06,
    .stream_frac = 0.82165,
    .rows_frac = 0.52309,
    .attention_core_s = {1.3556e-10, 5.9422e-11, 2.8002e-11},
    .attention_bwd_core_ratio = 1.435,
    .attention_bwd_rate = {0.73818, 0.73915, 0.73221},
    .attention_tile_s = {2.9563e-06, 5.3125e-06},
    /* product, grouped, attention forward, backward, stream, rows */
    .rel_err = {0.11394, 0.078531, 0.1064, 0.022373, 0.12838, 0.17501},
    .guess_err = 0.13304,
    .n_rows =
        {
            {8, 0, 0, 0, 0, 0},     /* volta */
            {111, 0, 1, 1, 15, 11}, /* ampere */
            {0, 0, 0, 0, 0, 0},     /* ada */
            {48, 10, 36, 11, 0, 0}, /* hopper */
            {40, 0, 2, 2, 0, 0},    /* blackwell */
            {0, 0, 0, 0, 0, 0},     /* cdna2 */
            {2, 0, 0, 0, 0, 0},     /* cdna3 */
            {1, 0, 0, 0, 0, 0},     /* cdna4 */
            {0, 0, 0, 0, 0, 0},     /* other */
        },
};
