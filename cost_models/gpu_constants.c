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
            {0.9081, 0, 0.7837, 0, 0},          /* volta */
            {0.8193, 0.8116, 0.8995, 0, 0},     /* ampere */
            {0, 0, 0, 0, 0},                    /* ada */
            {0.7836, 0.858, 0.8555, 0.7413, 0}, /* hopper */
            {0, 0, 0.9044, 0.9073, 0.6932},     /* blackwell */
            {0, 0, 0, 0, 0},                    /* cdna2 */
            {0, 0, 0.5638, 0, 0},               /* cdna3 */
            {0, 0, 0.6759, 0, 0},               /* cdna4 */
            {0, 0, 0, 0, 0},                    /* other */
        },
    .power_exponent = 0.33752,
    .tile_traffic = 0.025656,
    .tile_s = 9.6438e-07,
    .kernel_s = 3.2154e-06,
    .stream_frac = 0.8148,
    .rows_frac = 0.52625,
    .attention_core_s = {1.3495e-10, 5.9386e-11, 2.7682e-11},
    .attention_bwd_core_ratio = 1.4396,
    .attention_bwd_rate = {0.73971, 0.7404, 0.73662},
    .attention_tile_s = {2.9369e-06, 5.233e-06},
    /* product, grouped, attention forward, backward, stream, rows */
    .rel_err = {0.1167, 0.079318, 0.10542, 0.022081, 0.14455, 0.17617},
    .guess_err = 0.13309,
    .n_rows =
        {
            {8, 0, 0, 0, 0, 0},     /* volta */
            {111, 0, 1, 1, 15, 11}, /* ampere */
            {0, 0, 0, 0, 0, 0},     /* ada */
            {48, 10, 36, 11, 2, 0}, /* hopper */
            {40, 0, 2, 2, 7, 0},    /* blackwell */
            {0, 0, 0, 0, 0, 0},     /* cdna2 */
            {2, 0, 0, 0, 0, 0},     /* cdna3 */
            {1, 0, 0, 0, 0, 0},     /* cdna4 */
            {0, 0, 0, 0, 0, 0},     /* other */
        },
};
