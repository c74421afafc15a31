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
            {0.8981, 0, 0.7702, 0, 0},           /* volta */
            {0.8142, 0.7839, 0.8723, 0, 0},      /* ampere */
            {0, 0, 0, 0, 0},                     /* ada */
            {0.7785, 0.8229, 0.8571, 0.7075, 0}, /* hopper */
            {0, 0, 0.8114, 0.8079, 0.638},       /* blackwell */
            {0, 0, 0.8625, 0.8503, 0.4814},      /* blackwell-ultra */
            {0, 0, 0, 0, 0},                     /* cdna2 */
            {0, 0, 0.5477, 0, 0},                /* cdna3 */
            {0, 0, 0.6482, 0, 0},                /* cdna4 */
            {0, 0, 0, 0, 0},                     /* other */
        },
    .sustained =
        {
            {0.9, 0.9, 0.9406, 0.9, 0.9},      /* volta */
            {0.9, 1.214, 1.124, 0.9, 0.9},     /* ampere */
            {0.9, 0.9, 0.9, 0.9, 0.9},         /* ada */
            {0.9, 0.9719, 0.89, 1.088, 0.9},   /* hopper */
            {0.9, 0.9, 0.9604, 0.7549, 0.9},   /* blackwell */
            {0.9, 0.9, 0.8534, 0.7873, 0.851}, /* blackwell-ultra */
            {0.9, 0.9, 0.9, 0.9, 0.9},         /* cdna2 */
            {0.9, 0.9, 0.9, 0.9, 0.9},         /* cdna3 */
            {0.9, 0.9, 0.9, 0.9, 0.9},         /* cdna4 */
            {0.9, 0.9, 0.9, 0.9, 0.9},         /* other */
        },
    .power_exponent = 0.33562,
    .sustained_exponent = 0.74748,
    .block_rate = 0.93161,
    .tile_traffic = 0.010467,
    .tile_s = 5.5887e-07,
    .kernel_s = 3.617e-06,
    .stream_frac = 0.79887,
    .rows_frac = 0.59213,
    .layers_rate = {0.87504, 0.56136},
    .attention_core_s = {5.555e-11, 4.3298e-11, 2.3073e-11, 6.6444e-11,
                         6.2974e-11},
    .attention_bwd_core_ratio = 2.8338,
    .attention_rate =
        {
            {1.095, 0.91654, 1.0166, 0.80602, 0.54254},
            {0.94611, 0.88171, 0.79762, 0.66445, 0.40152},
        },
    .attention_tile_s = {2.2745e-06, 4.4523e-06},
    .rel_err = {0.08431, 0.088645, 0.16384, 0.34556, 0.12452, 0.17577, 0.2783},
    .guess_err = 0.2278,
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
