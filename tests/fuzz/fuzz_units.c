/* fuzz_units.c: every quantity reader on any text. */
#include "core/base/units.h"
#include "tests/fuzz/fuzz.h"

#include <math.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    char text[256];
    fr_err err;

    if (n >= sizeof text)
        return 0;
    memcpy(text, bytes, n);
    text[n] = '\0';
    for (int quantity = 0; quantity < FR_QUANTITY_N; quantity++) {
        for (unsigned flags = 0; flags < 4; flags++) {
            double value = -1;
            fr_status status = fr_parse_quantity((fr_quantity)quantity, text,
                                                 flags, &value, &err);
            fuzz_check_error(status, &err);
            if (status == FR_OK ? !(value >= 0 && isfinite(value))
                                : value != -1)
                abort();
        }
    }
    {
        uint64_t whole;
        int64_t i64;
        fuzz_check_error(fr_parse_bytes(text, &whole, &err), &err);
        fuzz_check_error(fr_parse_count(text, &whole, &err), &err);
        fuzz_check_error(fr_parse_i64(text, &i64, &err), &err);
    }
    return 0;
}
