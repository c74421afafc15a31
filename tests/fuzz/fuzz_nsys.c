/* fuzz_nsys.c: any bytes as an export of nsys. */
#include "tests/fuzz/fuzz_trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    return fuzz_trace(fr_nsys_read, bytes, n);
}
