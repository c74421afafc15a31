/*
 * test_plugged_goal.c: an objective is one struct and one row.  The table that
 * is linked here has the total cost of a run as one row more, its dollars and
 * what a team that waits for it costs, and nothing else knows of it.
 */
#include "api/request/options.h"
#include "tests/check.h"
#include "tuner/answer/tune.h"
#include "tuner/goal/goal_rows.h"

#include <math.h>

static const double team_usd_per_h = 283.7;

static double total_usd(const fr_goal_point *at)
{
    return fr_goal_usd(at) + team_usd_per_h * at->run.outlook.seconds / 3600;
}

static const fr_goal_row total = {
    .name = "total-cost",
    .unit = "USD",
    .summary = "dollars of the run and of those who wait for it",
    .of = FR_GOAL_OF_RUN,
    .needs = FR_GOAL_NEEDS_PRICE,
    .weighs_devices = true,
    .value = total_usd};

/* The table of goal_table.c and its row. */
#define ENTRY(name, entry) &fr_goal_##entry,
#define PLUGGED &total
const fr_goal_row *const fr_goal_rows[] = {FR_GOALS(ENTRY) PLUGGED};
const int fr_n_goals = FR_GOAL_N + 1;

static const fr_goal_kind plugged = (fr_goal_kind)FR_GOAL_N;

static const char boxes[] =
    "<cluster name=\"boxes\">\n"
    "  <device id=\"gpu\" kind=\"gpu\" memory=\"80GiB\"\n"
    "          memory-bandwidth=\"3350GB/s\" power=\"691W\">\n"
    "    <peak dtype=\"fp32\" rate=\"67TFLOP/s\"/>\n"
    "    <peak dtype=\"bf16\" rate=\"989TFLOP/s\"/>\n"
    "  </device>\n"
    "  <node-type id=\"box\" device=\"gpu\" devices=\"2\" %s>\n"
    "    <intra kind=\"nvswitch\" bandwidth=\"450GB/s\" latency=\"2us\"/>\n"
    "    <nic count=\"2\" bandwidth=\"100Gb/s\" latency=\"5us\"/>\n"
    "  </node-type>\n"
    "  <group id=\"box\" node-type=\"box\" count=\"4\"/>\n"
    "  <fabric kind=\"switch\"/>\n"
    "</cluster>\n";

typedef struct fixture {
    fr_cluster cluster;
    fr_model model;
    fr_job job;
    fr_goal goal;
    fr_cost_model *costs;
    fr_tuning t;
} fixture;

static bool setup(fixture *f, const char *price)
{
    char xml[1200];
    fr_err err;
    memset(f, 0, sizeof *f);
    snprintf(xml, sizeof xml, boxes, price);
    f->goal = (fr_goal){.kind = plugged, .tokens = 3e8};
    fr_job_init(&f->job);
    f->job.global_batch = 32;
    f->job.seq = 512;
    fr_tuning_init(&f->t);
    return CHECK_OK(fr_cluster_parse("boxes.xml", xml, strlen(xml), &f->cluster,
                                     &err),
                    &err) &&
           CHECK_OK(fr_model_load(NULL, "gpt2-124m", &f->model, &err), &err) &&
           CHECK_OK(fr_cost_model_create(NULL, &f->cluster, &f->costs, &err),
                    &err);
}

static void teardown(fixture *f)
{
    fr_tuning_release(&f->t);
    fr_cost_model_destroy(f->costs);
    fr_model_release(&f->model);
    fr_cluster_release(&f->cluster);
}

static fr_status tune(fixture *f, fr_err *err)
{
    fr_tune_options options = {
        .space = {.model = &f->model, .job = &f->job, .cluster = &f->cluster},
        .goal = &f->goal,
        .is_exact = true,
        .n_alternatives = 20,
        .n_threads = 2};
    fr_plan_init(&options.space.base);
    options.space.base.precision = FR_DTYPE_BF16;
    options.space.base.zero_stage = 0;
    options.space.pins = FR_PIN(PRECISION) | FR_PIN(ZERO) | FR_PIN(RECOMPUTE);
    return fr_tune(&options, f->costs, &f->t, err);
}

static void test_names(void)
{
    const fr_option_row row = fr_option_get(FR_OPT_GOAL);
    CHECK_STR(fr_goal_row_of(plugged)->name, "total-cost");
    CHECK(fr_goal_row_of((fr_goal_kind)(FR_GOAL_N + 1)) == NULL);
    CHECK_STR(fr_option_choice(&row, FR_GOAL_N), "total-cost");
    CHECK(fr_option_choice(&row, FR_GOAL_N + 1) == NULL);
}

/* The amount by hand: four boxes at 11.3 USD an hour, or fewer. */
static double by_hand(const fr_tuned *tuned)
{
    const double steps = 3e8 / (32 * 512);
    const double hours = steps * tuned->prediction.expected_step_s / 3600;
    const double n_boxes = (double)((tuned->n_ranks + 1) / 2);
    return hours * (n_boxes * 11.3 + team_usd_per_h);
}

/* The proven best is the best of what is listed, by an amount that neither the
 * dollars nor the seconds alone make. */
static void test_tuned(void)
{
    fixture f;
    fr_err err;
    if (setup(&f, "price=\"11.3USD/h\"") && CHECK_OK(tune(&f, &err), &err)) {
        CHECK_STR(f.t.goal.name, "total-cost");
        CHECK(f.t.certificate.optimal_in_space);
        CHECK(f.t.alternatives.n > 3);
        CHECK_NEAR(f.t.best.value, by_hand(&f.t.best), 1e-9);
        for (size_t i = 0; i < f.t.alternatives.n; i++) {
            const fr_tuned *other = &f.t.alternatives.at[i];
            CHECK_NEAR(other->value, by_hand(other), 1e-9);
            CHECK(other->value >= f.t.best.value);
        }
    }
    teardown(&f);
}

/* Whatever is asked for, the best by it is no worse by it than the best by
 * seconds or by dollars. */
static void test_against_others(void)
{
    static const fr_goal_kind others[] = {FR_GOAL_TIME, FR_GOAL_COST};
    fixture f;
    fr_err err;
    if (setup(&f, "price=\"11.3USD/h\"") && CHECK_OK(tune(&f, &err), &err)) {
        const double best = f.t.best.value;
        for (size_t i = 0; i < FR_LENGTH(others); i++) {
            fr_tuning_release(&f.t);
            fr_tuning_init(&f.t);
            f.goal.kind = others[i];
            if (CHECK_OK(tune(&f, &err), &err))
                CHECK(best <= by_hand(&f.t.best) * (1 + 1e-12));
        }
    }
    teardown(&f);
}

/* The row says what it needs. */
static void test_needs(void)
{
    fixture f;
    fr_err err;
    if (setup(&f, "")) {
        CHECK_FAILS(fr_goal_check_cluster(&f.goal, &f.cluster, &err), FR_INPUT,
                    &err);
        CHECK_HAS(err.text, "no price");
    }
    teardown(&f);
}

CHECK_MAIN({"names", test_names}, {"tuned", test_tuned},
           {"against others", test_against_others}, {"needs", test_needs})
