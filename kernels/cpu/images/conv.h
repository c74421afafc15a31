/*
 * conv.h: convolutions by oneDNN (https://github.com/oneapi-src/oneDNN, in
 * Debian libdnnl), which writes code for each shape.  That takes time and
 * memory, so it is made before training begins, for the shapes of a program.
 */
#ifndef FR_KERNELS_CPU_IMAGES_CONV_H
#define FR_KERNELS_CPU_IMAGES_CONV_H

#include "core/base/err.h"
#include "plan/op/op.h"

typedef struct fr_convs fr_convs;

/* Is oneDNN in this build? */
bool fr_convs_are_there(void);
/* For the team size that the calling thread has set; FR_FAILURE says what to
 * install.  fr_convs_destroy() takes it back. */
FR_CHECKED fr_status fr_convs_create(fr_convs **out, fr_err *err);
void fr_convs_destroy(fr_convs *convs); /* takes NULL */
/* Makes the code of a CONV_* whose shape is new. */
FR_CHECKED fr_status fr_convs_add(fr_convs *convs, const fr_instr *instr,
                                  fr_err *err);

#endif
