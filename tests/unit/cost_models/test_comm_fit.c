/* test_comm_fit.c: what measured sizes of collectives say of others. */
#include "cost_models/link/comm_fit.h"
#include "tests/check.h"

#include <stdio.h>

static const double latency_s = 100e-6, s_per_byte = 1 / 80e6;

static void add(fr_profile *profile, uint64_t n_bytes, double factor)
{
    fr_err err;
    fr_comm_point point = {.n_group = 2, .n_bytes = n_bytes, .is_async = true};
    snprintf(point.op, sizeof point.op, "all_reduce");
    snprintf(point.algorithm, sizeof point.algorithm, "ring");
    snprintf(point.scope, sizeof point.scope, "net");
    point.sample.median_s = (latency_s + s_per_byte * (double)n_bytes) * factor;
    point.sample.n_samples = 3;
    CHECK_OK(fr_profile_add_comm(profile, &point, &err), &err);
}

static double ask_s(const fr_comm_fits *fits, uint64_t n_bytes)
{
    const fr_comm_query query = {.op = FR_OP_ALL_REDUCE,
                                 .algorithm = FR_COLLECTIVE_RING,
                                 .is_net = true,
                                 .is_async = true,
                                 .n_group = 2,
                                 .n_bytes = n_bytes,
                                 .element_bytes = 4};
    fr_comm_answer answer;
    CHECK(fr_comm_fits_ask(fits, &query, &answer));
    return answer.seconds;
}

/* The largest size was lucky: what is larger still does not inherit that. */
static void test_one_lucky_size(void)
{
    fr_err err;
    fr_profile profile;
    fr_comm_fits *fits;
    fr_profile_init(&profile);
    for (uint64_t n = 16; n <= 4 << 20; n *= 2)
        add(&profile, n, n % 3 == 0 ? 1.02 : 0.99);
    add(&profile, 7 << 20, 0.85);
    CHECK_OK(fr_comm_fits_create(&profile, &fits, &err), &err);
    CHECK_NEAR(ask_s(fits, 1 << 20),
               (latency_s + s_per_byte * (1 << 20)) * 0.99, 1e-9);
    for (uint64_t n = 20 << 20; n <= 160 << 20; n *= 2)
        CHECK_NEAR(ask_s(fits, n) / (latency_s + s_per_byte * (double)n), 1,
                   0.04);
    CHECK(ask_s(fits, (7 << 20) + 4) >= ask_s(fits, 7 << 20));
    fr_comm_fits_destroy(fits);
    fr_profile_release(&profile);
}

/* If larger sizes took no longer, all sizes together determine the slope beyond
 * them. */
static void test_still_grow(void)
{
    fr_err err;
    fr_profile profile;
    fr_comm_fits *fits;
    fr_profile_init(&profile);
    add(&profile, 1 << 10, 1);
    add(&profile, 1 << 20, 1);
    add(&profile, 2 << 20, 0.5);
    CHECK_OK(fr_comm_fits_create(&profile, &fits, &err), &err);
    CHECK(ask_s(fits, 200 << 20) > 50 * ask_s(fits, 2 << 20));
    fr_comm_fits_destroy(fits);
    fr_profile_release(&profile);
}

CHECK_MAIN({"one_lucky_size", test_one_lucky_size},
           {"still_grow", test_still_grow})
