/*
 * test_kernels_images.c: convolutions, batch norm and pools against loops over
 * single elements in float64, and against PyTorch's numbers (tests/oracle).
 */
#include "kernels/cpu/images/conv.h"
#include "spec/model/layer_ops.h"
#include "tests/oracle/image_ops_golden.h"
#include "tests/unit/runtime/kernel_fixture.h"

#include <math.h>

/* ---- convolutions ------------------------------------------------------- */

static const fr_conv_dims convs[] = {
    {2, 3, 17, 16, 7, 2, 3, 1},  {3, 5, 9, 7, 3, 1, 1, 1},
    {2, 16, 8, 32, 1, 1, 0, 1},  {2, 32, 7, 16, 1, 2, 0, 1},
    {1, 12, 6, 18, 3, 2, 1, 3},  {2, 8, 5, 8, 5, 1, 2, 8},
    {2, 4, 11, 6, 4, 3, 0, 1},   {1, 1, 1, 1, 1, 1, 0, 1},
    {2, 64, 14, 64, 3, 1, 1, 1},
};

static int64_t made_size(const fr_conv_dims *d)
{
    return fr_window_size(d->size, d->kernel, d->stride, d->padding);
}

/* Visits every product of a convolution: the elements of image, weight and
 * result that meet. */
typedef void (*meet_fn)(void *context, int64_t x, int64_t w, int64_t y);

static void visit(const fr_conv_dims *d, meet_fn meet, void *context)
{
    const int64_t made = made_size(d), in = d->in / d->groups,
                  out = d->out / d->groups, k = d->kernel;
    for (int64_t at = 0; at < d->batch * made * made * d->out; at++) {
        const int64_t o = at % d->out, pixel = at / d->out;
        const int64_t col = pixel % made, row = pixel / made % made,
                      b = pixel / made / made;
        for (int64_t i = 0; i < in * k * k; i++) {
            const int64_t c = i / k / k, ky = i / k % k, kx = i % k;
            const int64_t y = row * d->stride + ky - d->padding,
                          x = col * d->stride + kx - d->padding;
            if (y >= 0 && y < d->size && x >= 0 && x < d->size)
                meet(context,
                     ((b * d->size + y) * d->size + x) * d->in + o / out * in +
                         c,
                     o * in * k * k + i, at);
        }
    }
}

typedef struct conv_case {
    float *x, *w, *y, *bias;        /* what the kernels have */
    double *made, *dx, *dw, *dbias; /* what is wanted */
} conv_case;

static void meet(void *context, int64_t x, int64_t w, int64_t y)
{
    conv_case *at = context;
    at->made[y] += (double)at->x[x] * (double)at->w[w];
    at->dx[x] += (double)at->y[y] * (double)at->w[w];
    at->dw[w] += (double)at->y[y] * (double)at->x[x];
}

/* One instruction, with its operands in their order. */
static void run_conv(fr_op op, const fr_conv_dims *d, bool has_bias,
                     void *const ptr[4])
{
    fr_instr instr = {.op = (uint8_t)op, .conv = *d};
    fr_convs *made = NULL;
    fr_err err = {0};
    instr.ref[FR_CONV_FWD_BIAS].space =
        op == FR_OP_CONV_FWD && has_bias ? FR_SPACE_WEIGHT : FR_SPACE_NONE;
    if (op == FR_OP_CONV_WGRAD)
        instr.ref[FR_CONV_WGRAD_DBIAS].space =
            has_bias ? FR_SPACE_GRAD : FR_SPACE_NONE;
    fr_kernels_cpu_set_threads(2);
    if (CHECK_OK(fr_convs_create(&made, &err), &err) &&
        CHECK_OK(fr_convs_add(made, &instr, &err), &err)) {
        fr_kernel_call call = kf_call(&instr, 2, ptr, 4);
        call.convs = made;
        fr_kernels_cpu[op](&call);
    }
    fr_convs_destroy(made);
}

static void check_conv(const fr_conv_dims *d, bool has_bias)
{
    const int64_t made = made_size(d);
    const int64_t n_x = d->batch * d->size * d->size * d->in,
                  n_y = d->batch * made * made * d->out,
                  n_w = d->out * (d->in / d->groups) * d->kernel * d->kernel;
    conv_case c = {.x = kf_floats(n_x, 1, 1),
                   .w = kf_floats(n_w, 2, 0.4),
                   .y = kf_floats(n_y, 3, 0.7),
                   .bias = kf_floats(d->out, 4, 0.3),
                   .made = kf_doubles(NULL, n_y),
                   .dx = kf_doubles(NULL, n_x)};
    float *dw = kf_floats(n_w, 5, 0.2), *dbias = kf_floats(d->out, 6, 0.2);
    float *out = kf_floats(n_y, 7, 1), *dx = kf_floats(n_x, 8, 1);
    c.dw = kf_doubles(dw, n_w);
    c.dbias = kf_doubles(dbias, d->out);
    for (int64_t i = 0; i < n_y; i++) {
        c.made[i] = has_bias ? (double)c.bias[i % d->out] : 0;
        c.dbias[i % d->out] += (double)c.y[i];
    }
    visit(d, meet, &c);
    run_conv(FR_OP_CONV_FWD, d, has_bias,
             (void *[]){c.x, c.w, has_bias ? c.bias : NULL, out});
    run_conv(FR_OP_CONV_DGRAD, d, has_bias, (void *[]){c.y, c.w, dx, NULL});
    run_conv(FR_OP_CONV_WGRAD, d, has_bias,
             (void *[]){c.y, c.x, dw, has_bias ? dbias : NULL});
    CHECK(kf_error(out, c.made, n_y) < 2e-6);
    CHECK(kf_error(dx, c.dx, n_x) < 2e-6);
    CHECK(kf_error(dw, c.dw, n_w) < 2e-6);
    CHECK(!has_bias || kf_error(dbias, c.dbias, d->out) < 2e-6);
    float *floats[] = {c.x, c.w, c.y, c.bias, dw, dbias, out, dx};
    double *doubles[] = {c.made, c.dx, c.dw, c.dbias};
    for (size_t i = 0; i < FR_LENGTH(floats); i++)
        free(floats[i]);
    for (size_t i = 0; i < FR_LENGTH(doubles); i++)
        free(doubles[i]);
}

static void test_convs(void)
{
    if (!fr_convs_are_there())
        SKIP("oneDNN is not in this build");
    for (size_t i = 0; i < FR_LENGTH(convs); i++) {
        check_conv(&convs[i], i % 2 == 0);
        const fr_instr instr = {.op = FR_OP_CONV_FWD, .conv = convs[i]};
        const int64_t made = made_size(&convs[i]);
        CHECK_INT(fr_instr_flop(&instr), 2 * convs[i].batch * made * made *
                                             convs[i].out *
                                             (convs[i].in / convs[i].groups) *
                                             convs[i].kernel * convs[i].kernel);
    }
}

/* ---- batch norm --------------------------------------------------------- */

static const fr_model norm_model = {.norm_eps = 1e-5};

static fr_kernel_call norm_call(const fr_instr *instr, int n_threads,
                                void *const *ptr, int n_ptr, void *scratch)
{
    fr_kernel_call call = kf_call(instr, n_threads, ptr, n_ptr);
    call.model = &norm_model;
    call.scratch = scratch;
    fr_kernels_cpu_set_threads(n_threads);
    return call;
}

typedef struct norm_case {
    int64_t rows, cols, stride;
    bool has_relu, has_add;
    float *x, *p, *add, *dy;
    double *mean, *variance; /* of the batch */
} norm_case;

static double norm_value(const norm_case *c, int64_t i, bool is_running)
{
    const int64_t col = i % c->cols;
    const double mean = is_running ? (double)c->p[2 * c->stride + col]
                                   : c->mean[col],
                 variance = is_running ? (double)c->p[3 * c->stride + col]
                                       : c->variance[col];
    return ((double)c->x[i] - mean) / sqrt(variance + 1e-5) *
               (double)c->p[col] +
           (double)c->p[c->stride + col] + (c->has_add ? (double)c->add[i] : 0);
}

static void find_moments(norm_case *c)
{
    for (int64_t i = 0; i < c->rows * c->cols; i++)
        c->mean[i % c->cols] += (double)c->x[i] / (double)c->rows;
    for (int64_t i = 0; i < c->rows * c->cols; i++) {
        const double away = (double)c->x[i] - c->mean[i % c->cols];
        c->variance[i % c->cols] += away * away / (double)c->rows;
    }
}

/* Forward of the batch, or with running statistics. */
static void check_norm_forward(const norm_case *c, bool is_evaluation,
                               float *stats, uint8_t *mask, void *scratch)
{
    const int64_t n = c->rows * c->cols;
    fr_instr instr = {.op = FR_OP_BATCH_NORM_FWD,
                      .flags = c->has_relu ? FR_INSTR_RELU : 0,
                      .batch_norm = {c->rows, c->cols, c->stride},
                      .scalar = 1e-5};
    float *y = kf_floats(n, 11, 1);
    double *want = kf_doubles(NULL, n);
    fr_kernel_call call =
        norm_call(&instr, 3,
                  (void *[]){c->x, c->p, y, stats, c->has_add ? c->add : NULL,
                             c->has_add && c->has_relu ? mask : NULL},
                  6, scratch);
    call.is_evaluation = is_evaluation;
    fr_kernels_cpu[FR_OP_BATCH_NORM_FWD](&call);
    for (int64_t i = 0; i < n; i++) {
        want[i] = norm_value(c, i, is_evaluation);
        want[i] = c->has_relu ? fmax(want[i], 0) : want[i];
    }
    CHECK(kf_error(y, want, n) < 2e-6);
    free(y);
    free(want);
}

static void check_norm_backward(const norm_case *c, float *stats, uint8_t *mask,
                                void *scratch)
{
    enum { SHARE = 4 };
    const int64_t n = c->rows * c->cols, cols = c->cols;
    fr_instr instr = {.op = FR_OP_BATCH_NORM_BWD,
                      .flags = c->has_relu ? FR_INSTR_RELU : 0,
                      .batch_norm = {c->rows, cols, c->stride},
                      .scalar = 1.0 / SHARE};
    float *dx = kf_floats(n, 12, 1), *dadd = kf_floats(n, 13, 1);
    float *dp = kf_floats(4 * c->stride, 14, 0.1);
    double *want_dp = kf_doubles(dp, 4 * c->stride);
    double *g = kf_doubles(NULL, n), *want = kf_doubles(NULL, n);
    double *sums = kf_doubles(NULL, 2 * cols);
    fr_kernel_call call =
        norm_call(&instr, 2,
                  (void *[]){c->dy, c->x, c->p, stats, dx, dp,
                             c->has_add && c->has_relu ? mask : NULL,
                             c->has_add ? dadd : NULL},
                  8, scratch);
    fr_kernels_cpu[FR_OP_BATCH_NORM_BWD](&call);
    for (int64_t i = 0; i < n; i++) {
        const int64_t col = i % cols;
        const double inverse = 1 / sqrt(c->variance[col] + 1e-5);
        bool is_passed = !c->has_relu || norm_value(c, i, false) > 0;
        g[i] = is_passed ? (double)c->dy[i] : 0;
        sums[col] += g[i];
        sums[cols + col] += g[i] * ((double)c->x[i] - c->mean[col]) * inverse;
    }
    for (int64_t i = 0; i < n; i++) {
        const int64_t col = i % cols;
        const double inverse = 1 / sqrt(c->variance[col] + 1e-5);
        const double hat = ((double)c->x[i] - c->mean[col]) * inverse;
        want[i] = (double)c->p[col] * inverse *
                  (g[i] - sums[col] / (double)c->rows -
                   hat * sums[cols + col] / (double)c->rows);
    }
    for (int64_t col = 0; col < cols; col++) {
        const double rows = (double)c->rows;
        want_dp[col] += sums[cols + col];
        want_dp[c->stride + col] += sums[col];
        want_dp[2 * c->stride + col] +=
            ((double)c->p[2 * c->stride + col] - c->mean[col]) / SHARE;
        want_dp[3 * c->stride + col] += ((double)c->p[3 * c->stride + col] -
                                         c->variance[col] * rows / (rows - 1)) /
                                        SHARE;
    }
    CHECK(kf_error(dx, want, n) < 5e-6);
    CHECK(!c->has_add || kf_error(dadd, g, n) < 1e-7);
    CHECK(kf_error(dp, want_dp, 4 * c->stride) < 5e-6);
    free(dx);
    free(dadd);
    free(dp);
    free(want_dp);
    free(g);
    free(want);
    free(sums);
}

static void check_norm(int64_t rows, int64_t cols, bool has_relu, bool has_add)
{
    const int64_t n = rows * cols, stride = (cols + 15) / 16 * 16;
    norm_case c = {.rows = rows,
                   .cols = cols,
                   .stride = stride,
                   .has_relu = has_relu,
                   .has_add = has_add,
                   .x = kf_floats(n, 1, 2),
                   .p = kf_floats(4 * stride, 2, 0.8),
                   .add = kf_floats(n, 3, 1),
                   .dy = kf_floats(n, 4, 1),
                   .mean = kf_doubles(NULL, cols),
                   .variance = kf_doubles(NULL, cols)};
    const fr_instr instr = {.op = FR_OP_BATCH_NORM_BWD,
                            .batch_norm = {rows, cols, stride}};
    void *scratch = malloc(fr_kernels_cpu_scratch_bytes(&instr));
    float *stats = kf_floats(2 * cols, 5, 1);
    uint8_t *mask = calloc((size_t)n, 1);
    for (int64_t i = 0; i < n; i++)
        c.x[i] += 3.5F * (float)(i % cols % 3); /* means are not 0 */
    for (int64_t i = 0; i < stride; i++)
        c.p[3 * stride + i] = fabsf(c.p[3 * stride + i]) + 0.1F;
    find_moments(&c);
    check_norm_forward(&c, true, stats, mask, scratch);
    check_norm_forward(&c, false, stats, mask, scratch);
    check_norm_backward(&c, stats, mask, scratch);
    free(scratch);
    free(stats);
    free(mask);
    free(c.x);
    free(c.p);
    free(c.add);
    free(c.dy);
    free(c.mean);
    free(c.variance);
}

static void test_batch_norm(void)
{
    static const int64_t sizes[][2] = {{301, 24}, {5, 3}, {1000, 1}, {64, 300}};
    for (size_t i = 0; i < FR_LENGTH(sizes); i++)
        for (int k = 0; k < 4; k++)
            check_norm(sizes[i][0], sizes[i][1], k & 1, k & 2);
}

/* ---- pools -------------------------------------------------------------- */

static const fr_pool_dims pools[] = {
    {2, 5, 9, 3, 2, 1},  {3, 16, 8, 2, 2, 0}, {1, 33, 7, 7, 7, 0},
    {2, 4, 13, 3, 2, 0}, {1, 2, 6, 5, 1, 2},
};

static void check_pool(const fr_pool_dims *d, bool is_max)
{
    const int64_t made =
        fr_window_size(d->size, d->kernel, d->stride, d->padding);
    const int64_t n_x = d->batch * d->size * d->size * d->channels,
                  n_y = d->batch * made * made * d->channels;
    fr_instr instr = {
        .op = FR_OP_POOL_FWD, .flags = is_max ? FR_INSTR_MAX : 0, .pool = *d};
    float *x = kf_floats(n_x, 1, 1), *y = kf_floats(n_y, 2, 1),
          *dy = kf_floats(n_y, 3, 1), *dx = kf_floats(n_x, 4, 1);
    uint8_t *index = calloc((size_t)n_y, 1);
    double *want = kf_doubles(NULL, n_y), *want_dx = kf_doubles(NULL, n_x);
    for (int64_t i = 0; i < n_y; i++) {
        const int64_t c = i % d->channels, pixel = i / d->channels;
        const int64_t col = pixel % made, row = pixel / made % made,
                      b = pixel / made / made, k = d->kernel;
        int64_t best = -1;
        for (int64_t at = 0; at < k * k; at++) {
            const int64_t yy = row * d->stride + at / k - d->padding,
                          xx = col * d->stride + at % k - d->padding;
            const int64_t from =
                ((b * d->size + yy) * d->size + xx) * d->channels + c;
            if (yy < 0 || yy >= d->size || xx < 0 || xx >= d->size)
                continue;
            if (best < 0 || x[from] > x[best])
                best = from;
            if (is_max)
                continue;
            want[i] += (double)x[from] / (double)(k * k);
            want_dx[from] += (double)dy[i] / (double)(k * k);
        }
        if (is_max) {
            want[i] = (double)x[best];
            want_dx[best] += (double)dy[i];
        }
    }
    KF_RUN(&instr, 2, x, y, index);
    instr.op = FR_OP_POOL_BWD;
    KF_RUN(&instr, 2, dx, dy, index);
    CHECK(kf_error(y, want, n_y) < 1e-6);
    CHECK(kf_error(dx, want_dx, n_x) < 1e-6);
    free(x);
    free(y);
    free(dy);
    free(dx);
    free(index);
    free(want);
    free(want_dx);
}

static void test_pools(void)
{
    for (size_t i = 0; i < FR_LENGTH(pools); i++) {
        check_pool(&pools[i], true);
        check_pool(&pools[i], false);
    }
}

/* ---- PyTorch's numbers -------------------------------------------------- */

static double wave_at(double phase, int64_t i)
{
    const double k = (double)(i % 97);
    return (double)(float)sin(phase + 1.7 * (double)i + 0.013 * k * k);
}

static float *wave(double phase, int64_t n)
{
    float *x = malloc((size_t)n * sizeof *x);
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)wave_at(phase, i);
    return x;
}

/* Compares n numbers and frees them. */
static void check_told(float *x, int64_t n, const golden_numbers *want)
{
    double sum = 0, square = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += (double)x[i] * wave_at(9, i);
        square += (double)x[i] * (double)x[i];
    }
    CHECK_INT(n, want->n);
    CHECK(fabs(sum - want->sum) < 1e-5 * want->norm);
    CHECK(fabs(sqrt(square) - want->norm) < 2e-6 * want->norm);
    for (size_t i = 0; i < FR_LENGTH(want->element); i++)
        CHECK(fabs((double)x[want->element[i].at] - want->element[i].value) <
              2e-6 * want->norm);
    free(x);
}

static void check_golden_conv(const golden_op *g)
{
    const int64_t *s = g->size;
    const fr_conv_dims d = {s[0], s[1], s[3], s[2], s[4], s[5], s[6], s[7]};
    const bool has_bias = s[8] != 0;
    const int64_t cols = d.in / d.groups * d.kernel * d.kernel,
                  made = made_size(&d), n_w = d.out * cols,
                  n_x = d.batch * d.size * d.size * d.in,
                  n_y = d.batch * made * made * d.out;
    float *x = wave(1, n_x), *w = wave(2, n_w), *b = wave(3, d.out),
          *dy = wave(4, n_y), *y = wave(0, n_y), *dx = wave(0, n_x);
    float *dw = calloc((size_t)n_w, sizeof *dw);
    float *db = calloc((size_t)d.out, sizeof *db);
    for (int64_t i = 0; i < n_w; i++)
        w[i] = (float)((double)w[i] / sqrt((double)cols));
    run_conv(FR_OP_CONV_FWD, &d, has_bias,
             (void *[]){x, w, has_bias ? b : NULL, y});
    run_conv(FR_OP_CONV_DGRAD, &d, has_bias, (void *[]){dy, w, dx, NULL});
    run_conv(FR_OP_CONV_WGRAD, &d, has_bias,
             (void *[]){dy, x, dw, has_bias ? db : NULL});
    check_told(y, n_y, &g->result[0]);
    check_told(dx, n_x, &g->result[1]);
    check_told(dw, n_w, &g->result[2]);
    if (has_bias)
        check_told(db, d.out, &g->result[3]);
    else
        free(db);
    free(x);
    free(w);
    free(b);
    free(dy);
}

static void check_golden_pool(const golden_op *g)
{
    const int64_t *s = g->size;
    const fr_pool_dims d = {s[0], s[1], s[2], s[3], s[4], s[5]};
    const int64_t made = fr_window_size(d.size, d.kernel, d.stride, d.padding),
                  n_x = d.batch * d.size * d.size * d.channels,
                  n_y = d.batch * made * made * d.channels;
    fr_instr instr = {
        .op = FR_OP_POOL_FWD, .flags = s[6] != 0 ? FR_INSTR_MAX : 0, .pool = d};
    float *x = wave(1, n_x), *y = wave(0, n_y), *dy = wave(4, n_y),
          *dx = wave(0, n_x);
    uint8_t *index = calloc((size_t)n_y, 1);
    KF_RUN(&instr, 2, x, y, index);
    instr.op = FR_OP_POOL_BWD;
    KF_RUN(&instr, 2, dx, dy, index);
    check_told(y, n_y, &g->result[0]);
    check_told(dx, n_x, &g->result[1]);
    free(x);
    free(dy);
    free(index);
}

/* A row of the parameters or of their gradients, without what pads it. */
static float *row_of(const float *p, int64_t stride, int row, int64_t cols)
{
    return kf_copy(p + row * stride, cols);
}

static void check_golden_norm(const golden_op *g)
{
    const int64_t rows = g->size[0], cols = g->size[1], n = rows * cols,
                  stride = (cols + 15) / 16 * 16;
    const bool has_relu = g->size[2] != 0, has_add = g->size[3] != 0;
    fr_instr instr = {.op = FR_OP_BATCH_NORM_FWD,
                      .flags = has_relu ? FR_INSTR_RELU : 0,
                      .batch_norm = {rows, cols, stride},
                      .scalar = 1e-5};
    float *x = wave(1, n), *add = wave(7, n), *dy = wave(4, n), *y = wave(0, n),
          *late = wave(0, n), *dx = wave(0, n), *dadd = wave(0, n);
    float *p = wave(0, 4 * stride), *stats = wave(0, 2 * cols);
    float *dp = calloc((size_t)(4 * stride), sizeof *dp);
    uint8_t *mask = calloc((size_t)n, 1);
    for (int64_t c = 0; c < cols; c++) {
        p[c] = (float)(1 + 0.3 * wave_at(2, c));
        p[stride + c] = (float)(0.3 * wave_at(3, c));
        p[2 * stride + c] = (float)(0.3 * wave_at(5, c));
        p[3 * stride + c] = (float)(1.2 + 0.3 * wave_at(6, c));
    }
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)((double)x[i] + 0.5 * (double)(i % cols));
    const fr_instr back = {.op = FR_OP_BATCH_NORM_BWD,
                           .flags = instr.flags,
                           .batch_norm = instr.batch_norm,
                           .scalar = 1};
    void *scratch = malloc(fr_kernels_cpu_scratch_bytes(&back));
    void *ptr[] = {x,
                   p,
                   late,
                   stats,
                   has_add ? add : NULL,
                   has_add && has_relu ? mask : NULL};
    fr_kernel_call call = norm_call(&instr, 2, ptr, 6, scratch);
    call.is_evaluation = true;
    fr_kernels_cpu[FR_OP_BATCH_NORM_FWD](&call);
    call.is_evaluation = false;
    call.ptr[FR_BATCH_NORM_FWD_Y] = y;
    fr_kernels_cpu[FR_OP_BATCH_NORM_FWD](&call);
    call = norm_call(&back, 2,
                     (void *[]){dy, x, p, stats, dx, dp,
                                has_add && has_relu ? mask : NULL,
                                has_add ? dadd : NULL},
                     8, scratch);
    fr_kernels_cpu[FR_OP_BATCH_NORM_BWD](&call);
    check_told(y, n, &g->result[0]);
    check_told(late, n, &g->result[1]);
    check_told(dx, n, &g->result[2]);
    for (int row = 0; row < 4; row++)
        check_told(row_of(dp, stride, row, cols), cols, &g->result[3 + row]);
    void *rest[] = {x, add, dy, dadd, p, stats, dp, mask, scratch};
    for (size_t i = 0; i < FR_LENGTH(rest); i++)
        free(rest[i]);
}

static void test_golden(void)
{
    static void (*const checks[])(const golden_op *) = {
        [GOLDEN_CONV] = check_golden_conv,
        [GOLDEN_POOL] = check_golden_pool,
        [GOLDEN_NORM] = check_golden_norm};
    for (size_t i = 0; i < FR_LENGTH(golden_ops); i++)
        if (golden_ops[i].kind != GOLDEN_CONV || fr_convs_are_there())
            checks[golden_ops[i].kind](&golden_ops[i]);
}

CHECK_MAIN({"convs", test_convs}, {"batch_norm", test_batch_norm},
           {"pools", test_pools}, {"golden", test_golden})
