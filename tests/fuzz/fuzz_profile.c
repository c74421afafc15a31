/* fuzz_profile.c: a profile that is read can be written and reads back the
 * same. */
#include "spec/profile/profile.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    fr_profile first, second;
    fr_buffer text;
    fr_err err;
    fr_status status =
        fr_profile_parse("input", (const char *)bytes, n, &first, &err);

    fuzz_check_error(status, &err);
    if (status != FR_OK)
        return 0;
    fr_buffer_init(&text);
    if (fr_profile_format(&first, &text, &err) != FR_OK ||
        fr_profile_parse("written", fr_buffer_text(&text), text.n, &second,
                         &err) != FR_OK ||
        fr_profile_hash(&first) != fr_profile_hash(&second))
        abort();
    fr_buffer_release(&text);
    fr_profile_release(&second);
    fr_profile_release(&first);
    return 0;
}
