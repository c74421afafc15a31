/*
 * test_fit_advice.c: the verdict on plans that do not fit.  The bytes were
 * divided and rounded by hand.
 */
#include "spec/result/fit_advice.h"
#include "tests/check.h"

#define GIB (1024.0 * 1024 * 1024)

static const char *verdict_of(double peak_gib, double capacity_gib,
                              double p_fits)
{
    static char text[FR_FIT_VERDICT];
    fr_prediction p = {.memory.peak_bytes = (uint64_t)(peak_gib * GIB),
                       .memory.capacity_bytes = (uint64_t)(capacity_gib * GIB),
                       .memory.p_fits = p_fits};
    p.memory.fits = p.memory.peak_bytes <= p.memory.capacity_bytes;
    return fr_fit_verdict(&p, text, sizeof text);
}

static void test_amounts(void)
{
    CHECK_STR(verdict_of(93.1, 79.6, 0.07),
              "DOES NOT FIT: needs 93.1 of 79.6 GiB (93 % sure)");
    /* 1.3311 TiB are 1363.05 GiB. */
    CHECK_STR(verdict_of(1363.05, 79.6, 1e-9),
              "DOES NOT FIT: needs 1.33 TiB of 79.6 GiB (>99 % sure)");
    /* 0.015 GiB are 15.36 MiB. */
    CHECK_STR(verdict_of(79.630, 79.615, 0.4987),
              "DOES NOT FIT: needs 15.4 MiB more than 79.6 GiB (50 % sure)");
}

static void test_sureness(void)
{
    CHECK_STR(verdict_of(100, 50, 0.0051),
              "DOES NOT FIT: needs 100 of 50 GiB (99 % sure)");
    CHECK_STR(verdict_of(100, 50, 0.0049),
              "DOES NOT FIT: needs 100 of 50 GiB (>99 % sure)");
    CHECK_STR(verdict_of(75.8, 79.6, 0.714),
              "MAY NOT FIT: needs 75.8 of 79.6 GiB (fits with 71 %, "
              "less than --fit-confidence)");
}

/* The rank fits, but the hosts do not hold everything that is offloaded. */
static void test_hosts(void)
{
    char text[FR_FIT_VERDICT];
    fr_prediction p = {
        .memory.peak_bytes = (uint64_t)(37.5 * GIB),
        .memory.capacity_bytes = (uint64_t)(79.6 * GIB),
        .memory.host_bytes = (uint64_t)(134.6 * GIB),
        .memory.host_capacity_bytes = (uint64_t)(100.3 * GIB),
    };
    CHECK_STR(fr_fit_verdict(&p, text, sizeof text),
              "DOES NOT FIT: needs 134.6 of 100.3 GiB of a node's hosts "
              "(>99 % sure)");
    /* The ranks come first. */
    p.memory.peak_bytes = (uint64_t)(81.2 * GIB);
    CHECK_STR(fr_fit_verdict(&p, text, sizeof text),
              "DOES NOT FIT: needs 81.2 of 79.6 GiB (>99 % sure)");
}

static void test_counts(void)
{
    char text[FR_FIT_VERDICT];
    CHECK_STR(fr_fit_count(3, 8, text, sizeof text),
              "3 of 8 points DO NOT FIT");
    CHECK_STR(fr_fit_count(1, 8, text, sizeof text),
              "1 of 8 points DOES NOT FIT");
    CHECK_STR(fr_fit_count(1, 1, text, sizeof text),
              "1 of 1 point DOES NOT FIT");
}

CHECK_MAIN({"amounts", test_amounts}, {"sureness", test_sureness},
           {"hosts", test_hosts}, {"counts", test_counts})
