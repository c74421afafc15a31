/*
 * test_run_length.c: --tokens and --steps of simulate and explain: the run that
 * tune tells, what it is without, and energy with and without switches.
 */
#include "cli/cli.h"
#include "core/base/text.h"
#include "core/system/fileio.h"
#include "tests/check.h"
#include "tests/unit/cli/run_line.h"

#include <stdlib.h>

#define PLAN                                                                   \
    " llama-3-8b dgx-h100:2 --dp 16 --zero 2 --global-batch 16 --seq 8192 "

/* Further options of tune that leave it no other plan. */
#define ONE_PLAN                                                               \
    " --tp 1 --pp 1 --cp 1 --micro-batch 1 --recompute none --overlap "        \
    "--gather-overlap --bucket 25MB --ranks 16"

/* The first number under a key; NAN: there is none. */
static double number_of(const char *json, const char *key)
{
    char quoted[64];
    snprintf(quoted, sizeof quoted, "\"%s\": ", key);
    const char *at = strstr(json, quoted);
    return at != NULL ? strtod(at + strlen(quoted), NULL) : (double)NAN;
}

static void test_says_what_it_is_without(void)
{
    static const char *const lines[] = {
        "simulate" PLAN "--tokens 1T", "simulate" PLAN "--steps 2385",
        "explain" PLAN "--top 1 --tokens 1T", "tune" PLAN "--tokens 1T --top 1",
        "sweep" PLAN "--fixed --tokens 1T --vary micro-batch=1"};
    static line_outcome result;
    for (size_t i = 0; i < FR_LENGTH(lines); i++) {
        run_line(lines[i], &result);
        CHECK_INT(result.exit_code, 0);
        CHECK_HAS(result.out, "with failures as Llama 3's, checkpoints, "
                              "restarts; without start-up, maintenance");
        CHECK_HAS(result.out, "without switches of the network");
    }
    run_line("simulate" PLAN, &result);
    CHECK(strstr(result.out, "failures") == NULL);
    run_line("simulate" PLAN "--tokens 0", &result);
    CHECK_INT(result.exit_code, 2);
    run_line("explain" PLAN "--tokens x", &result);
    CHECK_INT(result.exit_code, 2);
}

/* One run, whoever is asked, once tune has no choice of checkpoints. */
static void test_same_as_tune(void)
{
    static line_outcome simulated, tuned;
    run_line("simulate" PLAN "--tokens 23.85B --json", &simulated);
    run_line("tune" PLAN
             "--tokens 23.85B --json --checkpoint-kind sync" ONE_PLAN,
             &tuned);
    const char *run = strstr(simulated.out, "\"run\":");
    const char *best = strstr(tuned.out, "\"run\":");
    if (!CHECK(run != NULL && best != NULL))
        return;
    CHECK_NEAR(number_of(run, "seconds"), number_of(best, "seconds"), 1e-12);
    CHECK_NEAR(number_of(run, "kwh"), number_of(best, "kwh"), 1e-12);
    CHECK_NEAR(number_of(run, "steps"), 23.85e9 / 16 / 8192, 1e-12);
    CHECK_HAS(simulated.out,
              "\"run_is_without\": \"start-up, maintenance, evaluation\"");
}

/* One run of which simulate and goodput say the same: the closed form, and runs
 * that happen, which start once more than they are interrupted. */
static void test_same_as_goodput(void)
{
    /* tune has but this plan. */
    static const char *const lines[][2] = {
        {"simulate", ""},
        {"tune", "--checkpoint-kind sync --mtbf 300h --storage-write 300MB/s"},
        {"tune", "--checkpoint-kind async --mtbf 900h"}};
    static line_outcome simulated, lived;
    char line[400];
    for (size_t i = 0; i < FR_LENGTH(lines); i++) {
        const bool is_tuned = strcmp(lines[i][0], "tune") == 0;
        snprintf(line, sizeof line, "%s%s--tokens 900B --json %s %s",
                 lines[i][0], PLAN, is_tuned ? ONE_PLAN : "", lines[i][1]);
        run_line(line, &simulated);
        snprintf(line, sizeof line,
                 "goodput" PLAN "--tokens 900B --json --runs 2000 %s",
                 lines[i][1]);
        run_line(line, &lived);
        const char *run = strstr(simulated.out, "\"run\":");
        if (!CHECK(run != NULL) || !CHECK_INT(lived.exit_code, 0))
            return;
        const double useful = number_of(lived.out, "goodput");
        CHECK(useful < 0.99); /* there is something to agree about */
        CHECK_WITHIN(number_of(run, "useful"), useful, 0.004);
        CHECK_NEAR(number_of(lived.out, "kwh"), number_of(run, "kwh"), 0.004);
        CHECK_NEAR(number_of(lived.out, "mean"),
                   number_of(run, "seconds") / 86400, 0.004);
        CHECK_NEAR(number_of(lived.out, "p95"),
                   number_of(run, "seconds_p95") / 86400, 0.01);
    }
}

/* A rack that is one node writes with each of its servers. */
static void test_servers_write(void)
{
    static line_outcome rack, nodes;
    run_line("goodput llama-3-8b gb200-nvl72:1 --zero 1 --seq 4096 --runs 1 "
             "--for-days 1 --json",
             &rack);
    run_line("goodput llama-3-8b dgx-h100:18 --zero 1 --seq 4096 --runs 1 "
             "--for-days 1 --json",
             &nodes);
    CHECK_NEAR(number_of(rack.out, "storage_write_Bps"), 18 * 1.80e9, 1e-12);
    CHECK_NEAR(number_of(nodes.out, "storage_write_Bps"), 18 * 1.80e9, 1e-12);
}

/* The template's two racks: two leaves and a spine. */
static void test_switches_draw(void)
{
    static line_outcome plain, powered, template;
    char path[CHECK_PATH_BYTES], line[600];
    fr_buffer text;
    fr_err err;
    run_line("catalog --template two-tier", &template);
    check_tmp_path(path, "racks.xml");
    snprintf(line, sizeof line,
             "simulate llama-3-8b %s --zero 1 --steps 1000 --json", path);
    CHECK_OK(fr_file_write(path, template.out, strlen(template.out), &err),
             &err);
    run_line(line, &plain);
    CHECK_HAS(plain.out, "\"run_energy_is_without\"");
    fr_buffer_init(&text);
    char *level = strstr(template.out, "<level down=\"8\"");
    if (!CHECK(level != NULL))
        return;
    fr_buffer_append(&text, template.out, (size_t)(level - template.out));
    fr_buffer_puts(&text, "<level power=\"2385W\"");
    fr_buffer_puts(&text, level + strlen("<level"));
    CHECK_OK(fr_file_write_buffer(path, &text, &err), &err);
    run_line(line, &powered);
    CHECK(strstr(powered.out, "\"run_energy_is_without\"") == NULL);
    const char *a = strstr(plain.out, "\"run\":");
    const char *b = strstr(powered.out, "\"run\":");
    if (!CHECK(a != NULL && b != NULL))
        return;
    /* PUE 1.3 of the template. */
    CHECK_NEAR(number_of(b, "kwh") - number_of(a, "kwh"),
               1.3 * 2 * 2.385 * number_of(a, "seconds") / 3600, 1e-9);
}

CHECK_MAIN({"says_what_it_is_without", test_says_what_it_is_without},
           {"same_as_tune", test_same_as_tune},
           {"same_as_goodput", test_same_as_goodput},
           {"servers_write", test_servers_write},
           {"switches_draw", test_switches_draw})
