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
            {0.8196, 0.8278, 0.9061, 0, 0},      /* ampere */
            {0, 0, 0, 0, 0},                     /* ada */
            {0.7838, 0.8761, 0.8911, 0.7433, 0}, /* hopper */
            {0, 0, 0.9112, 0.9158, 0.699},       /* blackwell */
            {0, 0, 0, 0, 0},                     /* cdna2 */
            {0, 0, 0.5637, 0, 0},                /* cdna3 */
            {0, 0, 0.676, 0, 0},                 /* cdna4 */
            {0, 0, 0, 0, 0},                     /* other */
        },
    .sustained = 0.92795,
    .power_exponent = 0.33754,
    .tile_traffic = 0.025719,
    .tile_s = 1.009e-06,
    .kernel_s = 3.2716e-06,
    .stream_frac = 0.81597,
    .rows_frac = 0.58812,
    .attention_core_s = {5.7058e-11, 4.9578e-11, 2.7539e-11},
    .attention_bwd_core_ratio = 1.3595,
    .attention_rate = {{1.1469, 0.88845, 1.0642}, {0.85527, 0.7549, 0.78909}},
    .attention_tile_s = {2.8564e-06, 5.9085e-06},
    /* product, grouped, attention forward, backward, stream, rows */
    .rel_err = {0.11494, 0.15324, 0.12446, 0.071682, 0.11947, 0.17841},
    .guess_err = 0.15245,
    .n_rows =
        {
            {8, 0, 0, 0, 0, 0},     /* volta */
            {112, 0, 1, 1, 15, 15}, /* ampere */
            {0, 0, 0, 0, 0, 0},     /* ada */
            {48, 10, 36, 11, 2, 0}, /* hopper */
            {40, 0, 2, 2, 7, 3},    /* blackwell */
            {0, 0, 0, 0, 0, 0},     /* cdna2 */
            {2, 0, 0, 0, 0, 0},     /* cdna3 */
            {1, 0, 0, 0, 0, 0},     /* cdna4 */
            {0, 0, 0, 0, 0, 0},     /* other */
        },
};
