/*
 * optim_cuda.h: a range of the flat parameter list as a few runs of elements
 * that are updated alike, small enough for a launch's arguments.  Inside
 * runtime/.
 */
#ifndef FR_KERNELS_CUDA_OPTIM_CUDA_H
#define FR_KERNELS_CUDA_OPTIM_CUDA_H

#include "kernels/cuda/kernels_cuda_state.h"

enum {
    FR_CUDA_RUNS = 64,
    FR_CUDA_BLOCK_ELEMENTS = 4096 /* of a run that one block has */
};

typedef struct fr_cuda_run {
    int64_t first, n;  /* relative to the range */
    uint32_t i_tensor; /* the first one's, where runs hold several */
    uint8_t is_decayed, is_counted;
} fr_cuda_run;

typedef struct fr_cuda_runs {
    uint32_t n;
    uint32_t first_block[FR_CUDA_RUNS + 1];
    fr_cuda_run at[FR_CUDA_RUNS];
} fr_cuda_runs;

typedef enum fr_cuda_run_kind {
    FR_CUDA_RUN_COUNTED, /* tensors that count in the norm, merged */
    FR_CUDA_RUN_DECAY,   /* neighbours that decay alike, merged */
    FR_CUDA_RUN_TENSOR   /* each tensor by itself */
} fr_cuda_run_kind;

/* Elements of the range of an optimizer instruction. */
int64_t fr_cuda_range_n(const fr_kernel_call *call);

/* The next runs from tensor *i_tensor on, which moves; false: none left. */
bool fr_cuda_runs_next(const fr_kernel_call *call, fr_cuda_run_kind kind,
                       uint32_t *i_tensor, fr_cuda_runs *out);

#endif
