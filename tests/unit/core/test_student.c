/* test_student.c: Student-t processes against formulas written out by hand. */
#include "core/numbers/student.h"
#include "tests/check.h"

#include <math.h>

static void test_nothing_known(void)
{
    fr_process *p;
    fr_err err;
    CHECK_OK(fr_process_create(NULL, NULL, 0, 4.5, &p, &err), &err);
    fr_student at = fr_process_at(p, NULL, 0.0625);
    CHECK_NEAR(at.mean, 0, 1e-15);
    CHECK_NEAR(at.scale, 0.25, 1e-15);
    CHECK_NEAR(at.dof, 4.5, 1e-15);
    CHECK_NEAR(fr_process_log_density(p), 0, 1e-15);
    fr_process_destroy(p);
}

/* Tables of the t distribution: 2.132 at 4 degrees of freedom. */
static void test_quantile(void)
{
    fr_student t = {.mean = 3, .scale = 2, .dof = 4};
    CHECK_NEAR(fr_student_half_width(&t, 0.9), 2 * 2.13184678, 1e-8);
    CHECK_NEAR(fr_student_tail(&t, 3 - 2 * 2.13184678), 0.1, 1e-8);
}

static void test_one_value(void)
{
    const double v = 0.09, c = 0.05, w = 0.13, y = 0.42, dof = 5;
    fr_process *p;
    fr_err err;
    CHECK_OK(fr_process_create(&v, &y, 1, dof, &p, &err), &err);
    fr_student at = fr_process_at(p, &c, w);
    CHECK_NEAR(at.mean, c / v * y, 1e-14);
    CHECK_NEAR(at.scale, sqrt((w - c * c / v) * (dof + y * y / v) / (dof + 1)),
               1e-14);
    CHECK_NEAR(at.dof, 6, 1e-14);
    double density = tgamma(3) / tgamma(2.5) / sqrt(dof * M_PI * v) *
                     pow(1 + y * y / v / dof, -3);
    CHECK_NEAR(fr_process_log_density(p), log(density), 1e-12);
    fr_process_destroy(p);
}

/* The distribution of one value given all others is that of the others without
 * it. */
static void test_without(void)
{
    const double cov[9] = {0.25, 0.11, 0.07, 0.11, 0.31,
                           0.05, 0.07, 0.05, 0.19};
    const double y[3] = {0.3, -0.2, 0.7};
    const double two[4] = {cov[0], cov[2], cov[6], cov[8]};
    const double of_two[2] = {y[0], y[2]}, cross[2] = {cov[1], cov[7]};
    fr_process *all, *rest;
    fr_err err;
    CHECK_OK(fr_process_create(cov, y, 3, 3.5, &all, &err), &err);
    CHECK_OK(fr_process_create(two, of_two, 2, 3.5, &rest, &err), &err);
    fr_student a = fr_process_without(all, 1);
    fr_student b = fr_process_at(rest, cross, cov[4]);
    CHECK_NEAR(a.mean, b.mean, 1e-12);
    CHECK_NEAR(a.scale, b.scale, 1e-12);
    CHECK_NEAR(a.dof, b.dof, 1e-12);
    /* The density of all is that of two times that of the third. */
    double off = (y[1] - b.mean) / b.scale;
    double third = tgamma((b.dof + 1) / 2) / tgamma(b.dof / 2) /
                   sqrt(b.dof * M_PI) / b.scale *
                   pow(1 + off * off / b.dof, -(b.dof + 1) / 2);
    CHECK_NEAR(fr_process_log_density(all),
               fr_process_log_density(rest) + log(third), 1e-12);
    fr_process_destroy(all);
    fr_process_destroy(rest);
}

static void test_refused(void)
{
    const double y[2] = {1, 2};
    const double indefinite[4] = {1, 2, 2, 1};
    const double not_finite[4] = {1, NAN, NAN, 1};
    fr_process *p;
    fr_err err;
    CHECK_FAILS(fr_process_create(indefinite, y, 2, 4, &p, &err), FR_INPUT,
                &err);
    CHECK_FAILS(fr_process_create(not_finite, y, 2, 4, &p, &err), FR_INPUT,
                &err);
}

CHECK_MAIN({"nothing_known", test_nothing_known}, {"quantile", test_quantile},
           {"one_value", test_one_value}, {"without", test_without},
           {"refused", test_refused})
