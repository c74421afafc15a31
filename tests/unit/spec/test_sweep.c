/*
 * test_sweep.c: keys and ranges, knobs of a cluster, curves worked out by
 * hand, and sweeps that must not depend on threads.
 */
#include "api/sweep/sweep_points.h"
#include "report/sweep_report.h"
#include "spec/catalog/catalog.h"
#include "spec/cluster/cluster_knobs.h"
#include "tests/check.h"
#include "tests/rendered.h"
#include "tests/unit/small_model.h"
#include "tuner/study/run_sweep.h"

#include <stdlib.h>

/* ---- keys and values ---------------------------------------------------- */

static const char *read_values(const char *text, char *buf, size_t n_buf)
{
    fr_sweep sweep;
    fr_err err = {FR_OK, ""};
    size_t used = 0;
    fr_sweep_init(&sweep);
    CHECK_OK(fr_sweep_add_key(&sweep, "key", &err), &err);
    if (fr_sweep_read_value(text, &sweep, &err) != FR_OK) {
        CHECK_INT(err.status, FR_USAGE);
        fr_sweep_release(&sweep);
        return "refused";
    }
    buf[0] = '\0';
    for (size_t i = 0; i < sweep.keys[0].n_values; i++)
        used += (size_t)snprintf(buf + used, n_buf - used, "%s%s",
                                 i > 0 ? " " : "", sweep.keys[0].values[i]);
    fr_sweep_release(&sweep);
    return buf;
}

static void test_ranges(void)
{
    static const struct {
        const char *text, *values;
    } rows[] = {
        {"8..64*2", "8 16 32 64"},
        {"8..65*2", "8 16 32 64"},
        {"3..7", "3 4 5 6 7"},
        {"1..10+4", "1 5 9"},
        {"100Gb/s..800Gb/s*2", "100Gb/s 200Gb/s 400Gb/s 800Gb/s"},
        {"100..400Gb/s*2", "100Gb/s 200Gb/s 400Gb/s"},
        {"x0.5..x2*2", "x0.5 x1 x2"},
        {"0.1..0.3+0.1", "0.1 0.2 0.3"},
        {"5..5*2", "5"},
        {"200Gb/s", "200Gb/s"},
        {"../up.xml", "../up.xml"},
        {"h100..b200", "h100..b200"},
        {"8..", "refused"},
        {"8..4*2", "refused"},
        {"0..4*2", "refused"},
        {"1..4*1", "refused"},
        {"1..4*0.5", "refused"},
        {"1..4+0", "refused"},
        {"1..4+-1", "refused"},
        {"1..4*nan", "refused"},
        {"1..1e300+1", "refused"},
        {"1..inf*2", "refused"},
        {"100Gb/s..800GB/s*2", "refused"},
        {"100Gb/s..800Gb/s", "refused"},
        {"x1..4*2", "refused"},
        {"1.5..3", "refused"},
        {"8..64*", "refused"},
        {"8..64*2*2", "refused"},
    };
    char buf[300];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        CHECK_STR(read_values(rows[i].text, buf, sizeof buf), rows[i].values);
}

static void test_keys(void)
{
    fr_sweep sweep;
    fr_err err;
    fr_sweep_init(&sweep);
    CHECK_OK(fr_sweep_add_key(&sweep, "nodes", &err), &err);
    CHECK_OK(fr_sweep_add_value(&sweep, "2", &err), &err);
    CHECK_FAILS(fr_sweep_add_value(&sweep, "2", &err), FR_USAGE, &err);
    CHECK_OK(fr_sweep_add_value(&sweep, "3", &err), &err);
    CHECK_FAILS(fr_sweep_add_key(&sweep, "nodes", &err), FR_USAGE, &err);
    CHECK_OK(fr_sweep_add_key(&sweep, "seq", &err), &err);
    for (int i = 0; i < 5; i++) {
        char text[16];
        snprintf(text, sizeof text, "%d", i);
        CHECK_OK(fr_sweep_add_value(&sweep, text, &err), &err);
    }
    CHECK_FAILS(fr_sweep_make_points(&sweep, 9, &err), FR_USAGE, &err);
    CHECK_OK(fr_sweep_make_points(&sweep, 10, &err), &err);
    CHECK_STR(fr_sweep_text_of(&sweep, 0, 0), "2");
    CHECK_STR(fr_sweep_text_of(&sweep, 7, 0), "3");
    CHECK_STR(fr_sweep_text_of(&sweep, 7, 1), "2");
    fr_sweep_release(&sweep);
}

/* ---- curves ------------------------------------------------------------- */

/* 4, 8, 16, 64 devices; the third of five values is not possible. */
static void test_curve_by_hand(void)
{
    static const struct {
        int64_t n_ranks;
        double tokens_per_s;
    } at[] = {{8, 780}, {4, 400}, {32, 0}, {16, 1300}, {64, 2100}};
    fr_sweep sweep;
    fr_err err;
    size_t curve[5];
    fr_sweep_init(&sweep);
    CHECK_OK(fr_sweep_add_key(&sweep, "nodes", &err), &err);
    for (int i = 0; i < 5; i++) {
        char text[16];
        snprintf(text, sizeof text, "%d", i);
        CHECK_OK(fr_sweep_add_value(&sweep, text, &err), &err);
    }
    CHECK_OK(fr_sweep_make_points(&sweep, 5, &err), &err);
    sweep.i_scale_key = 0;
    for (int i = 0; i < 5; i++) {
        sweep.points[i].n_ranks = at[i].n_ranks;
        sweep.points[i].tokens_per_s = at[i].tokens_per_s;
        sweep.points[i].tokens_per_s_per_rank =
            at[i].tokens_per_s / (double)at[i].n_ranks;
        sweep.points[i].is_feasible = at[i].tokens_per_s > 0;
        sweep.points[i].goal = 10 - i;
    }
    snprintf(sweep.goal, sizeof sweep.goal, "step");
    CHECK_OK(fr_sweep_finish(&sweep, &err), &err);
    CHECK_INT(sweep.n_feasible, 4);
    CHECK_INT(fr_sweep_curve(&sweep, 2, curve), 4);
    CHECK_INT(curve[0], 1);
    CHECK_INT(curve[3], 4);
    const fr_sweep_point *p = sweep.points;
    CHECK_NEAR(p[1].efficiency, 1, 0);
    CHECK(isnan(p[1].marginal));
    CHECK_NEAR(p[0].efficiency, 780.0 / 800, 1e-12);
    CHECK_NEAR(p[0].marginal, 380.0 / 400, 1e-12);
    CHECK_NEAR(p[3].efficiency, 1300.0 / 1600, 1e-12);
    CHECK_NEAR(p[3].marginal, 520.0 / 800, 1e-12);
    CHECK_NEAR(p[4].marginal, 800.0 / 4800, 1e-12);
    CHECK(isnan(p[2].efficiency));
    for (int i = 0; i < 5; i++) {
        CHECK_INT(p[i].is_knee, i == 3);
        CHECK_INT(p[i].is_best, i == 4);
    }
    fr_sweep_release(&sweep);
}

/* Dollars and speed by hand; a twin of a point on the front is on it. */
static void test_front(void)
{
    static const struct {
        double usd, tokens_per_s;
        bool is_pareto;
    } at[] = {{7, 900, true},  {3, 100, true}, {5, 100, false},
              {0, 999, false}, {3, 100, true}, {7, 850, false},
              {4, 300, true},  {9, 900, false}};
    enum { N = sizeof at / sizeof at[0] };
    fr_sweep sweep;
    fr_err err;
    fr_sweep_init(&sweep);
    CHECK_OK(fr_sweep_add_key(&sweep, "node", &err), &err);
    for (int i = 0; i < N; i++) {
        char text[16];
        snprintf(text, sizeof text, "%d", i);
        CHECK_OK(fr_sweep_add_value(&sweep, text, &err), &err);
    }
    CHECK_OK(fr_sweep_make_points(&sweep, N, &err), &err);
    for (int i = 0; i < N; i++) {
        sweep.points[i].is_feasible = true;
        sweep.points[i].tokens_per_s = at[i].tokens_per_s;
        sweep.points[i].usd_per_1e9_tokens = at[i].usd;
    }
    CHECK_OK(fr_sweep_finish(&sweep, &err), &err);
    for (int i = 0; i < N; i++)
        CHECK_INT(sweep.points[i].is_pareto, at[i].is_pareto);
    CHECK_INT(sweep.n_priced, 7);
    CHECK_INT(sweep.n_pareto, 4);
    /* If all parts that have a price name a run, its price counts. */
    for (int i = 0; i < N; i++) {
        sweep.points[i].is_pareto = false;
        sweep.points[i].run.usd = at[i].usd > 0 ? 10 - at[i].usd : 0;
        sweep.points[i].run.seconds = at[i].tokens_per_s;
    }
    CHECK_OK(fr_sweep_finish(&sweep, &err), &err);
    for (int i = 0; i < N; i++)
        CHECK_INT(sweep.points[i].is_pareto, i == 2 || i == 5 || i == 7);
    fr_sweep_release(&sweep);
}

/* ---- knobs -------------------------------------------------------------- */

static fr_status turn(fr_cluster *cluster, const char *knob, const char *to,
                      fr_err *err)
{
    int i = fr_cluster_knob_find(knob);
    CHECK(i >= 0);
    return fr_cluster_knob_turn(NULL, fr_cluster_knob_at(i), cluster, to, err);
}

static void test_knobs(void)
{
    fr_cluster base, c;
    fr_err err;
    CHECK_OK(fr_catalog_cluster("dgx-h100", 1, &base, &err), &err);
    CHECK_OK(fr_cluster_copy(&base, &c, &err), &err);
    CHECK(fr_cluster_hash(&base) == fr_cluster_hash(&c));
    CHECK_OK(turn(&c, "nodes", "24", &err), &err);
    CHECK_INT(fr_cluster_slots(&c), 192);
    CHECK_INT(c.fabric.kind, FR_FABRIC_RAIL);
    CHECK_INT(c.fabric.levels[0].n_down, 24);
    CHECK_OK(turn(&c, "nodes", "x0.5", &err), &err);
    CHECK_INT(fr_cluster_n_nodes(&c), 12);
    CHECK_OK(turn(&c, "nic", "100Gb/s", &err), &err);
    CHECK_NEAR(c.node_types[0].nic_Bps, 12.5e9, 0);
    CHECK_OK(turn(&c, "nic", "x3", &err), &err);
    CHECK_NEAR(c.node_types[0].nic_Bps, 37.5e9, 1e-12);
    CHECK_OK(turn(&c, "nvlink", "x0.5", &err), &err);
    CHECK_NEAR(c.node_types[0].intra_Bps, base.node_types[0].intra_Bps / 2, 0);
    CHECK_NEAR(c.node_types[0].intra_p2p_Bps,
               base.node_types[0].intra_p2p_Bps / 2, 0);
    CHECK_OK(turn(&c, "nics", "4", &err), &err);
    CHECK_INT(c.node_types[0].n_nics, 4);
    CHECK_INT(c.node_types[0].n_rails, 4);
    /* Above the one level of its rails there is no link. */
    CHECK_INT(turn(&c, "oversubscription", "2.5", &err), FR_INPUT);
    CHECK_OK(turn(&c, "price", "17.5USD/h", &err), &err);
    CHECK_NEAR(fr_cluster_usd_per_h(&c, 12, false), 12 * 17.5, 1e-12);
    CHECK_INT(turn(&c, "mtbf", "x2", &err), FR_INPUT);
    CHECK_OK(turn(&c, "mtbf", "50000h", &err), &err);
    CHECK_OK(turn(&c, "mtbf", "x2", &err), &err);
    CHECK_NEAR(c.device_mtbf_s, 1e5 * 3600, 1e-12);
    CHECK_OK(turn(&c, "restart", "5min", &err), &err);
    CHECK_NEAR(c.restart_s, 300, 1e-12);
    CHECK_OK(turn(&c, "spot-every", "200h", &err), &err);
    CHECK_NEAR(c.spot_interruption_per_h, 1 / 200.0, 1e-12);
    CHECK_OK(turn(&c, "spot-every", "x0.5", &err), &err);
    CHECK_NEAR(c.spot_interruption_per_h, 1 / 100.0, 1e-12);
    CHECK_OK(turn(&c, "jitter", "0.03", &err), &err);
    CHECK_NEAR(c.jitter_compute_frac, 0.03, 0);
    CHECK_OK(turn(&c, "jitter", "7%", &err), &err);
    CHECK_NEAR(c.jitter_compute_frac, 0.07, 1e-15);
    CHECK_OK(turn(&c, "jitter", "0", &err), &err);
    CHECK_NEAR(c.jitter_compute_frac, 0, 0);
    CHECK_INT(turn(&c, "slow", "0.9", &err), FR_INPUT);
    CHECK_OK(turn(&c, "slow", "1.25", &err), &err);
    CHECK_NEAR(c.slow[c.n_slow - 1].compute_frac, 0.8, 1e-12);
    CHECK_OK(turn(&c, "storage-write", "2GB/s", &err), &err);
    CHECK_NEAR(c.node_types[0].storage_write_Bps, 2e9, 1e-12);
    CHECK_OK(turn(&c, "gpu-price", "2.5USD/h", &err), &err);
    CHECK_NEAR(fr_cluster_usd_per_h(&c, 12, false), 12 * 8 * 2.5, 1e-12);
    CHECK_OK(turn(&c, "gpu", "b200", &err), &err);
    CHECK_STR(c.devices[0].id, "b200-sxm");
    CHECK_NEAR(c.node_types[0].intra_Bps, 900e9, 1e-9);
    CHECK_OK(turn(&c, "gpus-per-node", "4", &err), &err);
    CHECK_INT(fr_cluster_slots(&c), 48);
    CHECK_OK(turn(&c, "memory", "100GiB", &err), &err);
    CHECK(c.devices[0].memory_bytes == 100ull << 30);
    CHECK_OK(turn(&c, "flops", "x1.25", &err), &err);
    CHECK_NEAR(fr_device_peak_flops(&c.devices[0], "bf16"), 1.25 * 2250e12,
               1e-12);
    CHECK_OK(turn(&c, "node", "p5.48xlarge", &err), &err);
    CHECK_INT(fr_cluster_n_nodes(&c), 12);
    CHECK_STR(c.node_types[0].id, "p5.48xlarge");
    CHECK_OK(turn(&c, "cluster", "dgx-a100:3", &err), &err);
    CHECK_INT(fr_cluster_slots(&c), 24);
    fr_cluster_release(&c);
    fr_cluster_release(&base);
}

/* Two racks of equal nodes are counted through. */
static void test_equal_groups(void)
{
    static const char text[] =
        "<cluster name=\"racks\">"
        "<node-type id=\"other\" like=\"dgx-h100\"/>"
        "<group id=\"a\" node-type=\"dgx-h100\" count=\"5\"/>"
        "<group id=\"b\" node-type=\"other\" count=\"3\"/>"
        "<fabric kind=\"fat-tree\"><level down=\"4\"/><level down=\"2\"/>"
        "</fabric></cluster>";
    fr_cluster c;
    fr_err err;
    CHECK_OK(fr_cluster_parse("racks", text, strlen(text), &c, &err), &err);
    CHECK_OK(turn(&c, "nodes", "19", &err), &err);
    CHECK_INT(c.n_groups, 2);
    CHECK_INT(c.groups[0].n_nodes, 5);
    CHECK_INT(c.groups[1].n_nodes, 14);
    CHECK_OK(fr_cluster_check(&c, &err), &err);
    CHECK_OK(turn(&c, "nodes", "7", &err), &err);
    CHECK_INT(c.groups[1].n_nodes, 2);
    CHECK_OK(turn(&c, "nodes", "4", &err), &err);
    CHECK_INT(c.n_groups, 1);
    CHECK_INT(fr_cluster_n_nodes(&c), 4);
    CHECK_OK(fr_cluster_check(&c, &err), &err);
    fr_cluster_release(&c);
}

static void test_knobs_that_cannot(void)
{
    static const struct {
        const char *cluster, *knob, *to;
        fr_status status;
    } rows[] = {
        {"dgx-h100:2", "nodes", "0", FR_INPUT},
        {"dgx-h100:2", "nodes", "1.5", FR_USAGE},
        {"dgx-h100:2", "nodes", "x1.25", FR_INPUT},
        {"dgx-h100:2", "nodes", "-3", FR_USAGE},
        {"dgx-h100:2", "nic", "100", FR_USAGE},
        {"dgx-h100:2", "nic", "0Gb/s", FR_USAGE},
        {"dgx-h100:2", "nic", "x0", FR_USAGE},
        {"dgx-h100:2", "nic", "x-1", FR_USAGE},
        {"dgx-h100:2", "nic", "x", FR_USAGE},
        {"dgx-h100:2", "nic", "xnan", FR_USAGE},
        {"dgx-h100:2", "flops", "300TFLOP/s", FR_USAGE},
        {"dgx-h100:2", "gpu", "h1000", FR_INPUT},
        {"dgx-h100:2", "node", "dgx-z", FR_INPUT},
        {"dgx-h100:2", "oversubscription", "0.5", FR_INPUT},
        {"dgx-h100:2", "mtbf", "0h", FR_INPUT},
        {"dgx-h100:2", "restart", "0s", FR_INPUT},
        {"dgx-h100:2", "spot-every", "0h", FR_INPUT},
        {"dgx-h100:2", "jitter", "-0.1", FR_USAGE},
        {"torus-64", "nodes", "8", FR_INPUT},
        {"mixed-a100-v100", "nodes", "8", FR_INPUT},
        {"this-machine", "gpu", "h100", FR_INPUT},
        {"this-machine", "nodes", "2", FR_INPUT},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        fr_cluster cluster;
        fr_err err;
        if (!CHECK_OK(fr_cluster_load(NULL, rows[i].cluster, &cluster, &err),
                      &err))
            continue;
        CHECK_FAILS(turn(&cluster, rows[i].knob, rows[i].to, &err),
                    rows[i].status, &err);
        fr_cluster_release(&cluster);
    }
}

/* ---- sweeps ------------------------------------------------------------- */

typedef struct fixture {
    fr_cluster clusters[4];
    fr_cost_model *costs[4];
    fr_model model;
    fr_sweep sweep;
    fr_sweep_case cases[4];
} fixture;

/* 1, 2, 3, 4 nodes of four GPUs. */
static void setup(fixture *f)
{
    fr_err err;
    memset(f, 0, sizeof *f);
    small_model(&f->model, 6, 8, 64, 5003, 512);
    fr_sweep_init(&f->sweep);
    CHECK_OK(fr_sweep_add_key(&f->sweep, "nodes", &err), &err);
    for (int i = 0; i < 4; i++) {
        char text[16];
        snprintf(text, sizeof text, "%d", i + 1);
        CHECK_OK(fr_sweep_add_value(&f->sweep, text, &err), &err);
        CHECK_OK(fr_catalog_cluster("hgx-a100-4", i + 1, &f->clusters[i], &err),
                 &err);
        CHECK_OK(
            fr_cost_model_create(NULL, &f->clusters[i], &f->costs[i], &err),
            &err);
        fr_sweep_case *at = &f->cases[i];
        at->model = &f->model;
        at->cluster = &f->clusters[i];
        at->costs = f->costs[i];
        fr_job_init(&at->job);
        at->job.global_batch = 64;
        at->job.seq = 512;
        fr_plan_init(&at->plan);
        at->plan.precision = FR_DTYPE_BF16;
        at->plan.is_flash = true;
    }
    CHECK_OK(fr_sweep_make_points(&f->sweep, 4, &err), &err);
    f->sweep.i_scale_key = 0;
}

static void teardown(fixture *f)
{
    for (int i = 0; i < 4; i++) {
        fr_cost_model_destroy(f->costs[i]);
        fr_cluster_release(&f->clusters[i]);
    }
    fr_sweep_release(&f->sweep);
}

/* The batch of 64 over 12 ranks is a row with its reason. */
static void test_fixed(void)
{
    fixture f;
    fr_err err;
    setup(&f);
    fr_sweep_options options = {.is_fixed = true, .n_threads = 2};
    CHECK_OK(fr_sweep_run(f.cases, &options, &f.sweep, &err), &err);
    const fr_sweep_point *p = f.sweep.points;
    CHECK_INT(f.sweep.n_feasible, 3);
    CHECK_HAS(p[2].why, "global_batch 64");
    CHECK_INT(p[1].n_ranks, 8);
    CHECK_STR(p[1].plan, "dp8 tp1 pp1 mb1 1f1b bf16 flash");
    CHECK_NEAR(p[1].tokens_per_s, 64 * 512 / p[1].step_s, 1e-12);
    CHECK_NEAR(p[3].kwh_per_1e9_tokens,
               fr_cluster_power_w(&f.clusters[3], 4, p[3].busy_frac) / 3.6e6 *
                   1e9 / p[3].tokens_per_s,
               1e-9);
    CHECK(p[3].busy_frac > 0 && p[3].busy_frac < 1);
    CHECK_NEAR(p[3].efficiency, p[0].step_s / p[3].step_s / 4, 1e-9);
    CHECK(p[0].step_s_p5 <= p[0].step_s && p[0].step_s <= p[0].step_s_p95);
    teardown(&f);
}

static void test_weak(void)
{
    fixture f;
    fr_err err;
    setup(&f);
    fr_sweep_options options = {.is_fixed = true, .is_weak = true};
    CHECK_OK(fr_sweep_run(f.cases, &options, &f.sweep, &err), &err);
    CHECK_INT(f.sweep.n_feasible, 4);
    for (int i = 0; i < 4; i++) {
        CHECK_INT(f.sweep.points[i].global_batch, 64 * (i + 1));
        CHECK_NEAR(f.sweep.points[i].efficiency,
                   f.sweep.points[0].step_s / f.sweep.points[i].step_s, 1e-9);
    }
    teardown(&f);
}

static void test_tp_does_not_divide(void)
{
    fixture f;
    fr_err err;
    setup(&f);
    for (int i = 0; i < 4; i++)
        f.cases[i].plan.tp = 8;
    fr_sweep_options options = {.is_fixed = true};
    CHECK_OK(fr_sweep_run(f.cases, &options, &f.sweep, &err), &err);
    CHECK_INT(f.sweep.n_feasible, 2);
    CHECK_HAS(f.sweep.points[0].why, "do not divide 4");
    CHECK_HAS(f.sweep.points[2].why, "do not divide 12");
    teardown(&f);
}

/* Everything but the time that it took. */
static char *as_json(fr_sweep *sweep)
{
    fr_buffer text;
    fr_document answer;
    sweep->wall_s = 0;
    fr_document_init(&answer, NULL);
    fr_report_sweep(sweep, &answer);
    check_rendered(&answer, &fr_render_json, NULL, &text);
    return text.data;
}

static char *run_with(bool is_fixed, int n_threads)
{
    fixture f;
    fr_err err;
    setup(&f);
    for (int i = 0; i < 4; i++) {
        f.cases[i].plan.dp = f.cases[i].plan.pp = 1;
        f.cases[i].pins = FR_PIN(PP) | FR_PIN(TP) | FR_PIN(BUCKET);
    }
    fr_sweep_options options = {.is_fixed = is_fixed, .n_threads = n_threads};
    CHECK_OK(fr_sweep_run(f.cases, &options, &f.sweep, &err), &err);
    char *json = as_json(&f.sweep);
    teardown(&f);
    return json;
}

static void test_threads(void)
{
    for (int is_fixed = 0; is_fixed < 2; is_fixed++) {
        char *one = run_with(is_fixed, 1), *three = run_with(is_fixed, 3);
        CHECK_STR(one, three);
        free(one);
        free(three);
    }
}

/* A tuned point is no slower than the kept plan. */
static void test_tuned_is_no_worse(void)
{
    fixture kept, tuned;
    fr_err err;
    setup(&kept);
    setup(&tuned);
    fr_sweep_options options = {.is_fixed = true};
    CHECK_OK(fr_sweep_run(kept.cases, &options, &kept.sweep, &err), &err);
    options.is_fixed = false;
    for (int i = 0; i < 4; i++)
        tuned.cases[i].pins = FR_PIN(PP) | FR_PIN(BUCKET);
    CHECK_OK(fr_sweep_run(tuned.cases, &options, &tuned.sweep, &err), &err);
    for (int i = 0; i < 4; i++)
        if (kept.sweep.points[i].is_feasible)
            CHECK(tuned.sweep.points[i].step_s <= kept.sweep.points[i].step_s);
    teardown(&kept);
    teardown(&tuned);
}

/* ---- oversubscription --------------------------------------------------- */

/* Ratios at the leaves and above; what a turn of the knob leaves there. */
static void test_oversubscription(void)
{
    static const struct {
        double at[2];
        const char *knob, *value;
        double then[2]; /* 0: refused */
    } rows[] = {{{1, 1}, "oversubscription", "4", {4, 1}},
                {{4, 1}, "oversubscription", "1", {1, 1}},
                {{1, 4}, "oversubscription", "x2", {1, 8}},
                {{2, 4}, "oversubscription", "8", {0, 0}},
                {{2, 4}, "oversubscription.2", "8", {2, 8}},
                {{1, 1}, "oversubscription.1", "8", {8, 1}},
                {{1, 1}, "oversubscription.3", "8", {0, 0}},
                {{1, 1}, "oversubscription", "0.5", {0, 0}}};
    for (size_t i = 0; i < FR_LENGTH(rows); i++) {
        fr_cluster cluster;
        fr_err err = {0};
        CHECK_OK(fr_cluster_load(NULL, "selene-like", &cluster, &err), &err);
        for (int k = 0; k < 2; k++)
            cluster.fabric.levels[k].oversubscription = rows[i].at[k];
        fr_status status = fr_cluster_knob_turn(
            NULL, fr_cluster_knob_at(fr_cluster_knob_find(rows[i].knob)),
            &cluster, rows[i].value, &err);
        CHECK_INT(status == FR_OK, rows[i].then[0] > 0);
        for (int k = 0; k < 2 && status == FR_OK; k++)
            CHECK_NEAR(cluster.fabric.levels[k].oversubscription,
                       rows[i].then[k], 1e-12);
        fr_cluster_release(&cluster);
    }
}

/* A key whose values give one answer is said to have no effect; one of which
 * nothing could be compared is not. */
static void test_keys_without_effect(void)
{
    static const struct {
        double step_s[4]; /* 0: not possible; keys a (slow) and b */
        bool acts[2];
    } rows[] = {{{1, 1, 1, 1}, {false, false}}, {{1, 2, 1, 2}, {false, true}},
                {{1, 1, 2, 2}, {true, false}},  {{1, 1, 1, 2}, {true, true}},
                {{1, 0, 1, 0}, {false, true}},  {{0, 0, 0, 0}, {true, true}}};
    for (size_t i = 0; i < FR_LENGTH(rows); i++) {
        fr_sweep sweep;
        fr_err err = {0};
        fr_sweep_init(&sweep);
        for (int k = 0; k < 2; k++) {
            CHECK_OK(fr_sweep_add_key(&sweep, k == 0 ? "a" : "b", &err), &err);
            CHECK_OK(fr_sweep_add_value(&sweep, "1", &err), &err);
            CHECK_OK(fr_sweep_add_value(&sweep, "2", &err), &err);
        }
        CHECK_OK(fr_sweep_make_points(&sweep, 4, &err), &err);
        for (int p = 0; p < 4; p++) {
            sweep.points[p].is_feasible = rows[i].step_s[p] > 0;
            sweep.points[p].step_s = rows[i].step_s[p];
        }
        for (int k = 0; k < 2; k++)
            CHECK_INT(fr_sweep_key_acts(&sweep, k), rows[i].acts[k]);
        fr_sweep_release(&sweep);
    }
}

CHECK_MAIN({"ranges", test_ranges}, {"keys", test_keys},
           {"curve_by_hand", test_curve_by_hand}, {"front", test_front},
           {"knobs", test_knobs}, {"knobs_that_cannot", test_knobs_that_cannot},
           {"equal_groups", test_equal_groups}, {"fixed", test_fixed},
           {"weak", test_weak}, {"tp_does_not_divide", test_tp_does_not_divide},
           {"threads", test_threads},
           {"oversubscription", test_oversubscription},
           {"keys_without_effect", test_keys_without_effect},
           {"tuned_is_no_worse", test_tuned_is_no_worse})
