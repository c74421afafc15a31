/*
 * gpu_collectives.h: the collectives of a program as the library between GPUs
 * is asked for them: what the plan wants of each communicator, and one line
 * for each kind of collective of a step.  Pure functions of the program.
 */
#ifndef FR_RUNTIME_GPU_COMM_GPU_COLLECTIVES_H
#define FR_RUNTIME_GPU_COMM_GPU_COLLECTIVES_H

#include "runtime/backend/gpu_driver.h"
#include "runtime/gpu_comm/gpu_groups.h"
#include "runtime/run/run.h"

/* One choice for each operation of communicator i_split whose algorithm,
 * protocol or channels the plan names; all sizes. */
void fr_gpu_choices_fill(const fr_program *program,
                         const fr_rank_program *rank_program,
                         const fr_gpu_groups *groups, uint32_t i_split,
                         fr_gpu_choices *out);

/* A collective of the rank program, and an instruction that is it. */
typedef struct fr_gpu_collective {
    fr_collective_note run; /* counts and estimate are 0 */
    uint32_t i_instr, i_split;
} fr_gpu_collective;

/* Lists each (communicator, operation, type, size) once; free() *out. */
FR_CHECKED fr_status fr_gpu_collectives_list(
    const fr_program *program, const fr_rank_program *rank_program,
    const fr_gpu_groups *groups, fr_gpu_collective **out, size_t *n,
    fr_err *err);

#endif
