/*
 * test_kernels_layers.c: norms, linear layers, activations, embeddings and
 * rotary positions against plain double loops, their gradients against finite
 * differences of those loops, one thread against two.
 */
#include "spec/model/model.h"
#include "tests/unit/runtime/kernel_fixture.h"

/* ---- norms -------------------------------------------------------------- */

typedef struct norm_ref {
    int64_t rows, cols;
    bool is_rms;
    double eps;
    double *x, *w, *b, *dy;
} norm_ref;

static double norm_at(const norm_ref *ref, int64_t row, int64_t col)
{
    const double *x = ref->x + row * ref->cols;
    double mean = 0, square = 0;
    for (int64_t i = 0; i < ref->cols && !ref->is_rms; i++)
        mean += x[i] / (double)ref->cols;
    for (int64_t i = 0; i < ref->cols; i++)
        square += (x[i] - mean) * (x[i] - mean) / (double)ref->cols;
    return (x[col] - mean) / sqrt(square + ref->eps) * ref->w[col] +
           ref->b[col];
}

static double norm_loss(const void *context)
{
    const norm_ref *ref = context;
    double loss = 0;
    for (int64_t row = 0; row < ref->rows; row++) {
        const double *x = ref->x + row * ref->cols;
        double mean = 0, square = 0;
        for (int64_t i = 0; i < ref->cols && !ref->is_rms; i++)
            mean += x[i] / (double)ref->cols;
        for (int64_t i = 0; i < ref->cols; i++)
            square += (x[i] - mean) * (x[i] - mean) / (double)ref->cols;
        double rstd = 1 / sqrt(square + ref->eps);
        for (int64_t i = 0; i < ref->cols; i++)
            loss += ref->dy[row * ref->cols + i] *
                    ((x[i] - mean) * rstd * ref->w[i] + ref->b[i]);
    }
    return loss;
}

static void check_norm(int64_t rows, int64_t cols, bool is_rms, int n_threads)
{
    int64_t n = rows * cols;
    uint16_t flags = is_rms ? FR_INSTR_RMS : 0;
    fr_instr fwd = {.op = FR_OP_NORM_FWD,
                    .dim = {rows, cols},
                    .scalar = 1.7e-5,
                    .flags = flags};
    fr_instr bwd = fwd;
    bwd.op = FR_OP_NORM_BWD;
    float *x = kf_floats(n, 11, 2.3), *w = kf_floats(cols, 12, 1.4);
    float *b = is_rms ? NULL : kf_floats(cols, 13, 0.7);
    float *y = kf_floats(n, 14, 9), *stats = kf_floats(2 * rows, 15, 9);
    float *dy = kf_floats(n, 16, 1.1), *dx = kf_floats(n, 17, 9);
    float *dw = kf_floats(cols, 18, 0.3), *db = kf_floats(cols, 19, 0.3);
    float *dw0 = kf_copy(dw, cols), *db0 = kf_copy(db, cols);
    norm_ref ref = {rows,
                    cols,
                    is_rms,
                    fwd.scalar,
                    kf_doubles(x, n),
                    kf_doubles(w, cols),
                    kf_doubles(b, cols),
                    kf_doubles(dy, n)};
    double *expected = kf_doubles(NULL, n);

    KF_RUN(&fwd, n_threads, x, w, b, y, stats);
    for (int64_t i = 0; i < n; i++)
        expected[i] = norm_at(&ref, i / cols, i % cols);
    CHECK_WITHIN(kf_error(y, expected, n), 0, 2e-6);

    KF_RUN(&bwd, n_threads, dy, x, w, stats, dx, dw, is_rms ? NULL : db);
    CHECK_WITHIN(kf_gradient_error(norm_loss, &ref, ref.x, n, dx, NULL, 150), 0,
                 3e-6);
    CHECK_WITHIN(kf_gradient_error(norm_loss, &ref, ref.w, cols, dw, dw0, 60),
                 0, 3e-6);
    if (!is_rms)
        CHECK_WITHIN(
            kf_gradient_error(norm_loss, &ref, ref.b, cols, db, db0, 60), 0,
            3e-6);

    /* ACCUMULATE adds to dx, and dx may be dy's own memory without it. */
    float *dx2 = kf_floats(n, 20, 0.5), *dx20 = kf_copy(dx2, n);
    bwd.flags |= FR_INSTR_ACCUMULATE;
    KF_RUN(&bwd, n_threads, dy, x, w, stats, dx2, dw, is_rms ? NULL : db);
    for (int64_t i = 0; i < n; i++)
        expected[i] = (double)dx20[i] + (double)dx[i];
    CHECK_WITHIN(kf_error(dx2, expected, n), 0, 1e-6);
    bwd.flags = flags;
    KF_RUN(&bwd, n_threads, dy, x, w, stats, dy, dw, is_rms ? NULL : db);
    CHECK(kf_same(dy, dx, n));

    float *lists[] = {x, w, b, y, stats, dy, dx, dw, db, dw0, db0, dx2, dx20};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        free(lists[i]);
    free(ref.x);
    free(ref.w);
    free(ref.b);
    free(ref.dy);
    free(expected);
}

static void test_norm(void)
{
    check_norm(7, 31, false, 1);
    check_norm(7, 33, true, 1);
    check_norm(37, 389, false, 2);
    check_norm(31, 397, true, 2);
    check_norm(1, 9001, false, 2);
}

/* The same bits from one, two and three threads, and again. */
static void test_norm_threads(void)
{
    enum { ROWS = 53, COLS = 211, N = ROWS * COLS };
    fr_instr fwd = {.op = FR_OP_NORM_FWD, .dim = {ROWS, COLS}, .scalar = 1e-5};
    fr_instr bwd = {.op = FR_OP_NORM_BWD, .dim = {ROWS, COLS}, .scalar = 1e-5};
    float *x = kf_floats(N, 1, 3), *w = kf_floats(COLS, 2, 1);
    float *b = kf_floats(COLS, 3, 1), *dy = kf_floats(N, 4, 1);
    float *out[4];
    for (int i = 0; i < 4; i++) {
        out[i] = calloc(2 * N + 2 * ROWS + 2 * COLS, sizeof(float));
        float *y = out[i], *dx = y + N, *stats = dx + N;
        float *dw = stats + 2 * ROWS, *db = dw + COLS;
        int n_threads = i < 3 ? i + 1 : 2;
        KF_RUN(&fwd, n_threads, x, w, b, y, stats);
        KF_RUN(&bwd, n_threads, dy, x, w, stats, dx, dw, db);
        CHECK(kf_same(out[0], out[i], 2 * N + 2 * ROWS + 2 * COLS));
    }
    for (int i = 0; i < 4; i++)
        free(out[i]);
    free(x);
    free(w);
    free(b);
    free(dy);
}

/* ---- linear ------------------------------------------------------------- */

/* c[m,n] += a[m,k] b[k,n] with any strides, in double */
static void multiply(double *c, int64_t m, int64_t n, int64_t k, const float *a,
                     const int64_t a_step[2], const float *b,
                     const int64_t b_step[2])
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            for (int64_t p = 0; p < k; p++)
                c[i * n + j] += (double)a[i * a_step[0] + p * a_step[1]] *
                                (double)b[p * b_step[0] + j * b_step[1]];
}

static void check_linear(int64_t m, int64_t n, int64_t k, int n_threads)
{
    fr_instr instr = {.dim = {m, n, k}};
    float *x = kf_floats(m * k, 21, 1), *w = kf_floats(n * k, 22, 1);
    float *bias = kf_floats(n, 23, 1), *y = kf_floats(m * n, 24, 9);
    float *dy = kf_floats(m * n, 25, 1), *dx = kf_floats(m * k, 26, 1);
    float *dw = kf_floats(n * k, 27, 1), *db = kf_floats(n, 28, 1);
    double *e_y = kf_doubles(NULL, m * n), *e_dx = kf_doubles(dx, m * k);
    double *e_dw = kf_doubles(dw, n * k), *e_db = kf_doubles(db, n);
    double *e_dx0 = kf_doubles(NULL, m * k);

    multiply(e_y, m, n, k, x, (int64_t[]){k, 1}, w, (int64_t[]){1, k});
    instr.op = FR_OP_LINEAR_FWD;
    KF_RUN(&instr, n_threads, x, w, NULL, y);
    CHECK_WITHIN(kf_error(y, e_y, m * n), 0, 2e-6);
    for (int64_t i = 0; i < m * n; i++)
        e_y[i] += (double)bias[i % n];
    KF_RUN(&instr, n_threads, x, w, bias, y);
    CHECK_WITHIN(kf_error(y, e_y, m * n), 0, 2e-6);

    multiply(e_dx, m, k, n, dy, (int64_t[]){n, 1}, w, (int64_t[]){k, 1});
    multiply(e_dx0, m, k, n, dy, (int64_t[]){n, 1}, w, (int64_t[]){k, 1});
    instr.op = FR_OP_LINEAR_DGRAD;
    instr.flags = FR_INSTR_ACCUMULATE;
    KF_RUN(&instr, n_threads, dy, w, dx);
    CHECK_WITHIN(kf_error(dx, e_dx, m * k), 0, 2e-6);
    instr.flags = 0;
    KF_RUN(&instr, n_threads, dy, w, dx);
    CHECK_WITHIN(kf_error(dx, e_dx0, m * k), 0, 2e-6);

    multiply(e_dw, n, k, m, dy, (int64_t[]){1, n}, x, (int64_t[]){k, 1});
    for (int64_t i = 0; i < m * n; i++)
        e_db[i % n] += (double)dy[i];
    instr.op = FR_OP_LINEAR_WGRAD;
    KF_RUN(&instr, n_threads, dy, x, dw, db);
    CHECK_WITHIN(kf_error(dw, e_dw, n * k), 0, 2e-6);
    CHECK_WITHIN(kf_error(db, e_db, n), 0, 2e-6);
    KF_RUN(&instr, n_threads, dy, x, dw, NULL);

    float *lists[] = {x, w, bias, y, dy, dx, dw, db};
    double *doubles[] = {e_y, e_dx, e_dw, e_db, e_dx0};
    for (size_t i = 0; i < 8; i++)
        free(lists[i]);
    for (size_t i = 0; i < 5; i++)
        free(doubles[i]);
}

static void test_linear(void)
{
    check_linear(3, 5, 7, 1);
    check_linear(61, 143, 37, 2);
    check_linear(1, 211, 97, 2);
}

static void test_bias_grad(void)
{
    enum { ROWS = 71, COLS = 203 };
    fr_instr instr = {.op = FR_OP_BIAS_GRAD, .dim = {ROWS, COLS}};
    float *dy = kf_floats(ROWS * COLS, 31, 1), *db = kf_floats(COLS, 32, 1);
    double *expected = kf_doubles(db, COLS);
    for (int i = 0; i < ROWS * COLS; i++)
        expected[i % COLS] += (double)dy[i];
    KF_RUN(&instr, 2, dy, db);
    CHECK_WITHIN(kf_error(db, expected, COLS), 0, 1e-6);
    free(dy);
    free(db);
    free(expected);
}

/* ---- activations -------------------------------------------------------- */

static double gelu_tanh_of(double x)
{
    double inner = sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x);
    return 0.5 * x * (1 + tanh(inner));
}

static double gelu_of(double x)
{
    return 0.5 * x * (1 + erf(x / sqrt(2)));
}

static double silu_of(double x)
{
    return x / (1 + exp(-x));
}

static double quick_of(double x)
{
    return x / (1 + exp(-1.702 * x));
}

static double relu_of(double x)
{
    return x > 0 ? x : 0;
}

static double relu2_of(double x)
{
    return x > 0 ? x * x : 0;
}

static double sigmoid_of(double x)
{
    return 1 / (1 + exp(-x));
}

static double (*const functions[FR_ACTIVATION_N])(double) = {
    [FR_ACTIVATION_GELU_TANH] = gelu_tanh_of,
    [FR_ACTIVATION_GELU] = gelu_of,
    [FR_ACTIVATION_SILU] = silu_of,
    [FR_ACTIVATION_RELU] = relu_of,
    [FR_ACTIVATION_RELU_SQUARED] = relu2_of,
    [FR_ACTIVATION_GELU_QUICK] = quick_of,
    [FR_ACTIVATION_SIGMOID] = sigmoid_of,
    [FR_ACTIVATION_TANH] = tanh,
};

static void check_plain(int kind)
{
    enum { N = 20011 };
    fr_instr fwd = {
        .op = FR_OP_GELU_FWD, .activation = (uint8_t)kind, .dim = {N}};
    fr_instr bwd = {
        .op = FR_OP_GELU_BWD, .activation = (uint8_t)kind, .dim = {N}};
    float *x = kf_floats(N, 41, 6.3), *y = kf_floats(N, 42, 1);
    float *dy = kf_floats(N, 43, 1.3), *dx = kf_floats(N, 44, 1);
    x[5] = 97.3F;
    x[6] = -113.1F;
    if (kind == FR_ACTIVATION_GELU_TANH || kind == FR_ACTIVATION_GELU) {
        x[7] = 3.1e15F;
        x[8] = -2.7e15F;
    }
    KF_RUN(&fwd, 2, x, y);
    KF_RUN(&bwd, 2, dy, x, dx);
    for (int i = 0; i < N; i++) {
        double v = (double)x[i], h = 1e-6;
        double slope =
            (functions[kind](v + h) - functions[kind](v - h)) / h / 2;
        if (fabs(v) > 1e9)
            slope = v > 0;
        CHECK_WITHIN(y[i], functions[kind](v),
                     4e-7 * (fabs(functions[kind](v)) + fabs(v) + 0.1));
        CHECK_WITHIN(dx[i], (double)dy[i] * slope, 3e-6 * (1 + fabs(slope)));
    }
    KF_RUN(&bwd, 1, dy, x, dy); /* in place, one thread: the same bits */
    CHECK(kf_same(dx, dy, N));
    x[3] = NAN;
    KF_RUN(&fwd, 2, x, y);
    CHECK(isnan(y[3]));
    free(x);
    free(y);
    free(dy);
    free(dx);
}

static void check_gated(int kind)
{
    enum { ROWS = 19, F = 431 };
    const double h = 1e-6;
    fr_instr fwd = {
        .op = FR_OP_SWIGLU_FWD, .activation = (uint8_t)kind, .dim = {ROWS, F}};
    fr_instr bwd = {
        .op = FR_OP_SWIGLU_BWD, .activation = (uint8_t)kind, .dim = {ROWS, F}};
    float *x = kf_floats(2 * ROWS * F, 51, 5.7), *y = kf_floats(ROWS * F, 5, 1);
    float *dy = kf_floats(ROWS * F, 53, 1.3);
    float *dx = kf_floats(2 * ROWS * F, 54, 1);
    x[3] = 101.7F;
    x[4] = -119.3F;
    KF_RUN(&fwd, 2, x, y);
    KF_RUN(&bwd, 2, dy, x, dx);
    for (int64_t row = 0; row < ROWS; row++) {
        for (int64_t i = 0; i < F; i++) {
            double gate = (double)x[row * 2 * F + i];
            double up = (double)x[row * 2 * F + F + i];
            double d = (double)dy[row * F + i], f = functions[kind](gate);
            double slope =
                (functions[kind](gate + h) - functions[kind](gate - h)) / h / 2;
            double scale = 1 + (fabs(f) + fabs(slope) + fabs(gate)) * fabs(up);
            CHECK_WITHIN(y[row * F + i], f * up, 4e-7 * scale);
            CHECK_WITHIN(dx[row * 2 * F + i], d * up * slope, 3e-6 * scale);
            CHECK_WITHIN(dx[row * 2 * F + F + i], d * f,
                         1e-6 * (1 + fabs(f) + fabs(gate)));
        }
    }
    free(x);
    free(y);
    free(dy);
    free(dx);
}

static void test_activations(void)
{
    for (int kind = 0; kind < FR_ACTIVATION_N; kind++) {
        check_plain(kind);
        check_gated(kind);
    }
}

/* ---- norms of heads ----------------------------------------------------- */

typedef struct heads_ref {
    int64_t rows, n, dim, all, first;
    double eps, *qkv, *w, *dy;
} heads_ref;

static double heads_loss(const void *context)
{
    const heads_ref *r = context;
    double loss = 0;
    for (int64_t i = 0; i < r->rows * r->n; i++) {
        int64_t at = (i / r->n * r->all + r->first + i % r->n) * r->dim;
        double sum = 0;
        for (int64_t j = 0; j < r->dim; j++)
            sum += r->qkv[at + j] * r->qkv[at + j];
        double scale = 1 / sqrt(sum / (double)r->dim + r->eps);
        for (int64_t j = 0; j < r->dim; j++)
            loss += r->qkv[at + j] * scale * r->w[j] * r->dy[at + j];
    }
    return loss;
}

static void test_head_norm(void)
{
    enum { ROWS = 29, N = 5, DIM = 23, ALL = 9, FIRST = 3 };
    enum { N_ALL = ROWS * ALL * DIM, N_RAW = ROWS * N * DIM };
    fr_instr fwd = {.op = FR_OP_HEAD_NORM_FWD,
                    .scalar = 1.3e-3,
                    .dim = {ROWS, N, DIM, ALL, FIRST}};
    fr_instr bwd = fwd;
    bwd.op = FR_OP_HEAD_NORM_BWD;
    float *x = kf_floats(N_ALL, 81, 1.7), *w = kf_floats(DIM, 82, 1.1);
    float *dy = kf_floats(N_ALL, 83, 1.3), *dw = kf_floats(DIM, 84, 1);
    float *raw = kf_floats(N_RAW, 85, 1), *y = kf_copy(x, N_ALL);
    float stats[2 * ROWS * N], *before = kf_copy(dw, DIM);
    heads_ref r = {ROWS,
                   N,
                   DIM,
                   ALL,
                   FIRST,
                   1.3e-3,
                   kf_doubles(x, N_ALL),
                   kf_doubles(w, DIM),
                   kf_doubles(dy, N_ALL)};
    float *dx = kf_copy(dy, N_ALL);
    KF_RUN(&fwd, 2, y, w, raw, stats);
    double sum = 0;
    for (int64_t i = 0; i < N_ALL; i++) {
        int64_t head = i / DIM % ALL;
        bool is_normed = head >= FIRST && head < FIRST + N;
        CHECK(is_normed || y[i] == x[i]);
        sum += is_normed ? (double)y[i] * r.dy[i] : 0;
    }
    CHECK_NEAR(sum, heads_loss(&r), 1e-5);
    KF_RUN(&bwd, 2, dx, w, raw, stats, dw);
    CHECK_WITHIN(kf_gradient_error(heads_loss, &r, r.w, DIM, dw, before, DIM),
                 0, 1e-5);
    for (int64_t i = 0; i < N_ALL; i += 7) {
        int64_t head = i / DIM % ALL;
        if (head >= FIRST && head < FIRST + N)
            CHECK_WITHIN(dx[i], kf_slope(heads_loss, &r, &r.qkv[i]), 1e-5);
        else
            CHECK(dx[i] == dy[i]);
    }
    free(x);
    free(y);
    free(w);
    free(dy);
    free(dx);
    free(dw);
    free(raw);
    free(before);
    free(r.qkv);
    free(r.w);
    free(r.dy);
}

/* ---- residual and memory ------------------------------------------------ */

static void test_residual(void)
{
    enum { ROWS = 47, COLS = 193, N = ROWS * COLS };
    fr_instr instr = {.op = FR_OP_RESIDUAL_ADD, .dim = {ROWS, COLS}};
    float *a = kf_floats(N, 61, 1), *b = kf_floats(N, 62, 1);
    float *bias = kf_floats(COLS, 63, 1), *out = kf_floats(N, 64, 1);
    KF_RUN(&instr, 2, a, b, bias, out);
    for (int i = 0; i < N; i++)
        CHECK(out[i] == a[i] + b[i] + bias[i % COLS]);
    KF_RUN(&instr, 2, a, b, NULL, a);
    for (int i = 0; i < N; i++)
        CHECK(out[i] == a[i] + bias[i % COLS]);
    free(a);
    free(b);
    free(bias);
    free(out);
}

static void test_memory(void)
{
    enum { N = 50021 };
    float *a = kf_floats(N + 1, 71, 1), *b = kf_floats(N + 1, 72, 1);
    float guard = b[N];
    fr_instr instr = {.op = FR_OP_ADD, .dim = {N}};
    float *sum = kf_copy(b, N);
    KF_RUN(&instr, 2, a, sum);
    for (int i = 0; i < N; i++)
        CHECK(sum[i] == a[i] + b[i]);
    instr = (fr_instr){.op = FR_OP_COPY, .dim = {N * 4}};
    KF_RUN(&instr, 2, a, b);
    CHECK(kf_same(a, b, N) && b[N] == guard);
    instr = (fr_instr){.op = FR_OP_ZERO, .dim = {N * 4 - 3}};
    KF_RUN(&instr, 2, b);
    const unsigned char *bytes = (const unsigned char *)b;
    for (int i = 0; i < N * 4 - 3; i++)
        CHECK(bytes[i] == 0);
    CHECK(memcmp(bytes + N * 4 - 3, (const unsigned char *)a + N * 4 - 3, 3) ==
          0);
    free(a);
    free(b);
    free(sum);
}

/* ---- embedding ---------------------------------------------------------- */

/* Two vocabulary shards: their outputs add up, each has its own gradient. */
static void test_embed(void)
{
    enum { B = 3, T = 29, C = 131, SHARD = 23, V = 41, R = B * T };
    int32_t tokens[R];
    float *wte = kf_floats(2 * SHARD * C, 81, 1);
    float *wpe = kf_floats(T * C, 82, 1);
    float *dout = kf_floats(R * C, 83, 1);
    float *dwte = kf_floats(2 * SHARD * C, 84, 1);
    float *dwpe = kf_floats(T * C, 85, 1);
    double *e_wte = kf_doubles(dwte, 2 * SHARD * C);
    double *e_wpe = kf_doubles(dwpe, T * C);
    float *out[2] = {kf_floats(R * C, 86, 9), kf_floats(R * C, 87, 9)};
    for (int i = 0; i < R; i++)
        tokens[i] = i % 5 == 0 ? 17 : (i * 2971 + 13) % V;
    for (int tp = 0; tp < 2; tp++) {
        fr_instr instr = {.op = FR_OP_EMBED_FWD,
                          .axis = FR_AXIS_TP,
                          .dim = {R, C, SHARD, T, V}};
        fr_kernel_call call =
            kf_call(&instr, 2,
                    (void *[]){tokens, wte + tp * SHARD * C, wpe, out[tp]}, 4);
        call.coordinate = tp;
        call.n_group = 2;
        fr_kernels_cpu[FR_OP_EMBED_FWD](&call);
        instr.op = FR_OP_EMBED_BWD;
        call.ptr[1] = dout;
        call.ptr[2] = dwte + tp * SHARD * C;
        call.ptr[3] = tp == 0 ? dwpe : NULL;
        fr_kernels_cpu[FR_OP_EMBED_BWD](&call);
    }
    for (int i = 0; i < R * C; i++) {
        int row = i / C, col = i % C;
        CHECK(out[0][i] + out[1][i] ==
              wte[tokens[row] * C + col] + wpe[row % T * C + col]);
        e_wte[tokens[row] * C + col] += (double)dout[i];
        e_wpe[row % T * C + col] += (double)dout[i];
    }
    CHECK_WITHIN(kf_error(dwte, e_wte, 2 * SHARD * C), 0, 1e-6);
    CHECK_WITHIN(kf_error(dwpe, e_wpe, T * C), 0, 1e-6);
    float *lists[] = {wte, wpe, dout, dwte, dwpe, out[0], out[1]};
    for (size_t i = 0; i < 7; i++)
        free(lists[i]);
    free(e_wte);
    free(e_wpe);
}

/* ---- rotary positions --------------------------------------------------- */

static void check_rope(int64_t batch, int64_t seq, int64_t n_q, int64_t n_kv,
                       int64_t head_dim)
{
    int64_t rows = batch * seq, half = head_dim / 2;
    int64_t stride = (n_q + 2 * n_kv) * head_dim;
    fr_instr fwd = {.op = FR_OP_ROPE_FWD,
                    .dim = {rows, seq, n_q, n_kv, head_dim},
                    .scalar = 9973.5};
    fr_instr bwd = fwd;
    bwd.op = FR_OP_ROPE_BWD;
    float *x = kf_floats(rows * stride, 91, 1), *y = kf_copy(x, rows * stride);
    double *expected = kf_doubles(x, rows * stride);
    for (int64_t i = 0; i < rows * (n_q + n_kv) * half; i++) {
        int64_t pair = i % half, head = i / half % (n_q + n_kv);
        int64_t row = i / half / (n_q + n_kv);
        double *at = expected + row * stride + head * head_dim + pair;
        double angle = (double)(row % seq) *
                       pow(fwd.scalar, -2.0 * (double)pair / (double)head_dim);
        double a = at[0], b = at[half];
        at[0] = a * cos(angle) - b * sin(angle);
        at[half] = b * cos(angle) + a * sin(angle);
    }
    KF_RUN(&fwd, 2, y);
    CHECK_WITHIN(kf_error(y, expected, rows * stride), 0, 3e-7);
    float *one = kf_copy(x, rows * stride);
    KF_RUN(&fwd, 1, one);
    CHECK(kf_same(one, y, rows * stride));
    /* The inverse is the transpose: the gradient of a rotation. */
    KF_RUN(&bwd, 2, y);
    for (int64_t i = 0; i < rows * stride; i++)
        expected[i] = (double)x[i];
    CHECK_WITHIN(kf_error(y, expected, rows * stride), 0, 5e-7);
    free(x);
    free(y);
    free(one);
    free(expected);
}

static void test_rope(void)
{
    check_rope(3, 53, 6, 2, 10);
    check_rope(2, 37, 3, 3, 64);
    check_rope(1, 19, 2, 1, 258); /* more pairs than one pass takes */
}

CHECK_MAIN({"norm", test_norm}, {"norm_threads", test_norm_threads},
           {"linear", test_linear}, {"bias_grad", test_bias_grad},
           {"activations", test_activations}, {"head_norm", test_head_norm},
           {"residual", test_residual}, {"memory", test_memory},
           {"embed", test_embed}, {"rope", test_rope})
