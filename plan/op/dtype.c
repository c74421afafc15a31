/*
 * dtype.c: sizes and names of the types of elements.
 */
#include "plan/op/dtype.h"

uint64_t fr_dtype_bytes(fr_dtype dtype)
{
    static const uint8_t bytes[FR_DTYPE_N] = {
        [FR_DTYPE_F32] = 4,  [FR_DTYPE_BF16] = 2, [FR_DTYPE_F16] = 2,
        [FR_DTYPE_TF32] = 4, [FR_DTYPE_FP8] = 1,  [FR_DTYPE_FP4] = 1,
        [FR_DTYPE_F64] = 8,  [FR_DTYPE_I32] = 4,  [FR_DTYPE_U8] = 1,
    };
    return (unsigned)dtype < FR_DTYPE_N ? bytes[dtype] : 0;
}

fr_dtype fr_dtype_storage(fr_dtype dtype)
{
    switch (dtype) {
    case FR_DTYPE_FP8:
    case FR_DTYPE_FP4:
        return FR_DTYPE_BF16;
    case FR_DTYPE_TF32:
        return FR_DTYPE_F32;
    default:
        return dtype;
    }
}

bool fr_dtype_is_of_gradients(fr_dtype dtype)
{
    return dtype == FR_DTYPE_F32 || dtype == FR_DTYPE_BF16 ||
           dtype == FR_DTYPE_F16;
}

static const char *const names[FR_DTYPE_N] = {
    [FR_DTYPE_F32] = "f32",   [FR_DTYPE_BF16] = "bf16", [FR_DTYPE_F16] = "f16",
    [FR_DTYPE_TF32] = "tf32", [FR_DTYPE_FP8] = "fp8",   [FR_DTYPE_FP4] = "fp4",
    [FR_DTYPE_F64] = "f64",   [FR_DTYPE_I32] = "i32",   [FR_DTYPE_U8] = "u8",
};
const fr_names fr_dtype_names = FR_NAMES(names);

const char *fr_dtype_name(fr_dtype dtype)
{
    return (unsigned)dtype < FR_DTYPE_N ? names[dtype] : "?";
}
