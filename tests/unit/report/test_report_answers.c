/*
 * test_report_answers.c: predictions and runs as JSON and text: every key that
 * scripts rely on is there, numbers come back exactly, texts say the rest.
 */
#include "report/fit_report.h"
#include "report/plan_report.h"
#include "report/prediction_report.h"
#include "report/run/run_report.h"
#include "tests/check.h"
#include "tests/rendered.h"

#include <stdlib.h>

static const fr_model tokens = {.kind = FR_MODEL_DECODER};
static const fr_model images = {.kind = FR_MODEL_LAYERS, .image_size = 224};

static fr_json *parse(fr_buffer *text)
{
    fr_json *json = NULL;
    fr_err err;
    CHECK_OK(fr_json_parse("text", fr_buffer_text(text), text->n, &json, &err),
             &err);
    return json;
}

static double number(const fr_json_value *object, const char *key)
{
    double value = NAN;
    fr_err err;
    CHECK_OK(fr_json_get_double(object, key, &value, &err), &err);
    return value;
}

static void test_prediction_json(void)
{
    static const char *const keys[] = {"expected_step_s",
                                       "step_s",
                                       "unexplained_s",
                                       "step_s_p5",
                                       "step_s_p95",
                                       "tokens_per_s",
                                       "mfu",
                                       "hfu",
                                       "source",
                                       "breakdown_s",
                                       "memory",
                                       "cost",
                                       "sim"};
    static const char *const memory_keys[] = {"fits",
                                              "peak_bytes",
                                              "capacity_bytes",
                                              "parameters_bytes",
                                              "gradients_bytes",
                                              "optimizer_bytes",
                                              "activations_bytes",
                                              "buffers_bytes",
                                              "overhead_bytes",
                                              "reserved_bytes",
                                              "device_bytes",
                                              "p_fits"};
    fr_prediction p = {.step_s = 0.3171, .source = "fitted"};
    fr_buffer text;
    fr_document answer;
    double sum_s = 0;
    p.breakdown_s[FR_PART_COMPUTE] = 0.3;
    p.breakdown_s[FR_PART_BUBBLE] = 0.0171;
    p.memory.peak_bytes = 9007199254740993; /* no double can hold it */
    fr_document_init(&answer, NULL);
    fr_report_prediction(&tokens, &p, &answer);
    check_rendered(&answer, &fr_render_json, NULL, &text);
    fr_json *json = parse(&text);
    const fr_json_value *root = fr_json_root(json);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (!CHECK(fr_json_find(root, keys[i]) != NULL))
            printf("no %s\n", keys[i]);
    const fr_json_value *memory = fr_json_find(root, "memory");
    for (size_t i = 0; i < sizeof memory_keys / sizeof memory_keys[0]; i++)
        CHECK(fr_json_find(memory, memory_keys[i]) != NULL);
    const fr_json_value *parts = fr_json_find(root, "breakdown_s");
    CHECK_INT(fr_json_n(parts), FR_PART_N);
    for (size_t i = 0; i < fr_json_n(parts); i++)
        sum_s += number(parts, fr_json_key_at(parts, i));
    CHECK_NEAR(sum_s, 0.3171, 1e-15);
    uint64_t peak_bytes = 0;
    fr_err err;
    CHECK_OK(fr_json_get_u64(memory, "peak_bytes", &peak_bytes, &err), &err);
    CHECK(peak_bytes == 9007199254740993);
    fr_json_destroy(json);
    fr_buffer_release(&text);
}

static void test_prediction_text(void)
{
    fr_prediction p = {.expected_step_s = 0.25,
                       .step_s = 0.25,
                       .tokens_per_s = 4096,
                       .mfu = 0.385};
    fr_document answer;
    fr_buffer text;
    p.breakdown_s[FR_PART_EXPOSED_DP] = 0.0625;
    p.breakdown_s[FR_PART_COMPUTE] = 0.1875;
    p.memory.fits = true;
    p.memory.peak_bytes = 3 << 20;
    fr_document_init(&answer, NULL);
    fr_report_prediction(&tokens, &p, &answer);
    check_rendered(&answer, &fr_render_text, NULL, &text);
    CHECK_HAS(fr_buffer_text(&text),
              "step 250 ms, 4096 tokens/s\nMFU 38.5 %\n");
    CHECK_HAS(fr_buffer_text(&text), "exposed dp");
    CHECK_HAS(fr_buffer_text(&text), "25.0 %  ██████\n");
    CHECK(strstr(fr_buffer_text(&text), "bubble") == NULL);
    CHECK(strstr(fr_buffer_text(&text), "At best") == NULL);
    fr_buffer_release(&text);
    /* The typical excess of published stacks closes the parts. */
    p.expected_step_s = 0.3125;
    fr_document_init(&answer, NULL);
    fr_report_prediction(&tokens, &p, &answer);
    check_rendered(&answer, &fr_render_text, NULL, &text);
    CHECK_HAS(fr_buffer_text(&text), "step 312.5 ms, 4096 tokens/s\n");
    CHECK_HAS(fr_buffer_text(&text), "At best 250 ms");
    CHECK_HAS(fr_buffer_text(&text), "typically take 25.0 % more");
    CHECK_HAS(fr_buffer_text(&text),
              "compute                 187.5 ms  60.0 %");
    CHECK_HAS(fr_buffer_text(&text),
              "typical, not explained   62.5 ms  20.0 %");
    fr_buffer_release(&text);
    /* The verdict is the first line, or none. */
    fr_document_init(&answer, NULL);
    fr_report_verdict(&p, &answer);
    check_rendered(&answer, &fr_render_text, NULL, &text);
    CHECK_INT(text.n, 0);
    fr_buffer_release(&text);
    p.memory.fits = false;
    p.memory.capacity_bytes = 2 << 20;
    fr_document_init(&answer, NULL);
    fr_report_verdict(&p, &answer);
    check_rendered(&answer, &fr_render_text, NULL, &text);
    CHECK_STR(fr_buffer_text(&text),
              "DOES NOT FIT: needs 3 of 2 MiB (>99 % sure)\n");
    fr_buffer_release(&text);
}

/* A model has a rate of what it counts; a ViT has tokens, too. */
static void test_rate(void)
{
    static const fr_model layers = {.kind = FR_MODEL_LAYERS};
    static const fr_model vit = {.kind = FR_MODEL_ENCODER, .image_size = 224};
    static const struct {
        const fr_model *model;
        const char *want;
    } rows[] = {{&tokens, "788 tokens/s"},
                {&images, "4 images/s"},
                {&vit, "4 images/s"},
                {&layers, "4 samples/s"}};
    for (size_t i = 0; i < FR_LENGTH(rows); i++) {
        fr_buffer text;
        fr_document answer;
        fr_document_init(&answer, NULL);
        fr_report_rate(rows[i].model, 788, 4, &answer);
        check_rendered(&answer, &fr_render_text, NULL, &text);
        CHECK_HAS(fr_buffer_text(&text), rows[i].want);
        fr_buffer_release(&text);
    }
}

/* GPUs: memory of each stage, and how sure it is that the tightest fits. */
static void test_prediction_stages(void)
{
    fr_prediction p = {.step_s = 0.25};
    fr_buffer text;
    fr_document answer;
    p.memory.fits = true;
    p.memory.p_fits = 0.875;
    p.memory.n_stages = 2;
    p.memory.stages[0] = (fr_stage_memory){.activations_bytes = 7 << 20,
                                           .allocated_bytes = 11 << 20,
                                           .reserved_bytes = 12 << 20,
                                           .device_bytes = 19 << 20};
    p.memory.stages[1] =
        (fr_stage_memory){.optimizer_bytes = 5 << 20, .device_bytes = 13 << 20};
    fr_document_init(&answer, NULL);
    fr_report_prediction(&tokens, &p, &answer);
    check_rendered(&answer, &fr_render_text, NULL, &text);
    CHECK_HAS(fr_buffer_text(&text), "fits with probability 0.88\n");
    CHECK_HAS(fr_buffer_text(&text), "11 MiB  19 MiB\n");
    fr_buffer_release(&text);
    fr_document_init(&answer, NULL);
    fr_report_prediction(&tokens, &p, &answer);
    check_rendered(&answer, &fr_render_json, NULL, &text);
    fr_json *json = parse(&text);
    const fr_json_value *memory = fr_json_find(fr_json_root(json), "memory");
    const fr_json_value *stages = fr_json_find(memory, "stages");
    CHECK_INT(fr_json_n(stages), 2);
    CHECK_NEAR(number(fr_json_at(stages, 1), "optimizer_bytes"), 5 << 20, 0);
    CHECK_NEAR(number(fr_json_at(stages, 0), "device_bytes"), 19 << 20, 0);
    fr_json_destroy(json);
    fr_buffer_release(&text);
}

static void test_run(void)
{
    static const double loss[] = {5.5418, 4.0721, 3.6581};
    fr_run_report r = {.plan = "dp2 tp1 pp1 mb2 1f1b",
                       .model = &tokens,
                       .backend = "cpu",
                       .world_size = 2,
                       .n_steps = 3,
                       .loss = loss,
                       .step_s_median = 0.08,
                       .tokens_per_s = 6400,
                       .peak_bytes = 38797312,
                       .has_breakdown = true,
                       .has_prediction = true,
                       .predicted_step_s = 0.076,
                       .predicted_peak_bytes = 37748736};
    fr_buffer text;
    fr_document answer;
    CHECK_NEAR(fr_run_report_rel_err(&r), -0.05, 1e-12);
    fr_document_init(&answer, NULL);
    fr_report_run(&r, &answer);
    check_rendered(&answer, &fr_render_text, NULL, &text);
    CHECK_HAS(fr_buffer_text(&text), "loss 5.5418 -> 3.6581");
    CHECK_HAS(fr_buffer_text(&text), "-5.0 %");
    fr_buffer_release(&text);
    fr_document_init(&answer, NULL);
    fr_report_run(&r, &answer);
    check_rendered(&answer, &fr_render_json, NULL, &text);
    fr_json *json = parse(&text);
    const fr_json_value *root = fr_json_root(json);
    CHECK_NEAR(number(root, "rel_err"), -0.05, 1e-12);
    CHECK_NEAR(number(fr_json_find(root, "step_s"), "median"), 0.08, 0);
    CHECK_NEAR(number(fr_json_find(root, "predicted"), "peak_bytes"), 37748736,
               0);
    CHECK_INT(fr_json_n(fr_json_find(root, "loss")), 3);
    CHECK_INT(fr_json_n(fr_json_find(root, "breakdown_s")), FR_PART_N);
    fr_json_destroy(json);
    fr_buffer_release(&text);
}

/* A verdict comes from the median of 16 steps, so it does not know the step. */
static void test_run_stragglers(void)
{
    static const double loss[] = {5.5418}, compute_s[] = {0.7, 0.4},
                        wait_s[] = {0.0, 0.3};
    static const fr_straggler slow = {.kind = FR_SLOW_RANK,
                                      .index = 1,
                                      .rank = 1,
                                      .n_ranks = 1,
                                      .factor = 1.875,
                                      .lost_s = 0.34,
                                      .first_step = 12,
                                      .last_step = 41};
    static const fr_plan grid = {.dp = 2, .tp = 1, .pp = 1, .cp = 1};
    fr_run_report r = {.plan = "dp2",
                       .model = &tokens,
                       .backend = "cpu",
                       .world_size = 2,
                       .n_steps = 1,
                       .loss = loss,
                       .stragglers = &slow,
                       .n_stragglers = 1,
                       .compute_s = compute_s,
                       .wait_s = wait_s,
                       .grid = &grid};
    fr_buffer text;
    fr_document answer;
    fr_document_init(&answer, NULL);
    fr_report_run(&r, &answer);
    check_rendered(&answer, &fr_render_text, NULL, &text);
    CHECK_HAS(fr_buffer_text(&text),
              ", from about step 12 to about 41: 340 ms a");
    fr_buffer_release(&text);
}

/* The report of a run that was restarted is that of all its steps. */
static void test_run_elastic(void)
{
    static const double before[] = {6.125, 5.5}, loss[] = {5.0, 4.75, 4.5};
    fr_run_report r = {.plan = "dp2",
                       .model = &tokens,
                       .backend = "cpu",
                       .world_size = 2,
                       .n_steps = 3,
                       .resumed_from_step = 2,
                       .loss = loss,
                       .loss_before = before};
    fr_buffer text;
    fr_document answer;
    fr_document_init(&answer, NULL);
    fr_report_run(&r, &answer);
    check_rendered(&answer, &fr_render_text, NULL, &text);
    CHECK_HAS(fr_buffer_text(&text), "dp2: 5 steps on 2 ranks");
    CHECK_HAS(fr_buffer_text(&text), "loss 6.1250 -> 4.5000");
    CHECK_HAS(fr_buffer_text(&text), "\n2 of the steps came before the last");
    fr_buffer_release(&text);
    r.loss_before = NULL; /* not known */
    fr_document_init(&answer, NULL);
    fr_report_run(&r, &answer);
    check_rendered(&answer, &fr_render_text, NULL, &text);
    CHECK_HAS(fr_buffer_text(&text), "dp2: 3 steps on 2 ranks");
    CHECK_HAS(fr_buffer_text(&text), "loss 5.0000 -> 4.5000");
    fr_buffer_release(&text);
}

/* The sentence, the row and the member "others"; nothing where no step was
 * disturbed. */
static void test_run_others(void)
{
    static const double loss[] = {5.5418, 4.0721, 3.6581};
    fr_run_report r = {.plan = "dp2 tp1 pp1 mb2 1f1b",
                       .model = &tokens,
                       .backend = "cpu",
                       .world_size = 2,
                       .n_steps = 3,
                       .loss = loss,
                       .step_s_median = 0.5,
                       .has_prediction = true,
                       .predicted_step_s = 0.343,
                       .busy = {.n_steps = 60,
                                .n_known = 60,
                                .n_disturbed = 38,
                                .n_processors = 2,
                                .n_runnable = 5,
                                .others = 1.4375,
                                .undisturbed_step_s = 0.392}};
    fr_buffer text;
    fr_document answer;
    fr_document_init(&answer, NULL);
    fr_report_run(&r, &answer);
    check_rendered(&answer, &fr_render_text, NULL, &text);
    CHECK_HAS(fr_buffer_text(&text), "others used 1.4 of 2 processors during "
                                     "38 of 60 steps; the undisturbed "
                                     "steps: 392 ms\n");
    /* 0.343 / 0.5 - 1 and 0.343 / 0.392 - 1. */
    CHECK_HAS(fr_buffer_text(&text), "-31.4 %");
    CHECK_HAS(fr_buffer_text(&text), "step, undisturbed");
    CHECK_HAS(fr_buffer_text(&text), "-12.5 %");
    fr_buffer_release(&text);
    fr_document_init(&answer, NULL);
    fr_report_run(&r, &answer);
    check_rendered(&answer, &fr_render_json, NULL, &text);
    fr_json *json = parse(&text);
    const fr_json_value *others = fr_json_find(fr_json_root(json), "others");
    CHECK_NEAR(number(others, "processors"), 1.4375, 0);
    CHECK_NEAR(number(others, "disturbed_steps"), 38, 0);
    CHECK_NEAR(number(others, "undisturbed_step_s"), 0.392, 0);
    CHECK_NEAR(number(others, "undisturbed_rel_err"), -0.125, 1e-12);
    fr_json_destroy(json);
    fr_buffer_release(&text);
    r.busy.n_disturbed = 60;
    r.busy.undisturbed_step_s = 0;
    r.busy.stolen = 0.25;
    r.busy.rank = 1;
    fr_document_init(&answer, NULL);
    fr_report_run(&r, &answer);
    check_rendered(&answer, &fr_render_text, NULL, &text);
    CHECK_HAS(
        fr_buffer_text(&text),
        "others used 1.4 of 2 processors on the machine of rank 1 (0.2 of "
        "them other virtual machines)");
    CHECK_HAS(fr_buffer_text(&text), "no undisturbed step was measured\n");
    CHECK(strstr(fr_buffer_text(&text), "step, undisturbed") == NULL);
    fr_buffer_release(&text);
    r.busy.n_disturbed = 0;
    fr_document_init(&answer, NULL);
    fr_report_run(&r, &answer);
    check_rendered(&answer, &fr_render_text, NULL, &text);
    CHECK(strstr(fr_buffer_text(&text), "others used") == NULL);
    fr_buffer_release(&text);
}

/* Requests to NCCL stand in the answer of a run on GPUs alone. */
static void test_run_nccl(void)
{
    static const fr_collective_note notes[] = {
        {.op = FR_OP_ALL_REDUCE,
         .axis = FR_AXIS_DP,
         .algorithm = FR_COLLECTIVE_DOUBLE_TREE,
         .n_group = 8,
         .n_bytes = 26214400,
         .n_asked = 7,
         .n_granted = 5,
         .estimate_s = 0.000237},
        {.op = FR_OP_ALL_GATHER, .axis = FR_AXIS_TP, .n_group = 2}};
    fr_run_report r = {.plan = "dp8",
                       .model = &tokens,
                       .backend = "cuda",
                       .collectives = notes,
                       .n_collectives = 2,
                       .topology = "out/nccl-topology.xml"};
    fr_buffer text;
    fr_document answer;
    fr_document_init(&answer, NULL);
    fr_report_run(&r, &answer);
    check_rendered(&answer, &fr_render_json, NULL, &text);
    fr_json *json = parse(&text);
    const fr_json_value *nccl = fr_json_find(fr_json_root(json), "nccl");
    const fr_json_value *all = fr_json_find(nccl, "collectives");
    CHECK_INT(fr_json_n(all), 2);
    CHECK_INT(number(fr_json_at(all, 0), "granted"), 5);
    CHECK_INT(number(fr_json_at(all, 0), "bytes"), 26214400);
    CHECK_NEAR(number(fr_json_at(all, 0), "nccl_estimate_s"), 0.000237, 1e-12);
    CHECK_HAS(fr_buffer_text(&text), "\"double-tree\"");
    CHECK_HAS(fr_buffer_text(&text), "nccl-topology.xml");
    fr_json_destroy(json);
    fr_buffer_release(&text);
}

static void test_plan_in_words(void)
{
    fr_model model;
    fr_job job;
    fr_plan plan;
    fr_buffer text;
    fr_document answer;
    fr_model_init(&model);
    snprintf(model.name, sizeof model.name, "small");
    model.n_layers = 7;
    model.hidden = 64;
    model.n_heads = model.n_kv_heads = 4;
    model.head_dim = 16;
    model.ffn_hidden = 256;
    model.vocab = 301;
    fr_job_init(&job);
    job.global_batch = 12;
    fr_plan_init(&plan);
    plan.dp = 2;
    plan.pp = 2;
    plan.micro_batch = 2;
    plan.compressor = FR_COMPRESSOR_INT8;
    fr_document_init(&answer, NULL);
    fr_report_plan(&model, &job, &plan, &answer);
    check_rendered(&answer, &fr_render_text, NULL, &text);
    CHECK_HAS(fr_buffer_text(&text), "4 = dp 2 x tp 1 x pp 2");
    CHECK_HAS(fr_buffer_text(&text), "3 of 2 sequences");
    /* 1 idle slot of 3 + 1 */
    CHECK_HAS(fr_buffer_text(&text), "layers 4-3, ideal bubble 25.0 %");
    CHECK_HAS(fr_buffer_text(&text), "int8 with error feedback");
    fr_buffer_release(&text);
}

CHECK_MAIN({"prediction stages", test_prediction_stages}, {"rate", test_rate},
           {"prediction_json", test_prediction_json},
           {"prediction_text", test_prediction_text}, {"run", test_run},
           {"run_others", test_run_others}, {"run_elastic", test_run_elastic},
           {"run_stragglers", test_run_stragglers}, {"run_nccl", test_run_nccl},
           {"run_others", test_run_others}, {"run_elastic", test_run_elastic},
           {"run_stragglers", test_run_stragglers},
           {"plan", test_plan_in_words})
