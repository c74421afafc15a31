/* test_stack.c: what is learned of a stack from steps that were made up. */
#include "cost_models/stack/stack.h"
#include "cost_models/stack/stack_shots.h"
#include "tests/check.h"

#include <math.h>
#include <string.h>

/* A step of whose seconds so much is tensor parallelism, the rest kernels. */
static fr_run_point step_with(double tensor, double factor_of_it)
{
    fr_run_point run = {.predicted_s = 2.385};
    run.features.share[FR_RUN_TENSOR] = tensor;
    run.features.share[FR_RUN_COMPUTE] = 1 - tensor;
    for (int i = 0; i < FR_RUN_SIZE_N; i++)
        run.features.size[i] = 3;
    run.measured_s = run.predicted_s * (1 + tensor * (factor_of_it - 1));
    return run;
}

static double spread_at(const fr_stack *stack, const fr_run_point *run)
{
    fr_student at = fr_stack_at(stack, &run->features);
    return fr_student_half_width(&at, 0.9);
}

static void test_part(void)
{
    fr_run_point runs[4] = {step_with(0.02, 1.7), step_with(0.15, 1.7),
                            step_with(0.28, 1.7), step_with(0.4, 1.7)};
    fr_run_point asked = step_with(0.21, 1.7);
    const fr_stack_prior *prior = fr_stack_prior_without("");
    fr_stack *none, *some;
    double share[FR_RUN_SHARE_N], rest;
    fr_err err;
    CHECK_OK(fr_stack_create(prior, NULL, 0, &none, &err), &err);
    CHECK_OK(fr_stack_create(prior, runs, 4, &some, &err), &err);
    CHECK_NEAR(fr_stack_at(none, &asked.features).mean, prior->mean, 1e-15);
    double told = exp(fr_stack_at(some, &asked.features).mean);
    CHECK(fabs(told / (asked.measured_s / asked.predicted_s) - 1) < 0.02);
    CHECK(spread_at(some, &asked) < spread_at(none, &asked) / 3);
    fr_stack_factors(some, &asked.features, share, &rest);
    CHECK(share[FR_RUN_TENSOR] > 1.2); /* it, and not the kernels */
    CHECK(fabs(share[FR_RUN_COMPUTE] - 1) < 0.05);
    for (size_t i = 0; i < 4; i++)
        CHECK(!fr_stack_is_outlier(some, i));
    fr_stack_destroy(none);
    fr_stack_destroy(some);
}

/* A row five times slower than the others say is found, and what is learned
 * is what it is without it. */
static void test_outlier(void)
{
    fr_run_point runs[5] = {step_with(0.02, 1.3), step_with(0.15, 1.3),
                            step_with(0.28, 1.3), step_with(0.4, 1.3),
                            step_with(0.1, 1.3)};
    fr_run_point asked = step_with(0.21, 1.3);
    const fr_stack_prior *prior = fr_stack_prior_without("");
    fr_stack *good, *bad;
    fr_err err;
    CHECK_OK(fr_stack_create(prior, runs, 4, &good, &err), &err);
    runs[4].measured_s *= 5;
    CHECK_OK(fr_stack_create(prior, runs, 5, &bad, &err), &err);
    for (size_t i = 0; i < 5; i++)
        CHECK_INT(fr_stack_is_outlier(bad, i), i == 4);
    CHECK_NEAR(fr_stack_at(bad, &asked.features).mean,
               fr_stack_at(good, &asked.features).mean, 1e-12);
    CHECK(exp(fr_stack_without(bad, 4).mean) < 1.2);
    fr_stack_destroy(good);
    fr_stack_destroy(bad);
}

/* Milliseconds taken for seconds: nothing is learned from it. */
static void test_other_unit(void)
{
    fr_run_point run = step_with(0.15, 1.3);
    fr_stack *stack;
    fr_err err;
    run.measured_s *= 1000;
    CHECK_OK(fr_stack_create(fr_stack_prior_without(""), &run, 1, &stack, &err),
             &err);
    CHECK(fr_stack_is_outlier(stack, 0));
    CHECK_INT(fr_stack_n_used(stack), 0);
    CHECK_NEAR(fr_stack_at(stack, &run.features).mean,
               fr_stack_prior_without("")->mean, 1e-15);
    fr_stack_destroy(stack);
}

/* A second measurement of what was measured tells less than one of a part of
 * which nothing is known. */
static void test_gain(void)
{
    fr_run_point runs[2] = {step_with(0.01, 1.3), step_with(0.02, 1.3)};
    fr_run_point asked = step_with(0.5, 1.3), alike = step_with(0.4, 1.3);
    fr_stack *stack;
    fr_err err;
    CHECK_OK(fr_stack_create(fr_stack_prior_without(""), runs, 2, &stack, &err),
             &err);
    double of_alike =
        fr_stack_gain(stack, &asked.features, NULL, &alike.features);
    double of_known =
        fr_stack_gain(stack, &asked.features, NULL, &runs[0].features);
    CHECK(of_alike > 0 && of_alike < 1);
    CHECK(of_known >= 0 && of_known < of_alike / 2);
    fr_stack_destroy(stack);
}

static void test_shots(void)
{
    fr_sourced_run runs[7];
    fr_shots a = {.n = 3, .k = {0, 3, 7}, .n_draws = 11, .seed = 5}, b = a;
    fr_err err;
    for (size_t i = 0; i < 7; i++)
        runs[i] =
            (fr_sourced_run){"made up", step_with(0.06 * (double)(i + 1), 1.5)};
    CHECK_OK(fr_stack_try_shots(runs, 7, NULL, &a, &err), &err);
    CHECK_OK(fr_stack_try_shots(runs, 7, NULL, &b, &err), &err);
    CHECK_INT(a.n_sources, 1);
    CHECK_INT(a.sources[0].n_rows, 7);
    CHECK_INT(a.macro[0].n_sources, 1);
    CHECK_INT(a.macro[2].n_sources, 0); /* no row is left */
    CHECK(isnan(a.all[2].mape));
    CHECK_NEAR(a.all[1].mape, b.all[1].mape, 0);
    /* Nothing is learned: what was predicted, and what all stacks take over
     * it. */
    double mape = 0, bias = 0, mean = fr_stack_prior_without("made up")->mean;
    double of_model = 0;
    for (size_t i = 0; i < 7; i++) {
        double e =
            exp(mean) * runs[i].run.predicted_s / runs[i].run.measured_s - 1;
        of_model += 1 - runs[i].run.predicted_s / runs[i].run.measured_s;
        mape += fabs(e) / 7;
        bias += e / 7;
    }
    CHECK(a.all[1].mape < of_model / 7 / 3);
    CHECK_NEAR(a.all[0].mape, mape, 1e-12);
    CHECK_NEAR(a.all[0].bias, bias, 1e-12);
    fr_shots_release(&a);
    fr_shots_release(&b);
}

enum { MOST_SOURCES = 64 };

/* The sources of the scored rows of tests/validate/, each once. */
static size_t read_sources(char names[MOST_SOURCES][96])
{
    FILE *file = fopen("tests/validate/reached.tsv", "r");
    char line[512];
    size_t n = 0, i;
    CHECK(file != NULL);
    while (file != NULL && n < MOST_SOURCES &&
           fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\t")] = '\0';
        for (i = 0; i < n && strcmp(names[i], line) != 0; i++)
            ;
        if (i == n)
            snprintf(names[n++], sizeof names[0], "%.95s", line);
    }
    if (file != NULL)
        fclose(file);
    return n;
}

/* No source is predicted with a prior that has seen it: each has a prior of
 * its own.  The rounds of MLPerf are one source.  A user's stack has the prior
 * of all sources. */
static void test_prior_without(void)
{
    static char names[MOST_SOURCES][96];
    const fr_stack_prior *all = fr_stack_prior_without("");
    size_t n = read_sources(names), n_mlperf = 0;
    CHECK(n > 10);
    for (size_t i = 0; i < n; i++) {
        const fr_stack_prior *without = fr_stack_prior_without(names[i]);
        CHECK(without != all);
        CHECK(without->mean > 0);
        for (size_t k = 0; k < i; k++)
            CHECK(without != fr_stack_prior_without(names[k]));
        n_mlperf += strncmp(names[i], "MLPerf", strlen("MLPerf")) == 0;
    }
    CHECK_INT(n_mlperf, 1);
    CHECK(fr_stack_prior_without("nobody's") == all);
}

CHECK_MAIN({"part", test_part}, {"outlier", test_outlier},
           {"other_unit", test_other_unit}, {"gain", test_gain},
           {"shots", test_shots}, {"prior_without", test_prior_without})
