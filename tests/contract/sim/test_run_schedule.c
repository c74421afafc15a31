/*
 * test_run_schedule.c: runs with faults on purpose, worked out by hand: steps
 * of 2 s, of 5 s where a rank is slow, 3 s more for each place that is missing.
 */
#include "reliability/run_schedule.h"
#include "tests/check.h"

static fr_status price(void *context, int64_t n_places, int64_t i_step,
                       fr_schedule_step *out, fr_err *err)
{
    const fr_faults *faults = context;
    const double idle_s = 3.0 * (double)(4 - n_places);
    const bool is_slow =
        fr_faults_at(faults, FR_FAULT_SLOW, -1, i_step) != NULL;

    (void)err;
    *out = (fr_schedule_step){.step_s = 2 + idle_s + (is_slow ? 3 : 0),
                              .straggler_s = is_slow ? 3 : 0,
                              .idle_s = idle_s};
    return FR_OK;
}

static fr_status walk_saving(const char *words, int64_t every_steps,
                             double drain_s, fr_schedule_result *out,
                             fr_err *err)
{
    fr_faults faults = {0};
    fr_status status =
        words[0] != '\0' ? fr_faults_parse(words, &faults, err) : FR_OK;
    const fr_fault_schedule schedule = {.faults = &faults,
                                        .n_steps = 60,
                                        .n_places = 4,
                                        .every_steps = every_steps,
                                        .blocked_s = 1,
                                        .drain_s = drain_s,
                                        .start_s = 20,
                                        .restart_s = 30,
                                        .replan_s = 7,
                                        .end_s = 3,
                                        .hang_s = 100,
                                        .price = price,
                                        .context = &faults};

    if (status == FR_OK)
        status = fr_schedule_walk(&schedule, out, err);
    fr_vec_release(&faults);
    return status;
}

static fr_status walk(const char *words, double drain_s,
                      fr_schedule_result *out, fr_err *err)
{
    return walk_saving(words, 10, drain_s, out, err);
}

static void check_walk(const char *words, double drain_s, double wall_s,
                       double lost_s, int64_t n_restarts)
{
    fr_schedule_result found = {0};
    fr_err err;
    double sum = 0;

    if (!CHECK_OK(walk(words, drain_s, &found, &err), &err))
        return;
    for (int part = 0; part < FR_RUN_PARTS; part++)
        sum += found.parts_s[part];
    bool is_good = CHECK_NEAR(sum, found.wall_s, 1e-9) &&
                   CHECK_NEAR(found.parts_s[FR_RUN_USEFUL], 120, 1e-9) &&
                   CHECK_NEAR(found.wall_s, wall_s, 1e-9) &&
                   CHECK_NEAR(found.parts_s[FR_RUN_LOST], lost_s, 1e-9) &&
                   CHECK_INT(found.n_restarts, n_restarts);
    if (!is_good)
        printf("  %s, %g s to storage\n", words, drain_s);
}

static void test_by_hand(void)
{
    const double calm_s = 20 + 60 * 2 + 6 + 3;

    check_walk("", 0, calm_s, 0, 0);
    /* Five steps are done once more. */
    check_walk("kill:rank=1@25", 0, calm_s + 10 + 30, 10, 1);
    check_walk("kill:rank=1@25,kill:rank=0@25", 0, calm_s + 40, 10, 1);
    check_walk("hang:rank=1@25", 0, calm_s + 40 + 100, 10, 1);
    /* The second comes where steps are done once more: not again. */
    check_walk("kill:rank=1@25,kill:rank=2@33", 0, calm_s + 40 + 36, 16, 2);
    check_walk("slow:rank=1x2@10..19", 0, calm_s + 30, 0, 0);
    /* Slow again, as often as the steps are done. */
    check_walk("slow:rank=1x2@23..26,kill:rank=0@25", 0,
               calm_s + 4 * 3 + 40 + 6, 16, 1);
    /* A checkpoint that is being written is lost as well. */
    check_walk("kill:rank=1@21", 1, calm_s + 1 + 2 + 30, 2, 1);
    check_walk("kill:rank=1@21", 7, calm_s + 7 + 22 + 1 + 30, 22, 1);
    check_walk("kill:rank=1@24", 7, calm_s + 7 + 8 + 30, 8, 1);
}

/* The last step is saved as well, wherever the interval ends. */
static void test_last_save(void)
{
    fr_schedule_result found = {0};
    fr_err err;

    if (CHECK_OK(walk_saving("", 25, 0, &found, &err), &err))
        CHECK_NEAR(found.parts_s[FR_RUN_CHECKPOINT], 3, 1e-9);
    if (CHECK_OK(walk_saving("", 0, 0, &found, &err), &err))
        CHECK_NEAR(found.parts_s[FR_RUN_CHECKPOINT], 0, 1e-9);
}

static void test_places(void)
{
    /* Lost at step 25, back at step 40: 20 steps with three places, of which 5
     * were done before with four; at the end everything is saved at once. */
    const double calm_s = 20 + 60 * 2 + 6 + 3;
    fr_schedule_result found;
    fr_err err;

    check_walk("lose:rank=1@25,join:rank=1@40", 0,
               calm_s + 10 + 30 + 7 + 20 * 3 + 1 + 30 + 7, 10, 2);
    CHECK_INT(walk("lose:rank=0@1,lose:rank=1@2,lose:rank=2@3,lose:rank=3@4", 0,
                   &found, &err),
              FR_FAILURE);
    CHECK_HAS(err.text, "no place is left");
}

CHECK_MAIN({"by_hand", test_by_hand}, {"last_save", test_last_save},
           {"places", test_places})
