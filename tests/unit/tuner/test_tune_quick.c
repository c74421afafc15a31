/*
 * test_tune_quick.c: quick answers against all plans of a space one by one,
 * their bounds, and what they say where nothing fits.
 */
#include "spec/catalog/catalog.h"
#include "tests/check.h"
#include "tests/unit/small_model.h"
#include "tuner/answer/tune.h"
#include "tuner/search/evaluate.h"
#include "tuner/search/tune_quick.h"

#include <stdlib.h>

typedef struct fixture {
    fr_cluster cluster;
    fr_cost_model *costs;
    fr_model model;
    fr_job job;
    fr_plan_space_request request;
} fixture;

static void setup(fixture *f, const char *node, int64_t n_nodes)
{
    fr_err err;
    memset(f, 0, sizeof *f);
    CHECK_OK(fr_catalog_cluster(node, n_nodes, &f->cluster, &err), &err);
    CHECK_OK(fr_cost_model_create(NULL, &f->cluster, &f->costs, &err), &err);
    small_model(&f->model, 4, 32, 128, 5003, 4096);
    fr_job_init(&f->job);
    f->job.global_batch = 4;
    f->job.seq = 4096;
    f->request.model = &f->model;
    f->request.job = &f->job;
    f->request.cluster = &f->cluster;
    fr_plan_init(&f->request.base);
    f->request.base.precision = FR_DTYPE_BF16;
    f->request.base.is_flash = true;
    f->request.world = fr_cluster_slots(&f->cluster);
}

static void teardown(fixture *f)
{
    fr_cost_model_destroy(f->costs);
    fr_cluster_release(&f->cluster);
}

/* The fastest of all plans of the space, each simulated. */
static double fastest(const fixture *f)
{
    fr_plan_space space;
    fr_err err;
    double best_s = HUGE_VAL;
    CHECK_OK(fr_plan_space_create(&f->request, NULL, NULL, &space, &err), &err);
    for (size_t i = 0; i < space.plans.n; i++) {
        fr_evaluation found;
        fr_plan plan;
        fr_plan_space_plan(&space.request, &space.plans.items[i], &plan);
        CHECK_OK(fr_evaluate(&f->request, f->costs, &plan, &found, &err), &err);
        if (found.outcome == FR_OUTCOME_SIMULATED)
            best_s = fmin(best_s, found.prediction.step_s);
    }
    fr_plan_space_release(&space);
    return best_s;
}

/* No faster than the best, seldom much slower; its own simulation. */
static void check_answer(const fixture *f, double worst)
{
    fr_quick one, three;
    fr_err err;
    fr_evaluation found;
    CHECK_OK(fr_tune_quick(&f->request, f->costs, 1, &one, &err), &err);
    CHECK_OK(fr_tune_quick(&f->request, f->costs, 3, &three, &err), &err);
    CHECK(memcmp(&one.plan, &three.plan, sizeof one.plan) == 0);
    CHECK(one.bound_s == three.bound_s && one.n_plans == three.n_plans);
    CHECK(one.has_plan && one.fits);
    CHECK_OK(fr_plan_check_lowerable(&one.plan, &f->model, &f->job, &err),
             &err);
    CHECK_OK(fr_evaluate(&f->request, f->costs, &one.plan, &found, &err), &err);
    CHECK(found.prediction.step_s == one.prediction.step_s);
    CHECK(one.bound_s <= one.prediction.step_s);
    CHECK_NEAR(one.gap, 1 - one.bound_s / one.prediction.step_s, 1e-12);
    CHECK_INT(one.is_proven, one.gap == 0);
    double best_s = fastest(f);
    CHECK(one.prediction.step_s >= best_s);
    if (!CHECK(one.prediction.step_s <= worst * best_s))
        printf("%.17g of %.17g\n", one.prediction.step_s, best_s);
}

static void test_against_all(void)
{
    fixture f;
    setup(&f, "hgx-a100-4", 1);
    f.request.pins = FR_PIN(PP);
    f.request.base.pp = 2;
    check_answer(&f, 1.05);
    teardown(&f);
}

/* Memory for the leanest plans alone. */
static void test_little_memory(void)
{
    fixture f;
    fr_quick found;
    fr_err err;
    setup(&f, "hgx-a100-4", 1);
    f.request.pins = FR_PIN(PP) | FR_PIN(TP);
    CHECK_OK(fr_tune_quick(&f.request, f.costs, 1, &found, &err), &err);
    f.cluster.devices[0].memory_bytes =
        found.prediction.memory.peak_bytes - (40 << 20);
    CHECK_OK(fr_tune_quick(&f.request, f.costs, 1, &found, &err), &err);
    CHECK(found.fits || found.may_fit || fastest(&f) == HUGE_VAL);
    f.cluster.devices[0].memory_bytes = 2ull << 30;
    CHECK_OK(fr_tune_quick(&f.request, f.costs, 1, &found, &err), &err);
    CHECK(found.has_plan && !found.fits && !found.may_fit);
    CHECK(found.short_by_bytes > 0);
    CHECK(fastest(&f) == HUGE_VAL);
    teardown(&f);
}

static void test_illegal(void)
{
    fixture f;
    fr_quick found;
    fr_err err;
    setup(&f, "hgx-a100-4", 1);
    f.request.pins = FR_PIN(TP);
    f.request.base.tp = 3;
    CHECK_FAILS(fr_tune_quick(&f.request, f.costs, 1, &found, &err), FR_INPUT,
                &err);
    CHECK_HAS(err.text, "no legal plan");
    teardown(&f);
}

/* Ranges that the user has named are walked, as pins are. */
static void test_ranges(void)
{
    fixture f;
    fr_quick found;
    fr_err err;
    fr_axis_range ranges[FR_SPACE_AXIS_N] = {0};
    setup(&f, "hgx-a100-4", 1);
    ranges[FR_SPACE_AXIS_ZERO] = (fr_axis_range){.n = 1, .at = {0}};
    ranges[FR_SPACE_AXIS_MICRO_BATCH] = (fr_axis_range){.n = 1, .at = {2}};
    f.request.ranges = ranges;
    CHECK_OK(fr_tune_quick(&f.request, f.costs, 1, &found, &err), &err);
    CHECK(found.has_plan && found.fits);
    CHECK_INT(found.plan.zero_stage, 0);
    CHECK_INT(found.plan.micro_batch, 2);
    teardown(&f);
}

/* A search of very many plans that is over at once has a usual one. */
static void test_no_time(void)
{
    fixture f;
    fr_tuning t;
    fr_err err;
    setup(&f, "dgx-h100", 2048);
    CHECK_OK(
        fr_model_load(NULL, "configs/models/llama-3-405b.json", &f.model, &err),
        &err);
    f.job.global_batch = 4096;
    fr_tune_options options = {.space = f.request,
                               .budget_s = 1e-9,
                               .is_best_only = true,
                               .n_threads = 1};
    if (CHECK_OK(fr_tune(&options, f.costs, &t, &err), &err)) {
        CHECK(t.best.plan != NULL && t.best.prediction.memory.fits);
        CHECK(!t.certificate.optimal_in_space && t.space.simulated > 0);
        fr_tuning_release(&t);
    }
    fr_model_release(&f.model);
    teardown(&f);
}

CHECK_MAIN({"against_all", test_against_all},
           {"little_memory", test_little_memory}, {"illegal", test_illegal},
           {"ranges", test_ranges}, {"no_time", test_no_time})
