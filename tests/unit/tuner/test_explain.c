/*
 * test_explain.c: elasticities against what arithmetic says of them, single
 * changes of a plan, and the same answer for any number of threads.
 */
#include "report/explanation_report.h"
#include "spec/catalog/catalog.h"
#include "spec/cluster/cluster_knobs.h"
#include "tests/check.h"
#include "tests/rendered.h"
#include "tests/unit/tuner/explain_fixture.h"
#include "tuner/search/evaluate.h"
#include "tuner/study/explain_plan.h"
#include "tuner/study/plan_changes.h"

#include <stdlib.h>

static void setup(explain_fixture *f, const char *node, int64_t n_nodes)
{
    fr_err err;
    memset(f, 0, sizeof *f);
    CHECK_OK(fr_catalog_cluster(node, n_nodes, &f->cluster, &err), &err);
    explain_fixture_open(f, 8, 64, 1024);
}

static void explain(explain_fixture *f, fr_explanation *out)
{
    fr_err err;
    fr_evaluation found;
    fr_plan_space_request alone = {
        .model = &f->model, .job = &f->job, .cluster = &f->cluster};
    memset(out, 0, sizeof *out);
    CHECK_OK(fr_evaluate(&alone, f->costs, &f->plan, &found, &err), &err);
    f->request.prediction = &found.prediction;
    CHECK_OK(fr_explain_plan(&f->request, out, &err), &err);
}

/* One GPU knows no links; arithmetic and memory share the step, and what is
 * left is launches: all between 0 and 1. */
static void test_one_gpu(void)
{
    explain_fixture f;
    fr_explanation e;
    setup(&f, "dgx-h100", 1);
    f.plan.micro_batch = 8;
    explain(&f, &e);
    CHECK(e.of[FR_RESOURCE_FLOPS].is_known);
    for (int i = FR_RESOURCE_NODE_LINKS; i < FR_RESOURCE_N; i++)
        CHECK_NEAR(e.of[i].elasticity, 0, 0);
    double flops = -e.of[FR_RESOURCE_FLOPS].elasticity;
    double memory = -e.of[FR_RESOURCE_MEMORY_RATE].elasticity;
    CHECK(flops > 0.1 && memory > 0.1);
    CHECK(flops + memory < 1);
    CHECK_NEAR(e.share[0] + e.share[1] + e.fixed_share, 1, 1e-9);
    CHECK(e.of[FR_RESOURCE_FLOPS].less_s > e.prediction.expected_step_s);
    CHECK(e.of[FR_RESOURCE_FLOPS].more_s < e.prediction.expected_step_s);
    CHECK(e.bubble_share == 0);
    explain_fixture_close(&f);
}

/* Tensor parallelism over a slow network: nothing else matters. */
static void test_network_bound(void)
{
    explain_fixture f;
    fr_explanation e;
    setup(&f, "g5.48xlarge", 2);
    f.cluster.node_types[0].nic_Bps *= 1e-4;
    fr_cost_model_destroy(f.costs);
    fr_err err;
    CHECK_OK(fr_cost_model_create(NULL, &f.cluster, &f.costs, &err), &err);
    f.request.costs = f.costs;
    f.plan.tp = 16;
    explain(&f, &e);
    CHECK_STR(e.bound_by, "network");
    CHECK_WITHIN(e.of[FR_RESOURCE_NETWORK].elasticity, -1, 0.02);
    CHECK(e.n_fitting > 0 && e.changes[0].diff < -0.3);
    explain_fixture_close(&f);
}

/* Four pairs, each over two racks, through an uplink of one NIC. */
static void test_switch_bound(void)
{
    explain_fixture f;
    fr_explanation e;
    fr_err err;
    setup(&f, "hgx-a100-4", 8);
    fr_cost_model_destroy(f.costs);
    f.costs = NULL;
    CHECK_OK(fr_cluster_knob_turn(
                 NULL,
                 fr_cluster_knob_at(fr_cluster_knob_find("gpus-per-node")),
                 &f.cluster, "1", &err),
             &err);
    f.cluster.node_types[0].nic_Bps = 1e9;
    f.cluster.fabric.kind = FR_FABRIC_FAT_TREE;
    f.cluster.fabric.n_levels = 2;
    f.cluster.fabric.levels[0] =
        (fr_fabric_level){.n_down = 4, .oversubscription = 4};
    f.cluster.fabric.levels[1] =
        (fr_fabric_level){.n_down = 2, .oversubscription = 1};
    CHECK_OK(fr_cost_model_create(NULL, &f.cluster, &f.costs, &err), &err);
    f.request.costs = f.costs;
    f.job.global_batch = 8;
    f.plan.dp = 2;
    f.plan.pp = 4;
    f.plan.rank_order = FR_RANK_ORDER_PP_TP_DP;
    explain(&f, &e);
    CHECK_STR(e.bound_by, "switches");
    CHECK(e.of[FR_RESOURCE_SWITCHES].elasticity >=
          e.of[FR_RESOURCE_NETWORK].elasticity - 1e-9);
    CHECK(e.share[FR_RESOURCE_SWITCHES] > 0.3);
    explain_fixture_close(&f);
}

static void test_bubble_bound(void)
{
    explain_fixture f;
    fr_explanation e;
    setup(&f, "dgx-h100", 1);
    f.plan.pp = 8;
    f.job.global_batch = 2; /* two micro-batches through eight stages */
    explain(&f, &e);
    CHECK_STR(e.bound_by, "bubble");
    CHECK(e.bubble_share > 0.5);
    explain_fixture_close(&f);
}

/* Copies to the host, samples that come slowly and kernels that are launched
 * one by one bind as they are, not as arithmetic or waiting in a pipeline. */
static void test_host_bound(void)
{
    explain_fixture f;
    fr_explanation e;
    setup(&f, "dgx-h100", 1);
    f.plan.micro_batch = 8;
    f.plan.activation_offload_frac = 1;
    f.cluster.node_types[0].host_link_Bps *= 0.01;
    explain(&f, &e);
    CHECK_STR(e.bound_by, "host");
    CHECK_WITHIN(e.of[FR_RESOURCE_HOST].elasticity, -1, 0.05);
    bool is_listed = false;
    for (int i = 0; i < e.n_changes; i++)
        is_listed = is_listed || strcmp(e.changes[i].what,
                                        "without offload-activations") == 0;
    CHECK(is_listed);
    explain_fixture_close(&f);
}

static void test_input_bound(void)
{
    explain_fixture f;
    fr_explanation e;
    setup(&f, "dgx-h100", 1);
    f.job.decode_s = 0.5;
    explain(&f, &e);
    CHECK_STR(e.bound_by, "input");
    CHECK_NEAR(e.of[FR_RESOURCE_INPUT].elasticity, -1, 1e-3);
    CHECK(!e.of[FR_RESOURCE_HOST].is_known);
    f.job.decode_s = 0;
    explain(&f, &e);
    CHECK(!e.of[FR_RESOURCE_INPUT].is_known);
    explain_fixture_close(&f);
}

static void test_fixed_bound(void)
{
    explain_fixture f;
    fr_explanation e;
    setup(&f, "dgx-h100", 1);
    f.job.global_batch = 1;
    f.job.seq = 64;
    explain(&f, &e);
    CHECK(e.fixed_share > 0.5);
    CHECK_STR(e.bound_by, "fixed");
    explain_fixture_close(&f);
}

/* A plan that does not fit is bound by memory, and the changes that fit come
 * first. */
static void test_memory_bound(void)
{
    explain_fixture f;
    fr_explanation e;
    setup(&f, "hgx-a100-4", 1);
    f.plan.dp = 4;
    f.plan.micro_batch = 16;
    f.cluster.devices[0].memory_bytes = 6ull << 30;
    explain(&f, &e);
    CHECK_STR(e.bound_by, "memory");
    CHECK(!e.prediction.memory.fits);
    CHECK(e.n_fitting > 0);
    for (int i = 0; i < e.n_changes; i++) {
        const fr_plan_change *at = &e.changes[i];
        CHECK_INT(at->fits, i < e.n_fitting);
        CHECK_INT(at->fits, at->short_by_bytes == 0);
        if (i > 0 && i < e.n_fitting)
            CHECK(at->step_s >= e.changes[i - 1].step_s);
    }
    explain_fixture_close(&f);
}

static void test_changes(void)
{
    explain_fixture f;
    fr_changed_plan changed[FR_PLAN_CHANGES];
    char name[FR_TUNED_NAME], first[FR_TUNED_NAME];
    setup(&f, "dgx-h100", 4);
    f.plan.dp = 4;
    f.plan.tp = 2;
    f.plan.pp = 4;
    f.plan.zero_stage = 1;
    f.plan.n_split = 4;
    size_t n = fr_plan_changes(&f.plan, &f.model, &f.cluster, false, changed,
                               FR_PLAN_CHANGES);
    CHECK(n > 25 && n < FR_PLAN_CHANGES);
    fr_plan_describe(&f.plan, first, sizeof first);
    for (size_t i = 0; i < n; i++) {
        const fr_plan *plan = &changed[i].plan;
        CHECK(plan->ep != 1 || fr_plan_world(plan) == 32);
        CHECK(plan->compressor == FR_COMPRESSOR_NONE);
        CHECK(memcmp(plan, &f.plan, sizeof *plan) != 0);
        if (plan->pp != 4)
            CHECK_INT(plan->n_split, 0);
        for (size_t k = 0; k < i; k++)
            CHECK(strcmp(changed[k].what, changed[i].what) != 0);
    }
    size_t n_lossy = fr_plan_changes(&f.plan, &f.model, &f.cluster, true,
                                     changed, FR_PLAN_CHANGES);
    CHECK_INT(n_lossy, n + FR_COMPRESSOR_N - 1);
    CHECK_HAS(fr_plan_describe(&changed[n].plan, name, sizeof name), "bf16");
    CHECK_INT(fr_plan_changes(&f.plan, &f.model, &f.cluster, true, changed, 3),
              3);
    explain_fixture_close(&f);
}

static char *as_json(explain_fixture *f, int n_threads)
{
    fr_explanation e;
    fr_buffer text;
    fr_document answer;
    f->request.n_threads = n_threads;
    explain(f, &e);
    fr_document_init(&answer, NULL);
    fr_report_explanation(&e, 10, &answer);
    check_rendered(&answer, &fr_render_json, NULL, &text);
    return text.data;
}

static void test_threads(void)
{
    explain_fixture f;
    setup(&f, "dgx-h100", 2);
    f.plan.dp = 4;
    f.plan.tp = 2;
    f.plan.pp = 2;
    char *one = as_json(&f, 1), *three = as_json(&f, 3);
    CHECK_STR(one, three);
    free(one);
    free(three);
    explain_fixture_close(&f);
}

/* Times of the model, twice as long: everything is, but the host's. */
static void test_scale(void)
{
    explain_fixture f;
    fr_explanation one, two;
    setup(&f, "dgx-h100", 2);
    f.plan.dp = 16;
    f.plan.execution.cuda_graphs = FR_CUDA_GRAPHS_FULL;
    f.plan.zero_stage = 1;
    explain(&f, &one);
    const fr_cost_scale twice = {2, {2, 2}, {2, 2}};
    fr_cost_model_scale(f.costs, &twice);
    explain(&f, &two);
    CHECK_NEAR(two.prediction.step_s, 2 * one.prediction.step_s, 1e-3);
    explain_fixture_close(&f);
}

CHECK_MAIN({"one_gpu", test_one_gpu}, {"network_bound", test_network_bound},
           {"switch_bound", test_switch_bound},
           {"bubble_bound", test_bubble_bound}, {"host_bound", test_host_bound},
           {"input_bound", test_input_bound}, {"fixed_bound", test_fixed_bound},
           {"memory_bound", test_memory_bound}, {"changes", test_changes},
           {"threads", test_threads}, {"scale", test_scale})
