/* fuzz_import_nccl_tests.c: see fuzz_import.h. */
#include "tests/fuzz/fuzz_import.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    return fuzz_import("nccl-tests", bytes, n);
}
