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
/* Calls of a loop wait for calls of so many periods before at most. */
#define FR_REPLAY_LOOP_WAITED 2

typedef struct fr_replay_step {
    uint32_t first_call;
    uint32_t n_calls; /* of a run; 0: first_call by instructions */
    uint32_t i_run;   /* runs of the same segments have the same number */
    uint16_t axes;    /* of a run: whose groups meet at its begin */
    int8_t i_table;   /* the parties of these axes; -1: nobody meets */
} fr_replay_step;

/*
 * The steps that a lane runs more than once: those of calls [first_call,
 * first_call + n_calls), a period of what the rank program repeats.
 */
typedef struct fr_replay_loop {
    uint32_t first_call, n_calls; /* 0: none */
    uint32_t first_step[FR_LANE_N], end_step[FR_LANE_N];
} fr_replay_loop;

typedef struct fr_replay_order {
    fr_replay_step *steps; /* lane by lane */
    uint32_t first[FR_LANE_N + 1];
    uint32_t n_slots;
    uint32_t *slot_of_call; /* of calls that another call waits for */
    uint32_t n_runs;
    uint64_t *run_key;     /* [n_runs] */
    uint32_t *step_of_run; /* the first of them */
    fr_replay_loop loop;
} fr_replay_order;

FR_CHECKED fr_status fr_replay_order_init(fr_actors *actors, uint32_t i_stage,
                                          bool has_runs, fr_replay_order *out,
                                          fr_err *err);
/*
 * Finds the loop of a program that repeats (program->n_repeats): it begins
 * where no run goes on.  false: there is no such place.
 */
bool fr_replay_order_find_loop(const fr_program *program, uint32_t i_stage,
                               fr_replay_order *order);
void fr_replay_order_release(fr_replay_order *order);

#endif
