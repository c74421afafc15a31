/* fuzz_config_primus.c: see fuzz_config.h.  Presets that an experiment names
 * are parts of the same bytes. */
#include "tests/fuzz/fuzz_config.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    return fuzz_config("primus", bytes, n);
}
