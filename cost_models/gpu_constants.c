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
            {0.909, 0, 0.8019, 0, 0},           /* volta */
            {0.8199, 0.8297, 0.9074, 0, 0},     /* ampere */
            {0, 0, 0, 0, 0},                    /* ada */
            {0.784, 0.8791, 0.9035, 0.7434, 0}, /* hopper */
            {0, 0, 0.8951, 0.9101, 0.6945},     /* blackwell */
            {0, 0, 0, 0, 0},                    /* cdna2 */
            {0, 0, 0.5645, 0, 0},               /* cdna3 */
            {0, 0, 0.6773, 0, 0},               /* cdna4 */
            {0, 0, 0, 0, 0},                    /* other */
        },
    .sustained = 0.92589,
    .power_exponent = 0.33753,
    .tile_traffic = 0.026857,
    .tile_s = 9.3596e-07,
    .kernel_s = 3.293e-06,
    .stream_frac = 0.81674,
    .rows_frac = 0.5883,
    .layers_rate = {0.86452, 0.5491},
    .attention_core_s = {5.4458e-11, 5.0124e-11, 2.6358e-11, 6.5846e-11,
                         6.2196e-11},
    .attention_bwd_core_ratio = 2.8718,
    .attention_rate =
        {
            {1.1298, 0.84175, 1.0316, 0.72774, 0.56178},
            {0.97943, 0.83481, 0.91169, 0.60169, 0.41625},
        },
    .attention_tile_s = {2.1885e-06, 3.7154e-06},
    /* product, grouped, attention forward, backward, stream, rows, layers */
    .rel_err = {0.11839, 0.15434, 0.15512, 0.14325, 0.12036, 0.17834, 0.2763},
    .guess_err = 0.19821,
    .n_rows =
        {
            {8, 0, 0, 0, 0, 0, 8},     /* volta */
            {112, 0, 2, 2, 15, 15, 0}, /* ampere */
            {0, 0, 0, 0, 0, 0, 0},     /* ada */
            {48, 10, 62, 22, 2, 0, 0}, /* hopper */
            {40, 0, 7, 7, 7, 3, 0},    /* blackwell */
            {0, 0, 0, 0, 0, 0, 0},     /* cdna2 */
            {2, 0, 0, 0, 0, 0, 0},     /* cdna3 */
            {1, 0, 0, 0, 0, 0, 0},     /* cdna4 */
            {0, 0, 0, 0, 0, 0, 0},     /* other */
        },
};
