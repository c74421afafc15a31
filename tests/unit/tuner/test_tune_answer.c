/*
 * test_tune_answer.c: what stands around the best plan, on CPUs and on GPUs:
 * ties with the more robust first, the baselines of one device and one node,
 * whether to distribute, batches, and the choice by measurement.
 */
#include "plan/decide/plan.h"
#include "tests/check.h"
#include "tuner/answer/tune.h"
#include "tuner/search/search_run.h"

#include <math.h>

static const char hosts[] =
    "<cluster name=\"hosts\">\n"
    "  <device id=\"core\" kind=\"cpu\" cores=\"2\" memory=\"3GiB\"\n"
    "          memory-bandwidth=\"21.3GB/s\">\n"
    "    <peak dtype=\"fp32\" rate=\"97.3GFLOP/s\"/>\n"
    "  </device>\n"
    "  <node-type id=\"host\" device=\"core\">\n"
    "    <intra kind=\"shared-memory\" bandwidth=\"7.9GB/s\"\n"
    "           latency=\"1.3us\"/>\n"
    "    <nic count=\"1\" bandwidth=\"1Gb/s\" latency=\"50us\"/>\n"
    "  </node-type>\n"
    "  <group id=\"host\" node-type=\"host\" count=\"2\"/>\n"
    "  <fabric kind=\"switch\"/>\n"
    "</cluster>\n";

static const char boxes[] =
    "<cluster name=\"boxes\">\n"
    "  <device id=\"gpu\" kind=\"gpu\" memory=\"80GiB\"\n"
    "          memory-bandwidth=\"3350GB/s\" power=\"691W\">\n"
    "    <peak dtype=\"fp32\" rate=\"67TFLOP/s\"/>\n"
    "    <peak dtype=\"bf16\" rate=\"989TFLOP/s\"/>\n"
    "  </device>\n"
    "  <node-type id=\"box\" device=\"gpu\" devices=\"2\"\n"
    "             price=\"11.3USD/h\">\n"
    "    <intra kind=\"nvswitch\" bandwidth=\"450GB/s\" latency=\"2us\"/>\n"
    "    <nic count=\"2\" bandwidth=\"200Gb/s\" latency=\"5us\"/>\n"
    "  </node-type>\n"
    "  <group id=\"box\" node-type=\"box\" count=\"3\"/>\n"
    "  <fabric kind=\"switch\"/>\n"
    "</cluster>\n";

typedef struct fixture {
    fr_cluster cluster;
    fr_model model;
    fr_job job;
    fr_goal goal;
    fr_cost_model *costs;
    fr_tune_options options;
    fr_tuning t;
} fixture;

static bool setup(fixture *f, const char *xml)
{
    fr_err err;
    memset(f, 0, sizeof *f);
    if (!CHECK_OK(
            fr_cluster_parse("c.xml", xml, strlen(xml), &f->cluster, &err),
            &err))
        return false;
    CHECK_OK(fr_cost_model_create(NULL, &f->cluster, &f->costs, &err), &err);
    fr_model_init(&f->model);
    snprintf(f->model.name, sizeof f->model.name, "small");
    bool is_gpu = xml == boxes;
    f->model.n_layers = is_gpu ? 4 : 2;
    f->model.n_heads = f->model.n_kv_heads = 4;
    f->model.head_dim = is_gpu ? 128 : 24;
    f->model.hidden = 4 * f->model.head_dim;
    f->model.ffn_hidden = 4 * f->model.hidden;
    f->model.vocab = 3001;
    f->model.max_seq = 512;
    fr_job_init(&f->job);
    f->job.global_batch = is_gpu ? 12 : 4;
    f->job.seq = is_gpu ? 512 : 64;
    fr_goal_init(&f->goal);
    f->options = (fr_tune_options){
        .space = {.model = &f->model, .job = &f->job, .cluster = &f->cluster},
        .goal = &f->goal,
        .is_exact = true,
        .n_alternatives = 12,
        .n_threads = 1};
    fr_plan_init(&f->options.space.base);
    if (is_gpu)
        f->options.space.base.precision = FR_DTYPE_BF16;
    return true;
}

static bool tune(fixture *f)
{
    fr_err err;
    return CHECK_OK(fr_tune(&f->options, f->costs, &f->t, &err), &err);
}

static void teardown(fixture *f)
{
    fr_tuning_release(&f->t);
    fr_cost_model_destroy(f->costs);
    fr_cluster_release(&f->cluster);
}

/* The best has the least value; then ties, none more robust than the one
 * before; then the rest by value. */
static void check_order(const fr_tuning *t)
{
    const fr_tuned_list *list = &t->alternatives;
    const double step_s = t->best.prediction.step_s;
    size_t n_ties = 0;
    while (n_ties < list->n && list->at[n_ties].is_tie)
        n_ties++;
    for (size_t i = 0; i < list->n; i++) {
        CHECK(list->at[i].value >= t->best.value);
        CHECK(list->at[i].is_tie == (i < n_ties));
        if (i > 0 && i < n_ties)
            CHECK(fr_robustness_compare(&list->at[i - 1].prediction,
                                        &list->at[i].prediction, step_s) <= 0);
        if (i > n_ties)
            CHECK(list->at[i].value >= list->at[i - 1].value);
        if (t->robust.plan != NULL && list->at[i].is_tie)
            CHECK(fr_robustness_compare(&t->robust.prediction,
                                        &list->at[i].prediction, step_s) <= 0);
    }
    CHECK(n_ties > 0);
    if (t->robust.plan != NULL) {
        CHECK(fr_robustness_compare(&t->robust.prediction, &t->best.prediction,
                                    step_s) < 0);
        CHECK(t->robust.why[0] != '\0' && t->robust.value >= t->best.value);
    }
}

static void test_ties(void)
{
    const char *const clusters[] = {hosts, boxes};
    for (int i = 0; i < 2; i++) {
        fixture f;
        if (!setup(&f, clusters[i]))
            return;
        if (tune(&f)) {
            check_order(&f.t);
            printf("  %s: more robust than the best: %s\n", f.cluster.name,
                   f.t.robust.plan != NULL ? f.t.robust.why : "none");
        }
        teardown(&f);
    }
}

/* By hand: each criterion decides only where those before are equal. */
static void test_robustness(void)
{
    fr_prediction a = {.step_s = 1, .step_s_p5 = 0.9, .step_s_p95 = 1.1};
    char why[160];
    a.memory.p_fits = 0.97;
    a.breakdown_s[FR_PART_EXPOSED_DP] = 0.11;
    fr_prediction b = a;
    CHECK_INT(fr_robustness_compare(&a, &b, 1), 0);
    b.step_s_p95 = 1.15;
    CHECK(fr_robustness_compare(&a, &b, 1) < 0);
    b.breakdown_s[FR_PART_EXPOSED_DP] = 0.07;
    b.breakdown_s[FR_PART_EXPOSED_TP] = 0.02;
    CHECK(fr_robustness_compare(&a, &b, 1) > 0);
    CHECK_STR(fr_robustness_why(&a, &b, why, sizeof why),
              "waits for others 9 % of the step instead of 11 %");
    b.memory.p_fits = 0.93;
    CHECK(fr_robustness_compare(&a, &b, 1) < 0);
    b = a;
    b.breakdown_s[FR_PART_EXPOSED_DP] = 0.1149; /* less than a percent */
    CHECK_INT(fr_robustness_compare(&a, &b, 1), 0);
}

/* Against searches of the smaller spaces themselves. */
static void test_baselines(void)
{
    const char *const clusters[] = {hosts, boxes};
    for (int i = 0; i < 2; i++) {
        fixture f, alone;
        if (!setup(&f, clusters[i]) || !setup(&alone, clusters[i]))
            return;
        alone.options.space.world = 1;
        if (tune(&f) && tune(&alone)) {
            const fr_tuned *one = &f.t.baselines[FR_BASELINE_DEVICE].tuned;
            const fr_tuned *node = &f.t.baselines[FR_BASELINE_NODE].tuned;
            CHECK(one->plan != NULL && node->plan != NULL);
            CHECK_NEAR(one->value, alone.t.best.value, 0);
            CHECK_INT(one->n_ranks, 1);
            CHECK_INT(node->n_nodes, 1);
            CHECK(node->value <= one->value);
            CHECK(f.t.best.value <= node->value);
            CHECK(f.t.advice[0] != '\0' && f.t.advised_ranks > 0);
        }
        teardown(&f);
        teardown(&alone);
    }
}

/* Three nodes of two, one rank asked too much of: pins do not keep the
 * baselines out, and a smaller world is said to be better where it is. */
static void test_do_not_distribute(void)
{
    fixture f;
    if (!setup(&f, boxes))
        return;
    f.goal.kind = FR_GOAL_THROUGHPUT;
    if (tune(&f)) {
        CHECK_INT(f.t.best.n_ranks, 1);
        CHECK_INT(f.t.advised_ranks, 1);
        CHECK_HAS(f.t.advice, "Do not distribute: one device is best");
    }
    fr_tuning_release(&f.t);
    f.options.space.world = 6;
    if (tune(&f)) {
        CHECK_INT(f.t.best.n_ranks, 6);
        CHECK_INT(f.t.advised_ranks, 1);
        CHECK_HAS(f.t.advice, "Do not distribute: one device alone is better");
    }
    teardown(&f);
}

/* Six replicas have no place on one node of two: it has a plan of its own. */
static void test_pinned_beyond_a_node(void)
{
    fixture f;
    if (!setup(&f, boxes))
        return;
    f.options.space.base.dp = 6;
    f.options.space.base.tp = f.options.space.base.pp = 1;
    f.options.space.pins |= FR_PIN(DP) | FR_PIN(TP) | FR_PIN(PP);
    if (tune(&f)) {
        const fr_tuned *node = &f.t.baselines[FR_BASELINE_NODE].tuned;
        CHECK_INT(f.t.best.n_ranks, 6);
        CHECK_INT(node->n_nodes, 1);
        CHECK(node->n_ranks <= 2);
    }
    teardown(&f);
}

/* Two nodes of three are no divisor of the cluster. */
static void test_any_nodes(void)
{
    fixture f;
    if (!setup(&f, boxes))
        return;
    f.goal.kind = FR_GOAL_STEP;
    f.goal.most_devices = 5;
    if (tune(&f)) {
        CHECK_INT(f.t.best.n_ranks, 4);
        CHECK_INT(f.t.best.n_nodes, 2);
        for (size_t i = 0; i < f.t.alternatives.n; i++)
            CHECK(f.t.alternatives.at[i].n_ranks <= 5);
    }
    teardown(&f);
}

/* The batch is free under `loss` alone, and then the best of those tried. */
static void test_batches(void)
{
    fixture f;
    int64_t batches[FR_SEARCH_RUN_BATCHES];
    if (!setup(&f, boxes))
        return;
    f.goal =
        (fr_goal){.kind = FR_GOAL_LOSS, .tokens = 1e8, .critical_batch = 9000};
    size_t n = fr_search_run_batches(&f.goal, &f.job, batches);
    CHECK_INT(n, 10); /* 1 ... 256 and 12; the critical batch is 17.6 */
    CHECK_INT(batches[0], 16);
    CHECK_INT(batches[1], 12);
    CHECK_INT(batches[2], 32);
    double best = HUGE_VAL;
    f.options.is_best_only = true;
    f.options.space.pins = FR_PIN(TP) | FR_PIN(PP) | FR_PIN(RECOMPUTE);
    const int64_t own = f.job.global_batch;
    for (size_t i = 0; i < n; i++) {
        f.job.global_batch = batches[i];
        if (tune(&f))
            best = fmin(best, f.t.best.value);
        CHECK_INT(f.t.best.global_batch, batches[i]);
        fr_tuning_release(&f.t);
    }
    f.job.global_batch = own;
    f.options.is_batch_free = true;
    if (tune(&f)) {
        CHECK_NEAR(f.t.best.value, best, 0);
        CHECK(f.t.certificate.optimal_in_space);
        CHECK_HAS(f.t.goal.lr_rule, "lr ~");
    }
    teardown(&f);
}

static void test_choose(void)
{
    fixture f;
    if (!setup(&f, hosts))
        return;
    f.options.is_best_only = true;
    if (tune(&f) && CHECK(f.t.alternatives.n >= 2)) {
        char first[FR_TUNED_NAME], second[FR_TUNED_NAME];
        double bound = f.t.certificate.bound;
        snprintf(first, sizeof first, "%s", f.t.best.name);
        snprintf(second, sizeof second, "%s", f.t.alternatives.at[1].name);
        fr_tuning_choose(&f.t, 0);
        CHECK_STR(f.t.best.name, first);
        fr_tuning_choose(&f.t, 2);
        CHECK_STR(f.t.best.name, second);
        CHECK_STR(f.t.alternatives.at[0].name, first);
        CHECK_HAS(f.t.alternatives.at[0].why, "measured");
        CHECK_NEAR(f.t.certificate.gap, 1 - bound / f.t.best.value, 0);
    }
    teardown(&f);
}

CHECK_MAIN({"ties", test_ties}, {"robustness", test_robustness},
           {"baselines", test_baselines},
           {"do_not_distribute", test_do_not_distribute},
           {"pinned_beyond_a_node", test_pinned_beyond_a_node},
           {"any_nodes", test_any_nodes}, {"batches", test_batches},
           {"choose", test_choose})
