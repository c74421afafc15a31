/* fuzz_config_torchtitan.c: see fuzz_config.h. */
#include "tests/fuzz/fuzz_config.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    return fuzz_config("torchtitan", bytes, n);
}
