/*
 * interpreter.h: executes a program for one rank, step by step.
 *
 * The calling thread is the compute lane; one communication thread
 * (comm_thread.c) drives all other lanes, so a receive that waits never holds a
 * gradient reduction up.  Nothing is allocated while stepping.
 */
#ifndef FR_RUNTIME_RUN_INTERPRETER_H
#define FR_RUNTIME_RUN_INTERPRETER_H

#include "program/ir/program.h"
#include "runtime/comm/transport.h"
#include "runtime/data/data.h"
#include "spec/model/faults.h"
#include "spec/result/prediction.h"
#include "spec/result/timeline.h"

typedef struct fr_interpreter fr_interpreter;

/* An instruction and its operands; see `on_gradients`. */
typedef struct fr_instr_view {
    const fr_instr *instr;
    const fr_call *call;
    void *const *ptr; /* [FR_INSTR_REFS] */
} fr_instr_view;

/* Receives the position of a thread, for observers outside of the process
 * (launch.h). */
typedef void (*fr_status_fn)(void *context, int64_t i_step, uint32_t i_call,
                             uint32_t i_instr);

/* Observers of a rank's steps; each may be NULL. */
typedef struct fr_step_watch {
    /* Shown each OPT_STEP before it runs (on GPUs in the first step alone),
     * with its gradients in the host's memory as float32. */
    void (*on_gradients)(void *context, const fr_instr_view *view);
    fr_status_fn on_status;
    /* Called now and then while the compute lane waits, with the call, the
     * instruction and the rank that it waits for (-1: unknown). */
    void (*on_wait)(void *context, uint32_t i_call, uint32_t i_instr,
                    int64_t peer);
    void *context; /* of all */
} fr_step_watch;

typedef struct fr_interpreter_options {
    double timeout_s;    /* of every wait */
    int64_t trace_steps; /* room for spans of so many steps */
    bool is_core_shared; /* the communication thread has no core of its own */
    bool is_crowded;     /* more threads than cores: give them away early */
    int comm_core;       /* core of the communication thread; -1: any */
    fr_step_watch watch;
    /* Clock of the communication thread's last round; may be NULL. */
    _Atomic int64_t *beat_ns;
    const fr_faults *faults; /* on purpose; may be NULL */
    uint64_t shake_seed;     /* lanes wait at random; 0: they do not */
} fr_interpreter_options;

/*
 * Borrows everything (data: NULL when the program loads no tokens).  The
 * transport's slab is open, its bytes are the program's memory.
 */
FR_CHECKED fr_status fr_interpreter_create(
    const fr_program *program, fr_transport *transport, fr_data *data,
    const fr_interpreter_options *options, fr_interpreter **out, fr_err *err);
void fr_interpreter_destroy(fr_interpreter *interpreter); /* takes NULL */

/*
 * Runs one step (i_step: of training, chooses data and learning rate) to its
 * end on this rank.  Call it on all ranks.  After a failure (FR_FAILURE with
 * rank, operation and peer; FR_IO from data) the interpreter can only be
 * destroyed.
 */
FR_CHECKED fr_status fr_interpreter_step(fr_interpreter *interpreter,
                                         int64_t i_step, bool is_traced,
                                         double *step_s, fr_err *err);

/*
 * Runs the part of a step that the loss needs, on the n-th global batch of
 * `data` (NULL where the program loads no tokens).  Parameters stay, gradients
 * are lost.  The scalars then have its loss.
 */
FR_CHECKED fr_status fr_interpreter_evaluate(fr_interpreter *interpreter,
                                             fr_data *data, int64_t i_batch,
                                             fr_err *err);

/* This rank's part of the last step's loss. */
double fr_interpreter_own_loss(const fr_interpreter *interpreter);

const fr_step_scalars *fr_interpreter_scalars(const fr_interpreter *it);

/*
 * Sets part_s to the parts of the compute lane's last step, which add up to its
 * time: waits (for collectives of its own, for other lanes) by part, the
 * optimizer and the data; the rest is compute.  A wait for a pipeline
 * neighbour, the bubble included, counts as exposed_pp.
 */
void fr_interpreter_part_s(const fr_interpreter *it, double part_s[FR_PART_N]);

/* From other ranks, since it was made; between steps. */
uint64_t fr_interpreter_received_bytes(const fr_interpreter *it);

/* Spans of the traced steps so far: how many there are; out may be NULL. */
size_t fr_interpreter_copy_spans(const fr_interpreter *interpreter,
                                 fr_span *out);

#endif
