/* fuzz_chakra.c: any bytes as an execution trace of Chakra. */
#include "tests/fuzz/fuzz_trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    return fuzz_trace(fr_chakra_read, bytes, n);
}
