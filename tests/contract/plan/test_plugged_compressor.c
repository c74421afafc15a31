/*
 * test_plugged_compressor.c: a gradient compressor is one struct, two kernels
 * and one row of each table.  The tables that are linked here have one that
 * keeps the upper byte of each value, as one row more, and nothing else knows
 * of it.
 */
#include "kernels/kernels_list.h"
#include "plan/codec/compressor.h"
#include "tests/contract/plan/plugged_fixture.h"
#include "tests/unit/runtime/kernel_fixture.h"

static uint64_t stage_bytes(const fr_plan *plan, const fr_bucket *bucket,
                            int stage)
{
    (void)plan;
    return stage == 0 ? fr_compressor_round_up(bucket->n) : 0;
}

static const fr_compressor upper_byte = {
    .name = "upper-byte",
    .summary = "sign and exponent alone",
    .is_lossy = true,
    .is_elementwise = true,
    .wire = FR_WIRE_GATHER,
    .n_stages = 1,
    .stage_bytes = stage_bytes,
    .state_bytes = fr_compressor_no_state,
    .check = fr_compressor_check_nothing,
    .encode = {.n_kernels = 1, .element_bytes = 5},
    .decode = {.n_kernels = 1, .element_bytes = 5},
};

static void encode(const fr_kernel_call *call)
{
    const uint32_t *g = call->ptr[0];
    uint8_t *code = call->ptr[2];
    for (int64_t i = 0; i < call->instr->compress.n; i++)
        code[i] = (uint8_t)(g[i] >> 24);
}

static void decode(const fr_kernel_call *call)
{
    const fr_compress_dims *dim = &call->instr->compress;
    float *g = call->ptr[2];
    for (int64_t k = 0; k < dim->n_payloads; k++) {
        const uint8_t *code =
            (const uint8_t *)call->ptr[0] + k * dim->payload_bytes;
        for (int64_t i = 0; i < dim->n; i++) {
            uint32_t bits = (uint32_t)code[i] << 24;
            float value;
            memcpy(&value, &bits, sizeof value);
            g[i] = k > 0 ? g[i] + value : value;
        }
    }
}

/* The tables of compressor_table.c and codec_table_cpu.c, and their rows. */
#define ENTRY(name, entry) &fr_compressor_##entry,
#define PLUGGED &upper_byte
const fr_compressor *const fr_compressors[] = {FR_COMPRESSORS(ENTRY) PLUGGED};
const int fr_n_compressors = FR_COMPRESSOR_N + 1;

#define CODEC(symbol, name)                                                    \
    {fr_kernel_##name##_compress, fr_kernel_##name##_decompress},
#define PLUGGED_CODEC                                                          \
    {                                                                          \
        encode, decode                                                         \
    }
const fr_codec_cpu fr_codecs_cpu[] = {FR_COMPRESSORS(CODEC) PLUGGED_CODEC};

static const fr_compressor_kind plugged = (fr_compressor_kind)FR_COMPRESSOR_N;

static void test_names(void)
{
    char text[256];
    fr_plan plan;
    fr_plan_init(&plan);
    plan.compressor = plugged;
    plan.has_error_feedback = false;
    CHECK_STR(fr_name_of(&fr_compressor_names, plugged), "upper-byte");
    CHECK_INT(fr_name_find(&fr_compressor_names, "upper-byte"), plugged);
    fr_plan_describe(&plan, text, sizeof text);
    CHECK_HAS(text, "=upper-byte");
    CHECK(strstr(text, "error-feedback") == NULL);
    CHECK(!fr_compressor_set_number("3", &plan));
}

static void test_legal(void)
{
    sim_fixture f;
    fr_err err;
    sim_fixture_init(&f);
    f.plan.compressor = plugged;
    CHECK_FAILS(fr_plan_check(&f.plan, &f.model, &f.job, &err), FR_INPUT, &err);
    CHECK_HAS(err.text, "compressor upper-byte at dp 1 has no gradients");
    f.plan.dp = 4;
    CHECK_OK(fr_plan_check_executable(&f.plan, &f.model, &f.job, &err), &err);
    f.plan.zero_stage = 1;
    CHECK_OK(fr_plan_check(&f.plan, &f.model, &f.job, &err), &err);
}

/* COMPRESS and DECOMPRESS of the runtime find the kernels of the row. */
static void test_kernels(void)
{
    enum { N = 1003, N_BYTES = (N + 3) / 4 * 4 };
    fr_plan plan = {.compressor = plugged};
    fr_instr instr = {0};
    float *g = kf_floats(N, 5, 1), *out = kf_floats(N, 6, 1);
    uint8_t *wire = calloc(2, N_BYTES);
    instr.compress.n = N;
    instr.compress.payload_bytes = N_BYTES;
    instr.compress.n_payloads = 2;
    fr_kernel_call call = kf_call(&instr, 1, (void *[]){g, NULL, wire}, 3);
    call.plan = &plan;
    fr_kernels_cpu[FR_OP_COMPRESS](&call);
    memcpy(wire + N_BYTES, wire, N_BYTES);
    call.ptr[0] = wire;
    call.ptr[2] = out;
    fr_kernels_cpu[FR_OP_DECOMPRESS](&call);
    for (int i = 0; i < N; i++) /* the power of four below, from two ranks */
        if (!CHECK(out[i] * g[i] >= 0 && 2 * g[i] / out[i] >= 1 &&
                   2 * g[i] / out[i] < 4))
            break;
    free(g);
    free(out);
    free(wire);
}

static void test_run(void)
{
    sim_fixture f;
    if (plugged_init(&f, 2))
        for (int zero = 0; zero < 2; zero++) {
            double plain_s = 0, plugged_s = 0;
            fr_plan_init(&f.plan);
            f.plan.dp = 16;
            f.plan.zero_stage = zero;
            plugged_run(&f, &plain_s);
            f.plan.compressor = plugged;
            plugged_run(&f, &plugged_s);
            CHECK(plain_s > 0 && plugged_s > 0 && plugged_s != plain_s);
        }
    sim_fixture_release(&f);
}

static bool is_plugged(const fr_plan *plan)
{
    return plan->compressor == plugged;
}

static bool is_bf16(const fr_plan *plan)
{
    return plan->compressor == FR_COMPRESSOR_BF16;
}

/* In the space as often as bf16, which needs as little; explain tries it. */
static void test_searched(void)
{
    sim_fixture f;
    if (plugged_init(&f, 1)) {
        size_t n = plugged_count(&f, is_plugged);
        CHECK(n > 0);
        CHECK_INT(n, plugged_count(&f, is_bf16));
        f.plan.dp = 4;
        CHECK(plugged_is_change(&f, "compress upper-byte"));
    }
    sim_fixture_release(&f);
}

CHECK_MAIN({"names", test_names}, {"legal", test_legal},
           {"kernels", test_kernels}, {"run", test_run},
           {"searched", test_searched})
