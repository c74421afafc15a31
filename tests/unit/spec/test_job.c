/* test_job.c: learning rates worked out by hand, names, checks. */
#include "spec/model/job.h"
#include "tests/check.h"

static fr_job make(void)
{
    fr_job job;
    fr_job_init(&job);
    job.lr = 0.00237;
    job.n_steps = 41;
    job.warmup_steps = 8;
    job.lr_min_frac = 0.13;
    return job;
}

static void test_warmup(void)
{
    fr_job job = make();
    CHECK_NEAR(fr_job_lr(&job, 0), 0.00237 / 8, 1e-15);
    CHECK_NEAR(fr_job_lr(&job, 2), 0.00237 * 3 / 8, 1e-15);
    CHECK_NEAR(fr_job_lr(&job, 7), 0.00237, 1e-15);
    CHECK_NEAR(fr_job_lr(&job, 40), 0.00237, 1e-15);
}

static void test_schedules(void)
{
    fr_job job = make();
    job.lr_schedule = FR_LR_COSINE;
    CHECK_NEAR(fr_job_lr(&job, 8), 0.00237, 1e-15);
    CHECK_NEAR(fr_job_lr(&job, 24), 0.00237 * (0.13 + 0.87 * 0.5), 1e-14);
    CHECK_NEAR(fr_job_lr(&job, 40), 0.00237 * 0.13, 1e-14);
    CHECK_NEAR(fr_job_lr(&job, 1000), 0.00237 * 0.13, 1e-14);
    /* A quarter of the way: cos(pi/4). */
    CHECK_NEAR(fr_job_lr(&job, 16),
               0.00237 * (0.13 + 0.87 * (2 + sqrt(2.0)) / 4), 1e-14);
    job.lr_schedule = FR_LR_LINEAR;
    CHECK_NEAR(fr_job_lr(&job, 24), 0.00237 * (1 - 0.87 / 2), 1e-14);
    CHECK_NEAR(fr_job_lr(&job, 40), 0.00237 * 0.13, 1e-14);
    job.lr_schedule = FR_LR_INVERSE_SQRT;
    CHECK_NEAR(fr_job_lr(&job, 7), 0.00237, 1e-15);
    CHECK_NEAR(fr_job_lr(&job, 31), 0.00237 / 2, 1e-15);
    job.warmup_steps = 0;
    CHECK_NEAR(fr_job_lr(&job, 3), 0.00237 / 2, 1e-15);
    CHECK_NEAR(fr_job_lr(&job, 100000), 0.00237 * 0.13, 1e-15);
}

static void test_rules(void)
{
    fr_job job = make();
    job.warmup_steps = 0;
    job.global_batch = 72;
    job.lr_base_batch = 8;
    CHECK_NEAR(fr_job_lr(&job, 3), 0.00237, 1e-15);
    job.lr_rule = FR_LR_RULE_LINEAR;
    CHECK_NEAR(fr_job_lr(&job, 3), 0.00237 * 9, 1e-15);
    job.lr_rule = FR_LR_RULE_SQRT;
    CHECK_NEAR(fr_job_lr(&job, 3), 0.00237 * 3, 1e-15);
}

static void test_short_runs(void)
{
    fr_job job = make();
    job.n_steps = 5; /* ends within the warm-up */
    job.lr_schedule = FR_LR_COSINE;
    for (int64_t i = 0; i < 5; i++)
        CHECK_NEAR(fr_job_lr(&job, i), 0.00237 * (double)(i + 1) / 8, 1e-15);
    job.n_steps = 1;
    job.warmup_steps = 0;
    CHECK(fr_job_lr(&job, 0) > 0.0);
}

static void test_names(void)
{
    for (int i = 0; i < FR_OPTIMIZER_N; i++)
        CHECK_INT(
            fr_name_find(&fr_optimizer_names,
                         fr_name_of(&fr_optimizer_names, (fr_optimizer_kind)i)),
            i);
    CHECK_INT(fr_name_find(&fr_optimizer_names, "adam"), -1);
}

static void expect(fr_job job, const char *says)
{
    fr_err err = {0};
    CHECK_FAILS(fr_job_check(&job, &err), FR_INPUT, &err);
    CHECK_HAS(err.text, says);
}

#define BAD(change, says)                                                      \
    do {                                                                       \
        fr_job job = make();                                                   \
        change;                                                                \
        expect(job, says);                                                     \
    } while (0)

static void test_bad(void)
{
    fr_job good = make();
    fr_err err = {0};
    CHECK_OK(fr_job_check(&good, &err), &err);
    BAD(job.global_batch = 0, "global_batch is 0");
    BAD(job.seq = -3, "seq is -3");
    BAD(job.seq = INT64_MAX, "does not fit 64 bits");
    BAD(job.n_steps = 0, "steps is 0");
    BAD(job.warmup_steps = -1, "warmup_steps is -1");
    BAD(job.lr = 0.0, "lr is 0");
    BAD(job.lr = NAN, "lr is");
    BAD(job.lr = INFINITY, "lr is inf");
    BAD(job.beta1 = 1.0, "beta1 is 1; give a number in [0, 1)");
    BAD(job.beta2 = -0.5, "beta2 is -0.5");
    BAD(job.weight_decay = -0.1, "weight_decay is -0.1");
    BAD(job.clip_norm = -1.0, "clip_norm is -1");
    BAD(job.lr_min_frac = 1.5, "lr_min_frac is 1.5; give a number in [0, 1]");
    BAD(job.optimizer = (fr_optimizer_kind)9, "unknown optimizer");
    BAD((job.lr_rule = FR_LR_RULE_SQRT, job.lr_base_batch = 0),
        "lr_rule sqrt needs lr_base_batch");
}

static void test_tokens(void)
{
    fr_job job = make();
    fr_model model;
    fr_model_init(&model);
    fr_job_count_steps(&job, &model);
    CHECK_INT(job.n_steps, 41); /* no tokens: as it was given */
    job.global_batch = 37;
    job.seq = 11;
    const struct {
        int64_t tokens, n_steps;
    } rows[] = {{1, 1}, {407, 1}, {408, 2}, {407000, 1000}, {407001, 1001}};
    for (size_t i = 0; i < FR_LENGTH(rows); i++) {
        job.tokens = rows[i].tokens;
        fr_job_count_steps(&job, &model);
        CHECK_INT(job.n_steps, rows[i].n_steps);
    }
    model.kind = FR_MODEL_LAYERS; /* samples */
    fr_job_count_steps(&job, &model);
    CHECK_INT(job.n_steps, 11001);
    job.global_batch = job.seq = INT64_C(1) << 50; /* their product is not */
    model.kind = FR_MODEL_DECODER;
    fr_job_count_steps(&job, &model);
    CHECK_INT(job.n_steps, 1);
    job.tokens = -1;
    job.global_batch = job.seq = 8;
    fr_err err = {0};
    CHECK_FAILS(fr_job_check(&job, &err), FR_INPUT, &err);
}

CHECK_MAIN({"warmup", test_warmup}, {"schedules", test_schedules},
           {"rules", test_rules}, {"short", test_short_runs},
           {"names", test_names}, {"bad", test_bad}, {"tokens", test_tokens})
