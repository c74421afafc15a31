/*
 * test_kernels_compress.c: the compressors: what was sent plus what is kept
 * is the gradient; rounding, selection and projection against references;
 * error feedback really off when it is off.
 */
#include "plan/codec/compressor.h"
#include "tests/unit/runtime/kernel_fixture.h"

enum { N = 20007, N_RANKS = 3 };

/* Two matrices, a vector between them, a gap, and padding at the end. */
static const fr_tensor tensors[] = {
    {.first = 100, .n = 9963, .rows = 123, .cols = 81, .id = 5},
    {.first = 10063, .n = 131, .rows = 1, .cols = 131, .id = 6},
    {.first = 10200, .n = 9847, .rows = 43, .cols = 229, .id = 7},
};
enum { N_TENSORS = 3, FIRST = 110 };

static const fr_bucket bucket = {FIRST, N, tensors, N_TENSORS};

static fr_plan plan_of(fr_compressor_kind kind, bool has_error)
{
    return (fr_plan){.tp = 1,
                     .dp = N_RANKS,
                     .compressor = kind,
                     .compressor_density = 0.0131,
                     .compressor_rank = 3,
                     .has_error_feedback = has_error};
}

/* Every rank's gradient, state and wire area. */
typedef struct ranks {
    fr_plan plan;
    fr_job job;
    float *g[N_RANKS], *state[N_RANKS], *wire[N_RANKS], *out[N_RANKS];
    char *gathered;
    uint64_t payload_bytes, state_bytes;
} ranks;

static ranks ranks_create(fr_compressor_kind kind, bool has_error)
{
    ranks at = {.plan = plan_of(kind, has_error), .job = {.seed = 991}};
    const fr_compressor *compressor = fr_compressor_of(&at.plan);
    at.payload_bytes = fr_compressor_payload_bytes(&at.plan, &bucket);
    at.state_bytes = compressor->state_bytes(&at.plan, &bucket);
    for (int i = 0; i < N_RANKS; i++) {
        at.g[i] = kf_floats(N, 40 + (uint64_t)i, 1.7);
        for (int j = 0; j < N; j++) /* a tail that is worth cutting */
            at.g[i][j] *= at.g[i][j] * at.g[i][j];
        at.out[i] = kf_floats(N, 9, 99);
        at.state[i] = calloc(1, at.state_bytes + 4);
        at.wire[i] = calloc(1, at.payload_bytes + 4);
        at.wire[i][at.payload_bytes / 4] = 777.25F; /* guards */
        at.state[i][at.state_bytes / 4] = 777.5F;
    }
    at.gathered = malloc(N_RANKS * at.payload_bytes);
    return at;
}

static void ranks_destroy(ranks *at)
{
    for (int i = 0; i < N_RANKS; i++) {
        CHECK(at->wire[i][at->payload_bytes / 4] == 777.25F);
        CHECK(at->state[i][at->state_bytes / 4] == 777.5F);
        free(at->g[i]);
        free(at->out[i]);
        free(at->state[i]);
        free(at->wire[i]);
    }
    free(at->gathered);
}

static void run_op(ranks *at, fr_op op, int rank, int stage, int64_t i_step,
                   int n_threads)
{
    bool is_gather = fr_compressor_of(&at->plan)->wire == FR_WIRE_GATHER;
    fr_instr instr = {.op = (uint8_t)op,
                      .axis = FR_AXIS_DP,
                      .dim = {N, (int64_t)at->payload_bytes, stage, FIRST,
                              (int64_t)at->state_bytes,
                              is_gather ? N_RANKS : 1}};
    fr_kernel_call call = kf_call(&instr, n_threads, NULL, 0);
    call.plan = &at->plan;
    call.job = &at->job;
    call.coordinate = rank;
    call.n_group = N_RANKS;
    call.i_step = i_step;
    call.tensors = tensors;
    call.n_tensors = N_TENSORS;
    void *wire = at->wire[rank];
    call.ptr[1] = at->state_bytes ? at->state[rank] : NULL;
    if (op == FR_OP_COMPRESS) {
        call.ptr[0] = at->g[rank];
        call.ptr[2] = wire;
    } else {
        call.ptr[0] = is_gather ? at->gathered : wire;
        call.ptr[2] = at->out[rank];
    }
    fr_kernels_cpu[op](&call);
}

/* The all-reduce of payloads of bf16: summed in fp32, rounded once. */
static void reduce_bf16(ranks *at)
{
    for (uint64_t i = 0; i < at->payload_bytes / 2; i++) {
        float sum = 0;
        for (int rank = 0; rank < N_RANKS; rank++) {
            uint32_t bits = (uint32_t)((uint16_t *)at->wire[rank])[i] << 16;
            float x;
            memcpy(&x, &bits, sizeof x);
            sum += x;
        }
        uint32_t bits;
        memcpy(&bits, &sum, sizeof bits);
        bits = (bits + 0x7fffU + (bits >> 16 & 1U)) >> 16;
        for (int rank = 0; rank < N_RANKS; rank++)
            ((uint16_t *)at->wire[rank])[i] = (uint16_t)bits;
    }
}

/* The all-reduce of one stage's payload. */
static void reduce(ranks *at, int stage)
{
    if (fr_compressor_of(&at->plan)->wire_dtype == FR_DTYPE_BF16) {
        reduce_bf16(at);
        return;
    }
    const fr_compressor *compressor = fr_compressor_of(&at->plan);
    uint64_t first = 0;
    for (int i = 0; i < stage; i++)
        first += compressor->stage_bytes(&at->plan, &bucket, i) / 4;
    uint64_t n = compressor->stage_bytes(&at->plan, &bucket, stage) / 4;
    for (uint64_t i = first; i < first + n; i++) {
        float sum = 0;
        for (int rank = 0; rank < N_RANKS; rank++)
            sum += at->wire[rank][i];
        for (int rank = 0; rank < N_RANKS; rank++)
            at->wire[rank][i] = sum;
    }
}

static void exchange(ranks *at, int64_t i_step, int n_threads)
{
    const fr_compressor *compressor = fr_compressor_of(&at->plan);
    for (int stage = 0; stage < compressor->n_stages; stage++) {
        for (int i = 0; i < N_RANKS; i++)
            run_op(at, FR_OP_COMPRESS, i, stage, i_step, n_threads);
        if (compressor->wire == FR_WIRE_REDUCE)
            reduce(at, stage);
    }
    for (int i = 0; i < N_RANKS; i++)
        memcpy(at->gathered + (uint64_t)i * at->payload_bytes, at->wire[i],
               at->payload_bytes);
    for (int i = 0; i < N_RANKS; i++)
        run_op(at, FR_OP_DECOMPRESS, i, 0, i_step, n_threads);
    for (int i = 1; i < N_RANKS; i++)
        CHECK(kf_same(at->out[0], at->out[i], N));
}

static double norm_of(const double *x, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += x[i] * x[i];
    return sqrt(sum);
}

/* Over several steps: all that was decoded + the errors left == all that
 * came in, element by element. */
static void check_conservation(fr_compressor_kind kind, double tolerance)
{
    ranks at = ranks_create(kind, true);
    double *in = kf_doubles(NULL, N), *out = kf_doubles(NULL, N);
    for (int i_step = 0; i_step < 4; i_step++) {
        exchange(&at, i_step, i_step % 2 + 1);
        for (int i = 0; i < N; i++) {
            out[i] += (double)at.out[0][i];
            for (int rank = 0; rank < N_RANKS; rank++)
                in[i] += (double)at.g[rank][i];
        }
    }
    for (int i = 0; i < N; i++) {
        for (int rank = 0; rank < N_RANKS; rank++)
            out[i] += (double)at.state[rank][i];
        CHECK_WITHIN(out[i], in[i], tolerance);
    }
    free(in);
    free(out);
    ranks_destroy(&at);
}

static void test_conservation(void)
{
    check_conservation(FR_COMPRESSOR_INT8, 1e-5);
    check_conservation(FR_COMPRESSOR_TOPK, 1e-5);
    check_conservation(FR_COMPRESSOR_POWERSGD, 1e-4);
    check_conservation(FR_COMPRESSOR_ONEBIT, 2e-5);
    check_conservation(FR_COMPRESSOR_RANDOMK, 1e-5);
}

/* One exchange loses less than it was given: |M - decoded| < |M|. */
static void test_contraction(void)
{
    static const fr_compressor_kind kinds[] = {
        FR_COMPRESSOR_BF16,     FR_COMPRESSOR_INT8,   FR_COMPRESSOR_TOPK,
        FR_COMPRESSOR_POWERSGD, FR_COMPRESSOR_ONEBIT, FR_COMPRESSOR_RANDOMK};
    static const double most[] = {0.004, 0.012, 0.96, 0.97, 0.93, 0.999};
    double *sum = kf_doubles(NULL, N), *lost = kf_doubles(NULL, N);
    for (size_t k = 0; k < FR_LENGTH(kinds); k++) {
        for (int has_error = 0; has_error < 2; has_error++) {
            ranks at = ranks_create(kinds[k], has_error);
            exchange(&at, 0, 2);
            for (int i = 0; i < N; i++) {
                sum[i] = 0;
                for (int rank = 0; rank < N_RANKS; rank++)
                    sum[i] += (double)at.g[rank][i];
                lost[i] = sum[i] - (double)at.out[0][i];
            }
            double left = norm_of(lost, N) / norm_of(sum, N);
            CHECK(left > 0 && left < most[k]);
            ranks_destroy(&at);
        }
    }
    free(sum);
    free(lost);
}

/* Without error feedback no step depends on the one before (but for the warm
 * start of PowerSGD, which is no feedback), and there is no error memory. */
static void test_feedback_off(void)
{
    static const fr_compressor_kind kinds[] = {
        FR_COMPRESSOR_BF16, FR_COMPRESSOR_TOPK, FR_COMPRESSOR_ONEBIT};
    for (size_t k = 0; k < FR_LENGTH(kinds); k++) {
        ranks at = ranks_create(kinds[k], false);
        CHECK_INT(at.state_bytes, 0);
        exchange(&at, 0, 1);
        float *first = kf_copy(at.out[0], N);
        exchange(&at, 1, 1);
        CHECK(kf_same(first, at.out[0], N));
        free(first);
        ranks_destroy(&at);
        at = ranks_create(kinds[k], true);
        exchange(&at, 0, 1);
        first = kf_copy(at.out[0], N);
        exchange(&at, 1, 1);
        bool is_bf16 = kinds[k] == FR_COMPRESSOR_BF16;
        CHECK(kf_same(first, at.out[0], N) == is_bf16);
        free(first);
        ranks_destroy(&at);
    }
    fr_plan on = plan_of(FR_COMPRESSOR_POWERSGD, true), off = on;
    off.has_error_feedback = false;
    const fr_compressor *powersgd = fr_compressors[FR_COMPRESSOR_POWERSGD];
    CHECK_INT(powersgd->state_bytes(&on, &bucket),
              powersgd->state_bytes(&off, &bucket) + 4 * N);
}

/* ---- each by itself ----------------------------------------------------- */

static void test_bf16_rounding(void)
{
    static const float cases[][2] = {
        {1.0F, 1.0F},
        {0x1.01p0F, 0x1p0F},          /* tie, to even (down) */
        {0x1.03p0F, 0x1.04p0F},       /* tie, to even (up) */
        {0x1.010002p0F, 0x1.02p0F},   /* just above a tie */
        {-0x1.02fffep0F, -0x1.02p0F}, /* just below one */
        {0x1.fffffep127F, INFINITY},
        {-0.0F, -0.0F},
        {0x1p-140F, 0x0p0F}, /* below half the smallest of 2^-133 */
        {0x1.8p-133F, 0x1p-132F},
    };
    fr_plan plan = plan_of(FR_COMPRESSOR_BF16, false);
    fr_job job = {.seed = 1};
    for (int is_big = 0; is_big < 2; is_big++) {
        enum { BIG = 9001 };
        float g[BIG], out[BIG];
        uint32_t wire[BIG / 2 + 1];
        int n = is_big ? BIG : 9;
        for (int i = 0; i < n; i++)
            g[i] = cases[i % 9][0];
        fr_instr instr = {.op = FR_OP_COMPRESS,
                          .dim = {n, (n + 1) / 2 * 4, 0, 0, 0, 1}};
        fr_kernel_call call = kf_call(&instr, 2, NULL, 0);
        call.plan = &plan;
        call.job = &job;
        call.ptr[0] = g;
        call.ptr[2] = wire;
        fr_kernels_cpu[FR_OP_COMPRESS](&call);
        call.ptr[0] = wire;
        call.ptr[2] = out;
        fr_kernels_cpu[FR_OP_DECOMPRESS](&call);
        for (int i = 0; i < n; i++)
            CHECK(out[i] == cases[i % 9][1] &&
                  signbit(out[i]) == signbit(cases[i % 9][1]));
        g[4] = NAN;
        call.ptr[0] = g;
        call.ptr[2] = wire;
        fr_kernels_cpu[FR_OP_COMPRESS](&call);
        call.ptr[0] = wire;
        call.ptr[2] = out;
        fr_kernels_cpu[FR_OP_DECOMPRESS](&call);
        CHECK(isnan(out[4]));
    }
}

static int by_magnitude(const void *a, const void *b)
{
    double x = fabs((double)*(const float *)a);
    double y = fabs((double)*(const float *)b);
    return (x < y) - (x > y);
}

static void test_topk_exact(void)
{
    ranks at = ranks_create(FR_COMPRESSOR_TOPK, true);
    uint64_t k = fr_topk_kept(at.plan.compressor_density, N);
    CHECK_INT(k, 262); /* round(0.0131 * 20007) */
    /* many ties at the threshold: the lowest indices win */
    for (int i = 0; i < N; i++)
        at.g[0][i] = i % 50 == 7 ? (i % 100 == 7 ? -2.5F : 2.5F) : 0.001F;
    at.g[0][20000] = 3.75F;
    float *sorted = kf_copy(at.g[0], N);
    qsort(sorted, N, sizeof *sorted, by_magnitude);
    for (int n_threads = 1; n_threads <= 3; n_threads++) {
        memset(at.state[0], 0, N * sizeof(float));
        run_op(&at, FR_OP_COMPRESS, 0, 0, 0, n_threads);
        const uint32_t *indices = (const uint32_t *)(const void *)at.wire[0];
        const float *values = at.wire[0] + k;
        for (uint64_t i = 0; i < k; i++) {
            CHECK_INT(indices[i], i + 1 < k ? i * 50 + 7 : 20000);
            CHECK(values[i] == at.g[0][indices[i]]);
        }
    }
    /* no ties: exactly the k largest */
    for (int rank = 1; rank < N_RANKS; rank++) {
        memcpy(sorted, at.g[rank], N * sizeof *sorted);
        qsort(sorted, N, sizeof *sorted, by_magnitude);
        run_op(&at, FR_OP_COMPRESS, rank, 0, 0, 2);
        const float *values = at.wire[rank] + k;
        for (uint64_t i = 0; i < k; i++)
            CHECK(fabsf(values[i]) >= fabsf(sorted[k - 1]));
        double sent = 0, want = 0;
        for (uint64_t i = 0; i < k; i++) {
            sent += fabs((double)values[i]);
            want += fabs((double)sorted[i]);
        }
        CHECK_NEAR(sent, want, 1e-12);
    }
    free(sorted);
    ranks_destroy(&at);
}

/* Signs, and the mean magnitude of each block, by the definition. */
static void test_onebit(void)
{
    ranks at = ranks_create(FR_COMPRESSOR_ONEBIT, true);
    CHECK_INT(at.payload_bytes, 20 * 4 + 626 * 4); /* 20007 elements */
    const float *g = at.g[1];
    for (int n_threads = 1; n_threads <= 3; n_threads++) {
        memset(at.state[1], 0, N * sizeof(float));
        run_op(&at, FR_OP_COMPRESS, 1, 0, 0, n_threads);
        const uint32_t *words = (const uint32_t *)(const void *)at.wire[1] + 20;
        for (int block = 0; block < 20; block++) {
            int first = block * 1024;
            int last = first + 1024 < N ? first + 1024 : N;
            double mean = 0;
            for (int i = first; i < last; i++)
                mean += fabs((double)g[i]) / (last - first);
            CHECK_NEAR(at.wire[1][block], mean, 1e-5);
            for (int i = first; i < last; i++) {
                bool is_negative = words[i / 32] >> i % 32 & 1;
                CHECK_INT(is_negative, g[i] < 0);
                CHECK_WITHIN(at.state[1][i],
                             (double)g[i] - (is_negative ? -mean : mean), 1e-4);
            }
        }
        CHECK_INT(words[625] >> 7, 0); /* behind the last element */
    }
    /* A value that is not finite is not hidden. */
    at.g[1][2048] = INFINITY;
    memset(at.state[1], 0, N * sizeof(float));
    exchange(&at, 0, 2);
    CHECK(isnan(at.out[0][2048]) && isfinite(at.out[0][2047]));
    ranks_destroy(&at);
}

/* One of each run of neighbours, the same on all ranks, another next time. */
static void test_randomk(void)
{
    ranks at = ranks_create(FR_COMPRESSOR_RANDOMK, false);
    const int k = 262; /* round(0.0131 * 20007) */
    int first_chosen[262], n_same = 0;
    CHECK_INT(at.payload_bytes, 4 * k);
    for (int i_step = 0; i_step < 2; i_step++) {
        int n_chosen = 0;
        exchange(&at, i_step, i_step + 1);
        for (int i = 0; i < N; i++) {
            if (at.out[0][i] == 0.0F)
                continue;
            double sum = 0;
            for (int rank = 0; rank < N_RANKS; rank++)
                sum += (double)at.g[rank][i];
            CHECK_WITHIN(at.out[0][i], sum, 1e-5);
            CHECK(n_chosen < k && i >= (int)((int64_t)n_chosen * N / k) &&
                  i < (int)((int64_t)(n_chosen + 1) * N / k));
            if (i_step == 0)
                first_chosen[n_chosen] = i;
            else
                n_same += first_chosen[n_chosen] == i;
            n_chosen++;
        }
        CHECK_INT(n_chosen, k);
    }
    CHECK(n_same < 20); /* runs have 76 elements */
    ranks_destroy(&at);
    for (uint64_t i = 0; i < 5; i++) /* all of them */
        CHECK_INT(fr_randomk_index(77, 5, 5, i), i);
}

/* Nearest: within half a step; at random: within one, and right on average. */
static void test_int8(void)
{
    ranks at = ranks_create(FR_COMPRESSOR_INT8, true);
    exchange(&at, 0, 2);
    for (int block = 0; block * FR_INT8_BLOCK < N; block++) {
        int first = block * FR_INT8_BLOCK;
        int last = first + FR_INT8_BLOCK < N ? first + FR_INT8_BLOCK : N;
        double max = 0;
        for (int i = first; i < last; i++)
            max = fmax(max, fabs((double)at.g[0][i]));
        CHECK_NEAR(at.wire[0][block], max / 127, 1e-6);
        for (int i = first; i < last; i++)
            CHECK(fabs((double)at.state[0][i]) <= max / 127 * 0.50001);
    }
    ranks_destroy(&at);
    at = ranks_create(FR_COMPRESSOR_INT8, false);
    CHECK_INT(at.state_bytes, 0);
    double *mean = kf_doubles(NULL, N);
    enum { N_DRAWS = 400 };
    for (int i_step = 0; i_step < N_DRAWS; i_step++) {
        exchange(&at, i_step, 2);
        for (int i = 0; i < N; i++)
            mean[i] += (double)at.out[0][i] / N_DRAWS;
    }
    double worst = 0, step = 4.913 / 127; /* 1.7^3: the largest gradient */
    for (int i = 0; i < N; i++) {
        double sum = 0;
        for (int rank = 0; rank < N_RANKS; rank++)
            sum += (double)at.g[rank][i];
        CHECK_WITHIN(at.out[0][i], sum, N_RANKS * step * 1.001);
        worst = fmax(worst, fabs(mean[i] - sum));
    }
    /* deviation of one draw <= step/2; six of the mean's over 3 ranks */
    CHECK(worst < 6 * sqrt(N_RANKS) * step / 2 / sqrt(N_DRAWS));
    free(mean);
    ranks_destroy(&at);
}

/* A block with a NaN or an infinity is not hidden. */
static void test_int8_not_finite(void)
{
    ranks at = ranks_create(FR_COMPRESSOR_INT8, false);
    at.g[1][300] = INFINITY;
    exchange(&at, 0, 1);
    CHECK(isnan(at.out[0][300]) && isfinite(at.out[0][0]));
    for (int i = 0; i < N; i++)
        at.g[1][i] = 0.0F;
    exchange(&at, 1, 1);
    CHECK(isfinite(at.out[0][300]));
    ranks_destroy(&at);
}

/* A bucket whose matrices have rank <= r comes back as it was. */
static void test_powersgd_low_rank(void)
{
    ranks at = ranks_create(FR_COMPRESSOR_POWERSGD, true);
    double *sum = kf_doubles(NULL, N);
    for (int rank = 0; rank < N_RANKS; rank++) {
        for (int i = 0; i < N; i++) {
            for (int j = 0; j < N_TENSORS; j += 2) {
                int at_tensor = i + FIRST - (int)tensors[j].first;
                if (at_tensor < 0 || at_tensor >= (int)tensors[j].n)
                    continue;
                int row = at_tensor / (int)tensors[j].cols;
                int col = at_tensor % (int)tensors[j].cols;
                /* rank 2, the same factors of rows on all ranks */
                at.g[rank][i] =
                    (float)(kf_noise(1, (uint64_t)row) *
                                kf_noise(2 + (uint64_t)rank, (uint64_t)col) +
                            kf_noise(8, (uint64_t)row) *
                                kf_noise(9, (uint64_t)col));
            }
            sum[i] += (double)at.g[rank][i];
        }
    }
    exchange(&at, 0, 2);
    CHECK_WITHIN(kf_error(at.out[0], sum, N), 0, 1e-5);
    /* a gradient of zeros, then one that is not: columns come back */
    for (int rank = 0; rank < N_RANKS; rank++)
        memset(at.g[rank], 0, N * sizeof(float));
    exchange(&at, 1, 2);
    for (int rank = 0; rank < N_RANKS; rank++) {
        memset(at.state[rank], 0, N * sizeof(float));
        for (int i = 0; i < N; i++)
            at.g[rank][i] = (float)sum[i];
    }
    exchange(&at, 2, 2);
    for (int i = 0; i < N; i++)
        sum[i] *= N_RANKS;
    CHECK_WITHIN(kf_error(at.out[0], sum, N), 0, 1e-5);
    free(sum);
    ranks_destroy(&at);
}

/* The warm start finds the best subspace: the loss of a constant gradient
 * without feedback falls from step to step towards the optimum. */
static void test_powersgd_warm_start(void)
{
    ranks at = ranks_create(FR_COMPRESSOR_POWERSGD, false);
    double *lost = kf_doubles(NULL, N), before = 1e30;
    for (int i_step = 0; i_step < 8; i_step++) {
        exchange(&at, i_step, 1 + i_step % 2);
        for (int i = 0; i < N; i++) {
            lost[i] = -(double)at.out[0][i];
            for (int rank = 0; rank < N_RANKS; rank++)
                lost[i] += (double)at.g[rank][i];
        }
        double now = norm_of(lost, N);
        CHECK(now < before);
        before = now;
    }
    free(lost);
    ranks_destroy(&at);
}

static void test_pieces(void)
{
    fr_powersgd_piece piece = {0};
    /* FIRST cuts 10 elements off the first matrix: its first row is raw, the
     * gap is raw, the bucket's end cuts the last matrix. */
    static const struct {
        uint64_t first, n;
        int64_t rows, cols, rank;
    } want[] = {
        {0, 71, 0, 0, 0},    {71, 9882, 122, 81, 3},    {9953, 131, 0, 0, 0},
        {10084, 6, 0, 0, 0}, {10090, 9847, 43, 229, 3}, {19937, 70, 0, 0, 0},
    };
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        CHECK(fr_powersgd_next(&bucket, 3, &piece));
        CHECK_INT(piece.first, want[i].first);
        CHECK_INT(piece.n, want[i].n);
        CHECK_INT(piece.rows, want[i].rows);
        CHECK_INT(piece.cols, want[i].cols);
        CHECK_INT(piece.rank, want[i].rank);
        CHECK_INT(piece.is_matrix, want[i].rank > 0);
    }
    CHECK(!fr_powersgd_next(&bucket, 3, &piece));
    CHECK_INT(piece.raw, 71 + 131 + 6 + 70);
    CHECK_INT(piece.p, 3 * (122 + 43));
    CHECK_INT(piece.q, 3 * (81 + 229));
}

CHECK_MAIN(
    {"conservation", test_conservation}, {"contraction", test_contraction},
    {"feedback_off", test_feedback_off}, {"bf16_rounding", test_bf16_rounding},
    {"topk_exact", test_topk_exact}, {"int8", test_int8},
    {"int8_not_finite", test_int8_not_finite}, {"onebit", test_onebit},
    {"randomk", test_randomk}, {"powersgd_low_rank", test_powersgd_low_rank},
    {"powersgd_warm_start", test_powersgd_warm_start}, {"pieces", test_pieces})
