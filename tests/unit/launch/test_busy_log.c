/*
 * test_busy_log.c: which steps count as disturbed, and the sums over them,
 * against values that are made here by hand; the accounting of the ranks of a
 * machine: time that this program uses is not that of others.
 */
#include "runtime/watch/busy_log.h"
#include "runtime/watch/others.h"
#include "tests/check.h"

#include <time.h>

static const double step_s[] = {9.0, 0.392, 0.71, 0.73, 0.396, 0.72, 0.398};
enum { N_STEPS = FR_LENGTH(step_s) };

static fr_busy_interval interval_of(int64_t n_steps, double elapsed_s,
                                    double others_s, bool is_disturbed)
{
    return (fr_busy_interval){.n_steps = n_steps,
                              .is_known = true,
                              .is_disturbed = is_disturbed,
                              .share = {.elapsed_s = elapsed_s,
                                        .others_s = others_s,
                                        .steal_s = 0.05,
                                        .n_processors = 2,
                                        .n_runnable = 5}};
}

/* Steps 2 and 3 are one disturbed interval of rank 0; rank 2, on another
 * machine, was disturbed in step 5, and more. */
static void test_log(void)
{
    fr_err err = {0};
    fr_busy_log *log;
    fr_busy_steps busy;
    const fr_busy_interval none = {0}, calm = interval_of(2, 9.4, 0.1, false),
                           bad = interval_of(2, 1.44, 1.46, true),
                           alone = interval_of(1, 0.4, 0.0, false),
                           worse = interval_of(6, 12.0, 14.35, true);

    CHECK_OK(fr_busy_log_create(N_STEPS, 3, &log, &err), &err);
    fr_busy_log_add(log, 0, 0, &none);
    fr_busy_log_add(log, 1, 0, &calm);
    fr_busy_log_add(log, 3, 0, &bad);
    fr_busy_log_add(log, 4, 0, &alone);
    fr_busy_log_add(log, 5, 0, &alone);
    fr_busy_log_add(log, 6, 0, &alone);
    CHECK_OK(fr_busy_log_summarise(log, step_s, 1, N_STEPS, &busy, &err), &err);
    CHECK_INT(busy.n_steps, 7);
    CHECK_INT(busy.n_known, 7);
    CHECK_INT(busy.n_disturbed, 2);
    CHECK_NEAR(busy.others, (1.46 + 0.05) / 1.44, 1e-12);
    CHECK_NEAR(busy.stolen, 0.05 / 1.44, 1e-12);
    /* Steps 1, 4, 5 and 6 without the first: 0.392, 0.396, 0.72, 0.398. */
    CHECK_NEAR(busy.undisturbed_step_s, 0.397, 1e-12);
    CHECK_OK(fr_busy_log_summarise(log, step_s, 1, 5, &busy, &err), &err);
    CHECK_NEAR(busy.undisturbed_step_s, 0.394, 1e-12);
    fr_busy_log_add(log, 5, 2, &worse);
    CHECK_OK(fr_busy_log_summarise(log, step_s, 1, N_STEPS, &busy, &err), &err);
    CHECK_INT(busy.n_disturbed, 6);
    CHECK_INT(busy.rank, 2);
    CHECK_NEAR(busy.others, 14.4 / 12.0, 1e-12);
    CHECK_NEAR(busy.undisturbed_step_s, 0.398, 1e-12);
    fr_busy_log_destroy(log);
}

static void test_not_known(void)
{
    fr_err err = {0};
    fr_busy_log *log;
    fr_busy_steps busy;
    fr_busy_interval unknown = interval_of(3, 2.0, 2.0, true);

    unknown.is_known = false;
    CHECK_OK(fr_busy_log_create(3, 1, &log, &err), &err);
    fr_busy_log_add(log, 2, 0, &unknown);
    CHECK_OK(fr_busy_log_summarise(log, step_s, 1, 3, &busy, &err), &err);
    CHECK_INT(busy.n_known, 0);
    CHECK_INT(busy.n_disturbed, 0);
    CHECK_NEAR(busy.undisturbed_step_s, 0.0, 0.0);
    fr_busy_log_destroy(log);
}

/* An interval that ends beyond the log, or began before it, marks its part. */
static void test_edges(void)
{
    fr_err err = {0};
    fr_busy_log *log;
    fr_busy_steps busy;
    const fr_busy_interval wide = interval_of(9, 2.0, 2.0, true);

    CHECK_OK(fr_busy_log_create(3, 1, &log, &err), &err);
    fr_busy_log_add(log, 5, 0, &wide);
    CHECK_OK(fr_busy_log_summarise(log, step_s, 0, 3, &busy, &err), &err);
    CHECK_INT(busy.n_disturbed, 3);
    fr_busy_log_destroy(log);
    CHECK_OK(fr_busy_log_create(0, 1, &log, &err), &err);
    fr_busy_log_add(log, 0, 0, &wide);
    CHECK_OK(fr_busy_log_summarise(log, step_s, 0, 0, &busy, &err), &err);
    CHECK_INT(busy.n_disturbed, 0);
    fr_busy_log_destroy(log);
}

static double own_now_s(void)
{
    struct timespec t;

    CHECK(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t) == 0);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The time that this process works is its own, however much others take. */
static void test_own_time(void)
{
    fr_err err = {0};
    fr_transport *transport;
    fr_others *others;
    fr_processor_set set;
    fr_processor_share share;

    fr_processor_set_allowed(&set);
    CHECK_OK(fr_transport_alone_create(60.0, &transport, &err), &err);
    CHECK_OK(fr_others_create(transport, &set, &others, &err), &err);
    CHECK_INT(fr_others_n_ranks(others), 1);
    const double begin_s = own_now_s();
    while (own_now_s() - begin_s < 0.2)
        (void)0;
    if (fr_others_end(others, &share)) {
        const double all_s = share.elapsed_s * share.n_processors;
        CHECK(share.own_s >= 0.2);
        CHECK(share.others_s + share.own_s + share.steal_s <=
              1.05 * all_s + 4 * share.tick_s * share.n_processors);
    }
    fr_others_destroy(others);
    fr_transport_destroy(transport);
}

CHECK_MAIN({"log", test_log}, {"not_known", test_not_known},
           {"edges", test_edges}, {"own_time", test_own_time})
