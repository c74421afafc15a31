/*
 * replay_order.h: what the lanes of a rank program do one after the other.
 *
 * At instruction granularity a step is a call, run instruction by
 * instruction.  At call granularity, calls of the compute lane that meet the
 * same groups of their own pipeline stage and that nothing on another lane
 * waits for, or makes wait, in between become one step: a run.  Its cost is
 * the sum of its instructions' (replay_cost.h).
 */
#ifndef FR_SIM_REPLAY_REPLAY_ORDER_H
#define FR_SIM_REPLAY_REPLAY_ORDER_H

#include "sim/replay/actors.h"

#define FR_REPLAY_NO_SLOT UINT32_MAX

typedef struct fr_replay_step {
    uint32_t first_call;
    uint32_t n_calls; /* of a run; 0: first_call by instructions */
    uint32_t i_run;   /* runs of the same segments have the same number */
    uint16_t axes;    /* of a run: whose groups meet at its begin */
    int8_t i_table;   /* the parties of these axes; -1: nobody meets */
} fr_replay_step;

typedef struct fr_replay_order {
    fr_replay_step *steps; /* lane by lane */
    uint32_t first[FR_LANE_N + 1];
    uint32_t n_slots;
    uint32_t *slot_of_call; /* of calls that another call waits for */
    uint32_t n_runs;
    uint64_t *run_key;     /* [n_runs] */
    uint32_t *step_of_run; /* the first of them */
} fr_replay_order;

FR_CHECKED fr_status fr_replay_order_init(fr_actors *actors, uint32_t i_stage,
                                          bool has_runs, fr_replay_order *out,
                                          fr_err *err);
void fr_replay_order_release(fr_replay_order *order);

#endif
