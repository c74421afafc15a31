/*
 * repeat.h: programs whose micro-batches are not all written out.
 *
 * Between its first and its last micro-batches a rank does the same again and
 * again.  So a step of a million micro-batches is written as one of a few,
 * with a period of calls that stands for many (fr_repeat).
 */
#ifndef FR_PROGRAM_LOWER_STEP_REPEAT_H
#define FR_PROGRAM_LOWER_STEP_REPEAT_H

#include "program/ir/program.h"

/* Finds where the calls of a rank program repeat with micro-batches
 * micro_step later; false: nowhere, or not often enough. */
bool fr_repeat_find(const fr_program *program,
                    const fr_rank_program *rank_program, int32_t micro_step,
                    fr_repeat *out);

/*
 * Calls and dependencies of a rank program in which the period that begins
 * with call `first` is written n more times.  Only these two arrays belong to
 * *out: free both.  FR_NO_MEMORY.
 */
FR_CHECKED fr_status fr_repeat_unroll(const fr_program *program,
                                      const fr_rank_program *rank_program,
                                      uint32_t first, uint32_t n,
                                      fr_rank_program *out, fr_err *err);

/* A call that call `of` of the n-th time waits for, in the numbers of an
 * unrolled program.  `first` as above, what follows the period is of the last
 * time. */
static inline uint64_t fr_repeat_dep(const fr_repeat *repeat, uint32_t dep,
                                     uint64_t n)
{
    return dep < repeat->first_call ? dep : dep + n * repeat->period;
}

#endif
