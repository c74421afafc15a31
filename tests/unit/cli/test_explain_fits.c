/*
 * test_explain_fits.c: every change that explain names has the probability that
 * it fits, and the one that it advises is likely to.
 */
#include "cli/cli.h"
#include "core/base/text.h"
#include "tests/check.h"
#include "tests/unit/cli/run_line.h"

#include <stdlib.h>

#define PLAN                                                                   \
    "explain llama-3-8b dgx-h100:2 --dp 16 --zero 1 --seq 8192 "               \
    "--global-batch 64 --recompute full "

/* The number after a key, from `at` on; NAN: there is none. */
static double number_of(const char *at, const char *key)
{
    char quoted[64];
    snprintf(quoted, sizeof quoted, "\"%s\": ", key);
    at = strstr(at, quoted);
    return at != NULL ? strtod(at + strlen(quoted), NULL) : (double)NAN;
}

static void test_column(void)
{
    static line_outcome result;
    run_line(PLAN "--top 20", &result);
    CHECK_INT(result.exit_code, 0);
    const char *table = strstr(result.out, "one change ");
    if (!CHECK(table != NULL))
        return;
    char heading[256];
    snprintf(heading, sizeof heading, "%.*s", (int)strcspn(table, "\n"), table);
    CHECK_HAS(heading, "memory   fits");
    CHECK_HAS(table, " %  ");
}

/* Two micro-batches at once fit with 94 %. */
static void test_advised_is_likely(void)
{
    static line_outcome result;
    run_line(PLAN "--json", &result);
    const char *next = strstr(result.out, "\"next_change\": {");
    if (CHECK(next != NULL))
        CHECK(number_of(next, "p_fits") >= 0.9 &&
              number_of(next, "p_fits") < 0.99);
    run_line(PLAN "--json --fit-confidence 99%", &result);
    CHECK_HAS(result.out, "\"next_change\": null");
    run_line(PLAN "--fit-confidence 99%", &result);
    CHECK_HAS(result.out,
              "no single change that fits with 99 % is faster by 0.5 %");
}

CHECK_MAIN({"column", test_column},
           {"advised_is_likely", test_advised_is_likely})
