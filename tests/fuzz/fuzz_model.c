/* fuzz_model.c: what is read can be counted, written and read again. */
#include "spec/model/model_json.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    fr_model model, again;
    fr_json_writer writer;
    fr_buffer buffer;
    fr_err err;
    fr_status status =
        fr_model_parse("input", (const char *)bytes, n, &model, &err);

    fuzz_check_error(status, &err);
    if (status != FR_OK)
        return 0;
    fr_buffer_init(&buffer);
    fr_json_writer_init(&writer, &buffer);
    fr_model_to_json(&model, &writer);
    if (fr_model_parse("written", buffer.data, buffer.n, &again, &err) != FR_OK)
        abort();
    if (fr_model_parameters(&model) != fr_model_parameters(&again))
        abort();
    if (!(fr_model_flop_per_token(&model, 17, true) >= 0.0))
        abort();
    fr_buffer_release(&buffer);
    fr_model_release(&model);
    fr_model_release(&again);
    return 0;
}
