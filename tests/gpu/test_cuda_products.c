/*
 * Products: right by whichever algorithm, and the search for the fastest one.
 * The search is tried against a library that proposes made-up algorithms
 * (emulated); on a GPU it is cuBLASLt's own.
 */
#include "kernels/cuda/product_cuda.h"
#include "tests/check.h"
#include "tests/unit/runtime/kernel_fixture.h"

#ifdef FR_EMULATED
#include <cublasLt.h>
#endif
#include <cuda_runtime.h>
#include <stdlib.h>

enum { M = 24, N = 40, K = 16 };

/* Operands of one product; the host's copies too. */
typedef struct bench {
    fr_cuda_kernels *kernels;
    float a[M * K], b[K * N], bias[N], c[M * N];
    void *memory[4]; /* of a, b, bias, c on the device, 64 bytes longer */
} bench;

static void fill(float *x, int n, uint64_t seed)
{
    for (int i = 0; i < n; i++)
        x[i] = (float)kf_noise(seed, (uint64_t)i);
}

static void send(void *to, const void *from, size_t n_bytes)
{
    CHECK(cudaMemcpyAsync(to, from, n_bytes, cudaMemcpyHostToDevice, NULL) ==
          cudaSuccess);
    CHECK(cudaStreamSynchronize(NULL) == cudaSuccess);
}

static bool begin(bench *t)
{
    const size_t n_bytes[4] = {sizeof t->a, sizeof t->b, sizeof t->bias,
                               sizeof t->c};
    fr_err err = {0};
    int n = 0;

    memset(t, 0, sizeof *t);
    if (cudaGetDeviceCount(&n) != cudaSuccess || n == 0) {
        (void)snprintf(check_state.skipped, sizeof check_state.skipped,
                       "no GPU");
        return false;
    }
    if (!CHECK_OK(fr_cuda_kernels_create(&t->kernels, &err), &err))
        return false;
    fill(t->a, M * K, 11);
    fill(t->b, K * N, 23);
    fill(t->bias, N, 37);
    for (int i = 0; i < 4; i++)
        CHECK(cudaMalloc(&t->memory[i], n_bytes[i] + 64) == cudaSuccess);
    send(t->memory[0], t->a, sizeof t->a);
    send(t->memory[1], t->b, sizeof t->b);
    send(t->memory[2], t->bias, sizeof t->bias);
    return true;
}

static void end(bench *t)
{
    for (int i = 0; i < 4; i++)
        cudaFree(t->memory[i]);
    fr_cuda_kernels_destroy(t->kernels);
}

/* As an instruction would ask; 0.5 a b (+ bias) (+ c). */
static fr_cuda_product product_of(const bench *t, bool is_a_t, bool is_b_t,
                                  bool has_bias, bool is_added)
{
    return (fr_cuda_product){.m = M,
                             .n = N,
                             .k = K,
                             .is_a_transposed = is_a_t,
                             .is_b_transposed = is_b_t,
                             .is_added = is_added,
                             .dtype = FR_DTYPE_F32,
                             .out_dtype = FR_DTYPE_F32,
                             .alpha = 0.5F,
                             .a = t->memory[0],
                             .b = t->memory[1],
                             .bias = has_bias ? t->memory[2] : NULL,
                             .c = t->memory[3]};
}

static void check_values(const bench *t, const fr_cuda_product *p)
{
    static float got[M * N];

    CHECK(cudaMemcpyAsync(got, p->c, sizeof got, cudaMemcpyDeviceToHost,
                          NULL) == cudaSuccess);
    CHECK(cudaStreamSynchronize(NULL) == cudaSuccess);
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            double sum = 0;
            for (int l = 0; l < K; l++)
                sum +=
                    (double)t->a[p->is_a_transposed ? l * M + i : i * K + l] *
                    (double)t->b[p->is_b_transposed ? j * K + l : l * N + j];
            sum = 0.5 * sum + (p->is_added ? (double)t->c[i * N + j] : 0) +
                  (p->bias != NULL ? (double)t->bias[j] : 0);
            if (fabs(got[i * N + j] - sum) > 1e-5) {
                check_that(
                    false, __FILE__, __LINE__, "a%s b%s: [%d,%d] is %g, not %g",
                    p->is_a_transposed ? "^T" : "",
                    p->is_b_transposed ? "^T" : "", i, j, got[i * N + j], sum);
                return;
            }
        }
}

/* Tuned first: what is in c then does not count. */
static void check_product(bench *t, const fr_cuda_product *p)
{
    fr_err err = {0};

    t->kernels->is_tuning = true;
    CHECK_OK(fr_cuda_product_start(t->kernels, p, NULL, &err), &err);
    t->kernels->is_tuning = false;
    fill(t->c, M * N, 41);
    send(p->c, t->c, sizeof t->c);
    CHECK_OK(fr_cuda_product_start(t->kernels, p, NULL, &err), &err);
    check_values(t, p);
}

static void test_shapes(void)
{
    bench t;

    if (!begin(&t))
        return;
    for (int way = 0; way < 16; way++) {
        fr_cuda_product p = product_of(&t, way & 1, way & 2, way & 4, way & 8);
        check_product(&t, &p);
    }
    end(&t);
}

/* 257 + 1 in 16 bits, which have 258 and 256 but not 257: sums of parts are
 * rounded once, at the end. */
static void test_parts(void)
{
    static uint16_t narrow[K * N], got[M * N];
    bench t;
    fr_err err = {0};

    if (!begin(&t))
        return;
    fr_cuda_product p = product_of(&t, false, false, false, false);
    p.dtype = p.out_dtype = FR_DTYPE_BF16;
    p.alpha = 1;
    memset(narrow, 0, sizeof narrow);
    for (int i = 0; i < M; i++) {
        narrow[i * K] = 0x4380; /* 256 */
        narrow[i * K + 1] = narrow[i * K + K / 2] = 0x3f80;
    }
    send(t.memory[0], narrow, M * K * sizeof *narrow);
    for (int i = 0; i < K * N; i++)
        narrow[i] = 0x3f80;
    send(t.memory[1], narrow, sizeof narrow);
    CHECK_OK(fr_cuda_product_start(t.kernels, &p, NULL, &err), &err);
    CHECK(cudaMemcpyAsync(got, p.c, sizeof got, cudaMemcpyDeviceToHost, NULL) ==
          cudaSuccess);
    CHECK(cudaStreamSynchronize(NULL) == cudaSuccess);
    for (int i = 0; i < M * N; i++)
        CHECK_INT(got[i], 0x4381);
    end(&t);
}

#ifdef FR_EMULATED

static void propose(int n, const emulated_algorithm *all)
{
    emulated_algorithms_n = n;
    for (int i = 0; i < n; i++)
        emulated_algorithms[i] = all[i];
}

static void ask(bench *t, const fr_cuda_product *p, bool is_tuning,
                fr_status expected)
{
    fr_err err = {0};

    t->kernels->is_tuning = is_tuning;
    fr_status status = fr_cuda_product_start(t->kernels, p, NULL, &err);
    check_that(status == expected, __FILE__, __LINE__, "%d: %s", (int)status,
               err.text);
    t->kernels->is_tuning = false;
}

/* The fastest that runs; each was run four times, once not counted. */
static void test_fastest(void)
{
    const emulated_algorithm all[] = {
        {.ms = 5.5}, {.ms = 0.25, .is_broken = true}, {.ms = 1.75}, {.ms = 2}};
    bench t;

    if (!begin(&t))
        return;
    fr_cuda_product p = product_of(&t, false, true, false, false);
    propose(4, all);
    ask(&t, &p, true, FR_OK);
    CHECK_INT(emulated_algorithms[0].n_runs, 4);
    CHECK_INT(emulated_algorithms[1].n_runs, 0);
    CHECK_INT(emulated_algorithms[2].n_runs, 4);
    CHECK_INT(emulated_algorithms[3].n_runs, 4);
    /* The chosen algorithm stays, also if its shape comes again while others
     * are tuned. */
    ask(&t, &p, false, FR_OK);
    ask(&t, &p, true, FR_OK);
    CHECK_INT(emulated_algorithms[2].n_runs, 5);
    CHECK_INT(emulated_algorithms[3].n_runs, 4);
    end(&t);
}

/* Never tuned: the library's first; tuned later: the fastest from then on. */
static void test_untuned(void)
{
    const emulated_algorithm all[] = {{.ms = 3.5}, {.ms = 1.25}};
    bench t;

    if (!begin(&t))
        return;
    fr_cuda_product p = product_of(&t, false, false, false, true);
    propose(2, all);
    ask(&t, &p, false, FR_OK);
    CHECK_INT(emulated_algorithms[0].n_runs, 1);
    ask(&t, &p, true, FR_OK);
    ask(&t, &p, false, FR_OK);
    CHECK_INT(emulated_algorithms[0].n_runs, 5);
    CHECK_INT(emulated_algorithms[1].n_runs, 5);
    end(&t);
}

/* Shapes, widths and alignments have choices of their own. */
static void test_keys(void)
{
    const emulated_algorithm all[] = {{.ms = 3.5}, {.ms = 1.25}};
    bench t;

    if (!begin(&t))
        return;
    fr_cuda_product p = product_of(&t, false, true, false, false);
    propose(2, all);
    ask(&t, &p, true, FR_OK);
    CHECK(emulated_alignment >= 16);
    fr_cuda_product other = p;
    other.k = K / 2; /* another shape: not tuned */
    ask(&t, &other, false, FR_OK);
    CHECK_INT(emulated_algorithms[0].n_runs, 5);
    other = p;
    other.a = (const char *)p.a + 4;
    ask(&t, &other, false, FR_OK);
    CHECK_INT(emulated_alignment, 4);
    CHECK_INT(emulated_algorithms[0].n_runs, 6);
    other = p;
    other.a = (const char *)p.a + 8; /* whatever the address is */
    ask(&t, &other, false, FR_OK);
    CHECK_INT(emulated_alignment, 8);
    other.dtype = FR_DTYPE_TF32;
    ask(&t, &other, false, FR_OK);
    CHECK_INT(emulated_algorithms[0].n_runs, 8);
    CHECK_INT(emulated_algorithms[1].n_runs, 4);
    end(&t);
}

/* Nothing proposed, nothing that runs. */
static void test_nothing_runs(void)
{
    const emulated_algorithm broken[] = {{.ms = 1, .is_broken = true}};
    bench t;

    if (!begin(&t))
        return;
    fr_cuda_product p = product_of(&t, false, true, false, false);
    propose(0, broken);
    ask(&t, &p, true, FR_FAILURE);
    ask(&t, &p, false, FR_FAILURE);
    propose(1, broken);
    ask(&t, &p, true, FR_FAILURE);
    ask(&t, &p, false, FR_FAILURE);
    end(&t);
    propose(1, (const emulated_algorithm[]){{.ms = 1}});
}

CHECK_MAIN({"shapes", test_shapes}, {"parts", test_parts},
           {"fastest", test_fastest}, {"untuned", test_untuned},
           {"keys", test_keys}, {"nothing_runs", test_nothing_runs})

#else

CHECK_MAIN({"shapes", test_shapes}, {"parts", test_parts})

#endif
