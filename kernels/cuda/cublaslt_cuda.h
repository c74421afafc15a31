/*
 * cublaslt_cuda.h: the functions of cuBLASLt that products call, looked up when
 * a backend starts.  To load its 540 MB takes most of a second of a processor,
 * which no command that computes nothing on a GPU shall wait for.  Inside
 * kernels/cuda/.
 */
#ifndef FR_KERNELS_CUDA_CUBLASLT_CUDA_H
#define FR_KERNELS_CUDA_CUBLASLT_CUDA_H

#include "core/base/err.h"

#include <cublasLt.h>

#define FR_CUBLASLT_FUNCTIONS(X)                                               \
    X(cublasLtCreate)                                                          \
    X(cublasLtDestroy)                                                         \
    X(cublasLtGetStatusString)                                                 \
    X(cublasLtMatmul)                                                          \
    X(cublasLtMatmulAlgoGetHeuristic)                                          \
    X(cublasLtMatmulDescCreate)                                                \
    X(cublasLtMatmulDescDestroy)                                               \
    X(cublasLtMatmulDescSetAttribute)                                          \
    X(cublasLtMatmulPreferenceCreate)                                          \
    X(cublasLtMatmulPreferenceDestroy)                                         \
    X(cublasLtMatmulPreferenceSetAttribute)                                    \
    X(cublasLtMatrixLayoutCreate)                                              \
    X(cublasLtMatrixLayoutDestroy)                                             \
    X(cublasLtMatrixLayoutSetAttribute)

typedef struct fr_cublaslt {
#define FR_CUBLASLT_MEMBER(name) __typeof__(name) *name;
    FR_CUBLASLT_FUNCTIONS(FR_CUBLASLT_MEMBER)
#undef FR_CUBLASLT_MEMBER
} fr_cublaslt;

/*
 * Loads the library of the version that this was built with; it stays loaded.
 * FR_FAILURE where there is none, with the loader's reason.
 */
FR_CHECKED fr_status fr_cublaslt_load(fr_cublaslt *out, fr_err *err);

#endif
