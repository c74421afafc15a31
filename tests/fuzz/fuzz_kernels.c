/* fuzz_kernels.c: any bytes as a table of measured kernels. */
#include "bench/gpu_fit.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    fr_gpu_rows rows = {0};
    fr_err err;
    fr_status status =
        fr_gpu_rows_parse("input", (const char *)bytes, n, &rows, &err);

    fuzz_check_error(status, &err);
    for (size_t i = 0; status == FR_OK && i < rows.n; i++)
        if (!(rows.items[i].seconds > 0.0 && rows.items[i].dim[0] > 0))
            abort();
    fr_gpu_rows_release(&rows);
    return 0;
}
