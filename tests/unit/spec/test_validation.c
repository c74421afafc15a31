/* test_validation.c: statistics of rows worked out by hand. */
#include "report/validation/validation_report.h"
#include "spec/result/validation.h"
#include "tests/check.h"
#include "tests/rendered.h"

#include <math.h>
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
    if (n > 0)
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
    /* Without a: b's distances and 0: the 0.9 quantile is 0.8 of the way from
     * the second to the largest. */
    double far = log(4.8 / 4) / log(4.8 / 4.6),
           near = log(5 / 4.5) / log(5.5 / 4.5);
    CHECK_NEAR(v.sources[0].interval_scale, near + 0.8 * (far - near), 1e-12);
    far = log(11.0 / 10) / log(11 / 10.5);
    near = log(20.0 / 18) / log(22.0 / 18);
    CHECK_NEAR(v.sources[1].interval_scale, near + 0.9 * (far - near), 1e-12);
    CHECK_NEAR(v.coverage_90_scaled, 4.0 / 5, 1e-12);
    fr_validation_release(&v);
}

static void test_memory_and_fits(void)
{
    fr_validation v;
    fr_validation_row rows[6] = {0};
    const fr_fits said[] = {FR_FITS_YES, FR_FITS_YES,     FR_FITS_YES,
                            FR_FITS_NO,  FR_FITS_UNKNOWN, FR_FITS_NO};
    const fr_fits got[] = {FR_FITS_YES, FR_FITS_YES, FR_FITS_NO,
                           FR_FITS_NO,  FR_FITS_NO,  FR_FITS_YES};
    for (int i = 0; i < 6; i++) {
        rows[i].has_run = true;
        rows[i].fits = said[i];
        rows[i].predicted_fits = got[i];
        rows[i].p_fits = i == 1 ? 0.8 : 0.95;
        rows[i].is_memory_scored = i < 2;
        rows[i].measured_bytes = 100;
        rows[i].predicted_bytes = i == 0 ? 93 : 112;
    }
    make(rows, 6, &v);
    CHECK_INT(v.step.n, 0);
    CHECK(isnan(v.step.mape) && isnan(v.coverage_90_scaled));
    CHECK_INT(v.memory.n, 2);
    CHECK_NEAR(v.memory.mape, 0.095, 1e-12);
    CHECK_NEAR(v.memory.bias, 0.025, 1e-12);
    CHECK_INT(v.fits_right[1], 2);
    CHECK_INT(v.fits_wrong[1], 1);
    CHECK_INT(v.fits_right[0], 1);
    CHECK_INT(v.fits_wrong[0], 1);
    CHECK_NEAR(v.fits_balanced, (2.0 / 3 + 1.0 / 2) / 2, 1e-12);
    /* The second is said to fit, but not with 90 %. */
    CHECK_INT(v.n_confident, 2);
    CHECK_INT(v.n_confident_ran_out, 1);
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
    CHECK_OK(fr_validation_check(&v, NULL,
                                 "mape<=10.1%, bias <= 0.11,scored>=2", &err),
             &err);
    CHECK_FAILS(
        fr_validation_check(&v, NULL, "mape<=9%,bias<=0.05,scored>=2", &err),
        FR_CHECK, &err);
    CHECK_STR(err.text,
              "mape is 0.1, not at most 0.09; bias is 0.1, not at most 0.05");
    const fr_shots shots = {.n = 2,
                            .k = {0, 3},
                            .macro = {{.macro_mape = 0.2},
                                      {.macro_mape = 0.07,
                                       .macro_coverage_90 = 0.91,
                                       .macro_half_width = 0.12}}};
    CHECK_OK(fr_validation_check(&v, &shots,
                                 "shots.3.macro_mape<=7%,shots.0.macro_mape<="
                                 "20%,shots.3.macro_coverage_90>=0.91,"
                                 "shots.3.macro_half_width<=12%",
                                 &err),
             &err);
    CHECK_FAILS(
        fr_validation_check(&v, &shots, "shots.3.macro_mape<=6.9%", &err),
        FR_CHECK, &err);
    /* Nobody drew one row, or any. */
    CHECK_FAILS(
        fr_validation_check(&v, &shots, "shots.1.macro_mape<=99%", &err),
        FR_CHECK, &err);
    CHECK_FAILS(fr_validation_check(&v, NULL, "shots.3.macro_mape<=99%", &err),
                FR_CHECK, &err);
    CHECK_FAILS(fr_validation_check(&v, NULL, "memory.mape<=8%", &err),
                FR_CHECK, &err);
    CHECK_FAILS(fr_validation_check(&v, NULL, "mappe<=8%", &err), FR_USAGE,
                &err);
    CHECK_HAS(err.text, "did you mean 'mape'?");
    CHECK_FAILS(fr_validation_check(&v, NULL, "mape=8%", &err), FR_USAGE, &err);
    CHECK_FAILS(fr_validation_check(&v, NULL, "mape<=lots", &err), FR_USAGE,
                &err);
    CHECK_FAILS(fr_validation_check(&v, NULL, "", &err), FR_USAGE, &err);
    fr_validation_release(&v);
}

static double number(const fr_json_value *object, const char *key)
{
    double value = -1;
    fr_err err;
    CHECK_OK(fr_json_get_double(object, key, &value, &err), &err);
    return value;
}

static void test_json(void)
{
    fr_validation v;
    fr_validation_row rows[] = {step_row("a", 10, 9, 0.5),
                                step_row("b", 20, 18, 4),
                                step_row("b", 30, 33, 4),
                                {.name = "r4", .why = "x.csv:7: no \"gpu\""}};
    rows[2].is_step_scored = false;
    rows[0].is_memory_scored = true;
    rows[0].measured_bytes = 4e9;
    rows[0].predicted_bytes = 5e9;
    make(rows, 4, &v);
    fr_buffer text;
    fr_document answer;
    fr_json *json = NULL;
    fr_err err;
    fr_document_init(&answer, NULL);
    fr_report_validation(&v, 1, false, &answer);
    check_rendered(&answer, &fr_render_json, NULL, &text);
    CHECK_OK(fr_json_parse("v", text.data, text.n, &json, &err), &err);
    const fr_json_value *root = fr_json_root(json);
    CHECK_NEAR(number(root, "cases"), 4, 0);
    CHECK_NEAR(number(root, "scored"), 2, 0);
    CHECK_NEAR(number(root, "mape"), 0.1, 1e-12);
    CHECK_NEAR(number(root, "bias"), -0.1, 1e-12);
    CHECK_INT(fr_json_n(fr_json_find(root, "rows")), 2);
    CHECK_INT(fr_json_n(fr_json_find(root, "unscored")), 1);
    CHECK_INT(fr_json_n(fr_json_find(root, "skipped")), 1);
    CHECK(fr_json_find(root, "concordance") == NULL); /* null: no pairs */
    const fr_json_value *b = fr_json_find(fr_json_find(root, "by_source"), "b");
    CHECK_NEAR(number(b, "scored"), 1, 0);
    CHECK_NEAR(number(fr_json_find(root, "memory"), "mape"), 0.25, 1e-12);
    fr_json_destroy(json);
    fr_buffer_release(&text);
    fr_document_init(&answer, NULL);
    fr_report_validation(&v, 1, false, &answer);
    check_rendered(&answer, &fr_render_text, NULL, &text);
    CHECK_HAS(fr_buffer_text(&text), "4 rows, 3 run, 1 not");
    CHECK_HAS(fr_buffer_text(&text), "no \"gpu\" (r4)");
    fr_buffer_release(&text);
    fr_validation_release(&v);
}

CHECK_MAIN({"two_sources", test_two_sources},
           {"memory_and_fits", test_memory_and_fits}, {"nothing", test_nothing},
           {"json", test_json}, {"bounds", test_bounds})
