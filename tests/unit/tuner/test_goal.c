/*
 * test_goal.c: objectives against amounts worked out by hand, constraints,
 * and that a bound of the step is one of the goal.
 */
#include "tests/check.h"
#include "tuner/goal/goal.h"

static const char two_nodes[] =
    "<cluster name=\"pair\">\n"
    "  <device id=\"gpu\" kind=\"gpu\" memory=\"40GiB\"\n"
    "          memory-bandwidth=\"1555GB/s\" power=\"413W\">\n"
    "    <peak dtype=\"bf16\" rate=\"312TFLOP/s\"/>\n"
    "  </device>\n"
    "  <node-type id=\"box\" device=\"gpu\" devices=\"4\" power=\"617W\" %s>\n"
    "    <intra kind=\"nvswitch\" bandwidth=\"300GB/s\" latency=\"2us\"/>\n"
    "    <nic count=\"4\" bandwidth=\"200Gb/s\" latency=\"5us\"/>\n"
    "  </node-type>\n"
    "  <group id=\"box\" node-type=\"box\" count=\"3\"/>\n"
    "  <fabric kind=\"switch\"/>\n"
    "</cluster>\n";

typedef struct fixture {
    fr_model model;
    fr_cluster cluster;
    fr_plan plan;
    fr_job job;
    fr_prediction prediction;
    fr_goal goal;
} fixture;

static void setup(fixture *f, const char *prices)
{
    char xml[1200];
    fr_err err;
    memset(f, 0, sizeof *f);
    snprintf(xml, sizeof xml, two_nodes, prices);
    CHECK_OK(fr_cluster_parse("pair.xml", xml, strlen(xml), &f->cluster, &err),
             &err);
    fr_plan_init(&f->plan);
    f->plan.dp = 6; /* a node and a half */
    fr_job_init(&f->job);
    f->job.global_batch = 96;
    f->job.seq = 2048;
    f->job.n_steps = 700;
    f->prediction.step_s = f->prediction.expected_step_s = 1.37;
    f->prediction.busy_frac = 1;
    f->prediction.memory.fits = true;
    f->prediction.memory.peak_bytes = 3000;
    f->prediction.memory.capacity_bytes = 4000;
    fr_goal_init(&f->goal);
}

static fr_goal_subject subject_of(const fixture *f)
{
    return (fr_goal_subject){&f->model, &f->job, &f->cluster};
}

static double value(const fixture *f)
{
    const fr_goal_subject subject = subject_of(f);
    return fr_goal_value(&f->goal, &f->prediction, &f->plan, &subject);
}

static fr_goal_run run_at(const fixture *f, double step_s)
{
    const fr_goal_subject subject = subject_of(f);
    const fr_weighed_step step = {step_s, step_s, 1, 1};
    return fr_goal_run_of(&f->goal, &step, &f->plan, &subject);
}

static const char price[] = "price=\"11.3USD/h\" spot-price=\"4.1USD/h\"";

static void test_run_by_hand(void)
{
    fixture f;
    setup(&f, price);
    f.goal.tokens = 5e9;
    fr_goal_run run = run_at(&f, 1.37);
    double n_steps = 5e9 / (96 * 2048), hours = n_steps * 1.37 / 3600;
    CHECK_NEAR(run.n_steps, n_steps, 1e-12);
    CHECK_NEAR(run.outlook.seconds, n_steps * 1.37, 1e-12);
    CHECK_INT(run.n_nodes, 2);
    CHECK_INT(run.n_devices, 6);
    CHECK_NEAR(run.outlook.usd, 2 * 11.3 * hours, 1e-12);
    CHECK_NEAR(run.outlook.kwh, 2 * (617 + 4 * 413) / 1000.0 * hours, 1e-12);
    f.goal.is_spot = true;
    run = run_at(&f, 1.37);
    CHECK_NEAR(run.outlook.usd, 2 * 4.1 * hours, 1e-12);
    f.goal.tokens = 0; /* the job's steps */
    run = run_at(&f, 1.37);
    CHECK_NEAR(run.outlook.seconds, 700 * 1.37, 1e-12);
    fr_cluster_release(&f.cluster);
}

static void test_objectives(void)
{
    fixture f;
    setup(&f, price);
    f.goal.tokens = 5e9;
    f.goal.deadline_s = 1e6;
    double seconds = 5e9 / (96 * 2048) * 1.37;
    const struct {
        fr_goal_kind kind;
        double value;
    } rows[] = {
        {FR_GOAL_STEP, 1.37},
        {FR_GOAL_THROUGHPUT, 1.37 * 6 / (96 * 2048)},
        {FR_GOAL_TIME, seconds},
        {FR_GOAL_COST, 2 * 11.3 * seconds / 3600},
        {FR_GOAL_DEADLINE, 2 * 11.3 * seconds / 3600},
        {FR_GOAL_ENERGY, 2 * 2.269 * seconds / 3600},
        {FR_GOAL_DEVICES, 6 + 0.5 * seconds / 1e6},
        {FR_GOAL_LOSS, seconds},
        {FR_GOAL_HEADROOM, 0.75},
    };
    CHECK_INT(sizeof rows / sizeof rows[0], FR_GOAL_N);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        f.goal.kind = rows[i].kind;
        CHECK_NEAR(value(&f), rows[i].value, 1e-12);
    }
    fr_cluster_release(&f.cluster);
}

/*
 * McCandlish et al. 2018: at the critical batch twice as many tokens and
 * twice the fewest steps; (S / S_min - 1)(E / E_min - 1) = 1 at any other.
 */
static void test_critical_batch(void)
{
    fixture f;
    setup(&f, price);
    f.goal.tokens = 4.3e9;
    f.goal.critical_batch = 96 * 2048;
    fr_goal_run run = run_at(&f, 1);
    double least_steps = 4.3e9 / f.goal.critical_batch;
    CHECK_NEAR(run.tokens, 2 * 4.3e9, 1e-12);
    CHECK_NEAR(run.n_steps, 2 * least_steps, 1e-12);
    for (int64_t batch = 3; batch < 5000; batch *= 7) {
        f.job.global_batch = batch;
        run = run_at(&f, 1);
        CHECK_NEAR((run.n_steps / least_steps - 1) * (run.tokens / 4.3e9 - 1),
                   1, 1e-9);
    }
    fr_cluster_release(&f.cluster);
}

static void test_constraints(void)
{
    fixture f;
    char why[160];
    setup(&f, price);
    const fr_goal_subject subject = subject_of(&f);
    f.goal.tokens = 5e9;
    const fr_goal free = f.goal;
    CHECK(isfinite(value(&f)));
    double seconds = 5e9 / (96 * 2048) * 1.37;
    struct {
        double *limit, at; /* just kept at `at` */
        const char *word;
    } rows[] = {
        {&f.goal.deadline_s, seconds, "time"},
        {&f.goal.most_usd, 2 * 11.3 * seconds / 3600, "cost"},
        {&f.goal.most_kwh, 2 * 2.269 * seconds / 3600, "energy"},
    };
    for (size_t i = 0; i < 3; i++) {
        f.goal = free;
        *rows[i].limit = rows[i].at * 1.0001;
        CHECK(isfinite(value(&f)));
        *rows[i].limit = rows[i].at * 0.9999;
        CHECK(value(&f) == HUGE_VAL);
        CHECK_HAS(fr_goal_why_not(&f.goal, &f.prediction, &f.plan, &subject,
                                  why, sizeof why),
                  rows[i].word);
    }
    /* All that are broken, those by most first. */
    f.goal = free;
    f.goal.deadline_s = seconds / 1.7;
    f.goal.most_usd = 2 * 11.3 * seconds / 3600 / 3.1;
    fr_goal_why_not(&f.goal, &f.prediction, &f.plan, &subject, why, sizeof why);
    CHECK(strncmp(why, "cost", 4) == 0);
    CHECK_HAS(why, "; time is");
    CHECK(strstr(why, "energy") == NULL);
    f.goal = free;
    f.goal.most_devices = 6;
    CHECK(isfinite(value(&f)));
    f.goal.most_devices = 5;
    CHECK(value(&f) == HUGE_VAL);
    f.goal = free;
    f.goal.least_headroom_frac = 0.2499;
    CHECK(isfinite(value(&f)));
    f.goal.least_headroom_frac = 0.2501;
    CHECK(value(&f) == HUGE_VAL);
    f.goal = free;
    f.prediction.memory.fits = false;
    CHECK(value(&f) == HUGE_VAL);
    fr_cluster_release(&f.cluster);
}

/* Runs of 6 and of 8 devices without one of their two nodes. */
static const double half[] = {0.4871};
static const fr_node_elastic without_one[] = {{6, {half, 1, 1}},
                                              {8, {half, 1, 1}}};

/* Whatever the goal and its constraints: the bound at a shorter step is never
 * above the value. */
static void test_bound(void)
{
    fixture f;
    uint64_t state = 88172645463325252u;
    fr_err err;
    setup(&f, price);
    const fr_goal_subject subject = subject_of(&f);
    for (int i = 0; i < 20000; i++) {
        double random[6];
        for (int k = 0; k < 6; k++) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            random[k] = (double)(state >> 11) / 9007199254740992.0;
        }
        f.goal = (fr_goal){.kind = (fr_goal_kind)(i % FR_GOAL_N),
                           .tokens = 1e9 * random[0],
                           .deadline_s = 2e4 * random[1],
                           .most_usd = i % 2 ? 90 * random[2] : 0,
                           .critical_batch = i % 3 ? 1e6 * random[3] : 0,
                           .least_headroom_frac = i % 5 ? 0 : random[4],
                           .is_disturbed = i % 7 < 3,
                           .hazards = {.device_mtbf_s = 3e4 * random[2],
                                       .restart_s = 60 * random[3],
                                       .repair_s = 7e3 * random[4],
                                       .spot_every_s = 4e4,
                                       .every_steps = i % 4 ? 0 : 1 + i % 57},
                           .choices = {.is_kind_free = i % 6 < 3,
                                       .is_spot_free = i % 10 < 4,
                                       .n_spares = i % 3,
                                       .spares = {0, i % 5},
                                       .n_least_nodes = i % 4 == 3,
                                       .least_nodes = {1},
                                       .elastic = without_one,
                                       .n_elastic = 2}};
        f.plan.dp = 1 + i % 12;
        f.prediction.expected_step_s = 0.2 + 2 * random[5];
        double shorter_s = f.prediction.expected_step_s * random[0];
        const fr_weighed_step shorter = {shorter_s, 0.7 * shorter_s, 1, 1};
        const fr_weighed_step same = fr_weighed_step_of(&f.prediction);
        fr_goal_scale scale;
        if (!CHECK_OK(
                fr_goal_scale_make(&f.goal, &f.plan, &subject, &scale, &err),
                &err))
            return;
        CHECK(fr_goal_at(&f.goal, &scale, &shorter, 0) <= value(&f));
        CHECK(fr_goal_at(&f.goal, &scale, &same, 0.75) == value(&f));
        fr_goal_scale_release(&scale);
    }
    fr_cluster_release(&f.cluster);
}

static void test_no_price(void)
{
    fixture f;
    fr_err err;
    setup(&f, "");
    f.goal.kind = FR_GOAL_COST;
    CHECK(value(&f) == HUGE_VAL);
    CHECK_FAILS(fr_goal_check_cluster(&f.goal, &f.cluster, &err), FR_INPUT,
                &err);
    f.goal.kind = FR_GOAL_ENERGY;
    CHECK(isfinite(value(&f)));
    CHECK_OK(fr_goal_check_cluster(&f.goal, &f.cluster, &err), &err);
    fr_cluster_release(&f.cluster);
}

static void test_table(void)
{
    fr_err err;
    fr_goal goal;
    for (int i = 0; i < FR_GOAL_N; i++) {
        const fr_goal_row *row = fr_goal_row_of((fr_goal_kind)i);
        for (int k = 0; k < i; k++)
            CHECK(strcmp(row->name, fr_goal_row_of((fr_goal_kind)k)->name) !=
                  0);
        CHECK(row->unit[0] != '\0' && row->summary[0] != '\0');
        fr_goal_init(&goal);
        goal.kind = (fr_goal_kind)i;
        unsigned asked = FR_GOAL_NEEDS_DEADLINE | FR_GOAL_NEEDS_TOKENS |
                         FR_GOAL_NEEDS_CRITICAL_BATCH;
        if (row->needs & asked)
            CHECK_FAILS(fr_goal_check(&goal, &err), FR_USAGE, &err);
        goal.deadline_s = goal.tokens = goal.critical_batch = 3.7;
        CHECK_OK(fr_goal_check(&goal, &err), &err);
        goal.most_usd = -1;
        CHECK_FAILS(fr_goal_check(&goal, &err), FR_USAGE, &err);
    }
    CHECK(fr_goal_row_of(FR_GOAL_N) == NULL);
}

/* Interruptions make a run longer and dearer, and its end uncertain; the rate
 * of tokens is that of its steps. */
static void test_failures(void)
{
    fixture f;
    setup(&f, price);
    f.goal.tokens = 5e9;
    const double n_steps = 5e9 / (96 * 2048), steps_s = n_steps * 1.37;
    f.goal.hazards = fr_run_hazards_none();
    f.goal.hazards.device_mtbf_s = 6 * 3000;
    f.goal.hazards.restart_s = 300;
    f.goal.kind = FR_GOAL_THROUGHPUT;
    const double rate = value(&f);
    f.goal.kind = FR_GOAL_COST;
    CHECK_NEAR(value(&f), 2 * 11.3 * steps_s / 3600, 1e-12);
    f.goal.is_disturbed = true;
    const fr_run_outlook run = run_at(&f, 1.37).outlook;
    /* Checkpoints of no bytes are free: a failure in 3000 s, 300 s of restart
     * that may fail as well, and a few hangs. */
    const double down_s = 3000 * expm1(0.1) + 600 * 7.0 / 419;
    CHECK_NEAR(run.seconds, steps_s * (1 + down_s / 3000), 1e-4);
    CHECK_NEAR(run.useful_frac, steps_s / run.seconds, 1e-12);
    CHECK_NEAR(run.interruptions, run.seconds / 3000, 1e-12);
    CHECK_NEAR(run.usd, 2 * 11.3 * run.seconds / 3600, 1e-12);
    CHECK_NEAR(value(&f), run.usd, 1e-12);
    CHECK(run.kwh < 2 * 2.269 * run.seconds / 3600);
    f.goal.kind = FR_GOAL_THROUGHPUT;
    CHECK(value(&f) == rate);
    f.goal.deadline_s = run.seconds * 1.001;
    CHECK(isinf(value(&f)));
    f.goal.deadline_s = run.seconds_p95 * 1.001;
    CHECK(isfinite(value(&f)));
    fr_cluster_release(&f.cluster);
}

/* A limit is one on what 95 of 100 runs take, of which the step may be longer
 * than expected; bounds, for which no error is known, stay below. */
static void test_error_of_the_step(void)
{
    fixture f;
    setup(&f, price);
    const fr_goal_subject subject = subject_of(&f);
    f.goal.tokens = 5e9;
    f.prediction.step_s = 1.3; /* at best: no goal looks at it */
    f.prediction.step_s_p95 = 1.37 * 1.25;
    f.prediction.breakdown_s[FR_PART_STRAGGLERS] = 0.1;
    f.prediction.breakdown_s[FR_PART_DATA] = 0.03;
    const fr_weighed_step step = fr_weighed_step_of(&f.prediction);
    CHECK_NEAR(step.seconds, 1.37, 1e-12);
    CHECK_NEAR(step.p95_factor, 1.25, 1e-12);
    CHECK_NEAR(step.useful_frac, 0.9, 1e-12);
    fr_run_outlook run =
        fr_goal_run_of(&f.goal, &step, &f.plan, &subject).outlook;
    CHECK_NEAR(run.seconds_p95, 1.25 * run.seconds, 1e-12);
    CHECK_NEAR(run.usd_p95, 1.25 * run.usd, 1e-12);
    CHECK_NEAR(run.kwh_p95, 1.25 * run.kwh, 1e-12);
    CHECK_NEAR(run.useful_frac, 0.9, 1e-12);
    const fr_goal free = f.goal;
    struct {
        double *limit, expected;
    } rows[] = {{&f.goal.deadline_s, run.seconds},
                {&f.goal.most_usd, run.usd},
                {&f.goal.most_kwh, run.kwh}};
    for (size_t i = 0; i < 3; i++) {
        f.goal = free;
        const fr_weighed_step sure = {1.37, 1.37, 1, 1};
        *rows[i].limit = rows[i].expected * 1.2499;
        CHECK(value(&f) == HUGE_VAL);
        fr_goal_scale scale;
        fr_err err;
        if (CHECK_OK(
                fr_goal_scale_make(&f.goal, &f.plan, &subject, &scale, &err),
                &err)) {
            CHECK(isfinite(fr_goal_at(&f.goal, &scale, &sure, 0)));
            fr_goal_scale_release(&scale);
        }
        *rows[i].limit = rows[i].expected * 1.2501;
        CHECK(isfinite(value(&f)));
    }
    /* With interruptions: independent, so that the logarithms add up by their
     * squares. */
    f.goal = free;
    f.goal.is_disturbed = true;
    f.goal.hazards = fr_run_hazards_none();
    f.goal.hazards.device_mtbf_s = 6 * 3000;
    f.goal.hazards.restart_s = 300;
    const fr_run_outlook sure = run_at(&f, 1.37).outlook;
    run = fr_goal_run_of(&f.goal, &step, &f.plan, &subject).outlook;
    CHECK(sure.seconds_p95 > 1.01 * sure.seconds);
    CHECK_NEAR(
        log(run.seconds_p95 / run.seconds),
        sqrt(pow(log(sure.seconds_p95 / sure.seconds), 2) + pow(log(1.25), 2)),
        1e-9);
    fr_cluster_release(&f.cluster);
}

/* Free choices of a run are made for the goal: spares if waits for repairs cost
 * more, spot nodes as long as they are cheaper and the run is in time. */
static void test_ways(void)
{
    fixture f;
    setup(&f, price);
    f.goal.tokens = 5e10;
    f.goal.kind = FR_GOAL_COST;
    f.goal.is_disturbed = true;
    f.goal.hazards = fr_run_hazards_none();
    f.goal.hazards.device_mtbf_s = 6 * 30000;
    f.goal.hazards.restart_s = 300;
    f.goal.choices.n_spares = 3;
    for (int i = 0; i < 3; i++)
        f.goal.choices.spares[i] = i;
    /* Every tenth second waits: less than a third node costs. */
    f.goal.hazards.repair_s = 30000 / 0.78 / 9;
    CHECK_INT(run_at(&f, 1.37).outlook.n_spares, 0);
    const double usd = value(&f);
    f.goal.kind = FR_GOAL_TIME;
    CHECK_INT(run_at(&f, 1.37).outlook.n_spares, 2);
    /* A third of a lost node is worth a spare; two are not. */
    f.goal.kind = FR_GOAL_COST;
    f.goal.hazards.repair_s = 30000 / 0.78;
    CHECK_INT(run_at(&f, 1.37).outlook.n_spares, 1);
    for (int i = 0; i < 3; i++) {
        fr_goal one = f.goal;
        one.choices = (fr_run_choices){0};
        one.hazards.n_spares = i;
        const fr_goal_subject subject = subject_of(&f);
        const fr_weighed_step step = {1.37, 1.37, 1, 1};
        CHECK(fr_goal_run_of(&one, &step, &f.plan, &subject).outlook.usd >=
              value(&f) * (1 - 1e-12));
    }
    CHECK(usd < value(&f));
    /* Spot nodes are cheaper, and too late. */
    f.goal.choices = (fr_run_choices){.is_spot_free = true};
    f.goal.is_spot = true;
    f.goal.hazards.spot_every_s = 2e5;
    f.goal.hazards.spot_wait_s = 9e4;
    fr_run_outlook run = run_at(&f, 1.37).outlook;
    CHECK(run.spot_frac == 1 && run.interruptions > 1);
    f.goal.deadline_s = run.seconds * 0.9;
    const double cheap_usd = run.usd;
    run = run_at(&f, 1.37).outlook;
    CHECK(run.spot_frac == 0 && run.seconds_p95 <= f.goal.deadline_s);
    CHECK(run.usd > cheap_usd);
    fr_cluster_release(&f.cluster);
}

/* However many ways there are, the best of them is taken: at a fixed interval,
 * where no way is better than another whatever the step, there are hundreds. */
static void test_every_way(void)
{
    fixture f;
    fr_err err;
    fr_goal_scale scale;
    setup(&f, price);
    const fr_goal_subject subject = subject_of(&f);
    f.goal = (fr_goal){.kind = FR_GOAL_TIME,
                       .tokens = 5e10,
                       .is_spot = true,
                       .is_disturbed = true,
                       .hazards = {.device_mtbf_s = 6 * 3000,
                                   .restart_s = 300,
                                   .repair_s = 9000,
                                   .spot_every_s = 2e5,
                                   .every_steps = 137},
                       .choices = {.is_kind_free = true,
                                   .is_spot_free = true,
                                   .n_spares = FR_RUN_SPARES}};
    for (int i = 0; i < FR_RUN_SPARES; i++)
        f.goal.choices.spares[i] = i;
    if (!CHECK_OK(fr_goal_scale_make(&f.goal, &f.plan, &subject, &scale, &err),
                  &err))
        return;
    /* None, one or both of two nodes are spot ones. */
    CHECK_INT((int64_t)scale.ways.n, FR_CHECKPOINT_KIND_N * 3 * FR_RUN_SPARES);
    fr_goal one = f.goal;
    one.choices = (fr_run_choices){0};
    one.is_spot = false;
    one.hazards.checkpoint_kind = FR_CHECKPOINT_MEMORY;
    one.hazards.n_spares = FR_RUN_SPARES - 1;
    const double least = fr_goal_value(&one, &f.prediction, &f.plan, &subject);
    CHECK_NEAR(value(&f), least, 1e-12);
    const fr_weighed_step step = fr_weighed_step_of(&f.prediction);
    CHECK_NEAR(fr_goal_at(&f.goal, &scale, &step, 0), least, 1e-12);
    fr_goal_scale_release(&scale);
    fr_cluster_release(&f.cluster);
}

/* Going on with fewer nodes is a way: of those that are free the one that the
 * goal asks for, and only where it is known how fast fewer nodes are. */
static void test_least_nodes(void)
{
    fixture f;
    setup(&f, price);
    f.goal.tokens = 5e10;
    f.goal.kind = FR_GOAL_TIME;
    f.goal.is_disturbed = true;
    f.goal.hazards = fr_run_hazards_none();
    f.goal.hazards.device_mtbf_s = 6 * 30000;
    f.goal.hazards.restart_s = 300;
    f.goal.hazards.n_spares = 0;
    /* As often away as there: half of the time one node, or both. */
    f.goal.hazards.repair_s = 30000 / 0.78;
    const fr_run_outlook waits = run_at(&f, 1.37).outlook;
    CHECK_INT(waits.least_nodes, 0);
    f.goal.choices = (fr_run_choices){.n_least_nodes = 2,
                                      .least_nodes = {2, 1},
                                      .elastic = without_one,
                                      .n_elastic = 2};
    const fr_run_outlook shrinks = run_at(&f, 1.37).outlook;
    CHECK_INT(shrinks.least_nodes, 1);
    /* Erlang's loss formula at a load of about 1: with one server it waits half
     * of the time, with two a fifth, and two fifths are at half the rate. */
    CHECK_NEAR(shrinks.seconds / waits.seconds, 0.5 / (0.4 + 0.4 * half[0]),
               0.02);
    f.goal.choices.n_least_nodes = 1; /* two: it has no more */
    CHECK_NEAR(run_at(&f, 1.37).outlook.seconds, waits.seconds, 0);
    /* A spare that costs half as much again, or half of the speed while one is
     * away: each best for something. */
    f.goal.choices.least_nodes[0] = 1;
    f.goal.choices.n_spares = 2;
    f.goal.choices.spares[1] = 1;
    f.goal.hazards.repair_s = 30000 / 0.78 / 9;
    CHECK_INT(run_at(&f, 1.37).outlook.n_spares, 1);
    CHECK_INT(run_at(&f, 1.37).outlook.least_nodes, 1);
    f.goal.kind = FR_GOAL_COST;
    CHECK_INT(run_at(&f, 1.37).outlook.n_spares, 0);
    CHECK_INT(run_at(&f, 1.37).outlook.least_nodes, 1);
    /* Nobody knows it for so many devices. */
    f.plan.dp = 7;
    CHECK_INT(run_at(&f, 1.37).outlook.least_nodes, 0);
    fr_cluster_release(&f.cluster);
}

static void test_lr_rule(void)
{
    fr_job job;
    char text[96];
    fr_job_init(&job);
    CHECK_STR(fr_goal_lr_rule(&job, text, sizeof text), "lr ~ sqrt(B) (adamw)");
    job.lr_rule = FR_LR_RULE_LINEAR;
    CHECK_STR(fr_goal_lr_rule(&job, text, sizeof text), "lr ~ B (--lr-rule)");
}

CHECK_MAIN({"run_by_hand", test_run_by_hand}, {"objectives", test_objectives},
           {"critical_batch", test_critical_batch},
           {"constraints", test_constraints}, {"bound", test_bound},
           {"no_price", test_no_price}, {"table", test_table},
           {"lr_rule", test_lr_rule}, {"failures", test_failures},
           {"error_of_the_step", test_error_of_the_step}, {"ways", test_ways},
           {"every_way", test_every_way}, {"least_nodes", test_least_nodes})
