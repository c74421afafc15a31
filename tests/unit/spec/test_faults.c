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

static void test_refusals(void)
{
    static const char *const bad[] = {
        "",
        "kill",
        "kill:rank=2",
        "kill:2@3",
        "kill:rank=-1@3",
        "kill:rank=1@-3",
        "kill:rank=1@nan",
        "kill:rank=1@3..5",
        "kill:rank=1x2@3",
        "explode:rank=1@3",
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

CHECK_MAIN({"words", test_words}, {"refusals", test_refusals})
