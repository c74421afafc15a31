/*
 * test_compress_wire.c: how compressed gradients travel.  Payloads that can be
 * added are all-reduced, or reduce-scattered to ZeRO's shards, at two bytes an
 * element; only those that cannot be added are gathered.
 */
#include "plan/codec/compressor.h"
#include "tests/contract/sim/sim_fixture.h"

typedef struct wire_case {
    int dp, zero, zero_group, pp;
    bool is_overlap;
} wire_case;

/* Bytes of gradients by operation that stage 0 gives to the axes of data. */
typedef struct traffic {
    uint64_t of[FR_OP_N];
    bool has_16_bits, has_32_bits;
} traffic;

static bool is_gradient(const fr_instr *instr)
{
    fr_op op = (fr_op)instr->op;
    return fr_op_class_of(op) == FR_OP_CLASS_COLLECTIVE &&
           (instr->axis == FR_AXIS_DP || instr->axis == FR_AXIS_SHARD ||
            instr->axis == FR_AXIS_REPLICA);
}

static traffic traffic_of(const fr_program *program)
{
    traffic sum = {0};
    fr_instr_walk at = {.program = program,
                        .rank_program = &program->rank_programs[0]};
    while (fr_instr_walk_next(&at)) {
        if (!is_gradient(at.instr))
            continue;
        uint64_t element = fr_dtype_bytes((fr_dtype)at.instr->dtype);
        sum.of[at.instr->op] += (uint64_t)at.instr->comm.n * element;
        if (at.instr->op == FR_OP_ALL_GATHER && at.instr->dtype != FR_DTYPE_U8)
            sum.of[FR_OP_ALL_GATHER] -=
                (uint64_t)at.instr->comm.n * element; /* parameters */
        sum.has_16_bits |= at.instr->dtype == FR_DTYPE_BF16;
        sum.has_32_bits |=
            at.instr->dtype == FR_DTYPE_F32 && at.instr->op != FR_OP_ALL_GATHER;
    }
    return sum;
}

static bool lower(const wire_case *c, fr_compressor_kind compressor,
                  traffic *out, double *step_s)
{
    sim_fixture f;
    char xml[2048];
    fr_err err;
    fr_prediction p;
    bool is_done = false;
    sim_fixture_init(&f);
    snprintf(xml, sizeof xml, sim_gpu_xml, 8, "25Gb/s", 16,
             "  <fabric kind=\"switch\"/>\n");
    f.plan.dp = c->dp;
    f.plan.pp = c->pp;
    f.plan.zero_stage = c->zero;
    f.plan.zero_group = c->zero_group;
    f.plan.is_overlap = c->is_overlap;
    f.plan.compressor = compressor;
    f.plan.has_error_feedback = true;
    f.plan.compressor_rank = 2;
    f.plan.compressor_density = 0.0131;
    f.job.global_batch = 2 * c->dp;
    if (sim_fixture_cluster(&f, "gpus.xml", xml) && sim_fixture_lower(&f, 1) &&
        CHECK_OK(fr_program_check(f.program, NULL, &err), &err) &&
        CHECK(sim_fixture_predict(&f, FR_REPLAY_AUTO, false, &p))) {
        *out = traffic_of(f.program);
        *step_s = p.step_s;
        is_done = true;
    }
    sim_fixture_release(&f);
    return is_done;
}

static const wire_case cases[] = {
    {.dp = 2, .pp = 1},
    {.dp = 3, .pp = 1, .is_overlap = true},
    {.dp = 8, .pp = 2, .is_overlap = true},
    {.dp = 2, .pp = 1, .zero = 1},
    {.dp = 3, .pp = 1, .zero = 1, .is_overlap = true},
    {.dp = 8, .pp = 1, .zero = 1, .zero_group = 4, .is_overlap = true},
};

static void test_bf16_is_added(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        traffic plain, bf16;
        double plain_s, bf16_s;
        if (!lower(&cases[i], FR_COMPRESSOR_NONE, &plain, &plain_s) ||
            !lower(&cases[i], FR_COMPRESSOR_BF16, &bf16, &bf16_s))
            continue;
        CHECK_INT(bf16.of[FR_OP_ALL_GATHER], 0);
        CHECK(bf16.has_16_bits && !bf16.has_32_bits);
        /* Half of the bytes, but for the padding of odd buckets. */
        CHECK_NEAR((double)bf16.of[FR_OP_ALL_REDUCE],
                   0.5 * (double)plain.of[FR_OP_ALL_REDUCE], 1e-4);
        CHECK_NEAR((double)bf16.of[FR_OP_REDUCE_SCATTER],
                   0.5 * (double)plain.of[FR_OP_REDUCE_SCATTER], 1e-4);
        /* This network is slow enough for that to pay. */
        CHECK(bf16_s < plain_s);
    }
}

static void test_others_are_gathered(void)
{
    static const fr_compressor_kind kinds[] = {
        FR_COMPRESSOR_INT8, FR_COMPRESSOR_TOPK, FR_COMPRESSOR_ONEBIT};
    for (size_t i = 0; i < 3; i++)
        for (size_t k = 0; k < FR_LENGTH(kinds); k++) {
            traffic sum;
            double step_s;
            if (!lower(&cases[i], kinds[k], &sum, &step_s))
                continue;
            CHECK(sum.of[FR_OP_ALL_GATHER] > 0);
            CHECK_INT(sum.of[FR_OP_REDUCE_SCATTER], 0);
        }
}

/* The values of random-k are of the same elements everywhere. */
static void test_randomk_is_added(void)
{
    for (size_t i = 0; i < 3; i++) {
        traffic plain, sum;
        double plain_s, step_s;
        if (!lower(&cases[i], FR_COMPRESSOR_NONE, &plain, &plain_s) ||
            !lower(&cases[i], FR_COMPRESSOR_RANDOMK, &sum, &step_s))
            continue;
        CHECK_INT(sum.of[FR_OP_ALL_GATHER], 0);
        CHECK_NEAR((double)sum.of[FR_OP_ALL_REDUCE],
                   0.0131 * (double)plain.of[FR_OP_ALL_REDUCE], 1e-2);
    }
}

/* ZeRO over the ranks of a node: these add up their gradients as they are, and
 * only what the two nodes exchange of their shards is encoded. */
static void test_shards_are_encoded(void)
{
    static const fr_compressor_kind kinds[] = {
        FR_COMPRESSOR_INT8, FR_COMPRESSOR_TOPK, FR_COMPRESSOR_ONEBIT,
        FR_COMPRESSOR_RANDOMK};
    /* bytes of a payload per byte of gradients */
    static const double share[] = {(1 + 4.0 / 256) / 4, 2 * 0.0131,
                                   (1.0 / 8 + 4.0 / 1024) / 4, 0.0131};
    for (int is_overlap = 0; is_overlap < 2; is_overlap++) {
        const wire_case c = {.dp = 8,
                             .pp = 1,
                             .zero = 1,
                             .zero_group = 4,
                             .is_overlap = is_overlap == 1};
        traffic plain, sum;
        double plain_s, step_s;
        if (!lower(&c, FR_COMPRESSOR_NONE, &plain, &plain_s))
            return;
        const double shards = (double)plain.of[FR_OP_ALL_REDUCE];
        for (size_t k = 0; k < FR_LENGTH(kinds); k++) {
            const bool is_added = kinds[k] == FR_COMPRESSOR_RANDOMK;
            if (!lower(&c, kinds[k], &sum, &step_s))
                continue;
            CHECK_INT(sum.of[FR_OP_REDUCE_SCATTER],
                      plain.of[FR_OP_REDUCE_SCATTER]);
            CHECK_NEAR(
                (double)sum.of[is_added ? FR_OP_ALL_REDUCE : FR_OP_ALL_GATHER],
                share[k] * shards * (is_added ? 1 : 2), 0.02);
            CHECK_INT(sum.of[is_added ? FR_OP_ALL_GATHER : FR_OP_ALL_REDUCE],
                      0);
            CHECK(step_s < plain_s);
        }
    }
}

/* ZeRO 2 and 3 reduce unit by unit: what nobody would compress is refused. */
static void test_zero_2(void)
{
    for (int zero = 2; zero <= 3; zero++)
        for (int kind = FR_COMPRESSOR_NONE + 1; kind < fr_n_compressors;
             kind++) {
            sim_fixture f;
            fr_err err;
            sim_fixture_init(&f);
            f.plan.dp = 4;
            f.plan.zero_stage = zero;
            f.plan.compressor = (fr_compressor_kind)kind;
            f.plan.compressor_rank = 2;
            f.plan.compressor_density = 0.1;
            f.job.global_batch = 8;
            CHECK_FAILS(fr_plan_check(&f.plan, &f.model, &f.job, &err),
                        FR_INPUT, &err);
            CHECK_HAS(err.text, "zero 0");
            sim_fixture_release(&f);
        }
}

CHECK_MAIN({"bf16 is added", test_bf16_is_added},
           {"others are gathered", test_others_are_gathered},
           {"randomk is added", test_randomk_is_added},
           {"shards are encoded", test_shards_are_encoded},
           {"zero 2 and 3", test_zero_2})
