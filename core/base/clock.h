/*
 * clock.h: time.  fr_clock_s never goes back and has no date.
 */
#ifndef FR_CORE_BASE_CLOCK_H
#define FR_CORE_BASE_CLOCK_H

#include "core/base/err.h"

double fr_clock_s(void);     /* monotonic; the zero is arbitrary */
int64_t fr_clock_ns(void);   /* the same clock */
double fr_clock_cpu_s(void); /* CPU time of this thread */
void fr_sleep_s(double seconds);
/* "2026-03-14T15:09:26Z" of the present. */
void fr_clock_format_utc(char out[24]);

#endif
