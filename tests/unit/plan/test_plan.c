/*
 * test_plan.c: every rule of fr_plan_check with the reason and the mend, the
 * one-line description, names.
 */
#include "core/system/fileio.h"
#include "plan/decide/plan_fields.h"
#include "plan/decide/plan_refusals.h"
#include "tests/check.h"

/* 12 heads, 6 kv heads, ffn 1440: tp may be 1, 2, 3, 6. */
static fr_model make_model(void)
{
    fr_model model;
    fr_model_init(&model);
    snprintf(model.name, sizeof model.name, "m");
    model.n_layers = 13;
    model.hidden = 384;
    model.n_heads = 12;
    model.n_kv_heads = 6;
    model.head_dim = 32;
    model.ffn_hidden = 1440;
    model.vocab = 311;
    model.max_seq = 128;
    return model;
}

static fr_job make_job(void)
{
    fr_job job;
    fr_job_init(&job);
    job.global_batch = 24;
    job.seq = 96;
    return job;
}

static void expect(const fr_plan *plan, const char *says)
{
    fr_model model = make_model();
    fr_job job = make_job();
    fr_err err = {0};
    fr_status status = fr_plan_check(plan, &model, &job, &err);
    if (!says) {
        CHECK_OK(status, &err);
        return;
    }
    CHECK_FAILS(status, FR_INPUT, &err);
    CHECK_HAS(err.text, says);
}

#define PLAN(...)                                                              \
    fr_plan plan;                                                              \
    fr_plan_init(&plan);                                                       \
    do {                                                                       \
        __VA_ARGS__;                                                           \
    } while (0)

static void test_default_is_legal(void)
{
    PLAN((void)0);
    expect(&plan, NULL);
    CHECK_INT(fr_plan_world(&plan), 1);
}

static void test_tp(void)
{
    {
        PLAN(plan.tp = 5);
        expect(&plan,
               "heads: 12 is not a multiple of tp 5; choose tp from 1,2,3,6");
    }
    {
        PLAN(plan.tp = 4);
        expect(&plan,
               "kv heads: 6 is not a multiple of tp 4; choose tp from 1,2,3,6");
    }
    for (int tp = 1; tp <= 13; tp++) {
        PLAN(plan.tp = tp);
        bool is_legal = tp == 1 || tp == 2 || tp == 3 || tp == 6;
        expect(&plan, is_legal ? NULL : "choose tp from 1,2,3,6");
    }
    {
        PLAN(plan.is_sequence_parallel = true);
        expect(&plan, "sequence parallel does nothing at tp 1");
    }
    {
        PLAN(plan.tp = 2, plan.is_sequence_parallel = true);
        expect(&plan, NULL);
    }
    {
        fr_model model = make_model();
        fr_job job = make_job();
        fr_err err = {0};
        PLAN(plan.tp = 2, plan.is_sequence_parallel = true);
        job.seq = 95;
        CHECK_FAILS(fr_plan_check(&plan, &model, &job, &err), FR_INPUT, &err);
        CHECK_HAS(err.text, "rows 95 (micro_batch 1 x seq 95 / cp 1) are not a "
                            "multiple of tp 2");
        plan.micro_batch = 2;
        CHECK_OK(fr_plan_check(&plan, &model, &job, &err), &err);
    }
}

static void test_batch(void)
{
    {
        PLAN(plan.dp = 5);
        expect(&plan, "global_batch 24 is not a multiple of dp 5");
    }
    {
        PLAN(plan.dp = 2, plan.micro_batch = 5);
        expect(&plan, "choose micro_batch from 1,2,3,4,6,12");
    }
    {
        PLAN(plan.micro_batch = 0);
        expect(&plan, "micro_batch is 0; give 1 to");
    }
    {
        PLAN(plan.dp = 2, plan.micro_batch = 3);
        fr_job job = make_job();
        CHECK_INT(fr_plan_micro_batches(&plan, &job), 4);
        plan.micro_batch = 7;
        CHECK_INT(fr_plan_micro_batches(&plan, &job), 0);
    }
}

static void test_pipeline(void)
{
    {
        PLAN(plan.pp = 14);
        expect(&plan, "layers 13 < pp 14 x vpp 1");
    }
    {
        PLAN(plan.pp = 2, plan.vpp = 3);
        expect(&plan, "vpp 3 needs the interleaved schedule, not 1f1b");
    }
    {
        PLAN(plan.pp = 2, plan.schedule = FR_SCHEDULE_INTERLEAVED);
        expect(&plan, "the interleaved schedule at vpp 1 is 1f1b");
    }
    {
        PLAN(plan.vpp = 2, plan.schedule = FR_SCHEDULE_INTERLEAVED);
        expect(&plan, "vpp 2 at pp 1 has no pipeline to interleave");
    }
    {
        PLAN(plan.pp = 2, plan.vpp = 2, plan.micro_batch = 8,
             plan.schedule = FR_SCHEDULE_INTERLEAVED);
        expect(&plan, "3 micro-batches are not a multiple of pp 2");
        plan.micro_batch = 4;
        expect(&plan, NULL);
    }
    {
        PLAN(plan.pp = 512, plan.vpp = 2,
             plan.schedule = FR_SCHEDULE_INTERLEAVED);
        expect(&plan, "pp 512 x vpp 2 stages; at most 512");
    }
    {
        PLAN(plan.pp = 3, plan.schedule = FR_SCHEDULE_GPIPE);
        expect(&plan, NULL);
    }
}

static void test_split(void)
{
    {
        PLAN(plan.pp = 3, plan.n_split = 2);
        expect(&plan, "layer_split has 2 entries for pp 3 x vpp 1 stages");
    }
    {
        PLAN(plan.pp = 3, plan.n_split = 3, plan.layer_split[0] = 4,
             plan.layer_split[1] = 4, plan.layer_split[2] = 4);
        expect(&plan, "layer_split adds up to 12 layers, the model has 13");
        plan.layer_split[1] = 5;
        expect(&plan, NULL);
        fr_model model = make_model();
        CHECK_INT(fr_plan_stage_layers(&plan, &model, 1), 5);
        plan.layer_split[1] = 0;
        plan.layer_split[0] = 9;
        expect(&plan, "layer_split: stage 1 has 0 layers; give at least 1");
        /* The embedding may have a stage of its own. */
        plan.layer_split[0] = 0;
        plan.layer_split[1] = 9;
        fr_job job = make_job();
        fr_err err;
        CHECK_OK(fr_plan_check_executable(&plan, &model, &job, &err), &err);
    }
    {
        PLAN(plan.pp = 2, plan.vpp = 2);
        fr_model model = make_model();
        int32_t expected[] = {4, 3, 3, 3};
        for (int32_t i = 0; i < 4; i++)
            CHECK_INT(fr_plan_stage_layers(&plan, &model, i), expected[i]);
    }
}

static void test_zero_and_compression(void)
{
    {
        PLAN(plan.zero_stage = 1);
        expect(&plan, "the same as zero 0");
    }
    {
        PLAN(plan.zero_stage = 1, plan.dp = 2);
        expect(&plan, NULL);
        plan.zero_stage = 4;
        expect(&plan, "zero is 4; choose 0, 1, 2 or 3");
    }
    {
        PLAN(plan.compressor = FR_COMPRESSOR_TOPK);
        expect(&plan, "compressor topk at dp 1 has no gradients to send");
        plan.dp = 2;
        expect(&plan, NULL);
        plan.compressor_density = 1.5;
        expect(&plan, "density 1.5 is not in (0, 1]");
        plan.compressor_density = 0.02;
        plan.zero_stage = 1;
        expect(&plan, "compressor topk does not go with ZeRO 1");
        plan.compressor = FR_COMPRESSOR_POWERSGD;
        expect(&plan, "compressor powersgd does not go with ZeRO 1");
        plan.zero_stage = 0;
        plan.compressor_rank = 0;
        expect(&plan, "rank 0 is not in 1..");
    }
}

static void test_ranges(void)
{
    {
        PLAN(plan.dp = -3);
        expect(&plan, "dp is -3; give 1 to");
    }
    {
        PLAN(plan.tp = 1 << 20, plan.dp = 1 << 20);
        expect(&plan, "ranks; at most");
    }
    {
        PLAN(plan.n_threads = 0);
        expect(&plan, "threads is 0");
    }
    {
        PLAN(plan.schedule = (fr_schedule_kind)17);
        expect(&plan, "is not one of its kinds");
    }
    {
        PLAN((void)0);
        fr_model model = make_model();
        fr_job job = make_job();
        fr_err err = {0};
        job.seq = 129;
        CHECK_FAILS(fr_plan_check(&plan, &model, &job, &err), FR_INPUT, &err);
        CHECK_HAS(err.text, "seq 129 > max_seq 128 of the learned positions");
        model.is_rope = true;
        CHECK_OK(fr_plan_check(&plan, &model, &job, &err), &err);
    }
}

static void test_experts_and_context(void)
{
    {
        PLAN(plan.ep = 2, plan.dp = 2);
        expect(&plan, "the model has no experts");
    }
    {
        PLAN(plan.cp = 5);
        expect(&plan, "seq 96 is not a multiple of 2 x cp 5");
        plan.cp = 3;
        expect(&plan, NULL);
    }
    {
        PLAN(plan.ep = 2, plan.dp = 3);
        fr_model model = make_model();
        fr_job job = make_job();
        fr_err err = {0};
        model.n_experts = 10;
        model.n_experts_per_token = 2;
        model.expert_ffn_hidden = 720;
        CHECK_FAILS(fr_plan_check(&plan, &model, &job, &err), FR_INPUT, &err);
        CHECK_HAS(err.text, "cp 1 x dp 3 is not a multiple of etp 1 x ep 2");
        plan.ep = 3;
        CHECK_FAILS(fr_plan_check(&plan, &model, &job, &err), FR_INPUT, &err);
        CHECK_HAS(err.text, "experts: 10 is not a multiple of ep 3");
        plan.ep = plan.dp = 2;
        CHECK_OK(fr_plan_check(&plan, &model, &job, &err), &err);
    }
}

static void expect_refused(fr_plan plan, const fr_model *model,
                           const char *says)
{
    fr_job job = make_job();
    fr_err err = {0};
    CHECK_OK(fr_plan_check(&plan, model, &job, &err), &err);
    CHECK_FAILS(fr_plan_check_executable(&plan, model, &job, &err), FR_INPUT,
                &err);
    CHECK_HAS(err.text, says);
}

static void expect_trained(fr_plan plan, const fr_model *model)
{
    fr_job job = make_job();
    fr_err err = {0};
    CHECK_OK(fr_plan_check_executable(&plan, model, &job, &err), &err);
    plan.is_flash = true;
    CHECK_OK(fr_plan_check_executable_gpu(&plan, model, &job, &err), &err);
}

/* Plans that GPUs train besides; lowered so only with our own kernels. */
static void test_executable_gpu(void)
{
    static const fr_dtype known[] = {FR_DTYPE_F32, FR_DTYPE_TF32,
                                     FR_DTYPE_BF16};
    fr_model model = make_model();
    fr_job job = make_job();
    fr_err err = {0};
    PLAN(plan.is_flash = true);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        bool is_f32 = known[i] == FR_DTYPE_F32;
        plan.precision = known[i];
        plan.execution.kernels = FR_KERNELS_FUSED;
        CHECK_OK(fr_plan_check_executable_gpu(&plan, &model, &job, &err), &err);
        CHECK(fr_plan_is_executable(&plan, &model, &job) == is_f32);
        plan.execution.kernels = FR_KERNELS_OWN;
        CHECK(fr_plan_is_executable(&plan, &model, &job));
    }
    plan.activation_offload_frac = 0.5;
    CHECK_OK(fr_plan_check_executable_gpu(&plan, &model, &job, &err), &err);
    plan.is_flash = false;
    CHECK_OK(fr_plan_check_executable_gpu(&plan, &model, &job, &err), &err);
    plan.is_flash = true;
    plan.precision = FR_DTYPE_F16;
    CHECK_FAILS(fr_plan_check_executable_gpu(&plan, &model, &job, &err),
                FR_INPUT, &err);
    CHECK_HAS(err.text, "choose precision bf16");
    CHECK(!fr_plan_is_executable(&plan, &model, &job));
}

static void test_executable(void)
{
    fr_model model = make_model();
    fr_job job = make_job();
    fr_err err = {0};
    PLAN((void)0);
    CHECK_OK(fr_plan_check_executable(&plan, &model, &job, &err), &err);
    plan.precision = FR_DTYPE_F16;
    expect_refused(plan, &model, "precision f32 or bf16");
    plan.precision = FR_DTYPE_BF16;
    expect_refused(plan, &model, "--kernels forerun --flash-attention");
    fr_plan_init(&plan);
    plan.cp = 2;
    plan.cp_kind = FR_CP_ALL_TO_ALL;
    CHECK_OK(fr_plan_check_executable(&plan, &model, &job, &err), &err);
    fr_plan_init(&plan);
    plan.dp = 2;
    plan.zero_stage = 3;
    CHECK_OK(fr_plan_check_executable(&plan, &model, &job, &err), &err);
    plan.execution.zero_unit = FR_ZERO_UNIT_PARAMETER;
    expect_refused(plan, &model, "parameter by parameter");
    fr_plan_init(&plan);
    plan.dp = 4;
    plan.zero_stage = 1;
    plan.zero_group = 2;
    CHECK_OK(fr_plan_check_executable(&plan, &model, &job, &err), &err);
    plan.compressor = FR_COMPRESSOR_BF16;
    expect_trained(plan, &model);
    fr_plan_init(&plan);
    plan.collective = FR_COLLECTIVE_NVLS;
    expect_refused(plan, &model, "collective auto");
    fr_plan_init(&plan);
    plan.collective = FR_COLLECTIVE_PARAMETER_SERVER;
    plan.dp = 4;
    plan.tp = 2;
    plan.n_servers = 5;
    expect_refused(plan, &model, "servers that are no ranks");
    plan.n_servers = 4;
    CHECK_OK(fr_plan_check_executable(&plan, &model, &job, &err), &err);
    plan.dp = plan.tp = 1;
    plan.n_servers = -1;
    CHECK_FAILS(fr_plan_check(&plan, &model, &job, &err), FR_INPUT, &err);
    CHECK_HAS(err.text, "servers is -1; give 0 to");
    plan.n_servers = 0;
    plan.n_channels = 3;
    CHECK_FAILS(fr_plan_check(&plan, &model, &job, &err), FR_INPUT, &err);
    CHECK_HAS(err.text, "parameter servers copy");
    fr_plan_init(&plan);
    plan.protocol = FR_PROTOCOL_LL;
    expect_refused(plan, &model, "protocol and channels on CPUs");
    plan.collective = FR_COLLECTIVE_NVLS;
    CHECK_FAILS(fr_plan_check(&plan, &model, &job, &err), FR_INPUT, &err);
    CHECK_HAS(err.text, "choose simple or auto");
    fr_plan_init(&plan);
    plan.n_channels = FR_MAX_CHANNELS + 1;
    CHECK_FAILS(fr_plan_check(&plan, &model, &job, &err), FR_INPUT, &err);
    CHECK_HAS(err.text, "nccl_channels is 65");
    fr_plan_init(&plan);
    model.kind = FR_MODEL_ENCODER;
    expect_refused(plan, &model, "an encoder");
    model = make_model();
    model.n_experts = 4;
    expect_refused(plan, &model, "experts without gates");
    model = make_model();
    model.has_rope_scaling = true;
    model.rope_factor = 0;
    expect_refused(plan, &model, "rescaled otherwise");
    model = make_model();
    model.sliding_window = 1;
    expect_trained(plan, &model);
    fr_plan_init(&plan);
    plan.is_optimizer_offloaded = true;
    expect_trained(plan, &model);
    fr_plan_init(&plan);
    plan.cp = 2;
    plan.cp_kind = FR_CP_ALL_TO_ALL;
    model = make_model();
    expect_trained(plan, &model);
}

/* docs/limits.md tells every row of the table, with what to choose. */
static void test_refusals_told(void)
{
    static const char *const on[] = {"", "CPUs", "GPUs", "both", "CPUs"};
    char *text = NULL;
    size_t n;
    fr_err err = {0};
    if (!CHECK_OK(fr_file_read("docs/limits.md", 0, &text, &n, &err), &err))
        return;
    for (int i = 0; i < fr_n_plan_refusals; i++) {
        const fr_plan_refusal *row = &fr_plan_refusals[i];
        char line[256];
        (void)snprintf(line, sizeof line, "| %s | %s | %s |", row->what,
                       row->mend, on[row->on]);
        check_that(strstr(text, line) != NULL, __FILE__, __LINE__,
                   "docs/limits.md lacks the line %s", line);
    }
    free(text);
}

static void test_describe(void)
{
    char text[256];
    PLAN((void)0);
    CHECK_STR(fr_plan_describe(&plan, text, sizeof text),
              "dp1 tp1 pp1 mb1 1f1b");
    plan.dp = 2, plan.pp = 3, plan.micro_batch = 4, plan.zero_stage = 1;
    CHECK_STR(fr_plan_describe(&plan, text, sizeof text),
              "dp2 tp1 pp3 mb4 1f1b zero1");
    plan.compressor = FR_COMPRESSOR_TOPK;
    plan.compressor_density = 0.0235;
    plan.has_error_feedback = false;
    plan.is_overlap = false;
    plan.n_threads = 7;
    plan.n_split = 3;
    plan.layer_split[0] = 5, plan.layer_split[1] = 4, plan.layer_split[2] = 4;
    CHECK_STR(fr_plan_describe(&plan, text, sizeof text),
              "dp2 tp1 pp3 mb4 1f1b zero1 compress=topk:0.0235 "
              "no-error-feedback no-overlap threads=7 split=5-4-4");
    fr_plan_init(&plan);
    plan.bucket_bytes = 1000000000;
    plan.grad_dtype = FR_DTYPE_BF16;
    plan.recompute = FR_RECOMPUTE_FULL;
    plan.recompute_layers = 4;
    CHECK_STR(fr_plan_describe(&plan, text, sizeof text),
              "dp1 tp1 pp1 mb1 1f1b recompute=full(4 layers) bucket 1 GB "
              "grad=bf16");
    plan.bucket_bytes = 25600000;
    plan.recompute = FR_RECOMPUTE_SELECTIVE;
    plan.recompute_parts = FR_RECOMPUTE_PART_ATTENTION | FR_RECOMPUTE_PART_NORM;
    CHECK_HAS(fr_plan_describe(&plan, text, sizeof text),
              "recompute=selective:attention,norm bucket 25.6 MB");
    plan.bucket_bytes = 1 << 20;
    CHECK_HAS(fr_plan_describe(&plan, text, sizeof text), " bucket 1 MiB");
    plan.bucket_bytes = 160000001;
    CHECK_HAS(fr_plan_describe(&plan, text, sizeof text),
              " bucket 160000001 B");
    /* Cut, never past the end. */
    char small[9];
    memset(small, 'x', sizeof small);
    fr_plan_describe(&plan, small, 8);
    CHECK_STR(small, "dp1 tp1");
    CHECK(small[8] == 'x');
}

/* Plans that differ in one decision are told apart. */
static void test_describe_unique(void)
{
    enum { N = 22 };
    char texts[N][256];
    fr_plan plans[N];
    for (int i = 0; i < N; i++) {
        fr_plan_init(&plans[i]);
        plans[i].compressor = FR_COMPRESSOR_POWERSGD;
    }
    plans[1].dp = 2;
    plans[2].tp = 2;
    plans[3].pp = 2;
    plans[4].cp = 2;
    plans[5].ep = 2;
    plans[6].vpp = 2;
    plans[7].micro_batch = 2;
    plans[8].schedule = FR_SCHEDULE_GPIPE;
    plans[9].zero_stage = 1;
    plans[10].recompute = FR_RECOMPUTE_FULL;
    plans[11].is_sequence_parallel = true;
    plans[12].is_overlap = false;
    plans[13].bucket_bytes = 77;
    plans[14].compressor_rank = 5;
    plans[15].has_error_feedback = false;
    plans[16].collective = FR_COLLECTIVE_RING;
    plans[17].rank_order = FR_RANK_ORDER_PP_DP_TP;
    plans[18].precision = FR_DTYPE_BF16;
    plans[19].n_threads = 3;
    plans[20].protocol = FR_PROTOCOL_LL128;
    plans[21].n_channels = 3;
    for (int i = 0; i < N; i++) {
        fr_plan_describe(&plans[i], texts[i], sizeof texts[i]);
        for (int j = 0; j < i; j++)
            CHECK(strcmp(texts[i], texts[j]) != 0);
    }
}

/* Every member of the struct, and of that of its execution, has a row: sorted
 * by offset they leave no hole that alignment does not make.  Every row is
 * described once, and stands once in the order of the help text. */
static void test_fields(void)
{
    size_t end = 0;
    int n_described[FR_PLAN_ITEMS_N] = {0}, n_listed[FR_PLAN_ITEMS_N] = {0};
    for (int n = 0; n < FR_PLAN_ITEMS_N; n++) {
        const fr_field *next = NULL;
        if (n == FR_PLAN_FIELDS_N) {
            CHECK_INT(offsetof(fr_plan, execution), (end + 7) / 8 * 8);
            end = offsetof(fr_plan, execution);
        }
        for (int i = 0; i < FR_PLAN_ITEMS_N; i++) {
            const fr_field *f = &fr_plan_item_row(i)->field;
            if (f->offset >= end && (next == NULL || f->offset < next->offset))
                next = f;
        }
        CHECK(next != NULL);
        size_t first =
            next->kind == FR_FIELD_LIST ? next->count_offset : next->offset;
        size_t align =
            next->kind == FR_FIELD_LIST ? sizeof(int32_t) : next->n_bytes;
        CHECK_INT(first, (end + align - 1) / align * align);
        end = next->offset + next->n_bytes;
        n_described[fr_plan_described[n]]++;
        n_listed[fr_plan_items[n]]++;
    }
    CHECK(sizeof(fr_plan) - end < 8);
    for (int i = 0; i < FR_PLAN_ITEMS_N; i++) {
        const fr_plan_field *row = fr_plan_item_row(fr_plan_items[i]);
        CHECK_INT(n_described[i], 1);
        CHECK_INT(n_listed[i], 1);
        CHECK((row->field.option != NULL) == (i < FR_PLAN_OPTIONS_N));
        CHECK((row->origin != NULL) == (fr_plan_items[i] >= FR_PLAN_FIELDS_N));
    }
}

/* A field that is part of a decision not taken is without effect. */
static void test_parts(void)
{
    PLAN(plan.zero_stage = 2, plan.cp = 70);
    CHECK(!fr_plan_field_is_used(&plan, FR_FACT(ZERO_UNIT)));
    CHECK(fr_plan_field_is_used(&plan, FR_PLAN_ZERO_GROUP));
    CHECK(fr_plan_field_is_used(&plan, FR_PLAN_CP_KIND));
    CHECK(fr_plan_field_is_used(&plan, FR_PLAN_TP));
    plan.zero_stage = 3;
    plan.cp = 1;
    CHECK(fr_plan_field_is_used(&plan, FR_FACT(ZERO_UNIT)));
    CHECK(!fr_plan_field_is_used(&plan, FR_PLAN_CP_KIND));
}

static void check_names(const fr_names *names, int n)
{
    for (int i = 0; i < n; i++)
        CHECK_INT(fr_name_find(names, fr_name_of(names, i)), i);
}

static void test_names(void)
{
    check_names(&fr_recompute_names, FR_RECOMPUTE_N);
    check_names(&fr_schedule_names, fr_n_schedules);
    check_names(&fr_rank_order_names, FR_RANK_ORDER_N);
    check_names(&fr_compressor_names, fr_n_compressors);
    check_names(&fr_collective_names, fr_n_collectives);
    check_names(&fr_protocol_names, FR_PROTOCOL_N);
    CHECK_INT(fr_name_find(&fr_schedule_names, "2f2b"), -1);
    CHECK_STR(fr_name_of(&fr_schedule_names, 99), "unknown");
}

CHECK_MAIN({"default", test_default_is_legal}, {"tp", test_tp},
           {"batch", test_batch}, {"pipeline", test_pipeline},
           {"split", test_split},
           {"zero_and_compression", test_zero_and_compression},
           {"ranges", test_ranges},
           {"experts_and_context", test_experts_and_context},
           {"executable", test_executable},
           {"refusals_told", test_refusals_told},
           {"executable_gpu", test_executable_gpu}, {"describe", test_describe},
           {"describe_unique", test_describe_unique}, {"names", test_names},
           {"fields", test_fields}, {"parts", test_parts})
