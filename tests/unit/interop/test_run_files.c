/* test_run_files.c: readers of what runs leave behind, at the edges of their
 * blocks and of JSON. */
#include "core/stream/json_events.h"
#include "core/stream/lines.h"
#include "frameworks/log/runlog.h"
#include "interop/trace/trace_losses.h"
#include "tests/check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Reads all events; the number of them, -1 when it was refused. */
static int count_events(const char *text, fr_err *err)
{
    fr_infile *file;
    fr_json_events json;
    int n = 0;
    fr_status status;
    CHECK_OK(fr_infile_parse("doc", text, strlen(text), &file, err), err);
    CHECK_OK(fr_json_events_init(&json, file, err), err);
    do {
        status = fr_json_events_next(&json, err);
        n++;
    } while (status == FR_OK && json.kind != FR_EVENT_END);
    fr_json_events_release(&json);
    fr_infile_close(file);
    return status == FR_OK ? n : -1;
}

static void test_json(void)
{
    static const char *const good[] = {"[]",
                                       "{}",
                                       " 1 ",
                                       "-0.5e+3",
                                       "\"\\u00e9\\n\"",
                                       "[1,[2,{\"a\":null}]]",
                                       "{\"a\":1,\"a\":true}"};
    static const char *const bad[] = {
        "",      "[",    "[1,]",  "[1 2]",      "{\"a\"}", "{\"a\":}",
        "{1:2}", "01",   "1.",    "nan",        "+1",      "\"\\x\"",
        "\"a",   "[1}",  "[] []", "{\"a\":1,}", "1e999",   "tru",
        ",",     "[,1]", "\"\n\""};
    fr_err err;
    for (size_t i = 0; i < FR_LENGTH(good); i++)
        CHECK(count_events(good[i], &err) > 0);
    for (size_t i = 0; i < FR_LENGTH(bad); i++)
        CHECK(count_events(bad[i], &err) < 0);
    CHECK_INT(count_events("[1,[2,{\"a\":null}]]", &err), 11);
}

/* A line that ends at every place around the edge of a block. */
static void test_lines(void)
{
    enum { N = 1 << 16 };
    char *text = malloc(N + 64);
    fr_err err;
    CHECK(text != NULL);
    for (int at = N - 3; at < N + 3 && text != NULL; at++) {
        fr_infile *file;
        fr_lines lines;
        bool has_line;
        memset(text, 'x', N + 64);
        text[at] = '\n';
        CHECK_OK(fr_infile_parse("log", text, N + 64, &file, &err), &err);
        CHECK_OK(fr_lines_init(&lines, file, &err), &err);
        CHECK_OK(fr_lines_next(&lines, &has_line, &err), &err);
        CHECK(has_line && lines.is_whole && lines.number == 1);
        CHECK(lines.n == (size_t)(at < FR_LINE_MAX ? at : FR_LINE_MAX));
        CHECK_OK(fr_lines_next(&lines, &has_line, &err), &err);
        CHECK(has_line && !lines.is_whole && lines.number == 2);
        CHECK(lines.n == (size_t)(N + 63 - at));
        CHECK_OK(fr_lines_next(&lines, &has_line, &err), &err);
        CHECK(!has_line);
        fr_lines_release(&lines);
        fr_infile_close(file);
    }
    free(text);
}

/* A ramp of batches, a slow start, an outlier: the median of what is left. */
static void test_steps(void)
{
    static const double ms[] = {9000, 3301.5, 3299.25, 3300,    3300.75,
                                9000, 3298.5, 3300,    3302.25, 3297.75};
    char text[4096];
    size_t n = 0;
    fr_infile *file;
    fr_runlog log;
    fr_err err;
    for (int i = 0; i < 3; i++)
        n += (size_t)snprintf(
            text + n, sizeof text - n,
            " iteration %d/ 20 | elapsed time per iteration (ms): 1100.5 | "
            "global batch size: 32 |\n",
            i);
    for (size_t i = 0; i < FR_LENGTH(ms); i++)
        n += (size_t)snprintf(
            text + n, sizeof text - n,
            " iteration %zu/ 20 | elapsed time per iteration (ms): %.2f | "
            "global batch size: 96 |\r\n",
            i + 3, ms[i]);
    CHECK_OK(fr_infile_parse("log", text, n, &file, &err), &err);
    CHECK_OK(fr_runlog_read(file, &log, &err), &err);
    CHECK(log.steps.n_lines == 10 && log.steps.n_first == 1);
    CHECK(log.steps.n_outliers == 1 && log.steps.slowest_s == 9.0);
    CHECK_NEAR(log.steps.median_s, 3.3, 1e-12);
    CHECK_STR(log.field[FR_CASE_GBS], "96");
    fr_runlog_release(&log);
    fr_infile_close(file);
}

static bool load_losses(const char *trace, fr_losses *out)
{
    char name[CHECK_PATH_BYTES];
    const char *path = name;
    check_tmp_path(name, "losses.json");
    FILE *file = fopen(name, "w");
    fr_err err;
    if (!CHECK(file != NULL))
        return false;
    fputs(trace, file);
    fclose(file);
    return CHECK_OK(fr_losses_load(&path, 1, false, out, &err), &err);
}

/* Two streams: 30 us of compute, a collective of 50 us of which 20 us stand
 * beside it, a receive of 7 us, and 13 us of nothing. */
static void test_losses(void)
{
    static const char trace[] =
        "{\"distributedInfo\": {\"rank\": 5}, \"traceEvents\": ["
        "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#4\","
        "\"ts\":1000,\"dur\":80},"
        "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"ncclDevKernel_AllReduce\","
        "\"ts\":1010,\"dur\":50},"
        "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"gemm\",\"ts\":1000,"
        "\"dur\":30},"
        "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"ncclDevKernel_SendRecv\","
        "\"ts\":1060,\"dur\":7}]}";
    fr_losses losses;
    if (!load_losses(trace, &losses))
        return;
    CHECK(losses.n == 1 && losses.ranks[0].rank == 5 && losses.n_steps == 1);
    CHECK_INT(losses.steps_by, FR_STEPS_MARKED);
    CHECK(fabs(losses.time_s[FR_LOSS_COMPUTE] - 30e-6) < 1e-12);
    CHECK(fabs(losses.time_s[FR_LOSS_COLLECTIVES] - 30e-6) < 1e-12);
    CHECK(fabs(losses.time_s[FR_LOSS_PIPELINE] - 7e-6) < 1e-12);
    CHECK(fabs(losses.time_s[FR_LOSS_IDLE] - 13e-6) < 1e-12);
    fr_losses_release(&losses);
}

/* Without marks a step is from the end of one update of the optimizer to the
 * end of the next; another optimizer's do not count, nor what came before. */
static void test_losses_by_updates(void)
{
#define EVENT(name, at, time)                                                  \
    "{\"ph\":\"X\",\"name\":\"" name "\",\"ts\":" at ",\"dur\":" time "},"
    static const char trace[] =
        "[" EVENT("aten::uniform_", "0", "900") EVENT("aten::mm", "1000", "30")
            EVENT("Optimizer.step#AdamW.step", "1040", "10")
                EVENT("aten::mm", "1060", "40")
                    EVENT("Optimizer.step#AdamW.step", "1110", "12")
                        EVENT("Optimizer.step#SGD.step", "1123", "5")
                            EVENT("aten::mm", "1130", "44")
                                EVENT("Optimizer.step#AdamW.step", "1180",
                                      "20") "{\"ph\":\"X\",\"name\":\"aten::"
                                            "mm\",\"ts\":1300,\"dur\":9}]";
#undef EVENT
    fr_losses losses;
    if (!load_losses(trace, &losses))
        return;
    CHECK_INT(losses.steps_by, FR_STEPS_OPTIMIZER);
    CHECK_INT(losses.n_steps, 2);
    CHECK(fabs(losses.step_s - 75e-6) < 1e-12);
    CHECK(fabs(losses.time_s[FR_LOSS_OPTIMIZER] - 37e-6 / 2) < 1e-12);
    fr_losses_release(&losses);
}

/* Kineto of 2021 had other names: Kernel, Memcpy, Operator. */
static void test_losses_of_old_names(void)
{
    static const char trace[] =
        "{\"traceEvents\": ["
        "{\"ph\":\"X\",\"cat\":\"Operator\",\"name\":\"ProfilerStep#5\","
        "\"ts\":100,\"dur\":50},"
        "{\"ph\":\"X\",\"cat\":\"Kernel\",\"name\":\"volta_sgemm\","
        "\"ts\":110,\"dur\":23},"
        "{\"ph\":\"X\",\"cat\":\"Memcpy\",\"name\":\"Memcpy HtoD\","
        "\"ts\":135,\"dur\":4}]}";
    fr_losses losses;
    if (!load_losses(trace, &losses))
        return;
    CHECK(!losses.is_cpu);
    CHECK(fabs(losses.time_s[FR_LOSS_COMPUTE] - 23e-6) < 1e-12);
    CHECK(fabs(losses.time_s[FR_LOSS_DATA] - 4e-6) < 1e-12);
    CHECK(fabs(losses.time_s[FR_LOSS_IDLE] - 23e-6) < 1e-12);
    fr_losses_release(&losses);
}

CHECK_MAIN({"json", test_json}, {"lines", test_lines}, {"steps", test_steps},
           {"losses", test_losses},
           {"losses_by_updates", test_losses_by_updates},
           {"losses_of_old_names", test_losses_of_old_names})
