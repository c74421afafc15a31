/*
 * test_kernels_xent.c: cross entropy and its gradient against double loops;
 * the vocabulary cut in three, with padding, against the whole one.
 */
#include "tests/unit/runtime/kernel_fixture.h"

typedef struct xent_ref {
    int64_t rows, vocab;
    double scale;
    double *logits;
    const int32_t *targets;
} xent_ref;

static double xent_loss(const void *context)
{
    const xent_ref *ref = context;
    double loss = 0;
    for (int64_t i = 0; i < ref->rows; i++) {
        const double *x = ref->logits + i * ref->vocab;
        double max = x[0], sum = 0;
        if (ref->targets[i] < 0)
            continue;
        for (int64_t j = 0; j < ref->vocab; j++)
            max = x[j] > max ? x[j] : max;
        for (int64_t j = 0; j < ref->vocab; j++)
            sum += exp(x[j] - max);
        loss += ref->scale * (log(sum) + max - x[ref->targets[i]]);
    }
    return loss;
}

static void fill_targets(int32_t *targets, int64_t rows, int64_t vocab)
{
    for (int64_t i = 0; i < rows; i++)
        targets[i] = (int32_t)((i * 7919 + 5) % vocab);
    targets[rows / 2] = -100; /* ignored */
    targets[rows - 1] = (int32_t)vocab - 1;
}

static void check_whole(int64_t rows, int64_t vocab, int n_threads)
{
    int64_t n = rows * vocab;
    int32_t *tokens = calloc((size_t)(2 * rows), sizeof *tokens);
    fill_targets(tokens + rows, rows, vocab);
    float *logits = kf_floats(n, 1, 9.7);
    fr_step_scalars step = {.loss_sum = 0.731};
    fr_instr instr = {.op = FR_OP_XENT,
                      .axis = FR_AXIS_TP,
                      .dim = {rows, vocab, vocab},
                      .scalar = 0.0173};
    xent_ref ref = {rows, vocab, instr.scalar, kf_doubles(logits, n),
                    tokens + rows};
    float *again = kf_copy(logits, n);
    KF_RUN(&instr, n_threads, logits, tokens, &step);
    CHECK_NEAR(step.loss_sum - 0.731, xent_loss(&ref), 3e-7);
    CHECK_WITHIN(
        kf_gradient_error(xent_loss, &ref, ref.logits, n, logits, NULL, 97), 0,
        1e-6);
    for (int64_t j = 0; j < vocab; j++)
        CHECK(logits[rows / 2 * vocab + j] == 0.0F);
    fr_step_scalars other = {.loss_sum = 0.731};
    KF_RUN(&instr, 3 - n_threads, again, tokens, &other);
    CHECK(kf_same(logits, again, n) && step.loss_sum == other.loss_sum);
    free(tokens);
    free(logits);
    free(again);
    free(ref.logits);
}

static void test_whole(void)
{
    check_whole(11, 23, 1);
    check_whole(37, 1511, 2);
    check_whole(131, 257, 2);
}

enum { ROWS = 61, SHARD = 89, N_TP = 3, VOCAB = 251 };

/* One op on every shard, each with its own output. */
static void run_shards(fr_op op, float *const logits[N_TP], void *const *rest,
                       int n_rest, fr_step_scalars *steps)
{
    for (int tp = 0; tp < N_TP; tp++) {
        fr_instr instr = {.op = (uint8_t)op,
                          .axis = FR_AXIS_TP,
                          .dim = {ROWS, SHARD, VOCAB},
                          .scalar = 0.0091};
        fr_kernel_call call = kf_call(&instr, 2, NULL, 0);
        call.coordinate = tp;
        call.n_group = N_TP;
        call.ptr[0] = logits[tp];
        for (int i = 0; i < n_rest; i++)
            call.ptr[1 + i] = rest[i];
        if (op == FR_OP_XENT_MAX)
            call.ptr[2] = (float *)rest[1] + tp * ROWS;
        if (op == FR_OP_XENT_SUM)
            call.ptr[3] = (float *)rest[2] + tp * 2 * ROWS;
        if (op == FR_OP_XENT_GRAD)
            call.ptr[4] = &steps[tp];
        fr_kernels_cpu[op](&call);
    }
}

/* Three shards of 89 columns over 251 tokens: 16 columns are padding. */
static void test_sharded(void)
{
    int32_t tokens[2 * ROWS] = {0};
    float max[N_TP * ROWS], sums[N_TP * 2 * ROWS];
    float *whole = kf_floats(ROWS * VOCAB, 3, 8.3), *logits[N_TP];
    fr_step_scalars one = {0}, steps[N_TP] = {{0}};
    fill_targets(tokens + ROWS, ROWS, VOCAB);
    for (int tp = 0; tp < N_TP; tp++) {
        logits[tp] = kf_floats(ROWS * SHARD, 4, 1e3);
        for (int i = 0; i < ROWS * SHARD; i++)
            if (tp * SHARD + i % SHARD < VOCAB)
                logits[tp][i] =
                    whole[i / SHARD * VOCAB + tp * SHARD + i % SHARD];
    }
    run_shards(FR_OP_XENT_MAX, logits, (void *[]){tokens, max}, 2, NULL);
    for (int i = 0; i < ROWS; i++)
        for (int tp = 1; tp < N_TP; tp++)
            max[i] = fmaxf(max[i], max[tp * ROWS + i]);
    run_shards(FR_OP_XENT_SUM, logits, (void *[]){tokens, max, sums}, 3, NULL);
    for (int i = 0; i < 2 * ROWS; i++)
        for (int tp = 1; tp < N_TP; tp++)
            sums[i] += sums[tp * 2 * ROWS + i];
    run_shards(FR_OP_XENT_GRAD, logits, (void *[]){tokens, max, sums, NULL}, 4,
               steps);

    fr_instr instr = {
        .op = FR_OP_XENT, .dim = {ROWS, VOCAB, VOCAB}, .scalar = 0.0091};
    KF_RUN(&instr, 1, whole, tokens, &one);
    CHECK_NEAR(steps[0].loss_sum, one.loss_sum, 2e-7);
    CHECK(steps[1].loss_sum == 0 && steps[2].loss_sum == 0);
    for (int tp = 0; tp < N_TP; tp++) {
        for (int i = 0; i < ROWS * SHARD; i++) {
            int column = tp * SHARD + i % SHARD;
            double want =
                column < VOCAB ? (double)whole[i / SHARD * VOCAB + column] : 0;
            CHECK_WITHIN(logits[tp][i], want, 5e-9);
        }
        free(logits[tp]);
    }
    free(whole);
}

CHECK_MAIN({"whole", test_whole}, {"sharded", test_sharded})
