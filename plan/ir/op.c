/*
 * op.c: what is known of each operation: name, class, operands.  Its amounts
 * stand in op_amounts.c.
 */
#include "plan/ir/op.h"

#include <stddef.h>

typedef struct op_row {
    const char *name;
    const char *access;
    fr_op_class op_class;
} op_row;

static const op_row rows[FR_OP_N] = {
#define OP_ROW(symbol, op_name, op_kind, op_access)                            \
    [FR_OP_##symbol] = {op_name, op_access, FR_OP_CLASS_##op_kind},
    FR_OP_LIST(OP_ROW) FR_OP_PLANNED_LIST(OP_ROW)
#undef OP_ROW
};

uint64_t fr_dtype_bytes(fr_dtype dtype)
{
    static const uint8_t bytes[FR_DTYPE_N] = {
        [FR_DTYPE_F32] = 4,  [FR_DTYPE_BF16] = 2, [FR_DTYPE_F16] = 2,
        [FR_DTYPE_TF32] = 4, [FR_DTYPE_FP8] = 1,  [FR_DTYPE_FP4] = 1,
        [FR_DTYPE_F64] = 8,  [FR_DTYPE_I32] = 4,  [FR_DTYPE_U8] = 1,
    };
    return (unsigned)dtype < FR_DTYPE_N ? bytes[dtype] : 0;
}

const char *fr_dtype_name(fr_dtype dtype)
{
    static const char *const names[FR_DTYPE_N] = {
        [FR_DTYPE_F32] = "f32", [FR_DTYPE_BF16] = "bf16",
        [FR_DTYPE_F16] = "f16", [FR_DTYPE_TF32] = "tf32",
        [FR_DTYPE_FP8] = "fp8", [FR_DTYPE_FP4] = "fp4",
        [FR_DTYPE_F64] = "f64", [FR_DTYPE_I32] = "i32",
        [FR_DTYPE_U8] = "u8",
    };
    return (unsigned)dtype < FR_DTYPE_N ? names[dtype] : "?";
}

const char *fr_axis_name(fr_axis axis)
{
    static const char *const names[FR_AXIS_N] = {
        [FR_AXIS_NONE] = "none",       [FR_AXIS_TP] = "tp",
        [FR_AXIS_CP] = "cp",           [FR_AXIS_EP] = "ep",
        [FR_AXIS_DP] = "dp",           [FR_AXIS_PP] = "pp",
        [FR_AXIS_EMBED] = "embed",     [FR_AXIS_MODEL] = "model",
        [FR_AXIS_WORLD] = "world",     [FR_AXIS_SHARD] = "shard",
        [FR_AXIS_REPLICA] = "replica", [FR_AXIS_ETP] = "etp",
        [FR_AXIS_EDP] = "edp",
    };
    return (unsigned)axis < FR_AXIS_N ? names[axis] : "?";
}

const char *fr_lane_name(fr_lane lane)
{
    static const char *const names[FR_LANE_N] = {
        [FR_LANE_COMPUTE] = "compute", [FR_LANE_DP] = "dp",
        [FR_LANE_PP_SEND] = "send",    [FR_LANE_PP_RECV] = "recv",
        [FR_LANE_IO] = "io",           [FR_LANE_GATHER] = "gather",
        [FR_LANE_TP] = "tp",           [FR_LANE_EP] = "ep",
    };
    return (unsigned)lane < FR_LANE_N ? names[lane] : "?";
}

const char *fr_space_name(fr_space space)
{
    static const char *const names[FR_SPACE_N] = {
        [FR_SPACE_NONE] = "none",
        [FR_SPACE_WEIGHT] = "weight",
        [FR_SPACE_GRAD] = "grad",
        [FR_SPACE_OPT] = "opt",
        [FR_SPACE_IN] = "in",
        [FR_SPACE_OUT] = "out",
        [FR_SPACE_INPUT] = "input",
        [FR_SPACE_SAVED] = "saved",
        [FR_SPACE_TEMP] = "temp",
        [FR_SPACE_TOKENS] = "tokens",
        [FR_SPACE_STEP] = "step",
        [FR_SPACE_WIRE] = "wire",
        [FR_SPACE_ERROR] = "error",
        [FR_SPACE_LOW] = "low",
        [FR_SPACE_PIECE_IN] = "piece_in",
        [FR_SPACE_PIECE_OUT] = "piece_out",
        [FR_SPACE_CARRY] = "carry",
    };
    return (unsigned)space < FR_SPACE_N ? names[space] : "?";
}

const char *fr_op_name(fr_op op)
{
    return (unsigned)op < FR_OP_N ? rows[op].name : "?";
}

fr_op_class fr_op_class_of(fr_op op)
{
    return rows[op].op_class;
}

char fr_op_access(fr_op op, int i_ref)
{
    const char *access = rows[op].access;
    for (int i = 0; i < i_ref; i++)
        if (access[i] == '\0')
            return 0;
    return access[i_ref];
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
