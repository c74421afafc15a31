/*
 * run_conditions.h: what a run of many steps meets on its way: checkpoints,
 * failures, nodes that are missing.  All times are seconds, all rates those of
 * the whole job.
 */
#ifndef FR_RELIABILITY_RUN_CONDITIONS_H
#define FR_RELIABILITY_RUN_CONDITIONS_H

#include "core/base/err.h"

/* The presence of nodes that can be taken away: spans of time, alternately
 * present and absent, over and over. */
typedef struct fr_run_presence {
    const double *spans_s; /* [n], borrowed; an even number */
    size_t n;
} fr_run_presence;

/* The speeds of a run that continues with the remaining nodes: the rate of
 * steps with k nodes missing over the rate with all, [0, 1], falling; 0: it
 * waits. */
typedef struct fr_run_elastic {
    const double *speed_frac; /* [n]: of 1, 2 ... n missing, borrowed */
    size_t n;                 /* 0: it waits for every node */
    double replan_s;          /* beside each restart that shrinks or grows it */
} fr_run_elastic;

typedef struct fr_run_conditions {
    double step_s;          /* without anything of what follows; > 0 */
    double straggler_frac;  /* of it, waits for slower ranks, [0, 1] */
    double input_frac;      /* of it, waits for data */
    double evaluation_frac; /* of it, a share of the pauses between steps */
    double start_s;         /* until the first step of the run */

    /* Checkpoints, every so many steps; 0: none but the last. */
    int64_t every_steps;
    double blocked_s; /* training waits */
    double drain_s;   /* after that, until it can be loaded */

    /* Failures, memoryless. */
    double failures_per_s; /* 0: none */
    double restart_s;      /* until training goes on, at nodes that are there */
    double hang_frac;      /* of failures that nobody sees for hang_s */
    double hang_s;
    double node_frac; /* of failures that take a node away ... */
    int64_t n_spares; /* ... which one of these replaces; -1: there always is
                         one */
    double repair_s;  /* until a node is back */
    fr_run_elastic elastic; /* with n_spares >= 0: when more are away */

    /* Groups of so many nodes that fail together, beside those failures. */
    double racks_per_s;
    int64_t rack_nodes;
    /* Nodes that make all steps take slow_factor times as long, until that is
     * noticed after slow_s and others take their place. */
    double slowdowns_per_s, slow_s, slow_factor;
    /* All stand still, which is announced: everything is saved before. */
    double maintenance_s, maintenance_every_s; /* 0: never */

    /* Nodes that can be taken away (spot): all that the job needs are there,
     * or it waits.  Either memoryless, or as it was somewhere. */
    double interruptions_per_s; /* 0: never */
    double absence_s;           /* until they are back, the mean */
    double notice_s;            /* a checkpoint that takes less is made */
    fr_run_presence presence;   /* n > 0: instead of the two */
} fr_run_conditions;

/* FR_INPUT: something is negative, not finite, or makes no sense. */
FR_CHECKED fr_status fr_run_conditions_check(const fr_run_conditions *c,
                                             fr_err *err);

#endif
