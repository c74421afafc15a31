/*
 * micro_program.h: small programs made by hand, so that calibration measures
 * communication and overheads through the runtime's own interpreter.
 */
#ifndef FR_PROGRAM_IR_MICRO_PROGRAM_H
#define FR_PROGRAM_IR_MICRO_PROGRAM_H

#include "program/ir/program.h"

typedef struct fr_micro fr_micro;

/* One rank program per pipeline stage of the plan. */
FR_CHECKED fr_status fr_micro_create(const fr_plan *plan, fr_micro **out,
                                     fr_err *err);

/* A segment of n instructions; operands of space IN are offsets in the slab.
 * Out of memory sticks and is reported by fr_micro_finish(). */
uint32_t fr_micro_segment(fr_micro *micro, fr_lane lane, const char *name,
                          const fr_instr *instrs, uint32_t n);

/* A call of it in a rank program; `dep` UINT32_MAX: none.  Its number. */
uint32_t fr_micro_call(fr_micro *micro, uint32_t i_stage, uint32_t i_segment,
                       uint32_t dep);

/* Hands the program over; micro is used up (also on failure). */
FR_CHECKED fr_status fr_micro_finish(fr_micro *micro, uint64_t slab_bytes,
                                     fr_program **out, fr_err *err);

/* Instructions that the benches need. */
fr_instr fr_micro_zero(uint64_t offset_bytes, uint64_t n_bytes);
/* n fp32 elements; src and dst are offsets in the slab. */
fr_instr fr_micro_communicate(fr_op op, fr_axis axis,
                              fr_collective_kind algorithm, uint64_t n,
                              uint64_t src_bytes, uint64_t dst_bytes);

#endif
