/* fuzz_import_hwloc.c: see fuzz_import.h. */
#include "tests/fuzz/fuzz_import.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    return fuzz_import("hwloc", bytes, n) + fuzz_import("nvidia-smi", bytes, n);
}
