/*
 * product_cuda.c: see product_cuda.h.
 *
 * cuBLASLt is column-major, where a row-major matrix is its own transpose: it
 * is given c^T = op(b)^T op(a)^T.  A workspace of 32 MiB is what NVIDIA
 * recommends for Hopper (cuBLAS documentation, section 2.1.6, cuBLAS
 * workspace, 2025).
 */
#include "kernels/cuda/product_cuda.h"

#include "core/base/vec.h"
#include "kernels/cuda/cublaslt_cuda.h"

#include <cuda_runtime.h>
#include <stdlib.h>

enum { MAX_CANDIDATES = 16, N_TIMED = 3 };

/* An algorithm that was chosen, and for which products. */
typedef struct choice {
    fr_cuda_product product; /* pointers do not count, their presence does */
    uint32_t alignment;      /* of the operands, at least */
    cublasLtMatmulAlgo_t algorithm;
    bool is_tuned;
} choice;

typedef fr_vec(choice) choice_vec;

struct fr_cuda_products {
    fr_cublaslt blas;
    cublasLtHandle_t handle;
    choice_vec choices;
};

static fr_status check(const fr_cublaslt *blas, cublasStatus_t status,
                       const char *what, fr_err *err)
{
    if (status == CUBLAS_STATUS_SUCCESS)
        return FR_OK;
    return fr_fail(err, FR_FAILURE, "cuBLASLt: %s: %s", what,
                   blas->cublasLtGetStatusString(status));
}

static fr_status check_cuda(cudaError_t error, const char *what, fr_err *err)
{
    if (error == cudaSuccess)
        return FR_OK;
    return fr_fail(err, FR_FAILURE, "CUDA: %s: %s", what,
                   cudaGetErrorString(error));
}

fr_status fr_cuda_products_create(fr_cuda_products **out, fr_err *err)
{
    fr_cuda_products *products;
    FR_TRY_CALLOC(products, 1, err);
    const fr_cublaslt *blas = &products->blas;
    fr_status status = fr_cublaslt_load(&products->blas, err);
    if (status == FR_OK)
        status =
            check(blas, blas->cublasLtCreate(&products->handle), "start", err);
    if (status != FR_OK) {
        free(products);
        return status;
    }
    *out = products;
    return FR_OK;
}

fr_dtype fr_cuda_product_dtype(const fr_kernel_call *call)
{
    fr_dtype dtype = (fr_dtype)call->instr->dtype;
    bool is_tf32 = dtype == FR_DTYPE_F32 && call->plan != NULL &&
                   call->plan->precision == FR_DTYPE_TF32;
    return is_tf32 ? FR_DTYPE_TF32 : dtype;
}

void fr_cuda_products_destroy(fr_cuda_products *products)
{
    if (products == NULL)
        return;
    products->blas.cublasLtDestroy(products->handle);
    fr_vec_release(&products->choices);
    free(products);
}

/* ---- descriptors -------------------------------------------------------- */

typedef struct descriptors {
    cublasLtMatmulDesc_t product;
    cublasLtMatrixLayout_t a, b, c; /* of the library: a is our b */
} descriptors;

static void descriptors_release(const fr_cublaslt *blas, descriptors *d)
{
    if (d->product != NULL)
        blas->cublasLtMatmulDescDestroy(d->product);
    if (d->a != NULL)
        blas->cublasLtMatrixLayoutDestroy(d->a);
    if (d->b != NULL)
        blas->cublasLtMatrixLayoutDestroy(d->b);
    if (d->c != NULL)
        blas->cublasLtMatrixLayoutDestroy(d->c);
}

static cudaDataType_t type_of(fr_dtype dtype)
{
    return dtype == FR_DTYPE_BF16 ? CUDA_R_16BF : CUDA_R_32F;
}

static cublasStatus_t set_product(const fr_cublaslt *blas,
                                  const fr_cuda_product *p, descriptors *d)
{
    const cublasOperation_t op_a =
        p->is_b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasOperation_t op_b =
        p->is_a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasLtEpilogue_t epilogue =
        p->bias != NULL ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
    const cublasComputeType_t compute = p->dtype == FR_DTYPE_TF32
                                            ? CUBLAS_COMPUTE_32F_FAST_TF32
                                            : CUBLAS_COMPUTE_32F;
    cublasStatus_t status =
        blas->cublasLtMatmulDescCreate(&d->product, compute, CUDA_R_32F);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = blas->cublasLtMatmulDescSetAttribute(
            d->product, CUBLASLT_MATMUL_DESC_TRANSA, &op_a, sizeof op_a);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = blas->cublasLtMatmulDescSetAttribute(
            d->product, CUBLASLT_MATMUL_DESC_TRANSB, &op_b, sizeof op_b);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = blas->cublasLtMatmulDescSetAttribute(
            d->product, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue,
            sizeof epilogue);
    if (status == CUBLAS_STATUS_SUCCESS && p->bias != NULL)
        status = blas->cublasLtMatmulDescSetAttribute(
            d->product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &p->bias,
            sizeof p->bias);
    return status;
}

/* A matrix of our `cols` columns, which are the library's rows. */
static cublasStatus_t set_layout(const fr_cublaslt *blas,
                                 cublasLtMatrixLayout_t *out, fr_dtype dtype,
                                 const int64_t cols_rows[2], int64_t n_batch,
                                 fr_cuda_matrix lies)
{
    const int64_t cols = cols_rows[0], rows = cols_rows[1];
    const int32_t n = (int32_t)n_batch;
    cublasStatus_t status = blas->cublasLtMatrixLayoutCreate(
        out, type_of(dtype), (uint64_t)cols, (uint64_t)rows,
        lies.stride > 0 ? lies.stride : cols);
    if (status == CUBLAS_STATUS_SUCCESS && n > 0)
        status = blas->cublasLtMatrixLayoutSetAttribute(
            *out, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &n, sizeof n);
    if (status == CUBLAS_STATUS_SUCCESS && n > 0)
        status = blas->cublasLtMatrixLayoutSetAttribute(
            *out, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &lies.step,
            sizeof lies.step);
    return status;
}

static fr_status describe(const fr_cublaslt *blas, const fr_cuda_product *p,
                          descriptors *d, fr_err *err)
{
    cublasStatus_t status = set_product(blas, p, d);
    const int64_t a[] = {p->is_a_transposed ? p->m : p->k,
                         p->is_a_transposed ? p->k : p->m};
    const int64_t b[] = {p->is_b_transposed ? p->k : p->n,
                         p->is_b_transposed ? p->n : p->k};
    const int64_t c[] = {p->n, p->m};
    if (status == CUBLAS_STATUS_SUCCESS)
        status = set_layout(blas, &d->a, p->dtype, b, p->n_batch, p->b_lies);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = set_layout(blas, &d->b, p->dtype, a, p->n_batch, p->a_lies);
    if (status == CUBLAS_STATUS_SUCCESS)
        status =
            set_layout(blas, &d->c, p->out_dtype, c, p->n_batch, p->c_lies);
    return check(blas, status, "description", err);
}

/* ---- algorithms --------------------------------------------------------- */

static bool lie_same(fr_cuda_matrix a, fr_cuda_matrix b)
{
    return a.stride == b.stride && a.step == b.step;
}

static bool is_same(const fr_cuda_product *a, const fr_cuda_product *b)
{
    return a->m == b->m && a->n == b->n && a->k == b->k &&
           a->is_a_transposed == b->is_a_transposed &&
           a->is_b_transposed == b->is_b_transposed &&
           a->is_added == b->is_added && a->dtype == b->dtype &&
           a->out_dtype == b->out_dtype &&
           (a->bias == NULL) == (b->bias == NULL) && a->n_batch == b->n_batch &&
           lie_same(a->a_lies, b->a_lies) && lie_same(a->b_lies, b->b_lies) &&
           lie_same(a->c_lies, b->c_lies);
}

/* Bytes that all operands are aligned to; 256 is all that algorithms want. */
static uint32_t alignment_of(const fr_cuda_product *p)
{
    uintptr_t all = (uintptr_t)p->a | (uintptr_t)p->b | (uintptr_t)p->c |
                    (uintptr_t)p->bias | 256;
    return (uint32_t)(all & -all);
}

static choice *find(fr_cuda_products *products, const fr_cuda_product *product)
{
    for (size_t i = 0; i < products->choices.n; i++) {
        choice *at = &products->choices.items[i];
        if (at->alignment == alignment_of(product) &&
            is_same(&at->product, product))
            return at;
    }
    return NULL;
}

/* The inputs of a launch. */
typedef struct running {
    fr_cuda_kernels *kernels;
    const fr_cuda_product *product;
    const descriptors *d;
    cudaStream_t stream;
} running;

static cublasStatus_t launch(const running *at,
                             const cublasLtMatmulAlgo_t *algorithm)
{
    const fr_cuda_product *p = at->product;
    const float beta = p->is_added ? 1.0F : 0.0F;
    const fr_cuda_products *products = at->kernels->products;
    return products->blas.cublasLtMatmul(
        products->handle, at->d->product, &p->alpha, p->b, at->d->a, p->a,
        at->d->b, &beta, p->c, at->d->c, p->c, at->d->c, algorithm,
        at->kernels->workspace, FR_CUDA_PRODUCT_WORKSPACE_BYTES, at->stream);
}

static cublasStatus_t set_preference(const fr_cublaslt *blas,
                                     cublasLtMatmulPreference_t preference,
                                     uint32_t alignment)
{
    static const cublasLtMatmulPreferenceAttributes_t operands[] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    const size_t n_bytes = FR_CUDA_PRODUCT_WORKSPACE_BYTES;
    /* Parts of a sum are added as float32: the others round them to the type
     * of the result on the way. */
    const uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    cublasStatus_t status = blas->cublasLtMatmulPreferenceSetAttribute(
        preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &n_bytes,
        sizeof n_bytes);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = blas->cublasLtMatmulPreferenceSetAttribute(
            preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &reductions,
            sizeof reductions);
    for (int i = 0; i < 4 && status == CUBLAS_STATUS_SUCCESS; i++)
        status = blas->cublasLtMatmulPreferenceSetAttribute(
            preference, operands[i], &alignment, sizeof alignment);
    return status;
}

static fr_status propose(const running *at,
                         cublasLtMatmulHeuristicResult_t out[MAX_CANDIDATES],
                         int *n_out, fr_err *err)
{
    const fr_cuda_product *p = at->product;
    const fr_cublaslt *blas = &at->kernels->products->blas;
    cublasLtMatmulPreference_t preference;
    FR_TRY(check(blas, blas->cublasLtMatmulPreferenceCreate(&preference),
                 "preference", err));
    cublasStatus_t status = set_preference(blas, preference, alignment_of(p));
    if (status == CUBLAS_STATUS_SUCCESS)
        status = blas->cublasLtMatmulAlgoGetHeuristic(
            at->kernels->products->handle, at->d->product, at->d->a, at->d->b,
            at->d->c, at->d->c, preference, MAX_CANDIDATES, out, n_out);
    blas->cublasLtMatmulPreferenceDestroy(preference);
    if (status == CUBLAS_STATUS_SUCCESS && *n_out > 0)
        return FR_OK;
    return fr_fail(err, FR_FAILURE,
                   "cuBLASLt has no algorithm for %lld x %lld x %lld in %s",
                   (long long)p->m, (long long)p->n, (long long)p->k,
                   fr_dtype_name(p->dtype));
}

/* Milliseconds of N_TIMED runs after one that does not count; < 0: it does
 * not run. */
static float timed(const running *at, const cublasLtMatmulAlgo_t *algorithm,
                   cudaEvent_t begin, cudaEvent_t end)
{
    float ms = -1;
    cublasStatus_t status = launch(at, algorithm);
    bool is_well = cudaEventRecord(begin, at->stream) == cudaSuccess;
    for (int i = 0; i < N_TIMED && status == CUBLAS_STATUS_SUCCESS; i++)
        status = launch(at, algorithm);
    is_well = is_well && status == CUBLAS_STATUS_SUCCESS &&
              cudaEventRecord(end, at->stream) == cudaSuccess &&
              cudaEventSynchronize(end) == cudaSuccess &&
              cudaEventElapsedTime(&ms, begin, end) == cudaSuccess;
    return is_well ? ms : -1;
}

static fr_status fastest(const running *at,
                         const cublasLtMatmulHeuristicResult_t *candidates,
                         int n_candidates, int *out, fr_err *err)
{
    cudaEvent_t begin, end;
    float best = -1;
    FR_TRY(check_cuda(cudaEventCreate(&begin), "event", err));
    fr_status status = check_cuda(cudaEventCreate(&end), "event", err);
    for (int i = 0; status == FR_OK && i < n_candidates; i++) {
        float ms = timed(at, &candidates[i].algo, begin, end);
        if (ms >= 0 && (best < 0 || ms < best)) {
            best = ms;
            *out = i;
        }
    }
    if (status == FR_OK)
        cudaEventDestroy(end);
    cudaEventDestroy(begin);
    (void)cudaGetLastError(); /* of a candidate that did not run */
    if (status == FR_OK && best < 0)
        return fr_fail(err, FR_FAILURE,
                       "cuBLASLt: none of %d algorithms runs for %lld x %lld "
                       "x %lld in %s",
                       n_candidates, (long long)at->product->m,
                       (long long)at->product->n, (long long)at->product->k,
                       fr_dtype_name(at->product->dtype));
    return status;
}

static fr_status choose(const running *at, choice **out, fr_err *err)
{
    cublasLtMatmulHeuristicResult_t candidates[MAX_CANDIDATES];
    choice_vec *choices = &at->kernels->products->choices;
    choice *known = find(at->kernels->products, at->product);
    bool is_tuning = at->kernels->is_tuning;
    int n_candidates = 0, best = 0;
    if (known != NULL && (known->is_tuned || !is_tuning)) {
        *out = known;
        return FR_OK;
    }
    FR_TRY(propose(at, candidates, &n_candidates, err));
    if (is_tuning)
        FR_TRY(fastest(at, candidates, n_candidates, &best, err));
    if (known == NULL) {
        choice made = {.product = *at->product,
                       .alignment = alignment_of(at->product)};
        FR_TRY_PUSH(choices, made, err);
        known = &choices->items[choices->n - 1];
    }
    known->algorithm = candidates[best].algo;
    known->is_tuned = is_tuning;
    *out = known;
    return FR_OK;
}

fr_status fr_cuda_product_start(fr_cuda_kernels *kernels,
                                const fr_cuda_product *product, void *stream,
                                fr_err *err)
{
    const fr_cublaslt *blas = &kernels->products->blas;
    descriptors d = {0};
    running at = {kernels, product, &d, stream};
    choice *chosen = NULL;
    fr_status status = describe(blas, product, &d, err);
    if (status == FR_OK)
        status = choose(&at, &chosen, err);
    if (status == FR_OK && !kernels->is_tuning)
        status = check(blas, launch(&at, &chosen->algorithm), "product", err);
    descriptors_release(blas, &d);
    return status;
}
