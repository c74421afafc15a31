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
            {0.9085, 0, 0.8008, 0, 0},           /* volta */
            {0.8202, 0.8561, 0.9119, 0, 0},      /* ampere */
            {0, 0, 0, 0, 0},                     /* ada */
            {0.7843, 0.8866, 0.8811, 0.7658, 0}, /* hopper */
            {0, 0, 0.8398, 0.7477, 0.6394},      /* blackwell */
            {0, 0, 0.8431, 0.793, 0.4627},       /* blackwell-ultra */
            {0, 0, 0, 0, 0},                     /* cdna2 */
            {0, 0, 0.5651, 0, 0},                /* cdna3 */
            {0, 0, 0.6766, 0, 0},                /* cdna4 */
            {0, 0, 0, 0, 0},                     /* other */
        },
    .sustained = 0.90661,
    .power_exponent = 0.33725,
    .sustained_exponent = 0.53371,
    .block_rate = 0.90979,
    .tile_traffic = 0.029705,
    .tile_s = 2.4952e-07,
    .kernel_s = 3.5898e-06,
    .stream_frac = 0.79792,
    .rows_frac = 0.59168,
    .layers_rate = {0.86498, 0.56358},
    .attention_core_s = {5.4404e-11, 4.6284e-11, 2.3966e-11, 6.4473e-11,
                         6.1925e-11},
    .attention_bwd_core_ratio = 2.7487,
    .attention_rate =
        {
            {1.1481, 0.87343, 1.0343, 0.75587, 0.57074},
            {0.98379, 0.85233, 0.80628, 0.61174, 0.42093},
        },
    .attention_tile_s = {2.267e-06, 4.5555e-06},
    .rel_err = {0.11462, 0.18954, 0.097625, 0.16024, 0.12394, 0.17636, 0.27347},
    .guess_err = 0.19036,
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
