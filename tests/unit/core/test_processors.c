/*
 * test_processors.c: the accounting of others' processor time against sums
 * that are made here by hand from texts of /proc/stat; no assertion is about a
 * clock.
 */
#include "core/system/processors.h"
#include "tests/check.h"

#include <string.h>

#define TICK_S 0.01

/* Three processors; the third is not ours.  Columns: user nice system idle
 * iowait irq softirq steal guest guest_nice (proc_stat(5)). */
static const char first[] = "cpu  112341 7 12596 1254609 2533 0 191 5714 0 0\n"
                            "cpu0 54901 3 5878 630153 357 11 30 2798 900 0\n"
                            "cpu1 57440 4 6717 624456 2176 13 160 2915 0 0\n"
                            "cpu2 11 0 0 5 0 0 0 1 0 0\n"
                            "intr 749323 0 0 24\n"
                            "ctxt 721170\n"
                            "procs_running 3\n";
static const char second[] = "cpu  112341 7 12596 1254609 2533 0 191 5714 0 0\n"
                             "cpu0 54961 5 5885 630171 366 12 33 2801 900 0\n"
                             "cpu1 57503 4 6726 624482 2176 13 161 2916 0 0\n"
                             "cpu2 911 0 0 5 0 0 0 1 0 0\n"
                             "intr 749323 0 0 24\n";

static const fr_processor_set two = {{3}};

static void read_both(fr_processor_times *begin, fr_processor_times *end)
{
    CHECK(fr_processor_times_parse(first, "0.62 0.85 0.77 3/245 4711\n", &two,
                                   TICK_S, begin));
    CHECK(fr_processor_times_parse(second, "9.5 0.85 0.77 11/245 4711\n", &two,
                                   TICK_S, end));
    begin->at_s = 17.25;
    end->at_s = 18.25;
}

static void test_parse(void)
{
    fr_processor_times begin, end;

    read_both(&begin, &end);
    /* user + nice + system + irq + softirq; guest is in user already. */
    CHECK_NEAR(begin.busy_s,
               0.01 *
                   (54901 + 3 + 5878 + 11 + 30 + 57440 + 4 + 6717 + 13 + 160),
               1e-9);
    CHECK_NEAR(begin.idle_s, 0.01 * (630153 + 357 + 624456 + 2176), 1e-9);
    CHECK_NEAR(begin.steal_s, 0.01 * (2798 + 2915), 1e-9);
    CHECK_INT(begin.n_processors, 2);
    CHECK_INT(begin.n_runnable, 3);
    CHECK_INT(end.n_runnable, 11);
}

static void test_law(void)
{
    fr_processor_times begin, end;
    fr_processor_share share;

    read_both(&begin, &end);
    /* busy: cpu0 60 + 2 + 7 + 1 + 3 = 73, cpu1 63 + 9 + 1 = 73 ticks;
     * stolen: 3 + 1 ticks. */
    CHECK(fr_processor_share_between(&begin, &end, 0.37, &share));
    CHECK_NEAR(share.others_s, 1.46 - 0.37, 1e-9);
    CHECK_NEAR(share.steal_s, 0.04, 1e-9);
    CHECK_NEAR(share.elapsed_s, 1.0, 1e-12);
    CHECK_NEAR(fr_processor_share_others(&share), 1.46 - 0.37 + 0.04, 1e-9);
    CHECK_INT(share.n_processors, 2);
    CHECK_INT(share.n_runnable, 11);
    /* Own time beyond the ticks is no negative time of others. */
    CHECK(fr_processor_share_between(&begin, &end, 1.47, &share));
    CHECK_NEAR(share.others_s, 0.0, 0.0);
}

/* Others may have the processors that the program does not want. */
static void test_disturbed(void)
{
    fr_processor_share share = {
        .elapsed_s = 2.0, .others_s = 1.9, .tick_s = TICK_S, .n_processors = 4};

    CHECK(!fr_processor_share_is_disturbed(&share, 3));
    CHECK(fr_processor_share_is_disturbed(&share, 4));
    CHECK(fr_processor_share_is_disturbed(&share, 9));
    /* A tenth of a processor, and two ticks for the four processors. */
    share.others_s = 0.1 * 2.0 + 2 * TICK_S - 1e-6;
    CHECK(!fr_processor_share_is_disturbed(&share, 4));
    share.others_s += 2e-6;
    CHECK(fr_processor_share_is_disturbed(&share, 4));
    CHECK(!fr_processor_share_is_disturbed(&share, 3));
    /* Nobody chooses the processor that a hypervisor takes. */
    share.others_s = 0.0;
    share.steal_s = 0.221;
    CHECK(fr_processor_share_is_disturbed(&share, 1));
    share.steal_s = 0.219;
    CHECK(!fr_processor_share_is_disturbed(&share, 1));
}

static void test_sum(void)
{
    fr_processor_share sum = {0};
    const fr_processor_share a = {.elapsed_s = 0.5,
                                  .own_s = 0.25,
                                  .others_s = 0.75,
                                  .steal_s = 0.125,
                                  .tick_s = TICK_S,
                                  .n_processors = 2,
                                  .n_runnable = 5};
    const fr_processor_share b = {.elapsed_s = 1.5,
                                  .others_s = 0.0625,
                                  .tick_s = TICK_S,
                                  .n_processors = 2,
                                  .n_runnable = 3};

    CHECK_NEAR(fr_processor_share_others(&sum), 0.0, 0.0);
    fr_processor_share_add(&sum, &a);
    fr_processor_share_add(&sum, &b);
    CHECK_NEAR(fr_processor_share_others(&sum), (0.75 + 0.125 + 0.0625) / 2.0,
               1e-12);
    CHECK_NEAR(sum.own_s, 0.25, 0.0);
    CHECK_INT(sum.n_runnable, 5);
}

static void test_not_known(void)
{
    fr_processor_times begin, end, times;
    fr_processor_share share;
    const fr_processor_set other = {{0, 1}};

    read_both(&begin, &end);
    end.at_s = 19.5; /* two processors had 4.5 s, and the counters say 1.5 */
    CHECK(!fr_processor_share_between(&begin, &end, 0.1, &share));
    end.at_s = begin.at_s;
    CHECK(!fr_processor_share_between(&begin, &end, 0.1, &share));
    end.at_s = 18.25;
    end.n_processors = 3;
    CHECK(!fr_processor_share_between(&begin, &end, 0.1, &share));
    end.n_processors = 2;
    CHECK(!fr_processor_share_between(&begin, &end, -0.1, &share));
    CHECK(!fr_processor_times_parse(first, NULL, &other, TICK_S, &times));
    CHECK(!fr_processor_times_parse("", NULL, &two, TICK_S, &times));
    CHECK(
        !fr_processor_times_parse("cpu0 1 2 3\n", NULL, &two, TICK_S, &times));
    CHECK(!fr_processor_times_parse("cpu0 1 2 3 4 5 6 x 8\n", NULL, &two,
                                    TICK_S, &times));
    CHECK(!fr_processor_times_parse("cpu0 -1 2 3 4 5 6 7 8\n", NULL, &two,
                                    TICK_S, &times));
    /* Old kernels have no steal; a load that is no load is not known. */
    CHECK(fr_processor_times_parse("cpu1 1 2 3 4 5 6 7\n", "much", &two, TICK_S,
                                   &times));
    CHECK_NEAR(times.busy_s, 0.01 * (1 + 2 + 3 + 6 + 7), 1e-12);
    CHECK_NEAR(times.steal_s, 0.0, 0.0);
    CHECK_INT(times.n_runnable, 0);
}

/* On a real machine the sums of an interval are those of its halves. */
static void test_here(void)
{
    fr_processor_set set;
    fr_processor_times begin, end;
    fr_processor_share share;

    fr_processor_set_allowed(&set);
    if (!fr_processor_times_read(&set, &begin))
        return;
    CHECK(begin.n_processors >= 1);
    CHECK(begin.busy_s >= 0.0 && begin.idle_s >= 0.0);
    CHECK(fr_processor_times_read(&set, &end));
    CHECK(end.at_s >= begin.at_s && end.busy_s >= begin.busy_s);
    if (fr_processor_share_between(&begin, &end, 0.0, &share))
        CHECK(share.others_s >= 0.0 && share.n_processors >= 1);
}

CHECK_MAIN({"parse", test_parse}, {"law", test_law},
           {"disturbed", test_disturbed}, {"sum", test_sum},
           {"not_known", test_not_known}, {"here", test_here})
