/* fuzz_yaml.c: what is read of YAML can be written as JSON, which reads back.
 */
#include "core/document/yaml.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    fr_json *first, *second;
    fr_json_writer writer;
    fr_buffer text;
    fr_err err;
    fr_status status =
        fr_yaml_parse("input", (const char *)bytes, n, &first, &err);
    fuzz_check_error(status, &err);
    if (status != FR_OK)
        return 0;
    fr_buffer_init(&text);
    fr_json_writer_init(&writer, &text);
    fr_json_copy(&writer, fr_json_root(first));
    if (fr_json_parse("written", text.data, text.n, &second, &err) != FR_OK)
        abort();
    fr_json_destroy(second);
    fr_buffer_release(&text);
    fr_json_destroy(first);
    return 0;
}
