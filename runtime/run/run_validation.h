/*
 * run_validation.h: the loss on data that are not trained on, now and then
 * during a run, in the layout that trains.
 */
#ifndef FR_RUNTIME_RUN_RUN_VALIDATION_H
#define FR_RUNTIME_RUN_RUN_VALIDATION_H

#include "runtime/run/executor.h"

typedef struct fr_run_validation fr_run_validation;

/*
 * Opens options->eval_data; *out is NULL if none is given.  FR_IO, FR_INPUT:
 * the file cannot be used; FR_USAGE: the backend cannot evaluate.  Borrows the
 * executor.
 */
FR_CHECKED fr_status fr_run_validation_open(fr_executor *executor,
                                            fr_run_validation **out,
                                            fr_err *err);
void fr_run_validation_close(fr_run_validation *validation); /* takes NULL */

/* Collective: evaluates if it is due after n_done of n_steps steps.  NULL:
 * nothing is. */
FR_CHECKED fr_status fr_run_validation_step(fr_run_validation *validation,
                                            int64_t n_done, int64_t n_steps,
                                            fr_err *err);

/* All losses so far, the last one last; returns how many. */
size_t fr_run_validation_losses(const fr_run_validation *validation,
                                const fr_run_evaluation **out);

#endif
