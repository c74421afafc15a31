/*
 * cublaslt_emulated.c: products of column-major matrices by plain loops:
 * operands as the tensor cores read them, sums in double.  Who allows it gets
 * sums of two parts of which the first is rounded to the type of the result.
 * Each product takes its algorithm's time on a clock that events read.
 */
#include "kernels/cuda/cublaslt_cuda.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

emulated_algorithm emulated_algorithms[EMULATED_ALGORITHMS] = {{.ms = 1}};
int emulated_algorithms_n = 1;
uint32_t emulated_alignment;
static double now_ms;

struct emulated_blas {
    int n_started;
};
struct emulated_product {
    cublasComputeType_t compute;
    cublasOperation_t op_a, op_b;
    cublasLtEpilogue_t epilogue;
    const void *bias;
};
struct emulated_matrix {
    cudaDataType_t type;
    int64_t rows, cols, ld;
    int64_t step; /* to the next matrix of a batch */
    int32_t n_batch;
};
struct emulated_preference {
    size_t workspace_bytes;
    uint32_t reductions, alignment[4];
};

/* ---- events: the clock -------------------------------------------------- */

struct emulated_event {
    double ms;
};

cudaError_t cudaEventCreate(cudaEvent_t *out)
{
    *out = calloc(1, sizeof **out);
    return *out ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    free(event);
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    (void)stream;
    event->ms = now_ms;
    return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    (void)event;
    return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to)
{
    *ms = (float)(to->ms - from->ms);
    return cudaSuccess;
}

/* ---- descriptions -------------------------------------------------------- */

const char *cublasLtGetStatusString(cublasStatus_t status)
{
    return status == CUBLAS_STATUS_SUCCESS         ? "success"
           : status == CUBLAS_STATUS_NOT_SUPPORTED ? "not supported"
                                                   : "invalid value";
}

static cublasStatus_t made(const void *object)
{
    return object ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *out)
{
    *out = calloc(1, sizeof **out);
    return made(*out);
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle)
{
    free(handle);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *out,
                                        cublasComputeType_t compute,
                                        cudaDataType_t scale)
{
    if (scale != CUDA_R_32F)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    *out = calloc(1, sizeof **out);
    if (*out)
        (*out)->compute = compute;
    return made(*out);
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc)
{
    free(desc);
    return CUBLAS_STATUS_SUCCESS;
}

/* A size that is not the attribute's is what the library refuses too. */
static cublasStatus_t take(void *to, size_t n_to, const void *value, size_t n)
{
    if (n != n_to)
        return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(to, value, n);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t
cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                               cublasLtMatmulDescAttributes_t attribute,
                               const void *value, size_t n_bytes)
{
    switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
        return take(&desc->op_a, sizeof desc->op_a, value, n_bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB:
        return take(&desc->op_b, sizeof desc->op_b, value, n_bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
        return take(&desc->epilogue, sizeof desc->epilogue, value, n_bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
        return take((void *)&desc->bias, sizeof desc->bias, value, n_bytes);
    }
    return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *out,
                                          cudaDataType_t type, uint64_t rows,
                                          uint64_t cols, int64_t ld)
{
    if (ld < (int64_t)rows)
        return CUBLAS_STATUS_INVALID_VALUE;
    *out = malloc(sizeof **out);
    if (*out)
        **out = (struct emulated_matrix){
            type, (int64_t)rows, (int64_t)cols, ld, 0, 1};
    return made(*out);
}

cublasStatus_t
cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                 cublasLtMatrixLayoutAttribute_t attribute,
                                 const void *value, size_t n_bytes)
{
    if (attribute == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT)
        return take(&layout->n_batch, sizeof layout->n_batch, value, n_bytes);
    return take(&layout->step, sizeof layout->step, value, n_bytes);
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout)
{
    free(layout);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *out)
{
    *out = calloc(1, sizeof **out);
    if (*out)
        (*out)->reductions = CUBLASLT_REDUCTION_SCHEME_MASK;
    return made(*out);
}

cublasStatus_t
cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference)
{
    free(preference);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(
    cublasLtMatmulPreference_t preference,
    cublasLtMatmulPreferenceAttributes_t attribute, const void *value,
    size_t n_bytes)
{
    if (attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES)
        return take(&preference->workspace_bytes, sizeof(size_t), value,
                    n_bytes);
    if (attribute == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK)
        return take(&preference->reductions, sizeof(uint32_t), value, n_bytes);
    int i = (int)attribute - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES;
    return take(&preference->alignment[i], sizeof(uint32_t), value, n_bytes);
}

/* ---- products ------------------------------------------------------------ */

/* m x n = (m x k) (k x n), whatever is transposed. */
static bool do_fit(const struct emulated_product *p,
                   const struct emulated_matrix *a,
                   const struct emulated_matrix *b,
                   const struct emulated_matrix *d)
{
    int64_t m = p->op_a == CUBLAS_OP_T ? a->cols : a->rows;
    int64_t k = p->op_a == CUBLAS_OP_T ? a->rows : a->cols;
    int64_t k_b = p->op_b == CUBLAS_OP_T ? b->cols : b->rows;
    int64_t n = p->op_b == CUBLAS_OP_T ? b->rows : b->cols;

    return m == d->rows && n == d->cols && k == k_b && a->type == b->type &&
           a->n_batch == d->n_batch && b->n_batch == d->n_batch;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
    cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
    cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
    cublasLtMatmulPreference_t preference, int n_wanted,
    cublasLtMatmulHeuristicResult_t *out, int *n_out)
{
    (void)handle;
    (void)c;
    if (!do_fit(desc, a, b, d))
        return CUBLAS_STATUS_INVALID_VALUE;
    emulated_alignment = preference->alignment[0];
    *n_out = 0;
    for (int i = 0; i < emulated_algorithms_n && i < n_wanted; i++) {
        memset(&out[i], 0, sizeof out[i]);
        out[i].algo.data[0] = (uint64_t)i;
        out[i].algo.data[1] =
            (preference->reductions &
             ~(uint32_t)CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE) != 0;
        (*n_out)++;
    }
    return CUBLAS_STATUS_SUCCESS;
}

static float of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static float get(const void *at, int64_t i, cudaDataType_t type, bool is_tf32)
{
    uint32_t bits;
    if (type == CUDA_R_16BF)
        return of_bits((uint32_t)((const uint16_t *)at)[i] << 16);
    memcpy(&bits, (const float *)at + i, sizeof bits);
    if (is_tf32)
        bits &= ~0x1fffU;
    return of_bits(bits);
}

static void put(void *at, int64_t i, cudaDataType_t type, float x)
{
    uint32_t bits;
    if (type != CUDA_R_16BF) {
        ((float *)at)[i] = x;
        return;
    }
    memcpy(&bits, &x, sizeof bits);
    bits += 0x7fffU + (bits >> 16 & 1);
    ((uint16_t *)at)[i] = (uint16_t)(bits >> 16);
}

/* One product of the call: all that its elements need. */
typedef struct operands {
    const struct emulated_product *desc;
    const struct emulated_matrix *a, *b;
    const void *a_at, *b_at;
    int64_t n_inner;
    bool is_rounded; /* the first half of a sum, to 16 bits */
} operands;

static double inner(const operands *o, int64_t i, int64_t j)
{
    bool is_tf32 = o->desc->compute == CUBLAS_COMPUTE_32F_FAST_TF32;
    bool is_a_t = o->desc->op_a == CUBLAS_OP_T;
    bool is_b_t = o->desc->op_b == CUBLAS_OP_T;
    double sum = 0;

    for (int64_t l = 0; l < o->n_inner; l++) {
        if (o->is_rounded && l == o->n_inner / 2) {
            uint16_t narrow;
            put(&narrow, 0, CUDA_R_16BF, (float)sum);
            sum = (double)get(&narrow, 0, CUDA_R_16BF, false);
        }
        int64_t at_a = is_a_t ? l + i * o->a->ld : i + l * o->a->ld;
        int64_t at_b = is_b_t ? j + l * o->b->ld : l + j * o->b->ld;
        sum += (double)get(o->a_at, at_a, o->a->type, is_tf32) *
               (double)get(o->b_at, at_b, o->b->type, is_tf32);
    }
    return sum;
}

/* One product; `o` and the other operands are those of the i-th of a batch. */
static void multiply(const operands *o, const float scales[2], const void *c,
                     void *d, const struct emulated_matrix *layout)
{
    for (int64_t j = 0; j < layout->cols; j++)
        for (int64_t i = 0; i < layout->rows; i++) {
            int64_t at = i + j * layout->ld;
            double sum = (double)scales[0] * inner(o, i, j);
            if (scales[1] != 0)
                sum +=
                    (double)scales[1] * (double)get(c, at, layout->type, false);
            if (o->desc->epilogue == CUBLASLT_EPILOGUE_BIAS)
                sum += (double)get(o->desc->bias, i, layout->type, false);
            put(d, at, layout->type, (float)sum);
        }
}

/* The i-th matrix of a batch. */
static const void *of_batch(const void *at, const struct emulated_matrix *m,
                            int32_t i)
{
    return (const char *)at +
           (m->type == CUDA_R_16BF ? 2 : 4) * (int64_t)i * m->step;
}

cublasStatus_t cublasLtMatmul(
    cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha,
    const void *a, cublasLtMatrixLayout_t a_layout, const void *b,
    cublasLtMatrixLayout_t b_layout, const void *beta, const void *c,
    cublasLtMatrixLayout_t c_layout, void *d, cublasLtMatrixLayout_t d_layout,
    const cublasLtMatmulAlgo_t *algorithm, void *workspace,
    size_t workspace_bytes, cudaStream_t stream)
{
    const float scales[] = {*(const float *)alpha, *(const float *)beta};
    emulated_algorithm *how = &emulated_algorithms[algorithm->data[0]];
    (void)workspace;
    (void)workspace_bytes;
    (void)stream;
    if (how->is_broken || c_layout->type != d_layout->type)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    handle->n_started++;
    how->n_runs++;
    now_ms += how->ms;
    for (int32_t i = 0; i < d_layout->n_batch; i++) {
        const operands o = {
            desc,
            a_layout,
            b_layout,
            of_batch(a, a_layout, i),
            of_batch(b, b_layout, i),
            desc->op_a == CUBLAS_OP_T ? a_layout->rows : a_layout->cols,
            algorithm->data[1] != 0 && d_layout->type == CUDA_R_16BF};
        multiply(&o, scales, of_batch(c, c_layout, i),
                 (void *)of_batch(d, d_layout, i), d_layout);
    }
    return CUBLAS_STATUS_SUCCESS;
}

fr_status fr_cublaslt_load(fr_cublaslt *out, fr_err *err)
{
    (void)err;
#define TAKE(name) out->name = name;
    FR_CUBLASLT_FUNCTIONS(TAKE)
#undef TAKE
    return FR_OK;
}
