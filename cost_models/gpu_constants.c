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
            {0.9052, 0, 0.776, 0, 0},            /* volta */
            {0.8176, 0.8014, 0.8907, 0, 0},      /* ampere */
            {0, 0, 0, 0, 0},                     /* ada */
            {0.7819, 0.8428, 0.8637, 0.7313, 0}, /* hopper */
            {0, 0, 0.8924, 0.8975, 0.6872},      /* blackwell */
            {0, 0, 0, 0, 0},                     /* cdna2 */
            {0, 0, 0.5577, 0, 0},                /* cdna3 */
            {0, 0, 0.666, 0, 0},                 /* cdna4 */
            {0, 0, 0, 0, 0},                     /* other */
        },
    .power_exponent = 0.33796,
    .tile_traffic = 0.019682,
    .tile_s = 1.0008e-06,
    .kernel_s = 3.2748e-06,
    .stream_frac = 0.81602,
    .rows_frac = 0.58808,
    .attention_core_s = {5.8267e-11, 4.9572e-11, 2.8091e-11},
    .attention_bwd_core_ratio = 1.3641,
    .attention_rate = {{1.0898, 0.85058, 1.0196}, {0.80991, 0.72287, 0.74921}},
    .attention_tile_s = {2.8566e-06, 5.9036e-06},
    /* product, grouped, attention forward, backward, stream, rows */
    .rel_err = {0.12306, 0.15422, 0.12446, 0.079708, 0.11954, 0.17861},
    .guess_err = 0.15233,
    .n_rows =
        {
            {8, 0, 0, 0, 0, 0},     /* volta */
            {111, 0, 1, 1, 15, 15}, /* ampere */
            {0, 0, 0, 0, 0, 0},     /* ada */
            {48, 10, 36, 11, 2, 0}, /* hopper */
            {40, 0, 2, 2, 7, 3},    /* blackwell */
            {0, 0, 0, 0, 0, 0},     /* cdna2 */
            {2, 0, 0, 0, 0, 0},     /* cdna3 */
            {1, 0, 0, 0, 0, 0},     /* cdna4 */
            {0, 0, 0, 0, 0, 0},     /* other */
        },
};
