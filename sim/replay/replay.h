/*
 * replay.h: runs the instructions of a program in virtual time.
 *
 * Every rank has its lanes; an instruction becomes ready when its lane is free
 * and the dependencies of its call are done, starts when all that take part
 * are ready (rendezvous), waits its latency and is then a flow over what it
 * uses: cores of its ranks, memory channels, ports and network links of their
 * nodes, links of the fabric, all shared max-min fairly.  What made each
 * instruction start is kept, so the critical path can be walked back.
 *
 * Ranks that must behave alike may be replayed as one (fold.h), and calls of
 * the compute lane as one activity each (replay_order.h).  Of a program that
 * repeats (program->n_repeats) periods are replayed until one ends as it has
 * begun; the others are multiplied (replay_steady.c).
 */
#ifndef FR_SIM_REPLAY_REPLAY_H
#define FR_SIM_REPLAY_REPLAY_H

#include "core/base/log.h"
#include "core/base/vec.h"
#include "cost_models/base/cost.h"
#include "program/ir/program.h"
#include "program/lower/step/lower.h"
#include "sim/replay/replay_cost.h"
#include "spec/cluster/cluster.h"
#include "spec/result/timeline.h"

#define FR_REPLAY_NONE UINT32_MAX
#define FR_REPLAY_LAST_ROUND UINT32_MAX

typedef enum fr_replay_detail {
    FR_REPLAY_AUTO,         /* calls where all ranks are GPUs */
    FR_REPLAY_INSTRUCTIONS, /* one by one */
    FR_REPLAY_CALLS         /* calls of the compute lane as a whole */
} fr_replay_detail;

typedef struct fr_replay_options {
    fr_replay_detail detail;
    bool is_unfolded;  /* every rank by itself */
    bool is_whole;     /* every rank is listed, for a timeline of them */
    bool is_bounded;   /* ranks of too many kinds are FR_INFEASIBLE sooner */
    const fr_log *log; /* cancellation; NULL: none */
} fr_replay_options;

/* One instruction that one rank ran, or a run of calls. */
typedef struct fr_replay_record {
    int64_t ready_ps; /* its lane had come to it */
    int64_t start_ps; /* everybody else had too */
    int64_t end_ps;
    int64_t late_ps;        /* after start_ps: by jitter, for the slowest */
    const fr_run_cost *run; /* NULL: an instruction */
    uint32_t i_call;        /* of a run the first */
    uint32_t round;         /* of the loop (replay_order.h); LAST_ROUND: after
                               its last one */
    uint32_t i_instr;       /* of a run the first */
    uint32_t n_calls;       /* of a run; 0: an instruction */
    int32_t rank;           /* the lowest of those that it stands for */
    uint32_t cause;         /* record that ended when this one started; NONE:
                               the begin of the step */
    uint32_t next_member;   /* of the same collective or transfer */
    uint8_t lane;
    uint8_t source; /* fr_cost_source */
    fr_error_key error_key;
    float rel_err;
} fr_replay_record;

/* The data that records refer to. */
typedef struct fr_replay_context {
    fr_rank_layout layout;
    fr_fabric_uses fabric;
    fr_fold fold;
    fr_actors actors;
    fr_replay_order *orders; /* [n_rank_programs] */
    fr_replay_costs costs;
    const fr_cost_model *model;
    const int32_t *node_of_rank;
    fr_replay_options options;
    bool has_loops; /* the program repeats, and all orders have a loop */
} fr_replay_context;

typedef struct fr_replay {
    fr_vec(fr_replay_record) records;
    fr_skip skip;        /* the rounds that their times omit */
    uint32_t n_rounds;   /* of loops, beside the first, that have records */
    bool is_unsteady;    /* a program that repeats, but the replay does not: has
                            no records; the whole program is wanted */
    int64_t makespan_ps; /* with what was skipped */
    uint32_t last;       /* the record that ends last, lowest rank first */
    uint64_t n_events;
    int64_t n_simulated; /* ranks */
    fr_replay_context *context;
} fr_replay;

/* Calls of all that are replayed, of one that is bounded: some ten seconds.
 * What is folded and has twice as many is FR_INFEASIBLE in any case. */
enum { FR_REPLAY_MOST_CALLS = 1 << 22 };

/*
 * A replay in two steps.  First who is replayed and what each thing costs,
 * which already says how much memory ranks need: everything is borrowed,
 * node_of_rank[world] too.
 */
FR_CHECKED fr_status fr_replay_prepare(const fr_program *program,
                                       const fr_cost_model *costs,
                                       const fr_cluster *cluster,
                                       const int32_t *node_of_rank,
                                       const fr_replay_options *options,
                                       fr_replay *out, fr_err *err);
/*
 * Then the records.  FR_CHECK when the program deadlocks: names a rank, the
 * call and what it waits for.  After an error too fr_replay_release() frees
 * *replay.
 */
FR_CHECKED fr_status fr_replay_finish(fr_replay *replay, fr_err *err);
void fr_replay_release(fr_replay *replay);

#endif
