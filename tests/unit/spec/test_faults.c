/* The words of --inject: what is read, and what is refused with the word. */
#include "spec/model/faults.h"
#include "tests/check.h"

static void test_words(void)
{
    fr_faults faults = {0};
    fr_err err = {0};

    if (CHECK_OK(fr_faults_parse("kill:rank=2@step=30, lose:rank=1@7", &faults,
                                 &err),
                 &err) &&
        CHECK_INT(faults.n, 2)) {
        CHECK_INT(faults.items[0].kind, FR_FAULT_KILL);
        CHECK_INT(faults.items[0].rank, 2);
        CHECK_INT(faults.items[0].first_step, 30);
        CHECK_INT(faults.items[1].kind, FR_FAULT_LOSE);
        CHECK_INT(faults.items[1].first_step, 7);
        CHECK(fr_faults_at(&faults, FR_FAULT_KILL, 2, 30) == &faults.items[0]);
        CHECK(fr_faults_at(&faults, FR_FAULT_KILL, 2, 31) == NULL);
        CHECK(fr_faults_at(&faults, FR_FAULT_KILL, 1, 30) == NULL);
        CHECK(fr_faults_at(&faults, FR_FAULT_LOSE, -1, 7) == &faults.items[1]);
    }
    fr_vec_release(&faults);
}

static void test_slow_and_read(void)
{
    fr_faults faults = {0};
    fr_err err = {0};

    if (CHECK_OK(fr_faults_parse("slow:rank=1x2.385@10..40,hang:rank=0@50,"
                                 "read:20MB/s@3..9",
                                 &faults, &err),
                 &err) &&
        CHECK_INT(faults.n, 3)) {
        CHECK(faults.items[0].factor == 2.385);
        CHECK(fr_faults_at(&faults, FR_FAULT_SLOW, 1, 40) != NULL);
        CHECK(fr_faults_at(&faults, FR_FAULT_SLOW, 1, 41) == NULL);
        CHECK(fr_faults_at(&faults, FR_FAULT_SLOW, 0, 20) == NULL);
        CHECK(fr_faults_at(&faults, FR_FAULT_HANG, 0, 50) != NULL);
        const fr_fault *read = fr_faults_at(&faults, FR_FAULT_READ, 3, 9);
        CHECK(read != NULL && read->rate_Bps == 20e6);
        CHECK(fr_faults_has(&faults, FR_FAULT_READ));
        CHECK(!fr_faults_has(&faults, FR_FAULT_KILL));
        CHECK_OK(fr_faults_check(&faults, 2, 51, &err), &err);
        CHECK_FAILS(fr_faults_check(&faults, 1, 51, &err), FR_USAGE, &err);
        CHECK_FAILS(fr_faults_check(&faults, 2, 50, &err), FR_USAGE, &err);
        CHECK_HAS(err.text, "hang at step 50 never comes");
    }
    fr_vec_release(&faults);
}

static void test_refusals(void)
{
    static const char *const bad[] = {
        "",
        "kill",
        "slow:rank=1x1e308@2",
        "kill:rank=2",
        "kill:2@3",
        "kill:rank=-1@3",
        "kill:rank=1@-3",
        "kill:rank=1@nan",
        "kill:rank=1@3..5",
        "kill:rank=1x2@3",
        "explode:rank=1@3",
        "slow:rank=1@3",
        "slow:rank=1x0.5@3",
        "slow:rank=1xnan@3",
        "slow:rank=1x1e999@3",
        "slow:rank=1x2@40..10",
        "hang:rank=0x2@3",
        "hang:rank=0@3..9",
        "read:rank=1@3",
        "read:0MB/s@3",
        "read:20@3",
        "kill:rank=1@3,",
        "kill:rank=99999999999999999999@3",
    };

    for (size_t i = 0; i < FR_LENGTH(bad); i++) {
        fr_faults faults = {0};
        fr_err err = {0};
        CHECK_INT(fr_faults_parse(bad[i], &faults, &err), FR_USAGE);
        CHECK_HAS(err.text, "--inject '");
        fr_vec_release(&faults);
    }
}

CHECK_MAIN({"words", test_words}, {"slow and read", test_slow_and_read},
           {"refusals", test_refusals})
