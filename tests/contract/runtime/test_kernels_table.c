/*
 * test_kernels_table.c: every compute operation, and the copy to the host and
 * back, has a CPU kernel and nothing else has; every optimizer and compressor
 * of plan/ is whole, agrees with its enum and with the list of names, and runs.
 */
#include "plan/codec/compressor.h"
#include "plan/codec/optimizer.h"
#include "tests/unit/runtime/kernel_fixture.h"

static void test_ops(void)
{
#define EXECUTED true
#define SIMULATED false
#define OP(symbol, name, op_class, is_executed, ...)                           \
    CHECK((fr_kernels_cpu[FR_OP_##symbol] != NULL) ==                          \
          (is_executed && (FR_OP_CLASS_##op_class == FR_OP_CLASS_COMPUTE ||    \
                           FR_OP_##symbol == FR_OP_HOST_COPY)));
#include "plan/op/op_list.inc"
#undef OP
#undef EXECUTED
#undef SIMULATED
}

static void test_optimizers(void)
{
    enum { N = 977 };
    static const fr_tensor tensor = {
        .n = N, .rows = 1, .cols = N, .is_decayed = true};
    for (int kind = 0; kind < FR_OPTIMIZER_N; kind++) {
        const fr_optimizer *optimizer = fr_optimizers[kind];
        CHECK(optimizer != NULL && (int)optimizer->kind == kind);
        CHECK_STR(optimizer->name,
                  fr_name_of(&fr_optimizer_names, optimizer->kind));
        CHECK(optimizer->summary != NULL && optimizer->step_flop > 0);
        CHECK(optimizer->n_moments == 1 || optimizer->n_moments == 2);
        CHECK((optimizer->norms_flop > 0) == optimizer->has_norms);
        CHECK((optimizer->norms_moved_bytes > 0) == optimizer->has_norms);
        CHECK_INT(fr_optimizer_state_bytes(optimizer->kind, N),
                  optimizer->n_moments * N * 4);
        fr_job job;
        fr_job_init(&job);
        job.optimizer = optimizer->kind;
        fr_step_scalars step = {.clip_factor = 1};
        double norms[2] = {0};
        float *w = kf_floats(N, 1, 1), *g = kf_floats(N, 2, 1);
        /* a guard behind the state */
        float *opt = calloc(N * (size_t)optimizer->n_moments + 1, sizeof *opt);
        opt[N * optimizer->n_moments] = 99.5F;
        float *before = kf_copy(w, N);
        fr_instr instr = {.dim = {N, 0}};
        fr_kernel_call call =
            kf_call(&instr, 1, (void *[]){g, w, opt, &step, norms}, 5);
        call.job = &job;
        call.tensors = &tensor;
        call.n_tensors = 1;
        if (optimizer->has_norms)
            fr_kernels_cpu[FR_OP_OPT_NORMS](&call);
        fr_kernels_cpu[FR_OP_OPT_STEP](&call);
        CHECK(!kf_same(w, before, N));
        CHECK(opt[N * optimizer->n_moments] == 99.5F);
        free(w);
        free(g);
        free(opt);
        free(before);
    }
}

/* Payload and state of exactly the stated bytes are enough, for any n. */
static void run_compressor(fr_compressor_kind kind, int64_t n, bool has_error)
{
    const fr_compressor *compressor = fr_compressors[kind];
    fr_plan plan = {.tp = 1,
                    .compressor = kind,
                    .compressor_density = 0.05,
                    .compressor_rank = 2,
                    .has_error_feedback = has_error};
    fr_job job = {.seed = 3};
    int64_t cols = n % 7 ? 13 : 7;
    fr_tensor tensor = {
        .n = (uint64_t)n, .rows = (n + cols - 1) / cols, .cols = cols};
    fr_bucket bucket = {0, (uint64_t)n, &tensor, 1};
    uint64_t n_payload = fr_compressor_payload_bytes(&plan, &bucket);
    uint64_t n_state = compressor->state_bytes(&plan, &bucket);
    CHECK(n_payload % 4 == 0 && n_state % 4 == 0 && n_payload > 0);
    CHECK(compressor->stage_bytes(&plan, &bucket, compressor->n_stages) == 0);
    float *g = kf_floats(n, 5, 1), *out = kf_floats(n + 1, 6, 1);
    float *state = calloc(1, n_state + 4), *wire = calloc(1, n_payload + 4);
    out[n] = state[n_state / 4] = wire[n_payload / 4] = 4321.5F;
    fr_instr instr = {
        .dim = {n, (int64_t)n_payload, 0, 0, (int64_t)n_state, 1}};
    fr_kernel_call call =
        kf_call(&instr, 1, (void *[]){g, n_state ? state : NULL, wire}, 3);
    call.plan = &plan;
    call.job = &job;
    call.tensors = &tensor;
    call.n_tensors = 1;
    for (int stage = 0; stage < compressor->n_stages; stage++) {
        instr.compress.stage = stage;
        fr_kernels_cpu[FR_OP_COMPRESS](&call);
    }
    call.ptr[0] = wire;
    call.ptr[2] = out;
    fr_kernels_cpu[FR_OP_DECOMPRESS](&call);
    for (int64_t i = 0; i < n; i++)
        CHECK(isfinite(out[i]));
    if (!compressor->is_lossy)
        CHECK(kf_same(g, out, n));
    CHECK(out[n] == 4321.5F && state[n_state / 4] == 4321.5F &&
          wire[n_payload / 4] == 4321.5F);
    free(g);
    free(out);
    free(state);
    free(wire);
}

static void test_compressors(void)
{
    for (int kind = 0; kind < fr_n_compressors; kind++) {
        const fr_compressor *compressor = fr_compressors[kind];
        CHECK(fr_name_find(&fr_compressor_names, compressor->name) == kind);
        CHECK(compressor->name != NULL && compressor->summary != NULL);
        CHECK(compressor->n_stages >= 1 &&
              compressor->n_stages <= FR_COMPRESS_STAGES);
        CHECK(compressor->is_lossy == (kind != FR_COMPRESSOR_NONE));
        CHECK((compressor->wire == FR_WIRE_PLAIN) ==
              (kind == FR_COMPRESSOR_NONE));
        for (int64_t n = 1; n < 12000; n = n * 3 + 1)
            for (int has_error = 0; has_error < 2; has_error++)
                run_compressor((fr_compressor_kind)kind, n, has_error);
    }
}

/* Illegal plans are refused in one line that says why and what to do. */
static void test_compressor_refusals(void)
{
    fr_err err = {FR_OK, ""};
    fr_plan plan = {.compressor_density = 0.01, .compressor_rank = 4};
    for (int kind = 0; kind < fr_n_compressors; kind++)
        CHECK_OK(fr_compressors[kind]->check(&plan, &err), &err);
    plan.zero_stage = 1;
    for (int kind = 0; kind < fr_n_compressors; kind++) {
        const fr_compressor *compressor = fr_compressors[kind];
        fr_status want = compressor->is_elementwise ? FR_OK : FR_INPUT;
        CHECK_FAILS(compressor->check(&plan, &err), want, &err);
        if (kind == FR_COMPRESSOR_POWERSGD)
            CHECK_HAS(err.text, "powersgd does not go with ZeRO 1");
    }
    plan.zero_stage = 0;
    plan.compressor_density = 1.5;
    plan.compressor_rank = 65;
    CHECK_FAILS(fr_compressors[FR_COMPRESSOR_TOPK]->check(&plan, &err),
                FR_INPUT, &err);
    CHECK_HAS(err.text, "density 1.5 is not in (0, 1]");
    CHECK_FAILS(fr_compressors[FR_COMPRESSOR_RANDOMK]->check(&plan, &err),
                FR_INPUT, &err);
    CHECK_HAS(err.text, "density 1.5 is not in (0, 1]");
    CHECK_FAILS(fr_compressors[FR_COMPRESSOR_POWERSGD]->check(&plan, &err),
                FR_INPUT, &err);
    CHECK_HAS(err.text, "rank 65 is not in 1..64");
}

CHECK_MAIN({"ops", test_ops}, {"optimizers", test_optimizers},
           {"compressors", test_compressors},
           {"compressor_refusals", test_compressor_refusals})
