/* fuzz_chakra.c: any bytes as an execution trace of Chakra. */
#include "interop/trace/trace.h"
#include "tests/fuzz/fuzz.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

static fr_status take(void *self, const fr_trace_event *event, fr_err *err)
{
    (void)self;
    (void)err;
    if (!(event->dur_us >= 0) || isnan(event->begin_us))
        abort();
    return FR_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    const char *folder = getenv("TMPDIR");
    char path[4096];
    fr_trace_about about;
    fr_err err;
    snprintf(path, sizeof path, "%s/fuzz-chakra-XXXXXX",
             folder != NULL ? folder : "/tmp");
    int fd = mkstemp(path);
    if (fd < 0)
        return 0;
    if (write(fd, bytes, n) == (ssize_t)n)
        fuzz_check_error(fr_chakra_read(path, take, NULL, &about, &err), &err);
    close(fd);
    unlink(path);
    return 0;
}
