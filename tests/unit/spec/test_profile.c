/* test_profile.c: profiles as files, fingerprints, bad input. */
#include "core/base/text.h"
#include "spec/profile/profile.h"
#include "tests/check.h"

#include <stdlib.h>
#include <unistd.h>

static fr_profile make_profile(void)
{
    fr_profile profile;
    fr_compute_point compute = {.op = "linear_fwd",
                                .dtype = "f32",
                                .dim = {192, 2304, 768, 0, 0, 0},
                                .where = "nm-l",
                                .n_threads = 2,
                                .n_busy = 1,
                                .flop = 679477248,
                                .moved_bytes = UINT64_C(9007199254740993),
                                .sample = {0.0061734, 0.0125, 17, 2}};
    fr_comm_point comm = {.op = "all_reduce",
                          .algorithm = "direct",
                          .scope = "shm",
                          .n_group = 2,
                          .n_bytes = 19480576,
                          .is_async = true,
                          .cpu_frac = 0.9375,
                          .sample = {0.0029081, 0.021, 11, 1}};
    fr_sharing_point sharing = {"axpy", "same", 2, 1.8127, 0.013};
    fr_rate_point rate = {"sgemm", 2, 1, 2.0457e11, 0.0071};
    fr_held_out held_out = {"compute linear_fwd", 5, 0.0231, 0.0714};

    fr_profile_init(&profile);
    snprintf(profile.fingerprint.cpu, sizeof profile.fingerprint.cpu,
             "Model \"K\" 7\xc3\xa9");
    profile.fingerprint.n_cores = 2;
    profile.fingerprint.n_nodes = 1;
    profile.fingerprint.memory_bytes = UINT64_C(25276502016);
    profile.wall_s = 43.875;
    profile.wake_s = 3.4375e-6;
    profile.baseline_bytes = 20100003;
    CHECK(fr_profile_add_compute(&profile, &compute, NULL) == FR_OK);
    for (int i = 0; i < 40; i++) {
        comm.n_bytes += 17;
        CHECK(fr_profile_add_comm(&profile, &comm, NULL) == FR_OK);
    }
    CHECK(fr_profile_add_sharing(&profile, &sharing, NULL) == FR_OK);
    CHECK(fr_profile_add_rate(&profile, &rate, NULL) == FR_OK);
    CHECK(fr_profile_add_held_out(&profile, &held_out, NULL) == FR_OK);
    return profile;
}

static char *text_of(const fr_profile *profile)
{
    fr_buffer buffer;
    fr_err err = {0};

    fr_buffer_init(&buffer);
    CHECK_OK(fr_profile_format(profile, &buffer, &err), &err);
    return buffer.data;
}

static void test_round_trip(void)
{
    fr_err err = {0};
    fr_profile profile = make_profile(), again;
    char path[CHECK_PATH_BYTES];
    check_tmp_path(path, "forerun-profile-XXXXXX");
    int file = mkstemp(path);

    CHECK(file >= 0);
    (void)close(file);
    CHECK_OK(fr_profile_save(&profile, path, &err), &err);
    CHECK_OK(fr_profile_load(path, &again, &err), &err);
    CHECK_INT(again.n_comm, 40);
    CHECK_INT(again.comm[39].n_bytes, 19480576 + 40 * 17);
    CHECK(again.compute[0].moved_bytes == UINT64_C(9007199254740993));
    CHECK(again.compute[0].sample.median_s == 0.0061734);
    CHECK_STR(again.compute[0].where, "nm-l");
    CHECK_STR(again.fingerprint.cpu, "Model \"K\" 7\xc3\xa9");
    CHECK(fr_profile_hash(&again) == fr_profile_hash(&profile));
    again.compute[0].sample.median_s *= 1.0000001;
    CHECK(fr_profile_hash(&again) != fr_profile_hash(&profile));
    fr_profile_release(&again);
    fr_profile_release(&profile);
    (void)unlink(path);
}

/* Measured steps come and go without touching what predictions rest on. */
static void test_steps(void)
{
    fr_err err = {0};
    fr_profile profile = make_profile(), again;
    const uint64_t hash = fr_profile_hash(&profile);
    const fr_step_point point = {.model = "gpt2-demo",
                                 .plan = "dp2 tp1 pp1",
                                 .global_batch = 7,
                                 .seq = 131,
                                 .n_ranks = 2,
                                 .predicted_s = 0.0713,
                                 .sample = {0.0791, 0.0123, 11, 0}};
    char *text = text_of(&profile);
    CHECK(strstr(text, "\"step\"") == NULL);
    free(text);
    CHECK_OK(fr_profile_add_step(&profile, &point, &err), &err);
    CHECK(fr_profile_hash(&profile) == hash);
    text = text_of(&profile);
    if (CHECK_OK(fr_profile_parse("p.json", text, strlen(text), &again, &err),
                 &err)) {
        CHECK_INT(again.n_step, 1);
        CHECK_STR(again.step[0].plan, "dp2 tp1 pp1");
        CHECK(again.step[0].sample.median_s == 0.0791);
        CHECK_INT(again.step[0].seq, 131);
        fr_profile_release(&again);
    }
    free(text);
    fr_profile_release(&profile);
}

/* So does the time that others took. */
static void test_others(void)
{
    fr_err err = {0};
    fr_profile profile = make_profile(), again;
    const uint64_t hash = fr_profile_hash(&profile);
    const fr_others_point point = {.phase = "kernels",
                                   .rank = 3,
                                   .elapsed_s = 12.0625,
                                   .own_s = 3.4375,
                                   .others_s = 17.28125,
                                   .stolen_s = 0.71875,
                                   .n_processors = 2,
                                   .n_runnable = 5,
                                   .is_disturbed = true};
    CHECK_OK(fr_profile_add_others(&profile, &point, &err), &err);
    CHECK(fr_profile_hash(&profile) == hash);
    char *text = text_of(&profile);
    if (CHECK_OK(fr_profile_parse("p.json", text, strlen(text), &again, &err),
                 &err)) {
        CHECK_INT(again.n_others, 1);
        CHECK_STR(again.others[0].phase, "kernels");
        CHECK_INT(again.others[0].rank, 3);
        CHECK(again.others[0].others_s == 17.28125);
        CHECK(again.others[0].stolen_s == 0.71875);
        CHECK_INT(again.others[0].n_runnable, 5);
        CHECK(again.others[0].is_disturbed);
        fr_profile_release(&again);
    }
    free(text);
    fr_profile_release(&profile);
}

/* Replaces the first `from` by `to` and expects the line and the words. */
static void expect_bad(const char *from, const char *to, const char *words)
{
    fr_err err = {0};
    fr_profile profile = make_profile(), read;
    char *text = text_of(&profile), *at = strstr(text, from);
    fr_buffer bad;

    fr_buffer_init(&bad);
    if (CHECK(at != NULL)) {
        fr_buffer_append(&bad, text, (size_t)(at - text));
        fr_buffer_puts(&bad, to);
        fr_buffer_puts(&bad, at + strlen(from));
        CHECK_FAILS(fr_profile_parse("p.json", fr_buffer_text(&bad), bad.n,
                                     &read, &err),
                    FR_INPUT, &err);
        CHECK_HAS(err.text, "p.json:");
        CHECK_HAS(err.text, words);
    }
    fr_buffer_release(&bad);
    free(text);
    fr_profile_release(&profile);
}

/* The time of runs outside of their steps; no step's prediction depends on
 * it. */
static void test_running(void)
{
    fr_err err = {0};
    fr_profile profile = make_profile(), again;
    fr_buffer text;
    const uint64_t hash = fr_profile_hash(&profile);

    profile.running = (fr_running_costs){.n_ranks = 3,
                                         .start_s = 0.4385,
                                         .restart_s = 0.6177,
                                         .end_s = 0.1313,
                                         .checkpoint_s = 0.0041};
    CHECK(fr_profile_hash(&profile) == hash);
    fr_buffer_init(&text);
    CHECK_OK(fr_profile_format(&profile, &text, &err), &err);
    if (CHECK_OK(fr_profile_parse("again", fr_buffer_text(&text), text.n,
                                  &again, &err),
                 &err)) {
        CHECK_INT(again.running.n_ranks, 3);
        CHECK_NEAR(again.running.start_s, 0.4385, 1e-12);
        CHECK_NEAR(again.running.restart_s, 0.6177, 1e-12);
        CHECK_NEAR(again.running.end_s, 0.1313, 1e-12);
        CHECK_NEAR(again.running.checkpoint_s, 0.0041, 1e-12);
        fr_profile_release(&again);
    }
    fr_buffer_release(&text);
    fr_profile_release(&profile);
}

static void test_gpu(void)
{
    fr_err err = {0};
    fr_profile profile = make_profile(), again;
    uint64_t without = fr_profile_hash(&profile);
    char *text = text_of(&profile);

    /* Profiles of CPUs have nothing of it. */
    CHECK(strstr(text, "\"gpu\"") == NULL);
    free(text);
    snprintf(profile.fingerprint.gpu.name, sizeof profile.fingerprint.gpu.name,
             "Some GPU 77GB");
    profile.fingerprint.gpu.memory_bytes = UINT64_C(85520809983);
    profile.fingerprint.gpu.power_limit_w = 693.25;
    profile.gpu.comm_pair_bytes = 345678901;
    profile.gpu.graph_node_s = 3.8125e-8;
    CHECK(fr_profile_hash(&profile) != without);
    text = text_of(&profile);
    if (CHECK_OK(fr_profile_parse("g.json", text, strlen(text), &again, &err),
                 &err)) {
        CHECK(fr_profile_is_gpu(&again));
        CHECK(again.fingerprint.gpu.memory_bytes == UINT64_C(85520809983));
        CHECK(again.gpu.comm_pair_bytes == 345678901);
        CHECK(again.gpu.graph_node_s == 3.8125e-8);
        CHECK(fr_profile_hash(&again) == fr_profile_hash(&profile));
        fr_profile_release(&again);
    }
    /* Another limit is another device. */
    char *limit = strstr(text, "693.25");
    if (CHECK(limit != NULL)) {
        *limit = '5';
        CHECK_FAILS(
            fr_profile_parse("g.json", text, strlen(text), &again, &err),
            FR_INPUT, &err);
        CHECK_HAS(err.text, "fingerprint was edited");
        *limit = '6';
    }
    free(text);
    fr_profile_release(&profile);
}

static void test_bad_input(void)
{
    expect_bad("forerun.profile/1", "forerun.profile/9", "schema");
    expect_bad("\"median_s\": 0.0061734", "\"median_s\": 0", "median_s");
    expect_bad("\"median_s\": 0.0061734", "\"median_s\": 1e999", "");
    expect_bad("\"median_s\": 0.0061734", "\"median_s\": -1", "median_s");
    expect_bad("\"n_threads\": 2", "\"n_threads\": 0", "n_threads");
    expect_bad("\"n_threads\": 2", "\"n_threads\": 99999999999", "n_threads");
    expect_bad("\"n_threads\": 2", "\"n_thread\": 2", "n_thread");
    expect_bad("\"n_threads\": 2,", "", "n_threads");
    expect_bad("\"n_threads\": 2", "\"n_threads\": 1000000000", "at most");
    expect_bad("\"median_s\": 0.0061734", "\"median_s\": 1e18", "at most");
    expect_bad("192,", "1192000000000000,", "2^40");
    expect_bad("192,", "-192,", "dim");
    expect_bad("192,", "", "dim");
    expect_bad("\"nm-l\"", "\"nx-l\"", "where");
    expect_bad("\"nm-l\"", "\"nnnnnnnnnnnnnnnnn\"", "longer");
    expect_bad("\"linear_fwd\"", "\"\"", "empty");
    expect_bad("\"n_cores\": 2", "\"n_cores\": 3", "edited");
    expect_bad("\"comm\": [", "\"comm\": [7,", "objects");
    expect_bad("\"comm\"", "\"wire\"", "wire");
}

static void test_missing_file(void)
{
    fr_err err = {0};
    fr_profile profile;

    CHECK_FAILS(fr_profile_load("/no/such/profile.json", &profile, &err), FR_IO,
                &err);
}

static void test_fingerprint(void)
{
    fr_profile profile = make_profile();
    fr_fingerprint now = profile.fingerprint;
    char text[512];

    CHECK_STR(fr_fingerprint_difference(&profile.fingerprint, &now, text,
                                        sizeof text),
              "");
    now.memory_bytes += now.memory_bytes / 200; /* another firmware */
    CHECK_STR(fr_fingerprint_difference(&profile.fingerprint, &now, text,
                                        sizeof text),
              "");
    now.n_cores = 4;
    CHECK(fr_fingerprint_hash(&now) !=
          fr_fingerprint_hash(&profile.fingerprint));
    fr_fingerprint_difference(&profile.fingerprint, &now, text, sizeof text);
    CHECK_HAS(text, "n_cores was 2, is 4");
    CHECK_HAS(text, "calibrate");
    snprintf(now.cpu, sizeof now.cpu, "other");
    fr_fingerprint_difference(&profile.fingerprint, &now, text, sizeof text);
    CHECK_HAS(text, "cpu");
    fr_profile_release(&profile);
}

static void test_rates(void)
{
    fr_profile profile = make_profile();

    CHECK(fr_profile_find_rate(&profile, "sgemm", 2, 1) != NULL);
    CHECK(fr_profile_find_rate(&profile, "sgemm", 0, 0) != NULL);
    CHECK(fr_profile_find_rate(&profile, "sgemm", 1, 1) == NULL);
    CHECK(fr_profile_find_rate(&profile, "dgemm", 0, 0) == NULL);
    fr_profile_release(&profile);
}

/* Names come from drivers and from other people's files, in any bytes: what is
 * written of them is read back, at full length and cut anywhere. */
static void test_any_text(void)
{
    static const char *const patterns[] = {"\xff", "\xc3\xa9", "\xe2\x82\xac",
                                           "\xc3", "\x01\x7f\t\"\\"};

    for (size_t i = 0; i < FR_LENGTH(patterns); i++) {
        fr_profile profile = make_profile(), back;
        fr_err err = {0};
        struct {
            char *text;
            size_t n_bytes;
        } fields[] = {
            {profile.fingerprint.cpu, sizeof profile.fingerprint.cpu},
            {profile.fingerprint.kernel, sizeof profile.fingerprint.kernel},
            {profile.fingerprint.blas, sizeof profile.fingerprint.blas},
            {profile.fingerprint.mpi, sizeof profile.fingerprint.mpi},
            {profile.fingerprint.compiler, sizeof profile.fingerprint.compiler},
            {profile.fingerprint.gpu.name, sizeof profile.fingerprint.gpu.name},
            {profile.model, sizeof profile.model}};
        char name[512];
        for (size_t at = 0; at + 1 < sizeof name; at++)
            name[at] = patterns[i][at % strlen(patterns[i])];
        name[sizeof name - 1] = '\0';
        for (size_t k = 0; k < FR_LENGTH(fields); k++)
            fr_text_copy_cut(fields[k].text, fields[k].n_bytes, name);
        profile.fingerprint.gpu.memory_bytes = UINT64_C(80) << 30;
        profile.fingerprint.gpu.n_processors = 132;
        char *text = text_of(&profile);
        if (CHECK_OK(fr_profile_parse("w", text, strlen(text), &back, &err),
                     &err)) {
            CHECK_INT(back.n_comm, profile.n_comm);
            fr_profile_release(&back);
        }
        free(text);
        fr_profile_release(&profile);
    }
}

CHECK_MAIN({"any_text", test_any_text}, {"round_trip", test_round_trip},
           {"gpu", test_gpu}, {"running", test_running}, {"steps", test_steps},
           {"others", test_others}, {"bad_input", test_bad_input},
           {"missing_file", test_missing_file},
           {"fingerprint", test_fingerprint}, {"rates", test_rates})
