/*
 * gradient_dump.h: the gradients of one step as the optimizer gets them
 * (summed over all ranks, not yet clipped), put together to whole tensors by
 * name, so that layouts can be compared.
 *
 * File: "FRGRAD1\n", then for each tensor its name (48 bytes), rows and
 * columns (int64) and rows * columns floats, all little-endian.
 */
#ifndef FR_RUNTIME_RUN_GRADIENT_DUMP_H
#define FR_RUNTIME_RUN_GRADIENT_DUMP_H

#include "program/ir/program.h"
#include "runtime/run/interpreter.h"

typedef struct fr_gradient_dump fr_gradient_dump;

FR_CHECKED fr_status fr_gradient_dump_create(const fr_program *program,
                                             int64_t rank,
                                             fr_gradient_dump **out,
                                             fr_err *err);
void fr_gradient_dump_destroy(fr_gradient_dump *dump); /* takes NULL */

/* Keeps the gradients that an OPT_STEP is about to use. */
void fr_gradient_dump_note(fr_gradient_dump *dump, const fr_instr_view *view);

/* Collective: rank 0 writes the file.  FR_CHECK when no rank has kept some
 * element. */
FR_CHECKED fr_status fr_gradient_dump_write(fr_gradient_dump *dump,
                                            fr_transport *transport,
                                            const char *path, fr_err *err);

#endif
