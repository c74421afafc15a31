/* clock.c: see clock.h. */
#include "core/system/clock.h"

#include <errno.h>
#include <math.h>
#include <time.h>

double fr_clock_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int64_t fr_clock_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void fr_sleep_s(double seconds)
{
    struct timespec left;

    if (!(seconds > 0))
        return;
    if (seconds > 1e9)
        seconds = 1e9;
    left.tv_sec = (time_t)seconds;
    left.tv_nsec = (long)((seconds - floor(seconds)) * 1e9);
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        ;
}
