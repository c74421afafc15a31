/*
 * payloads.h: which sizes the candidate plans communicate.
 */
#ifndef FR_CALIBRATE_CPU_PAYLOADS_H
#define FR_CALIBRATE_CPU_PAYLOADS_H

#include "calibrate/cpu/shapes.h"

typedef struct fr_payloads {
    uint64_t *n_bytes; /* ascending, distinct */
    size_t n;
} fr_payloads;

/* Collects the payload sizes of all programs, at most the 24 that are used most
 * often. */
FR_CHECKED fr_status fr_payloads_collect(const fr_shapes *shapes,
                                         fr_payloads *out, fr_err *err);
void fr_payloads_release(fr_payloads *payloads);

#endif
