/*
 * test_gpu_fit.c: the constants in the tree are what the measured kernels
 * give; what they predict of these is printed and stays within bounds; the
 * fit finds constants that made-up kernels were made with.
 */
#include "bench/gpu_fit.h"
#include "core/system/fileio.h"
#include "tests/check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char table[] = "configs/kernels/published.csv";

static fr_gpu_rows load(void)
{
    fr_err err = {0};
    fr_gpu_rows rows = {0};

    CHECK_OK(fr_gpu_rows_load(table, &rows, &err), &err);
    return rows;
}

static void test_table_is_the_fit(void)
{
    fr_err err = {0};
    fr_gpu_rows rows = load();
    fr_gpu_constants found;
    /* All members before n_rows are doubles. */
    double a[offsetof(fr_gpu_constants, n_rows) / sizeof(double)];
    double b[sizeof a / sizeof a[0]];

    CHECK_OK(fr_gpu_fit(&rows, &found, &err), &err);
    memcpy(a, &found, sizeof a);
    memcpy(b, &fr_gpu_constants_fitted, sizeof b);
    for (size_t i = 0; i < sizeof a / sizeof a[0]; i++)
        if (!CHECK_NEAR(a[i], b[i], 0.01))
            printf("    constant %zu: run make fit-gpu\n", i);
    CHECK(memcmp(found.n_rows, fr_gpu_constants_fitted.n_rows,
                 sizeof found.n_rows) == 0);
    fr_gpu_rows_release(&rows);
}

/* The errors of the fitted rows; rows that are only checks are left out,
 * because they contain hosts. */
static void test_measured_kernels(void)
{
    /* Mean absolute errors that must not be passed. */
    static const double most[FR_GPU_FAMILY_N] = {0.12, 0.10, 0.12, 0.10,
                                                 0.15, 0.25, 0.40};
    fr_gpu_rows rows = load();
    double sum[FR_GPU_FAMILY_N] = {0}, bias[FR_GPU_FAMILY_N] = {0};
    double n[FR_GPU_FAMILY_N] = {0}, inside[FR_GPU_FAMILY_N] = {0};

    for (size_t i = 0; i < rows.n; i++) {
        const fr_gpu_row *row = &rows.items[i];
        fr_gpu_family family = fr_gpu_row_family(row);
        double error;
        if (row->weight <= 0.0)
            continue;
        error = fr_gpu_row_s(&fr_gpu_constants_fitted, row) / row->seconds - 1;
        sum[family] += fabs(error);
        bias[family] += error;
        n[family] += 1;
        inside[family] +=
            fabs(error) <= 1.645 * fr_gpu_constants_fitted.rel_err[family];
    }
    for (int i = 0; i < FR_GPU_FAMILY_N; i++) {
        printf("    %-20s %4.0f rows, MAPE %4.1f %%, bias %+5.1f %%, in the 90 "
               "%% interval %3.0f %%\n",
               fr_gpu_family_name((fr_gpu_family)i), n[i], 100 * sum[i] / n[i],
               100 * bias[i] / n[i], 100 * inside[i] / n[i]);
        CHECK(n[i] > 0 && sum[i] / n[i] < most[i]);
        /* Single kernels scatter more than the sums that it is for. */
        CHECK(inside[i] / n[i] >= 0.55);
    }
    fr_gpu_rows_release(&rows);
}

/* Rows that obey other constants give those back. */
static void test_fit_finds_the_law(void)
{
    fr_err err = {0};
    fr_gpu_rows rows = load();
    fr_gpu_constants law = fr_gpu_constants_fitted, found;

    law.tile_s = 0.731e-6;
    law.kernel_s = 4.19e-6;
    law.stream_frac = 0.913;
    law.achievable[FR_GPU_HOPPER][FR_GPU_MATH_F16] = 0.688;
    law.attention_core_s[FR_GPU_ATTENTION_ASYNC] = 71.3e-12;
    /* The prior weighs as much as a row of these: it is right here. */
    for (int g = 0; g < FR_GPU_GENERATION_N; g++)
        for (int m = 0; m < FR_GPU_MATH_FITTED_N; m++)
            law.sustained[g][m] = 0.9;
    for (size_t i = 0; i < rows.n; i++) {
        if (rows.items[i].weight > 0.0)
            rows.items[i].seconds = fr_gpu_row_s(&law, &rows.items[i]);
    }
    CHECK_OK(fr_gpu_fit(&rows, &found, &err), &err);
    CHECK_NEAR(found.tile_s, law.tile_s, 0.10);
    CHECK_NEAR(found.kernel_s, law.kernel_s, 0.05);
    CHECK_NEAR(found.stream_frac, law.stream_frac, 0.02);
    CHECK_NEAR(found.achievable[FR_GPU_HOPPER][FR_GPU_MATH_F16],
               law.achievable[FR_GPU_HOPPER][FR_GPU_MATH_F16], 0.04);
    CHECK_NEAR(found.attention_core_s[FR_GPU_ATTENTION_ASYNC],
               law.attention_core_s[FR_GPU_ATTENTION_ASYNC], 0.05);
    CHECK(found.rel_err[FR_GPU_PRODUCT] < 0.05);
    fr_gpu_rows_release(&rows);
}

static void check_refused(const char *row, const char *why)
{
    char path[CHECK_PATH_BYTES], text[1024];
    check_tmp_path(path, "forerun-kernels-XXXXXX");
    int file = mkstemp(path);
    fr_gpu_rows rows;
    fr_err err = {0};

    CHECK(file >= 0);
    close(file);
    snprintf(text, sizeof text,
             "source,source_ref,gpu,op,dtype,dims,flags,value,unit,use,note\n"
             "%s\n",
             row);
    CHECK_OK(fr_file_write(path, text, strlen(text), &err), &err);
    CHECK_FAILS(fr_gpu_rows_load(path, &rows, &err), FR_INPUT, &err);
    CHECK_HAS(err.text, ":2: ");
    CHECK_HAS(err.text, why);
    remove(path);
}

static void test_bad_tables(void)
{
    check_refused("a,b,h100-sxm,gemm,fp16,1 2 3,,7,us,fit", "10 fields");
    check_refused("a,b,h100-sxm,gem,fp16,1 2 3,,7,us,fit,", "'gem'");
    check_refused("a,b,h100-sxm,gemm,fp16,1 2,,7,us,fit,", "3 dims");
    check_refused("a,b,h100-sxm,gemm,fp16,1 2 x,,7,us,fit,", "'x'");
    check_refused("a,b,h100-sxm,gemm,fp17,1 2 3,,7,us,fit,", "'fp17'");
    check_refused("a,b,h100-sxm,gemm,fp16,1 2 3,,-7,us,fit,", "'-7'");
    check_refused("a,b,h100-sxm,gemm,fp16,1 2 3,,7,GBps,fit,", "'GBps'");
    check_refused("a,b,h100-sxm,gemm,fp16,1 2 3,,7,us,use,", "'use'");
}

CHECK_MAIN({"table is the fit", test_table_is_the_fit},
           {"measured kernels", test_measured_kernels},
           {"fit finds the law", test_fit_finds_the_law},
           {"bad tables", test_bad_tables})
