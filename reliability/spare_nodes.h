/*
 * spare_nodes.h: how long a run waits, and how much slower it is, because more
 * nodes are in repair than stand ready, in closed form.
 *
 * Nodes fail at a rate of a in the time of a repair, while the run goes on; it
 * waits while one more than its spares is away, and nothing fails then.  That
 * is a loss system of s + 1 servers: it waits for the share of the time that
 * Erlang's formula gives, however the repairs are distributed (Erlang,
 * "Solution of some problems in the theory of probabilities of significance in
 * automatic telephone exchanges", 1917).  A run that goes on with n nodes fewer
 * is one of s + 1 + n servers, at its own speed in each of the last states.
 */
#ifndef FR_RELIABILITY_SPARE_NODES_H
#define FR_RELIABILITY_SPARE_NODES_H

#include "reliability/run_conditions.h"

typedef struct fr_spare_waits {
    double waiting_frac;      /* of the time: it stands still, [0, 1) */
    double steps_frac;        /* of the steps that all nodes would do, (0, 1] */
    double variance_s2_per_s; /* of what is lost, per second */
} fr_spare_waits;

/* `up_frac` of the time, waits apart, is one in which nodes are lost.  Racks
 * are left out. */
fr_spare_waits fr_spare_waits_expected(const fr_run_conditions *c,
                                       double up_frac);

#endif
