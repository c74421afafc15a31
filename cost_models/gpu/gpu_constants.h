/*
 * gpu_constants.h: the few numbers of the GPU model that no datasheet has.
 * All but the achievable share of the peak are the same for every GPU; they
 * are fitted to published measurements of single kernels
 * (configs/kernels/published.csv, `make fit-gpu`), never to training steps.
 */
#ifndef FR_COST_MODELS_GPU_GPU_CONSTANTS_H
#define FR_COST_MODELS_GPU_GPU_CONSTANTS_H

#include "cost_models/base/gpu_generation.h"

#include <stddef.h>

/* Units that multiply matrices, each with a peak of its own.  bf16 reaches
 * the share of its peak that fp16 does of its own: one number is fitted. */
typedef enum fr_gpu_math {
    FR_GPU_MATH_F32, /* the vector units, no tensor core */
    FR_GPU_MATH_TF32,
    FR_GPU_MATH_F16,
    FR_GPU_MATH_FP8,
    FR_GPU_MATH_FP4,
    FR_GPU_MATH_FITTED_N,
    FR_GPU_MATH_BF16 = FR_GPU_MATH_FITTED_N,
    FR_GPU_MATH_N
} fr_gpu_math;

static inline bool fr_gpu_math_is_16(fr_gpu_math math)
{
    return math == FR_GPU_MATH_F16 || math == FR_GPU_MATH_BF16;
}

/* Returns the unit whose constants a unit shares. */
static inline fr_gpu_math fr_gpu_math_fitted(fr_gpu_math math)
{
    return math == FR_GPU_MATH_BF16 ? FR_GPU_MATH_F16 : math;
}

/* Kinds of kernel with an error of their own. */
typedef enum fr_gpu_family {
    FR_GPU_PRODUCT,
    FR_GPU_GROUPED,
    FR_GPU_ATTENTION_FWD,
    FR_GPU_ATTENTION_BWD,
    FR_GPU_STREAM, /* element by element */
    FR_GPU_ROWS,   /* reductions along rows: norms, softmax */
    FR_GPU_LAYERS, /* convolutions: entries of lists of layers */
    FR_GPU_FAMILY_N
} fr_gpu_family;

typedef struct fr_gpu_constants {
    /* Share of the dense peak that large products reach in the first tens of
     * milliseconds, at the power per flop/s of the generation's reference
     * card; 0: nothing was measured. */
    double achievable[FR_GPU_GENERATION_N][FR_GPU_MATH_FITTED_N];
    /* The share of `achievable` that the power limit allows in the long run, at
     * the same power; 1 and more: the limit does not bind. */
    double sustained[FR_GPU_GENERATION_N][FR_GPU_MATH_FITTED_N];
    double power_exponent;     /* of rate over power: of `achievable` */
    double sustained_exponent; /* and once the clock follows the power limit */
    double block_rate;   /* of products with scales of blocks over those with
                            one of each tensor: fp8 */
    double tile_traffic; /* time of a tile's operands that does not hide
                            behind its products, in units of its bytes over
                            its share of the memory's bandwidth */
    double tile_s;       /* prologue and epilogue of one tile */
    double kernel_s;     /* start to start of dependent kernels, less work */
    double stream_frac;  /* of the memory's bandwidth */
    double rows_frac;
    double layers_rate[2]; /* of convolutions against products: on the vector
                              units, on the tensor cores */
    double attention_core_s[FR_GPU_ATTENTION_N];  /* softmax of one pair on one
                                                     multiprocessor, forward */
    double attention_bwd_core_ratio;              /* backward against forward */
    double attention_rate[2][FR_GPU_ATTENTION_N]; /* its products against
                                                     large ones: forward,
                                                     backward */
    double attention_tile_s[2];      /* of 128 queries: forward, backward */
    double rel_err[FR_GPU_FAMILY_N]; /* of many kernels of a kind together:
                                        two of three tables of a source are
                                        nearer to what the fit to the other
                                        sources says of them */
    double guess_err; /* the same where the others had no such kernel */
    int n_rows[FR_GPU_GENERATION_N][FR_GPU_FAMILY_N]; /* measurements */
} fr_gpu_constants;

/* The constants that `make fit-gpu` printed. */
extern const fr_gpu_constants fr_gpu_constants_fitted;

const char *fr_gpu_family_name(fr_gpu_family family);

#endif
