/* test_virtual_time.c: times beyond the clock saturate, none wraps. */
#include "sim/engine/virtual_time.h"
#include "tests/check.h"

#include <math.h>

static void test_seconds(void)
{
    CHECK_INT(fr_ps_of(2.385e-6), 2385000);
    CHECK_INT(fr_ps_of(-1.0), 0);
    CHECK_INT(fr_ps_of(1e300), FR_PS_END);
    CHECK_INT(fr_ps_of(HUGE_VAL), FR_PS_END);
    CHECK_INT(fr_ps_of(NAN), FR_PS_END);
    CHECK_INT(fr_ps_cut(2385.7), 2385);
    CHECK_INT(fr_ps_cut(1e30), FR_PS_END);
    CHECK_INT(fr_ps_of_work((fr_work)1 << 120, 3), FR_PS_END);
    CHECK_INT(fr_ps_of_work(7155, 3), 2385);
}

static void test_sums(void)
{
    int64_t sum = 17;
    CHECK_INT(fr_ps_add(2000, 385), 2385);
    CHECK_INT(fr_ps_add(FR_PS_END, FR_PS_END), FR_PS_END);
    CHECK_INT(fr_ps_add(-FR_PS_END, 5), 5 - FR_PS_END);
    fr_ps_add_times(&sum, 3, 789);
    CHECK_INT(sum, 2384);
    fr_ps_add_times(&sum, INT64_MAX, 2385);
    CHECK_INT(sum, FR_PS_END);
    fr_ps_add_times(&sum, 1, 1);
    CHECK_INT(sum, FR_PS_END);
}

CHECK_MAIN({"seconds", test_seconds}, {"sums", test_sums})
