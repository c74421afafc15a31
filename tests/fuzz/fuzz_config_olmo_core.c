/* fuzz_config_olmo_core.c: see fuzz_config.h. */
#include "tests/fuzz/fuzz_config.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    return fuzz_config("olmo-core", bytes, n);
}
