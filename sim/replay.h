/*
 * replay.h: runs the instructions of a program in virtual time.
 *
 * Every rank has its lanes; an instruction becomes ready when its lane is free
 * and the dependencies of its call are done, starts when all that take part
 * are ready (rendezvous), waits its latency and is then a flow over what it
 * uses: cores of its ranks, memory channels and network links of their nodes,
 * all shared max-min fairly.  What made each instruction start is kept, so the
 * critical path can be walked back.
 */
#ifndef FR_SIM_REPLAY_H
#define FR_SIM_REPLAY_H

#include "core/vec.h"
#include "cost_models/cost.h"
#include "plan/lower.h"
#include "plan/program.h"
#include "spec/cluster.h"

#define FR_REPLAY_NONE UINT32_MAX

/* One instruction that one rank ran. */
typedef struct fr_replay_record {
    int64_t ready_ps; /* its lane had come to it */
    int64_t start_ps; /* everybody else had too */
    int64_t end_ps;
    uint32_t i_call, i_instr;
    int32_t rank;
    uint32_t cause;       /* record that ended when this one started; NONE: the
                             begin of the step */
    uint32_t next_member; /* of the same collective or transfer */
    uint8_t lane;
    uint8_t source; /* fr_cost_source */
    float rel_err;
} fr_replay_record;

typedef struct fr_replay {
    fr_vec(fr_replay_record) records;
    int64_t makespan_ps;
    uint32_t last; /* the record that ends last, lowest rank first */
    uint64_t n_events;
} fr_replay;

/*
 * node_of_rank[world].  FR_CHECK when the program deadlocks: names a rank,
 * the call and what it waits for.  fr_replay_release() frees *out.
 */
FR_CHECKED fr_status fr_replay_run(const fr_program *program,
                                   const fr_cost_model *costs,
                                   const fr_cluster *cluster,
                                   const int32_t *node_of_rank, fr_replay *out,
                                   fr_err *err);
void fr_replay_release(fr_replay *replay);

#endif
