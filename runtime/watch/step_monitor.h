/*
 * step_monitor.h: after each step the ranks tell each other how it went; rank
 * 0 makes a record of it.
 */
#ifndef FR_RUNTIME_WATCH_STEP_MONITOR_H
#define FR_RUNTIME_WATCH_STEP_MONITOR_H

#include "runtime/run/executor.h"
#include "runtime/watch/busy_log.h"
#include "runtime/watch/stragglers.h"
#include "spec/run/step_record.h"

typedef struct fr_step_monitor fr_step_monitor;

/* Borrows the executor. */
FR_CHECKED fr_status fr_step_monitor_create(const fr_executor *executor,
                                            fr_step_monitor **out, fr_err *err);
void fr_step_monitor_destroy(fr_step_monitor *monitor); /* takes NULL */

/* Collective: the steps from first_step to n_steps - 1 follow now. */
FR_CHECKED fr_status fr_step_monitor_begin(fr_step_monitor *monitor,
                                           int64_t first_step, int64_t n_steps,
                                           fr_err *err);

/* On rank 0 after the last step: the steps that other processes disturbed;
 * arguments of fr_busy_log_summarise(). */
FR_CHECKED fr_status fr_step_monitor_busy(const fr_step_monitor *monitor,
                                          const double *step_s,
                                          int64_t n_skipped, int64_t n_counted,
                                          fr_busy_steps *out, fr_err *err);

/* Returns the slow ranks that rank 0 has found; NULL: they cannot be found. */
const fr_straggler_list *
fr_step_monitor_stragglers(const fr_step_monitor *monitor);
/* Means over the steps after warm-up: how long each rank computed, and waited
 * for others; false: not known.  [world] each. */
bool fr_step_monitor_means(const fr_step_monitor *monitor, double *compute_s,
                           double *wait_s);

/* Notes that this rank stood still for saving_s after the last step, to save
 * its state. */
void fr_step_monitor_note_saving(fr_step_monitor *monitor, double saving_s);
/* Adds the time that monitoring a step took on this rank, without the wait for
 * others.  A user of records adds its own time. */
void fr_step_monitor_charge(fr_step_monitor *monitor, int64_t cost_ns);
double fr_step_monitor_cost_s(const fr_step_monitor *monitor); /* mean */

/* Collective: the step took step_s on this rank.  The record is the same on
 * all ranks but for the loss, which is this one's. */
FR_CHECKED fr_status fr_step_monitor_gather(fr_step_monitor *monitor,
                                            int64_t i_step, double step_s,
                                            fr_step_record *out, fr_err *err);

#endif
