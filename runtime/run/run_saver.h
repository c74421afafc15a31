/*
 * run_saver.h: when a run saves its state, goes on from it, and stops because
 * somebody asked it to.
 *
 * Who wants to stop a run sends SIGTERM or SIGUSR1 to any of its ranks (Slurm's
 * --signal, a spot notice).  A run that keeps checkpoints saves one after the
 * step that it is at and ends with FR_STOPPED.  The signals must be held back
 * (fr_launch_hold_signals) before the process has threads.  Who watches the
 * run asks by a word of a rank's page (rank_page.h).
 */
#ifndef FR_RUNTIME_RUN_RUN_SAVER_H
#define FR_RUNTIME_RUN_RUN_SAVER_H

#include "runtime/checkpoint/checkpoint.h"
#include "runtime/run/run.h"

typedef struct fr_run_saver {
    const fr_run_options *options;
    fr_transport *transport;
    const _Atomic uint32_t *stop_signal; /* of the rank's page; NULL: none */
    fr_checkpoints *checkpoints;         /* NULL: none are wanted */
    int64_t first_step, n_steps;
    double *loss;               /* [n_steps] of all steps; NULL: not known */
    struct fr_saver_news *news; /* [world] */
    fr_saving_cost cost;        /* so far, and */
    double stall_s;             /* after the last step */
    char unsaved[512];          /* why the newest checkpoint could not be
                                   written; "": it was */
} fr_run_saver;

/* Collective.  release takes a zeroed one. */
FR_CHECKED fr_status fr_run_saver_init(const fr_run_options *options,
                                       const fr_program *program,
                                       fr_transport *transport, int64_t n_steps,
                                       fr_run_saver *out, fr_err *err);
void fr_run_saver_release(fr_run_saver *saver);

/* Collective: goes on from the newest checkpoint where the run is resumed. */
FR_CHECKED fr_status fr_run_saver_resume(fr_run_saver *saver,
                                         const fr_state *state,
                                         int64_t *first_step, fr_buffer *notes,
                                         fr_err *err);

/* Was that one in memory (replica.h)? */
bool fr_run_saver_is_from_memory(const fr_run_saver *saver);

/*
 * Collective, after each step: saves when it is time.  A checkpoint that finds
 * no room is noted, and training continues without it.  FR_STOPPED: a rank was
 * asked to stop, and a checkpoint of this step is complete.
 */
FR_CHECKED fr_status fr_run_saver_step(fr_run_saver *saver,
                                       const fr_state *state, int64_t i_step,
                                       double loss, fr_err *err);

/* Collective, after the last step: all is on the disk. */
FR_CHECKED fr_status fr_run_saver_end(fr_run_saver *saver, fr_err *err);

#endif
