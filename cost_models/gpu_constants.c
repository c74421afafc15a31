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
            {0.8979, 0, 0.7697, 0, 0},          /* volta */
            {0.8141, 0.7835, 0.8718, 0, 0},     /* ampere */
            {0, 0, 0, 0, 0},                    /* ada */
            {0.7784, 0.8223, 0.8564, 0.707, 0}, /* hopper */
            {0, 0, 0.8106, 0.8054, 0.6372},     /* blackwell */
            {0, 0, 0.8619, 0.8495, 0.483},      /* blackwell-ultra */
            {0, 0, 0, 0, 0},                    /* cdna2 */
            {0, 0, 0.5475, 0, 0},               /* cdna3 */
            {0, 0, 0.6478, 0, 0},               /* cdna4 */
            {0, 0, 0, 0, 0},                    /* other */
        },
    .sustained =
        {
            {0.9, 0.9, 0.9409, 0.9, 0.9},       /* volta */
            {0.9, 1.221, 1.132, 0.9, 0.9},      /* ampere */
            {0.9, 0.9, 0.9, 0.9, 0.9},          /* ada */
            {0.9, 0.9718, 0.8916, 1.093, 0.9},  /* hopper */
            {0.9, 0.9, 0.9603, 0.7505, 0.9},    /* blackwell */
            {0.9, 0.9, 0.8527, 0.7856, 0.8475}, /* blackwell-ultra */
            {0.9, 0.9, 0.9, 0.9, 0.9},          /* cdna2 */
            {0.9, 0.9, 0.9, 0.9, 0.9},          /* cdna3 */
            {0.9, 0.9, 0.9, 0.9, 0.9},          /* cdna4 */
            {0.9, 0.9, 0.9, 0.9, 0.9},          /* other */
        },
    .power_exponent = 0.33563,
    .sustained_exponent = 0.76087,
    .block_rate = 0.93621,
    .tile_traffic = 0.010236,
    .tile_s = 5.5296e-07,
    .kernel_s = 3.6206e-06,
    .stream_frac = 0.79896,
    .rows_frac = 0.59217,
    .layers_rate = {0.8752, 0.56153},
    .attention_core_s = {5.5532e-11, 4.3191e-11, 2.3036e-11, 6.6347e-11,
                         6.2964e-11},
    .attention_bwd_core_ratio = 2.8355,
    .attention_rate =
        {
            {1.0955, 0.91643, 1.0167, 0.80435, 0.54281},
            {0.94668, 0.8803, 0.79781, 0.66344, 0.40175},
        },
    .attention_tile_s = {2.2739e-06, 4.4479e-06},
    .rel_err = {0.081599, 0.086446, 0.1649, 0.34553, 0.12457, 0.17559, 0.27828},
    .guess_err = 0.22799,
    .n_rows =
        {
            {8, 0, 0, 0, 0, 0, 8},     /* volta */
            {112, 0, 2, 2, 15, 15, 0}, /* ampere */
            {0, 0, 0, 0, 0, 0, 0},     /* ada */
            {60, 10, 62, 22, 2, 0, 0}, /* hopper */
            {46, 1, 17, 17, 16, 3, 0}, /* blackwell */
            {15, 0, 10, 10, 0, 0, 0},  /* blackwell-ultra */
            {0, 0, 0, 0, 0, 0, 0},     /* cdna2 */
            {2, 0, 0, 0, 0, 0, 0},     /* cdna3 */
            {1, 0, 0, 0, 0, 0, 0},     /* cdna4 */
            {0, 0, 0, 0, 0, 0, 0},     /* other */
        },
};
