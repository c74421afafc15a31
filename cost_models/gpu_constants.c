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
            {0.8975, 0, 0.7674, 0, 0},           /* volta */
            {0.814, 0.7931, 0.869, 0, 0},        /* ampere */
            {0, 0, 0, 0, 0},                     /* ada */
            {0.7782, 0.8219, 0.8217, 0.7242, 0}, /* hopper */
            {0, 0, 0.8159, 0.7599, 0.6273},      /* blackwell */
            {0, 0, 0.8399, 0.8066, 0.4855},      /* blackwell-ultra */
            {0, 0, 0, 0, 0},                     /* cdna2 */
            {0, 0, 0.547, 0, 0},                 /* cdna3 */
            {0, 0, 0.6468, 0, 0},                /* cdna4 */
            {0, 0, 0, 0, 0},                     /* other */
        },
    .sustained = {0.94326, 1.1537, 0.9, 0.96692, 0.84263, 0.83671, 0.9, 0.9,
                  0.9, 0.9},
    .power_exponent = 0.33554,
    .sustained_exponent = 0.7479,
    .block_rate = 0.92953,
    .tile_traffic = 0.010075,
    .tile_s = 4.5057e-07,
    .kernel_s = 3.6103e-06,
    .stream_frac = 0.7985,
    .rows_frac = 0.59192,
    .layers_rate = {0.87564, 0.56507},
    .attention_core_s = {5.5621e-11, 4.2134e-11, 2.2565e-11, 5.851e-11,
                         6.2854e-11},
    .attention_bwd_core_ratio = 2.7529,
    .attention_rate =
        {
            {1.1001, 0.88107, 1.0838, 0.7205, 0.5449},
            {0.94278, 0.84397, 0.846, 0.58966, 0.40177},
        },
    .attention_tile_s = {2.4451e-06, 5.183e-06},
    .rel_err = {0.10845, 0.14566, 0.13903, 0.23708, 0.12434, 0.17651, 0.27375},
    .guess_err = 0.23009,
    .n_rows =
        {
            {8, 0, 0, 0, 0, 0, 8},     /* volta */
            {112, 0, 2, 2, 15, 15, 0}, /* ampere */
            {0, 0, 0, 0, 0, 0, 0},     /* ada */
            {60, 10, 62, 22, 2, 0, 0}, /* hopper */
            {48, 1, 17, 17, 16, 3, 0}, /* blackwell */
            {15, 0, 10, 10, 0, 0, 0},  /* blackwell-ultra */
            {0, 0, 0, 0, 0, 0, 0},     /* cdna2 */
            {2, 0, 0, 0, 0, 0, 0},     /* cdna3 */
            {1, 0, 0, 0, 0, 0, 0},     /* cdna4 */
            {0, 0, 0, 0, 0, 0, 0},     /* other */
        },
};
