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
            {0.9148, 0, 0.8024, 0, 0},           /* volta */
            {0.8234, 0.8305, 0.9221, 0, 0},      /* ampere */
            {0, 0, 0, 0, 0},                     /* ada */
            {0.7877, 0.8956, 0.9124, 0.7673, 0}, /* hopper */
            {0, 0, 0.9378, 0.9451, 0.7137},      /* blackwell */
            {0, 0, 0, 0, 0},                     /* cdna2 */
            {0, 0, 0.5772, 0, 0},                /* cdna3 */
            {0, 0, 0.6985, 0, 0},                /* cdna4 */
            {0, 0, 0, 0, 0},                     /* other */
        },
    .power_exponent = 0.33767,
    .tile_traffic = 0.039052,
    .tile_s = 9.1683e-07,
    .kernel_s = 3.2235e-06,
    .stream_frac = 0.8151,
    .rows_frac = 0.52637,
    .attention_core_s = {5.8902e-11, 4.9767e-11, 2.8764e-11},
    .attention_bwd_core_ratio = 1.6335,
    .attention_rate = {{1.0559, 0.80516, 0.98156}, {0.80398, 0.69123, 0.72524}},
    .attention_tile_s = {2.8235e-06, 5.348e-06},
    /* product, grouped, attention forward, backward, stream, rows */
    .rel_err = {0.11751, 0.080212, 0.080031, 0.021145, 0.14448, 0.17619},
    .guess_err = 0.1357,
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
