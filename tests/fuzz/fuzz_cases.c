/* fuzz_cases.c: any bytes as rows of measurements; those that can be read are
 * whole, and what is made of them is what its checks allow. */
#include "interop/case/case.h"
#include "tests/fuzz/fuzz.h"

static void try_row(const fr_case *row)
{
    fr_case_setup setup;
    fr_err err;
    fr_status status = fr_case_read(NULL, row, &setup, &err);
    fuzz_check_error(status, &err);
    if (status != FR_OK)
        return;
    if (fr_model_check(&setup.model, &err) != FR_OK ||
        fr_cluster_check(&setup.cluster, &err) != FR_OK)
        abort();
    if (fr_cluster_slots(&setup.cluster) < fr_plan_world(&setup.plan))
        abort();
    fuzz_check_error(fr_plan_check(&setup.plan, &setup.model, &setup.job, &err),
                     &err);
    fr_case_setup_release(&setup);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    fr_cases cases;
    fr_err err;
    fr_status status =
        fr_cases_parse("input", (const char *)bytes, n, &cases, &err);
    fuzz_check_error(status, &err);
    if (status != FR_OK)
        return 0;
    for (size_t i = 0; i < cases.n; i++)
        try_row(&cases.at[i]);
    fr_cases_release(&cases);
    return 0;
}
