/*
 * test_trust.c: the sums of what others took in the phases of a calibration,
 * against sums by hand, and the bound beyond which no profile is written.
 */
#include "calibrate/disturbance.h"
#include "calibrate/trust.h"
#include "tests/check.h"

static void add_phase(fr_profile *profile, const char *phase, double elapsed_s,
                      double others_s, bool is_disturbed)
{
    fr_err err = {0};
    fr_others_point point = {.elapsed_s = elapsed_s,
                             .own_s = 0.3 * elapsed_s,
                             .others_s = others_s,
                             .stolen_s = 0.25,
                             .n_processors = 2,
                             .n_runnable = 4,
                             .is_disturbed = is_disturbed};

    snprintf(point.phase, sizeof point.phase, "%s", phase);
    CHECK_OK(fr_profile_add_others(profile, &point, &err), &err);
}

static void test_sum(void)
{
    fr_profile profile;
    fr_processor_share sum;
    fr_buffer text;
    double all_s;

    fr_profile_init(&profile);
    fr_buffer_init(&text);
    fr_calibrate_sum_others(&profile, &sum, &all_s);
    CHECK(all_s == 0 && sum.elapsed_s == 0);
    add_phase(&profile, "before", 0.2, 0.4, true);
    add_phase(&profile, "rates", 3.5, 0.1, false);
    fr_calibrate_describe_others(&profile, &text);
    CHECK_INT(text.n, 0);
    add_phase(&profile, "kernels", 12.25, 17.5, true);
    add_phase(&profile, "collectives", 6.0, 7.5, true);
    add_phase(&profile, "after", 0.2, 0.4, true);
    fr_calibrate_sum_others(&profile, &sum, &all_s);
    CHECK_NEAR(all_s, 3.5 + 12.25 + 6.0, 1e-12);
    CHECK_NEAR(sum.elapsed_s, 12.25 + 6.0, 1e-12);
    CHECK_NEAR(sum.others_s, 17.5 + 7.5, 1e-12);
    CHECK_NEAR(sum.steal_s, 0.5, 1e-12);
    /* 25.5 / 18.25 = 1.397 */
    fr_calibrate_describe_others(&profile, &text);
    CHECK_STR(fr_buffer_text(&text), "others used 1.4 of 2 processors during "
                                     "18 of 22 s of measurements");
    fr_buffer_release(&text);
    fr_profile_release(&profile);
}

static void test_judge(void)
{
    fr_profile profile;
    fr_err err = {0};
    fr_held_out good = {"compute linear_fwd", 5, 0.0231, 0.0714},
                edge = {"net all_gather", 3, 1.999, 40.29},
                bad = {"net broadcast", 5, 127.1, 310.0};

    fr_profile_init(&profile);
    CHECK_OK(fr_calibrate_judge(&profile, &err), &err);
    CHECK_OK(fr_profile_add_held_out(&profile, &good, &err), &err);
    CHECK_OK(fr_profile_add_held_out(&profile, &edge, &err), &err);
    CHECK_OK(fr_calibrate_judge(&profile, &err), &err);
    CHECK_OK(fr_profile_add_held_out(&profile, &bad, &err), &err);
    CHECK_FAILS(fr_calibrate_judge(&profile, &err), FR_CHECK, &err);
    CHECK_STR(err.text, "the fit of 'net broadcast' misses sizes that it never "
                        "saw by 12710 % (at most 200 %)");
    add_phase(&profile, "collectives", 6.0, 7.5, true);
    CHECK_FAILS(fr_calibrate_judge(&profile, &err), FR_CHECK, &err);
    CHECK_HAS(err.text, "; others used 1.3 of 2 processors during 6 of 6 s");
    fr_profile_release(&profile);
}

/* Each phase adds at most one point, with its name; time is not asserted. */
static void test_phases(void)
{
    fr_err err = {0};
    fr_transport *transport;
    fr_disturbance *watch;
    fr_profile profile;

    fr_profile_init(&profile);
    CHECK_OK(fr_transport_alone_create(60.0, &transport, &err), &err);
    CHECK_OK(fr_disturbance_create(transport, &watch, &err), &err);
    CHECK_OK(fr_disturbance_rest(watch, "before", &profile, &err), &err);
    CHECK_OK(fr_disturbance_end(watch, "kernels", &profile, &err), &err);
    CHECK(profile.n_others <= 2);
    for (size_t i = 0; i < profile.n_others; i++) {
        const fr_others_point *at = &profile.others[i];
        CHECK(at->elapsed_s > 0 && at->n_processors >= 1);
        CHECK(at->others_s >= 0 && at->stolen_s >= 0);
    }
    if (profile.n_others == 2)
        CHECK_STR(profile.others[0].phase, "before");
    fr_disturbance_destroy(watch);
    fr_transport_destroy(transport);
    fr_profile_release(&profile);
}

CHECK_MAIN({"sum", test_sum}, {"judge", test_judge}, {"phases", test_phases})
