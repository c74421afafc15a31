/*
 * test_kernels_moe.c: the router against double loops and finite differences,
 * rows to the slots of their experts and back, grouped products of runs with
 * empty experts and room behind them.
 */
#include "tests/unit/runtime/kernel_fixture.h"

enum { ROWS = 37, EXPERTS = 6, TOP_K = 3, COLS = 11 };
enum { COPIES = ROWS * TOP_K, SLOTS = 2, SLOT_ROWS = ROWS * TOP_K };

typedef struct choice {
    float weight;
    int32_t expert;
} choice;

typedef struct router_ref {
    double logits[ROWS * EXPERTS], dweights[COPIES];
    choice *chosen; /* experts stay */
    bool is_over_all;
} router_ref;

static double weight_of(const router_ref *r, int i, int k)
{
    const double *x = r->logits + i * EXPERTS;
    double sum = 0;
    for (int j = 0; j < TOP_K && !r->is_over_all; j++)
        sum += exp(x[r->chosen[i * TOP_K + j].expert]);
    for (int e = 0; e < EXPERTS && r->is_over_all; e++)
        sum += exp(x[e]);
    return exp(x[r->chosen[i * TOP_K + k].expert]) / sum;
}

static double router_loss(const void *context)
{
    const router_ref *r = context;
    double loss = 0;
    for (int i = 0; i < COPIES; i++)
        loss += weight_of(r, i / TOP_K, i % TOP_K) * r->dweights[i];
    return loss;
}

/* The place of copy i, counted anew, copy by copy. */
static int64_t place_of(const choice *chosen, int64_t i, int64_t n_slots)
{
    int64_t per_slot = EXPERTS / n_slots, slot = chosen[i].expert / per_slot;
    int64_t at = n_slots > 1 ? slot * SLOT_ROWS : 0;
    for (int64_t j = 0; j < COPIES; j++)
        at += chosen[j].expert / per_slot == slot &&
              (chosen[j].expert < chosen[i].expert ||
               (chosen[j].expert == chosen[i].expert && j < i));
    return at;
}

static void check_router(bool is_over_all)
{
    fr_instr fwd = {.op = FR_OP_ROUTER_FWD,
                    .flags = is_over_all ? FR_INSTR_APART : 0,
                    .router = {.rows = ROWS,
                               .n_experts = EXPERTS,
                               .top_k = TOP_K,
                               .n_slots = SLOTS,
                               .slot_rows = SLOT_ROWS}};
    fr_instr bwd = fwd;
    float *logits = kf_floats(ROWS * EXPERTS, 11, 2.3);
    float *out = kf_floats(ROWS * EXPERTS, 12, 1);
    float placed[SLOTS * SLOT_ROWS];
    choice chosen[COPIES];
    int32_t counts[EXPERTS], seen[EXPERTS] = {0};
    router_ref r = {.chosen = chosen, .is_over_all = is_over_all};
    bwd.op = FR_OP_ROUTER_BWD;
    logits[5 * EXPERTS + 1] = logits[5 * EXPERTS + 4]; /* a tie */
    KF_RUN(&fwd, 2, logits, chosen, counts);
    for (int i = 0; i < ROWS * EXPERTS; i++)
        r.logits[i] = (double)logits[i];
    for (int i = 0; i < COPIES; i++) {
        const float *row = logits + i / TOP_K * EXPERTS;
        int better = 0;
        for (int e = 0; e < EXPERTS; e++)
            better += row[e] > row[chosen[i].expert] ||
                      (row[e] == row[chosen[i].expert] && e < chosen[i].expert);
        CHECK_INT(better, i % TOP_K);
        CHECK_WITHIN(chosen[i].weight, weight_of(&r, i / TOP_K, i % TOP_K),
                     1e-6);
        seen[chosen[i].expert]++;
        r.dweights[i] = kf_noise(13, (uint64_t)i);
        placed[place_of(chosen, i, SLOTS)] = (float)r.dweights[i];
        r.dweights[i] = (double)(float)r.dweights[i];
    }
    CHECK(memcmp(counts, seen, sizeof seen) == 0);
    KF_RUN(&bwd, 2, chosen, out, logits, placed);
    CHECK_WITHIN(kf_gradient_error(router_loss, &r, r.logits, ROWS * EXPERTS,
                                   out, NULL, ROWS * EXPERTS),
                 0, 1e-5);
    free(logits);
    free(out);
}

static void test_router(void)
{
    check_router(false);
    check_router(true);
}

static void check_permute(int64_t n_slots)
{
    const int64_t room = n_slots > 1 ? n_slots * SLOT_ROWS : COPIES;
    fr_instr there = {.op = FR_OP_PERMUTE,
                      .permute = {ROWS, room, COLS, EXPERTS, TOP_K, n_slots}};
    fr_instr back = {.op = FR_OP_UNPERMUTE,
                     .permute = {room, ROWS, COLS, EXPERTS, TOP_K, n_slots}};
    float *x = kf_floats(ROWS * COLS, 21, 1), *y = kf_floats(ROWS * COLS, 2, 1);
    float *rows = kf_floats(room * COLS, 22, 1), *w = kf_floats(room, 23, 1);
    choice chosen[COPIES];
    for (int i = 0; i < COPIES; i++)
        chosen[i] = (choice){(float)kf_noise(24, (uint64_t)i),
                             (i / TOP_K * 5 + i % TOP_K * 2) % EXPERTS};
    KF_RUN(&there, 2, x, rows, chosen, w);
    for (int i = 0; i < COPIES; i++) {
        int64_t at = place_of(chosen, i, n_slots);
        CHECK(w[at] == chosen[i].weight);
        CHECK(kf_same(rows + at * COLS, x + i / TOP_K * COLS, COLS));
    }
    KF_RUN(&back, 2, rows, y, chosen);
    for (int i = 0; i < ROWS * COLS; i++)
        CHECK_NEAR(y[i], TOP_K * (double)x[i], 1e-6);
    free(x);
    free(y);
    free(rows);
    free(w);
}

static void test_permute(void)
{
    check_permute(1);
    check_permute(SLOTS);
}

static void test_grouped(void)
{
    enum { N = 7, K = 5, GROUPS = 3, RUNS = 2, RUN_ROWS = 19 };
    enum { ALL = RUNS * RUN_ROWS };
    int32_t counts[RUNS * GROUPS] = {4, 0, 11, 0, 19, 0};
    const fr_grouped_dims dims = {20, N, K, GROUPS, 0, RUNS, RUN_ROWS};
    fr_instr instr = {.op = FR_OP_GROUPED_FWD, .grouped = dims};
    float *x = kf_floats(ALL * K, 31, 1), *w = kf_floats(GROUPS * N * K, 32, 1);
    float *y = kf_floats(ALL * N, 33, 1), *dx = kf_floats(ALL * K, 34, 1);
    float *dw = kf_floats(GROUPS * N * K, 35, 1), *old = kf_copy(y, ALL * N);
    double *want = kf_doubles(dw, GROUPS * N * K);
    KF_RUN(&instr, 2, x, w, NULL, y, counts);
    instr.op = FR_OP_GROUPED_DGRAD;
    KF_RUN(&instr, 2, y, w, dx, counts);
    instr.op = FR_OP_GROUPED_WGRAD;
    KF_RUN(&instr, 2, y, x, dw, NULL, counts);
    for (int run = 0; run < RUNS; run++) {
        int row = run * RUN_ROWS, end = row + RUN_ROWS;
        for (int g = 0; g < GROUPS; g++)
            for (int i = 0; i < counts[run * GROUPS + g]; i++, row++)
                for (int n = 0; n < N; n++) {
                    double sum = 0;
                    for (int k = 0; k < K; k++) {
                        double one = (double)w[(g * N + n) * K + k];
                        sum += (double)x[row * K + k] * one;
                        want[(g * N + n) * K + k] +=
                            (double)y[row * N + n] * (double)x[row * K + k];
                    }
                    CHECK_WITHIN(y[row * N + n], sum, 1e-6);
                }
        for (; row < end; row++)
            CHECK(kf_same(y + row * N, old + row * N, N));
    }
    CHECK_WITHIN(kf_error(dw, want, GROUPS * N * K), 0, 1e-6);
    double sum = 0;
    for (int n = 0; n < N; n++)
        sum += (double)y[n] * (double)w[n * K];
    CHECK_WITHIN(dx[0], sum, 1e-6);
    free(x);
    free(w);
    free(y);
    free(dx);
    free(dw);
    free(old);
    free(want);
}

CHECK_MAIN({"router", test_router}, {"permute", test_permute},
           {"grouped", test_grouped})
