/* fuzz_import_slurm.c: see fuzz_import.h. */
#include "tests/fuzz/fuzz_import.h"

#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
/* Three digits name a thousand hosts, each of which is written and read back:
 * a search would do little else.  The corpus has such a file. */
static bool names_many(const uint8_t *bytes, size_t n)
{
    int n_digits = 0;
    for (size_t i = 0; i < n; i++) {
        n_digits = bytes[i] >= '0' && bytes[i] <= '9' ? n_digits + 1 : 0;
        if (n_digits > 2)
            return true;
    }
    return false;
}
#else
static bool names_many(const uint8_t *bytes, size_t n)
{
    (void)bytes;
    (void)n;
    return false;
}
#endif

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    return names_many(bytes, n) ? 0
                                : fuzz_import("slurm", bytes, n) +
                                      fuzz_import("slurm-nodes", bytes, n);
}
