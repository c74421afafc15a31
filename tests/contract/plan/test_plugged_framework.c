/*
 * test_plugged_framework.c: a framework is one row.  The list that is linked
 * here has one more, which has no pipelines, and nothing else knows of it: it
 * is among the names of --framework and --for, by its alias too, plans are
 * priced as it executes them, and a search for it keeps to its rules.
 */
#include "api/request/options.h"
#include "frameworks/framework_list.h"
#include "frameworks/target_rows.h"
#include "tests/check.h"
#include "tests/unit/cli/run_line.h"

#include <string.h>

static FR_TARGET_RULE(has_one_stage)
{
    (void)model;
    (void)job;
    return plan->pp == 1;
}

static const fr_target_rule rules[] = {{.text = "one stage",
                                        .source = "test_plugged_framework.c",
                                        .fields = FR_PLAN_BIT(PP),
                                        .holds = has_one_stage},
                                       {.text = NULL}};

/* It can be told of every field. */
#define WRITTEN(symbol) [FR_PLAN_##symbol] = FR_WRITTEN("its key"),
static const fr_target_field fields[FR_PLAN_FIELDS_N] = {
    FR_PLAN_OPTIONS(WRITTEN) FR_PLAN_OTHERS(WRITTEN)};
static const fr_target target = {.name = "stageless",
                                 .summary = "a file of it",
                                 .fields = fields,
                                 .rules = rules};

/* Odd on purpose: gradients are reduced after backward. */
static const fr_framework_facts facts = {.is_vocab_padded = true,
                                         .flash_kind = FR_FLASH_2,
                                         .kernels = FR_KERNELS_EAGER};
static const fr_framework stageless = {.name = "stageless",
                                       .summary = "trains without pipelines",
                                       .aliases = {"no-stages"},
                                       .facts = &facts,
                                       .target = &target,
                                       .checks = &target};

/* The list of framework_table.c and its row. */
#define ENTRY(entry) &fr_framework_##entry,
const fr_framework *const fr_frameworks[] = {FR_FRAMEWORKS(ENTRY) & stageless};
const int fr_n_frameworks = (int)FR_LENGTH(fr_frameworks);

static bool has_choice(fr_option option, const char *name)
{
    const fr_option_row row = fr_option_get(option);
    const char *choice;
    bool is_there = false;
    for (int i = 0; (choice = fr_option_choice(&row, i)) != NULL; i++)
        is_there = is_there || strcmp(choice, name) == 0;
    return is_there;
}

static void test_names(void)
{
    CHECK(fr_framework_find("stageless") == &stageless);
    CHECK(fr_framework_find("no-stages") == &stageless);
    CHECK(has_choice(FR_OPT_FRAMEWORK, "stageless"));
    CHECK(has_choice(FR_OPT_FOR, "stageless"));
    CHECK(!has_choice(FR_OPT_TO, "stageless")); /* it has no exporter */
    CHECK(!has_choice(FR_OPT_FOR, "no-stages"));
}

static void test_listed(void)
{
    static line_outcome result;
    run_line("catalog frameworks --json", &result);
    CHECK_INT(result.exit_code, 0);
    CHECK_HAS(result.out, "\"name\": \"stageless\"");
    run_line("catalog targets no-stages", &result);
    CHECK_INT(result.exit_code, 0);
    CHECK_HAS(result.out, "one stage");
}

static void test_simulated(void)
{
    static line_outcome result;
    run_line("simulate llama-3-8b dgx-h100:2 --framework no-stages --zero 1",
             &result);
    CHECK_HAS(result.out,
              "framework stageless: f32 gradients; reduction after backward");
    run_line("simulate llama-3-8b dgx-h100:2 --framework stagless", &result);
    CHECK_INT(result.exit_code, 2);
    CHECK_HAS(result.chatter, "did you mean 'stageless'");
}

/* Two stages are a legal plan of anybody else. */
static void test_searched(void)
{
    static const char *const names[] = {"stageless", "no-stages"};
    static line_outcome result;
    char line[256];
    const char *all = "tune llama-3-8b dgx-h100:1 --seq 2048 --global-batch 16 "
                      "--pp 2 --zero 1 --micro-batch 1 -q";
    run_line(all, &result);
    CHECK_INT(result.exit_code, 0);
    for (size_t i = 0; i < FR_LENGTH(names); i++) {
        snprintf(line, sizeof line, "%s --for %s", all, names[i]);
        run_line(line, &result);
        CHECK(result.exit_code != 0);
        CHECK_HAS(result.chatter, "one stage");
        snprintf(line, sizeof line,
                 "tune llama-3-8b dgx-h100:1 --seq 2048 --global-batch 16 "
                 "--zero 1 --micro-batch 1 -q --json --for %s",
                 names[i]);
        run_line(line, &result);
        CHECK_INT(result.exit_code, 0);
        CHECK_HAS(result.out, "\"pp\": 1");
        CHECK(strstr(result.out, "\"pp\": 2") == NULL);
    }
}

CHECK_MAIN({"names", test_names}, {"listed", test_listed},
           {"simulated", test_simulated}, {"searched", test_searched})
