/*
 * fingerprint.h: which machine this is (profile.h says what counts).
 */
#ifndef FR_CALIBRATE_FINGERPRINT_H
#define FR_CALIBRATE_FINGERPRINT_H

#include "spec/profile/profile.h"

/* Describes the machine and the libraries that this process runs on.  What
 * cannot be found out stays "" or 0; n_nodes is 1. */
void fr_fingerprint_detect(fr_fingerprint *out);

#endif
