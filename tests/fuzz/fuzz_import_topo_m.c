/* fuzz_import_topo_m.c: see fuzz_import.h. */
#include "tests/fuzz/fuzz_import.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    return fuzz_import("topo-m", bytes, n) + fuzz_import("amd-topo", bytes, n);
}
