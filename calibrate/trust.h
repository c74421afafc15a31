/*
 * trust.h: is a profile good enough to be written, and what did other
 * processes take while it was measured?
 */
#ifndef FR_CALIBRATE_TRUST_H
#define FR_CALIBRATE_TRUST_H

#include "core/base/buffer.h"
#include "core/system/processors.h"
#include "spec/profile/profile.h"

/*
 * The largest mean error of the fits of an operation at sizes that they never
 * saw.  On quiet machines it is below 1.2, a broadcast over 1 Gbit/s
 * (docs/calibration.md); beyond 2, a factor of 3, a fit says nothing.
 */
#define FR_MOST_HELD_OUT_APE 2.0

/* Sums the phases in which others disturbed the measurements; *all_s is the
 * time of all phases in between. */
void fr_calibrate_sum_others(const fr_profile *profile,
                             fr_processor_share *disturbed, double *all_s);

/* Appends "others used 1.4 of 2 processors during 38 of 60 s of measurements";
 * nothing where no phase was disturbed. */
void fr_calibrate_describe_others(const fr_profile *profile, fr_buffer *out);

/* FR_CHECK with the reason if a fit misses its held-out sizes by more than the
 * bound. */
FR_CHECKED fr_status fr_calibrate_judge(const fr_profile *profile, fr_err *err);

#endif
