/*
 * collective_time.h: what one collective of a whole group takes on a cluster,
 * with nothing else running: a program of that one instruction, replayed.
 */
#ifndef FR_SIM_PREDICT_COLLECTIVE_TIME_H
#define FR_SIM_PREDICT_COLLECTIVE_TIME_H

#include "cost_models/base/cost.h"
#include "plan/collective/collective.h"
#include "program/lower/step/lower.h"

typedef struct fr_collective_ask {
    fr_op op; /* ALL_REDUCE ... BROADCAST; SEND: from the first rank to the
                 last, which receives */
    uint64_t n_bytes;             /* as in nccl-tests: of the whole payload */
    fr_collective_kind algorithm; /* AUTO: what the library takes */
    fr_protocol protocol;
} fr_collective_ask;

typedef struct fr_collective_time {
    uint64_t n_bytes; /* asked for, or the next that all members can share */
    int64_t n_group, n_nodes;
    double seconds;
    /* Bytes per second as nccl-tests define them (doc/PERFORMANCE.md): the
     * payload over the time, and that times what passes the slowest link. */
    double algbw_Bps, busbw_Bps;
    char algorithm[24], protocol[8]; /* taken; protocol "" between CPUs */
} fr_collective_time;

/* Over all ranks of the placement.  FR_INPUT: the algorithm does not do it. */
FR_CHECKED fr_status fr_collective_time_of(const fr_cost_model *costs,
                                           const fr_cluster *cluster,
                                           const fr_placement *placement,
                                           const fr_collective_ask *ask,
                                           fr_collective_time *out,
                                           fr_err *err);

/* Does the algorithm carry that out over so many ranks, on GPUs as NCCL's? */
bool fr_collective_time_can(const fr_cost_model *costs, fr_collective_kind kind,
                            fr_op op, int64_t n_group);

#endif
