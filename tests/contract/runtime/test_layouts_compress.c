/*
 * Lossy gradient compressors: with error feedback 200 steps end within 2 % of
 * the uncompressed loss; top-k and PowerSGD without it end worse.  Two
 * data-parallel ranks as threads of this process; the loss that counts is the
 * mean of the last 20 steps.
 */
#include "program/lower/step/lower.h"
#include "runtime/comm/transport.h"
#include "runtime/run/run.h"
#include "tests/check.h"

#include <pthread.h>

#define N_STEPS 200
#define N_LAST 20

static const char model_text[] =
    "{\"model_type\": \"gpt2\", \"n_layer\": 2, \"n_embd\": 64, "
    "\"n_head\": 4, \"n_inner\": 256, \"n_positions\": 16, "
    "\"vocab_size\": 61, \"layer_norm_epsilon\": 1e-5, "
    "\"activation_function\": \"gelu_new\"}";

typedef struct training {
    fr_program *program;
    fr_loopback *hub;
    double final_loss, first_loss;
} training;

typedef struct worker {
    training *t;
    int64_t rank;
} worker;

static void *work(void *context)
{
    worker *w = context;
    fr_transport *transport = NULL;
    fr_run_options options;
    fr_run_result result = {0};
    fr_err err = {0};

    fr_run_options_init(&options);
    options.timeout_s = 30;
    fr_status status =
        fr_transport_loopback_create(w->t->hub, w->rank, 30, &transport, &err);
    if (status == FR_OK)
        status = fr_run_over(transport, w->t->program, &options, NULL, &result,
                             &err);
    if (CHECK_OK(status, &err) && w->rank == 0) {
        w->t->first_loss = result.loss[0];
        for (int i = N_STEPS - N_LAST; i < N_STEPS; i++)
            w->t->final_loss += result.loss[i] / N_LAST;
    }
    fr_run_result_release(&result);
    fr_transport_destroy(transport);
    return NULL;
}

static fr_status prepare(const fr_plan *plan, fr_program **out, fr_err *err)
{
    fr_model model;
    fr_job job;

    fr_job_init(&job);
    job.global_batch = 8;
    job.seq = 16;
    job.n_steps = N_STEPS;
    job.seed = 7321;
    job.lr = 0.003;
    job.clip_norm = 1;
    job.warmup_steps = 10;
    job.lr_schedule = FR_LR_COSINE;
    FR_TRY(
        fr_model_parse("tiny", model_text, sizeof model_text - 1, &model, err));
    fr_status status = fr_lower(&model, &job, plan, NULL, out, err);
    fr_model_release(&model);
    return status;
}

/* The mean loss of the last steps. */
static double train(const fr_plan *plan)
{
    training t = {0};
    worker workers[2];
    pthread_t threads[2];
    fr_err err = {0};

    if (!CHECK_OK(prepare(plan, &t.program, &err), &err))
        return NAN;
    if (CHECK_OK(fr_loopback_create(2, NULL, &t.hub, &err), &err)) {
        for (int i = 0; i < 2; i++) {
            workers[i] = (worker){&t, i};
            pthread_create(&threads[i], NULL, work, &workers[i]);
        }
        for (int i = 0; i < 2; i++)
            pthread_join(threads[i], NULL);
        fr_loopback_destroy(t.hub);
    }
    fr_program_destroy(t.program);
    CHECK(t.final_loss < 0.8 * t.first_loss); /* all of them learn */
    return t.final_loss;
}

static fr_plan plan_with(fr_compressor_kind compressor)
{
    fr_plan plan;

    fr_plan_init(&plan);
    plan.dp = 2;
    plan.micro_batch = 4;
    plan.n_threads = 1;
    plan.compressor = compressor;
    plan.has_error_feedback = true;
    plan.compressor_rank = 10;
    /* Elements at random need more of them than the largest do. */
    plan.compressor_density = compressor == FR_COMPRESSOR_RANDOMK ? 0.5 : 0.1;
    return plan;
}

static void check_close(fr_compressor_kind compressor)
{
    fr_plan plain = plan_with(FR_COMPRESSOR_NONE);
    fr_plan lossy = plan_with(compressor);
    double expected = train(&plain);
    double loss = train(&lossy);

    check_that(fabs(loss - expected) <= 0.02 * expected, __FILE__, __LINE__,
               "%s: loss %.5f, uncompressed %.5f (%+.2f %%)",
               fr_name_of(&fr_compressor_names, compressor), loss, expected,
               100 * (loss / expected - 1));
}

static void check_feedback_helps(fr_plan plan)
{
    double with = train(&plan);
    plan.has_error_feedback = false;
    double without = train(&plan);

    check_that(without > 1.05 * with, __FILE__, __LINE__,
               "%s: loss %.5f with error feedback, %.5f without",
               fr_name_of(&fr_compressor_names, plan.compressor), with,
               without);
}

static void test_bf16(void)
{
    check_close(FR_COMPRESSOR_BF16);
}

/* Scattered: each rank decodes the sum of its own shard. */
static void test_bf16_zero(void)
{
    fr_plan whole = plan_with(FR_COMPRESSOR_BF16);
    fr_plan sharded = whole;
    sharded.zero_stage = 1;
    double expected = train(&whole), loss = train(&sharded);
    CHECK_NEAR(loss, expected, 1e-5);
}

static void test_int8(void)
{
    check_close(FR_COMPRESSOR_INT8);
}

static void test_topk(void)
{
    check_close(FR_COMPRESSOR_TOPK);
}

static void test_onebit(void)
{
    check_close(FR_COMPRESSOR_ONEBIT);
}

static void test_randomk(void)
{
    check_close(FR_COMPRESSOR_RANDOMK);
}

static void test_powersgd(void)
{
    check_close(FR_COMPRESSOR_POWERSGD);
}

static void test_topk_feedback(void)
{
    fr_plan plan = plan_with(FR_COMPRESSOR_TOPK);

    plan.compressor_density = 0.01;
    check_feedback_helps(plan);
}

static void test_powersgd_feedback(void)
{
    fr_plan plan = plan_with(FR_COMPRESSOR_POWERSGD);

    plan.compressor_rank = 1;
    check_feedback_helps(plan);
}

CHECK_MAIN({"bf16", test_bf16}, {"bf16 zero 1", test_bf16_zero},
           {"int8", test_int8}, {"topk", test_topk},
           {"powersgd", test_powersgd}, {"onebit", test_onebit},
           {"randomk", test_randomk}, {"topk_feedback", test_topk_feedback},
           {"powersgd_feedback", test_powersgd_feedback})
