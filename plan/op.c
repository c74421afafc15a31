/*
 * op.c: what is known of each operation: name, class, operands, amounts.
 */
#include "plan/op.h"

#include <stddef.h>

typedef struct op_row {
    const char *name;
    const char *access;
    fr_op_class op_class;
} op_row;

static const op_row rows[FR_OP_N] = {
#define OP_ROW(symbol, op_name, klass, op_access)                              \
    [FR_OP_##symbol] = {op_name, op_access, FR_OP_CLASS_##klass},
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
        [FR_LANE_TP] = "tp",
    };
    return (unsigned)lane < FR_LANE_N ? names[lane] : "?";
}

const char *fr_space_name(fr_space space)
{
    static const char *const names[FR_SPACE_N] = {
        [FR_SPACE_NONE] = "none",   [FR_SPACE_WEIGHT] = "weight",
        [FR_SPACE_GRAD] = "grad",   [FR_SPACE_OPT] = "opt",
        [FR_SPACE_IN] = "in",       [FR_SPACE_OUT] = "out",
        [FR_SPACE_INPUT] = "input", [FR_SPACE_SAVED] = "saved",
        [FR_SPACE_TEMP] = "temp",   [FR_SPACE_TOKENS] = "tokens",
        [FR_SPACE_STEP] = "step",   [FR_SPACE_WIRE] = "wire",
        [FR_SPACE_ERROR] = "error",
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

bool fr_op_is_executable(fr_op op)
{
    return op < FR_OP_CAST;
}

char fr_op_access(fr_op op, int i_ref)
{
    const char *access = rows[op].access;
    for (int i = 0; i < i_ref; i++)
        if (access[i] == '\0')
            return 0;
    return access[i_ref];
}

static uint64_t product(int64_t a, int64_t b)
{
    return (uint64_t)a * (uint64_t)b;
}

/* Pairs (query, key) that causal attention looks at. */
static uint64_t attention_pairs(const fr_instr *instr)
{
    const int64_t *d = instr->dim;
    uint64_t t = (uint64_t)d[1];
    return product(d[0], d[2]) * (t * (t + 1) / 2);
}

uint64_t fr_instr_flop(const fr_instr *instr)
{
    const int64_t *d = instr->dim;
    uint64_t n01 = product(d[0], d[1]);
    switch ((fr_op)instr->op) {
    case FR_OP_EMBED_FWD:
    case FR_OP_EMBED_BWD:
        return n01 * 2;
    case FR_OP_NORM_FWD:
        return n01 * 8;
    case FR_OP_NORM_BWD:
        return n01 * 14;
    case FR_OP_LINEAR_FWD:
    case FR_OP_LINEAR_DGRAD:
    case FR_OP_LINEAR_WGRAD:
        return 2 * n01 * (uint64_t)d[2];
    case FR_OP_ROPE_FWD:
    case FR_OP_ROPE_BWD:
        return product(d[0], d[4]) * 3 * (uint64_t)(d[2] + d[3]);
    case FR_OP_ATTN_FWD: /* two products, and the softmax */
        return attention_pairs(instr) * (4 * (uint64_t)d[4] + 5);
    case FR_OP_ATTN_BWD: /* four products; one more where probs are remade */
        return attention_pairs(instr) * (instr->flags & FR_INSTR_SAVE_PROBS
                                             ? 8 * (uint64_t)d[4] + 4
                                             : 10 * (uint64_t)d[4] + 8);
    case FR_OP_GELU_FWD:
        return (uint64_t)d[0] * 12;
    case FR_OP_GELU_BWD:
        return (uint64_t)d[0] * 20;
    case FR_OP_SWIGLU_FWD:
        return n01 * 6;
    case FR_OP_SWIGLU_BWD:
        return n01 * 12;
    case FR_OP_XENT:
        return n01 * 7;
    case FR_OP_XENT_MAX:
    case FR_OP_BIAS_GRAD:
    case FR_OP_RESIDUAL_ADD:
        return n01;
    case FR_OP_XENT_SUM:
    case FR_OP_XENT_GRAD:
        return n01 * 4;
    case FR_OP_ADD:
        return (uint64_t)d[0];
    case FR_OP_GRAD_SQSUM:
        return (uint64_t)d[0] * 2;
    default: /* optimizers and compressors: their descriptors know */
        return 0;
    }
}

static const uint64_t F32 = 4;

/* Shapes as op.h gives them, in elements of four bytes. */
static uint64_t embed_elements(const fr_instr *instr, int i_ref)
{
    const int64_t *d = instr->dim;
    const uint64_t matrix = product(d[2], d[1]);
    const uint64_t positions = product(d[3], d[1]);
    const uint64_t forward[4] = {product(d[0], 2), matrix, positions,
                                 product(d[0], d[1])};
    const uint64_t backward[4] = {forward[0], forward[3], matrix, positions};
    return instr->op == FR_OP_EMBED_FWD ? forward[i_ref] : backward[i_ref];
}

static uint64_t norm_elements(const fr_instr *instr, int i_ref)
{
    const uint64_t r = (uint64_t)instr->dim[0], c = (uint64_t)instr->dim[1];
    const uint64_t forward[5] = {r * c, c, c, r * c, 2 * r};
    const uint64_t backward[7] = {r * c, r * c, c, 2 * r, r * c, c, c};
    return instr->op == FR_OP_NORM_FWD ? forward[i_ref] : backward[i_ref];
}

static uint64_t linear_elements(const fr_instr *instr, int i_ref)
{
    const int64_t *d = instr->dim;
    const uint64_t mn = product(d[0], d[1]), nk = product(d[1], d[2]);
    const uint64_t mk = product(d[0], d[2]), n = (uint64_t)d[1];
    const uint64_t forward[4] = {mk, nk, n, mn};
    const uint64_t dgrad[3] = {mn, nk, mk};
    const uint64_t wgrad[4] = {mn, mk, nk, n};
    return instr->op == FR_OP_LINEAR_FWD     ? forward[i_ref]
           : instr->op == FR_OP_LINEAR_DGRAD ? dgrad[i_ref]
                                             : wgrad[i_ref];
}

static uint64_t attention_elements(const fr_instr *instr, int i_ref)
{
    const int64_t *d = instr->dim;
    const uint64_t rows_ = product(d[0], d[1]);
    const uint64_t qkv = rows_ * product(d[2] + 2 * d[3], d[4]);
    const uint64_t o = rows_ * product(d[2], d[4]);
    const uint64_t lse = rows_ * (uint64_t)d[2];
    const uint64_t kept =
        instr->flags & FR_INSTR_SAVE_PROBS ? lse * (uint64_t)d[1] : lse;
    const uint64_t forward[4] = {qkv, o, kept, 0};
    const uint64_t backward[6] = {o, qkv, o, kept, qkv, 0};
    return instr->op == FR_OP_ATTN_FWD ? forward[i_ref] : backward[i_ref];
}

static uint64_t loss_elements(const fr_instr *instr, int i_ref)
{
    const uint64_t r = (uint64_t)instr->dim[0];
    const uint64_t logits = r * (uint64_t)instr->dim[1];
    const uint64_t step = sizeof(fr_step_scalars) / F32;
    const uint64_t xent[3] = {logits, 2 * r, step};
    const uint64_t sharded[5] = {logits, 2 * r, r, 2 * r, step};
    return instr->op == FR_OP_XENT ? xent[i_ref] : sharded[i_ref];
}

static uint64_t optimizer_bytes(const fr_instr *instr, int i_ref)
{
    const int64_t *d = instr->dim;
    const uint64_t n = (uint64_t)d[0] * F32;
    const uint64_t step = sizeof(fr_step_scalars);
    const uint64_t update[5] = {n, n, (uint64_t)d[2], step, (uint64_t)d[3]};
    const uint64_t square_sum[2] = {n, step};
    return instr->op == FR_OP_GRAD_SQSUM ? square_sum[i_ref]
           : instr->op == FR_OP_CLIP     ? step
                                         : update[i_ref];
}

/* dims as in compressor.h. */
static uint64_t compressor_bytes(const fr_instr *instr, int i_ref)
{
    const int64_t *d = instr->dim;
    const uint64_t n = (uint64_t)d[0] * F32, payload = (uint64_t)d[1];
    const uint64_t encode[3] = {n, (uint64_t)d[4], payload};
    const uint64_t decode[3] = {payload * (uint64_t)d[5], (uint64_t)d[4], n};
    return instr->op == FR_OP_COMPRESS ? encode[i_ref] : decode[i_ref];
}

static uint64_t small_bytes(const fr_instr *instr, int i_ref)
{
    const int64_t *d = instr->dim;
    const uint64_t n0 = (uint64_t)d[0], n01 = product(d[0], d[1]);
    switch ((fr_op)instr->op) {
    case FR_OP_BIAS_GRAD:
        return F32 * (i_ref == 0 ? n01 : (uint64_t)d[1]);
    case FR_OP_RESIDUAL_ADD:
        return F32 * (i_ref == 2 ? (uint64_t)d[1] : n01);
    case FR_OP_ROPE_FWD:
    case FR_OP_ROPE_BWD:
        return F32 * product(d[0], d[4]) * (uint64_t)(d[2] + 2 * d[3]);
    case FR_OP_GELU_FWD:
    case FR_OP_GELU_BWD:
    case FR_OP_ADD:
        return F32 * n0;
    case FR_OP_SWIGLU_FWD:
        return F32 * n01 * (i_ref == 0 ? 2 : 1);
    case FR_OP_SWIGLU_BWD:
        return F32 * n01 * (i_ref == 0 ? 1 : 2);
    case FR_OP_ZERO:
    case FR_OP_COPY:
    case FR_OP_HOST_COPY:
        return n0;
    case FR_OP_LOAD_TOKENS:
        return F32 * n01 * 2;
    default:
        return 0;
    }
}

static uint64_t communication_bytes(const fr_instr *instr, int i_ref,
                                    int n_group)
{
    const uint64_t all = fr_instr_payload_bytes(instr);
    const uint64_t part = n_group > 0 ? all / (uint64_t)n_group : all;
    switch ((fr_op)instr->op) {
    case FR_OP_REDUCE_SCATTER:
        return i_ref == 0 ? all : part;
    case FR_OP_ALL_GATHER:
        return i_ref == 0 ? part : all;
    default:
        return all;
    }
}

uint64_t fr_instr_ref_bytes(const fr_instr *instr, int i_ref, int n_group)
{
    if (i_ref < 0 || i_ref >= FR_INSTR_REFS || instr->op >= FR_OP_N ||
        fr_op_access((fr_op)instr->op, i_ref) == 0 ||
        instr->ref[i_ref].space == FR_SPACE_NONE)
        return 0;
    switch ((fr_op)instr->op) {
    case FR_OP_EMBED_FWD:
    case FR_OP_EMBED_BWD:
        return F32 * embed_elements(instr, i_ref);
    case FR_OP_NORM_FWD:
    case FR_OP_NORM_BWD:
        return F32 * norm_elements(instr, i_ref);
    case FR_OP_LINEAR_FWD:
    case FR_OP_LINEAR_DGRAD:
    case FR_OP_LINEAR_WGRAD:
        return F32 * linear_elements(instr, i_ref);
    case FR_OP_ATTN_FWD:
    case FR_OP_ATTN_BWD:
        return F32 * attention_elements(instr, i_ref);
    case FR_OP_XENT:
    case FR_OP_XENT_MAX:
    case FR_OP_XENT_SUM:
    case FR_OP_XENT_GRAD:
        return F32 * loss_elements(instr, i_ref);
    case FR_OP_GRAD_SQSUM:
    case FR_OP_CLIP:
    case FR_OP_OPT_NORMS:
    case FR_OP_OPT_STEP:
        return optimizer_bytes(instr, i_ref);
    case FR_OP_COMPRESS:
    case FR_OP_DECOMPRESS:
        return compressor_bytes(instr, i_ref);
    default:
        return fr_op_class_of((fr_op)instr->op) == FR_OP_CLASS_COLLECTIVE ||
                       fr_op_class_of((fr_op)instr->op) == FR_OP_CLASS_P2P
                   ? communication_bytes(instr, i_ref, n_group)
                   : small_bytes(instr, i_ref);
    }
}

uint64_t fr_instr_moved_bytes(const fr_instr *instr, int n_group)
{
    uint64_t sum = 0;
    for (int i = 0; i < FR_INSTR_REFS; i++) {
        char access = fr_op_access((fr_op)instr->op, i);
        if (access == 0)
            break;
        uint64_t bytes = fr_instr_ref_bytes(instr, i, n_group);
        bool is_table = (instr->op == FR_OP_EMBED_FWD && i == 1) ||
                        (instr->op == FR_OP_EMBED_BWD && i == 2);
        if (is_table && bytes > 0) /* only the rows of the tokens */
            bytes = F32 * product(instr->dim[0], instr->dim[1]);
        bool is_added = access == 'w' && instr->flags & FR_INSTR_ACCUMULATE;
        sum += access == 'm' || is_added ? 2 * bytes : bytes;
    }
    return sum;
}

uint64_t fr_instr_payload_bytes(const fr_instr *instr)
{
    return (uint64_t)instr->dim[0] * fr_dtype_bytes((fr_dtype)instr->dtype);
}
