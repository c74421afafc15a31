/* fuzz_config_nanotron.c: see fuzz_config.h. */
#include "tests/fuzz/fuzz_config.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    return fuzz_config("nanotron", bytes, n);
}
