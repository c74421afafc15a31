/* fuzz_json.c: what is read can be written and reads back the same. */
#include "core/document/json.h"
#include "tests/fuzz/fuzz.h"

static char *write_document(const fr_json *json, size_t *n)
{
    fr_json_writer writer;
    fr_buffer buffer;

    fr_buffer_init(&buffer);
    fr_json_writer_init(&writer, &buffer);
    fr_json_copy(&writer, fr_json_root(json));
    if (buffer.has_failed)
        abort();
    *n = buffer.n;
    return buffer.data;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    fr_json *first, *second;
    char *text, *again;
    size_t n_text, n_again;
    fr_err err;
    fr_status status =
        fr_json_parse("input", (const char *)bytes, n, &first, &err);

    fuzz_check_error(status, &err);
    if (status != FR_OK)
        return 0;
    text = write_document(first, &n_text);
    if (fr_json_parse("written", text, n_text, &second, &err) != FR_OK)
        abort();
    again = write_document(second, &n_again);
    if (n_again != n_text || memcmp(text, again, n_text) != 0)
        abort();
    free(again);
    free(text);
    fr_json_destroy(second);
    fr_json_destroy(first);
    return 0;
}
