/* fuzz_spot_trace.c: any bytes as a trace of spot nodes; what is read makes a
 * run. */
#include "interop/trace/spot_trace.h"
#include "reliability/run_conditions.h"
#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    char path[64];
    fr_spot_spans spans;
    fr_err err;
    int fd = memfd_create("spot", 0);
    if (fd < 0)
        return 0;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (write(fd, bytes, n) == (ssize_t)n) {
        fr_status status = fr_spot_trace_load(path, 2, &spans, &err);
        fuzz_check_error(status, &err);
        if (status == FR_OK) {
            const fr_run_conditions c = {.step_s = 1,
                                         .presence = {spans.items, spans.n}};
            if (fr_run_conditions_check(&c, &err) != FR_OK)
                abort();
            fr_vec_release(&spans);
        }
    }
    close(fd);
    return 0;
}
