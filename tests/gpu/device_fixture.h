/*
 * device_fixture.h: one instruction on the device beside the same one on the
 * CPU, which is the oracle.  The tests are compiled twice: for the emulation
 * (make check) and for a GPU (make check-gpu).
 *
 * Inputs are rounded to their width first, so both sides read the same
 * numbers; what is compared is what is written, relative to its largest
 * element: in float32 by the case's tolerance, in 16 bits by half a unit of
 * the last place more.
 */
#ifndef FR_TESTS_DEVICE_FIXTURE_H
#define FR_TESTS_DEVICE_FIXTURE_H

#include "kernels/cuda/kernels_cuda.h"
#include "tests/unit/runtime/kernel_fixture.h"

#include <cuda_runtime.h>

typedef enum df_width {
    DF_NONE,
    DF_T, /* the case's dtype */
    DF_G, /* its grad_dtype */
    DF_F32,
    DF_F64,
    DF_TOKENS, /* I32 below `scale` */
    DF_CHOSEN  /* a float and an I32 side by side; n counts both */
} df_width;

typedef struct df_operand {
    df_width width;
    int64_t n;
    double scale; /* noise in [-scale, scale); F64 and negative: zeros */
    char access;  /* 'r', or compared: 'w', 'm' */
    int same_as;  /* 1 + the operand whose memory it shares */
} df_operand;

typedef struct df_case df_case;
struct df_case {
    fr_instr instr; /* without its dtypes */
    df_operand operand[FR_INSTR_REFS];
    double tolerance; /* of float32 results */
    double narrow;    /* more of it where dtype is BF16 */
    const fr_model *model;
    const fr_job *job;
    const fr_plan *plan;
    const fr_tensor *tensors;
    uint32_t n_tensors;
    int coordinate, tp_coordinate, n_group;
    int64_t i_step;
    fr_sequence_share share;
    int64_t layer, first_sequence;
    double dropout;
    /* Writes what operand i begins with over the noise; may be NULL. */
    void (*fill)(const df_case *at, int i, void *host);
};

enum { DF_GUARD = 16 }; /* elements behind each operand */

static inline uint16_t df_narrow(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (uint16_t)((bits + 0x7fffU + (bits >> 16 & 1U)) >> 16);
}

static inline float df_wide(uint16_t x)
{
    uint32_t bits = (uint32_t)x << 16;
    float y;
    memcpy(&y, &bits, sizeof y);
    return y;
}

static inline bool df_is_narrow(const df_case *at, int i)
{
    df_width width = at->operand[i].width;
    return (width == DF_T && at->instr.dtype == FR_DTYPE_BF16) ||
           (width == DF_G && at->instr.grad_dtype == FR_DTYPE_BF16);
}

static inline size_t df_element_bytes(const df_case *at, int i)
{
    return df_is_narrow(at, i) ? 2 : at->operand[i].width == DF_F64 ? 8 : 4;
}

/* Memory of one operand: the CPU's, and the device's with a copy here. */
typedef struct df_memory {
    void *host, *device, *copy;
    size_t n_bytes; /* of `device`, guard included */
} df_memory;

static inline void df_fill(const df_operand *operand, int i, bool is_narrow,
                           void *out)
{
    uint64_t seed = (uint64_t)(100 + i);
    for (int64_t j = 0; j < operand->n + DF_GUARD; j++) {
        double x = operand->scale * kf_noise(seed, (uint64_t)j);
        if (operand->width == DF_TOKENS)
            ((int32_t *)out)[j] = (int32_t)floor(fabs(x));
        else if (operand->width == DF_F64)
            ((double *)out)[j] = operand->scale < 0 ? 0.0 : fabs(x);
        else
            ((float *)out)[j] =
                is_narrow ? df_wide(df_narrow((float)x)) : (float)x;
    }
}

static inline void df_to_device(const df_case *at, int i, df_memory *memory)
{
    const int64_t n = at->operand[i].n + DF_GUARD;
    memcpy(memory->copy, memory->host, memory->n_bytes);
    for (int64_t j = 0; df_is_narrow(at, i) && j < n; j++)
        ((uint16_t *)memory->copy)[j] = df_narrow(((float *)memory->host)[j]);
    cudaMemcpyAsync(memory->device, memory->copy, memory->n_bytes,
                    cudaMemcpyHostToDevice, NULL);
}

static inline void df_create(const df_case *at, df_memory *memory)
{
    for (int i = 0; i < FR_INSTR_REFS; i++) {
        const df_operand *operand = &at->operand[i];
        const size_t n = (size_t)(operand->n + DF_GUARD);
        memory[i] = (df_memory){0};
        if (operand->width == DF_NONE)
            continue;
        if (operand->same_as > 0) {
            memory[i] = memory[operand->same_as - 1];
            continue;
        }
        memory[i].n_bytes = n * df_element_bytes(at, i);
        memory[i].host = malloc(n * 8);
        memory[i].copy = malloc(n * 8);
        CHECK(cudaMalloc(&memory[i].device, memory[i].n_bytes) == cudaSuccess);
        df_fill(operand, i, df_is_narrow(at, i), memory[i].host);
        if (at->fill != NULL)
            at->fill(at, i, memory[i].host);
        df_to_device(at, i, &memory[i]);
    }
}

static inline void df_destroy(const df_case *at, df_memory *memory)
{
    for (int i = 0; i < FR_INSTR_REFS; i++) {
        if (at->operand[i].width == DF_NONE || at->operand[i].same_as > 0)
            continue;
        free(memory[i].host);
        free(memory[i].copy);
        cudaFree(memory[i].device);
    }
}

static inline fr_kernel_call df_call(const df_case *at)
{
    fr_kernel_call call = kf_call(&at->instr, 2, NULL, 0);
    if (at->job != NULL)
        call.job = at->job;
    if (at->plan != NULL)
        call.plan = at->plan;
    if (at->model != NULL)
        call.model = at->model;
    call.tensors = at->tensors;
    call.n_tensors = at->n_tensors;
    call.coordinate = at->coordinate;
    call.tp_coordinate = at->tp_coordinate;
    call.n_group = at->n_group > 0 ? at->n_group : 1;
    call.i_step = at->i_step;
    call.share = at->share;
    call.layer = at->layer;
    call.first_sequence = at->first_sequence;
    call.dropout = at->dropout;
    return call;
}

/* The values that the host writes before a step. */
static inline fr_cuda_step df_step(const df_case *at)
{
    fr_cuda_step step = {.i_step = at->i_step,
                         .learning_rate = 1,
                         .moment1_scale = 1,
                         .moment2_scale = 1};
    if (at->job != NULL) {
        double t = (double)(at->i_step + 1);
        step.learning_rate = (float)fr_job_lr(at->job, at->i_step);
        step.moment1_scale = (float)(1 / (1 - pow(at->job->beta1, t)));
        step.moment2_scale = (float)(1 / (1 - pow(at->job->beta2, t)));
    }
    return step;
}

/* Launches the call; the status. */
static inline fr_status df_launch(const df_case *at, fr_kernel_call call,
                                  fr_err *err)
{
    fr_cuda_launch launch = {.call = call};
    fr_cuda_step step = df_step(at);
    void *device_step = NULL;
    if (fr_kernels_cuda[call.instr->op] == NULL)
        return fr_fail(err, FR_CHECK, "no kernel");
    FR_TRY(fr_cuda_kernels_create(&launch.kernels, err));
    cudaMalloc(&device_step, sizeof step);
    cudaMemcpyAsync(device_step, &step, sizeof step, cudaMemcpyHostToDevice,
                    NULL);
    launch.step = device_step;
    fr_status status = fr_kernels_cuda[call.instr->op](&launch, err);
    bool is_well = cudaStreamSynchronize(NULL) == cudaSuccess;
    CHECK(is_well);
    cudaFree(device_step);
    fr_cuda_kernels_destroy(launch.kernels);
    return status;
}

/* Element j of an operand that is not narrow. */
static inline double df_element(const df_case *at, int i, const void *from,
                                int64_t j)
{
    const df_width width = at->operand[i].width;
    if (width == DF_F64)
        return ((const double *)from)[j];
    if (width == DF_TOKENS || (width == DF_CHOSEN && j % 2 == 1))
        return (double)((const int32_t *)from)[j];
    return (double)((const float *)from)[j];
}

/* Element j of what came back. */
static inline double df_got(const df_case *at, int i, const df_memory *memory,
                            int64_t j)
{
    return df_is_narrow(at, i) ? (double)df_wide(((uint16_t *)memory->copy)[j])
                               : df_element(at, i, memory->copy, j);
}

static inline double df_expected(const df_case *at, int i,
                                 const df_memory *memory, int64_t j)
{
    return df_element(at, i, memory->host, j);
}

static inline void df_compare(const df_case *at, int i, df_memory *memory)
{
    const df_operand *operand = &at->operand[i];
    double worst = 0, largest = 1e-30;
    int64_t where = 0;
    for (int64_t j = 0; j < operand->n + DF_GUARD; j++) {
        double want = df_expected(at, i, memory, j);
        double off = fabs(df_got(at, i, memory, j) - want);
        if (j >= operand->n) { /* the guard */
            check_that(off <= (df_is_narrow(at, i) ? 1e-2 * fabs(want) : 0),
                       __FILE__, __LINE__, "%s: operand %d is written beyond",
                       fr_op_name((fr_op)at->instr.op), i);
            continue;
        }
        if (!(off <= worst)) {
            worst = off;
            where = j;
        }
        largest = fabs(want) > largest ? fabs(want) : largest;
    }
    double most = at->tolerance;
    if (at->instr.dtype == FR_DTYPE_BF16)
        most += at->narrow;
    if (df_is_narrow(at, i))
        most += 0x1p-8; /* half a unit, and of what it is added to */
    check_that(worst <= most * largest, __FILE__, __LINE__,
               "%s %s: operand %d element %lld is off by %g of %g (%g of %g)",
               fr_op_name((fr_op)at->instr.op),
               fr_dtype_name((fr_dtype)at->instr.dtype), i, (long long)where,
               worst, largest, df_got(at, i, memory, where),
               df_expected(at, i, memory, where));
}

static inline void df_fetch(df_memory *memory)
{
    cudaMemcpyAsync(memory->copy, memory->device, memory->n_bytes,
                    cudaMemcpyDeviceToHost, NULL);
    cudaStreamSynchronize(NULL);
}

/* Launches the call twice on the same inputs: the same bits in every operand.
 */
static inline void df_launch_twice(const df_case *at, df_memory *memory,
                                   fr_kernel_call call)
{
    void *before[FR_INSTR_REFS] = {NULL};
    fr_err err = {0};
    CHECK_OK(df_launch(at, call, &err), &err);
    for (int i = 0; i < FR_INSTR_REFS; i++) {
        if (at->operand[i].width == DF_NONE || at->operand[i].same_as > 0)
            continue;
        df_fetch(&memory[i]);
        before[i] = malloc(memory[i].n_bytes);
        memcpy(before[i], memory[i].copy, memory[i].n_bytes);
        df_to_device(at, i, &memory[i]);
    }
    CHECK_OK(df_launch(at, call, &err), &err);
    for (int i = 0; i < FR_INSTR_REFS; i++) {
        if (before[i] == NULL)
            continue;
        df_fetch(&memory[i]);
        check_that(memcmp(before[i], memory[i].copy, memory[i].n_bytes) == 0,
                   __FILE__, __LINE__, "%s: operand %d of a rerun differs",
                   fr_op_name((fr_op)at->instr.op), i);
        free(before[i]);
    }
}

/* The host's operands are floats, whatever the device's are. */
static inline void df_run_host(fr_kernel_call call)
{
    fr_instr wide = *call.instr;
    wide.dtype = wide.grad_dtype = FR_DTYPE_F32;
    call.instr = &wide;
    fr_kernels_cpu_set_threads(2);
    fr_kernels_cpu[wide.op](&call);
}

/* Runs the case on both sides and compares, in these dtypes. */
static inline void df_check(df_case at, fr_dtype dtype, fr_dtype grad_dtype)
{
    df_memory memory[FR_INSTR_REFS];
    at.instr.dtype = (uint8_t)dtype;
    at.instr.grad_dtype = (uint8_t)grad_dtype;
    df_create(&at, memory);
    fr_kernel_call call = df_call(&at);
    for (int i = 0; i < FR_INSTR_REFS; i++)
        call.ptr[i] = memory[i].device;
    df_launch_twice(&at, memory, call);
    for (int i = 0; i < FR_INSTR_REFS; i++)
        call.ptr[i] = memory[i].host;
    df_run_host(call);
    for (int i = 0; i < FR_INSTR_REFS; i++) {
        const df_operand *operand = &at.operand[i];
        if (operand->access != 'w' && operand->access != 'm')
            continue;
        df_fetch(&memory[i]);
        df_compare(&at, i, &memory[i]);
    }
    df_destroy(&at, memory);
}

static inline bool df_has_device(void)
{
    int n = 0;
    return cudaGetDeviceCount(&n) == cudaSuccess && n > 0;
}

/* CHECK_MAIN, but skipped on a machine without a GPU. */
#define DF_MAIN(...)                                                           \
    int main(int argc, char **argv)                                            \
    {                                                                          \
        static const check_test tests[] = {__VA_ARGS__};                       \
        if (!df_has_device()) {                                                \
            printf("SKIP all: no GPU\n# 0 passed, 0 failed, 1 skipped\n");     \
            return 77;                                                         \
        }                                                                      \
        return check_run(tests, sizeof tests / sizeof tests[0], argc, argv);   \
    }

/* In float32, in bf16 with gradients of float32 and in bf16 throughout. */
static inline void df_check_all(df_case at)
{
    df_check(at, FR_DTYPE_F32, FR_DTYPE_F32);
    df_check(at, FR_DTYPE_BF16, FR_DTYPE_F32);
    df_check(at, FR_DTYPE_BF16, FR_DTYPE_BF16);
}

#endif
