/*
 * bench_kernels.c: how fast each CPU kernel is at the shapes of GPT-2 124M,
 * B=4, T=64, beside the sgemm and memory rates of the same run: where a step
 * goes, and which kernel is far from what the machine can do.
 *
 * "warm": the operands of the call before; "cold": operands that the last
 * 96 MB of other work have pushed out of the caches.  Weights are cold in a
 * step, activations mostly warm.  Usage: bench_kernels [threads (2)
 * [kernel names that contain this]]
 */
#include "core/numbers/stats.h"
#include "core/system/clock.h"
#include "kernels/cpu/kernels_cpu.h"
#include "plan/codec/compressor.h"
#include "plan/codec/optimizer.h"
#include "spec/model/model.h"

#include <cblas.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ROWS = 256,
    SEQ = 64,
    COLS = 768,
    FFN = 3072,
    VOCAB = 50257,
    HEADS = 12,
    LAYERS = 12,
    N_REPEATS = 9,
    BUCKET = 7 * 1000 * 1000
};

#define N_PARAMETERS 124439808
#define COLD_BYTES (96L << 20)

typedef struct kernel_case {
    const char *name;
    fr_instr instr;
    int n_calls; /* per step */
    fr_compressor_kind compressor;
} kernel_case;

/* y[ROWS, n] = x[ROWS, k] w[n, k]^T and its two gradients */
#define LINEAR(name, n, k, n_calls)                                            \
    {name " fwd",                                                              \
     {.op = FR_OP_LINEAR_FWD, .linear = {ROWS, n, k, 0, 0}},                   \
     n_calls,                                                                  \
     0},                                                                       \
        {name " dgrad",                                                        \
         {.op = FR_OP_LINEAR_DGRAD, .linear = {ROWS, n, k, 0, 0}},             \
         n_calls,                                                              \
         0},                                                                   \
    {                                                                          \
        name " wgrad",                                                         \
            {.op = FR_OP_LINEAR_WGRAD, .linear = {ROWS, n, k, 0, 0}}, n_calls, \
            0                                                                  \
    }
#define KERNEL(name, symbol, n_calls, ...)                                     \
    {                                                                          \
        name, {.op = FR_OP_##symbol, .dim = {__VA_ARGS__}}, n_calls, 0         \
    }
#define SWIGLU(name, symbol, ...)                                              \
    {                                                                          \
        name,                                                                  \
            {.op = FR_OP_##symbol,                                             \
             .activation = FR_ACTIVATION_SILU,                                 \
             .dim = {__VA_ARGS__}},                                            \
            0, 0                                                               \
    }
#define ATTENTION(name, symbol, n_calls, batch, seq, is_saved)                 \
    {                                                                          \
        name,                                                                  \
            {.op = FR_OP_##symbol,                                             \
             .flags = (is_saved) ? FR_INSTR_SAVE_PROBS : 0,                    \
             .attention = {batch, seq, HEADS, HEADS, COLS / HEADS, 0, 0, 0}},  \
            n_calls, 0                                                         \
    }
#define OPTIMIZER(name, symbol, kind, n_calls, n_moments)                      \
    {                                                                          \
        name,                                                                  \
            {.op = FR_OP_##symbol,                                             \
             .optimizer = FR_OPTIMIZER_##kind,                                 \
             .range = {N_PARAMETERS, 0, 4L * (n_moments)*N_PARAMETERS, 16}},   \
            n_calls, 0                                                         \
    }
#define COMPRESSOR(name, symbol, stage, compressor)                            \
    {                                                                          \
        name, {.op = FR_OP_##symbol, .compress = {BUCKET, 0, stage, 0, 0, 0}}, \
            0, FR_COMPRESSOR_##compressor                                      \
    }

static const kernel_case cases[] = {
    KERNEL("embed_fwd", EMBED_FWD, 1, ROWS, COLS, VOCAB, SEQ, VOCAB),
    KERNEL("embed_bwd", EMBED_BWD, 1, ROWS, COLS, VOCAB, SEQ, VOCAB),
    KERNEL("norm_fwd", NORM_FWD, 2 * LAYERS + 1, ROWS, COLS),
    KERNEL("norm_bwd", NORM_BWD, 2 * LAYERS + 1, ROWS, COLS),
    LINEAR("qkv", 3 * COLS, COLS, LAYERS),
    LINEAR("proj", COLS, COLS, LAYERS),
    LINEAR("fc", FFN, COLS, LAYERS),
    LINEAR("fc2", COLS, FFN, LAYERS),
    LINEAR("head", VOCAB, COLS, 1),
    ATTENTION("attn_fwd", ATTN_FWD, LAYERS, ROWS / SEQ, SEQ, true),
    ATTENTION("attn_bwd", ATTN_BWD, LAYERS, ROWS / SEQ, SEQ, true),
    ATTENTION("attn_fwd lse T1024", ATTN_FWD, 0, 1, 1024, false),
    ATTENTION("attn_bwd lse T1024", ATTN_BWD, 0, 1, 1024, false),
    KERNEL("rope_fwd", ROPE_FWD, 0, ROWS, SEQ, HEADS, HEADS, COLS / HEADS),
    KERNEL("gelu_fwd", GELU_FWD, LAYERS, ROWS *FFN),
    KERNEL("gelu_bwd", GELU_BWD, LAYERS, ROWS *FFN),
    SWIGLU("swiglu_fwd", SWIGLU_FWD, ROWS, FFN),
    SWIGLU("swiglu_bwd", SWIGLU_BWD, ROWS, FFN),
    KERNEL("residual_add", RESIDUAL_ADD, 2 * LAYERS, ROWS, COLS),
    KERNEL("bias_grad", BIAS_GRAD, 0, ROWS, FFN),
    KERNEL("xent", XENT, 1, ROWS, VOCAB, VOCAB),
    KERNEL("zero grads", ZERO, 1, N_PARAMETERS * 4L),
    KERNEL("grad_sqsum", GRAD_SQSUM, 1, N_PARAMETERS, 0),
    OPTIMIZER("adamw", OPT_STEP, ADAMW, 1, 2),
    OPTIMIZER("sgd", OPT_STEP, SGD, 0, 1),
    OPTIMIZER("lamb norms", OPT_NORMS, LAMB, 0, 2),
    OPTIMIZER("lamb step", OPT_STEP, LAMB, 0, 2),
    COMPRESSOR("bf16 compress", COMPRESS, 0, BF16),
    COMPRESSOR("bf16 decompress 2", DECOMPRESS, 0, BF16),
    COMPRESSOR("int8 compress", COMPRESS, 0, INT8),
    COMPRESSOR("int8 decompress 2", DECOMPRESS, 0, INT8),
    COMPRESSOR("topk compress", COMPRESS, 0, TOPK),
    COMPRESSOR("topk decompress 2", DECOMPRESS, 0, TOPK),
    COMPRESSOR("onebit compress", COMPRESS, 0, ONEBIT),
    COMPRESSOR("onebit decompress 2", DECOMPRESS, 0, ONEBIT),
    COMPRESSOR("randomk compress", COMPRESS, 0, RANDOMK),
    COMPRESSOR("randomk decompress", DECOMPRESS, 0, RANDOMK),
    COMPRESSOR("powersgd compress P", COMPRESS, 0, POWERSGD),
    COMPRESSOR("powersgd compress Q", COMPRESS, 1, POWERSGD),
    COMPRESSOR("powersgd decompress", DECOMPRESS, 0, POWERSGD),
};

#define N_CASES (sizeof cases / sizeof cases[0])

/* One kernel ready to run. */
typedef struct setup {
    fr_instr instr;
    fr_kernel_call call;
    fr_job job;
    fr_plan plan;
    fr_tensor tensor;
    void *memory;
    char *cold; /* COLD_BYTES that push the operands out */
} setup;

/* dims that follow from the compressor's table */
static void size_compressor(setup *at, const kernel_case *c)
{
    at->plan = (fr_plan){.tp = 1,
                         .compressor = c->compressor,
                         .compressor_density = 0.01,
                         .compressor_rank = 4,
                         .has_error_feedback = true};
    at->tensor = (fr_tensor){.n = BUCKET, .rows = BUCKET / 1000, .cols = 1000};
    fr_bucket bucket = {0, BUCKET, &at->tensor, 1};
    const fr_compressor *compressor = fr_compressor_of(&at->plan);
    fr_compress_dims *dim = &at->instr.compress;
    dim->payload_bytes =
        (int64_t)fr_compressor_payload_bytes(&at->plan, &bucket);
    dim->state_bytes = (int64_t)compressor->state_bytes(&at->plan, &bucket);
    dim->n_payloads = compressor->wire == FR_WIRE_GATHER ? 2 : 1;
}

static bool has_operand(const setup *at, int i)
{
    fr_op op = (fr_op)at->instr.op;
    if (fr_op_access(op, i) == 0)
        return false;
    if ((op == FR_OP_ATTN_FWD && i == 3) || (op == FR_OP_ATTN_BWD && i == 5))
        return false;
    return !(op == FR_OP_RESIDUAL_ADD && i == 2);
}

static void fill(void *memory, uint64_t n_bytes, bool is_token)
{
    float *x = memory;
    int32_t *tokens = memory;
    uint32_t state = 12345;
    for (uint64_t i = 0; i < n_bytes / 4; i++) {
        state = state * 1664525U + 1013904223U;
        if (is_token)
            tokens[i] = (int32_t)(state >> 8) % VOCAB;
        else
            x[i] = (float)(int32_t)state * 0x1p-31F * 0.1F;
    }
}

/* Index of the operand that holds tokens or step scalars; -1: none. */
static int special_operand(const fr_instr *instr, bool is_step)
{
    switch ((fr_op)instr->op) {
    case FR_OP_EMBED_FWD:
    case FR_OP_EMBED_BWD:
        return is_step ? -1 : 0;
    case FR_OP_XENT:
        return is_step ? 2 : 1;
    case FR_OP_GRAD_SQSUM:
        return is_step ? 1 : -1;
    case FR_OP_OPT_NORMS:
    case FR_OP_OPT_STEP:
        return is_step ? 3 : -1;
    default:
        return -1;
    }
}

static bool setup_init(setup *at, const kernel_case *c)
{
    uint64_t offset[FR_INSTR_REFS], n_bytes = 0;
    at->instr = c->instr;
    if (at->instr.op == FR_OP_COMPRESS || at->instr.op == FR_OP_DECOMPRESS)
        size_compressor(at, c);
    else
        at->tensor = (fr_tensor){.n = N_PARAMETERS,
                                 .rows = 1,
                                 .cols = N_PARAMETERS,
                                 .is_decayed = true};
    for (int i = 0; i < FR_INSTR_REFS; i++) {
        offset[i] = n_bytes;
        if (!has_operand(at, i))
            continue;
        at->instr.ref[i].space = FR_SPACE_IN;
        n_bytes += (fr_instr_ref_bytes(&at->instr, i, 1) + 4159) / 64 * 64;
    }
    fr_job_init(&at->job);
    at->job.optimizer = (fr_optimizer_kind)c->instr.optimizer;
    at->memory = calloc(1, n_bytes);
    if (at->memory == NULL)
        return false;
    at->call = (fr_kernel_call){.instr = &at->instr,
                                .n_group = 1,
                                .job = &at->job,
                                .plan = &at->plan,
                                .tensors = &at->tensor,
                                .n_tensors = 1};
    for (int i = 0; i < FR_INSTR_REFS; i++) {
        if (!has_operand(at, i))
            continue;
        at->call.ptr[i] = (char *)at->memory + offset[i];
        bool is_state = at->instr.op == FR_OP_DECOMPRESS ||
                        (at->instr.op == FR_OP_COMPRESS && i > 0) ||
                        (at->instr.op == FR_OP_OPT_STEP && i == 2);
        if (!is_state && i != special_operand(&at->instr, true))
            fill(at->call.ptr[i], fr_instr_ref_bytes(&at->instr, i, 1),
                 i == special_operand(&at->instr, false));
    }
    return true;
}

/* Seconds of a call: the best, as a team that loses one core for a moment
 * waits for it, and most calls are shorter than that moment. */
static double measure(setup *at, int n_threads, bool is_cold)
{
    double times[N_REPEATS];
    at->call.n_threads = n_threads;
    fr_kernels_cpu_set_threads(n_threads);
    fr_kernels_cpu[at->instr.op](&at->call);
    for (int i = 0; i < N_REPEATS; i++) {
        if (is_cold) /* every thread's caches */
#pragma omp parallel for schedule(static)
            for (long j = 0; j < COLD_BYTES / 64; j++)
                at->cold[j * 64]++;
        double begin_s = fr_clock_s();
        fr_kernels_cpu[at->instr.op](&at->call);
        times[i] = fr_clock_s() - begin_s;
    }
    return fr_stats_min(times, N_REPEATS);
}

/* ---- the machine -------------------------------------------------------- */

static double sgemm_flops(int n_threads)
{
    enum { N = 1024 };
    float *x = calloc(3 * N * N, sizeof *x);
    double times[N_REPEATS];
    fr_kernels_cpu_set_threads(n_threads);
    for (int i = 0; x != NULL && i < N_REPEATS; i++) {
        double begin_s = fr_clock_s();
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, N, N, N, 1.0F, x,
                    N, x + N * N, N, 0.0F, x + 2 * N * N, N);
        times[i] = fr_clock_s() - begin_s;
    }
    free(x);
    return 2.0 * N * N * N / fr_stats_min(times, N_REPEATS);
}

/* Bytes per second of y += a x, two reads and a write. */
static double axpy_Bps(int n_threads)
{
    (void)n_threads; /* without OpenMP */
    enum { N = 64 << 20 };
    float *x = malloc(2UL * N * sizeof *x);
    double times[N_REPEATS];
    for (int i = 0; x != NULL && i < 2 * N; i++)
        x[i] = 1.0F;
    for (int i = 0; x != NULL && i < N_REPEATS; i++) {
        double begin_s = fr_clock_s();
#pragma omp parallel for simd num_threads(n_threads) schedule(static)
        for (int j = 0; j < N; j++)
            x[j] += 0.5F * x[N + j];
        times[i] = fr_clock_s() - begin_s;
    }
    free(x);
    return 12.0 * N / fr_stats_min(times, N_REPEATS);
}

static double flop_of(const setup *at)
{
    const fr_optimizer *optimizer = fr_optimizers[at->job.optimizer];
    double n = (double)at->instr.range.n;
    if (at->instr.op == FR_OP_OPT_STEP)
        return n * optimizer->step_flop;
    if (at->instr.op == FR_OP_OPT_NORMS)
        return n * optimizer->norms_flop;
    return (double)fr_instr_flop(&at->instr);
}

static double moved_of(const setup *at)
{
    const fr_optimizer *optimizer = fr_optimizers[at->job.optimizer];
    double n = (double)at->instr.range.n;
    if (at->instr.op == FR_OP_OPT_STEP)
        return n * optimizer->step_moved_bytes;
    if (at->instr.op == FR_OP_OPT_NORMS)
        return n * optimizer->norms_moved_bytes;
    if (at->instr.op == FR_OP_EMBED_FWD) /* not the whole matrix */
        return 12.0 * ROWS * COLS;
    if (at->instr.op == FR_OP_EMBED_BWD)
        return 20.0 * ROWS * COLS;
    return (double)fr_instr_moved_bytes(&at->instr, 1);
}

static void print_case(const kernel_case *c, int n_threads, char *cold,
                       double step_ms[2])
{
    setup at = {.cold = cold};
    if (!setup_init(&at, c)) {
        printf("%-20s out of memory\n", c->name);
        return;
    }
    double one_s = measure(&at, 1, false);
    double warm_s = measure(&at, n_threads, false);
    double cold_s = measure(&at, n_threads, true);
    double gflop = flop_of(&at) * 1e-9, gbytes = moved_of(&at) * 1e-9;
    printf("%-20s %7.1f %7.1f %7.1f  %7.1f %7.1f %7.1f  %9.3f %9.3f %4d "
           "%8.2f\n",
           c->name, gflop / one_s, gflop / warm_s, gflop / cold_s,
           gbytes / one_s, gbytes / warm_s, gbytes / cold_s, warm_s * 1e3,
           cold_s * 1e3, c->n_calls, c->n_calls * cold_s * 1e3);
    step_ms[0] += c->n_calls * warm_s * 1e3;
    step_ms[1] += c->n_calls * cold_s * 1e3;
    free(at.memory);
}

int main(int argc, char **argv)
{
    int n_threads = argc > 1 ? atoi(argv[1]) : 2;
    const char *only = argc > 2 ? argv[2] : "";
    double step_ms[2] = {0, 0};
    char *cold = calloc(1, (size_t)COLD_BYTES);
    if (cold == NULL || n_threads < 1)
        return 1;
    printf("sgemm 1024^3 (%s): %.1f GFLOP/s 1 thread, %.1f %d threads\n",
           openblas_get_corename(), sgemm_flops(1) * 1e-9,
           sgemm_flops(n_threads) * 1e-9, n_threads);
    printf("axpy 256 MB: %.1f GB/s 1 thread, %.1f %d threads\n\n",
           axpy_Bps(1) * 1e-9, axpy_Bps(n_threads) * 1e-9, n_threads);
    printf("%-20s %-23s  %-23s  %-19s %4s %8s\n", "", "        GFLOP/s",
           "          GB/s", "   ms of a call", "", "ms/step");
    printf("%-20s %7s %7s %7s  %7s %7s %7s  %9s %9s %4s %8s\n", "kernel",
           "1 warm", "n warm", "n cold", "1 warm", "n warm", "n cold", "n warm",
           "n cold", "x", "cold");
    for (size_t i = 0; i < N_CASES; i++) {
        if (strstr(cases[i].name, only) == NULL)
            continue;
        print_case(&cases[i], n_threads, cold, step_ms);
        fflush(stdout);
    }
    printf("\nkernels of a step: %.0f ms warm, %.0f ms cold: %.0f to %.0f "
           "tokens/s\n",
           step_ms[0], step_ms[1], ROWS / step_ms[1] * 1e3,
           ROWS / step_ms[0] * 1e3);
    free(cold);
    return 0;
}
