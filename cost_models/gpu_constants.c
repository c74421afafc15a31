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
            {0.9173, 0, 0.8284, 0, 0},          /* volta */
            {0.8252, 0.8888, 0.9431, 0, 0},     /* ampere */
            {0, 0, 0, 0, 0},                    /* ada */
            {0.7897, 1.007, 0.9241, 0.7985, 0}, /* hopper */
            {0, 0, 0.883, 0.7564, 0.6618},      /* blackwell */
            {0, 0, 0.8821, 0.8006, 0.4849},     /* blackwell-ultra */
            {0, 0, 0, 0, 0},                    /* cdna2 */
            {0, 0, 0.5827, 0, 0},               /* cdna3 */
            {0, 0, 0.7067, 0, 0},               /* cdna4 */
            {0, 0, 0, 0, 0},                    /* other */
        },
    .sustained = 0.89814,
    .power_exponent = 0.33731,
    .sustained_exponent = 0.56907,
    .tile_traffic = 0.047261,
    .tile_s = 1.7265e-07,
    .kernel_s = 3.6001e-06,
    .stream_frac = 0.79867,
    .rows_frac = 0.5918,
    .layers_rate = {0.85669, 0.55042},
    .attention_core_s = {5.4977e-11, 4.5585e-11, 2.4287e-11, 6.4366e-11,
                         6.2379e-11},
    .attention_bwd_core_ratio = 2.7573,
    .attention_rate =
        {
            {1.1241, 0.83996, 0.99452, 0.72714, 0.55782},
            {0.96392, 0.81811, 0.77455, 0.58975, 0.41146},
        },
    .attention_tile_s = {2.2883e-06, 4.6137e-06},
    .rel_err = {0.097885, 0.20247, 0.095121, 0.16518, 0.12429, 0.17613,
                0.27285},
    .guess_err = 0.20284,
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
