/*
 * checkpoint_interval.h: how often to save, in closed form.
 *
 * Failures come without memory, at a rate of r in a second.  A cycle of w
 * seconds of steps and b seconds of saving, begun again after each failure
 * once d seconds have passed, takes (1/r + d)(exp(r (w + b)) - 1) on average
 * (Daly, "A higher order estimate of the optimum checkpoint interval for
 * restart dumps", FGCS 22, 2006, which cuts it off; a failure while it is
 * restarted begins that again).  What is lost is more by the time in which a
 * checkpoint is still on its way.
 */
#ifndef FR_RELIABILITY_CHECKPOINT_INTERVAL_H
#define FR_RELIABILITY_CHECKPOINT_INTERVAL_H

#include "reliability/run_conditions.h"

/* Steps that make the expected time per step least; 0: nothing interrupts the
 * run, so nothing needs to be saved but its end. */
int64_t fr_checkpoint_best_interval(const fr_run_conditions *conditions);

/*
 * The effect of interruptions and checkpoints on a second of steps.  The
 * interval is the best one for any step, or every so many steps of
 * conditions->step_s if they say so.  Waits for a node count if spares are
 * counted.  The variance is that of a compound Poisson process with independent
 * losses: interruptions come at a rate of r, and each loses its down time and a
 * part of a cycle, any part with the same probability.
 */
typedef struct fr_run_stretch {
    double seconds;           /* expected, per second of steps; >= 1 */
    double per_step_s;        /* every so many steps: expected, of a step */
    double cycle_s;           /* of steps between checkpoints; 0: none */
    double interruptions;     /* expected, per second of steps */
    double variance_s2_per_s; /* of the run's length, per second of it */
    double waiting_frac;      /* of the time: nodes stand still */
    double saving_frac;       /* of the time: a checkpoint holds up the steps */
} fr_run_stretch;

/* A recorded presence is left out: as if there were none. */
fr_run_stretch fr_run_expected_stretch(const fr_run_conditions *conditions);

/* Expected share of useful steps of a run without end, stragglers and input
 * apart; 0: not known in closed form (nodes that have to be waited for, slow
 * ones, maintenance). */
double fr_run_expected_goodput(const fr_run_conditions *conditions);

#endif
