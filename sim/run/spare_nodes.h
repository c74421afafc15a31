/*
 * spare_nodes.h: how long a run waits because more nodes are in repair than
 * stand ready, in closed form.
 *
 * Nodes fail at a rate of a in the time of a repair, while the run goes on; it
 * waits while one more than its spares is away, and nothing fails then.  That
 * is a loss system of s + 1 servers: it waits for the share of the time that
 * Erlang's formula gives, however the repairs are distributed (Erlang,
 * "Solution of some problems in the theory of probabilities of significance in
 * automatic telephone exchanges", 1917).
 */
#ifndef FR_SIM_RUN_SPARE_NODES_H
#define FR_SIM_RUN_SPARE_NODES_H

#include "sim/run/run_conditions.h"

typedef struct fr_spare_waits {
    double waiting_frac; /* of the time, [0, 1) */
    double mean_s;       /* of a wait; 0: there is none */
} fr_spare_waits;

/* `up_frac` of the time, waits apart, is one in which nodes are lost.  Racks
 * and runs that go on with fewer nodes are left out. */
fr_spare_waits fr_spare_waits_expected(const fr_run_conditions *c,
                                       double up_frac);

#endif
