/*
 * busy_log.h: which steps other processes disturbed, from intervals of some
 * steps: every step of a disturbed interval counts as disturbed.
 */
#ifndef FR_RUNTIME_WATCH_BUSY_LOG_H
#define FR_RUNTIME_WATCH_BUSY_LOG_H

#include "core/base/err.h"
#include "core/system/processors.h"
#include "spec/run/busy_steps.h"

/* The message of a rank that ends an interval with a step. */
typedef struct fr_busy_interval {
    int64_t n_steps; /* that it covers; 0: none ends with this step */
    bool is_known, is_disturbed;
    fr_processor_share share; /* known ones have it */
} fr_busy_interval;

typedef struct fr_busy_log fr_busy_log;

FR_CHECKED fr_status fr_busy_log_create(int64_t n_steps, int64_t world,
                                        fr_busy_log **out, fr_err *err);
void fr_busy_log_destroy(fr_busy_log *log); /* takes NULL */

/* Adds an interval of a rank that ends with step i_step, from 0. */
void fr_busy_log_add(fr_busy_log *log, int64_t i_step, int64_t rank,
                     const fr_busy_interval *interval);

/* step_s[n_steps] are the times of the steps, of which the first n_skipped and
 * those from n_counted on do not count in the median. */
FR_CHECKED fr_status fr_busy_log_summarise(const fr_busy_log *log,
                                           const double *step_s,
                                           int64_t n_skipped, int64_t n_counted,
                                           fr_busy_steps *out, fr_err *err);

#endif
