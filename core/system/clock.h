/*
 * clock.h: time.  fr_clock_s never goes back and has no date.
 */
#ifndef FR_CORE_SYSTEM_CLOCK_H
#define FR_CORE_SYSTEM_CLOCK_H

#include "core/base/err.h"

double fr_clock_s(void);   /* monotonic; the zero is arbitrary */
int64_t fr_clock_ns(void); /* the same clock */
void fr_sleep_s(double seconds);

#endif
