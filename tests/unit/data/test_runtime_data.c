/* Token files: formats, sample order, errors. */
#include "core/numbers/rng.h"
#include "core/system/clock.h"
#include "core/system/fileio.h"
#include "runtime/data/data.h"
#include "tests/check.h"

#include <stdlib.h>
#include <unistd.h>

static char path_of[CHECK_PATH_BYTES];

static const char *path(const char *name)
{
    check_tmp_path(path_of, "test_runtime_data.%d.%s", (int)getpid(), name);
    return path_of;
}

static fr_job job_for(const char *data)
{
    fr_job job;

    fr_job_init(&job);
    job.seq = 13;
    job.seed = 91;
    (void)snprintf(job.data, sizeof job.data, "%s", data);
    return job;
}

/* Is the window somewhere in the text, with targets one further on? */
static bool is_window(const int32_t *tokens, const int32_t *targets, int n,
                      const int32_t *text, int n_text)
{
    for (int at = 0; at + n < n_text; at++) {
        int k = 0;
        while (k < n && tokens[k] == text[at + k] &&
               targets[k] == text[at + k + 1])
            k++;
        if (k == n)
            return true;
    }
    return false;
}

static const fr_sequence_share whole = {0, 1};

static void check_windows(fr_data *data, const int32_t *text, int n_text)
{
    int32_t tokens[2 * 5 * 13], one[2 * 13];
    fr_err err = {0};

    for (int64_t step = 0; step < 20; step++) {
        CHECK_OK(fr_data_load(data, step, 3, 5, whole, tokens, &err), &err);
        for (int i = 0; i < 5; i++)
            CHECK(is_window(tokens + 13 * i, tokens + 5 * 13 + 13 * i, 13, text,
                            n_text));
        /* A sample is the same however the batch is cut. */
        CHECK_OK(fr_data_load(data, step, 6, 1, whole, one, &err), &err);
        CHECK(memcmp(one, tokens + 3 * 13, 13 * sizeof *one) == 0);
        CHECK(memcmp(one + 13, tokens + 5 * 13 + 3 * 13, 13 * sizeof *one) ==
              0);
    }
}

static void test_bytes(void)
{
    enum { N = 997 };
    unsigned char bytes[N];
    int32_t text[N];
    fr_err err = {0};
    fr_data *data = NULL;

    for (int i = 0; i < N; i++)
        text[i] = bytes[i] = (unsigned char)(fr_hash_u64(3, (uint64_t)i, 0, 0));
    CHECK_OK(fr_file_write(path("text"), bytes, N, &err), &err);
    fr_job job = job_for(path("text"));
    if (!CHECK_OK(fr_data_open(&job, 256, &data, &err), &err))
        return;
    check_windows(data, text, N);
    fr_data_close(data);
    CHECK_FAILS(fr_data_open(&job, 200, &data, &err), FR_INPUT, &err);
    CHECK_HAS(err.text, "vocabulary has 200");
    (void)unlink(path("text"));
}

static void write_tokens(const char *file, const int32_t *text, int n,
                         bool has_header)
{
    unsigned char *bytes = calloc(1, 1024 + 2 * (size_t)n);
    size_t at = has_header ? 1024 : 0;
    uint32_t head[3] = {20240520, 1, (uint32_t)n};
    fr_err err = {0};

    if (!CHECK(bytes != NULL))
        return;
    if (has_header)
        memcpy(bytes, head, sizeof head);
    for (int i = 0; i < n; i++) {
        bytes[at + 2 * (size_t)i] = (unsigned char)(text[i] & 255);
        bytes[at + 2 * (size_t)i + 1] = (unsigned char)(text[i] >> 8);
    }
    CHECK_OK(fr_file_write(file, bytes, at + 2 * (size_t)n, &err), &err);
    free(bytes);
}

static void test_token_files(void)
{
    enum { N = 811 };
    int32_t text[N];
    fr_err err = {0};
    fr_data *data = NULL;

    for (int i = 0; i < N; i++)
        text[i] = (int32_t)(fr_hash_u64(4, (uint64_t)i, 0, 0) % 50257);
    for (int has_header = 0; has_header < 2; has_header++) {
        fr_job job = job_for(path("tokens.bin"));
        write_tokens(job.data, text, N, has_header);
        if (!CHECK_OK(fr_data_open(&job, 50257, &data, &err), &err))
            return;
        check_windows(data, text, N);
        fr_data_close(data);
        CHECK_FAILS(fr_data_open(&job, 40000, &data, &err), FR_INPUT, &err);
        CHECK_HAS(err.text, "at position");
    }
    (void)unlink(path("tokens.bin"));
}

static void test_bad_files(void)
{
    fr_job job = job_for("/nowhere/text");
    fr_err err = {0};
    fr_data *data = NULL;

    CHECK_FAILS(fr_data_open(&job, 256, &data, &err), FR_IO, &err);
    CHECK_HAS(err.text, "/nowhere/text");
    job = job_for(check_tmp_dir());
    CHECK_FAILS(fr_data_open(&job, 256, &data, &err), FR_INPUT, &err);
    job = job_for(path("short"));
    CHECK_OK(fr_file_write(job.data, "thirteen byte", 13, &err), &err);
    CHECK_FAILS(fr_data_open(&job, 256, &data, &err), FR_INPUT, &err);
    CHECK_HAS(err.text, "seq + 1 = 14");
    CHECK(data == NULL);
    (void)unlink(job.data);
}

static void test_file_shrinks(void)
{
    char text[500];
    fr_err err = {0};
    fr_data *data = NULL;
    int32_t tokens[2 * 13];
    fr_job job = job_for(path("shrinks"));

    memset(text, 'x', sizeof text);
    CHECK_OK(fr_file_write(job.data, text, sizeof text, &err), &err);
    if (!CHECK_OK(fr_data_open(&job, 256, &data, &err), &err))
        return;
    CHECK(truncate(job.data, 3) == 0);
    CHECK_FAILS(fr_data_load(data, 0, 0, 1, whole, tokens, &err), FR_IO, &err);
    fr_data_close(data);
    (void)unlink(job.data);
}

static void test_synthetic(void)
{
    enum { N = 4000 };
    fr_job job = job_for("");
    fr_err err = {0};
    fr_data *data = NULL;
    static int32_t tokens[2 * 64 * 13];
    int n_follow = 0, n_all = 0;

    if (!CHECK_OK(fr_data_open(&job, 101, &data, &err), &err))
        return;
    CHECK_OK(fr_data_load(data, 7, 0, 64, whole, tokens, &err), &err);
    for (int i = 0; i < 64 * 13; i++) {
        int32_t token = tokens[i], target = tokens[64 * 13 + i];
        CHECK(token >= 0 && token < 101 && target >= 0 && target < 101);
        n_follow += target == (token * 7 + 3) % 101;
        n_all++;
    }
    /* Three of four are predictable from the token before. */
    CHECK(n_follow > 0.68 * n_all && n_follow < 0.84 * n_all);
    fr_data_close(data);
}

/* Three files, the second of which is too short for a window, are as good as
 * one; with ranges, the first places of the batch stay in the first file. */
static void test_manifest(void)
{
    enum { N = 400, SHORT = 7 };
    static const char manifest[] =
        "{\"schema\": \"forerun.tokens/1\", \"shuffle\": \"%s\", \"files\": "
        "[{\"path\": \"%s.0\", \"tokens\": 400}, {\"path\": \"%s.1\"}, "
        "{\"path\": \"%s.2\", \"tokens\": %d}]}";
    unsigned char bytes[N];
    int32_t text[3 * N];
    char base[CHECK_PATH_BYTES], name[CHECK_PATH_BYTES + 16], json[2048];
    char at[CHECK_PATH_BYTES + 8];
    fr_err err = {0};
    fr_data *data = NULL;

    (void)snprintf(base, sizeof base, "%s", path("part"));
    (void)snprintf(at, sizeof at, "%s.json", base);
    for (int file = 0; file < 3; file++) {
        for (int i = 0; i < N; i++) {
            bytes[i] =
                (unsigned char)fr_hash_u64(5, (uint64_t)i, (uint64_t)file, 0);
            text[file * N + i] = bytes[i];
        }
        (void)snprintf(name, sizeof name, "%s.%d", base, file);
        CHECK_OK(fr_file_write(name, bytes, file == 1 ? SHORT : N, &err), &err);
    }
    for (int is_wrong = 0; is_wrong < 2; is_wrong++) {
        int n = snprintf(json, sizeof json, manifest, "ranges", base, base,
                         base, is_wrong ? N + 1 : N);
        CHECK_OK(fr_file_write(at, json, (size_t)n, &err), &err);
        fr_job job = job_for(at);
        job.global_batch = 8;
        if (!CHECK_OK(fr_data_open(&job, 256, &data, &err), &err))
            return;
        int32_t tokens[2 * 13];
        for (int64_t step = 0; step < 20; step++)
            for (int64_t i = 0; i < 8; i++) {
                if (is_wrong && i >= 4) {
                    CHECK_FAILS(
                        fr_data_load(data, step, i, 1, whole, tokens, &err),
                        FR_INPUT, &err);
                    continue;
                }
                CHECK_OK(fr_data_load(data, step, i, 1, whole, tokens, &err),
                         &err);
                CHECK(is_window(tokens, tokens + 13, 13,
                                text + (i < 4 ? 0 : 2 * N), N));
            }
        fr_data_close(data);
    }
    (void)unlink(at);
    for (int file = 0; file < 3; file++) {
        (void)snprintf(name, sizeof name, "%s.%d", base, file);
        (void)unlink(name);
    }
}

/* Reading ahead hides what takes less than a step, and nothing more.  A load
 * that waits for its own bytes takes 20 ms at least; one that does not may be
 * held up by other work on the machine, so steps are tried until four were
 * fast. */
static void test_slow_reading(void)
{
    enum { N = 400 };
    unsigned char bytes[N] = {0};
    int32_t tokens[2 * 13];
    fr_faults faults = {0};
    fr_err err = {0};
    fr_data *data = NULL;

    CHECK_OK(fr_file_write(path("slow"), bytes, N, &err), &err);
    fr_job job = job_for(path("slow"));
    if (!CHECK_OK(fr_faults_parse("read:700B/s@1..999", &faults, &err), &err) ||
        !CHECK_OK(fr_data_open(&job, 256, &data, &err), &err))
        return;
    fr_data_inject(data, &faults, 0);
    CHECK_OK(fr_data_load(data, 0, 0, 1, whole, tokens, &err), &err);
    int64_t step = 1;
    int n_hidden = 0;
    for (; step < 200 && n_hidden < 4; step++) {
        fr_sleep_s(0.06); /* 14 bytes take 20 ms */
        double asked_s = fr_clock_s();
        CHECK_OK(fr_data_load(data, step, 0, 1, whole, tokens, &err), &err);
        n_hidden += fr_clock_s() - asked_s < 0.015;
    }
    CHECK_INT(n_hidden, 4);
    const int64_t end = step + 6;
    double begin_s = fr_clock_s();
    for (; step < end; step++)
        CHECK_OK(fr_data_load(data, step, 0, 1, whole, tokens, &err), &err);
    CHECK(fr_clock_s() - begin_s > 0.095);
    fr_data_close(data);
    fr_vec_release(&faults);
    (void)unlink(path("slow"));
}

CHECK_MAIN({"manifest", test_manifest}, {"slow_reading", test_slow_reading},
           {"bytes", test_bytes}, {"token_files", test_token_files},
           {"bad_files", test_bad_files}, {"file_shrinks", test_file_shrinks},
           {"synthetic", test_synthetic})
