/*
 * dtype.h: the types of elements.
 */
#ifndef FR_PLAN_OP_DTYPE_H
#define FR_PLAN_OP_DTYPE_H

#include "core/document/names.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum fr_dtype {
    FR_DTYPE_F32,
    FR_DTYPE_BF16,
    FR_DTYPE_F16,
    FR_DTYPE_TF32,
    FR_DTYPE_FP8,
    FR_DTYPE_FP4, /* two elements in a byte, block scales apart */
    FR_DTYPE_F64,
    FR_DTYPE_I32,
    FR_DTYPE_U8,
    FR_DTYPE_N
} fr_dtype;

/* Bytes of one element in memory (TF32 is stored as four bytes, FP4 counts
 * as one: only operands that are packed for one product have it). */
uint64_t fr_dtype_bytes(fr_dtype dtype);

/* In what the result of a product of this dtype is stored: BF16 below 16
 * bits, F32 for TF32, else the dtype itself. */
fr_dtype fr_dtype_storage(fr_dtype dtype);

/* May gradients add up and be reduced in it? */
bool fr_dtype_is_of_gradients(fr_dtype dtype);

extern const fr_names fr_dtype_names;
/* "?" where it is none. */
const char *fr_dtype_name(fr_dtype dtype);

#endif
