/*
 * stack_shots.h: the honest test of stack.h: of each source k rows are learned
 * from and the others predicted, with the prior that other sources have.
 */
#ifndef FR_COST_MODELS_STACK_STACK_SHOTS_H
#define FR_COST_MODELS_STACK_STACK_SHOTS_H

#include "core/base/log.h"
#include "cost_models/stack/stack.h"
#include "spec/result/shots.h"

/* A measured step and whose it is; `source` is borrowed. */
typedef struct fr_sourced_run {
    const char *source;
    fr_run_point run;
} fr_sourced_run;

/*
 * shots->n, k, n_draws and seed say what is asked; the rest is filled and
 * owned.  The same for the same runs and seed.  fr_shots_release() frees after
 * success.
 */
FR_CHECKED fr_status fr_stack_try_shots(const fr_sourced_run *runs, size_t n,
                                        const fr_log *log, fr_shots *shots,
                                        fr_err *err);

#endif
