/*
 * gpu_constants.c: what `make fit-gpu` prints.
 */
#include "cost_models/gpu_constants.h"

const fr_gpu_constants fr_gpu_constants_fitted = {.kernel_s = 3e-6};
