/*
 * spike.h: values of a series that stand out: not finite, or far above what
 * came before by a robust score.
 */
#ifndef FR_CORE_NUMBERS_SPIKE_H
#define FR_CORE_NUMBERS_SPIKE_H

#include "core/base/err.h"

enum { FR_SPIKE_WINDOW = 32 };

typedef struct fr_spike_watch {
    double at[FR_SPIKE_WINDOW]; /* finite values that did not stand out */
    int64_t n;                  /* all of them */
    bool is_out;                /* the last value did */
} fr_spike_watch;

typedef enum fr_spike {
    FR_SPIKE_NONE,
    FR_SPIKE_NOT_FINITE,
    FR_SPIKE_HIGH
} fr_spike;

/* Starts with a watch of zeros.  Says so when a value begins to stand out, not
 * again while the next ones do too; *usual (may be NULL) is the median before
 * it. */
fr_spike fr_spike_add(fr_spike_watch *watch, double value, double *usual);

#endif
