/*
 * tuning_text.h: an answer of tune as text, for tests that hold two against
 * each other.
 */
#ifndef FR_TESTS_TUNING_TEXT_H
#define FR_TESTS_TUNING_TEXT_H

#include "spec/result/tuning.h"

/* JSON of all but the times that searching took, which are set to 0; plans by
 * name.  The caller frees it. */
char *tuning_text(fr_tuning *tuning);

#endif
