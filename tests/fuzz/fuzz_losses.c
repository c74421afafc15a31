/* fuzz_losses.c: any bytes as the trace of a run; what is under way adds up to
 * the step. */
#include "interop/trace/trace_losses.h"
#include "tests/fuzz/fuzz.h"

#include <math.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

static void check(const fr_losses *losses)
{
    for (size_t i = 0; i < losses->n; i++) {
        double sum_s = 0;
        for (int k = 0; k < FR_LOSS_N; k++)
            sum_s += losses->ranks[i].time_s[k];
        if (!(fabs(sum_s - losses->ranks[i].step_s) <= 1e-6 * sum_s + 1e-9))
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    char path[64];
    const char *const paths[] = {path};
    fr_losses losses;
    fr_err err;
    int fd = memfd_create("trace", 0);
    if (fd < 0)
        return 0;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (write(fd, bytes, n) == (ssize_t)n) {
        fr_status status = fr_losses_load(paths, 1, false, &losses, &err);
        fuzz_check_error(status, &err);
        if (status == FR_OK) {
            check(&losses);
            fr_losses_release(&losses);
        }
    }
    close(fd);
    return 0;
}
