/* fuzz_plan_file.c: what is read is legal and written twice the same. */
#include "plan/decide/plan_json.h"
#include "tests/fuzz/fuzz.h"

static char *to_text(const fr_plan_file *file, size_t *n)
{
    fr_json_writer writer;
    fr_buffer buffer;
    fr_buffer_init(&buffer);
    fr_json_writer_init(&writer, &buffer);
    fr_plan_file_write(file, &writer);
    if (buffer.has_failed)
        abort();
    *n = buffer.n;
    return buffer.data;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    fr_plan_file file, again;
    size_t n_one, n_two;
    char description[4096];
    fr_err err;
    fr_status status =
        fr_plan_file_parse("input", (const char *)bytes, n, &file, &err);

    fuzz_check_error(status, &err);
    if (status != FR_OK)
        return 0;
    if (fr_plan_check(&file.plan, &file.model, &file.job, &err) != FR_OK)
        abort();
    fr_plan_describe(&file.plan, description, sizeof description);
    char *one = to_text(&file, &n_one);
    if (fr_plan_file_parse("written", one, n_one, &again, &err) != FR_OK)
        abort();
    char *two = to_text(&again, &n_two);
    if (n_one != n_two || memcmp(one, two, n_one) != 0)
        abort();
    free(one);
    free(two);
    fr_plan_file_release(&file);
    fr_plan_file_release(&again);
    return 0;
}
