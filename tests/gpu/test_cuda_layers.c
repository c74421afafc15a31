/*
 * test_cuda_layers.c: the CUDA kernels of a layer but for its attention,
 * against the CPU's: shapes that fill packs and tiles, and odd ones.
 */
#include "kernels/kernels_list.h"
#include "spec/model/model.h"
#include "tests/gpu/device_fixture.h"

static const int64_t row_shapes[][2] = {
    {5, 7}, {37, 48}, {3, 1032}, {300, 64}, {2, 2055}, {1, 1}, {18, 256}};
enum { N_ROW_SHAPES = sizeof row_shapes / sizeof row_shapes[0] };

static void test_activations(void)
{
    static const int64_t lengths[] = {1, 7, 256, 2051, 4096};
    for (int i = 0; i < 5 * FR_ACTIVATION_N; i++) {
        int64_t n = lengths[i % 5];
        df_case fwd = {
            .instr = {.op = FR_OP_GELU_FWD, .dim = {n}},
            .operand = {{DF_T, n, 5.3, 'r', 0}, {DF_T, n, 1, 'w', 0}},
            .tolerance = 3e-6};
        df_case bwd = {.instr = {.op = FR_OP_GELU_BWD, .dim = {n}},
                       .operand = {{DF_T, n, 1.7, 'm', 0},
                                   {DF_T, n, 23.1, 'r', 0},
                                   {DF_T, n, 1, 'w', 1}},
                       .tolerance = 3e-6};
        df_case add = {
            .instr = {.op = FR_OP_ADD, .dim = {n}},
            .operand = {{DF_T, n, 1.3, 'r', 0}, {DF_T, n, 2.1, 'm', 0}},
            .tolerance = 1e-7};
        fwd.instr.activation = bwd.instr.activation = (uint8_t)(i / 5);
        df_check_all(fwd);
        df_check_all(bwd);
        df_check_all(add);
    }
}

static void test_rows(void)
{
    for (int i = 0; i < N_ROW_SHAPES; i++) {
        int64_t rows = row_shapes[i][0], cols = row_shapes[i][1];
        int64_t n = rows * cols;
        df_case swiglu = {
            .instr = {.op = FR_OP_SWIGLU_FWD,
                      .activation = FR_ACTIVATION_SILU,
                      .dim = {rows, cols}},
            .operand = {{DF_T, 2 * n, 3.1, 'r', 0}, {DF_T, n, 1, 'w', 0}},
            .tolerance = 3e-6};
        df_case swiglu_bwd = {.instr = {.op = FR_OP_SWIGLU_BWD,
                                        .activation = FR_ACTIVATION_SILU,
                                        .dim = {rows, cols}},
                              .operand = {{DF_T, n, 1.9, 'r', 0},
                                          {DF_T, 2 * n, 3.1, 'r', 0},
                                          {DF_T, 2 * n, 1, 'w', 0}},
                              .tolerance = 3e-6};
        df_case residual = {
            .instr = {.op = FR_OP_RESIDUAL_ADD, .dim = {rows, cols}},
            .operand = {{DF_T, n, 1.9, 'm', 0},
                        {DF_T, n, 3.1, 'r', 0},
                        {DF_T, cols, 0.3, 'r', 0},
                        {DF_T, n, 1, 'w', 1}},
            .tolerance = 1e-7};
        df_case bias = {
            .instr = {.op = FR_OP_BIAS_GRAD, .dim = {rows, cols}},
            .operand = {{DF_T, n, 1.9, 'r', 0}, {DF_G, cols, 3.1, 'm', 0}},
            .tolerance = 1e-6};
        df_check_all(swiglu);
        df_check_all(swiglu_bwd);
        df_check_all(residual);
        residual.operand[4] = (df_operand){DF_T, cols, 0.7, 'r', 0};
        df_check_all(residual);
        residual.operand[2] = residual.operand[4] = (df_operand){0};
        df_check_all(residual);
        df_check_all(bias);
    }
}

/* Rows in one piece and in many, batches of rows and what is left of them. */
static void test_column_sums(void)
{
    static const int64_t shapes[][2] = {{31, 264},  {64, 40},   {1003, 8},
                                        {1003, 11}, {257, 300}, {2, 5000}};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        const int64_t rows = shapes[i][0], cols = shapes[i][1];
        df_case bias = {.instr = {.op = FR_OP_BIAS_GRAD, .dim = {rows, cols}},
                        .operand = {{DF_T, rows * cols, 1.9, 'r', 0},
                                    {DF_G, cols, 3.1, 'm', 0}},
                        .tolerance = 1e-6};
        df_check_all(bias);
    }
}

static void test_gates(void)
{
    for (int kind = 0; kind < FR_ACTIVATION_N; kind++) {
        const int64_t rows = 3, cols = 24, n = rows * cols;
        df_case fwd = {
            .instr = {.op = FR_OP_SWIGLU_FWD,
                      .activation = (uint8_t)kind,
                      .dim = {rows, cols}},
            .operand = {{DF_T, 2 * n, 3.1, 'r', 0}, {DF_T, n, 1, 'w', 0}},
            .tolerance = 3e-6};
        df_case bwd = {.instr = {.op = FR_OP_SWIGLU_BWD,
                                 .activation = (uint8_t)kind,
                                 .dim = {rows, cols}},
                       .operand = {{DF_T, n, 1.9, 'r', 0},
                                   {DF_T, 2 * n, 3.1, 'r', 0},
                                   {DF_T, 2 * n, 1, 'w', 0}},
                       .tolerance = 3e-6};
        df_check_all(fwd);
        df_check_all(bwd);
    }
}

static void check_norm(int64_t rows, int64_t cols, bool is_rms)
{
    int64_t n = rows * cols;
    df_width bias = is_rms ? DF_NONE : DF_T;
    df_case fwd = {.instr = {.op = FR_OP_NORM_FWD,
                             .flags = is_rms ? FR_INSTR_RMS : 0,
                             .dim = {rows, cols},
                             .scalar = 1e-3},
                   .operand = {{DF_T, n, 2.9, 'r', 0},
                               {DF_T, cols, 1.1, 'r', 0},
                               {bias, cols, 0.7, 'r', 0},
                               {DF_T, n, 1, 'w', 0},
                               {DF_F32, 2 * rows, 1, 'w', 0}},
                   .tolerance = 3e-6};
    df_case bwd = {.instr = {.op = FR_OP_NORM_BWD,
                             .flags = (uint16_t)(is_rms ? FR_INSTR_RMS
                                                        : FR_INSTR_ACCUMULATE),
                             .dim = {rows, cols}},
                   .operand = {{DF_T, n, 1.3, 'r', 0},
                               {DF_T, n, 2.9, 'r', 0},
                               {DF_T, cols, 1.1, 'r', 0},
                               {DF_F32, 2 * rows, 0.8, 'r', 0},
                               {DF_T, n, 1.2, 'm', is_rms ? 1 : 0},
                               {DF_G, cols, 0.4, 'm', 0},
                               {is_rms ? DF_NONE : DF_G, cols, 0.4, 'm', 0}},
                   .tolerance = 3e-6};
    if (is_rms)
        bwd.operand[0].access = 'm', bwd.operand[4].access = 'w';
    else
        bwd.operand[4].access = 'm';
    if (bias == DF_NONE)
        bwd.operand[6].access = 0;
    df_check_all(fwd);
    df_check_all(bwd);
}

/* Lengths beside those at which another kernel takes over: packs of 8 or 4
 * columns, a warp's up to 8 of them, a block's threads'. */
static void test_norms(void)
{
    static const int64_t shapes[][2] = {
        {9, 128},    {9, 136},   {261, 256}, {300, 264}, {3, 512},   {3, 520},
        {9, 768},    {9, 776},   {9, 1024},  {2, 1032},  {9, 1536},  {3, 1544},
        {140, 1600}, {3, 1792},  {3, 1800},  {3, 2048},  {3, 2056},  {2, 3072},
        {2, 3080},   {2, 4096},  {2, 4104},  {2, 6144},  {2, 6152},  {2, 8192},
        {2, 8200},   {2, 16384}, {2, 16392}, {1100, 64}, {300, 392}, {1071, 40},
        {37, 767},   {5, 1601},  {140, 1028}};
    for (int i = 0; i < 2 * N_ROW_SHAPES; i++)
        check_norm(row_shapes[i / 2][0], row_shapes[i / 2][1], i % 2);
    for (size_t i = 0; i < 2 * (sizeof shapes / sizeof shapes[0]); i++)
        check_norm(shapes[i / 2][0], shapes[i / 2][1], i % 2);
}

/* Norms of some of the heads of rows of q, k and v. */
static void test_head_norms(void)
{
    /* rows, heads with a norm, head size, heads of a row, the first of them */
    static const int64_t shapes[][5] = {
        {5, 2, 6, 4, 0}, {7, 1, 64, 4, 2}, {33, 4, 128, 8, 4}, {9, 2, 8, 4, 1}};
    for (int i = 0; i < 4; i++) {
        const int64_t *s = shapes[i];
        const int64_t n = s[0] * s[3] * s[2], n_raw = s[0] * s[1] * s[2];
        df_case fwd = {.instr = {.op = FR_OP_HEAD_NORM_FWD,
                                 .dim = {s[0], s[1], s[2], s[3], s[4]},
                                 .scalar = 1e-3},
                       .operand = {{DF_T, n, 2.9, 'm', 0},
                                   {DF_T, s[2], 1.1, 'r', 0},
                                   {DF_T, n_raw, 1, 'w', 0},
                                   {DF_F32, 2 * s[0] * s[1], 1, 'w', 0}},
                       .tolerance = 3e-6};
        df_case bwd = {.instr = {.op = FR_OP_HEAD_NORM_BWD,
                                 .dim = {s[0], s[1], s[2], s[3], s[4]}},
                       .operand = {{DF_T, n, 1.3, 'm', 0},
                                   {DF_T, s[2], 1.1, 'r', 0},
                                   {DF_T, n_raw, 2.9, 'r', 0},
                                   {DF_F32, 2 * s[0] * s[1], 0.8, 'r', 0},
                                   {DF_G, s[2], 0.4, 'm', 0}},
                       .tolerance = 3e-6};
        df_check_all(fwd);
        df_check_all(bwd);
    }
}

static void test_embedding(void)
{
    /* rows, cols, local vocabulary, sequence, vocabulary, coordinate */
    static const int64_t shapes[][6] = {{12, 7, 5, 6, 5, 0},
                                        {330, 48, 17, 66, 34, 1},
                                        {64, 264, 91, 32, 182, 0},
                                        {90, 8, 9001, 30, 9001, 0},
                                        {96, 40, 9, 32, 9, 0}};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        const int64_t *s = shapes[i];
        int64_t n = s[0] * s[1], n_wte = s[2] * s[1], n_wpe = s[3] * s[1];
        df_case fwd = {.instr = {.op = FR_OP_EMBED_FWD,
                                 .dim = {s[0], s[1], s[2], s[3], s[4]}},
                       .operand = {{DF_TOKENS, s[0], (double)s[4], 'r', 0},
                                   {DF_T, n_wte, 1.3, 'r', 0},
                                   {DF_T, n_wpe, 0.6, 'r', 0},
                                   {DF_T, n, 1, 'w', 0}},
                       .tolerance = 1e-7,
                       .coordinate = (int)s[5]};
        df_case bwd = fwd;
        bwd.instr.op = FR_OP_EMBED_BWD;
        bwd.operand[1] = (df_operand){DF_T, n, 1.3, 'r', 0};
        bwd.operand[2] = (df_operand){DF_G, n_wte, 0.9, 'm', 0};
        bwd.operand[3] = (df_operand){DF_G, n_wpe, 0.9, 'm', 0};
        bwd.tolerance = 2e-6;
        df_check_all(fwd);
        df_check_all(bwd);
        fwd.instr.scalar = bwd.instr.scalar = 22.6; /* of rows of tokens */
        df_check_all(fwd);
        df_check_all(bwd);
    }
}

static void test_rope(void)
{
    /* rows, sequence, q heads, kv heads, head size */
    static const int64_t shapes[][5] = {
        {10, 5, 3, 1, 6}, {26, 13, 4, 2, 32}, {600, 600, 1, 1, 16}};
    static const fr_model rescaled[] = {{.has_rope_scaling = true,
                                         .rope_original_seq = 64,
                                         .rope_low_factor = 1,
                                         .rope_high_factor = 4,
                                         .rope_factor = 8},
                                        {.has_rope_scaling = true,
                                         .rope_kind = FR_ROPE_YARN,
                                         .rope_original_seq = 40,
                                         .rope_low_factor = 0.3,
                                         .rope_high_factor = 3,
                                         .rope_factor = 4,
                                         .rope_attention_factor = 1.1386},
                                        {.has_rope_scaling = true,
                                         .rope_kind = FR_ROPE_DYNAMIC,
                                         .rope_original_seq = 64,
                                         .rope_factor = 2.5}};
    static const fr_job job = {.global_batch = 4, .seq = 600};
    for (int i = 0; i < 6; i++) {
        const int64_t *s = shapes[i / 2];
        int64_t n = s[0] * (s[2] + 2 * s[3]) * s[4];
        df_case at = {.instr = {.op = i % 2 ? FR_OP_ROPE_BWD : FR_OP_ROPE_FWD,
                                .dim = {s[0], s[1], s[2], s[3], s[4]},
                                .scalar = 10000},
                      .operand = {{DF_T, n, 1.7, 'm', 0}},
                      .tolerance = 3e-7};
        df_check_all(at);
        at.instr.rope.rotated = s[4] / 4 * 2; /* the first columns alone */
        df_check_all(at);
        at.job = &job;
        at.instr.rope.is_scaled = 1;
        for (int k = 0; k < 3; k++) {
            at.model = &rescaled[k];
            df_check_all(at);
        }
    }
}

static void test_loss(void)
{
    /* rows, local columns, vocabulary, coordinate */
    static const int64_t shapes[][4] = {
        {5, 13, 11, 0},
        {9, 4100, 4097, 0},
        {33, 96, 151, 1},
        {4, 64, 60, 0},
        /* more than shared memory keeps of a row of 32 bits, and of 16 */
        {2, 25704, 25703, 0},
        {2, 51208, 51203, 0}};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        const int64_t *s = shapes[i];
        int64_t rows = s[0], n = s[0] * s[1];
        df_case at = {
            .instr = {.op = FR_OP_XENT,
                      .dim = {rows, s[1], s[2]},
                      .scalar = 0.0371},
            .operand = {{DF_T, n, 7.3, 'm', 0},
                        {DF_TOKENS, 2 * rows, (double)s[2] + 3, 'r', 0},
                        {DF_F64, 4, 0.9, 'm', 0}},
            .tolerance = 3e-6,
            .coordinate = (int)s[3]};
        if (s[3] == 0)
            df_check_all(at);
        at.tp_coordinate = 1; /* whose loss another rank counts */
        at.coordinate = 1;
        df_check_all(at);
        at.tp_coordinate = 0;
        at.coordinate = (int)s[3];
        at.instr.op = FR_OP_XENT_MAX;
        at.operand[0].access = 'r';
        at.operand[2] = (df_operand){DF_F32, rows, 9.1, 'w', 0};
        df_check_all(at);
        at.instr.op = FR_OP_XENT_SUM;
        at.operand[2].access = 'r';
        at.operand[3] = (df_operand){DF_F32, 2 * rows, 1, 'w', 0};
        df_check_all(at);
        at.instr.op = FR_OP_XENT_GRAD;
        at.operand[0].access = 'm';
        at.operand[3].access = 'r';
        at.operand[4] = (df_operand){DF_F64, 4, 0.9, 'm', 0};
        df_check_all(at);
    }
}

/* In float32 the oracle sums in another order; TF32 reads 10 bits. */
static void check_linear(df_case at)
{
    static const fr_plan tf32 = {.tp = 1, .precision = FR_DTYPE_TF32};
    df_check_all(at);
    at.plan = &tf32;
    at.tolerance = 3e-3;
    df_check(at, FR_DTYPE_F32, FR_DTYPE_F32);
}

static void test_linear(void)
{
    static const int64_t shapes[][3] = {{5, 7, 11}, {33, 64, 16}, {16, 24, 40}};
    for (int i = 0; i < 3; i++) {
        int64_t m = shapes[i][0], n = shapes[i][1], k = shapes[i][2];
        df_case at = {.instr = {.op = FR_OP_LINEAR_FWD, .dim = {m, n, k}},
                      .operand = {{DF_T, m * k, 1.3, 'r', 0},
                                  {DF_T, n * k, 0.7, 'r', 0},
                                  {DF_T, n, 0.9, 'r', 0},
                                  {DF_T, m * n, 1, 'w', 0}},
                      .tolerance = 1e-6};
        check_linear(at);
        at.operand[2] = (df_operand){0};
        check_linear(at);
        at.instr.op = FR_OP_LINEAR_DGRAD;
        at.operand[0].n = m * n;
        at.operand[2] = (df_operand){DF_T, m * k, 1.1, 'm', 0};
        at.operand[3] = (df_operand){0};
        check_linear(at);
        /* cuBLASLt rounds a product of 16 bits before it adds it to what is
         * there: as PyTorch's, such a sum is rounded twice. */
        at.instr.flags = FR_INSTR_ACCUMULATE;
        at.narrow = 0x1p-8;
        check_linear(at);
        at.narrow = 0;
        at.instr.flags = 0;
        at.instr.op = FR_OP_LINEAR_WGRAD;
        at.operand[1].n = m * k;
        at.operand[2] = (df_operand){DF_G, n * k, 1.1, 'm', 0};
        at.operand[3] = (df_operand){DF_G, n, 1.1, 'm', 0};
        check_linear(at);
    }
}

/* The result is two matrices, one after the other. */
static void test_linear_apart(void)
{
    enum { M = 9, N = 24, N_FIRST = 16, K = 11 };
    df_case at = {.instr = {.op = FR_OP_LINEAR_FWD,
                            .linear = {M, N, K, .n_first = N_FIRST}},
                  .operand = {{DF_T, M * K, 1.3, 'r', 0},
                              {DF_T, N * K, 0.7, 'r', 0},
                              {DF_T, N, 0.9, 'r', 0},
                              {DF_T, M * N, 1, 'w', 0}},
                  .tolerance = 1e-6};
    check_linear(at);
    at.instr.op = FR_OP_LINEAR_DGRAD;
    at.operand[0].n = M * N;
    at.operand[2] = (df_operand){DF_T, M * K, 1.1, 'm', 0};
    at.operand[3] = (df_operand){0};
    df_check(at, FR_DTYPE_F32, FR_DTYPE_F32);
    at.instr.op = FR_OP_LINEAR_WGRAD;
    at.operand[1].n = M * K;
    at.operand[2] = (df_operand){DF_G, N * K, 1.1, 'm', 0};
    at.operand[3] = (df_operand){DF_G, N, 1.1, 'm', 0};
    check_linear(at);
}

/* Tuning leaves what it does not write as it was; then the product is right. */
static void test_tune(void)
{
    enum { M = 8, K = 24 };
    float *x = kf_floats(M * K, 3, 1), back[M * K], y[M * M];
    const fr_plan plan = {.tp = 1};
    fr_instr instr = {
        .op = FR_OP_LINEAR_FWD, .dtype = FR_DTYPE_F32, .dim = {M, M, K}};
    fr_cuda_launch launch = {.call = kf_call(&instr, 1, NULL, 0)};
    fr_err err = {0};
    launch.call.plan = &plan;
    CHECK(cudaMalloc(&launch.call.ptr[0], sizeof back) == cudaSuccess);
    CHECK(cudaMalloc(&launch.call.ptr[3], sizeof y) == cudaSuccess);
    launch.call.ptr[1] = launch.call.ptr[0]; /* y = x x^T */
    cudaMemcpyAsync(launch.call.ptr[0], x, sizeof back, cudaMemcpyHostToDevice,
                    NULL);
    CHECK_OK(fr_cuda_kernels_create(&launch.kernels, &err), &err);
    CHECK_OK(fr_cuda_kernels_tune(&launch, &err), &err);
    CHECK_OK(fr_cuda_kernels_tune(&launch, &err), &err);
    CHECK_OK(fr_kernels_cuda[FR_OP_LINEAR_FWD](&launch, &err), &err);
    instr.op = FR_OP_ZERO;
    CHECK_OK(fr_cuda_kernels_tune(&launch, &err), &err);
    cudaMemcpyAsync(back, launch.call.ptr[0], sizeof back,
                    cudaMemcpyDeviceToHost, NULL);
    cudaMemcpyAsync(y, launch.call.ptr[3], sizeof y, cudaMemcpyDeviceToHost,
                    NULL);
    cudaStreamSynchronize(NULL);
    CHECK(kf_same(back, x, M * K));
    for (int i = 0; i < M; i++) {
        double sum = 0;
        for (int k = 0; k < K; k++)
            sum += (double)x[k] * (double)x[i * K + k];
        CHECK_WITHIN(y[i], sum, 1e-6);
    }
    fr_cuda_kernels_destroy(launch.kernels);
    cudaFree(launch.call.ptr[0]);
    cudaFree(launch.call.ptr[3]);
    free(x);
}

/* No CPU kernel: there and back, rounded as numbers are to 16 bits. */
static void test_cast(void)
{
    enum { N = 1037 };
    float *x = kf_floats(N, 3, 2.7), *back = kf_floats(N, 4, 1);
    fr_err err = {0};
    void *wide = NULL, *narrow = NULL;
    df_case at = {
        .instr = {
            .op = FR_OP_CAST, .dtype = FR_DTYPE_BF16, .dim = {N}, .scalar = 4}};
    CHECK(cudaMalloc(&wide, N * 4) == cudaSuccess);
    CHECK(cudaMalloc(&narrow, N * 2) == cudaSuccess);
    cudaMemcpyAsync(wide, x, N * 4, cudaMemcpyHostToDevice, NULL);
    fr_kernel_call call = df_call(&at);
    call.ptr[0] = wide;
    call.ptr[1] = narrow;
    CHECK_OK(df_launch(&at, call, &err), &err);
    at.instr.dtype = FR_DTYPE_F32;
    at.instr.scalar = 2;
    call.ptr[0] = narrow;
    call.ptr[1] = wide;
    CHECK_OK(df_launch(&at, call, &err), &err);
    cudaMemcpyAsync(back, wide, N * 4, cudaMemcpyDeviceToHost, NULL);
    cudaStreamSynchronize(NULL);
    for (int i = 0; i < N; i++)
        CHECK(back[i] == df_wide(df_narrow(x[i])));
    at.instr.dtype = FR_DTYPE_FP8;
    CHECK_FAILS(df_launch(&at, call, &err), FR_INPUT, &err);
    cudaFree(wide);
    cudaFree(narrow);
    free(x);
    free(back);
}

static void test_memory(void)
{
    df_case zero = {.instr = {.op = FR_OP_ZERO, .dim = {4 * 1023}},
                    .operand = {{DF_F32, 1023, 1, 'w', 0}}};
    df_case copy = {
        .instr = {.op = FR_OP_COPY, .dim = {4 * 1023}},
        .operand = {{DF_F32, 1023, 1, 'r', 0}, {DF_F32, 1023, 1, 'w', 0}}};
    df_check(zero, FR_DTYPE_F32, FR_DTYPE_F32);
    df_check(copy, FR_DTYPE_F32, FR_DTYPE_F32);
}

/* The layers of the CPU without those that GPUs refuse. */
static void test_table(void)
{
    static const bool is_refused[FR_OP_N] = {
#define REFUSED(symbol, name) [FR_OP_##symbol] = true,
        FR_KERNEL_CPU_LIST(REFUSED)
#undef REFUSED
    };
    for (int op = 0; op < FR_OP_N; op++)
        CHECK((fr_kernels_cuda[op] != NULL) ==
              (fr_kernels_cpu[op] != NULL && !is_refused[op]));
}

DF_MAIN({"table", test_table}, {"activations", test_activations},
        {"rows", test_rows}, {"column sums", test_column_sums},
        {"gates", test_gates}, {"norms", test_norms},
        {"head norms", test_head_norms}, {"embedding", test_embedding},
        {"rope", test_rope}, {"loss", test_loss}, {"linear", test_linear},
        {"linear apart", test_linear_apart}, {"tune", test_tune},
        {"cast", test_cast}, {"memory", test_memory})
