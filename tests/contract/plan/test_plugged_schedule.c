/*
 * test_plugged_schedule.c: a pipeline schedule is one struct and one row.  The
 * table that is linked here has eager 1F1B (Zhuang et al., MLSys 2023, arXiv
 * 2211.05322: twice the warm-up, so that transfers have time) as one row more,
 * and nothing else knows of it.
 */
#include "api/request/options.h"
#include "plan/schedule/schedule.h"
#include "tests/contract/plan/plugged_fixture.h"

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void emit(int64_t stage, int64_t n_stages, int64_t n_micro, int64_t vpp,
                 fr_task *tasks)
{
    int64_t n = 0, forward = 0, backward = 0;
    (void)vpp;
    while (forward < least(2 * (n_stages - stage - 1), n_micro))
        tasks[n++] = (fr_task){FR_TASK_FORWARD, 0, forward++};
    while (backward < n_micro) {
        if (forward < n_micro)
            tasks[n++] = (fr_task){FR_TASK_FORWARD, 0, forward++};
        tasks[n++] = (fr_task){FR_TASK_BACKWARD, 0, backward++};
    }
}

static int64_t peak_live_micro(int64_t stage, int64_t n_stages, int64_t n_micro,
                               int64_t vpp)
{
    (void)vpp;
    return least(2 * (n_stages - stage) - 1, n_micro);
}

static double bubble_s(int64_t n_stages, int64_t n_micro, int64_t vpp,
                       const fr_pass_times *times)
{
    (void)n_micro;
    (void)vpp;
    return (double)(n_stages - 1) *
           (times->forward_s + times->input_s + times->weights_s);
}

static const fr_schedule eager = {
    .name = "eager-1f1b",
    .summary = "1f1b with twice the warm-up, so that transfers have time",
    .n_chunks = 1,
    .emit = emit,
    .peak_live_micro = peak_live_micro,
    .bubble_s = bubble_s,
};

/* The table of schedule_table.c and its row. */
#define ENTRY(name, entry) &fr_schedule_##entry,
#define PLUGGED &eager
const fr_schedule *const fr_schedules[] = {FR_SCHEDULES(ENTRY) PLUGGED};
const int fr_n_schedules = FR_SCHEDULE_N + 1;

static const fr_schedule_kind plugged = (fr_schedule_kind)FR_SCHEDULE_N;

static void test_names(void)
{
    char text[256];
    fr_plan plan;
    fr_plan_init(&plan);
    plan.schedule = plugged;
    CHECK_STR(fr_name_of(&fr_schedule_names, plugged), "eager-1f1b");
    CHECK_INT(fr_name_find(&fr_schedule_names, "eager-1f1b"), plugged);
    CHECK_HAS(fr_plan_describe(&plan, text, sizeof text), " eager-1f1b");
    const fr_option_row row = fr_option_get(FR_OPT_SCHEDULE);
    CHECK_STR(fr_option_choice(&row, (int)plugged), "eager-1f1b");
    CHECK(fr_option_choice(&row, (int)plugged + 1) == NULL);
}

/* Legal with any micro-batches and one chunk; who asks for two is told. */
static void test_legal(void)
{
    sim_fixture f;
    fr_err err;
    sim_fixture_init(&f);
    f.plan.pp = 4;
    f.plan.schedule = plugged;
    CHECK_OK(fr_plan_check(&f.plan, &f.model, &f.job, &err), &err);
    f.plan.vpp = 2;
    CHECK_FAILS(fr_plan_check(&f.plan, &f.model, &f.job, &err), FR_INPUT, &err);
    CHECK_HAS(err.text, "needs the interleaved schedule, not eager-1f1b");
}

/* Priced, bounded and no faster than the same bubble allows. */
static void test_run(void)
{
    static const struct {
        int32_t tp, pp, dp;
        int64_t micro_batch;
        fr_recompute recompute;
    } cases[] = {
        {1, 2, 1, 1, FR_RECOMPUTE_NONE},      {1, 4, 1, 1, FR_RECOMPUTE_NONE},
        {2, 4, 1, 2, FR_RECOMPUTE_FULL},      {1, 8, 1, 1, FR_RECOMPUTE_NONE},
        {1, 4, 2, 4, FR_RECOMPUTE_SELECTIVE}, {1, 2, 8, 1, FR_RECOMPUTE_NONE},
        {8, 2, 1, 16, FR_RECOMPUTE_NONE},
    };
    sim_fixture f;
    if (plugged_init(&f, 2))
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            double eager_s = 0, usual_s = 0;
            fr_plan_init(&f.plan);
            f.plan.tp = cases[i].tp;
            f.plan.pp = cases[i].pp;
            f.plan.dp = cases[i].dp;
            f.plan.micro_batch = cases[i].micro_batch;
            f.plan.recompute = cases[i].recompute;
            plugged_run(&f, &usual_s);
            f.plan.schedule = plugged;
            plugged_run(&f, &eager_s);
            CHECK(eager_s > 0.7 * usual_s && eager_s < 1.3 * usual_s);
        }
    sim_fixture_release(&f);
}

static bool is_plugged(const fr_plan *plan)
{
    return plan->schedule == plugged;
}

static bool is_gpipe(const fr_plan *plan)
{
    return plan->schedule == FR_SCHEDULE_GPIPE;
}

/* It is in the space of tune as often as GPipe, which needs as little, and
 * among the changes that explain looks at. */
static void test_searched(void)
{
    sim_fixture f;
    if (plugged_init(&f, 1)) {
        size_t n = plugged_count(&f, is_plugged);
        CHECK(n > 0);
        CHECK_INT(n, plugged_count(&f, is_gpipe));
        f.plan.pp = 4;
        CHECK(plugged_is_change(&f, "schedule 1f1b -> eager-1f1b"));
    }
    sim_fixture_release(&f);
}

CHECK_MAIN({"names", test_names}, {"legal", test_legal}, {"run", test_run},
           {"searched", test_searched})
