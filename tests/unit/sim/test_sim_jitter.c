/*
 * test_sim_jitter.c: the largest of n normal draws against tabled values, and
 * the wait of a group against the law by hand.
 */
#include "sim/replay/jitter.h"
#include "tests/check.h"

/* Harter, Biometrika 48 (1961), table 1; variances: Godwin, Ann. Math. Stat.
 * 20 (1949), table of moments. */
static void test_largest(void)
{
    static const struct {
        int64_t n;
        double mean, variance;
    } cases[] = {{2, 0.56419, 0.68169},
                 {3, 0.84628, 0.55947},
                 {5, 1.16296, 0.44753},
                 {10, 1.53875, 0.34434},
                 {100, 2.50759, 0.18442}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fr_largest of = fr_largest_of(cases[i].n);
        CHECK_WITHIN(of.mean, cases[i].mean, 2e-5);
        CHECK_WITHIN(of.variance, cases[i].variance, 2e-4);
    }
    CHECK(fr_largest_of(1).mean == 0);
    CHECK(fr_largest_of(131072).mean > fr_largest_of(16384).mean);
}

/* Two tables: 0 joins states 0 and 1, 1 joins 0 and 2. */
static void test_meet(void)
{
    fr_jitter jitter;
    fr_err err;
    fr_jitter_work none = {0};
    const uint32_t near[] = {0, 1}, far[] = {0, 2};
    fr_jitter_init(0.02385, 0, 2, &jitter);
    for (int i = 0; i < 3; i++)
        CHECK_OK(fr_jitter_add(&jitter, UINT32_MAX, &err), &err);
    CHECK_INT(fr_jitter_meet(&jitter, 0, 2, near, 2, &none), 0);
    fr_jitter_compute(&jitter, 0, 4000000);
    fr_jitter_compute(&jitter, 0, 6000000);
    fr_jitter_compute(&jitter, 1, 9000000);
    /* They have met: 10 us at most since then. */
    double s_ps = 0.02385 * 10e6;
    CHECK_WITHIN(fr_jitter_meet(&jitter, 0, 2, near, 2, &none), s_ps * 0.56419,
                 10);
    CHECK_INT(fr_jitter_meet(&jitter, 0, 2, near, 2, &none), 0);
    /* For the other group what is left over counts. */
    CHECK_WITHIN(fr_jitter_meet(&jitter, 1, 8, far, 2, &none),
                 s_ps * sqrt(0.68169) * 1.42360, 20);
    CHECK_INT(fr_jitter_meet(&jitter, 1, 8, far, 2, &none), 0);
    fr_jitter_release(&jitter);
}

static void test_off(void)
{
    fr_jitter jitter;
    fr_jitter_init(0, 0, 2, &jitter);
    CHECK(!jitter.is_on);
    fr_jitter_release(&jitter);
}

CHECK_MAIN({"largest", test_largest}, {"meet", test_meet}, {"off", test_off})
