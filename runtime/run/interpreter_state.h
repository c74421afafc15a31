/*
 * interpreter_state.h: what the two threads of an interpreter share.  Inside
 * runtime/run/interpreter*.c and runtime/run/comm_thread.c only.
 *
 * `step_mark` is the number of the running step since the start, from 1; a
 * call is done in it when done[call] == step_mark, so flags are never reset.
 */
#ifndef FR_RUNTIME_RUN_INTERPRETER_STATE_H
#define FR_RUNTIME_RUN_INTERPRETER_STATE_H

#include "kernels/cpu/images/conv.h"
#include "runtime/comm/collective_engine.h"
#include "runtime/inject/inject.h"
#include "runtime/rank/rank_context.h"
#include "runtime/run/interpreter.h"

#include <pthread.h>

/* The state of one lane, which only its thread touches. */
typedef struct fr_lane_state {
    const uint32_t *calls; /* of this lane, in order */
    uint32_t n_calls;
    uint32_t i_call;  /* in `calls` */
    uint32_t i_instr; /* of the call's segment */
    bool is_open;     /* dependencies are done */
    bool is_started;  /* the engine has the instruction */
    int64_t begin_ns; /* of the instruction */
    int64_t moved_ns; /* when something last happened */
    fr_span *spans;
    size_t n_spans, cap_spans;
} fr_lane_state;

/* A collective of the compute lane that needs messages. */
enum { FR_HANDOFF_NONE, FR_HANDOFF_POSTED, FR_HANDOFF_DONE };

struct fr_interpreter {
    fr_rank_context rank;
    fr_transport *transport;
    fr_engine *engine;
    fr_interpreter_options options;
    unsigned char *slab;
    fr_convs *convs;  /* NULL: the rank has none */
    void *scratch[2]; /* of kernels: of the compute lane, of the others */
    fr_shm_control *control;
    fr_lane_state lanes[FR_LANE_N];
    uint32_t *lane_calls; /* all lanes' lists, one after the other */
    _Atomic uint32_t *done;
    int64_t i_step; /* written between steps */
    int64_t step_begin_ns;
    bool is_traced;
    bool is_evaluation;    /* of what the loss needs alone */
    double own_loss;       /* of this rank's tokens in the last step */
    uint8_t *is_evaluated; /* [program->n_segments] */
    uint32_t step_mark;
    uint8_t *part_of_instr;     /* [program->n_instrs] fr_part */
    int64_t part_ns[FR_PART_N]; /* of the last step; COMPUTE: what is left */
    fr_inject inject;
    /* The state that the two threads share. */
    pthread_t thread;
    bool has_thread;
    _Atomic uint32_t open_mark;  /* the step that the lanes may run */
    _Atomic uint32_t lanes_mark; /* the step that they have finished */
    _Atomic bool should_stop;
    _Atomic bool has_failed; /* comm_err is valid */
    _Atomic bool is_held;    /* the compute lane waits for the other lanes */
    fr_err comm_err;
    _Atomic uint32_t handoff;
    uint32_t handoff_instr, handoff_call;
    void *handoff_src, *handoff_dst;
    int64_t handoff_moved_ns;
    uint32_t comm_mark; /* the communication thread's: the step it is in */
};

/* Starts the communication thread. */
FR_CHECKED fr_status fr_comm_start(fr_interpreter *it, fr_err *err);
/* Ends it, also in the middle of a step. */
void fr_comm_stop(fr_interpreter *it);

void fr_interpreter_resolve(const fr_interpreter *it, uint32_t i_call,
                            const fr_instr *instr, void *ptr[FR_INSTR_REFS]);
/* Runs a compute or I/O instruction on this thread. */
FR_CHECKED fr_status fr_interpreter_execute(fr_interpreter *it, uint32_t i_call,
                                            uint32_t i_instr, int n_threads,
                                            fr_err *err);
/* Instructions of a call that are due: none of what an evaluation leaves
 * out, which is done at once. */
uint32_t fr_interpreter_n_instrs(const fr_interpreter *it, uint32_t i_call);
bool fr_interpreter_is_ready(const fr_interpreter *it, uint32_t i_call);
void fr_interpreter_record(fr_interpreter *it, fr_lane lane, uint32_t i_call,
                           uint32_t i_instr, int64_t begin_ns, int64_t end_ns);
/* "rank 1: step 7, all_reduce over dp (call 41 dp_reduce): waited 30 s for
 * rank 0", or the failure that a rank of this node has left. */
FR_CHECKED fr_status fr_interpreter_fail_wait(const fr_interpreter *it,
                                              uint32_t i_call, uint32_t i_instr,
                                              int64_t peer, fr_err *err);

#endif
