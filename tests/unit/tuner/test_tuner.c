/*
 * test_tuner.c: what tune must keep whatever the costs are: the best is the
 * best, the same bytes for any number of threads, the one-process baseline in
 * every answer, nothing lossy unless allowed, reasons that are true.
 * The costs are those of a datasheet, so that the test knows no machine.
 */
#include "plan/decide/plan.h"
#include "tests/check.h"
#include "tests/unit/small_model.h"
#include "tests/unit/tuner/tuning_text.h"
#include "tuner/answer/tune.h"

#include <stdlib.h>

static const char two_cores[] =
    "<cluster name=\"two\">\n"
    "  <device id=\"core\" kind=\"cpu\" cores=\"2\" memory=\"%s\"\n"
    "          memory-bandwidth=\"21.3GB/s\">\n"
    "    <peak dtype=\"fp32\" rate=\"97.3GFLOP/s\"/>\n"
    "  </device>\n"
    "  <node-type id=\"host\" device=\"core\">\n"
    "    <intra kind=\"shared-memory\" bandwidth=\"7.9GB/s\"\n"
    "           latency=\"1.3us\"/>\n"
    "  </node-type>\n"
    "  <group id=\"host\" node-type=\"host\" count=\"1\"/>\n"
    "</cluster>\n";

typedef struct fixture {
    fr_cluster cluster;
    fr_model model;
    fr_job job;
    fr_cost_model *costs;
    fr_tune_options options;
} fixture;

static bool setup(fixture *f, const char *memory)
{
    char xml[1024];
    fr_err err;
    memset(f, 0, sizeof *f);
    snprintf(xml, sizeof xml, two_cores, memory);
    if (!CHECK_OK(
            fr_cluster_parse("two.xml", xml, strlen(xml), &f->cluster, &err),
            &err))
        return false;
    CHECK_OK(fr_cost_model_create(NULL, &f->cluster, &f->costs, &err), &err);
    small_model(&f->model, 4, 4, 24, 3001, 128);
    fr_job_init(&f->job);
    f->job.global_batch = 4;
    f->job.seq = 64;
    f->options = (fr_tune_options){
        .space = {.model = &f->model, .job = &f->job, .cluster = &f->cluster},
        .n_alternatives = 6,
        .n_threads = 1};
    fr_plan_init(&f->options.space.base);
    return true;
}

static void teardown(fixture *f)
{
    fr_cost_model_destroy(f->costs);
    fr_cluster_release(&f->cluster);
}

static void test_answer(void)
{
    fixture f;
    fr_tuning t;
    fr_err err;
    if (!setup(&f, "3GiB"))
        return;
    if (CHECK_OK(fr_tune(&f.options, f.costs, &t, &err), &err)) {
        double last_s = t.best.prediction.expected_step_s;
        CHECK(t.best.plan != NULL);
        const fr_tuned *alone = &t.baselines[FR_BASELINE_DEVICE].tuned;
        CHECK(alone->plan != NULL && fr_plan_world(alone->plan) == 1);
        CHECK_INT(t.alternatives.n, 6);
        for (size_t i = 0; i < t.alternatives.n; i++) {
            const fr_tuned *other = &t.alternatives.at[i];
            if (!other->is_tie) { /* ties: the more robust first */
                CHECK(other->prediction.expected_step_s >= last_s);
                last_s = other->prediction.expected_step_s;
            }
            CHECK(other->prediction.expected_step_s >=
                  t.best.prediction.expected_step_s);
            CHECK(other->plan->compressor == FR_COMPRESSOR_NONE);
            CHECK(strcmp(other->name, t.best.name) != 0);
        }
        CHECK_INT(t.layouts.n, 4); /* one rank, dp 2, tp 2, pp 2 */
        CHECK_INT(t.space.simulated, t.space.plans);
        CHECK(t.certificate.optimal_in_space && t.certificate.gap == 0);
        CHECK_NEAR(t.certificate.bound, t.best.prediction.expected_step_s, 0);
        for (size_t i = 1; i < t.pareto.n; i++)
            CHECK(t.pareto.at[i].prediction.memory.peak_bytes <
                  t.pareto.at[i - 1].prediction.memory.peak_bytes);
        fr_tuning_release(&t);
    }
    teardown(&f);
}

/* Whatever the search, a budget that is used up at once leaves the best of
 * the first batch and no word about the rest; --exact counts for more. */
static void test_budget(void)
{
    static const char *const searches[] = {NULL, "exhaustive", "random"};
    fixture f;
    fr_err err;
    if (!setup(&f, "3GiB"))
        return;
    f.options.budget_s = 1e-9;
    for (int i = 0; i < 6; i++) {
        fr_tuning t;
        f.options.search = searches[i % 3];
        f.options.is_exact = i >= 3;
        if (!CHECK_OK(fr_tune(&f.options, f.costs, &t, &err), &err))
            continue;
        CHECK(t.best.plan != NULL);
        CHECK(t.certificate.optimal_in_space == f.options.is_exact);
        CHECK((t.space.simulated == t.space.plans) == f.options.is_exact);
        CHECK_NEAR(t.certificate.gap, f.options.is_exact ? 0 : 1, 0);
        fr_tuning_release(&t);
    }
    teardown(&f);
}

static void test_any_number_of_threads(void)
{
    fixture f;
    fr_err err;
    char *first = NULL;
    if (!setup(&f, "3GiB"))
        return;
    for (int n_threads = 1; n_threads <= 8; n_threads += 7) {
        fr_tuning t;
        f.options.n_threads = n_threads;
        if (!CHECK_OK(fr_tune(&f.options, f.costs, &t, &err), &err))
            break;
        char *text = tuning_text(&t);
        if (first == NULL)
            first = text;
        else
            CHECK_STR(text, first);
        if (first != text)
            free(text);
        fr_tuning_release(&t);
    }
    free(first);
    teardown(&f);
}

static void test_baseline_despite_pins(void)
{
    fixture f;
    fr_tuning t;
    fr_err err;
    if (!setup(&f, "3GiB"))
        return;
    f.options.space.base.pp = 2;
    f.options.space.base.dp = f.options.space.base.tp = 1;
    f.options.space.pins = FR_PIN(DP) | FR_PIN(TP) | FR_PIN(PP);
    if (CHECK_OK(fr_tune(&f.options, f.costs, &t, &err), &err)) {
        CHECK_INT(t.best.plan->pp, 2);
        CHECK_INT(t.layouts.n, 1);
        const fr_tuned *alone = &t.baselines[FR_BASELINE_DEVICE].tuned;
        CHECK(alone->plan != NULL && fr_plan_world(alone->plan) == 1);
        fr_tuning_release(&t);
    }
    teardown(&f);
}

static void test_lossy_must_be_allowed(void)
{
    fixture f;
    fr_tuning t;
    fr_err err;
    if (!setup(&f, "3GiB"))
        return;
    uint64_t n_plans[2] = {0};
    for (int i = 0; i < 2; i++) {
        f.options.space.allow_lossy = i == 1;
        if (!CHECK_OK(fr_tune(&f.options, f.costs, &t, &err), &err))
            break;
        n_plans[i] = t.space.plans;
        fr_tuning_release(&t);
    }
    CHECK(n_plans[1] > n_plans[0]);
    teardown(&f);
}

static void test_nothing_fits(void)
{
    fixture f;
    fr_tuning t;
    fr_err err;
    if (!setup(&f, "2MiB"))
        return;
    if (CHECK_OK(fr_tune(&f.options, f.costs, &t, &err), &err)) {
        CHECK(t.best.plan == NULL && t.baselines[0].tuned.plan == NULL);
        CHECK(t.nearest.plan != NULL && t.short_by_bytes > 0);
        CHECK_INT(t.space.infeasible_memory, t.space.plans);
        CHECK_INT(t.space.simulated, 0);
        char *text = tuning_text(&t);
        CHECK_HAS(text, "\"best\": null");
        CHECK_HAS(text, "\"short_by_bytes\"");
        free(text);
        fr_tuning_release(&t);
    }
    teardown(&f);
}

static void test_impossible_pins(void)
{
    fixture f;
    fr_tuning t;
    fr_err err;
    if (!setup(&f, "3GiB"))
        return;
    f.options.space.base.micro_batch = 3; /* does not divide 4 */
    f.options.space.pins = FR_PIN(MICRO_BATCH);
    CHECK_FAILS(fr_tune(&f.options, f.costs, &t, &err), FR_INPUT, &err);
    CHECK_HAS(err.text, "micro_batch");
    teardown(&f);
}

static void test_why(void)
{
    fr_prediction best = {.step_s = 0.25}, other = {.step_s = 0.3};
    char why[160];
    best.breakdown_s[FR_PART_COMPUTE] = 0.2;
    best.breakdown_s[FR_PART_EXPOSED_TP] = 0.05;
    other.breakdown_s[FR_PART_COMPUTE] = 0.2005; /* a fifth of a percent */
    other.breakdown_s[FR_PART_EXPOSED_DP] = 0.031;
    other.breakdown_s[FR_PART_BUBBLE] = 0.0685;
    CHECK_STR(fr_tune_why(&best, &other, why, sizeof why),
              "+27 % bubble, +12 % exposed dp");
    CHECK_STR(fr_tune_why(&best, &best, why, sizeof why), "");
}

CHECK_MAIN({"answer", test_answer}, {"budget", test_budget},
           {"threads", test_any_number_of_threads},
           {"baseline", test_baseline_despite_pins},
           {"lossy", test_lossy_must_be_allowed},
           {"nothing_fits", test_nothing_fits},
           {"impossible", test_impossible_pins}, {"why", test_why})
