/*
 * rank_guard.h: a thread beside a rank that nobody supervises: it hears who
 * asks the run to stop, and ends a run that stands still.
 */
#ifndef FR_RUNTIME_LAUNCH_RANK_GUARD_H
#define FR_RUNTIME_LAUNCH_RANK_GUARD_H

#include "runtime/rank/rank_page.h"

typedef struct fr_rank_guard fr_rank_guard;

typedef struct fr_rank_guard_options {
    /* Signals are held back (fr_launch_hold_signals): the first is handed on
     * by the page, the second is as any. */
    bool is_stoppable;
    double still_s; /* at one operation for so long: it hangs; 0: no limit */
    /* Both are called in the guard's thread: a line that the user should read;
     * why the run hangs, which must not return. */
    void (*on_line)(void *context, const char *line);
    void (*on_hang)(void *context, const char *why);
    void *context;
} fr_rank_guard_options;

FR_CHECKED fr_status fr_rank_guard_create(const fr_rank_guard_options *options,
                                          fr_rank_guard **out, fr_err *err);
void fr_rank_guard_destroy(fr_rank_guard *guard); /* takes NULL */

/* For fr_run_options; the guard's. */
fr_rank_page *fr_rank_guard_page(fr_rank_guard *guard);

#endif
