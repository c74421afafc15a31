/*
 * run_outlook.h: what a whole run at a predicted step time takes, and what is
 * counted in it.
 */
#ifndef FR_SPEC_RESULT_RUN_OUTLOOK_H
#define FR_SPEC_RESULT_RUN_OUTLOOK_H

#include <stdbool.h>
#include <stdint.h>

typedef struct fr_run_outlook {
    double seconds;  /* expected; 0: no run is told of */
    double usd, kwh; /* of the nodes that it occupies; 0: not known */
    /* 95 of 100 runs take no more: the step may be longer than expected, and
     * more may interrupt the run. */
    double seconds_p95, usd_p95, kwh_p95;
    double useful_frac;   /* of the seconds: steps that count, without waits
                             for stragglers and samples; 0: not known */
    double interruptions; /* expected */
    const char *checkpoint_kind;
    double checkpoint_every_s; /* of steps; 0: nothing interrupts it */
    int64_t n_spares;          /* nodes that stand ready; -1: always one */
    double spot_frac;          /* of the nodes; the others are on demand */
    int64_t least_nodes;       /* with which it goes on; 0: all of them */
} fr_run_outlook;

typedef struct fr_run_counts {
    bool has_failures;    /* with them, checkpoints and restarts */
    bool is_mtbf_assumed; /* published figures of others */
    bool lacks_spot_rate; /* spot nodes are as if they stayed */
    bool lacks_switches;  /* energy is without those of the network */
} fr_run_counts;

#endif
