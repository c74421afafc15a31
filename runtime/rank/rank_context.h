/*
 * rank_context.h: what an interpreter knows of its rank: the program, the
 * place of the rank in the groups of the plan, and the data.  The interpreters
 * of CPUs and of GPUs both stand on it.
 */
#ifndef FR_RUNTIME_RANK_RANK_CONTEXT_H
#define FR_RUNTIME_RANK_RANK_CONTEXT_H

#include "kernels/cpu/kernels_cpu.h"
#include "program/ir/program.h"
#include "runtime/data/data.h"

typedef struct fr_rank_context {
    const fr_program *program;
    const fr_rank_program *rank_program;
    int64_t rank;
    fr_data *data; /* NULL: the program loads no tokens */
    int coordinate[FR_AXIS_N], n_group[FR_AXIS_N];
} fr_rank_context;

/* Borrows everything; there is nothing to release. */
FR_CHECKED fr_status fr_rank_context_init(const fr_program *program,
                                          int64_t rank, fr_data *data,
                                          fr_rank_context *out, fr_err *err);

const fr_segment *fr_rank_segment(const fr_rank_context *rank, uint32_t i_call);

/*
 * The data at `path` that a rank reads; *out is NULL where it reads none, or
 * kernels make its images up (path "").  FR_IO, FR_INPUT: they cannot be read.
 */
FR_CHECKED fr_status fr_rank_data_open(const fr_program *program,
                                       const fr_rank_program *rank_program,
                                       const char *path, fr_data **out,
                                       fr_err *err);

/* Returns the inputs of a kernel for an instruction, except the operands; call
 * NULL: no mask is drawn. */
fr_kernel_call fr_rank_kernel_call(const fr_rank_context *rank,
                                   const fr_call *call, const fr_instr *instr,
                                   int n_threads, int64_t i_step);

/* Bytes that an instruction has from data; 0: a kernel carries it out. */
uint64_t fr_rank_input_bytes(const fr_rank_context *rank,
                             const fr_instr *instr);
/* Carries out such an instruction of a call: tokens; images, their patches and
 * labels of files.  FR_CHECK: there is no data. */
FR_CHECKED fr_status fr_rank_load(const fr_rank_context *rank,
                                  const fr_call *call, const fr_instr *instr,
                                  int64_t i_step, void *out, fr_err *err);

#endif
