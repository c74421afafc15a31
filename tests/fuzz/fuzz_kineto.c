/* fuzz_kineto.c: any bytes as a profiler's trace; a profile made of it can be
 * written and read back. */
#include "interop/trace/trace_kernels.h"
#include "tests/fuzz/fuzz.h"

static void try_profile(const fr_kernel_table *table)
{
    fr_profile profile, back;
    fr_buffer notes, text;
    fr_err err;
    fr_buffer_init(&notes);
    fr_buffer_init(&text);
    fr_status status =
        fr_kernel_table_profile(table, "input", &profile, &notes, &err);
    fuzz_check_error(status, &err);
    if (status == FR_OK) {
        if (fr_profile_format(&profile, &text, &err) != FR_OK ||
            fr_profile_parse("written", text.data, text.n, &back, &err) !=
                FR_OK)
            abort();
        fr_profile_release(&back);
        fr_profile_release(&profile);
    }
    fr_buffer_release(&text);
    fr_buffer_release(&notes);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    fr_infile *file;
    fr_kernel_table *table;
    fr_err err;
    fr_status status = fr_infile_parse("input", bytes, n, &file, &err);
    fuzz_check_error(status, &err);
    if (status != FR_OK)
        return 0;
    status = fr_kernel_table_read(file, &table, &err);
    fuzz_check_error(status, &err);
    if (status == FR_OK) {
        try_profile(table);
        fr_kernel_table_destroy(table);
    }
    fr_infile_close(file);
    return 0;
}
