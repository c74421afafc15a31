/* powersgd_layout.h: PowerSGD's parts of a bucket, for the kernels of both
 * backends (kernels_powersgd.c has the algorithm).  Inside runtime/. */
#ifndef FR_KERNELS_POWERSGD_LAYOUT_H
#define FR_KERNELS_POWERSGD_LAYOUT_H

#include "kernels/cpu/kernels_cpu.h"
#include "plan/codec/compressor.h"

/* The places of the parts of a bucket's state and wire area. */
typedef struct fr_powersgd_layout {
    fr_bucket bucket;
    float *error, *p, *q;              /* state; error NULL: not kept */
    float *wire_raw, *wire_p, *wire_q; /* payload */
} fr_powersgd_layout;

/* Lays out a COMPRESS or DECOMPRESS, whose state is operand 1 and whose payload
 * is `wire`.  Addresses are computed and never read, so they may be a device's.
 * */
fr_powersgd_layout fr_powersgd_layout_of(const fr_kernel_call *call,
                                         float *wire);

#endif
