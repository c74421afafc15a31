/*
 * test_break_even.c: where compression of gradients is said to begin to pay,
 * held against simulations on clusters whose links were turned by the knobs
 * of sweep: a tenth below the rate and a tenth above it.
 */
#include "report/compression_report.h"
#include "spec/catalog/catalog.h"
#include "spec/cluster/cluster_knobs.h"
#include "tests/check.h"
#include "tests/rendered.h"
#include "tests/unit/tuner/explain_fixture.h"
#include "tuner/search/evaluate.h"
#include "tuner/study/break_even.h"

typedef struct problem {
    const char *node;
    int64_t n_nodes;
    int32_t dp, tp, pp;
    int zero_stage;
    bool is_overlap;
    double nic_multiple; /* of the catalogue's */
    const char *knob;    /* of the links that gradients go through */
} problem;

static const problem problems[] = {
    {"dgx-h100", 2, 2, 8, 1, 0, true, 1, "nic"},
    {"dgx-h100", 4, 4, 8, 1, 0, false, 0.13, "nic"},
    {"dgx-a100", 2, 4, 4, 1, 1, true, 0.31, "nic"},
    {"g5.48xlarge", 2, 2, 8, 1, 0, true, 1, "nic"},
    {"g5.48xlarge", 4, 8, 2, 2, 0, true, 1, "nic"},
    {"hgx-a100-4", 1, 4, 1, 1, 0, true, 1, "nvlink"},
    {"hgx-a100-4", 1, 2, 2, 1, 0, false, 1, "nvlink"},
    {"g5.48xlarge", 1, 8, 1, 1, 0, true, 1, "nvlink"},
};
enum { N_PROBLEMS = sizeof problems / sizeof problems[0] };

static void turn(fr_cluster *cluster, const char *knob, double factor)
{
    char text[40];
    fr_err err;
    snprintf(text, sizeof text, "x%.17g", factor);
    const fr_cluster_knob *found =
        fr_cluster_knob_at(fr_cluster_knob_find(knob));
    CHECK_OK(fr_cluster_knob_turn(NULL, found, cluster, text, &err), &err);
}

static void setup(explain_fixture *f, const problem *p)
{
    fr_err err;
    memset(f, 0, sizeof *f);
    CHECK_OK(fr_catalog_cluster(p->node, p->n_nodes, &f->cluster, &err), &err);
    if (p->nic_multiple != 1)
        turn(&f->cluster, "nic", p->nic_multiple);
    explain_fixture_open(f, 6, 32, 512);
    f->plan.dp = p->dp;
    f->plan.tp = p->tp;
    f->plan.pp = p->pp;
    f->plan.zero_stage = p->zero_stage;
    f->plan.is_overlap = p->is_overlap;
}

/* The step under a compressor, links turned; 0: it cannot be. */
static double simulate(const explain_fixture *f, const char *knob,
                       double factor, fr_compressor_kind kind)
{
    fr_err err;
    fr_cluster turned;
    fr_cost_model *costs = NULL;
    fr_evaluation found;
    fr_plan plan = f->plan;
    plan.compressor = kind;
    CHECK_OK(fr_cluster_copy(&f->cluster, &turned, &err), &err);
    turn(&turned, knob, factor);
    CHECK_OK(fr_cost_model_create(NULL, &turned, &costs, &err), &err);
    fr_plan_space_request request = {
        .model = &f->model, .job = &f->job, .cluster = &turned, .base = plan};
    CHECK_OK(fr_evaluate(&request, costs, &plan, &found, &err), &err);
    fr_cost_model_destroy(costs);
    fr_cluster_release(&turned);
    return found.prediction.step_s;
}

static bool does_pay(const explain_fixture *f, const char *knob, double factor,
                     int i)
{
    return simulate(f, knob, factor, (fr_compressor_kind)(i + 1)) <
           simulate(f, knob, factor, FR_COMPRESSOR_NONE);
}

/* Both sides of one end of a range, unless another end is as near. */
static void check_end(const explain_fixture *f, const problem *p, int i,
                      double factor, bool pays_below)
{
    CHECK_INT(does_pay(f, p->knob, 0.9 * factor, i), pays_below);
    CHECK_INT(does_pay(f, p->knob, 1.1 * factor, i), !pays_below);
}

static int check_compressor(const explain_fixture *f, const problem *p,
                            const fr_break_even *found, int i)
{
    const fr_compression *of = &found->of[i];
    int n_ends = 0;
    bool pays_at_least = of->n_pays > 0 && of->pays[0].from <= 0;
    bool pays_at_most =
        of->n_pays > 0 && !isfinite(of->pays[of->n_pays - 1].to);
    CHECK_INT(of->verdict == FR_VERDICT_PAYS, does_pay(f, p->knob, 1, i));
    CHECK_INT(pays_at_least, does_pay(f, p->knob, found->least, i));
    CHECK_INT(pays_at_most, does_pay(f, p->knob, found->most, i));
    for (int k = 0; k < of->n_pays; k++) {
        const fr_rate_range *at = &of->pays[k];
        CHECK(at->from < at->to);
        CHECK(k == 0 || of->pays[k - 1].to < at->from);
        if (at->from > 0 && ++n_ends)
            check_end(f, p, i, at->from, false);
        if (isfinite(at->to) && ++n_ends)
            check_end(f, p, i, at->to, true);
    }
    return n_ends;
}

static void test_both_sides(void)
{
    int n_ends = 0, n_paying = 0;
    for (int k = 0; k < N_PROBLEMS; k++) {
        explain_fixture f;
        fr_break_even found;
        fr_err err;
        setup(&f, &problems[k]);
        CHECK_OK(fr_break_even_find(&f.request, &found, &err), &err);
        CHECK_INT(found.n, FR_COMPRESSOR_N - 1);
        CHECK_INT(found.link, strcmp(problems[k].knob, "nic") == 0
                                  ? FR_RESOURCE_NETWORK
                                  : FR_RESOURCE_NODE_LINKS);
        for (int i = 0; i < found.n; i++) {
            if (found.of[i].verdict == FR_VERDICT_ILLEGAL) {
                CHECK(problems[k].zero_stage > 0 && found.of[i].why[0] != '\0');
                continue;
            }
            n_ends += check_compressor(&f, &problems[k], &found, i);
            n_paying += found.of[i].verdict == FR_VERDICT_PAYS;
        }
        explain_fixture_close(&f);
    }
    CHECK(n_ends >= 12);
    CHECK(n_paying >= 3);
}

/* The compressor of the plan itself is one of the table: the same answer. */
static void test_own_compressor(void)
{
    explain_fixture f;
    fr_break_even plain, compressed;
    fr_err err;
    setup(&f, &problems[0]);
    CHECK_OK(fr_break_even_find(&f.request, &plain, &err), &err);
    f.plan.compressor = FR_COMPRESSOR_INT8;
    f.request.n_threads = 3;
    CHECK_OK(fr_break_even_find(&f.request, &compressed, &err), &err);
    CHECK(memcmp(&plain, &compressed, sizeof plain) == 0);
    f.plan.dp = 1;
    f.plan.tp = 16;
    CHECK_OK(fr_break_even_find(&f.request, &plain, &err), &err);
    CHECK_INT(plain.n, 0);
    explain_fixture_close(&f);
}

/* State for which there is no room: said, with the times that it would have. */
static void test_too_large(void)
{
    explain_fixture f;
    fr_break_even found;
    fr_err err;
    fr_evaluation plain;
    setup(&f, &problems[5]);
    fr_plan_space_request request = {.model = &f.model,
                                     .job = &f.job,
                                     .cluster = &f.cluster,
                                     .base = f.plan};
    CHECK_OK(fr_evaluate(&request, f.costs, &f.plan, &plain, &err), &err);
    f.cluster.devices[0].memory_bytes =
        plain.prediction.memory.peak_bytes + f.cluster.devices[0].memory_bytes -
        plain.prediction.memory.capacity_bytes + (1 << 20);
    CHECK_OK(fr_break_even_find(&f.request, &found, &err), &err);
    CHECK(found.plain_fits);
    const fr_compression *int8 = &found.of[FR_COMPRESSOR_INT8 - 1];
    CHECK_INT(int8->verdict, FR_VERDICT_TOO_LARGE);
    CHECK(int8->short_by_bytes > 0 && int8->step_s > 0);
    explain_fixture_close(&f);
}

static void test_text(void)
{
    fr_break_even made = {.link = FR_RESOURCE_NETWORK,
                          .link_Bps = 25e9,
                          .least = 1.0 / 1024,
                          .most = 64,
                          .plain_s = 2,
                          .plain_fits = true,
                          .n = 2};
    fr_buffer text;
    fr_document answer;
    made.of[0] = (fr_compression){.name = "one",
                                  .verdict = FR_VERDICT_PAYS,
                                  .step_s = 1.5,
                                  .diff = -0.25,
                                  .pays = {{0, 0.1}, {0.5, INFINITY}},
                                  .n_pays = 2};
    made.of[1] = (fr_compression){.name = "two",
                                  .verdict = FR_VERDICT_ILLEGAL,
                                  .why = "two is not to be had: buy three"};
    fr_document_init(&answer, NULL);
    fr_report_compression(&made, &answer);
    check_rendered(&answer, &fr_render_text, NULL, &text);
    const char *said = fr_buffer_text(&text);
    CHECK_HAS(said, "below 20 Gb/s and above 100 Gb/s\n");
    CHECK_HAS(said, "two is not to be had\n");
    CHECK_HAS(said, "one gradients make the step 25.0 % shorter at 200 Gb/s");
    fr_buffer_release(&text);
    made.of[0].verdict = FR_VERDICT_NOT;
    fr_document_init(&answer, NULL);
    fr_report_compression(&made, &answer);
    check_rendered(&answer, &fr_render_text, NULL, &text);
    CHECK_HAS(fr_buffer_text(&text), "do not compress gradients");
    fr_buffer_release(&text);
}

CHECK_MAIN({"both_sides", test_both_sides},
           {"own_compressor", test_own_compressor},
           {"too_large", test_too_large}, {"text", test_text})
