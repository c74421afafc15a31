/*
 * test_cuda_compress.c: the compressors on the device against the CPU's:
 * payload, what is kept, and what comes out of several payloads.
 */
#include "plan/codec/compressor.h"
#include "tests/gpu/device_fixture.h"

enum { N = 20007, N_RANKS = 3, FIRST = 110 };

/* Two matrices, a vector between them, a gap, and padding at the end. */
static const fr_tensor tensors[] = {
    {.first = 100, .n = 9963, .rows = 123, .cols = 81, .id = 5},
    {.first = 10063, .n = 131, .rows = 1, .cols = 131, .id = 6},
    {.first = 10200, .n = 9847, .rows = 43, .cols = 229, .id = 7},
};
static const fr_bucket bucket = {FIRST, N, tensors, 3};
static const fr_job job = {.seed = 991, .beta1 = 0.9, .beta2 = 0.99};

static fr_plan plan_of(fr_compressor_kind kind, bool has_error)
{
    return (fr_plan){.tp = 1,
                     .dp = N_RANKS,
                     .compressor = kind,
                     .compressor_density = 0.0131,
                     .compressor_rank = 3,
                     .has_error_feedback = has_error};
}

static df_case case_of(const fr_plan *plan, fr_op op, int stage)
{
    const fr_compressor *compressor = fr_compressor_of(plan);
    const bool is_gather = compressor->wire == FR_WIRE_GATHER;
    int64_t payload = (int64_t)fr_compressor_payload_bytes(plan, &bucket);
    int64_t state = (int64_t)compressor->state_bytes(plan, &bucket);
    return (df_case){.instr = {.op = (uint8_t)op,
                               .axis = FR_AXIS_DP,
                               .dtype = FR_DTYPE_F32,
                               .dim = {N, payload, stage, FIRST, state,
                                       is_gather ? N_RANKS : 1}},
                     .plan = plan,
                     .job = &job,
                     .tensors = tensors,
                     .n_tensors = 3,
                     .coordinate = 1,
                     .n_group = N_RANKS,
                     .i_step = 4};
}

/* Memory of both sides; the largest difference of n floats. */
typedef struct both {
    float *host, *device, *copy;
    size_t n_bytes;
} both;

static both both_create(size_t n_bytes, uint64_t seed, double scale)
{
    both at = {.n_bytes = (n_bytes + 7) / 4 * 4};
    at.host = kf_floats((int64_t)at.n_bytes / 4, seed, scale);
    at.copy = malloc(at.n_bytes);
    void *device = NULL;
    CHECK(cudaMalloc(&device, at.n_bytes) == cudaSuccess);
    at.device = device;
    for (size_t i = 0; i < at.n_bytes / 4; i++) /* a tail worth cutting */
        at.host[i] *= at.host[i] * at.host[i];
    cudaMemcpyAsync(at.device, at.host, at.n_bytes, cudaMemcpyHostToDevice,
                    NULL);
    return at;
}

static void both_fetch(both *at)
{
    cudaMemcpyAsync(at->copy, at->device, at->n_bytes, cudaMemcpyDeviceToHost,
                    NULL);
    cudaStreamSynchronize(NULL);
}

static void both_destroy(both *at)
{
    free(at->host);
    free(at->copy);
    cudaFree(at->device);
}

static void check_floats(const char *what, both *at, size_t n, double tolerance)
{
    double worst = 0, largest = 1e-30;
    both_fetch(at);
    for (size_t i = 0; i < n; i++) {
        double off = fabs((double)at->copy[i] - (double)at->host[i]);
        if (!(off <= worst))
            worst = off;
        if (fabs((double)at->host[i]) > largest)
            largest = fabs((double)at->host[i]);
    }
    check_that(worst <= tolerance * largest, __FILE__, __LINE__,
               "%s is off by %g of %g", what, worst, largest);
}

/* Bytes of payload that differ, as a share: a code may fall to the other
 * side of a tie where a product is fused with a sum. */
static double share_different(both *at, size_t n_bytes)
{
    size_t n = 0;
    both_fetch(at);
    for (size_t i = 0; i < n_bytes; i++)
        n += ((char *)at->copy)[i] != ((char *)at->host)[i];
    return (double)n / (double)n_bytes;
}

static void run_both(const df_case *at, both *a, both *state, both *c)
{
    fr_err err = {0};
    fr_kernel_call call = df_call(at);
    void *device[] = {a->device, state->device, c->device};
    void *host[] = {a->host, state->host, c->host};
    bool has_state = at->instr.compress.state_bytes > 0;
    for (int i = 0; i < 3; i++)
        call.ptr[i] = i == 1 && !has_state ? NULL : device[i];
    CHECK_OK(df_launch(at, call, &err), &err);
    for (int i = 0; i < 3; i++)
        call.ptr[i] = i == 1 && !has_state ? NULL : host[i];
    fr_kernels_cpu[at->instr.op](&call);
}

static void check_gathered(fr_compressor_kind kind, bool has_error)
{
    const fr_plan plan = plan_of(kind, has_error);
    df_case at = case_of(&plan, FR_OP_COMPRESS, 0);
    size_t payload = (size_t)at.instr.compress.payload_bytes;
    size_t n_state = (size_t)at.instr.compress.state_bytes;
    both g = both_create(N * 4, 1, 1.7), state = both_create(n_state, 2, 0.6);
    both wire = both_create(payload, 3, 1);
    both all = both_create(N_RANKS * payload, 4, 1);
    both out = both_create(N * 4, 5, 1);
    run_both(&at, &g, &state, &wire);
    CHECK(share_different(&wire, payload) <
          (kind == FR_COMPRESSOR_INT8 ? 1e-3 : 1e-9));
    if (n_state > 0)
        check_floats("state", &state, n_state / 4,
                     kind == FR_COMPRESSOR_INT8 ? 0.02 : 1e-6);
    for (int i = 0; i < N_RANKS; i++)
        memcpy((char *)all.host + (size_t)i * payload, wire.host, payload);
    cudaMemcpyAsync(all.device, all.host, N_RANKS * payload,
                    cudaMemcpyHostToDevice, NULL);
    at.instr.op = FR_OP_DECOMPRESS;
    run_both(&at, &all, &state, &out);
    check_floats("decoded", &out, N, 1e-6);
    both_destroy(&g);
    both_destroy(&state);
    both_destroy(&wire);
    both_destroy(&all);
    both_destroy(&out);
}

static void test_gathered(void)
{
    static const fr_compressor_kind kinds[] = {
        FR_COMPRESSOR_BF16, FR_COMPRESSOR_INT8, FR_COMPRESSOR_TOPK,
        FR_COMPRESSOR_ONEBIT};
    for (int i = 0; i < 8; i++)
        check_gathered(kinds[i / 2], i % 2);
}

/* Payloads that add up: one of them comes back. */
static void check_added(fr_compressor_kind kind, bool has_error)
{
    const fr_plan plan = plan_of(kind, has_error);
    df_case at = case_of(&plan, FR_OP_COMPRESS, 0);
    size_t payload = (size_t)at.instr.compress.payload_bytes;
    size_t n_state = (size_t)at.instr.compress.state_bytes;
    both g = both_create(N * 4, 1, 1.7), state = both_create(n_state, 2, 0.6);
    both wire = both_create(payload, 3, 1), out = both_create(N * 4, 5, 1);
    run_both(&at, &g, &state, &wire);
    CHECK(share_different(&wire, payload) < 1e-9);
    check_floats("state", &state, n_state / 4, 1e-6);
    at.instr.op = FR_OP_DECOMPRESS;
    run_both(&at, &wire, &state, &out);
    check_floats("decoded", &out, N, 1e-9);
    both_destroy(&g);
    both_destroy(&state);
    both_destroy(&wire);
    both_destroy(&out);
}

static void test_added(void)
{
    check_added(FR_COMPRESSOR_RANDOMK, false);
    check_added(FR_COMPRESSOR_RANDOMK, true);
}

/* Equal magnitudes: of those at the threshold the first ones. */
static void test_ties(void)
{
    const fr_plan plan = plan_of(FR_COMPRESSOR_TOPK, true);
    df_case at = case_of(&plan, FR_OP_COMPRESS, 0);
    size_t payload = (size_t)at.instr.compress.payload_bytes;
    both g = both_create(N * 4, 1, 1.7), state = both_create(N * 4, 2, 0);
    both wire = both_create(payload, 3, 1);
    for (int i = 0; i < N; i++)
        g.host[i] = i % 7 == 0 ? 2.385F : i % 97 == 1 ? -3.5F : 0.25F;
    cudaMemcpyAsync(g.device, g.host, N * 4, cudaMemcpyHostToDevice, NULL);
    run_both(&at, &g, &state, &wire);
    CHECK(share_different(&wire, payload) == 0);
    both_destroy(&g);
    both_destroy(&state);
    both_destroy(&wire);
}

/* Infinite gradients are not hidden. */
static void test_not_finite(void)
{
    const fr_plan plan = plan_of(FR_COMPRESSOR_INT8, false);
    df_case at = case_of(&plan, FR_OP_COMPRESS, 0);
    size_t payload = (size_t)at.instr.compress.payload_bytes;
    both g = both_create(N * 4, 1, 1.7), state = both_create(4, 2, 0);
    both wire = both_create(payload, 3, 1);
    g.host[300] = INFINITY;
    cudaMemcpyAsync(g.device, g.host, N * 4, cudaMemcpyHostToDevice, NULL);
    run_both(&at, &g, &state, &wire);
    both_fetch(&wire);
    CHECK(isnan(wire.copy[1]) && isfinite(wire.copy[0]));
    both_destroy(&g);
    both_destroy(&state);
    both_destroy(&wire);
}

static void check_powersgd(bool has_error)
{
    const fr_plan plan = plan_of(FR_COMPRESSOR_POWERSGD, has_error);
    df_case at = case_of(&plan, FR_OP_COMPRESS, 0);
    size_t payload = (size_t)at.instr.compress.payload_bytes;
    size_t n_state = (size_t)at.instr.compress.state_bytes;
    both g = both_create(N * 4, 1, 1.7), state = both_create(n_state, 2, 0);
    both wire = both_create(payload, 3, 1), out = both_create(N * 4, 5, 1);
    for (int stage = 0; stage < 2; stage++) {
        at.instr.compress.stage = stage;
        run_both(&at, &g, &state, &wire);
    }
    check_floats("payload", &wire, payload / 4, 1e-5);
    check_floats("state", &state, n_state / 4, 1e-5);
    at.instr.op = FR_OP_DECOMPRESS;
    run_both(&at, &wire, &state, &out);
    /* elements of no tensor come back too */
    check_floats("decoded", &out, N, 1e-5);
    check_floats("state", &state, n_state / 4, 1e-5);
    both_destroy(&g);
    both_destroy(&state);
    both_destroy(&wire);
    both_destroy(&out);
}

static void test_powersgd(void)
{
    check_powersgd(false);
    check_powersgd(true);
}

DF_MAIN({"gathered", test_gathered}, {"added", test_added}, {"ties", test_ties},
        {"not_finite", test_not_finite}, {"powersgd", test_powersgd})
