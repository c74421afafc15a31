/*
 * gpu_interpreter.h: executes a program for one rank on one GPU.
 *
 * A lane is a stream; a dependency between lanes is an event.  The host only
 * enqueues: a step's launches are captured into a graph after the first step
 * and replayed, so nothing that differs between steps is in a launch; tokens
 * and scalars lie in page-locked memory that the stream copies from.  Traced
 * steps are launched one by one, with an event before and behind each
 * instruction.  The thread that created it makes all calls.
 */
#ifndef FR_RUNTIME_GPU_GPU_INTERPRETER_H
#define FR_RUNTIME_GPU_GPU_INTERPRETER_H

#include "runtime/data/data.h"
#include "runtime/gpu_comm/gpu_links.h"
#include "runtime/run/interpreter.h"

typedef struct fr_gpu_interpreter fr_gpu_interpreter;

typedef struct fr_gpu_options {
    int64_t trace_steps; /* room for spans of so many steps */
    bool is_launched;    /* no graphs */
    fr_step_watch watch;
} fr_gpu_options;

/* Borrows everything; place->timeout_s is that of a communication, from its
 * begin to its end, and of the device, from one call of a lane to the next;
 * links NULL: a world of one.  data NULL: the program
 * loads no tokens.  FR_CHECK: an instruction has no kernel. */
FR_CHECKED fr_status fr_gpu_interpreter_create(
    const fr_gpu_place *place, fr_gpu_links *links, fr_data *data,
    const fr_gpu_options *options, fr_gpu_interpreter **out, fr_err *err);
void fr_gpu_interpreter_destroy(fr_gpu_interpreter *it); /* takes NULL */

/*
 * Lets kernels choose how they work, and runs each instruction that computes
 * once, on the slab: what is in it is lost.  CUDA loads a kernel when it is
 * first launched, which waits for all that runs on the device; in the first
 * step that may be a collective which waits for another rank, which waits so,
 * too (CUDA Programming Guide, 4.7 Lazy Loading, potential hazards:
 * https://docs.nvidia.com/cuda/cuda-programming-guide/04-special-topics/
 * lazy-loading.html, read 2026-11-22).  Fails as a step does.
 */
FR_CHECKED fr_status fr_gpu_interpreter_tune(fr_gpu_interpreter *it,
                                             fr_err *err);

/*
 * Runs one step to its end on this rank.  FR_FAILURE: a kernel failed, a
 * communication did, or was not over in time, or nothing at all went on for
 * that long: rank, step and operation are named, all communication of this
 * rank is aborted, the device is abandoned, and the interpreter can only be
 * destroyed.
 */
FR_CHECKED fr_status fr_gpu_interpreter_step(fr_gpu_interpreter *it,
                                             int64_t i_step, bool is_traced,
                                             double *step_s, fr_err *err);

/* The scalars of the last step, in the host's memory. */
const fr_step_scalars *fr_gpu_interpreter_scalars(const fr_gpu_interpreter *it);

/* Spans of the traced steps so far: how many there are; out may be NULL. */
size_t fr_gpu_interpreter_copy_spans(const fr_gpu_interpreter *it,
                                     fr_span *out);

/* Returns the program's memory on the host. */
unsigned char *fr_gpu_interpreter_host(const fr_gpu_interpreter *it);

/* Has every instruction of the rank's program a kernel or a way to go?
 * FR_INPUT names the first that has none. */
FR_CHECKED fr_status fr_gpu_program_check(const fr_gpu_system *system,
                                          const fr_program *program,
                                          fr_err *err);

#endif
