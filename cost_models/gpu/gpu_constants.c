/*
 * gpu_constants.c: what `make fit-gpu` prints, from the kernels of
 * configs/kernels/published.csv that are marked "fit";
 * test_gpu_fit.c fits again and compares.
 */
#include "cost_models/gpu/gpu_constants.h"

const fr_gpu_constants fr_gpu_constants_fitted = {
    /* columns: f32, tf32, 16 bit, fp8, fp4 */
    .achievable =
        {
            {0.9115, 0, 0.8116, 0, 0},           /* volta */
            {0.8219, 0.8548, 0.9172, 0, 0},      /* ampere */
            {0, 0, 0, 0, 0},                     /* ada */
            {0.7859, 0.8986, 0.9144, 0.7607, 0}, /* hopper */
            {0, 0, 0.87, 0.8477, 0.6735},        /* blackwell */
            {0, 0, 0.9304, 0.8551, 0.4812},      /* blackwell-ultra */
            {0, 0, 0, 0, 0},                     /* cdna2 */
            {0, 0, 0.5702, 0, 0},                /* cdna3 */
            {0, 0, 0.686, 0, 0},                 /* cdna4 */
            {0, 0, 0, 0, 0},                     /* other */
        },
    .sustained =
        {
            {0.9, 0.9, 0.9055, 0.9, 0.9},       /* volta */
            {0.9, 0.9465, 0.9507, 0.9, 0.9},    /* ampere */
            {0.9, 0.9, 0.9, 0.9, 0.9},          /* ada */
            {0.9, 0.9175, 0.8736, 0.969, 0.9},  /* hopper */
            {0.9, 0.9, 0.9367, 0.8221, 0.9},    /* blackwell */
            {0.9, 0.9, 0.8649, 0.8622, 0.8998}, /* blackwell-ultra */
            {0.9, 0.9, 0.9, 0.9, 0.9},          /* cdna2 */
            {0.9, 0.9, 0.9, 0.9, 0.9},          /* cdna3 */
            {0.9, 0.9, 0.9, 0.9, 0.9},          /* cdna4 */
            {0.9, 0.9, 0.9, 0.9, 0.9},          /* other */
        },
    .power_exponent = 0.33668,
    .sustained_exponent = 0.54572,
    .block_rate = 0.87952,
    .tile_traffic = 0.033781,
    .tile_s = 5.4096e-07,
    .kernel_s = 3.5242e-06,
    .stream_frac = 0.79683,
    .rows_frac = 0.59093,
    .layers_rate = {0.86221, 0.55691},
    .attention_core_s = {5.5634e-11, 4.5627e-11, 2.1644e-11, 6.665e-11,
                         6.2949e-11},
    .attention_bwd_core_ratio = 2.7925,
    .attention_rate =
        {
            {1.0959, 0.87162, 0.94756, 0.77291, 0.54274},
            {0.94294, 0.85371, 0.74546, 0.63039, 0.40091},
        },
    .attention_tile_s = {2.3025e-06, 4.6321e-06},
    .rel_err = {0.09047, 0.22265, 0.10114, 0.17184, 0.12637, 0.17757, 0.27323},
    .guess_err = 0.19896,
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
