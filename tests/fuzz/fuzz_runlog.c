/* fuzz_runlog.c: any bytes as the log of a run; what comes out is a row that
 * the reader of cases takes. */
#include "frameworks/log/runlog.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    static fr_runlog log;
    fr_infile *stream;
    fr_buffer text;
    fr_cases cases;
    fr_err err;
    fr_status status = fr_infile_parse("input", bytes, n, &stream, &err);
    fuzz_check_error(status, &err);
    if (status != FR_OK)
        return 0;
    status = fr_runlog_read(stream, &log, &err);
    fr_infile_close(stream);
    fuzz_check_error(status, &err);
    if (status != FR_OK)
        return 0;
    fr_buffer_init(&text);
    fr_runlog_write(&log, 1, &text);
    if (fr_cases_parse("written", fr_buffer_text(&text), text.n, &cases,
                       &err) != FR_OK ||
        cases.n != 1)
        abort();
    fr_cases_release(&cases);
    fr_buffer_release(&text);
    fr_runlog_release(&log);
    return 0;
}
