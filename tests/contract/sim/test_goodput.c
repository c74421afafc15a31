/*
 * test_goodput.c: runs of weeks against a clock that ticks step by step, and
 * against closed forms.
 *
 * The oracle shares nothing with what it checks: it walks through a run one
 * step, one checkpoint, one second of waiting at a time, with C's own random
 * numbers, and throws away what a failure destroys.
 */
#include "reliability/checkpoint_interval.h"
#include "reliability/run_replicas.h"
#include "tests/check.h"

#include <math.h>
#include <stdlib.h>

/* ---- the oracle ---------------------------------------------------------- */

typedef struct world {
    unsigned short seed[3];
    double failure_s; /* when the next one comes */
    double now_s;
    double useful_s, checkpoint_s, lost_s, restart_s, idle_s;
    double back_s[64]; /* of nodes in repair */
    int n_away;
} world;

static double exponential(world *w, double mean)
{
    return -log(1 - erand48(w->seed)) * mean;
}

static void let_fail_again(world *w, const fr_run_conditions *c)
{
    w->failure_s = w->now_s + exponential(w, 1 / c->failures_per_s);
}

static void wait_for_node(world *w, const fr_run_conditions *c)
{
    int n = 0;
    for (int i = 0; i < w->n_away; i++)
        if (w->back_s[i] > w->now_s)
            w->back_s[n++] = w->back_s[i];
    w->n_away = n;
    w->back_s[w->n_away++] = w->now_s + c->repair_s;
    if (w->n_away <= c->n_spares)
        return;
    int first = 0;
    for (int i = 1; i < w->n_away; i++)
        first = w->back_s[i] < w->back_s[first] ? i : first;
    w->idle_s += w->back_s[first] - w->now_s;
    w->now_s = w->back_s[first];
}

static void start_again(world *w, const fr_run_conditions *c)
{
    for (;;) {
        if (c->n_spares >= 0 && erand48(w->seed) < c->node_frac)
            wait_for_node(w, c);
        double end_s = w->now_s + c->restart_s;
        let_fail_again(w, c);
        if (w->failure_s >= end_s) {
            w->restart_s += c->restart_s;
            w->now_s = end_s;
            return;
        }
        w->restart_s += w->failure_s - w->now_s;
        w->now_s = w->failure_s;
        /* A node that fails while it starts has lost no other node here. */
        end_s = 0;
        break;
    }
    fr_run_conditions calm = *c;
    calm.node_frac = 0;
    start_again(w, &calm);
}

/* Steps of c->step_s until the work is done, each saved in the background. */
static void walk(world *w, const fr_run_conditions *c, double work_s)
{
    double saved_s = 0, done_s = 0, writing_s = 0, written_at_s = -1;
    int64_t n_since = 0;
    let_fail_again(w, c);
    while (saved_s + done_s < work_s - 1e-9) {
        double until_s = w->now_s + c->step_s;
        bool is_saving = c->every_steps > 0 && n_since == c->every_steps;
        if (is_saving)
            until_s = fmax(w->now_s, written_at_s) + c->blocked_s;
        if (written_at_s >= 0 && fmin(until_s, w->failure_s) >= written_at_s) {
            saved_s += writing_s;
            done_s -= writing_s;
            w->useful_s += writing_s;
            written_at_s = -1;
            writing_s = 0;
        }
        if (w->failure_s < until_s) {
            if (is_saving)
                w->checkpoint_s += w->failure_s - w->now_s;
            else
                w->lost_s += w->failure_s - w->now_s;
            w->lost_s += done_s;
            w->now_s = w->failure_s;
            done_s = writing_s = 0;
            written_at_s = -1;
            n_since = 0;
            start_again(w, c);
            let_fail_again(w, c);
            continue;
        }
        if (is_saving) {
            w->checkpoint_s += until_s - w->now_s;
            writing_s = done_s;
            written_at_s = until_s + c->drain_s;
            n_since = 0;
        } else {
            done_s += c->step_s;
            n_since++;
        }
        w->now_s = until_s;
    }
    w->useful_s += done_s;
}

/* ---- comparisons --------------------------------------------------------- */

static const fr_run_conditions plain = {.step_s = 7,
                                        .every_steps = 40,
                                        .blocked_s = 20,
                                        .failures_per_s = 1.0 / 5000,
                                        .restart_s = 300,
                                        .n_spares = -1};

static void compare(const char *name, const fr_run_conditions *c)
{
    enum { N_RUNS = 400 };
    const fr_run_request request = {
        .work_s = 7 * 6000, .n_runs = 4000, .seed = 3};
    double useful = 0, checkpoint = 0, lost = 0, restart = 0, idle = 0;
    double days = 0, squares = 0;
    fr_goodput found;
    fr_err err;
    for (int i = 0; i < N_RUNS; i++) {
        world w = {.seed = {11, (unsigned short)i, 5}};
        walk(&w, c, request.work_s);
        useful += w.useful_s / w.now_s / N_RUNS;
        checkpoint += w.checkpoint_s / w.now_s / N_RUNS;
        lost += w.lost_s / w.now_s / N_RUNS;
        restart += w.restart_s / w.now_s / N_RUNS;
        idle += w.idle_s / w.now_s / N_RUNS;
        days += w.now_s / 86400 / N_RUNS;
        squares += pow(w.now_s / 86400, 2) / N_RUNS;
    }
    const double error = 4 * sqrt((squares - days * days) / N_RUNS);
    if (!CHECK_OK(fr_run_replicas(c, &request, &found, &err), &err))
        return;
    bool is_same =
        CHECK_WITHIN(found.finish_days_mean, days, error) &&
        CHECK_WITHIN(found.waterfall[FR_RUN_USEFUL], useful, 0.012) &&
        CHECK_WITHIN(found.waterfall[FR_RUN_CHECKPOINT], checkpoint, 0.004) &&
        CHECK_WITHIN(found.waterfall[FR_RUN_LOST], lost, 0.008) &&
        CHECK_WITHIN(found.waterfall[FR_RUN_RESTART], restart, 0.008) &&
        CHECK_WITHIN(found.waterfall[FR_RUN_IDLE], idle, 0.012);
    if (!is_same)
        printf("  %s\n", name);
}

static void test_against_steps(void)
{
    fr_run_conditions c = plain;
    compare("synchronous", &c);
    c.blocked_s = 2;
    c.drain_s = 120;
    compare("asynchronous", &c);
    c.drain_s = 400; /* longer than the steps between */
    compare("behind", &c);
    c = plain;
    c.n_spares = 1;
    c.node_frac = 0.7;
    c.repair_s = 9000;
    compare("spares", &c);
    c = plain;
    c.every_steps = 0;
    c.failures_per_s = 1.0 / 200000;
    compare("no checkpoints", &c);
}

/* A run that goes on without the nodes in repair, second by second: 5 nodes, a
 * failure takes one, saving is free. */
static double walk_elastic(unsigned short i_run, const fr_run_conditions *c,
                           double work_s)
{
    unsigned short seed[3] = {7, i_run, 77};
    double back_s[1000], done_s = 0, now_s = 0, down_until_s = c->start_s;
    int n_back = 0, n_lost = 0; /* back_s[n_back .. n_lost) are in repair */
    double speed = 1;
    while (done_s < work_s && n_lost < 1000) {
        now_s += 1;
        bool fails = erand48(seed) < c->failures_per_s;
        bool is_down = now_s <= down_until_s;
        if (fails && is_down) {
            down_until_s = now_s + c->restart_s;
        } else if (fails) {
            back_s[n_lost++] = now_s + c->repair_s;
            down_until_s = now_s + c->restart_s + c->elastic.replan_s;
        } else if (!is_down) {
            done_s += speed;
        }
        if (is_down || fails)
            continue;
        int n_before = n_back;
        while (n_back < n_lost && back_s[n_back] <= now_s)
            n_back++;
        if (n_back > n_before)
            down_until_s = now_s + c->restart_s + c->elastic.replan_s;
        const int n_missing = n_lost - n_back;
        speed = n_missing > 3 ? 0 : 1 - 0.2 * n_missing;
    }
    return now_s;
}

static void test_elastic(void)
{
    enum { N_RUNS = 300 };
    static const double speed_frac[] = {0.8, 0.6, 0.4};
    fr_run_conditions c = {.step_s = 1,
                           .every_steps = 1,
                           .failures_per_s = 1.0 / 4000,
                           .restart_s = 120,
                           .start_s = 120,
                           .node_frac = 1,
                           .n_spares = 0,
                           .repair_s = 3000,
                           .elastic = {speed_frac, 3, 60}};
    const fr_run_request request = {.work_s = 40000, .n_runs = 3000, .seed = 5};
    fr_goodput found, waiting;
    fr_err err;
    double mean_s = 0;
    for (int i = 0; i < N_RUNS; i++)
        mean_s += walk_elastic((unsigned short)i, &c, request.work_s) / N_RUNS;
    if (!CHECK_OK(fr_run_replicas(&c, &request, &found, &err), &err))
        return;
    CHECK_NEAR(found.finish_days_mean * 86400, mean_s, 0.015);
    double sum = 0;
    for (int part = 0; part < FR_RUN_PARTS; part++)
        sum += found.waterfall[part];
    CHECK_WITHIN(sum, 1, 1e-9);
    CHECK(found.waterfall[FR_RUN_REPLAN] > 0.01);
    c.elastic = (fr_run_elastic){0};
    if (CHECK_OK(fr_run_replicas(&c, &request, &waiting, &err), &err))
        CHECK(waiting.goodput < 0.8 * found.goodput);
}

/* The mean of many runs is what the closed form says, where there is one, and
 * no other interval is better than the one that it calls best. */
static void test_closed_form(void)
{
    static const double blocked_s[] = {60, 10, 300};
    static const double mtbf_s[] = {3.09 * 3600, 6000, 86400};
    fr_goodput found;
    fr_err err;
    for (int i = 0; i < 3; i++) {
        fr_run_conditions c = {.step_s = 15,
                               .blocked_s = blocked_s[i],
                               .failures_per_s = 1 / mtbf_s[i],
                               .restart_s = 600,
                               .n_spares = -1};
        const fr_run_request request = {
            .work_s = 90 * 86400, .n_runs = 200, .seed = 5};
        const int64_t best = fr_checkpoint_best_interval(&c);
        double goodput[3];
        for (int k = 0; k < 3; k++) {
            c.every_steps = k == 0 ? best : k == 1 ? best / 2 : 2 * best;
            if (!CHECK_OK(fr_run_replicas(&c, &request, &found, &err), &err))
                return;
            goodput[k] = found.goodput;
            CHECK_WITHIN(found.goodput, found.expected_goodput, 0.002);
        }
        CHECK(goodput[0] > goodput[1] && goodput[0] > goodput[2]);
        /* Young, "A first order approximation to the optimum checkpoint
         * interval", CACM 17, 1974. */
        CHECK_NEAR(15 * (double)best, sqrt(2 * blocked_s[i] * mtbf_s[i]), 0.2);
    }
}

/* Few spares: waits for repairs, and checkpoints every so many steps, in closed
 * form and as they are met. */
static void test_stretch_with_spares(void)
{
    for (int i = 0; i < 4; i++) {
        fr_run_conditions c = {.step_s = 7.3,
                               .blocked_s = 41,
                               .failures_per_s = 1.0 / 31000,
                               .restart_s = 300,
                               .node_frac = 0.78,
                               .n_spares = i,
                               .repair_s = 47000,
                               .every_steps = i % 2 == 0 ? 100 : 777};
        const fr_run_request request = {
            .work_s = 200 * 86400, .n_runs = 1000, .seed = 17};
        fr_goodput found;
        fr_err err;
        const fr_run_stretch stretch = fr_run_expected_stretch(&c);
        if (!CHECK_OK(fr_run_replicas(&c, &request, &found, &err), &err))
            return;
        const double deviation_days =
            sqrt(stretch.variance_s2_per_s * 200 * stretch.seconds / 86400);
        CHECK_NEAR(found.finish_days_mean, 200 * stretch.seconds, 0.006);
        CHECK_NEAR(found.finish_days.p95,
                   200 * stretch.seconds + 1.645 * deviation_days, 0.02);
        CHECK_NEAR(stretch.per_step_s, 7.3 * stretch.seconds, 1e-12);
        CHECK_WITHIN(found.waterfall[FR_RUN_RESTART] +
                         found.waterfall[FR_RUN_IDLE],
                     stretch.waiting_frac, 0.01);
        CHECK_WITHIN(found.waterfall[FR_RUN_CHECKPOINT], stretch.saving_frac,
                     0.004);
        CHECK_NEAR(found.interruptions, 200 * 86400 * stretch.interruptions,
                   0.05);
    }
}

/* The same of runs that go on with fewer nodes, down to one that waits after
 * all: seldom or often, with spares before that or none. */
static void test_stretch_elastic(void)
{
    static const double speed_frac[] = {0.87, 0.71, 0.71, 0.32};
    for (int i = 0; i < 6; i++) {
        fr_run_conditions c = {.step_s = 7.3,
                               .blocked_s = 41,
                               .drain_s = i % 2 == 0 ? 0 : 77,
                               .failures_per_s = 1.0 / 31000,
                               .restart_s = 300,
                               .node_frac = 0.78,
                               .n_spares = i % 3,
                               .repair_s = i < 3 ? 47000 : 9100,
                               .every_steps = 210,
                               .elastic = {speed_frac, i < 3 ? 4 : 2, 60}};
        const fr_run_request request = {
            .work_s = 200 * 86400, .n_runs = 1000, .seed = 17};
        fr_goodput found;
        fr_err err;
        const fr_run_stretch stretch = fr_run_expected_stretch(&c);
        if (!CHECK_OK(fr_run_replicas(&c, &request, &found, &err), &err))
            return;
        const double deviation_days =
            sqrt(stretch.variance_s2_per_s * 200 * stretch.seconds / 86400);
        CHECK_NEAR(found.finish_days_mean, 200 * stretch.seconds, 0.004);
        CHECK_NEAR(found.finish_days.p95,
                   200 * stretch.seconds + 1.645 * deviation_days, 0.02);
        CHECK_WITHIN(found.waterfall[FR_RUN_RESTART] +
                         found.waterfall[FR_RUN_REPLAN] +
                         found.waterfall[FR_RUN_IDLE],
                     stretch.waiting_frac, 0.012);
        CHECK_WITHIN(found.waterfall[FR_RUN_CHECKPOINT], stretch.saving_frac,
                     0.006);
        CHECK_NEAR(found.interruptions, 200 * 86400 * stretch.interruptions,
                   0.05);
    }
}

/* Mean, 95th percentile, waits and interruptions of long runs at the best
 * interval, in closed form and as they are met. */
static void test_stretch(void)
{
    static const double mtbf_s[] = {2500, 20000, 400000};
    for (int i = 0; i < 6; i++) {
        fr_run_conditions c = {.step_s = 1,
                               .blocked_s = i < 3 ? 60 : 5,
                               .drain_s = i < 3 ? 0 : 120,
                               .failures_per_s = 1 / mtbf_s[i % 3],
                               .restart_s = 300,
                               .hang_frac = 0.1,
                               .hang_s = 600,
                               .n_spares = -1};
        const fr_run_request request = {
            .work_s = 40 * 86400, .n_runs = 2000, .seed = 11};
        fr_goodput found;
        fr_err err;
        if (i % 2 == 1) {
            c.interruptions_per_s = 1.0 / 40000;
            c.absence_s = 900;
        }
        c.every_steps = fr_checkpoint_best_interval(&c);
        const fr_run_stretch stretch = fr_run_expected_stretch(&c);
        if (!CHECK_OK(fr_run_replicas(&c, &request, &found, &err), &err))
            return;
        const double mean_days = 40 * stretch.seconds;
        const double deviation_days =
            sqrt(stretch.variance_s2_per_s * mean_days * 86400) / 86400;
        const double spread_days =
            found.finish_days.p95 - found.finish_days_mean;
        CHECK_NEAR(found.finish_days_mean, mean_days, 0.004);
        CHECK_NEAR(spread_days, 1.645 * deviation_days, 0.25);
        CHECK_WITHIN(found.finish_days.p95, mean_days + 1.645 * deviation_days,
                     0.005 * mean_days);
        CHECK_WITHIN(found.waterfall[FR_RUN_RESTART] +
                         found.waterfall[FR_RUN_IDLE],
                     stretch.waiting_frac, 0.01);
        CHECK_WITHIN(found.waterfall[FR_RUN_CHECKPOINT], stretch.saving_frac,
                     0.004);
        CHECK_NEAR(found.interruptions, 40 * 86400 * stretch.interruptions,
                   0.15);
    }
}

static void test_requests(void)
{
    const fr_run_request request = {
        .work_s = 86400 * 10, .horizon_s = 86400 * 10, .n_runs = 50, .seed = 1};
    fr_run_conditions c = plain;
    fr_goodput first, again;
    fr_err err;
    double sum = 0;
    if (!CHECK_OK(fr_run_replicas(&c, &request, &first, &err), &err) ||
        !CHECK_OK(fr_run_replicas(&c, &request, &again, &err), &err))
        return;
    for (int part = 0; part < FR_RUN_PARTS; part++) {
        sum += first.waterfall[part];
        CHECK(first.waterfall[part] == again.waterfall[part]);
    }
    CHECK_WITHIN(sum, 1, 1e-12);
    CHECK_WITHIN(first.goodput, first.waterfall[FR_RUN_USEFUL], 1e-12);
    CHECK_WITHIN(first.interruptions, 10 * 86400 / 5000.0, 10);
    CHECK(first.finish_days.p50 > 10 && first.n_unfinished == 0);
    /* Nothing interrupts it. */
    c.failures_per_s = 0;
    c.every_steps = 0;
    CHECK(fr_checkpoint_best_interval(&c) == 0);
    if (CHECK_OK(fr_run_replicas(&c, &request, &first, &err), &err)) {
        CHECK_WITHIN(first.goodput, 1, 1e-12);
        CHECK_WITHIN(first.finish_days.p95, 10, 1e-9);
    }
    /* It never gets anywhere. */
    c.failures_per_s = 1;
    if (CHECK_OK(fr_run_replicas(&c, &request, &first, &err), &err))
        CHECK(first.n_unfinished == 50 && isinf(first.finish_days.p5));
    c.step_s = -1;
    CHECK(fr_run_replicas(&c, &request, &first, &err) == FR_INPUT);
}

/* Nodes that are there for three hours and away for one. */
static void test_presence(void)
{
    static const double spans_s[] = {3 * 3600, 3600};
    const fr_run_request request = {
        .work_s = 86400 * 20, .n_runs = 10, .seed = 1};
    fr_run_conditions c = {.step_s = 10,
                           .every_steps = 60,
                           .n_spares = -1,
                           .notice_s = 120,
                           .blocked_s = 30,
                           .presence = {spans_s, 2}};
    fr_goodput found;
    fr_err err;
    if (!CHECK_OK(fr_run_replicas(&c, &request, &found, &err), &err))
        return;
    CHECK_WITHIN(found.waterfall[FR_RUN_IDLE], 0.25, 0.005);
    CHECK_INT(found.waterfall[FR_RUN_LOST] * 1e9, 0);
    /* Three hours are 17 times 600 s of steps and 30 s, and 90 s that are lost
     * without notice. */
    c.notice_s = 0;
    if (CHECK_OK(fr_run_replicas(&c, &request, &found, &err), &err))
        CHECK_WITHIN(found.waterfall[FR_RUN_LOST], 90.0 / 14400, 2e-4);
}

CHECK_MAIN({"against steps", test_against_steps}, {"stretch", test_stretch},
           {"stretch with spares", test_stretch_with_spares},
           {"elastic", test_elastic}, {"stretch elastic", test_stretch_elastic},
           {"closed form", test_closed_form}, {"requests", test_requests},
           {"presence", test_presence})
