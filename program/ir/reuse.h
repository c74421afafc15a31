/*
 * reuse.h: how long ago an operand was last used, in bytes touched since: the
 * one fact about a program that decides whether a cache still holds it.
 *
 * It belongs to the program, not to a machine: cost models compare it with
 * the caches of theirs, calibration puts operands where a step leaves them.
 */
#ifndef FR_PROGRAM_IR_REUSE_H
#define FR_PROGRAM_IR_REUSE_H

#include "program/ir/program.h"

/*
 * Writes fr_ref.reuse_log2 of every operand of every compute instruction: the
 * mean over all calls and rank programs of log2(reuse distance) in the steady
 * state (the step before has just run).  Time and memory are bounded for
 * programs of any size: the slab is cut into at most 4096 pieces and at most
 * the first 100,000 instruction instances of a rank program are walked.
 */
FR_CHECKED fr_status fr_program_mark_reuse(fr_program *program, fr_err *err);

#endif
