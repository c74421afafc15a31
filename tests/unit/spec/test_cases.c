/* test_cases.c: strict CSV: what is read, what is refused, and where. */
#include "spec/result/cases.h"
#include "tests/check.h"

static fr_status parse(const char *text, fr_cases *out, fr_err *err)
{
    return fr_cases_parse("m.csv", text, strlen(text), out, err);
}

static void test_any_order_and_quotes(void)
{
    fr_cases cases;
    fr_err err;
    CHECK_OK(parse("\xef\xbb\xbfgpu,weather,model,notes\r\n"
                   "\r\n"
                   "H100,wet,\"a, \"\"b\"\"\nc\",\r\n"
                   "A100 , dry,m2,x",
                   &cases, &err),
             &err);
    CHECK_INT(cases.n, 2);
    CHECK_STR(cases.at[0].field[FR_CASE_GPU], "H100");
    CHECK_STR(cases.at[0].field[FR_CASE_MODEL], "a, \"b\"\nc");
    CHECK_STR(cases.at[0].field[FR_CASE_TP], "");
    CHECK_INT(cases.at[0].line, 3);
    CHECK_INT(cases.at[1].line, 5);
    CHECK_STR(cases.at[1].field[FR_CASE_GPU], "A100");
    CHECK(!cases.at[0].has_grade);
    fr_cases_release(&cases);
}

static void test_has_columns(void)
{
    fr_cases cases;
    fr_err err;
    CHECK_OK(parse("grade,tp,config_complete\nA,2,full\n", &cases, &err), &err);
    CHECK(cases.at[0].has_grade && cases.at[0].has_config_complete);
    fr_cases_release(&cases);
    CHECK_OK(parse("tp\n", &cases, &err), &err);
    CHECK_INT(cases.n, 0);
    fr_cases_release(&cases);
}

static void test_refused(void)
{
    static const struct {
        const char *text, *why;
    } bad[] = {
        {"", "m.csv: is empty"},
        {"a,b\n1,2\n", "m.csv:1: no column is known"},
        {"tp,pp,tp\n1,2,3\n", "m.csv:1: column 'tp' stands twice"},
        {"tp,pp\n1,2\n1,2,3\n", "m.csv:3: 3 fields, the header has 2"},
        {"tp,pp\n1\n", "m.csv:2: 1 fields, the header has 2"},
        {"tp,pp\n\"1,2\n", "m.csv:2: a quote is opened and never closed"},
        {"tp,pp\n\"1\"x,2\n", "m.csv:2: text behind a closing quote"},
        {"tp,pp\n1\"x,2\n", "m.csv:2: a quote within a field"},
        {"tp,pp\n1\r2,3\n", "carriage return that ends no line"},
        {"tp,pp\n\xff,2\n", "not valid UTF-8"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        fr_cases cases;
        fr_err err;
        CHECK_FAILS(parse(bad[i].text, &cases, &err), FR_INPUT, &err);
        CHECK_HAS(err.text, bad[i].why);
    }
    fr_cases cases;
    fr_err err;
    CHECK_FAILS(fr_cases_parse("m.csv", "tp\n1\0", 5, &cases, &err), FR_INPUT,
                &err);
}

static void test_numbers(void)
{
    fr_cases cases;
    fr_err err;
    int64_t count = 17;
    double real = 2.385;
    CHECK_OK(parse("tp,pp,dp,step_time_s,mbs\n4,,x,1.25e1,0\n", &cases, &err),
             &err);
    const fr_case *row = &cases.at[0];
    CHECK_OK(fr_case_count(row, FR_CASE_PP, 1, &count, &err), &err);
    CHECK_INT(count, 17); /* empty: stays */
    CHECK_OK(fr_case_count(row, FR_CASE_TP, 1, &count, &err), &err);
    CHECK_INT(count, 4);
    CHECK_FAILS(fr_case_count(row, FR_CASE_DP, 1, &count, &err), FR_INPUT,
                &err);
    CHECK_HAS(err.text, "m.csv:2: dp 'x' is not a whole number of 1 or more");
    CHECK_FAILS(fr_case_count(row, FR_CASE_MBS, 1, &count, &err), FR_INPUT,
                &err);
    CHECK_INT(count, 4);
    CHECK_OK(fr_case_real(row, FR_CASE_STEP_TIME_S, &real, &err), &err);
    CHECK_NEAR(real, 12.5, 0);
    CHECK_FAILS(fr_case_real(row, FR_CASE_MBS, &real, &err), FR_INPUT, &err);
    fr_cases_release(&cases);
}

CHECK_MAIN({"any_order_and_quotes", test_any_order_and_quotes},
           {"has_columns", test_has_columns}, {"refused", test_refused},
           {"numbers", test_numbers})
