/*
 * test_run_events.c: what a run of weeks meets beside single failures, against
 * what can be worked out by hand: renewal of runs so long that their ends do
 * not count.
 */
#include "reliability/checkpoint_interval.h"
#include "reliability/run_replicas.h"
#include "spec/run/run_events.h"
#include "tests/check.h"

#include <math.h>

static const fr_run_conditions plain = {.step_s = 7,
                                        .every_steps = 40,
                                        .blocked_s = 2,
                                        .restart_s = 300,
                                        .n_spares = -1};

static bool run(const fr_run_conditions *c, fr_goodput *out)
{
    const fr_run_request request = {
        .work_s = 7 * 2e6, .n_runs = 60, .seed = 2385};
    double sum = 0;
    fr_err err;

    if (!CHECK_OK(fr_run_replicas(c, &request, out, &err), &err))
        return false;
    for (int part = 0; part < FR_RUN_PARTS; part++)
        sum += out->waterfall[part];
    return CHECK_NEAR(sum, 1, 1e-9);
}

/* Every 3 days 4 hours; then it starts again. */
static void test_maintenance(void)
{
    const double every_s = 3 * 86400, stop_s = 4 * 3600;
    fr_run_conditions c = plain;
    fr_goodput g;

    c.maintenance_s = stop_s;
    c.maintenance_every_s = every_s;
    if (!run(&c, &g))
        return;
    CHECK_WITHIN(g.waterfall[FR_RUN_MAINTENANCE], stop_s / every_s, 5e-4);
    CHECK_WITHIN(g.waterfall[FR_RUN_RESTART], 300 / every_s, 5e-4);
    CHECK_NEAR(g.waterfall[FR_RUN_LOST], 0, 1e-12);
    CHECK_NEAR(g.interruptions, 0, 1e-12);
    /* One that lasts longer than the time between two is at every other. */
    c.maintenance_s = 1.5 * every_s;
    if (run(&c, &g))
        CHECK_WITHIN(g.waterfall[FR_RUN_MAINTENANCE], 0.75, 0.01);
}

/* For 2 hours of every 50 or so all steps take 1.3 times as long. */
static void test_slow_nodes(void)
{
    const double apart_s = 48 * 3600, slow_s = 2 * 3600, factor = 1.3;
    const double cycle_s = apart_s + slow_s + plain.blocked_s + plain.restart_s;
    fr_run_conditions c = plain;
    fr_goodput g;

    c.slowdowns_per_s = 1 / apart_s;
    c.slow_s = slow_s;
    c.slow_factor = factor;
    if (!run(&c, &g))
        return;
    const double seen = slow_s / cycle_s * (1 - 1 / factor);
    CHECK_WITHIN(g.waterfall[FR_RUN_STRAGGLER], seen, 0.06 * seen);
    CHECK_WITHIN(g.waterfall[FR_RUN_RESTART], 300 / cycle_s, 2e-4);
    CHECK_NEAR(g.waterfall[FR_RUN_LOST], 0, 1e-12);
    c.slow_factor = 0.5;
    fr_err err;
    const fr_run_request request = {.work_s = 7, .n_runs = 1};
    CHECK_INT(fr_run_replicas(&c, &request, &g, &err), FR_INPUT);
}

/* Racks of 8 nodes, once in 30 days: 8 spares are enough, 4 are not. */
static void test_racks(void)
{
    const double apart_s = 30 * 86400.0, repair_s = 86400;
    fr_run_conditions c = plain;
    fr_goodput g;

    c.racks_per_s = 1 / apart_s;
    c.rack_nodes = 8;
    c.n_spares = 8;
    c.repair_s = repair_s;
    if (!run(&c, &g))
        return;
    const double idle_with_8 = g.waterfall[FR_RUN_IDLE];
    CHECK(idle_with_8 < 0.004);
    c.n_spares = 4;
    if (!run(&c, &g))
        return;
    const double idle = repair_s / (apart_s + repair_s + plain.restart_s);
    CHECK_WITHIN(g.waterfall[FR_RUN_IDLE], idle, 0.15 * idle);
    CHECK(g.interruptions > 0);
    /* Single nodes of the same number a day are replaced by 4. */
    c.failures_per_s = 8 * c.racks_per_s;
    c.node_frac = 1;
    c.racks_per_s = 0;
    if (run(&c, &g))
        CHECK(g.waterfall[FR_RUN_IDLE] < 0.002);
}

static void test_evaluation(void)
{
    fr_run_conditions c = plain;
    fr_goodput g;

    c.evaluation_frac = 0.02385;
    c.failures_per_s = 1e-5;
    if (!run(&c, &g))
        return;
    CHECK_NEAR(
        g.waterfall[FR_RUN_EVALUATION] /
            (g.waterfall[FR_RUN_EVALUATION] + g.waterfall[FR_RUN_USEFUL]),
        0.02385, 1e-9);
}

static void test_words(void)
{
    static const char *const bad[] = {"",
                                      "storm:1h@2d",
                                      "maintenance",
                                      "maintenance:4h",
                                      "maintenance:4@30d",
                                      "maintenance:4hx2@30d",
                                      "maintenance:0h@30d",
                                      "maintenance:4h@0d",
                                      "maintenance:4h@3d,maintenance:4h@3d",
                                      "evaluation:5min@1.5",
                                      "slow:2h@5000h",
                                      "slow:2hx0.9@5000h",
                                      "slow:2hxnan@5000h",
                                      "slow:-2hx1.3@5000h",
                                      "rack:8h@50000h",
                                      "rack:8@50000h,"};
    fr_run_events events;
    fr_err err;

    if (CHECK_OK(fr_run_events_parse("maintenance:4h@30d, slow:2hx1.3@5000h,"
                                     "rack:8@50000h,evaluation:5min@1000",
                                     &events, &err),
                 &err)) {
        CHECK_NEAR(events.maintenance_s, 4 * 3600, 0);
        CHECK_NEAR(events.maintenance_every_s, 30 * 86400, 0);
        CHECK_NEAR(events.slow_s, 7200, 0);
        CHECK_NEAR(events.slow_factor, 1.3, 0);
        CHECK_NEAR(events.slow_every_s, 5000 * 3600.0, 0);
        CHECK_NEAR(events.rack_nodes, 8, 0);
        CHECK_NEAR(events.rack_every_s, 50000 * 3600.0, 0);
        CHECK_NEAR(events.evaluation_s, 300, 0);
        CHECK_NEAR(events.evaluation_every_steps, 1000, 0);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        CHECK_INT(fr_run_events_parse(bad[i], &events, &err), FR_USAGE);
}

CHECK_MAIN({"maintenance", test_maintenance}, {"slow_nodes", test_slow_nodes},
           {"racks", test_racks}, {"evaluation", test_evaluation},
           {"words", test_words})
