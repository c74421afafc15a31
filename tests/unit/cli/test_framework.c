/*
 * test_framework.c: --framework: simulate gives a plan the time and memory that
 * validate gives the row that measured it, and every answer names it.
 */
#include "cli/cli.h"
#include "core/base/text.h"
#include "core/document/json.h"
#include "core/system/fileio.h"
#include "tests/check.h"
#include "tests/unit/cli/run_line.h"

#include <stdlib.h>

#define CSV "tests/validate/llm_steps.csv"

/* Rows as whoever ran them would type them. */
static const struct {
    const char *id, *framework, *line;
} rows[] = {
    {"torchtitan_dec_2024-001", "torchtitan",
     "simulate llama-3-8b grand-teton-h100-96g:1 --framework torchtitan --dp 8 "
     "--zero 3 --micro-batch 2 --global-batch 16 --seq 8192 --recompute "
     "selective"},
    {"megatron_bridge_performance_-273", "megatron-bridge",
     "simulate llama-3-8b dgx-b200:1 --framework megatron-bridge --dp 8 --zero "
     "1 --micro-batch 2 --global-batch 128 --seq 8192 --precision fp8"},
    {"megatron_bridge_performance_-256", "megatron-bridge",
     "simulate llama-3-70b dgx-h100:8 --framework megatron-bridge --dp 2 --tp "
     "4 --pp 8 --vpp 5 --zero 1 --global-batch 128 --seq 8192 --precision fp8"},
    {"nemo_24_07_performance_docs-003", "nemo",
     "simulate gpt3-175b dgx-h100:16 --framework nemo --dp 4 --tp 4 --pp 8 "
     "--vpp 6 --zero 1 --global-batch 256 --seq 2048 --precision fp8 "
     "--flash-kind flash-2"},
    {"megatron_lm_sc21_table_1-010", "megatron-2021",
     "simulate gpt-1t dgx-a100:384 --framework megatron-2021 --dp 6 --tp 8 "
     "--pp 64 --recompute full --precision f16 --global-batch 3072 --seq 2048"},
};

/* The header of the file and the row, as a file of its own. */
static void write_row(const char *id, const char *path)
{
    char *text = NULL;
    size_t n = 0;
    fr_err err;
    fr_buffer out;
    if (!CHECK_OK(fr_file_read(CSV, 1u << 24, &text, &n, &err), &err))
        return;
    char *row = strstr(text, id);
    if (!CHECK(row != NULL))
        return;
    fr_buffer_init(&out);
    fr_buffer_append(&out, text, strcspn(text, "\n") + 1);
    fr_buffer_append(&out, row, strcspn(row, "\n") + 1);
    CHECK_OK(fr_file_write_buffer(path, &out, &err), &err);
    free(text);
}

/* The first number under a key; NAN: there is none. */
static double number_of(const char *json, const char *key)
{
    char quoted[64];
    snprintf(quoted, sizeof quoted, "\"%s\": ", key);
    const char *at = strstr(json, quoted);
    return at != NULL ? strtod(at + strlen(quoted), NULL) : (double)NAN;
}

static void test_same_as_measured(void)
{
    static line_outcome simulated, validated;
    char path[CHECK_PATH_BYTES];
    check_tmp_path(path, "row.csv");
    for (size_t i = 0; i < FR_LENGTH(rows); i++) {
        char line[1024];
        write_row(rows[i].id, path);
        snprintf(line, sizeof line, "%s --json -q", rows[i].line);
        run_line(line, &simulated);
        snprintf(line, sizeof line, "validate %s --json -q --all", path);
        run_line(line, &validated);
        CHECK_INT(simulated.exit_code, 0);
        CHECK_INT(validated.exit_code, 0);
        CHECK_NEAR(number_of(simulated.out, "step_s"),
                   number_of(validated.out, "at_best_s"), 0);
        snprintf(line, sizeof line, "\"framework\": \"%s\"", rows[i].framework);
        CHECK_HAS(simulated.out, line);
        CHECK_HAS(validated.out, line);
    }
}

/* A plan with bf16 gradients has another memory, and the header says so. */
static void test_named(void)
{
    static const char *const lines[] = {
        "simulate llama-3-8b dgx-h100:2 --framework nemo --zero 1",
        "explain llama-3-8b dgx-h100:2 --framework nemo --zero 1 --top 1",
        "tune llama-3-8b dgx-h100:1 --framework nemo --seq 2k --global-batch "
        "16 --tp 8 --pp 1 --cp 1",
        "sweep llama-3-8b dgx-h100:2 --framework nemo --zero 1 --fixed --vary "
        "micro-batch=1",
    };
    static line_outcome result;
    for (size_t i = 0; i < FR_LENGTH(lines); i++) {
        char line[640];
        run_line(lines[i], &result);
        CHECK_INT(result.exit_code, 0);
        CHECK_HAS(result.out, "framework nemo");
        if (i < 3)
            CHECK_HAS(result.out, "bf16 gradients");
        snprintf(line, sizeof line, "%s --json -q", lines[i]);
        run_line(line, &result);
        CHECK_HAS(result.out, "\"framework\": \"nemo\"");
    }
    run_line("simulate llama-3-8b dgx-h100:2 --zero 1", &result);
    CHECK_HAS(result.out, "no --framework was given: f32 gradients");
    run_line("simulate llama-3-8b dgx-h100:2 --framework megaton", &result);
    CHECK_INT(result.exit_code, 2);
    CHECK_HAS(result.chatter, "did you mean 'megatron'");
    run_line("simulate gpt2-tiny this-machine --framework nemo", &result);
    CHECK_HAS(result.chatter, "--framework is ignored");
}

/* The value of an option stays, and a plan file keeps the name. */
static void test_options_win(void)
{
    static line_outcome result;
    char line[640];
    char path[CHECK_PATH_BYTES];
    check_tmp_path(path, "plan.json");
    snprintf(line, sizeof line,
             "simulate llama-3-8b dgx-h100:2 --framework nemo --zero 1 --tp 2 "
             "--grad-dtype f32 --no-tp-overlap -o %s",
             path);
    run_line(line, &result);
    CHECK_HAS(result.out, "framework nemo: f32 gradients");
    CHECK(strstr(result.out, "TP overlap") == NULL);
    snprintf(line, sizeof line, "simulate llama-3-8b dgx-h100:2 %s", path);
    run_line(line, &result);
    CHECK_HAS(result.out, "framework nemo: f32 gradients");
    snprintf(line, sizeof line, "explain %s dgx-h100:2 --top 1", path);
    run_line(line, &result);
    CHECK_HAS(result.out, "framework nemo: f32 gradients");
    snprintf(line, sizeof line, "compare %s %s", path, path);
    run_line(line, &result);
    CHECK_HAS(result.out, "framework nemo");
}

CHECK_MAIN({"same_as_measured", test_same_as_measured}, {"named", test_named},
           {"options_win", test_options_win})
