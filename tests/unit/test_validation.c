/* test_validation.c: statistics of rows worked out by hand. */
#include "spec/validation.h"

#include "tests/check.h"

#include <stdlib.h>

static fr_validation_row step_row(const char *source, double measured_s,
                                  double predicted_s, double half_s)
{
    fr_validation_row row = {.has_run = true, .is_step_scored = true};
    snprintf(row.source, sizeof row.source, "%s", source);
    row.measured_s = measured_s;
    row.predicted_s = predicted_s;
    row.p5_s = predicted_s - half_s;
    row.p95_s = predicted_s + half_s;
    row.fits = row.predicted_fits = FR_FITS_UNKNOWN;
    return row;
}

static void make(const fr_validation_row *rows, size_t n, fr_validation *out)
{
    fr_err err;
    fr_validation_row *copy = malloc((n + 1) * sizeof *copy);
    CHECK(copy != NULL);
    if (copy == NULL)
        return;
    memcpy(copy, rows, n * sizeof *copy);
    CHECK_OK(fr_validation_make(copy, n, out, &err), &err);
}

static void test_two_sources(void)
{
    fr_validation v;
    fr_validation_row rows[] = {
        step_row("a", 10, 11, 0.5),  /* +10 %, outside by a factor 2 */
        step_row("a", 20, 18, 4),    /* -10 %, inside, half-width 22 % */
        step_row("b", 4, 4.8, 0.2),  /* +20 %, outside by a factor 4 */
        step_row("b", 5, 4.5, 1),    /* -10 %, wrong way round */
        step_row("b", 4.1, 4.1, 0.1) /* 2.5 % from the first: no pair */
    };
    make(rows, 5, &v);
    CHECK_INT(v.n_sources, 2);
    CHECK_INT(v.step.n, 5);
    CHECK_NEAR(v.step.mape, (0.1 + 0.1 + 0.2 + 0.1 + 0) / 5, 1e-12);
    CHECK_NEAR(v.step.median_ape, 0.1, 1e-12);
    CHECK_NEAR(v.step.worst_ape, 0.2, 1e-12);
    CHECK_NEAR(v.step.bias, (0.1 - 0.1 + 0.2 - 0.1) / 5, 1e-12);
    CHECK_NEAR(v.macro_mape, (0.1 + 0.1) / 2, 1e-12);
    /* Pairs: a 1 of 1; b (4, 5) wrong, (4.1, 5) right. */
    CHECK_INT(v.step.n_pairs, 3);
    CHECK_NEAR(v.step.concordance, 2.0 / 3, 1e-12);
    CHECK_NEAR(v.sources[1].step.concordance, 0.5, 1e-12);
    CHECK_NEAR(v.step.coverage_90, 3.0 / 5, 1e-12);
    /* 0.5/11, 4/18, 0.2/4.8, 1/4.5, 0.1/4.1 */
    CHECK_NEAR(v.step.half_width_median, 0.5 / 11, 1e-12);
    /* Without a: distances 4, 0.5 and 0: the 0.9 quantile is 0.8 of the way
     * from 0.5 to 4. */
    CHECK_NEAR(v.sources[0].interval_scale, 0.5 + 0.8 * 3.5, 1e-12);
    /* Without b: 2 and 0.5. */
    CHECK_NEAR(v.sources[1].interval_scale, 0.5 + 0.9 * 1.5, 1e-12);
    CHECK_NEAR(v.coverage_90_scaled, 4.0 / 5, 1e-12);
    fr_validation_release(&v);
}

static void test_memory_and_fits(void)
{
    fr_validation v;
    fr_validation_row rows[5] = {0};
    const fr_fits said[] = {FR_FITS_YES, FR_FITS_YES, FR_FITS_YES, FR_FITS_NO,
                            FR_FITS_UNKNOWN};
    const fr_fits got[] = {FR_FITS_YES, FR_FITS_YES, FR_FITS_NO, FR_FITS_NO,
                           FR_FITS_NO};
    for (int i = 0; i < 5; i++) {
        rows[i].has_run = true;
        rows[i].fits = said[i];
        rows[i].predicted_fits = got[i];
        rows[i].is_memory_scored = i < 2;
        rows[i].measured_bytes = 100;
        rows[i].predicted_bytes = i == 0 ? 93 : 112;
    }
    make(rows, 5, &v);
    CHECK_INT(v.step.n, 0);
    CHECK(isnan(v.step.mape) && isnan(v.coverage_90_scaled));
    CHECK_INT(v.memory.n, 2);
    CHECK_NEAR(v.memory.mape, 0.095, 1e-12);
    CHECK_NEAR(v.memory.bias, 0.025, 1e-12);
    CHECK_INT(v.fits_right[1], 2);
    CHECK_INT(v.fits_wrong[1], 1);
    CHECK_INT(v.fits_right[0], 1);
    CHECK_INT(v.fits_wrong[0], 0);
    CHECK_NEAR(v.fits_balanced, (2.0 / 3 + 1) / 2, 1e-12);
    fr_validation_release(&v);
}

static void test_nothing(void)
{
    fr_validation v;
    fr_validation_row row = {.name = "x"};
    make(&row, 1, &v);
    CHECK_INT(v.n_skipped, 1);
    CHECK(isnan(v.macro_mape) && isnan(v.fits_balanced));
    fr_validation_release(&v);
    make(NULL, 0, &v);
    CHECK_INT(v.n_rows, 0);
    fr_validation_release(&v);
}

static void test_bounds(void)
{
    fr_validation v;
    fr_err err;
    fr_validation_row rows[] = {step_row("a", 10, 9, 0.5),
                                step_row("a", 20, 18, 4)};
    make(rows, 2, &v);
    CHECK_OK(
        fr_validation_check(&v, "mape<=10.1%, bias <= 0.11,scored>=2", &err),
        &err);
    CHECK_FAILS(fr_validation_check(&v, "mape<=9%,bias<=0.05,scored>=2", &err),
                FR_CHECK, &err);
    CHECK_STR(err.text,
              "mape is 0.1, not at most 0.09; bias is 0.1, not at most 0.05");
    CHECK_FAILS(fr_validation_check(&v, "memory.mape<=8%", &err), FR_CHECK,
                &err);
    CHECK_FAILS(fr_validation_check(&v, "mappe<=8%", &err), FR_USAGE, &err);
    CHECK_HAS(err.text, "did you mean 'mape'?");
    CHECK_FAILS(fr_validation_check(&v, "mape=8%", &err), FR_USAGE, &err);
    CHECK_FAILS(fr_validation_check(&v, "mape<=lots", &err), FR_USAGE, &err);
    CHECK_FAILS(fr_validation_check(&v, "", &err), FR_USAGE, &err);
    fr_validation_release(&v);
}

CHECK_MAIN({"two_sources", test_two_sources},
           {"memory_and_fits", test_memory_and_fits}, {"nothing", test_nothing},
           {"bounds", test_bounds})
