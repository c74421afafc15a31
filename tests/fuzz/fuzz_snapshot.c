/* fuzz_snapshot.c: any bytes as a snapshot of PyTorch's allocator. */
#include "interop/trace/snapshot.h"
#include "tests/fuzz/fuzz.h"

#include <math.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    static fr_snapshot snapshot;
    fr_infile *file;
    fr_err err;
    fr_status status = fr_infile_parse("input", bytes, n, &file, &err);
    fuzz_check_error(status, &err);
    if (status != FR_OK)
        return 0;
    status = fr_snapshot_read(file, &snapshot, &err);
    fuzz_check_error(status, &err);
    fr_infile_close(file);
    for (int i = 0; status == FR_OK && i < snapshot.n_devices; i++)
        if (!isfinite(snapshot.device[i].peak_bytes))
            abort();
    return 0;
}
