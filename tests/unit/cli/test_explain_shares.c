/*
 * test_explain_shares.c: the shares by which a step follows rates, latencies,
 * bubbles and fixed times add up to one, also where nodes are unlike: there a
 * step may jump from one bottleneck to another within the change that is tried.
 */
#include "cli/cli.h"
#include "tests/check.h"
#include "tests/unit/cli/run_line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The sum of the numbers under all keys of the name. */
static double sum_of(const char *json, const char *key)
{
    char quoted[64];
    double sum = 0;
    snprintf(quoted, sizeof quoted, "\"%s\": ", key);
    for (const char *at = json; (at = strstr(at, quoted)) != NULL;) {
        at += strlen(quoted);
        sum += strtod(at, NULL);
    }
    return sum;
}

static void test_add_up(void)
{
    static const char *const plans[] = {
        "two-generations --dp 16 --zero 1",
        "two-generations --pp 2 --zero 1",
        "mixed-a100-v100 --tp 4 --pp 2",
        "dgx-h100:2 --pp 2 --zero 1",
    };
    static line_outcome found;
    for (size_t i = 0; i < FR_LENGTH(plans); i++) {
        char line[200];
        snprintf(line, sizeof line,
                 "explain llama-3-8b %s --seq 2048 --global-batch 64 --json -q "
                 "--top 1",
                 plans[i]);
        run_line(line, &found);
        CHECK_INT(found.exit_code, 0);
        CHECK_NEAR(sum_of(found.out, "share") +
                       sum_of(found.out, "bubble_share") +
                       sum_of(found.out, "fixed_share"),
                   1, 1e-9);
    }
}

CHECK_MAIN({"add_up", test_add_up})
