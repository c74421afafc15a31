/*
 * program_dump.h: a rank program as text, for people who debug one.
 */
#ifndef FR_PLAN_IR_PROGRAM_DUMP_H
#define FR_PLAN_IR_PROGRAM_DUMP_H

#include "core/base/buffer.h"
#include "plan/ir/program.h"

/*
 * Appends the calls of rank program i_stage in program order, one line each
 * (number, lane, segment, layer, micro-batch, dependencies, bases), the first
 * time that a segment occurs its instructions, and at the end the blocks.
 */
FR_CHECKED fr_status fr_program_dump(const fr_program *program,
                                     uint32_t i_stage, fr_buffer *out,
                                     fr_err *err);

#endif
