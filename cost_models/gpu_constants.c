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
            {0.9087, 0, 0.8008, 0, 0},           /* volta */
            {0.8196, 0.8279, 0.9061, 0, 0},      /* ampere */
            {0, 0, 0, 0, 0},                     /* ada */
            {0.7838, 0.8762, 0.8911, 0.7433, 0}, /* hopper */
            {0, 0, 0.9112, 0.9158, 0.699},       /* blackwell */
            {0, 0, 0, 0, 0},                     /* cdna2 */
            {0, 0, 0.5637, 0, 0},                /* cdna3 */
            {0, 0, 0.676, 0, 0},                 /* cdna4 */
            {0, 0, 0, 0, 0},                     /* other */
        },
    .sustained = 0.92792,
    .power_exponent = 0.33754,
    .tile_traffic = 0.02573,
    .tile_s = 1.0088e-06,
    .kernel_s = 3.2716e-06,
    .stream_frac = 0.81598,
    .rows_frac = 0.58806,
    .layers_rate = {0.86486, 0.5481},
    .attention_core_s = {5.7048e-11, 4.9579e-11, 2.7538e-11},
    .attention_bwd_core_ratio = 1.3605,
    .attention_rate = {{1.1468, 0.88852, 1.0642}, {0.85535, 0.75499, 0.78915}},
    .attention_tile_s = {2.8563e-06, 5.9072e-06},
    /* product, grouped, attention forward, backward, stream, rows, layers */
    .rel_err = {0.11495, 0.15325, 0.12444, 0.071693, 0.1195, 0.17708, 0.2771},
    .guess_err = 0.15658,
    .n_rows =
        {
            {8, 0, 0, 0, 0, 0, 8},     /* volta */
            {112, 0, 1, 1, 15, 15, 0}, /* ampere */
            {0, 0, 0, 0, 0, 0, 0},     /* ada */
            {48, 10, 36, 11, 2, 0, 0}, /* hopper */
            {40, 0, 2, 2, 7, 3, 0},    /* blackwell */
            {0, 0, 0, 0, 0, 0, 0},     /* cdna2 */
            {2, 0, 0, 0, 0, 0, 0},     /* cdna3 */
            {1, 0, 0, 0, 0, 0, 0},     /* cdna4 */
            {0, 0, 0, 0, 0, 0, 0},     /* other */
        },
};
