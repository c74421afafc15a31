/*
 * fuzz_trace.h: any bytes as a trace that is read by its path: every event has
 * a begin and a duration that make sense.
 */
#ifndef FR_TESTS_FUZZ_TRACE_H
#define FR_TESTS_FUZZ_TRACE_H

#include "interop/trace/trace.h"
#include "tests/fuzz/fuzz.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

static inline fr_status fuzz_trace_take(void *self, const fr_trace_event *event,
                                        fr_err *err)
{
    (void)self;
    (void)err;
    if (!(event->dur_us >= 0) || isnan(event->begin_us))
        abort();
    return FR_OK;
}

static inline int fuzz_trace(fr_trace_reader_fn read, const uint8_t *bytes,
                             size_t n)
{
    const char *folder = getenv("TMPDIR");
    char path[4096];
    fr_trace_about about;
    fr_err err;
    snprintf(path, sizeof path, "%s/fuzz-trace-XXXXXX",
             folder != NULL ? folder : "/tmp");
    int fd = mkstemp(path);
    if (fd < 0)
        return 0;
    if (write(fd, bytes, n) == (ssize_t)n)
        fuzz_check_error(read(path, fuzz_trace_take, NULL, &about, &err), &err);
    close(fd);
    unlink(path);
    return 0;
}

#endif
