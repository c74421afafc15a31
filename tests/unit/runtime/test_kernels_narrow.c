/*
 * test_kernels_narrow.c: an instruction on bfloat16 gives what it gives on the
 * same numbers in float32, rounded once, whatever is cut into windows or tiles;
 * Philox gives its authors' numbers, and a mask drops as often as it should.
 */
#include "kernels/cpu/dropout/dropout.h"
#include "kernels/cpu/narrow/narrow.h"
#include "tests/unit/runtime/kernel_fixture.h"

#include <string.h>

static float widen(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float x;
    memcpy(&x, &wide, sizeof x);
    return x;
}

/* By arithmetic, not by bits: half a unit of the last of 8 bits is added and
 * taken away again. */
static uint16_t narrow(float x)
{
    uint32_t bits;
    float big = x * 65537.0F; /* 2^16 + 1: splits off 8 of 24 bits */
    float high = big - (big - x);
    memcpy(&bits, &high, sizeof bits);
    return (uint16_t)(bits >> 16);
}

enum { MOST = FR_INSTR_REFS };

/* The operands of one instruction, in both widths. */
typedef struct twins {
    fr_instr narrow, wide;
    int64_t n[MOST];
    void *low[MOST];
    float *high[MOST];
} twins;

static void twins_init(twins *t, const fr_instr *instr)
{
    memset(t, 0, sizeof *t);
    t->narrow = t->wide = *instr;
    t->narrow.dtype = FR_DTYPE_BF16;
    for (int i = 0; i < MOST && fr_op_access((fr_op)instr->op, i) != 0; i++) {
        fr_dtype dtype = fr_instr_ref_dtype(&t->narrow, i);
        if (instr->ref[i].space == FR_SPACE_NONE)
            continue;
        t->n[i] = (int64_t)(fr_instr_ref_bytes(&t->narrow, i, 1) /
                            fr_dtype_bytes(dtype));
        t->high[i] = kf_floats(t->n[i], (uint64_t)i + 5, 0.7);
        t->low[i] = calloc((size_t)t->n[i] + 1, sizeof(float));
        for (int64_t j = 0; j < t->n[i]; j++) {
            if (dtype == FR_DTYPE_BF16) {
                ((uint16_t *)t->low[i])[j] = narrow(t->high[i][j]);
                t->high[i][j] = widen(narrow(t->high[i][j]));
            } else {
                ((float *)t->low[i])[j] = t->high[i][j];
            }
        }
    }
}

static void twins_release(twins *t)
{
    for (int i = 0; i < MOST; i++) {
        free(t->low[i]);
        free(t->high[i]);
    }
}

static void twins_run(twins *t, int n_threads)
{
    fr_kernel_call call = kf_call(&t->narrow, n_threads, t->low, MOST);
    fr_kernels_cpu_set_threads(n_threads);
    uint64_t n_bytes = fr_kernels_cpu_scratch_bytes(&t->narrow);
    /* The memory behind the output is not touched. */
    unsigned char *scratch = malloc(n_bytes + 64);
    memset(scratch + n_bytes, 0x5a, 64);
    call.scratch = scratch;
    fr_kernels_cpu_run(&call);
    for (int i = 0; i < 64; i++)
        CHECK(scratch[n_bytes + (uint64_t)i] == 0x5a);
    free(scratch);
    kf_run(&t->wide, n_threads, (void *const *)t->high, MOST);
}

/* A sum that is made in another order may be rounded the other way. */
static void twins_compare(const twins *t)
{
    for (int i = 0; i < MOST; i++) {
        bool is_narrow =
            t->n[i] > 0 && fr_instr_ref_dtype(&t->narrow, i) == FR_DTYPE_BF16;
        double worst = 0, largest = 0;
        for (int64_t j = 0; j < t->n[i]; j++) {
            double high = (double)t->high[i][j];
            double low = (double)(is_narrow ? widen(((uint16_t *)t->low[i])[j])
                                            : ((float *)t->low[i])[j]);
            double unit = is_narrow ? fabs(high) * 0x1p-8 : 0;
            worst = fmax(worst, fabs(low - high) - unit);
            largest = fmax(largest, fabs(high));
        }
        check_that(worst <= 2e-6 * largest, __FILE__, __LINE__,
                   "%s: operand %d differs by %.3g of %.3g",
                   fr_op_name((fr_op)t->narrow.op), i, worst, largest);
    }
}

static void check_twins(fr_instr instr, int n_refs, int n_threads)
{
    twins t;
    for (int i = 0; i < n_refs; i++)
        if (instr.ref[i].space == FR_SPACE_NONE)
            instr.ref[i].space = FR_SPACE_TEMP;
    twins_init(&t, &instr);
    twins_run(&t, n_threads);
    twins_compare(&t);
    twins_release(&t);
}

/* More rows than a window has, and not a multiple of it. */
static void test_rows(void)
{
    const fr_instr norm = {
        .op = FR_OP_NORM_FWD, .matrix = {2385, 331}, .scalar = 1e-5};
    const fr_instr norm_bwd = {.op = FR_OP_NORM_BWD, .matrix = {2385, 331}};
    const fr_instr sum = {.op = FR_OP_RESIDUAL_ADD, .matrix = {1117, 517}};
    const fr_instr gelu = {.op = FR_OP_GELU_BWD,
                           .activation = FR_ACTIVATION_GELU_TANH,
                           .vector = {777777}};
    const fr_instr gate = {.op = FR_OP_SWIGLU_BWD,
                           .activation = FR_ACTIVATION_SILU,
                           .matrix = {771, 333}};
    for (int n_threads = 1; n_threads <= 2; n_threads++) {
        check_twins(norm, 5, n_threads);
        check_twins(norm_bwd, 7, n_threads);
        check_twins(sum, 4, n_threads);
        check_twins(gelu, 3, n_threads);
        check_twins(gate, 3, n_threads);
    }
}

/* Beyond one tile in each dimension, and one or two matrices. */
static void test_products(void)
{
    fr_instr forward = {.op = FR_OP_LINEAR_FWD,
                        .linear = {.m = 1055, .n = 1038, .k = 731}};
    fr_instr dgrad = {.op = FR_OP_LINEAR_DGRAD,
                      .linear = {.m = 63, .n = 1385, .k = 47},
                      .flags = FR_INSTR_ACCUMULATE};
    fr_instr wgrad = {.op = FR_OP_LINEAR_WGRAD,
                      .linear = {.m = 1129, .n = 61, .k = 53}};
    check_twins(forward, 4, 2);
    check_twins(dgrad, 3, 1);
    check_twins(wgrad, 4, 1);
    wgrad.linear.n_first = 19;
    check_twins(wgrad, 4, 2);
}

static void test_attention(void)
{
    fr_instr forward = {.op = FR_OP_ATTN_FWD,
                        .attention = {.batch = 3,
                                      .seq = 83,
                                      .q_heads = 4,
                                      .kv_heads = 2,
                                      .head_dim = 12}};
    check_twins(forward, 3, 1);
    forward.attention.batch = 7;
    forward.attention.seq = 383; /* more than one window */
    check_twins(forward, 3, 2);
}

static void test_philox(void)
{
    /* kat_vectors of Random123. */
    static const struct {
        uint32_t counter[4], key[2], out[4];
    } rows[] = {{{0}, {0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
                {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
                 {0xffffffff, 0xffffffff},
                 {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
                {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                 {0xa4093822, 0x299f31d0},
                 {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint32_t out[4];
        fr_philox(rows[i].counter, rows[i].key, out);
        CHECK(memcmp(out, rows[i].out, sizeof out) == 0);
    }
}

static void test_mask(void)
{
    enum { N = 100000 };
    const fr_dropout_row row = {
        .key = {2385, 17}, .word = {3, 5, 9}, .rate = 0.23};
    float *all = malloc(N * sizeof *all), part[61];
    int64_t n_dropped = 0;
    fr_dropout_factors(&row, 0, N, all);
    for (int64_t i = 0; i < N; i++) {
        n_dropped += all[i] == 0.0F;
        CHECK(all[i] == 0.0F || fabs((double)all[i] - 1 / 0.77) < 1e-6);
    }
    /* Five standard deviations. */
    CHECK(fabs((double)n_dropped - 0.23 * N) < 5 * sqrt(N * 0.23 * 0.77));
    /* The same ones wherever a part begins. */
    for (int64_t first = 0; first < 9; first++) {
        fr_dropout_factors(&row, first, 61, part);
        CHECK(kf_same(part, all + first, 61));
    }
    free(all);
}

/* An operation that is no kernel needs no room, however large its operands
 * are. */
static void test_collectives(void)
{
    const fr_instr sum = {
        .op = FR_OP_ALL_REDUCE,
        .dtype = FR_DTYPE_BF16,
        .comm = {.n = 1 << 20},
        .ref = {{.space = FR_SPACE_TEMP}, {.space = FR_SPACE_TEMP}}};
    CHECK_INT(fr_kernels_cpu_scratch_bytes(&sum), 0);
}

CHECK_MAIN({"collectives", test_collectives}, {"rows", test_rows},
           {"products", test_products}, {"attention", test_attention},
           {"philox", test_philox}, {"mask", test_mask})
