/*
 * test_kernels_attention.c: causal, windowed and bidirectional attention
 * with grouped heads against plain
 * double loops and their finite differences, kept and recomputed probabilities,
 * lengths below, at and beyond the kernels' tiles.
 */
#include "tests/unit/runtime/kernel_fixture.h"

typedef struct attn_ref {
    int64_t batch, seq, n_q, n_kv, head_dim;
    int64_t window; /* 0: all */
    bool is_noncausal;
    double *qkv, *d_o;
} attn_ref;

static bool is_seen(const attn_ref *ref, int64_t t, int64_t s)
{
    return ref->is_noncausal ||
           (s <= t && (ref->window == 0 || t - s < ref->window));
}

static const double *head_at(const attn_ref *ref, int64_t b, int64_t t,
                             int64_t head)
{
    int64_t stride = (ref->n_q + 2 * ref->n_kv) * ref->head_dim;
    return ref->qkv + (b * ref->seq + t) * stride + head * ref->head_dim;
}

/* Output of one query row into o[head_dim]; returns log-sum-exp. */
static double attend(const attn_ref *ref, int64_t b, int64_t h, int64_t t,
                     double *o)
{
    int64_t kv = ref->n_q + h / (ref->n_q / ref->n_kv);
    const double *q = head_at(ref, b, t, h);
    double sum = 0;
    for (int64_t i = 0; i < ref->head_dim; i++)
        o[i] = 0;
    for (int64_t s = 0; s < ref->seq; s++) {
        if (!is_seen(ref, t, s))
            continue;
        const double *k = head_at(ref, b, s, kv);
        const double *v = head_at(ref, b, s, kv + ref->n_kv);
        double score = 0;
        for (int64_t i = 0; i < ref->head_dim; i++)
            score += q[i] * k[i];
        double weight = exp(score / sqrt((double)ref->head_dim));
        sum += weight;
        for (int64_t i = 0; i < ref->head_dim; i++)
            o[i] += weight * v[i];
    }
    for (int64_t i = 0; i < ref->head_dim; i++)
        o[i] /= sum;
    return log(sum);
}

static double attn_loss(const void *context)
{
    const attn_ref *ref = context;
    double o[128], loss = 0;
    for (int64_t i = 0; i < ref->batch * ref->seq * ref->n_q; i++) {
        int64_t h = i % ref->n_q, t = i / ref->n_q % ref->seq;
        attend(ref, i / ref->n_q / ref->seq, h, t, o);
        for (int64_t j = 0; j < ref->head_dim; j++)
            loss += o[j] * ref->d_o[i * ref->head_dim + j];
    }
    return loss;
}

/* Operands of one run. */
typedef struct attn_run {
    float *o, *kept, *dqkv;
    int64_t n_o, n_kept, n_qkv;
} attn_run;

static attn_run run_attention(const attn_ref *ref, float *qkv, float *d_o,
                              bool is_saved, int n_threads)
{
    int64_t rows = ref->batch * ref->seq;
    fr_instr fwd = {
        .op = FR_OP_ATTN_FWD,
        .flags = (uint16_t)((is_saved ? FR_INSTR_SAVE_PROBS : 0) |
                            (ref->is_noncausal ? FR_INSTR_NONCAUSAL : 0)),
        .attention = {ref->batch, ref->seq, ref->n_q, ref->n_kv, ref->head_dim,
                      .window = ref->window}};
    fr_instr bwd = fwd;
    bwd.op = FR_OP_ATTN_BWD;
    attn_run run = {.n_o = rows * ref->n_q * ref->head_dim,
                    .n_kept = rows * ref->n_q * (is_saved ? ref->seq : 1),
                    .n_qkv = rows * (ref->n_q + 2 * ref->n_kv) * ref->head_dim};
    run.o = kf_floats(run.n_o, 3, 9);
    run.kept = kf_floats(run.n_kept, 4, 9);
    run.dqkv = kf_floats(run.n_qkv, 5, 9);
    KF_RUN(&fwd, n_threads, qkv, run.o, run.kept, NULL);
    KF_RUN(&bwd, n_threads, d_o, qkv, run.o, run.kept, run.dqkv, NULL);
    return run;
}

static void release(attn_run *run)
{
    free(run->o);
    free(run->kept);
    free(run->dqkv);
}

static void check_forward(const attn_ref *ref, const attn_run *run,
                          bool is_saved, double tolerance)
{
    double *expected = kf_doubles(NULL, run->n_o);
    for (int64_t i = 0; i < ref->batch * ref->seq * ref->n_q; i++) {
        int64_t h = i % ref->n_q, t = i / ref->n_q % ref->seq;
        int64_t b = i / ref->n_q / ref->seq;
        int64_t at = (b * ref->n_q + h) * ref->seq + t;
        double lse = attend(ref, b, h, t, expected + i * ref->head_dim);
        if (!is_saved) {
            CHECK_WITHIN(run->kept[at], lse, 3e-6 + 2e-7 * fabs(lse));
            continue;
        }
        double sum = 0;
        for (int64_t s = 0; s < ref->seq; s++)
            sum +=
                is_seen(ref, t, s) ? (double)run->kept[at * ref->seq + s] : 0.0;
        CHECK_WITHIN(sum, 1, 2e-6);
    }
    CHECK_WITHIN(kf_error(run->o, expected, run->n_o), 0, tolerance);
    free(expected);
}

static void check_attention(attn_ref ref, int n_samples)
{
    int64_t rows = ref.batch * ref.seq;
    int64_t n_qkv = rows * (ref.n_q + 2 * ref.n_kv) * ref.head_dim;
    int64_t n_o = rows * ref.n_q * ref.head_dim;
    float *qkv = kf_floats(n_qkv, 1, 2.7), *d_o = kf_floats(n_o, 2, 1.3);
    ref.qkv = kf_doubles(qkv, n_qkv);
    ref.d_o = kf_doubles(d_o, n_o);
    for (int i = 0; i < 2; i++) {
        bool is_saved = i == 0;
        attn_run two = run_attention(&ref, qkv, d_o, is_saved, 2);
        attn_run again = run_attention(&ref, qkv, d_o, is_saved, 2);
        attn_run one = run_attention(&ref, qkv, d_o, is_saved, 1);
        check_forward(&ref, &two, is_saved, 3e-6);
        CHECK_WITHIN(kf_gradient_error(attn_loss, &ref, ref.qkv, n_qkv,
                                       two.dqkv, NULL, n_samples),
                     0, 1e-5);
        CHECK(kf_same(two.o, again.o, n_o));
        CHECK(kf_same(two.dqkv, again.dqkv, n_qkv));
        CHECK(kf_same(two.o, one.o, n_o));
        double *expected = kf_doubles(one.dqkv, n_qkv);
        CHECK_WITHIN(kf_error(two.dqkv, expected, n_qkv), 0, 1e-6);
        free(expected);
        release(&two);
        release(&again);
        release(&one);
    }
    free(qkv);
    free(d_o);
    free(ref.qkv);
    free(ref.d_o);
}

static void test_small(void)
{
    check_attention((attn_ref){2, 13, 3, 3, 7, .window = 0}, 97);
}

static void test_grouped(void)
{
    check_attention((attn_ref){2, 67, 6, 2, 11, .window = 0}, 61);
}

static void test_one_kv_head(void)
{
    check_attention((attn_ref){1, 97, 5, 1, 16, .window = 0}, 53);
}

static void test_beyond_a_tile(void)
{
    check_attention((attn_ref){1, 331, 2, 1, 9, .window = 0}, 41);
}

static void test_window(void)
{
    for (int64_t window = 1; window < 400; window = 3 * window + 2)
        check_attention((attn_ref){1, 349, 2, 1, 8, .window = window}, 23);
    check_attention((attn_ref){2, 71, 4, 2, 6, .window = 17}, 47);
}

static void test_noncausal(void)
{
    check_attention((attn_ref){2, 19, 3, 3, 7, .is_noncausal = true}, 83);
    check_attention((attn_ref){1, 301, 2, 1, 8, .is_noncausal = true}, 37);
}

/* Scores far apart: the running maximum must hold. */
static void test_large_scores(void)
{
    enum { T = 300, HD = 4 };
    attn_ref ref = {1, T, 1, 1, HD, .window = 0};
    float *qkv = kf_floats(T * 3 * HD, 7, 14), *d_o = kf_floats(T * HD, 8, 1);
    ref.qkv = kf_doubles(qkv, T * 3 * HD);
    ref.d_o = kf_doubles(d_o, T * HD);
    attn_run tiled = run_attention(&ref, qkv, d_o, false, 1);
    attn_run saved = run_attention(&ref, qkv, d_o, true, 1);
    /* an fp32 score of 200 is known to 1.5e-5, so is its exponential */
    check_forward(&ref, &tiled, false, 3e-5);
    double *expected = kf_doubles(saved.dqkv, T * 3 * HD);
    CHECK_WITHIN(kf_error(tiled.dqkv, expected, T * 3 * HD), 0, 1e-4);
    free(expected);
    release(&tiled);
    release(&saved);
    free(qkv);
    free(d_o);
    free(ref.qkv);
    free(ref.d_o);
}

CHECK_MAIN({"small", test_small}, {"grouped", test_grouped},
           {"one_kv_head", test_one_kv_head},
           {"beyond_a_tile", test_beyond_a_tile}, {"window", test_window},
           {"noncausal", test_noncausal}, {"large_scores", test_large_scores})
