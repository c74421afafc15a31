/*
 * op.c: the rows of op_list.inc as a table, and what it says of each
 * operation.  Amounts stand in op_amounts.c.
 */
#include "plan/op/op.h"

#include "plan/op/op_table.h"

#define DIM(dims, name) (uint8_t)(FR_DIM(dims, name) + 1)

/* (factor, dimensions) as an op_product. */
#define PRODUCT_0(dims, factor, ...)                                           \
    {                                                                          \
        factor,                                                                \
        {                                                                      \
            0                                                                  \
        }                                                                      \
    }
#define PRODUCT_1(dims, factor, a, ...)                                        \
    {                                                                          \
        factor,                                                                \
        {                                                                      \
            DIM(dims, a)                                                       \
        }                                                                      \
    }
#define PRODUCT_2(dims, factor, a, b, ...)                                     \
    {                                                                          \
        factor,                                                                \
        {                                                                      \
            DIM(dims, a), DIM(dims, b)                                         \
        }                                                                      \
    }
#define PRODUCT_3(dims, factor, a, b, c, ...)                                  \
    {                                                                          \
        factor,                                                                \
        {                                                                      \
            DIM(dims, a), DIM(dims, b), DIM(dims, c)                           \
        }                                                                      \
    }
#define PRODUCT_PICK(factor, a, b, c, macro, ...) macro
#define PRODUCT(dims, ...)                                                     \
    PRODUCT_PICK(__VA_ARGS__, PRODUCT_3, PRODUCT_2, PRODUCT_1, PRODUCT_0, )    \
    (dims, __VA_ARGS__, )

#define ACCESS_r 'r', false
#define ACCESS_w 'w', false
#define ACCESS_m 'm', false
#define ACCESS_opt_r 'r', true
#define ACCESS_opt_w 'w', true
#define ACCESS_opt_m 'm', true
#define ACCESS_opt_s 's', true

#define STRIP(...) __VA_ARGS__
#define OPERAND_OF(dims, name, access, element, ...)                           \
    {ACCESS_##access, OP_ELEMENT_##element, PRODUCT(dims, __VA_ARGS__)},
#define OPERAND_SPREAD(...) OPERAND_OF(__VA_ARGS__)
#define OPERAND(dims, operand) OPERAND_SPREAD(dims, STRIP operand)

#define FLOP_SPREAD(...) PRODUCT(__VA_ARGS__)
#define FLOP_FIRST(flop, ...) flop
#define FLOP(dims, ...) FLOP_SPREAD(dims, STRIP FLOP_FIRST(__VA_ARGS__, ))

#define PASS_FORWARD FR_OP_PASS_FORWARD
#define PASS_BACKWARD FR_OP_PASS_BACKWARD
#define PASS_COMPUTE FR_OP_PASS_ANY
#define PASS_COLLECTIVE FR_OP_PASS_ANY
#define PASS_P2P FR_OP_PASS_ANY
#define PASS_IO FR_OP_PASS_ANY

const op_row op_rows[FR_OP_N] = {
#define OP(symbol, op_name, kind, where, dims, special_name, ...)              \
    [FR_OP_##symbol] = {op_name,                                               \
                        FR_OP_CLASS_##kind,                                    \
                        PASS_##kind,                                           \
                        sizeof(fr_##dims##_dims) / sizeof(int64_t),            \
                        FLOP(dims, __VA_ARGS__),                               \
                        {FR_OP_EACH(OPERAND, dims, __VA_ARGS__){0}},           \
                        &op_special_##special_name},
#include "plan/op/op_list.inc"
#undef OP
};

const char *fr_op_name(fr_op op)
{
    return (unsigned)op < FR_OP_N ? op_rows[op].name : "?";
}

fr_op_class fr_op_class_of(fr_op op)
{
    return (fr_op_class)op_rows[op].op_class;
}

fr_op_pass fr_op_pass_of(fr_op op)
{
    return (fr_op_pass)op_rows[op].pass;
}

char fr_op_access(fr_op op, int i_ref)
{
    char access = op_rows[op].operands[i_ref].access;
    return access == 's' ? 'w' : access;
}

bool fr_op_is_optional(fr_op op, int i_ref)
{
    return op_rows[op].operands[i_ref].is_optional;
}

int fr_op_n_dims(fr_op op)
{
    return op_rows[op].n_dims;
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
        [FR_SPACE_HOST] = "host",
    };
    return (unsigned)space < FR_SPACE_N ? names[space] : "?";
}
