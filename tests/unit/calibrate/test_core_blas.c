/*
 * test_core_blas.c: kernels that OpenBLAS chose for an older CPU are replaced
 * by the best that this one can run, as Linux tells its features.
 */
#include "core/system/fileio.h"
#include "kernels/cpu/linear/core_blas.h"
#include "tests/check.h"

#include <stdlib.h>
#include <string.h>

static bool has_flag(const char *cpuinfo, const char *flag)
{
    const size_t n = strlen(flag);
    for (const char *at = cpuinfo; (at = strstr(at, flag)) != NULL; at += n)
        if (at > cpuinfo && at[-1] == ' ' && strchr(" \n", at[n]) != NULL)
            return true;
    return false;
}

static void test_better(void)
{
    char *cpuinfo = NULL;
    fr_err err = {0};
    if (!CHECK_OK(fr_file_read("/proc/cpuinfo", 16 << 20, &cpuinfo, NULL, &err),
                  &err))
        return;
    const char *best =
        has_flag(cpuinfo, "avx512vl") && has_flag(cpuinfo, "avx512dq")
            ? "SkylakeX"
        : has_flag(cpuinfo, "avx2") ? "Haswell"
                                    : "";
    static const char *const older[] = {"Prescott", "Barcelona", "Sandybridge"};
    for (int i = 0; i < 3; i++) {
        const char *better = fr_blas_core_better(older[i]);
        CHECK_STR(better != NULL ? better : "", best);
    }
    free(cpuinfo);
}

static void test_good(void)
{
    static const char *const good[] = {"Haswell",    "Zen",
                                       "SkylakeX",   "Cooperlake",
                                       "NEOVERSEN1", "SapphireRapids"};
    for (int i = 0; i < 6; i++)
        CHECK(fr_blas_core_better(good[i]) == NULL);
}

static void test_told(void)
{
    (void)setenv(FR_BLAS_CORE_ENV, "Prescott", 1);
    CHECK(fr_blas_core_instead() == NULL);
    (void)unsetenv(FR_BLAS_CORE_ENV);
}

int main(int argc, char **argv)
{
    static const check_test tests[] = {
        {"better", test_better}, {"good", test_good}, {"told", test_told}};
    return check_run(tests, sizeof tests / sizeof *tests, argc, argv);
}
