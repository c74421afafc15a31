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
            {0.8976, 0, 0.7722, 0, 0},         /* volta */
            {0.8139, 0.7989, 0.8751, 0, 0},    /* ampere */
            {0, 0, 0, 0, 0},                   /* ada */
            {0.7781, 0.83, 0.8939, 0.7013, 0}, /* hopper */
            {0, 0, 0.8093, 0.813, 0.6345},     /* blackwell */
            {0, 0, 0, 0, 0},                   /* cdna2 */
            {0, 0, 0.75, 0, 0},                /* cdna3 */
            {0, 0, 0.75, 0, 0},                /* cdna4 */
            {0, 0, 0, 0, 0},                   /* other */
        },
    .searched =
        {
            {0, 0, 0, 0, 0},           /* volta */
            {0, 0, 0.8807, 0, 0},      /* ampere */
            {0, 0, 0, 0, 0},           /* ada */
            {0, 0, 0.7869, 0.7188, 0}, /* hopper */
            {0, 0, 0.7492, 0.7298, 0}, /* blackwell */
            {0, 0, 0, 0, 0},           /* cdna2 */
            {0, 0, 0.5314, 0, 0},      /* cdna3 */
            {0, 0, 0.626, 0, 0},       /* cdna4 */
            {0, 0, 0, 0, 0},           /* other */
        },
    .sustained = 0.92567,
    .power_exponent = 0.33769,
    .tile_traffic = 0.0095552,
    .tile_s = 5.9405e-07,
    .kernel_s = 3.4087e-06,
    .stream_frac = 0.81926,
    .rows_frac = 0.58961,
    .layers_rate = {0.87553, 0.5704},
    .attention_core_s = {5.3673e-11, 5.0214e-11, 2.525e-11, 6.4326e-11,
                         6.1575e-11},
    .attention_bwd_core_ratio = 2.8549,
    .attention_rate =
        {
            {1.1669, 0.89539, 1.1203, 0.76198, 0.58169},
            {1.0099, 0.88654, 0.98793, 0.6285, 0.43078},
        },
    .attention_tile_s = {2.1796e-06, 3.7498e-06},
    /* product, grouped, attention forward, backward, stream, rows, layers */
    .rel_err = {0.10996, 0.14473, 0.18559, 0.20496, 0.12289, 0.17677, 0.27626},
    .guess_err = 0.12787,
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
