/*
 * test_plan_shares.c: micro-batches of data-parallel ranks: which are legal,
 * whose sequences are whose, and how they are dealt.
 */
#include "core/numbers/rng.h"
#include "plan/decide/plan_shares.h"
#include "tests/check.h"

#include <math.h>
#include <string.h>

static fr_plan plan_of(int32_t n, const int32_t *shares)
{
    fr_plan plan;

    fr_plan_init(&plan);
    plan.dp = plan.n_shares = n;
    memcpy(plan.batch_shares, shares, (size_t)n * sizeof *shares);
    return plan;
}

static fr_job job_of(int64_t global_batch)
{
    fr_job job;

    fr_job_init(&job);
    job.global_batch = global_batch;
    job.seq = 16;
    return job;
}

static void expect(const fr_plan *plan, int64_t global_batch, const char *text)
{
    const fr_job job = job_of(global_batch);
    fr_model model;
    fr_err err = {0};

    CHECK_OK(fr_model_load(NULL, "gpt2-tiny", &model, &err), &err);
    fr_status status = fr_plan_check_lowerable(plan, &model, &job, &err);
    if (text == NULL)
        CHECK_OK(status, &err);
    else if (CHECK_INT(status, FR_INPUT))
        CHECK_HAS(err.text, text);
    fr_model_release(&model);
}

static void test_check(void)
{
    fr_plan plan = plan_of(3, (int32_t[]){3, 3, 2});
    const fr_job job = job_of(8);

    expect(&plan, 8, NULL);
    CHECK_INT(fr_plan_micro_batches(&plan, &job), 3);
    CHECK_INT(fr_plan_least_share(&plan, &job), 2);
    expect(&plan, 9,
           "batch_shares add up to 8 micro-batches of 1 sequence, "
           "global_batch is 9");
    plan.micro_batch = 2;
    expect(&plan, 16, NULL);
    expect(&plan, 17, "add up to 8 micro-batches of 2 sequences");
    plan.micro_batch = 1;
    plan.dp = 4;
    expect(&plan, 8, "batch_shares has 3 entries for dp 4");
    plan.dp = 3;
    plan.batch_shares[1] = 0;
    expect(&plan, 5, "data-parallel rank 1 has 0 micro-batches");
    plan.batch_shares[1] = -3;
    expect(&plan, 2, "data-parallel rank 1 has -3 micro-batches");
    plan.batch_shares[1] = 3;
    plan.zero_stage = 1;
    expect(&plan, 8, NULL);
    plan.zero_stage = 2;
    expect(&plan, 8, "where ZeRO meets in every micro-batch");
    plan.pp = 2;
    expect(&plan, 8, NULL);
    plan.zero_stage = 3;
    expect(&plan, 8, "where ZeRO meets in every micro-batch");
    plan.zero_stage = 0;
    plan.schedule = FR_SCHEDULE_INTERLEAVED;
    plan.vpp = 2;
    expect(&plan, 8, "interleaved: 3 micro-batches are not a multiple of pp 2");
}

static void test_places(void)
{
    const fr_plan plan = plan_of(5, (int32_t[]){4, 2, 4, 7, 2});
    const fr_job job = job_of(19);
    const int32_t classes[] = {0, 1, 0, 2, 1}, first[] = {0, 4, 6, 10, 17};
    fr_plan even = plan;

    CHECK_INT(fr_plan_n_share_classes(&plan), 3);
    CHECK_INT(fr_plan_shares_sum(&plan), 19);
    for (int32_t i = 0; i < 5; i++) {
        CHECK_INT(fr_plan_share_class(&plan, i), classes[i]);
        CHECK_INT(fr_plan_first_micro(&plan, &job, i), first[i]);
        CHECK_INT(fr_plan_share(&plan, &job, i), plan.batch_shares[i]);
    }
    even.n_shares = 0;
    CHECK_INT(fr_plan_n_share_classes(&even), 1);
    CHECK_INT(fr_plan_first_micro(&even, &(fr_job){.global_batch = 20}, 3), 12);
}

static double end_of(const fr_plan *plan, int64_t n, double fill,
                     const double *pass_s)
{
    double end_s = 0;

    for (int32_t i = 0; i < plan->dp; i++) {
        const double share =
            plan->n_shares > 0 ? plan->batch_shares[i] : (double)n / plan->dp;
        end_s = fmax(end_s, (share + fill) * pass_s[i]);
    }
    return end_s;
}

/* The earliest end of all ways to deal n to the ranks from `at` on. */
static double best_end(int32_t dp, int32_t at, int64_t n, double fill,
                       const double *pass_s)
{
    double best_s = HUGE_VAL;

    if (at + 1 == dp)
        return ((double)n + fill) * pass_s[at];
    for (int64_t k = 1; k <= n - (dp - at - 1); k++)
        best_s = fmin(best_s, fmax(((double)k + fill) * pass_s[at],
                                   best_end(dp, at + 1, n - k, fill, pass_s)));
    return best_s;
}

static void test_share_out(void)
{
    fr_rng *rng = NULL;
    fr_err err = {0};

    if (!CHECK_OK(fr_rng_create(20261123, &rng, &err), &err))
        return;
    for (int i = 0; i < 600; i++) {
        double pass_s[4];
        fr_plan plan;
        fr_plan_init(&plan);
        plan.dp = (int32_t)(1 + fr_rng_below(rng, 4));
        const int64_t n = plan.dp + (int64_t)fr_rng_below(rng, 14);
        const double fill = (double)fr_rng_below(rng, 4) / 2;
        for (int32_t d = 0; d < plan.dp; d++)
            pass_s[d] = 0.2 + (double)fr_rng_below(rng, 1000) / 300;
        if (!CHECK(fr_plan_share_out(n, fill, pass_s, &plan)))
            break;
        CHECK(plan.n_shares == 0 || fr_plan_shares_sum(&plan) == n);
        CHECK_NEAR(end_of(&plan, n, fill, pass_s),
                   best_end(plan.dp, 0, n, fill, pass_s), 1e-12);
    }
    fr_rng_destroy(rng);
}

/* As many as ranks are too few, and a great many are dealt at once. */
static void test_share_out_ends(void)
{
    const double pass_s[] = {2.0, 1.0, 1.0};
    fr_plan plan;

    fr_plan_init(&plan);
    plan.dp = 3;
    CHECK(!fr_plan_share_out(2, 0, pass_s, &plan));
    CHECK(fr_plan_share_out(3, 0, pass_s, &plan));
    CHECK_INT(plan.n_shares, 0);
    CHECK(fr_plan_share_out(2000000005, 0, pass_s, &plan));
    CHECK_INT(plan.batch_shares[0], 400000001);
    CHECK_INT(fr_plan_shares_sum(&plan), 2000000005);
    plan.dp = FR_PLAN_MAX_SHARES + 1;
    CHECK(!fr_plan_share_out(5000, 0, pass_s, &plan));
}

CHECK_MAIN({"check", test_check}, {"places", test_places},
           {"share_out", test_share_out},
           {"share_out_ends", test_share_out_ends})
